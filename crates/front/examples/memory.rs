//! An NBD server over plain memory, for conformance tests and for comparing the front end with `nbdkit
//! memory`.
//!
//! ```text
//! memory serve [--unix PATH] [--tcp HOST:PORT] [--size BYTES] [--chunk BYTES] [--slots COUNT]
//! memory compare [--seconds N] [--size BYTES]      fio against this server and nbdkit, in turn
//! ```
#![forbid(unsafe_code)]

use front::memory::MemoryVolume;
use front::{Flow, Guard, Hooks, Interest, Protocol, Server, ServerOptions};
use std::error::Error;
use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};

struct StopOnSignal(UnixStream);

impl Hooks<MemoryVolume> for StopOnSignal {
    fn extra_fds<'a>(&'a self, out: &mut Vec<(BorrowedFd<'a>, Interest)>) {
        out.push((self.0.as_fd(), Interest::Read));
    }

    fn on_ready(&mut self, _: RawFd, _: &mut MemoryVolume) -> Flow {
        let _ = self.0.read(&mut [0; 16]);
        Flow::Stop
    }

    fn on_fault(&mut self, peer: &str, fault: &front::Fault) {
        eprintln!("{peer}: {fault}");
    }
}

struct Arguments(Vec<String>);

impl Arguments {
    fn value(&self, name: &str) -> Option<&str> {
        let at = self.0.iter().position(|argument| argument == name)?;
        self.0.get(at + 1).map(String::as_str)
    }

    fn number(&self, name: &str, default: usize) -> Result<usize, Box<dyn Error>> {
        let parsed = self.value(name).map(str::parse).transpose();
        Ok(parsed.map_err(|error| format!("{name}: {error}"))?.unwrap_or(default))
    }
}

fn serve(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    let chunk = arguments.number("--chunk", 4096)?;
    let slots = arguments.number("--slots", 16384)?;
    if !chunk.is_power_of_two() || chunk < 4096 || slots == 0 {
        return Err("--chunk: expected a power of two from 4096, --slots: at least 1".into());
    }
    let mut volume = MemoryVolume::new(arguments.number("--size", 256 << 20)?, chunk, slots);
    let description = "plain memory".to_owned();
    let mut server = Server::new(ServerOptions { description, ..ServerOptions::default() });
    if let Some(path) = arguments.value("--unix") {
        server.listen_unix(Protocol::Nbd, Path::new(path))?;
        println!("nbd+unix:///?socket={path}");
    }
    if let Some(address) = arguments.value("--tcp") {
        println!("nbd://{}", server.listen_tcp(Protocol::Nbd, address, Guard::default())?);
    }
    let (signals, wake) = UnixStream::pair()?;
    for signal in [signal_hook::consts::SIGTERM, signal_hook::consts::SIGINT] {
        signal_hook::low_level::pipe::register(signal, wake.try_clone()?)?;
    }
    let summary = server.run(&mut volume, &mut StopOnSignal(signals))?;
    println!("{summary:?}");
    Ok(())
}

/// fio jobs: name and options.
const JOBS: [(&str, &[&str]); 7] = [
    ("randwrite 4k qd32", &["--rw=randwrite", "--bs=4k", "--iodepth=32"]),
    ("randread 4k qd32", &["--rw=randread", "--bs=4k", "--iodepth=32"]),
    ("randwrite 4k qd1", &["--rw=randwrite", "--bs=4k", "--iodepth=1"]),
    ("randread 4k qd1", &["--rw=randread", "--bs=4k", "--iodepth=1"]),
    ("randwrite 64k qd16", &["--rw=randwrite", "--bs=64k", "--iodepth=16"]),
    ("write 1m qd8", &["--rw=write", "--bs=1m", "--iodepth=8"]),
    ("read 1m qd8", &["--rw=read", "--bs=1m", "--iodepth=8"]),
];

/// Requests per second of one job.
fn fio(uri: &str, seconds: usize, job: &[&str]) -> Result<f64, Box<dyn Error>> {
    let output = Command::new("fio")
        .args(["--name=job", "--ioengine=nbd", "--time_based", "--output-format=terse", "--terse-version=3"])
        .arg(format!("--uri={uri}"))
        .arg(format!("--runtime={seconds}"))
        .args(job)
        .stderr(Stdio::null())
        .output()?;
    let text = String::from_utf8(output.stdout)?;
    let line = text.lines().find(|line| line.starts_with("3;")).ok_or("fio gave no result")?;
    let fields: Vec<&str> = line.split(';').collect();
    // Terse version 3: field 7 is the read IOPS, field 48 the write IOPS (counted from 0).
    let number = |at: usize| fields.get(at).and_then(|field| field.parse::<f64>().ok()).unwrap_or(0.0);
    Ok(number(7) + number(48))
}

fn compare(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    let seconds = arguments.number("--seconds", 4)?;
    let size = arguments.number("--size", 256 << 20)?;
    let directory = std::env::temp_dir().join(format!("front-compare-{}", std::process::id()));
    std::fs::create_dir(&directory)?;
    let sockets = [directory.join("front"), directory.join("nbdkit")];
    let mut ours = Command::new(std::env::current_exe()?)
        .args(["serve", "--size", &size.to_string(), "--unix"])
        .arg(&sockets[0])
        .stdout(Stdio::null())
        .spawn()?;
    let theirs = Command::new("nbdkit")
        .args(["-f", "-U"])
        .arg(&sockets[1])
        .args(["memory", &size.to_string()])
        .spawn();
    let result = theirs.map_err(Into::into).and_then(|mut theirs| {
        let result = compare_running(&sockets.each_ref().map(|path| path.as_path()), seconds);
        theirs.kill()?;
        theirs.wait()?;
        result
    });
    ours.kill()?;
    ours.wait()?;
    std::fs::remove_dir_all(&directory)?;
    result
}

fn compare_running(sockets: &[&Path; 2], seconds: usize) -> Result<(), Box<dyn Error>> {
    while sockets.iter().any(|socket| UnixStream::connect(socket).is_err()) {
        std::thread::yield_now();
    }
    let uris = sockets.map(|socket| format!("nbd+unix:///?socket={}", socket.display()));
    for uri in &uris {
        fio(uri, seconds, &["--rw=write", "--bs=1m", "--iodepth=8"])?; // both allocate their memory
    }
    println!("{:20} {:>12} {:>12} {:>7}", "job", "front IOPS", "nbdkit IOPS", "ratio");
    for (name, job) in JOBS {
        let mut rates = [0.0, 0.0];
        for round in 0..4 {
            let which = [0, 1, 1, 0][round]; // so that a drift of the machine hits both alike
            rates[which] += fio(&uris[which], seconds.div_ceil(2), job)? / 2.0;
        }
        println!("{name:20} {:12.0} {:12.0} {:7.2}", rates[0], rates[1], rates[0] / rates[1]);
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let verb = if arguments.is_empty() { String::new() } else { arguments.remove(0) };
    let arguments = Arguments(arguments);
    match verb.as_str() {
        "serve" => serve(&arguments),
        "compare" => compare(&arguments),
        _ => Err("expected: memory serve|compare [options]".into()),
    }
}
