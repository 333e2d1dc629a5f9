//! Times and counts of simulated members.
#![allow(clippy::unwrap_used, reason = "tests")]

use super::*;
use flash::{DeviceConfig, HddOptions, Separation, SsdConfig, StreamOptions, Timing};

const PROGRAM_NS: u64 = 200_000;
const READ_NS: u64 = 25_000;

fn ssd(page_bytes: u32) -> Device {
    let timing = Timing {
        read_ns: [READ_NS; 2],
        program_ns: [PROGRAM_NS; 2],
        erase_ns: 1_500_000,
        transfer_ns: 0,
        link_ns: 0,
        command_ns: 0,
        buffering: flash::Buffering::None,
    };
    let config = SsdConfig::counting(1024, 1.5, 64, page_bytes).unwrap();
    Device::new(DeviceConfig::Ssd(Box::new(SsdConfig { timing: Some(timing), ..config }))).unwrap()
}

fn disk() -> Device {
    let options =
        HddOptions { pages: 1024, page_bytes: 4096, sequential: [4.096e6; 2], random: [2.048e6; 2] };
    Device::new(DeviceConfig::Hdd(options)).unwrap()
}

fn op(pool: &mut Pool, tag: u64, dev: u16, kind: OpKind, block: u64) -> DeviceOp {
    DeviceOp {
        tag,
        dev: DevIndex::new(dev),
        kind,
        stream: Stream::Data,
        class: 0,
        offset_bytes: block * 4096,
        length_bytes: if kind == OpKind::Flush { 0 } else { 4096 },
        slot: pool.alloc(),
    }
}

/// Tags in the order of completion, with their times.
fn run(set: &mut SimulatedSet, pool: &mut Pool, ops: &[DeviceOp]) -> Vec<(u64, u64)> {
    set.submit(pool, ops);
    let (mut ends, mut done) = (Vec::new(), Vec::new());
    while ends.len() < ops.len() {
        set.poll(pool, &mut done);
        ends.extend(done.drain(..).map(|completion| {
            completion.result.unwrap();
            (completion.tag, set.now_ns())
        }));
        if ends.len() < ops.len() {
            set.wait(1_000_000_000);
        }
    }
    ends
}

#[test]
fn operations_end_in_virtual_time_in_order_and_the_clock_stands_still_otherwise() {
    let mut pool = Pool::new(4096, 16);
    let mut set =
        SimulatedSet::new(vec![(1 << 20, ssd(4096)), (1 << 20, ssd(4096)), (1 << 20, disk())], 1000).unwrap();
    assert_eq!(set.now_ns(), 1000);
    let ops = [
        op(&mut pool, 1, 0, OpKind::Write, 0),
        op(&mut pool, 2, 0, OpKind::Write, 1), // one plane: after the first
        op(&mut pool, 3, 1, OpKind::Write, 7),
        op(&mut pool, 4, 2, OpKind::Write, 0), // sequential: 1 ms
        op(&mut pool, 5, 2, OpKind::Write, 9), // random: 2 ms more
    ];
    let ends = run(&mut set, &mut pool, &ops);
    let wanted = [
        (1, 1000 + PROGRAM_NS),
        (3, 1000 + PROGRAM_NS),
        (2, 1000 + 2 * PROGRAM_NS),
        (4, 1_001_000),
        (5, 3_001_000),
    ];
    assert_eq!(ends, wanted);
    let counters = |dev| set.device(DevIndex::new(dev)).unwrap().counters();
    assert_eq!([0, 1, 2].map(|dev| counters(dev).host_pages_written), [2, 1, 2]);
}

#[test]
fn waiting_with_nothing_in_flight_lets_time_pass() {
    let mut pool = Pool::new(4096, 4);
    let mut set = SimulatedSet::new(vec![(1 << 20, ssd(4096))], 0).unwrap();
    set.wait(500);
    assert_eq!(set.now_ns(), 500);
    let write = op(&mut pool, 1, 0, OpKind::Write, 3);
    set.submit(&mut pool, &[write]);
    set.wait(400);
    assert_eq!(set.now_ns(), 900, "the timeout comes first");
    set.wait(1_000_000);
    assert_eq!(set.now_ns(), 500 + PROGRAM_NS, "the completion comes first");
    let mut done = Vec::new();
    set.poll(&mut pool, &mut done);
    assert_eq!(done.len(), 1);
}

