//! Two parts of an array that each went on without the other are told apart, and neither is written over
//! unasked.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use array::{CreateOptions, EngineOptions, NewArray, RESERVE_PERMILLE_DEFAULT, plan_shards, went_on_apart};
use block::{DevIndex, Epoch, Geometry};
use device::{Existing, create_file};
use format::{CodeKind, Consistency, LayoutKind, MemberState, SUPERBLOCK_OFFSETS, SchemeKind, Superblock};
use node::checks::{Caution, Consent, Manner, View};
use node::driver::DriverOptions;
use node::error::Error;
use node::open::{Force, Incomplete, Locked, discover, lock};
use node::refusal::Refusal;
use node::running::Running;
use node::status::{Source, of_superblocks};
use node::volume::Use;
use node::{create, fresh};
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

const FILE_BYTES: u64 = 32 << 20;
const MANNER: (Consent, Manner) = (Consent::Given, Manner::FailFirst);

fn mirror(directory: &Path) -> [PathBuf; 2] {
    let paths = ["a", "b"].map(|name| directory.join(name));
    paths.iter().for_each(|path| create_file(path, FILE_BYTES, Existing::Refuse).unwrap());
    let options = CreateOptions {
        scheme: SchemeKind::Raid,
        code: CodeKind::Xor,
        layout: LayoutKind::Spread,
        consistency: Consistency::Journal,
        geometry: Geometry::new(1, 1, 4096).unwrap(),
        reserve_permille: RESERVE_PERMILLE_DEFAULT,
        unit_rows: None,
    };
    let config = plan_shards(&options, FILE_BYTES, 0, 0, 1).unwrap();
    let (uuid, nonce) = (fresh::uuid().unwrap(), fresh::number().unwrap());
    let new = NewArray { uuid, name: String::new(), nonce, created_unix_s: 0 };
    create::create(&paths, config, &new, || Ok::<_, Error>(())).unwrap();
    paths
}

fn locked(paths: &[PathBuf]) -> Locked {
    lock(paths, Force::Never, Incomplete::Accept).unwrap()
}

fn running(paths: &[PathBuf]) -> Running {
    let assembled = locked(paths).assemble(EngineOptions::default(), DriverOptions::default()).unwrap();
    Running::here(assembled.shards, Use::ReadWrite).unwrap()
}

/// The part of the array that is at `path` is started by itself, and stopped.
fn go_on(path: &Path) {
    running(&[path.to_owned()]).stop().unwrap();
}

