//! Every set of members keeps the promises of `DeviceSet`.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests stop at the first surprise")]

mod common;

use block::{DeviceOp, DeviceSet, IoFault, OpKind, Stream};
use common::{BLOCK, Keeps, SIZE_BYTES, SIZES, conforms, dev, op, pool, run};
use device::{
    Access, Counting, DirectIo, Existing, Kind, Members, Membership as _, MemorySet, NullOptions, NullSet,
    OpenError, OpenOptions, UringOptions, UringSet, create_file, probe,
};
use std::path::{Path, PathBuf};

/// A directory on the disk, and one in memory where there is one.
fn directories() -> Vec<tempfile::TempDir> {
    let mut directories = vec![tempfile::tempdir().unwrap()];
    if Path::new("/dev/shm").is_dir() {
        directories.push(tempfile::tempdir_in("/dev/shm").unwrap());
    }
    directories
}

fn member_files(directory: &Path) -> Vec<Option<PathBuf>> {
    let file = |(index, &size_bytes): (usize, &u64)| {
        let path = directory.join(format!("member{index}"));
        (size_bytes > 0).then(|| create_file(&path, size_bytes, Existing::Replace).map(|()| path).unwrap())
    };
    SIZES.iter().enumerate().map(file).collect()
}

fn uring(directory: &Path, queue_depth: u32, direct_io: DirectIo) -> UringSet {
    let options = OpenOptions { direct_io, ..OpenOptions::default() };
    let members = Members::open(&member_files(directory), options).unwrap();
    UringSet::start(members, common::SLOT_BYTES, UringOptions { queue_depth, ..UringOptions::default() })
        .unwrap()
}

#[test]
fn memory() {
    conforms(&mut MemorySet::new(&SIZES).unwrap(), &mut pool(), Keeps::Everything, MemorySet::fail);
}

#[test]
fn null_that_keeps_metadata() {
    let options = NullOptions { keep_metadata: true, ..NullOptions::default() };
    conforms(&mut NullSet::new(&SIZES, options), &mut pool(), Keeps::Metadata, NullSet::fail);
}

#[test]
fn counting_changes_nothing() {
    let mut set = Counting::new(MemorySet::new(&SIZES).unwrap());
    conforms(&mut set, &mut pool(), Keeps::Everything, |set, dev| set.inner_mut().fail(dev));
}

#[test]
fn uring_at_every_depth_with_and_without_direct_io() {
    for directory in directories() {
        for (queue_depth, direct_io) in [(1, DirectIo::Prefer), (7, DirectIo::Never), (64, DirectIo::Prefer)]
        {
            let mut set = uring(directory.path(), queue_depth, direct_io);
            conforms(&mut set, &mut pool(), Keeps::Everything, UringSet::fail);
        }
    }
}

#[test]
fn uring_that_the_kernel_polls() {
    for directory in directories() {
        for queue_depth in [1, 7, 64] {
            let members = Members::open(&member_files(directory.path()), OpenOptions::default()).unwrap();
            let options = UringOptions { queue_depth, kernel_polls: true, ..UringOptions::default() };
            let mut set = UringSet::start(members, common::SLOT_BYTES, options).unwrap();
            conforms(&mut set, &mut pool(), Keeps::Everything, UringSet::fail);
        }
    }
}

#[test]
#[allow(unsafe_code, reason = "the ring on the pool itself has an unsafe constructor")]
fn uring_on_the_pool_itself() {
    for directory in directories() {
        for queue_depth in [1, 64] {
            let mut pool = pool();
            let members = Members::open(&member_files(directory.path()), OpenOptions::default()).unwrap();
            // SAFETY: `pool` is declared before and so dropped after the set; `conforms` waits for
            // all it submits.
            let set = unsafe {
                UringSet::start_shared(
                    members,
                    &mut pool,
                    UringOptions { queue_depth, ..UringOptions::default() },
                )
            };
            conforms(&mut set.unwrap(), &mut pool, Keeps::Everything, UringSet::fail);
        }
    }
}

