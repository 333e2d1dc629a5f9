//! One suite for every set of members: what [`block::DeviceSet`] promises, checked against a plain model.

use block::{
    Completion, DevIndex, DeviceOp, DeviceSet, IoFault, OpKind, Pool, Random as _, Slot, SplitMix, Stream,
};
use std::collections::HashMap;

pub const SLOT_BYTES: usize = 16384;
pub const BLOCK: u64 = 4096;
/// Members 0 and 1 have this size, member 2 is absent, member 3 has it too and is there to be failed.
pub const SIZE_BYTES: u64 = 4 << 20;
pub const SIZES: [u64; 4] = [SIZE_BYTES, SIZE_BYTES, 0, SIZE_BYTES];
const SLOT_COUNT: usize = 1024;

/// Whether a set keeps what is written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Keeps {
    Everything,
    Metadata,
}

/// A pool whose slots do not lie in the order of their numbers.
pub fn pool() -> Pool {
    let mut pool = Pool::new(SLOT_BYTES, SLOT_COUNT);
    let slots: Vec<Slot> = std::iter::from_fn(|| pool.alloc()).collect();
    slots.windows(2).for_each(|two| pool.swap(two[0], two[1]));
    slots.into_iter().rev().for_each(|slot| pool.free(slot));
    pool
}

pub fn dev(index: u16) -> DevIndex {
    DevIndex::new(index)
}

pub fn op(
    tag: u64,
    kind: OpKind,
    dev: DevIndex,
    offset_bytes: u64,
    length_bytes: u64,
    slot: Option<Slot>,
) -> DeviceOp {
    DeviceOp { tag, dev, kind, stream: Stream::Metadata, class: 0, offset_bytes, length_bytes, slot }
}

/// Submits a batch and waits until every operation has completed exactly once.
pub fn run(set: &mut dyn DeviceSet, pool: &mut Pool, ops: &[DeviceOp]) -> HashMap<u64, Result<(), IoFault>> {
    set.submit(pool, ops);
    let mut completions: Vec<Completion> = Vec::new();
    while completions.len() < ops.len() {
        set.wait(1_000_000_000);
        set.poll(pool, &mut completions);
    }
    let results: HashMap<_, _> =
        completions.iter().map(|completion| (completion.tag, completion.result)).collect();
    assert_eq!(completions.len(), ops.len(), "one completion each");
    assert!(ops.iter().all(|op| results.contains_key(&op.tag)), "a completion with the tag of each");
    results
}

fn fill(bytes: &mut [u8], value: u64) {
    bytes
        .chunks_exact_mut(8)
        .zip(value..)
        .for_each(|(word, value)| word.copy_from_slice(&value.to_le_bytes()));
}

/// The whole suite; `fail` breaks member 3 of the set.
pub fn conforms<D: DeviceSet>(set: &mut D, pool: &mut Pool, keeps: Keeps, fail: impl Fn(&mut D, DevIndex)) {
    assert_eq!([0, 1, 2, 3, 4].map(|i| set.size_bytes(dev(i))), [SIZE_BYTES, SIZE_BYTES, 0, SIZE_BYTES, 0]);
    fresh_members_are_zero(set);
    synchronous_and_batched_agree(set, pool);
    random_batches_match_the_model(set, pool, 0x5eed_0001);
    neighbours_in_a_batch_keep_their_own_bytes(set, pool);
    a_batch_larger_than_any_queue(set, pool);
    a_discard_leaves_the_neighbours(set, pool);
    beyond_the_end_is_short(set, pool);
    an_absent_member_is_gone(set, pool);
    waiting_for_nothing_returns(set, pool);
    if keeps == Keeps::Everything {
        every_stream_is_kept(set, pool);
    }
    fail(set, dev(3));
    a_failed_member_is_gone(set, pool);
}

fn fresh_members_are_zero(set: &mut dyn DeviceSet) {
    let mut bytes = vec![1; 65536];
    set.read_now(dev(1), SIZE_BYTES - 65536, &mut bytes).expect("in range");
    assert!(bytes.iter().all(|&byte| byte == 0));
}

