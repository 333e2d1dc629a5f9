//! Opening, probing and closing members.

#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm, reason = "tests stop at the first surprise")]

use super::*;
use std::os::unix::fs::symlink;

const SIZE: u64 = 1 << 20;

fn file(directory: &tempfile::TempDir, name: &str) -> PathBuf {
    let path = directory.path().join(name);
    create_file(&path, SIZE, Existing::Refuse).unwrap();
    path
}

#[test]
fn a_member_is_locked_until_it_is_dropped() {
    let directory = tempfile::tempdir().unwrap();
    let path = file(&directory, "a");
    let paths = [Some(path.clone())];
    let first = Members::open(&paths, OpenOptions::default()).unwrap();
    let Err(error) = Members::open(&paths, OpenOptions::default()) else { panic!("opened twice") };
    assert_eq!(error.to_string(), format!("{} is in use by another process", path.display()));
    let inspect = OpenOptions { access: Access::ReadOnly, ..OpenOptions::default() };
    assert_eq!(Members::open(&paths, inspect).unwrap().size_bytes(DevIndex::new(0)), SIZE);
    drop(first);
    Members::open(&paths, OpenOptions::default()).unwrap();
}

#[test]
fn the_same_device_twice_is_refused_by_name() {
    let directory = tempfile::tempdir().unwrap();
    let path = file(&directory, "a");
    let link = directory.path().join("b");
    symlink(&path, &link).unwrap();
    let both = [Some(path.clone()), None, Some(link.clone())];
    match Members::open(&both, OpenOptions::default()) {
        Err(OpenError::Duplicate { first, second }) => assert_eq!((first, second), (path, link)),
        other => panic!("{:?}", other.err()),
    }
}

#[test]
fn what_cannot_be_a_member_says_so() {
    let directory = tempfile::tempdir().unwrap();
    let open = |path: &Path| Members::open(&[Some(path.to_owned())], OpenOptions::default()).err().unwrap();
    assert!(matches!(open(directory.path()), OpenError::WrongKind { found: "directory", .. }));
    assert!(matches!(open(Path::new("/dev/null")), OpenError::WrongKind { found: "character device", .. }));
    assert!(matches!(open(&directory.path().join("missing")), OpenError::Io { .. }));
    assert!(matches!(probe(directory.path()), Err(OpenError::WrongKind { .. })));
}

#[test]
fn synchronous_transfers_larger_than_the_bounce_buffer() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a");
    create_file(&path, 8 << 20, Existing::Refuse).unwrap();
    for direct_io in [DirectIo::Prefer, DirectIo::Never] {
        let options = OpenOptions { direct_io, ..OpenOptions::default() };
        let mut members = Members::open(&[None, Some(path.clone())], options).unwrap();
        let dev = DevIndex::new(1);
        let written: Vec<u8> = (0..(5 << 19)).map(|i: u32| (i / 4096 + i) as u8).collect();
        members.write_now(dev, 8192, &written).unwrap();
        members.flush_now(dev).unwrap();
        let mut read = vec![0; written.len()];
        members.read_now(dev, 8192, &mut read).unwrap();
        assert!(read == written);
        assert_eq!(members.read_now(dev, 8 << 20, &mut [0; 4096]), Err(IoFault::Short));
        assert_eq!(members.read_now(dev, u64::MAX - 4095, &mut [0; 4096]), Err(IoFault::Short));
        assert_eq!(members.read_now(DevIndex::new(0), 0, &mut [0; 4096]), Err(IoFault::Gone));
        assert_eq!(members.write_now(DevIndex::new(7), 0, &[0; 4096]), Err(IoFault::Gone));
        assert_eq!(members.notes().is_empty(), members.get(dev).unwrap().direct_io());
    }
}

#[test]
fn many_reads_side_by_side_each_say_how_they_ended() {
    let directory = tempfile::tempdir().unwrap();
    let paths = ["a", "b"].map(|name| directory.path().join(name));
    paths.iter().for_each(|path| create_file(path, 8 << 20, Existing::Refuse).unwrap());
    let [a, b] = paths.map(Some);
    let mut members = Members::open(&[a, None, b], OpenOptions::default()).unwrap();
    let written: Vec<u8> = (0..(3 << 20)).map(|i: u32| (i / 4096 * 7 + i) as u8).collect();
    members.write_now(DevIndex::new(0), 0, &written).unwrap();
    members.write_now(DevIndex::new(2), 4096, &written).unwrap();
    // Out of order; neighbours, one of them larger than the bounce buffer; behind the end; on nobody.
    let places: [(u16, u64, usize); 8] = [
        (2, 8192, 4096),
        (0, 4096, 3 << 19),
        (0, 0, 4096),
        (2, 4096, 4096),
        (1, 0, 4096),
        (2, (8 << 20) - 4096, 8192),
        (0, u64::MAX - 4095, 4096),
        (0, 2 << 20, 8192),
    ];
    let mut buffers: Vec<Vec<u8>> = places.iter().map(|&(_, _, len)| vec![0; len]).collect();
    let mut reads: Vec<ReadNow<'_>> = (places.iter().zip(&mut buffers).enumerate())
        .map(|(tag, (&(dev, offset_bytes, _), into))| ReadNow {
            tag,
            dev: DevIndex::new(dev),
            offset_bytes,
            into,
            result: Ok(()),
        })
        .collect();
    members.read_all_now(&mut reads);
    let mut results = [Ok(()); 8];
    reads.iter().for_each(|read| results[read.tag] = read.result);
    drop(reads);
    let (gone, short) = (Err(IoFault::Gone), Err(IoFault::Short));
    assert_eq!(results, [Ok(()), Ok(()), Ok(()), Ok(()), gone, short, short, Ok(())]);
    for (&(dev, offset, len), read) in places.iter().zip(&buffers).filter(|((dev, ..), _)| *dev != 1) {
        let start = if dev == 2 { offset.wrapping_sub(4096) } else { offset };
        if let Some(expected) =
            usize::try_from(start).ok().and_then(|at| written.get(at..at.checked_add(len)?))
        {
            assert!(read == expected, "{len} bytes at {offset} of {dev}");
        }
    }
}