#[test]
fn null_reads_leave_or_zero_the_slot_and_data_vanishes() {
    for zero_reads in [false, true] {
        let (mut pool, options) = (pool(), NullOptions { zero_reads, keep_metadata: true });
        let mut set = NullSet::new(&SIZES, options);
        let slot = pool.alloc().unwrap();
        pool.bytes_mut(slot).fill(9);
        let write = DeviceOp { stream: Stream::Data, ..op(1, OpKind::Write, dev(0), 0, BLOCK, Some(slot)) };
        run(&mut set, &mut pool, &[write]);
        assert_eq!(set.kept_block_count(), 0);
        run(&mut set, &mut pool, &[DeviceOp { kind: OpKind::Read, ..write }]);
        assert_eq!(pool.bytes(slot)[0], if zero_reads { 0 } else { 9 });
        set.write_now(dev(0), 8192, &[3; 8192]).unwrap();
        assert_eq!(set.kept_block_count(), 2);
        set.replace(dev(0), SIZE_BYTES);
        assert_eq!(set.kept_block_count(), 0);
    }
}

#[test]
fn memory_that_is_replaced_is_blank_and_damage_is_visible() {
    let mut set = MemorySet::new(&SIZES).unwrap();
    set.write_now(dev(0), 0, &[5; 4096]).unwrap();
    set.bytes_mut(dev(0))[17] ^= 1;
    let mut bytes = [0; 4096];
    set.read_now(dev(0), 0, &mut bytes).unwrap();
    assert_eq!((bytes[16], bytes[17]), (5, 4));
    set.fail(dev(0));
    assert!(set.bytes(dev(0)).is_empty());
    set.replace(dev(0), SIZE_BYTES).unwrap();
    assert!(set.bytes(dev(0)).iter().all(|&byte| byte == 0));
    let error = set.replace(dev(9), u64::MAX / 2).unwrap_err();
    assert_eq!(error.dev, dev(9));
}

#[test]
fn counters_per_device_and_stream() {
    let mut pool = pool();
    let mut set = Counting::new(NullSet::new(&SIZES, NullOptions::default()));
    let slot = pool.alloc().unwrap();
    let write = op(1, OpKind::Write, dev(1), 0, BLOCK, Some(slot));
    let ops = [
        DeviceOp { stream: Stream::Data, ..write },
        DeviceOp { stream: Stream::Data, length_bytes: 2 * BLOCK, tag: 2, ..write },
        DeviceOp { stream: Stream::Parity, tag: 3, ..write },
        DeviceOp { stream: Stream::Log, kind: OpKind::Read, tag: 4, dev: dev(0), ..write },
        op(5, OpKind::Flush, dev(1), 0, 0, None),
        op(6, OpKind::Discard, dev(1), 0, 5 * BLOCK, None),
    ];
    run(&mut set, &mut pool, &ops);
    let earlier = set.total();
    set.write_now(dev(3), 0, &[0; 8192]).unwrap();
    let one = set.device(dev(1));
    assert_eq!((one.write_ops, one.write_bytes), ([2, 1, 0, 0], [3 * BLOCK, BLOCK, 0, 0]));
    assert_eq!((one.flushes, one.discards, one.discard_bytes), (1, 1, 5 * BLOCK));
    assert_eq!(set.device(dev(0)).read_bytes, [0, 0, BLOCK, 0]);
    assert_eq!(set.total().write_bytes_all(), 6 * BLOCK);
    assert_eq!(set.total().since(&earlier).write_bytes, [0, 0, 0, 2 * BLOCK]);
    assert_eq!((set.devices().len(), set.device(dev(200))), (4, Default::default()));
    set.reset();
    assert_eq!(set.total(), Default::default());
}

#[test]
fn a_file_that_was_cut_ends_reads_short() {
    let (directory, mut pool) = (tempfile::tempdir().unwrap(), pool());
    let mut set = uring(directory.path(), 8, DirectIo::Prefer);
    let file = std::fs::File::options().write(true).open(directory.path().join("member0")).unwrap();
    file.set_len(3 * BLOCK).unwrap();
    let ops: Vec<_> = (0..6).map(|i| op(i, OpKind::Read, dev(0), i * BLOCK, BLOCK, pool.alloc())).collect();
    let results = run(&mut set, &mut pool, &ops);
    let short = Err(IoFault::Short);
    assert_eq!([0, 1, 2, 3, 4, 5].map(|tag| results[&tag]), [Ok(()), Ok(()), Ok(()), short, short, short]);
}

