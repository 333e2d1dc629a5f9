//! What the ways to a volume cost: an array on devices that move nothing, served over NBD and over
//! vhost-user-blk at once, and random writes over both in turn, so that a drift of the machine hits both
//! alike.
//!
//! ```text
//! fronts compare [--seconds N] [--rounds N] [--depth N]     needs fio
//! fronts serve DIRECTORY [--devices null|memory] [--threads N [--sockets shards|apart]]
//! fronts write DIRECTORY [--seconds N] [--depth N]          vhost-user-blk alone, of a server that runs
//! ```
//! Memory is what `nbd-ratio.sh` sets beside nbdkit's; with several threads there are as many shards, and
//! their clients are on these threads, or, apart, on another.

use array::{
    Array, CreateOptions, DiscardPolicy, EngineOptions, LAYOUT_OF_NEW, NewArray, arrange, create, plan_config,
};
use blkio::{Blkio, Completion, ReqFlags};
use block::{DevIndex, DeviceSet, Geometry, Interleave};
use device::{MemorySet, NullOptions, NullSet};
use format::{ArrayUuid, CodeKind, Consistency, SchemeKind, Superblock};
use front::{
    Bell, Hooks, NoHooks, Places, Protocol, RemoteVolume, Server, ServerOptions, Shape, Size, Usher, Volume,
};
use node::running::{Room, Seated};
use node::volume::{Clock, ServedShard, Use};
use std::error::Error;
use std::mem::MaybeUninit;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

type Outcome<T> = Result<T, Box<dyn Error>>;

const BLOCK: usize = 4096;
const SIZE_BYTES: u64 = 512 << 20;

const MAIN_BYTES: u64 = 192 << 20;
const LOG_BYTES: u64 = 256 << 20;
/// Six and two devices, and two log devices, of one of so many shards.
fn sizes(shards: u64) -> [u64; 10] {
    let mut sizes = [MAIN_BYTES / shards; 10];
    (sizes[8], sizes[9]) = (LOG_BYTES / shards, LOG_BYTES / shards);
    sizes
}

/// Members in the memory of this process; no page fault falls into what is measured.
fn memory(shards: u64) -> Outcome<MemorySet> {
    let mut devices = MemorySet::new(&sizes(shards))?;
    (0..10).for_each(|dev| devices.bytes_mut(DevIndex::new(dev)).fill(0));
    Ok(devices)
}

/// An array of 6+2 devices and two log devices, one of so many shards.
fn volume<D: DeviceSet>(mut devices: D, name: &str, shards: u64) -> Outcome<ServedShard<D>> {
    let options = CreateOptions {
        scheme: SchemeKind::Eplog,
        code: CodeKind::Cauchy,
        layout: LAYOUT_OF_NEW,
        consistency: Consistency::Journal,
        geometry: Geometry::new(6, 2, BLOCK as u64)?,
        reserve_permille: 150,
        unit_rows: None,
    };
    let config = plan_config(&options, MAIN_BYTES / shards, LOG_BYTES / shards, 2)?;
    let new = NewArray { uuid: ArrayUuid::new([7; 16]), name: name.into(), nonce: 1, created_unix_s: 0 };
    create(&mut devices, config, &new)?;
    let mut found = Vec::new();
    for dev in (0..10).map(DevIndex::new) {
        found.extend(Superblock::read_newest(|offset| {
            let mut block = vec![0; BLOCK];
            devices.read_now(dev, offset, &mut block).ok().map(|()| block)
        }));
    }
    // As `serve` does it on files: room is not given back that the array will write again.
    let discard = DiscardPolicy { old_bytes: None, log_bytes: None, ..DiscardPolicy::default() };
    let options = EngineOptions { discard, ..EngineOptions::default() };
    let (array, _) = Array::assemble(devices, &arrange(&found)?, 2, options)?;
    Ok(ServedShard::new(array, Clock::start(), None, Use::ReadWrite))
}

fn serve(directory: &Path, arguments: &[String]) -> Outcome<()> {
    let mut server = Server::new(ServerOptions::default());
    server.listen_unix(Protocol::VhostUserBlk, &directory.join("disk"))?;
    server.listen_unix(Protocol::Nbd, &directory.join("nbd"))?;
    match (text(arguments, "--devices").unwrap_or("null"), number(arguments, "--threads", 1)?) {
        ("null", 1) => {
            let options = NullOptions { zero_reads: true, keep_metadata: true };
            server.run(&mut volume(NullSet::new(&sizes(1), options), "null", 1)?, &mut NoHooks)?;
        }
        ("memory", 1) => _ = server.run(&mut volume(memory(1)?, "memory", 1)?, &mut NoHooks)?,
        ("memory", threads) => match text(arguments, "--sockets").unwrap_or("shards") {
            "shards" => beside_shards(threads, &server)?,
            "apart" => _ = server.run(&mut on_threads(threads)?, &mut NoHooks)?,
            other => return Err(format!("--sockets: found {other:?}, expected shards or apart").into()),
        },
        (other, _) => {
            return Err(
                format!("--devices: found {other:?}, expected null or memory (threads: memory)").into()
            );
        }
    }
    Ok(())
}

