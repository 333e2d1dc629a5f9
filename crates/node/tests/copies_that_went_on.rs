//! Two parts of an array that each went on without the other are told apart, and neither is written over
//! unasked.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use array::{CreateOptions, EngineOptions, NewArray, RESERVE_PERMILLE_DEFAULT, plan_shards, went_on_apart};
use block::{DevIndex, Geometry};
use device::{Existing, create_file};
use format::{CodeKind, Consistency, LayoutKind, SchemeKind, Superblock};
use node::checks::{Caution, Consent, Manner, View};
use node::driver::DriverOptions;
use node::error::Error;
use node::open::{Force, Incomplete, Locked, discover, lock};
use node::refusal::Refusal;
use node::running::Running;
use node::status::{Source, of_superblocks};
use node::volume::Use;
use node::{create, fresh};
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
