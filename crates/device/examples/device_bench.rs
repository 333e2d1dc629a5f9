//! Prints what the sets of members can do on this machine.
//!
//! ```text
//! cargo run --release -p elastripe-device --example device_bench -- [DIRECTORY] [SECONDS]
//! ```
//! The ring writes to a file of 1 GiB in DIRECTORY (the temporary directory by default),
//! written once beforehand.
#![allow(unsafe_code, reason = "the ring on the pool itself has an unsafe constructor")]

use block::{Completion, DevIndex, DeviceOp, DeviceSet, OpKind, Pool, Random as _, Slot, SplitMix, Stream};
use device::{
    Counting, Existing, Members, Membership as _, MemorySet, NullOptions, NullSet, OpenOptions, UringOptions,
    UringSet, create_file,
};
use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const BLOCK_BYTES: u64 = 4096;
const FILE_BYTES: u64 = 1 << 30;
const MEMORY_BYTES: u64 = 1 << 30;
const SEED: u64 = 1;

/// Which operations a run keeps in flight.
#[derive(Clone, Copy)]
struct Load {
    kind: OpKind,
    depth: usize,
    device_count: u16,
    blocks_per_device: u64,
    sequential: bool,
}

impl Load {
    fn offset_bytes(&self, random: &mut SplitMix, index: u64) -> u64 {
        let block = if self.sequential {
            index / u64::from(self.device_count) % self.blocks_per_device
        } else {
            random.below(self.blocks_per_device)
        };
        block * BLOCK_BYTES
    }
}

/// What a run found.
struct Found {
    ops_per_second: f64,
    /// Of all threads of this process, those of the kernel's that work for its ring included.
    cpu_us_per_op: f64,
}

/// Ticks of processor time that this process has used, a hundred in a second.
fn cpu_ticks() -> u64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = text.rsplit(')').next().unwrap_or_default();
    after_name.split_whitespace().skip(11).take(2).filter_map(|ticks| ticks.parse::<u64>().ok()).sum()
}

/// Keeps `load.depth` operations in flight for `duration`.
fn run(set: &mut dyn DeviceSet, pool: &mut Pool, load: Load, duration: Duration) -> Found {
    let ticks_before = cpu_ticks();
    let mut random = SplitMix::new(SEED);
    let slots: Vec<Slot> = (0..load.depth).map(|_| pool.alloc().expect("a slot for each")).collect();
    let mut idle: Vec<usize> = (0..slots.len()).collect(); // a place in `slots` is a tag
    let (mut ops, mut completions) = (Vec::new(), Vec::<Completion>::new());
    let (mut started, mut ended, begin) = (0u64, 0u64, Instant::now());
    let mut going = true;
    while going || started > ended {
        while going && let Some(place) = idle.pop() {
            let dev = DevIndex::new((started % u64::from(load.device_count)) as u16);
            let offset_bytes = load.offset_bytes(&mut random, started);
            let (tag, stream) = (place as u64, Stream::Data);
            let length_bytes = BLOCK_BYTES;
            ops.push(DeviceOp {
                tag,
                dev,
                kind: load.kind,
                stream,
                class: 0,
                offset_bytes,
                length_bytes,
                slot: Some(slots[place]),
            });
            started += 1;
        }
        set.submit(pool, &ops);
        ops.clear();
        set.wait(1_000_000_000);
        set.poll(pool, &mut completions);
        for completion in completions.drain(..) {
            assert_eq!(completion.result, Ok(()), "a transfer failed");
            idle.push(completion.tag as usize);
            ended += 1;
        }
        going = begin.elapsed() < duration;
    }
    slots.into_iter().for_each(|slot| pool.free(slot));
    Found {
        ops_per_second: ended as f64 / begin.elapsed().as_secs_f64(),
        cpu_us_per_op: (cpu_ticks() - ticks_before) as f64 * 1e4 / ended as f64,
    }
}

fn report(name: &str, found: Found) {
    let Found { ops_per_second, cpu_us_per_op } = found;
    let (nanoseconds, gb) = (1e9 / ops_per_second, ops_per_second * BLOCK_BYTES as f64 / 1e9);
    println!(
        "{name:<46} {:>10.0} k/s {nanoseconds:>9.1} ns {gb:>7.2} GB/s {cpu_us_per_op:>8.3} us of processors",
        ops_per_second / 1e3
    );
}

