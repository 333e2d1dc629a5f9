//! A commit that somebody waits for ends, whatever is written meanwhile: updates that use up all space ask
//! for run after run, and so do intervals; a run is answered before the next one begins.

use crate::common::*;
use array::{Array, EngineError, EngineOptions};
use block::{Durability, Slot};
use device::MemorySet;
use format::SchemeKind;

const CHUNK: u64 = 4096;
const MEMBERS: usize = 5;
const DEPTH: u64 = 64;
const COMMIT: u64 = DEPTH;
/// A run over all stripes, one at a time, takes fewer turns by far.
const TURNS_MAX: u64 = 50_000;

/// Updates that never pause.
struct Updates {
    slots: Vec<Slot>,
    idle: Vec<u64>,
    issued: u64,
    chunks: u64,
}

impl Updates {
    fn new(array: &mut Array<MemorySet>) -> Self {
        let mut slots = Vec::new();
        assert!(array.engine().take_slots(DEPTH as usize, &mut slots));
        let config = array.engine().store().config;
        let chunks = config.stripe_count * config.geometry.data_count() as u64;
        Self { slots, idle: (0..DEPTH).collect(), issued: 0, chunks }
    }

    /// One turn with the queue full; whether the commit was answered.
    fn turn(&mut self, array: &mut Array<MemorySet>) -> bool {
        for tag in self.idle.drain(..) {
            // A prime far from any size of an array: every stripe is met, never two in a row.
            let lcn = self.issued * 7919 % self.chunks;
            self.issued += 1;
            let slot = &self.slots[tag as usize..][..1];
            array.engine().write(tag, lcn * CHUNK, CHUNK, slot, Durability::Volatile);
        }
        array.turn();
        let mut answers = Vec::new();
        array.take_answers(&mut answers);
        answers.iter().for_each(|done| done.result.unwrap());
        self.idle.extend(answers.iter().map(|done| done.tag).filter(|&tag| tag != COMMIT));
        answers.iter().any(|done| done.tag == COMMIT)
    }
}

/// A full array, and what commits it in units of one stripe.
fn full(options: &EngineOptions) -> Array<MemorySet> {
    let create = create_options(SchemeKind::Eplog, 3, 1);
    let (mut array, _) =
        assemble(fresh(&create, 6, 8), MEMBERS, EngineOptions { unit_stripes: 1, ..*options });
    for stripe in 0..array.engine().store().config.stripe_count {
        let bytes = vec![stripe as u8 | 1; 3 * CHUNK as usize];
        write(&mut array, stripe * 3 * CHUNK, &bytes, Durability::Volatile).unwrap();
    }
    array
}

fn commits_end(options: &EngineOptions) {
    let mut array = full(options);
    let mut updates = Updates::new(&mut array);
    // Until writes wait for the space that commits give back.
    for _ in 0..500 {
        assert!(!updates.turn(&mut array));
    }
    for round in 0..3 {
        let runs = array.engine().stats().commits;
        array.engine().commit(COMMIT);
        let turns = (0..TURNS_MAX).take_while(|_| !updates.turn(&mut array)).count() as u64;
        assert!(turns < TURNS_MAX, "commit {round}: no answer after {turns} turns");
        let runs = array.engine().stats().commits - runs;
        assert!(runs <= 2, "commit {round}: {runs} runs began; the one under way and its own suffice");
    }
}

#[test]
fn under_updates_that_use_up_all_space() {
    commits_end(&options());
}

#[test]
fn under_updates_that_use_up_all_space_with_a_commit_due_every_few_writes() {
    let mut options = options();
    options.commit.every_requests = Some(10);
    commits_end(&options);
}

#[test]
fn a_run_that_nobody_waits_for_does_not_hold_up_a_stop() {
    const UPDATES: u64 = 300;
    let mut options = EngineOptions { unit_stripes: 1, ..options() };
    options.commit.every_requests = Some(UPDATES);
    let mut array = full(&options);
    let mut updates = 0;
    for _ in 0..2 {
        array.run(|engine, tag| engine.commit(tag)).unwrap();
        // Until a run begins, the second time with as many stripes to commit.
        let runs = array.engine().stats().commits;
        while array.engine().stats().commits == runs {
            write(&mut array, updates * 3 * CHUNK, &[200; CHUNK as usize], Durability::Volatile).unwrap();
            updates += 1;
        }
    }
    array.stop().unwrap();
    let left = dirty(&array);
    assert!(left > UPDATES / 2, "{left} of {UPDATES} stripes wait for their commit");
    let (mut array, report) = assemble(array.into_devices(), MEMBERS, options);
    assert!(report.was_clean && dirty(&array) == left);
    for update in 0..updates {
        assert_eq!(read(&mut array, update * 3 * CHUNK, CHUNK).unwrap(), [200; CHUNK as usize]);
    }
    array.run(|engine, tag| engine.commit(tag)).unwrap();
    assert_eq!(dirty(&array), 0);
}

fn dirty(array: &Array<MemorySet>) -> u64 {
    array.engine_ref().scheme().pressure(array.engine_ref().store()).dirty_stripes
}

/// A full array of which so many stripes wait for their commit.
fn with_dirty(options: &EngineOptions, stripes: u64) -> Array<MemorySet> {
    let mut array = full(options);
    array.run(|engine, tag| engine.commit(tag)).unwrap();
    for stripe in 0..stripes {
        write(&mut array, stripe * 3 * CHUNK, &[200; CHUNK as usize], Durability::Volatile).unwrap();
    }
    assert_eq!(dirty(&array), stripes);
    array
}

