//! Slices that go on in room that all share.

use super::*;
use crate::Stream;

const MIB: u64 = 1 << 20;

/// Of two slices of 4 MiB that share what is behind, 1 MiB each in turn, the second.
fn extent() -> Extent {
    let turns = Turns { first_bytes: 4 * MIB, origin_bytes: 9 * MIB, unit_bytes: MIB, step_bytes: 2 * MIB };
    Extent { origin_bytes: 4 * MIB, length_bytes: 7 * MIB, turns: Some(turns) }
}

/// Notes what it is asked for; completes in the order in which it was told.
#[derive(Default)]
struct Noting {
    bytes: Vec<u8>,
    ops: Vec<DeviceOp>,
    results: Vec<Result<(), IoFault>>,
}

impl DeviceSet for Noting {
    fn submit(&mut self, _pool: &mut Pool, ops: &[DeviceOp]) {
        self.ops.extend(ops);
    }

    fn poll(&mut self, _pool: &mut Pool, completions: &mut Vec<Completion>) {
        for result in std::mem::take(&mut self.results) {
            completions.push(Completion { tag: self.ops.remove(0).tag, result });
        }
    }

    fn wait(&mut self, _timeout_ns: u64) {}

    fn size_bytes(&self, _dev: DevIndex) -> u64 {
        length_of(&self.bytes)
    }

    fn read_now(&mut self, _dev: DevIndex, offset_bytes: u64, into: &mut [u8]) -> Result<(), IoFault> {
        let at = in_memory(offset_bytes);
        let found = self.bytes.get(at..at + into.len()).ok_or(IoFault::Short)?;
        into.copy_from_slice(found);
        Ok(())
    }

    fn write_now(&mut self, _dev: DevIndex, offset_bytes: u64, from: &[u8]) -> Result<(), IoFault> {
        let at = in_memory(offset_bytes);
        self.bytes.get_mut(at..at + from.len()).ok_or(IoFault::Short)?.copy_from_slice(from);
        Ok(())
    }

    fn flush_now(&mut self, _dev: DevIndex) -> Result<(), IoFault> {
        Ok(())
    }
}

#[test]
fn each_byte_has_one_place_and_sizes_follow_the_member() {
    let extent = extent();
    assert_eq!(extent.place(0), (4 * MIB, 4 * MIB));
    assert_eq!(extent.place(4 * MIB - 1), (8 * MIB - 1, 1));
    assert_eq!(extent.place(4 * MIB), (9 * MIB, MIB));
    assert_eq!(extent.place(6 * MIB + 5), (13 * MIB + 5, MIB - 5));
    let sizes = [(3, 0), (6, 2), (8, 4), (9, 4), (10, 5), (11, 5), (12, 6), (15, 7), (99, 7)];
    for (member, slice) in sizes {
        assert_eq!(extent.bytes_within(member * MIB), slice * MIB, "{member} MiB");
    }
}

#[test]
fn transfers_are_cut_where_the_slice_goes_on_elsewhere() {
    let inner = Noting { bytes: vec![0; in_memory(14 * MIB)], ..Noting::default() };
    let mut slice = Slice::new(inner, vec![extent()]);
    let dev = DevIndex::new(0);
    assert_eq!(slice.size_bytes(dev), 7 * MIB);
    let bytes: Vec<u8> = (0..3 * MIB).map(|at| u8::try_from(at / 4096 % 251).expect("small")).collect();
    let from = 4 * MIB - 8192;
    let mut writes = [WriteNow { dev, offset_bytes: from, from: &bytes, result: Err(IoFault::Gone) }];
    slice.write_all_now(&mut writes);
    assert_eq!(writes[0].result, Ok(()));
    for at in (0..3 * MIB).step_by(4096) {
        let place = in_memory(extent().place(from + at).0);
        assert_eq!(slice.inner().bytes[place], bytes[in_memory(at)], "byte {at}");
    }
    let (mut all, mut again) = (vec![1; bytes.len()], vec![2; bytes.len()]);
    let mut reads = [ReadNow { tag: 9, dev, offset_bytes: from, into: &mut all, result: Ok(()) }];
    slice.read_all_now(&mut reads);
    assert_eq!((reads[0].tag, reads[0].result), (9, Ok(())));
    slice.read_now(dev, from, &mut again).expect("within the slice");
    assert!(all == bytes && again == bytes);
}

#[test]
fn a_discard_that_was_cut_ends_once_with_what_counts_most() {
    let mut slice = Slice::new(Noting::default(), vec![extent()]);
    let mut pool = Pool::new(4096, 1);
    let dev = DevIndex::new(0);
    let discard = |tag, offset_bytes, length_bytes| {
        let (kind, stream) = (OpKind::Discard, Stream::Data);
        DeviceOp { tag, dev, kind, stream, class: 0, offset_bytes, length_bytes, slot: None }
    };
    slice.submit(&mut pool, &[discard(1, 3 * MIB, 3 * MIB), discard(2, 0, MIB)]);
    let places: Vec<_> =
        slice.inner().ops.iter().map(|op| (op.offset_bytes / MIB, op.length_bytes)).collect();
    assert_eq!(places, [(7, MIB), (9, MIB), (11, MIB), (4, MIB)]);
    let mut ended = Vec::new();
    slice.inner_mut().results = vec![Err(IoFault::Short), Err(IoFault::Gone)];
    slice.poll(&mut pool, &mut ended);
    assert_eq!(ended, []);
    slice.inner_mut().results = vec![Ok(()), Ok(())];
    slice.poll(&mut pool, &mut ended);
    let gone = Completion { tag: 1, result: Err(IoFault::Gone) };
    assert_eq!(ended, [gone, Completion { tag: 2, result: Ok(()) }]);
}

#[test]
#[should_panic(expected = "crosses the end of a unit")]
fn a_buffer_does_not_go_to_two_places() {
    let mut slice = Slice::new(Noting::default(), vec![extent()]);
    let mut pool = Pool::new(8192, 1);
    let (kind, stream, dev) = (OpKind::Write, Stream::Data, DevIndex::new(0));
    let (offset_bytes, length_bytes) = (5 * MIB - 4096, 8192);
    let op = DeviceOp { tag: 0, dev, kind, stream, class: 0, offset_bytes, length_bytes, slot: None };
    slice.submit(&mut pool, &[op]);
}

#[test]
#[should_panic(expected = "reach beyond the slice")]
fn nothing_reaches_beyond_a_slice() {
    let inner = Noting { bytes: vec![0; in_memory(20 * MIB)], ..Noting::default() };
    let mut slice = Slice::new(inner, vec![extent()]);
    let _ = slice.read_now(DevIndex::new(0), 7 * MIB - 4096, &mut [0; 8192]);
}