#[test]
fn a_file_cut_within_a_block_ends_reads_short() {
    for direct_io in [DirectIo::Prefer, DirectIo::Never] {
        let (directory, mut pool) = (tempfile::tempdir().unwrap(), pool());
        let mut set = uring(directory.path(), 8, direct_io);
        let file = std::fs::File::options().write(true).open(directory.path().join("member0")).unwrap();
        file.set_len(BLOCK + 100).unwrap();
        let ops: Vec<_> =
            (0..3).map(|i| op(i, OpKind::Read, dev(0), i * BLOCK, BLOCK, pool.alloc())).collect();
        let results = run(&mut set, &mut pool, &ops);
        let short = Err(IoFault::Short);
        assert_eq!([0, 1, 2].map(|tag| results[&tag]), [Ok(()), short, short]);
    }
}

#[test]
fn a_member_can_be_replaced_under_a_running_ring() {
    let (directory, mut pool) = (tempfile::tempdir().unwrap(), pool());
    let mut set = uring(directory.path(), 8, DirectIo::Prefer);
    let spare = directory.path().join("spare");
    create_file(&spare, SIZE_BYTES, Existing::Refuse).unwrap();
    set.write_now(dev(0), 0, &[1; 4096]).unwrap();
    set.fail(dev(0));
    set.replace(dev(0), &spare).unwrap();
    let slot = pool.alloc().unwrap();
    pool.bytes_mut(slot).fill(7);
    let write = op(1, OpKind::Write, dev(0), 4096, BLOCK, Some(slot));
    assert_eq!(run(&mut set, &mut pool, &[write])[&1], Ok(()));
    drop(set);
    let (old, new) =
        (std::fs::read(directory.path().join("member0")).unwrap(), std::fs::read(spare).unwrap());
    assert_eq!((old[0], old[4096], new[0], new[4096]), (1, 0, 0, 7));
}

#[test]
fn dropping_a_set_waits_for_what_is_in_flight() {
    for directory in directories() {
        let mut pool = pool();
        let mut set = uring(directory.path(), 32, DirectIo::Prefer);
        let ops: Vec<_> =
            (0..32).map(|i| op(i, OpKind::Write, dev(0), i * 2 * BLOCK, BLOCK, pool.alloc())).collect();
        for op in &ops {
            pool.bytes_mut(op.slot.unwrap()).fill(op.tag as u8 + 1);
        }
        set.submit(&mut pool, &ops);
        drop(set);
        let content = std::fs::read(directory.path().join("member0")).unwrap();
        assert!((0..32).all(|i| content[i * 8192] == i as u8 + 1), "all 32 fit into the ring");
    }
}

/// On a real block device of 4 MiB, whose content is destroyed:
///
/// ```text
/// truncate -s 4M image && ELASTRIPE_TEST_BLOCK_DEVICE=$(losetup --show -f --direct-io=on image) \
///     cargo test -p elastripe-device --test conformance -- --ignored
/// ```
#[test]
#[ignore = "needs a block device in ELASTRIPE_TEST_BLOCK_DEVICE"]
fn a_block_device_conforms_and_is_exclusive() {
    let path = PathBuf::from(std::env::var_os("ELASTRIPE_TEST_BLOCK_DEVICE").unwrap());
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str| {
        let path = directory.path().join(name);
        create_file(&path, SIZE_BYTES, Existing::Refuse).map(|()| Some(path)).unwrap()
    };
    let found = probe(&path).unwrap();
    assert_eq!((found.kind, found.size_bytes), (Kind::Block, SIZE_BYTES));
    let refused = create_file(&path, SIZE_BYTES, Existing::Replace);
    assert!(matches!(refused, Err(OpenError::WrongKind { found: "block device", .. })));
    let paths = [Some(path.clone()), file("b"), None, file("d")];
    for queue_depth in [1, 64] {
        let mut members = Members::open(&paths, OpenOptions::default()).unwrap();
        members.write_now(dev(1), 0, &vec![0; SIZE_BYTES as usize]).unwrap();
        assert!(matches!(Members::open(&paths[..1], OpenOptions::default()), Err(OpenError::InUse { .. })));
        let inspect = OpenOptions { access: Access::ReadOnly, ..OpenOptions::default() };
        Members::open(&paths[..1], inspect).unwrap();
        let mut set = UringSet::start(
            members,
            common::SLOT_BYTES,
            UringOptions { queue_depth, ..UringOptions::default() },
        )
        .unwrap();
        assert_eq!(set.kind(dev(0)), Some(Kind::Block));
        assert_eq!(set.logical_block_bytes(dev(0)), found.logical_block_bytes);
        conforms(&mut set, &mut pool(), Keeps::Everything, UringSet::fail);
    }
}