/// So many shards, each for a thread of its own: `create --shards N`, `serve --threads N`; and what the
/// volume is like that they are together.
fn rooms(threads: u64) -> Outcome<(Vec<Room<MemorySet>>, Shape, Arc<Size>)> {
    let shards = (0..threads).map(|_| volume(memory(threads)?, "memory", threads));
    let shards = shards.collect::<Outcome<Vec<_>>>()?;
    let count = u16::try_from(threads)?;
    let unit_bytes = 1 << 20;
    let shard_bytes = shards[0].size_bytes() / unit_bytes * unit_bytes;
    let map = Interleave::new(count, unit_bytes, shard_bytes);
    let untorn_bytes = shards[0].untorn_bytes();
    let shape = Shape { map, chunk_bytes: BLOCK, untorn_bytes, read_only: false };
    let room =
        |(number, shard)| Ok(Room::new(vec![shard], (number, usize::from(count)), Arc::new(Bell::new()?))?);
    let rooms = shards.into_iter().enumerate().map(room).collect::<Outcome<_>>()?;
    Ok((rooms, shape, Arc::new(Size::new(map.volume_bytes()))))
}

/// Clients on the threads of the shards: `serve --socket-threads shards`.
fn beside_shards(threads: u64, server: &Server) -> Outcome<()> {
    let (mut rooms, shape, size) = rooms(threads)?;
    let places = Arc::new(Places::new(rooms.len()));
    let bells: Vec<Arc<Bell>> = rooms.iter().map(|room| Arc::clone(room.bell())).collect();
    let mut remotes = Vec::new();
    for bell in &bells {
        let mut remote = RemoteVolume::beside_shards(shape, Arc::clone(&size), rooms.len(), Arc::clone(bell));
        for (number, room) in rooms.iter_mut().enumerate() {
            room.open(remote.connect([number], &bells[number]));
        }
        remotes.push(remote);
    }
    let threads = rooms.into_iter().zip(remotes).enumerate().map(|(thread, (mut room, remote))| {
        let (mut server, usher) = (server.share()?, Usher::new(Arc::clone(&places), thread));
        Ok(std::thread::spawn(move || {
            let mut volume = Seated::new(&mut room, remote, Arc::default()).expect("files can be opened");
            server.run(&mut volume, &mut Polite(usher)).expect("events can be waited for");
        }))
    });
    let threads = threads.collect::<Outcome<Vec<_>>>()?;
    threads.into_iter().for_each(|thread| thread.join().expect("a thread ended in a bug"));
    Ok(())
}

/// Leaves a client to a thread that has fewer, as `serve` does.
struct Polite(Usher);

impl<V: Volume> Hooks<V> for Polite {
    fn may_accept(&mut self) -> bool {
        self.0.may_accept()
    }

    fn on_clients(&mut self, count: usize) {
        self.0.note(count);
    }
}

/// Clients on a thread of their own: `serve --socket-threads 1`.
fn on_threads(threads: u64) -> Outcome<RemoteVolume> {
    let (rooms, shape, size) = rooms(threads)?;
    let mut remote = RemoteVolume::new(shape, size)?;
    for (number, mut room) in rooms.into_iter().enumerate() {
        let bell = Arc::clone(room.bell());
        room.open(remote.connect([number], &bell));
        std::thread::spawn(move || {
            loop {
                room.drive();
                match room.idle_for() {
                    Some(0) => {}
                    idle_ns => room.sleep(idle_ns).expect("events can be waited for"),
                }
            }
        });
    }
    Ok(remote)
}