#[test]
fn a_file_that_was_cut_reads_short() {
    let directory = tempfile::tempdir().unwrap();
    let path = file(&directory, "a");
    let mut members = Members::open(&[Some(path.clone())], OpenOptions::default()).unwrap();
    File::options().write(true).open(&path).unwrap().set_len(4096).unwrap();
    let dev = DevIndex::new(0);
    assert_eq!(members.read_now(dev, 0, &mut [0; 8192]), Err(IoFault::Short));
    members.read_now(dev, 0, &mut [0; 4096]).unwrap();
}

#[test]
fn a_read_only_member_refuses_writes() {
    let directory = tempfile::tempdir().unwrap();
    let options = OpenOptions { access: Access::ReadOnly, ..OpenOptions::default() };
    let mut members = Members::open(&[Some(file(&directory, "a"))], options).unwrap();
    let result = members.write_now(DevIndex::new(0), 0, &[0; 4096]);
    assert_eq!(result, Err(IoFault::Device { errno: libc::EBADF }));
}

#[test]
fn replacing_a_member_opens_the_new_and_unlocks_the_old() {
    let directory = tempfile::tempdir().unwrap();
    let (a, b) = (file(&directory, "a"), file(&directory, "b"));
    let mut members = Members::open(&[Some(a.clone())], OpenOptions::default()).unwrap();
    members.replace(DevIndex::new(2), &b).unwrap();
    assert_eq!((members.count(), members.size_bytes(DevIndex::new(1))), (3, 0));
    assert!(matches!(members.replace(DevIndex::new(0), &b), Err(OpenError::Duplicate { .. })));
    members.remove(DevIndex::new(0));
    Members::open(&[Some(a)], OpenOptions::default()).unwrap();
}

#[test]
fn files_are_created_sparse_and_never_overwritten_unasked() {
    use std::os::unix::fs::MetadataExt;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a");
    std::fs::write(&path, b"precious").unwrap();
    let error = create_file(&path, SIZE, Existing::Refuse).unwrap_err();
    assert!(matches!(error, OpenError::Exists { size_bytes: 8, .. }), "{error}");
    assert_eq!(std::fs::read(&path).unwrap(), b"precious");
    create_file(&path, 1 << 30, Existing::Replace).unwrap();
    let metadata = std::fs::metadata(&path).unwrap();
    assert_eq!(metadata.len(), 1 << 30);
    assert!(metadata.blocks() * 512 < 1 << 20, "sparse");
    let empty = directory.path().join("empty");
    File::create(&empty).unwrap();
    create_file(&empty, SIZE, Existing::Refuse).unwrap();
    assert!(create_file(Path::new("/dev/null"), SIZE, Existing::Replace).is_err());
}

#[test]
fn probe_describes_what_is_there() {
    let directory = tempfile::tempdir().unwrap();
    let path = file(&directory, "a");
    let blank = probe(&path).unwrap();
    assert_eq!((blank.kind, blank.size_bytes, blank.signature), (Kind::File, SIZE, None));
    assert!(blank.logical_block_bytes.is_power_of_two());
    File::options().write(true).open(&path).unwrap().write_all_at(b"LUKS\xba\xbe", 0).unwrap();
    assert_eq!(probe(&path).unwrap().signature, Some("LUKS"));
    std::fs::write(&path, b"tiny").unwrap();
    assert_eq!(probe(&path).unwrap().size_bytes, 4);
}

#[test]
fn a_member_that_has_become_larger_is_measured_when_it_is_asked_for() {
    let directory = tempfile::tempdir().unwrap();
    let path = file(&directory, "a");
    let (mut members, dev) =
        (Members::open(&[Some(path.clone())], OpenOptions::default()).unwrap(), DevIndex::new(0));
    let resize = |bytes| File::options().write(true).open(&path).unwrap().set_len(bytes).unwrap();
    resize(2 * SIZE);
    assert_eq!(members.write_now(dev, SIZE, &[1; 4096]), Err(IoFault::Short));
    let mut shared = members.share();
    shared.measure();
    assert_eq!((members.size_bytes(dev), shared.size_bytes(dev)), (SIZE, 2 * SIZE));
    shared.write_now(dev, SIZE, &[1; 4096]).unwrap();
    // What is on one that has shrunk is still asked for, and reported as missing by whoever reads it.
    resize(SIZE);
    shared.measure();
    assert_eq!(shared.size_bytes(dev), 2 * SIZE);
}
