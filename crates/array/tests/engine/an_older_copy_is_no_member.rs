//! A member that was put back from a copy of before (a snapshot rolled back, an image of last week) is out of
//! service like one that was away: what it holds is not what the others say.

use crate::common::{assemble, create_options, fresh, fresh_with_logs, options, read, superblocks, write};
use array::{Array, AssembleError, EngineOptions, SyncPolicy, arrange};
use block::{DevIndex, Durability};
use device::MemorySet;
use format::{Consistency, MemberState, SchemeKind};

const CHUNK: u64 = 4096;
const CHUNKS: u64 = 64;

fn fill(array: &mut Array<MemorySet>, byte: u8) {
    for chunk in 0..CHUNKS {
        write(array, chunk * CHUNK, &[byte; CHUNK as usize], Durability::Volatile).unwrap();
    }
}

/// Content of a device, of before and now.
struct Copies {
    devices: MemorySet,
    before: Vec<Vec<u8>>,
    count: usize,
}

/// An array that was filled, stopped, started, filled with something else, and stopped or killed.
fn gone_on(scheme: SchemeKind, consistency: Consistency, stopped: bool) -> Copies {
    let mut create = create_options(scheme, 4, 1);
    create.consistency = consistency;
    let count = 5 + usize::from(scheme.has_log());
    let mut array = assemble(fresh(&create, 12, 24), count, options()).0;
    fill(&mut array, 1);
    array.stop().unwrap();
    let mut devices = array.into_devices();
    let all = (0u16..).map(DevIndex::new).take(count);
    let before = all.map(|dev| devices.bytes_mut(dev).to_vec()).collect();
    let mut array = assemble(devices, count, options()).0;
    fill(&mut array, 2);
    array.run(|engine, tag| engine.flush(tag)).unwrap();
    if stopped {
        array.stop().unwrap();
    }
    Copies { devices: array.into_devices(), before, count }
}

impl Copies {
    fn put_back(&mut self, dev: u16) {
        self.devices.bytes_mut(DevIndex::new(dev)).copy_from_slice(&self.before[usize::from(dev)]);
    }
}

#[test]
fn an_older_copy_is_out_of_service_and_nothing_is_read_of_it() {
    for scheme in [SchemeKind::Eplog, SchemeKind::Raid, SchemeKind::ParityLog, SchemeKind::Elastic] {
        for (stopped, dev) in [(true, 0), (false, 2), (true, 4)] {
            let mut copies = gone_on(scheme, Consistency::Journal, stopped);
            copies.put_back(dev);
            let found = superblocks(&mut copies.devices, copies.count);
            let arrangement = arrange(&found).unwrap();
            assert_eq!(arrangement.stale, [usize::from(dev)], "{scheme}");
            let mut array = Array::assemble(copies.devices, &arrangement, 77, options()).unwrap().0;
            assert_eq!(array.engine().health().state(DevIndex::new(dev)), MemberState::Failed);
            for chunk in 0..CHUNKS {
                let bytes = read(&mut array, chunk * CHUNK, CHUNK).unwrap();
                assert!(bytes.iter().all(|&byte| byte == 2), "{scheme}: chunk {chunk}");
            }
        }
    }
}

/// Nothing tells there which stripes were being written: as with a member that is missing.
#[test]
fn without_a_journal_a_start_after_a_kill_is_refused() {
    let mut copies = gone_on(SchemeKind::Raid, Consistency::Resync, false);
    copies.put_back(0);
    let found = superblocks(&mut copies.devices, copies.count);
    let refused = Array::assemble(copies.devices, &arrange(&found).unwrap(), 77, options());
    assert_eq!(refused.map(drop), Err(AssembleError::DirtyDegraded));
}

#[test]
fn more_older_copies_than_the_code_bears_are_refused() {
    let mut copies = gone_on(SchemeKind::Eplog, Consistency::Journal, true);
    copies.put_back(1);
    copies.put_back(3);
    let found = superblocks(&mut copies.devices, copies.count);
    assert!(matches!(arrange(&found), Err(AssembleError::TooManyMissing { missing: 2, .. })));
    // All of them together are the array of before.
    (0..copies.count).for_each(|dev| copies.put_back(u16::try_from(dev).unwrap()));
    let mut array = assemble(copies.devices, copies.count, options()).0;
    assert!(read(&mut array, 0, CHUNK).unwrap().iter().all(|&byte| byte == 1));
}

/// Frames are on m + 1 log devices alone, all of which are put back: more than the code tolerates, and yet it
/// is noticed, since superblocks of the others say from time to time what is durable, under load, too.
#[test]
fn log_devices_put_back_together_are_noticed() {
    const PAUSE_NS: u64 = 1_000_000;
    let create = create_options(SchemeKind::Eplog, 4, 1);
    let (logs, count) = (5u16..7, 7);
    let mut devices = fresh_with_logs(&create, 12, 24, 2);
    let options = EngineOptions { confirm_idle_ns: Some(PAUSE_NS), sync: SyncPolicy::Always, ..options() };
    let arrangement = arrange(&superblocks(&mut devices, count)).unwrap();
    let mut array = Array::assemble(devices, &arrangement, 9, options).unwrap().0;
    let mut copies = Vec::new();
    for turn in 0..60 {
        // A request in each half of a pause: it is never idle for long.
        array.engine().set_now(turn * PAUSE_NS / 2);
        write(&mut array, turn % 4 * CHUNK, &[turn as u8; CHUNK as usize], Durability::Durable).unwrap();
        if turn == 30 {
            copies = logs.clone().map(|dev| array.devices().bytes_mut(DevIndex::new(dev)).to_vec()).collect();
        }
    }
    assert_eq!(array.engine().stats().checkpoints, 0, "no checkpoint tells of it");
    let mut devices = array.into_devices();
    for (dev, copy) in logs.zip(copies) {
        devices.bytes_mut(DevIndex::new(dev)).copy_from_slice(&copy);
    }
    let arrangement = arrange(&superblocks(&mut devices, count)).unwrap();
    let refused = Array::assemble(devices, &arrangement, 10, options).map(drop).unwrap_err();
    assert!(matches!(refused, AssembleError::StateLost(_)), "{refused}");
}