/// Random writes over vhost-user-blk, so many per second.
fn write_disk(path: &Path, seconds: u64, depth: usize) -> Outcome<f64> {
    let mut blkio = Blkio::new("virtio-blk-vhost-user")?;
    blkio.set_str("path", path.to_str().ok_or("a path that is no text")?)?;
    blkio.connect()?;
    let blocks = (blkio.get_u64("capacity")? / BLOCK as u64).min(SIZE_BYTES / BLOCK as u64);
    let mut queue = blkio.start()?.queues.remove(0);
    let region = blkio.alloc_mem_region(depth * BLOCK)?;
    blkio.map_mem_region(&region)?;
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut offset = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % blocks * BLOCK as u64
    };
    let address = |place: usize| (region.addr + place * BLOCK) as *const u8;
    let (begun, limit) = (Instant::now(), Duration::from_secs(seconds));
    let mut count = 0u64;
    (0..depth).for_each(|place| queue.write(offset(), address(place), BLOCK, place, ReqFlags::empty()));
    while begun.elapsed() < limit {
        let mut ends = [const { MaybeUninit::<Completion>::uninit() }; 64];
        let some = queue.do_io(&mut ends, 1, None, None)?;
        for end in &ends[..some] {
            // JUSTIFICATION: the client hands ends out in no other way.
            // SAFETY: it has written as many as it says.
            let end = unsafe { end.assume_init_ref() };
            if end.ret != 0 {
                return Err(format!("a write ended with {}", end.ret).into());
            }
            queue.write(offset(), address(end.user_data), BLOCK, end.user_data, ReqFlags::empty());
        }
        count += some as u64;
    }
    Ok(count as f64 / begun.elapsed().as_secs_f64())
}

/// The same over NBD, by fio.
fn write_nbd(path: &Path, seconds: u64, depth: usize) -> Outcome<f64> {
    let output = Command::new("fio")
        .args([
            "--thread",
            "--name=job",
            "--ioengine=nbd",
            "--rw=randwrite",
            "--bs=4k",
            "--output-format=terse",
        ])
        .args(["--zero_buffers", "--time_based"])
        .arg(format!("--uri=nbd+unix:///?socket={}", path.display()))
        .args([format!("--size={SIZE_BYTES}"), format!("--iodepth={depth}"), format!("--runtime={seconds}")])
        .stderr(Stdio::null())
        .output()?;
    let text = String::from_utf8(output.stdout)?;
    let line = text.lines().find(|line| line.starts_with("3;")).ok_or("fio gave no result")?;
    Ok(line.split(';').nth(48).ok_or("a short line of fio")?.parse()?)
}

fn median(rates: &mut [f64]) -> f64 {
    rates.sort_by(f64::total_cmp);
    rates[rates.len() / 2]
}

/// The value of an option.
fn text<'a>(arguments: &'a [String], name: &str) -> Option<&'a str> {
    let at = arguments.iter().position(|argument| argument == name)?;
    arguments.get(at + 1).map(String::as_str)
}

/// The value of an option that is a number.
fn number(arguments: &[String], name: &str, default: u64) -> Outcome<u64> {
    Ok(text(arguments, name).map(str::parse).transpose()?.unwrap_or(default))
}

fn write(directory: &Path, arguments: &[String]) -> Outcome<()> {
    let depth = usize::try_from(number(arguments, "--depth", 32)?)?;
    let rate = write_disk(&directory.join("disk"), number(arguments, "--seconds", 3)?, depth)?;
    println!("{rate:.0}");
    Ok(())
}

fn compare(arguments: &[String]) -> Outcome<()> {
    let (seconds, rounds) = (number(arguments, "--seconds", 3)?, number(arguments, "--rounds", 5)?);
    let depth = usize::try_from(number(arguments, "--depth", 32)?)?;
    let directory = std::env::temp_dir().join(format!("fronts-{}", std::process::id()));
    std::fs::create_dir(&directory)?;
    let mut server = Command::new(std::env::current_exe()?).arg("serve").arg(&directory).spawn()?;
    let (disk, nbd) = (directory.join("disk"), directory.join("nbd"));
    while UnixStream::connect(&nbd).is_err() {
        std::thread::sleep(Duration::from_millis(10));
    }
    let (mut by_disk, mut by_nbd) = (Vec::new(), Vec::new());
    println!(
        "4 KiB random writes/s, depth {depth}, eplog 6+2 on null devices\n{:>16} {:>12}",
        "vhost-user-blk", "NBD"
    );
    for _ in 0..rounds {
        let (a, b) = (write_disk(&disk, seconds, depth)?, write_nbd(&nbd, seconds, depth)?);
        println!("{a:16.0} {b:12.0}");
        by_disk.push(a);
        by_nbd.push(b);
    }
    let (a, b) = (median(&mut by_disk), median(&mut by_nbd));
    println!("{a:16.0} {b:12.0}   medians, ratio {:.2}", a / b);
    server.kill()?;
    server.wait()?;
    std::fs::remove_dir_all(&directory)?;
    Ok(())
}

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match (arguments.first().map(String::as_str), arguments.get(1)) {
        (Some("serve"), Some(directory)) => serve(Path::new(directory), &arguments),
        (Some("write"), Some(directory)) => write(Path::new(directory), &arguments),
        (Some("compare"), _) => compare(&arguments),
        _ => Err("expected: fronts compare [--seconds N] [--rounds N] [--depth N] | \
                  serve DIRECTORY [--devices null|memory] [--threads N] | \
                  write DIRECTORY [--seconds N] [--depth N]"
            .into()),
    }
}