fn synchronous_and_batched_agree(set: &mut dyn DeviceSet, pool: &mut Pool) {
    let slot = pool.alloc().expect("free");
    let mut bytes = vec![0; 8192];
    fill(&mut bytes, 42);
    set.write_now(dev(0), 12288, &bytes).expect("in range");
    set.flush_now(dev(0)).expect("present");
    let result = run(set, pool, &[op(7, OpKind::Read, dev(0), 12288, 8192, Some(slot))]);
    assert_eq!(result[&7], Ok(()));
    assert_eq!(pool.bytes(slot)[..8192], bytes);
    fill(pool.bytes_mut(slot), 77);
    run(set, pool, &[op(8, OpKind::Write, dev(0), 12288, 8192, Some(slot))]);
    set.read_now(dev(0), 12288, &mut bytes).expect("in range");
    assert_eq!(pool.bytes(slot)[..8192], bytes);
    pool.free(slot);
}

/// Batches of writes, then of reads, never two of one batch on the same block.
fn random_batches_match_the_model(set: &mut dyn DeviceSet, pool: &mut Pool, seed: u64) {
    println!("seed {seed:#x}");
    let mut random = SplitMix::new(seed);
    let mut model = vec![vec![0u8; SIZE_BYTES as usize]; 2];
    for (index, content) in (0..).zip(&model) {
        set.write_now(dev(index), 0, content).expect("in range");
    }
    let slots: Vec<_> = (0..128).map(|_| pool.alloc().expect("free")).collect();
    for round in 0..60 {
        let ops = random_ops(&mut random, &slots);
        for op in &ops {
            let slot = op.slot.expect("a transfer");
            fill(pool.bytes_mut(slot), random.word());
            if op.kind == OpKind::Write {
                model[op.dev.index()][op.offset_bytes as usize..][..op.length_bytes as usize]
                    .copy_from_slice(&pool.bytes(slot)[..op.length_bytes as usize]);
            }
        }
        let results = run(set, pool, &ops);
        assert!(results.values().all(Result::is_ok), "round {round}: {results:?}");
        for op in ops.iter().filter(|op| op.kind == OpKind::Read) {
            let expected = &model[op.dev.index()][op.offset_bytes as usize..][..op.length_bytes as usize];
            let found = &pool.bytes(op.slot.expect("a transfer"))[..expected.len()];
            assert!(found == expected, "round {round}: {op:?}");
        }
    }
    for (index, content) in (0..).zip(&model) {
        let mut bytes = vec![0; content.len()];
        set.read_now(dev(index), 0, &mut bytes).expect("in range");
        assert!(&bytes == content, "member {index} at the end");
    }
    slots.into_iter().for_each(|slot| pool.free(slot));
}

/// Up to 128 reads and writes of 1 to 4 blocks that do not overlap, often adjacent.
fn random_ops(random: &mut SplitMix, slots: &[Slot]) -> Vec<DeviceOp> {
    let mut used = vec![[false; (SIZE_BYTES / BLOCK) as usize]; 2];
    let mut ops: Vec<DeviceOp> = Vec::new();
    for (tag, &slot) in (0..).zip(slots) {
        let (mut member, mut start) = (random.below(2), random.below(SIZE_BYTES / BLOCK));
        let mut kind = if random.below(2) == 0 { OpKind::Read } else { OpKind::Write };
        if let Some(last) = ops.last()
            && random.below(3) > 0
        {
            (member, start) = (u64::from(last.dev.get()), (last.offset_bytes + last.length_bytes) / BLOCK);
            kind = last.kind;
        }
        let count = 1 + random.below(SLOT_BYTES as u64 / BLOCK);
        let range = start as usize..(start + count) as usize;
        match used[member as usize].get_mut(range) {
            Some(range) if !range.contains(&true) => range.fill(true),
            Some(_) | None => continue,
        }
        ops.push(op(tag, kind, dev(member as u16), start * BLOCK, count * BLOCK, Some(slot)));
    }
    ops
}