fn is_refused(view: &View, path: &Path, caution: Caution) -> bool {
    match view.check_replace(DevIndex::new(1), path, caution, MANNER) {
        Ok(()) => false,
        Err(Error::Refused(Refusal::Diverged { path: found })) => found == path,
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn halves_that_went_on_by_themselves_are_told_apart() {
    let directory = tempfile::tempdir().unwrap();
    let [a, b] = mirror(directory.path());
    let both = [a.clone(), b.clone()];
    running(&both).stop().unwrap();
    assert_eq!(discover(&both).unwrap().diverged, Vec::<PathBuf>::new());
    go_on(&a);
    // One that was away, and nothing else, is what its array knows it as.
    let found = discover(&both).unwrap();
    assert_eq!((found.stale.clone(), found.diverged.clone()), (vec![b.clone()], vec![]));
    assert!(!is_refused(&View::of_found(&found), &b, Caution::Careful));
    go_on(&b);
    // They have started as often as each other.
    let found = discover(&both).unwrap();
    assert_eq!((found.diverged.len(), &found.diverged), (1, &found.stale));
    let notes = of_superblocks(&found, Source::Stopped, 0).notes;
    let other = found.stale[0].display().to_string();
    assert!(notes.iter().any(|note| note.contains(&other)), "{notes:?}");
    // One of them, then the other one has gone further.
    go_on(&a);
    go_on(&a);
    assert_eq!(discover(&both).unwrap().diverged, vec![b.clone()]);
    let array = running(std::slice::from_ref(&a));
    let view = View::of_running(&array, &[Some(a.clone()), None]);
    assert!(is_refused(&view, &b, Caution::Careful));
    assert!(!is_refused(&view, &b, Caution::Forced));
    array.stop().unwrap();
    for _ in 0..4 {
        go_on(&b);
    }
    assert_eq!(discover(&both).unwrap().diverged, [a]);
}

/// The array that asks has replaced its own half since, so that nothing in the other's superblock is of a
/// device that it has: it knows in which assembly the other one left.
#[test]
fn a_half_that_went_on_is_told_apart_by_where_it_left() {
    let directory = tempfile::tempdir().unwrap();
    let [a, b] = mirror(directory.path());
    let both = [a.clone(), b.clone()];
    running(&both).stop().unwrap();
    go_on(&a);
    go_on(&b);
    go_on(&a);
    go_on(&a);
    let array = running(std::slice::from_ref(&a));
    let engine = array.lead();
    let assembly = (engine.journal().epoch(), engine.journal().nonce());
    let mut entries = engine.health().entries();
    entries[0].serial += 1000; // it has another device
    let left = engine.left_in(DevIndex::new(1));
    assert!(left.is_some());
    let found = discover(std::slice::from_ref(&b)).unwrap();
    assert!(!went_on_apart(found.superblock(), assembly, &entries, None));
    assert!(went_on_apart(found.superblock(), assembly, &entries, left));
    // One that left, and nothing else, is what its array knows it as.
    let who_left = left.map(|(epoch, nonce)| Superblock { epoch, nonce, ..found.superblock().clone() });
    assert!(!went_on_apart(&who_left.unwrap(), assembly, &entries, left));
    array.stop().unwrap();
}

/// By so many updates the first superblock of a start is ahead of the one before.
const START: u64 = 65_537;

/// A start was cut short when it had written one superblock of this device, and no other.
fn start_cut_short(path: &Path, change: impl FnOnce(&mut Superblock)) {
    let found = discover(&[path.to_owned()]).unwrap();
    let mut superblock = found.superblock().clone();
    superblock.config_seq += START;
    superblock.clean = false;
    change(&mut superblock);
    let copy = usize::try_from(superblock.config_seq % 2).unwrap();
    let mut block = [0; 4096];
    superblock.encode(copy, &mut block);
    File::options().write(true).open(path).unwrap().write_all_at(&block, SUPERBLOCK_OFFSETS[copy]).unwrap();
}

/// Whether the other half, which has gone on alone since, takes this one for one that went on, too.
fn is_apart(both: &[PathBuf; 2]) -> bool {
    let [a, b] = both;
    go_on(a);
    let found = discover(both).unwrap();
    assert_eq!(found.stale, std::slice::from_ref(b));
    let is_apart = found.diverged == found.stale;
    assert!(is_apart || found.diverged.is_empty());
    assert_eq!(is_refused(&View::of_found(&found), b, Caution::Careful), is_apart);
    let array = running(std::slice::from_ref(a));
    assert_eq!(
        is_refused(&View::of_running(&array, &[Some(a.clone()), None]), b, Caution::Careful),
        is_apart
    );
    array.stop().unwrap();
    is_apart
}

/// The other half was not there at that start.
#[test]
fn one_superblock_of_a_start_that_was_cut_short_is_not_going_on() {
    let directory = tempfile::tempdir().unwrap();
    let both = mirror(directory.path());
    running(&both).stop().unwrap();
    start_cut_short(&both[1], |superblock| superblock.members[0].state = MemberState::Failed);
    assert!(!is_apart(&both));
}

/// The other half was there, and then began another assembly of the same number.
#[test]
fn nor_is_it_if_that_superblock_names_the_assembly_that_came_to_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let both = mirror(directory.path());
    running(&both).stop().unwrap();
    start_cut_short(&both[1], |superblock| {
        superblock.epoch = Epoch::new(superblock.epoch.get() + 1);
        superblock.nonce += 1;
    });
    assert!(!is_apart(&both));
}

/// One half went on in the assembly in which it lost the other, which was started alone later.
#[test]
fn a_half_that_went_on_without_the_other_is_told_apart_by_one_superblock() {
    let directory = tempfile::tempdir().unwrap();
    let both = mirror(directory.path());
    let mut array = running(&both);
    array.engine_mut(0).fail_device(DevIndex::new(0));
    while array.engines().any(|engine| engine.is_publishing()) {
        array.drive();
    }
    // It is killed then.
    drop(array);
    assert!(is_apart(&both));
}
