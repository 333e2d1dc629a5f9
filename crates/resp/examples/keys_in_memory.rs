//! A server of the Redis protocol over plain memory: for clients' tests, and for what the protocol itself
//! costs beside
//! `redis-server`. It forgets everything.
//!
//! ```text
//! keys_in_memory [--unix PATH] [--tcp HOST:PORT] [--password WORD] [--may-shut-down]
//! ```
#![forbid(unsafe_code)]

use front::{Flow, Guard, Interest};
use resp::memory::MemoryKeys;
use resp::{Fault, Hooks, Limits, Password, Server, Settings};
use std::error::Error;
use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::path::Path;

struct StopOnSignal(UnixStream);

impl Hooks<MemoryKeys> for StopOnSignal {
    fn extra_fds<'a>(&'a self, out: &mut Vec<(BorrowedFd<'a>, Interest)>) {
        out.push((self.0.as_fd(), Interest::Read));
    }

    fn on_ready(&mut self, _: RawFd, _: &mut MemoryKeys) -> Flow {
        let _ = self.0.read(&mut [0; 16]);
        Flow::Stop
    }

    fn on_fault(&mut self, peer: &str, fault: &Fault) {
        eprintln!("{peer}: {fault}");
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let value = |name: &str| {
        let at = arguments.iter().position(|argument| argument == name)?;
        arguments.get(at + 1)
    };
    let settings = Settings {
        password: value("--password").and_then(|word| Password::new(word.as_bytes())),
        may_shut_down: arguments.iter().any(|argument| argument == "--may-shut-down"),
        name: "memory".to_owned(),
        ..Settings::default()
    };
    let mut server = Server::new(Limits::default(), settings);
    if let Some(path) = value("--unix") {
        server.listen_unix(Path::new(path))?;
        println!("unix:{path}");
    }
    if let Some(address) = value("--tcp") {
        println!("tcp:{}", server.listen_tcp(address, Guard::default())?);
    }
    let (signals, wake) = UnixStream::pair()?;
    for signal in [signal_hook::consts::SIGTERM, signal_hook::consts::SIGINT] {
        signal_hook::low_level::pipe::register(signal, wake.try_clone()?)?;
    }
    let summary = server.run(&mut MemoryKeys::default(), &mut StopOnSignal(signals))?;
    println!("{summary:?}");
    Ok(())
}