/// So many turns; what a commit was answered.
fn turns(array: &mut Array<MemorySet>, count: u64) -> Option<Result<(), EngineError>> {
    let mut answers = Vec::new();
    for _ in 0..count {
        array.turn();
        array.take_answers(&mut answers);
    }
    answers.iter().find(|done| done.tag == COMMIT).map(|done| done.result)
}

#[test]
fn a_paused_commit_waits_and_goes_on() {
    let mut array = with_dirty(&options(), 200);
    array.engine().commit(COMMIT);
    assert_eq!(turns(&mut array, 3), None);
    let run = array.engine_ref().commit_run().expect("200 stripes take more turns than 3");
    assert!(run.total == 200 && run.done < 200, "{run:?}");
    assert!(array.engine().pause_commits());
    assert_eq!(turns(&mut array, 2000), None, "paused");
    let left = dirty(&array);
    assert!(left > 0 && array.engine_ref().commit_run().is_none(), "{left} stripes");
    assert!(array.engine_ref().are_commits_paused());
    assert_eq!(array.engine_ref().stranded(), None, "nobody is forgotten: somebody is to let it go on");
    assert!(array.engine().resume_commits() && !array.engine().resume_commits());
    assert_eq!(turns(&mut array, 2000), Some(Ok(())));
    assert_eq!(dirty(&array), 0);
}

#[test]
fn a_commit_that_is_asked_for_while_commits_are_paused_waits() {
    let mut array = with_dirty(&options(), 50);
    assert!(array.engine().pause_commits());
    array.engine().commit(COMMIT);
    assert_eq!(turns(&mut array, 2000), None);
    assert_eq!(dirty(&array), 50);
    assert!(array.engine().resume_commits());
    assert_eq!(turns(&mut array, 2000), Some(Ok(())));
}

#[test]
fn a_commit_that_is_given_up_is_answered_and_leaves_the_rest() {
    for paused in [false, true] {
        let mut array = with_dirty(&options(), 200);
        assert!(!array.engine().stop_commit(), "there is none");
        array.engine().commit(COMMIT);
        assert_eq!(turns(&mut array, 3), None);
        assert!(!paused || array.engine().pause_commits());
        assert!(array.engine().stop_commit());
        assert_eq!(turns(&mut array, 2000), Some(Err(EngineError::GivenUp)));
        let left = dirty(&array);
        assert!(left > 0 && !array.engine_ref().are_commits_paused(), "{left} stripes");
        array.run(|engine, tag| engine.commit(tag)).unwrap();
        assert_eq!(dirty(&array), 0);
    }
}

#[test]
fn where_no_commit_is_to_be_given_up_the_next_one_comes_as_always() {
    let mut options = options();
    options.commit.idle_ns = Some(1_000_000);
    let mut array = with_dirty(&options, 5);
    assert!(!array.engine().stop_commit(), "there is none");
    array.engine().set_now(1 << 40);
    assert_eq!(turns(&mut array, 100), None);
    assert_eq!(dirty(&array), 0, "nobody asks for anything, so all is committed");
}

#[test]
fn writes_get_their_room_while_commits_are_paused() {
    let mut array = full(&options());
    assert!(array.engine().pause_commits());
    let mut updates = Updates::new(&mut array);
    for _ in 0..TURNS_MAX {
        updates.turn(&mut array);
    }
    let chunks = updates.chunks;
    assert!(updates.issued > 4 * chunks, "{} writes in {TURNS_MAX} turns", updates.issued);
    assert!(array.engine_ref().are_commits_paused() && dirty(&array) > 0);
}

#[test]
fn no_interval_commits_while_commits_are_paused() {
    let mut options = options();
    options.commit.every_requests = Some(10);
    let mut array = full(&options);
    array.run(|engine, tag| engine.commit(tag)).unwrap();
    assert!(array.engine().pause_commits());
    for update in 0..35 {
        write(&mut array, update * 3 * CHUNK, &[200; CHUNK as usize], Durability::Volatile).unwrap();
    }
    assert_eq!(dirty(&array), 35);
    // One that came due meanwhile is due still.
    assert!(array.engine().resume_commits());
    assert_eq!(turns(&mut array, 2000), None);
    assert_eq!(dirty(&array), 0);
}

#[test]
fn a_paused_commit_does_not_hold_up_a_stop() {
    let mut array = with_dirty(&options(), 100);
    assert!(array.engine().pause_commits());
    array.engine().commit(COMMIT);
    assert_eq!(turns(&mut array, 10), None);
    array.stop().unwrap();
    let mut answers = Vec::new();
    array.take_answers(&mut answers);
    assert!(answers.iter().any(|done| done.tag == COMMIT && done.result == Err(EngineError::Stopping)));
    let (mut array, report) = assemble(array.into_devices(), MEMBERS, options());
    assert!(report.was_clean && dirty(&array) == 100);
    array.run(|engine, tag| engine.commit(tag)).unwrap();
    assert_eq!(dirty(&array), 0);
}

#[test]
fn whoever_waits_for_a_paused_commit_is_told_when_the_array_fails() {
    let mut array = with_dirty(&options(), 100);
    assert!(array.engine().pause_commits());
    array.engine().commit(COMMIT);
    assert_eq!(turns(&mut array, 10), None);
    for dev in 0..2 {
        array.engine().fail_device(block::DevIndex::new(dev));
    }
    assert!(matches!(turns(&mut array, 100), Some(Err(_))));
}