fn neighbours_in_a_batch_keep_their_own_bytes(set: &mut dyn DeviceSet, pool: &mut Pool) {
    let slots: Vec<_> = (0..200).map(|_| pool.alloc().expect("free")).collect();
    let shuffled = |i: usize| slots[i * 77 % slots.len()];
    for kind in [OpKind::Write, OpKind::Read] {
        for (i, &slot) in slots.iter().enumerate() {
            fill(pool.bytes_mut(slot), if kind == OpKind::Write { i as u64 * 1000 } else { u64::MAX / 2 });
        }
        let ops: Vec<_> =
            (0..200).map(|i| op(i, kind, dev(1), i * BLOCK, BLOCK, Some(shuffled(i as usize)))).collect();
        assert!(run(set, pool, &ops).values().all(Result::is_ok));
    }
    let mut expected = vec![0; BLOCK as usize];
    for i in 0..slots.len() {
        fill(&mut expected, (i * 77 % slots.len()) as u64 * 1000);
        assert!(pool.bytes(shuffled(i))[..BLOCK as usize] == expected, "block {i}");
        assert!(pool.bytes(shuffled(i))[BLOCK as usize..][..8] != expected[..8], "only the length asked for");
    }
    slots.into_iter().for_each(|slot| pool.free(slot));
}

fn a_batch_larger_than_any_queue(set: &mut dyn DeviceSet, pool: &mut Pool) {
    let slots: Vec<_> = (0..SLOT_COUNT).map(|_| pool.alloc().expect("free")).collect();
    for kind in [OpKind::Write, OpKind::Read] {
        // Every second block first, so that nothing can be merged.
        let ops: Vec<_> = (0..1024u64)
            .map(|i| op(i, kind, dev(0), (i * 2 % 1024 + i / 512) * BLOCK, BLOCK, Some(slots[i as usize])))
            .collect();
        for op in &ops {
            fill(
                pool.bytes_mut(op.slot.expect("a transfer")),
                op.offset_bytes * u64::from(kind == OpKind::Write),
            );
        }
        assert!(run(set, pool, &ops).values().all(Result::is_ok));
    }
    let mut expected = vec![0; BLOCK as usize];
    for (i, &slot) in (0u64..).zip(&slots) {
        fill(&mut expected, (i * 2 % 1024 + i / 512) * BLOCK);
        assert!(pool.bytes(slot)[..BLOCK as usize] == expected, "operation {i}");
    }
    slots.into_iter().for_each(|slot| pool.free(slot));
}

fn a_discard_leaves_the_neighbours(set: &mut dyn DeviceSet, pool: &mut Pool) {
    let mut before = vec![0; SIZE_BYTES as usize];
    fill(&mut before, 1);
    set.write_now(dev(0), 0, &before).expect("in range");
    let (start, end) = (1 << 20, 3 << 20);
    let ops = [
        op(1, OpKind::Discard, dev(0), start, end - start, None),
        op(2, OpKind::Flush, dev(0), 0, 0, None),
        op(3, OpKind::Discard, dev(1), 0, BLOCK, None),
    ];
    assert!(run(set, pool, &ops).values().all(Result::is_ok));
    let mut after = vec![0; SIZE_BYTES as usize];
    set.read_now(dev(0), 0, &mut after).expect("in range");
    assert!(
        after[..start as usize] == before[..start as usize]
            && after[end as usize..] == before[end as usize..]
    );
    let again = op(4, OpKind::Discard, dev(0), 0, SIZE_BYTES, None);
    assert_eq!(run(set, pool, &[again])[&4], Ok(()));
}