fn in_memory(duration: Duration) -> Result<(), Box<dyn Error>> {
    let mut pool = Pool::new(BLOCK_BYTES as usize, 256);
    let load = Load {
        kind: OpKind::Write,
        depth: 64,
        device_count: 8,
        blocks_per_device: MEMORY_BYTES / BLOCK_BYTES,
        sequential: false,
    };
    let sizes = vec![MEMORY_BYTES; usize::from(load.device_count)];
    let mut null = NullSet::new(&sizes, NullOptions::default());
    report("null, random write", run(&mut null, &mut pool, load, duration));
    let mut counted = Counting::new(null);
    report("null, random write, counted", run(&mut counted, &mut pool, load, duration));
    let mut memory = MemorySet::new(&sizes)?;
    for dev in 0..load.device_count {
        memory.bytes_mut(DevIndex::new(dev)).fill(1);
    }
    report("memory, random write", run(&mut memory, &mut pool, load, duration));
    report("memory, random read", run(&mut memory, &mut pool, Load { kind: OpKind::Read, ..load }, duration));
    let sequential = Load { sequential: true, ..load };
    report("memory, sequential write", run(&mut memory, &mut pool, sequential, duration));
    report(
        "memory, sequential read",
        run(&mut memory, &mut pool, Load { kind: OpKind::Read, ..sequential }, duration),
    );
    Ok(())
}

/// A file whose blocks are all allocated and written.
fn written_file(path: &Path) -> Result<(), Box<dyn Error>> {
    create_file(path, FILE_BYTES, Existing::Replace)?;
    let mut members = Members::open(&[Some(path.to_owned())], OpenOptions::default())?;
    let part = vec![1; 1 << 20];
    for offset_bytes in (0..FILE_BYTES).step_by(part.len()) {
        members.write_now(DevIndex::new(0), offset_bytes, &part)?;
    }
    Ok(members.flush_now(DevIndex::new(0))?)
}

fn on_a_file(path: PathBuf, duration: Duration) -> Result<(), Box<dyn Error>> {
    written_file(&path)?;
    let random = Load {
        kind: OpKind::Write,
        depth: 64,
        device_count: 1,
        blocks_per_device: FILE_BYTES / BLOCK_BYTES,
        sequential: false,
    };
    for round in 0..3 {
        for name in ["copied", "polled", "shared"] {
            let mut pool = Pool::new(BLOCK_BYTES as usize, 256);
            let members = Members::open(&[Some(path.clone())], OpenOptions::default())?;
            let options = UringOptions { kernel_polls: name == "polled", ..UringOptions::default() };
            let mut set = if name == "shared" {
                // SAFETY: `pool` is dropped after `set`, and `run` waits for all it starts.
                unsafe { UringSet::start_shared(members, &mut pool, options)? }
            } else {
                UringSet::start(members, pool.slot_bytes(), options)?
            };
            if round == 0 {
                set.notes().iter().for_each(|note| println!("note: {note}"));
            }
            for (what, load) in [
                ("random write QD64", random),
                ("random read QD64", Load { kind: OpKind::Read, ..random }),
                ("random write QD1", Load { depth: 1, ..random }),
                ("sequential write, 256 in a batch", Load { sequential: true, depth: 256, ..random }),
                (
                    "sequential read, 256 in a batch",
                    Load { sequential: true, depth: 256, kind: OpKind::Read, ..random },
                ),
            ] {
                report(&format!("uring {name}, {what}"), run(&mut set, &mut pool, load, duration));
            }
        }
    }
    std::fs::remove_file(&path)?;
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args_os().skip(1);
    let directory = arguments.next().map_or_else(std::env::temp_dir, PathBuf::from);
    let seconds = arguments.next().and_then(|text| text.to_str()?.parse().ok()).unwrap_or(1.0);
    let duration = Duration::try_from_secs_f64(seconds)?;
    in_memory(duration)?;
    on_a_file(directory.join("elastripe-device-bench"), duration)
}