#[test]
fn a_part_of_a_page_reads_it_first_and_trims_take_whole_pages() {
    let mut pool = Pool::new(4096, 8);
    let mut set = SimulatedSet::new(vec![(4 << 20, ssd(16_384))], 0).unwrap();
    let first = op(&mut pool, 1, 0, OpKind::Write, 1);
    run(&mut set, &mut pool, &[first]);
    assert_eq!(set.now_ns(), PROGRAM_NS, "nothing to read yet");
    let second = op(&mut pool, 2, 0, OpKind::Write, 2);
    run(&mut set, &mut pool, &[second]);
    assert_eq!(set.now_ns(), 2 * PROGRAM_NS + READ_NS);
    let trim = |block: u64, length_bytes| DeviceOp {
        tag: 3,
        dev: DevIndex::new(0),
        kind: OpKind::Discard,
        stream: Stream::Data,
        class: 0,
        offset_bytes: block * 4096,
        length_bytes,
        slot: None,
    };
    run(&mut set, &mut pool, &[trim(0, 12_288)]);
    assert_eq!(set.device(DevIndex::new(0)).unwrap().counters().host_pages_trimmed, 0);
    run(&mut set, &mut pool, &[trim(0, 16_384)]);
    assert_eq!(set.device(DevIndex::new(0)).unwrap().counters().host_pages_trimmed, 1);
}

/// Chunks that are written once, and chunks of another class between them that are written over and over:
/// kept apart, the SSD finds blocks of which nothing is left.
#[test]
fn classes_of_data_have_streams_of_their_own() {
    let copies = |separation| {
        let streams = StreamOptions { separation, limit: 3, ..StreamOptions::default() };
        let config = SsdConfig { streams, ..SsdConfig::counting(1024, 1.5, 64, 4096).unwrap() };
        let ssd = Device::new(DeviceConfig::Ssd(Box::new(config))).unwrap();
        let mut set = SimulatedSet::new(vec![(4 << 20, ssd)], 0).unwrap();
        let mut pool = Pool::new(4096, 1);
        let cold = op(&mut pool, 1, 0, OpKind::Write, 0);
        for i in 0..900u64 {
            let cold = DeviceOp { offset_bytes: i * 4096, ..cold };
            let hot = DeviceOp { class: 1, offset_bytes: (900 + i % 16) * 4096, ..cold };
            set.submit(&mut pool, &[cold, hot]);
        }
        let counters = set.device(DevIndex::new(0)).unwrap().counters();
        assert_eq!(counters.host_pages_written, 1800);
        assert!(counters.gc_operations > 0, "{separation:?}");
        counters.page_copies
    };
    assert_eq!([Separation::Class, Separation::All].map(copies), [0, 0]);
    assert!([Separation::None, Separation::Parity].map(copies).iter().all(|&copies| copies > 100));
}

#[test]
fn what_the_synchronous_calls_write_is_kept_and_takes_its_time() {
    let mut set = SimulatedSet::new(vec![(1 << 20, ssd(4096))], 0).unwrap();
    let dev = DevIndex::new(0);
    set.write_now(dev, 8192, &[7; 4096]).unwrap();
    assert_eq!(set.now_ns(), PROGRAM_NS);
    let mut back = [0; 4096];
    set.read_now(dev, 8192, &mut back).unwrap();
    assert_eq!((back, set.now_ns()), ([7; 4096], PROGRAM_NS + READ_NS));
    set.flush_now(dev).unwrap();
    set.fail(dev);
    assert_eq!(set.flush_now(dev), Err(IoFault::Gone));
    assert_eq!(set.read_now(dev, 0, &mut back), Err(IoFault::Gone));
}

#[test]
fn members_larger_than_their_device_are_refused() {
    let refused = SimulatedSet::new(vec![(1 << 20, ssd(4096)), (5 << 20, ssd(4096))], 0).err().unwrap();
    let text = refused.to_string();
    assert!(text.starts_with("simulated device 1: found 5242880 bytes"), "{text}");
}