fn beyond_the_end_is_short(set: &mut dyn DeviceSet, pool: &mut Pool) {
    let slots: Vec<_> = (0..5).map(|_| pool.alloc().expect("free")).collect();
    let ops = [
        op(1, OpKind::Write, dev(0), SIZE_BYTES - BLOCK, BLOCK, Some(slots[0])),
        op(2, OpKind::Write, dev(0), SIZE_BYTES, BLOCK, Some(slots[1])),
        op(3, OpKind::Read, dev(0), SIZE_BYTES - BLOCK, 2 * BLOCK, Some(slots[2])),
        op(4, OpKind::Read, dev(0), u64::MAX - 4095, BLOCK, Some(slots[3])),
        op(5, OpKind::Discard, dev(0), SIZE_BYTES, BLOCK, None),
    ];
    let results = run(set, pool, &ops);
    let short = Err(IoFault::Short);
    assert_eq!([1, 2, 3, 4, 5].map(|tag| results[&tag]), [Ok(()), short, short, short, short]);
    assert_eq!(set.write_now(dev(0), SIZE_BYTES, &[0; 4096]), short);
    assert_eq!(set.size_bytes(dev(0)), SIZE_BYTES);
    slots.into_iter().for_each(|slot| pool.free(slot));
}

fn an_absent_member_is_gone(set: &mut dyn DeviceSet, pool: &mut Pool) {
    gone(set, pool, 2);
    gone(set, pool, 99);
    assert_eq!(set.size_bytes(dev(2)), 0);
}

fn a_failed_member_is_gone(set: &mut dyn DeviceSet, pool: &mut Pool) {
    gone(set, pool, 3);
    let slot = pool.alloc().expect("free");
    assert_eq!(
        run(set, pool, &[op(1, OpKind::Read, dev(0), 0, BLOCK, Some(slot))])[&1],
        Ok(()),
        "the others live"
    );
    pool.free(slot);
}

fn gone(set: &mut dyn DeviceSet, pool: &mut Pool, index: u16) {
    let slot = pool.alloc().expect("free");
    let good = pool.alloc().expect("free");
    let ops = [
        op(1, OpKind::Read, dev(index), 0, BLOCK, Some(slot)),
        op(2, OpKind::Read, dev(0), 0, BLOCK, Some(good)),
        op(3, OpKind::Flush, dev(index), 0, 0, None),
        op(4, OpKind::Discard, dev(index), 0, BLOCK, None),
    ];
    let results = run(set, pool, &ops);
    let fault = Err(IoFault::Gone);
    assert_eq!([1, 2, 3, 4].map(|tag| results[&tag]), [fault, Ok(()), fault, fault]);
    assert_eq!(run(set, pool, &[op(5, OpKind::Write, dev(index), 0, BLOCK, Some(slot))])[&5], fault);
    assert_eq!(set.read_now(dev(index), 0, &mut [0; 4096]), fault);
    assert_eq!(set.write_now(dev(index), 0, &[0; 4096]), fault);
    assert_eq!(set.flush_now(dev(index)), fault);
    pool.free(slot);
    pool.free(good);
}

fn waiting_for_nothing_returns(set: &mut dyn DeviceSet, pool: &mut Pool) {
    set.wait(u64::MAX);
    let mut completions = Vec::new();
    set.poll(pool, &mut completions);
    assert_eq!(completions, []);
}

fn every_stream_is_kept(set: &mut dyn DeviceSet, pool: &mut Pool) {
    let slot = pool.alloc().expect("free");
    for stream in Stream::ALL {
        let mut write = op(1, OpKind::Write, dev(1), stream.index() as u64 * BLOCK, BLOCK, Some(slot));
        write.stream = stream;
        fill(pool.bytes_mut(slot), stream.index() as u64 + 5);
        run(set, pool, &[write]);
        let expected = pool.bytes(slot)[..BLOCK as usize].to_vec();
        pool.bytes_mut(slot).fill(0);
        run(set, pool, &[DeviceOp { kind: OpKind::Read, ..write }]);
        assert!(pool.bytes(slot)[..BLOCK as usize] == expected, "{stream:?}");
    }
    pool.free(slot);
}
