//! Activities by themselves, with a small core: each is driven by hand, no engine runs them.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

use super::Core;
use super::checkpoint::Checkpointer;
use super::confirm::Confirmation;
use super::flush::Flusher;
use super::members::Publisher;
use super::stop::Stop;
use super::{Activity, Deadline, Done, EngineError, EngineOptions};
use super::{Purpose, Tag};
use crate::bounds::Bounds;
use crate::{CreateOptions, NewArray, arrange, create, plan_config};
use block::{DevIndex, DeviceSet, Geometry, META_BYTES, OpKind, Seq, Stream};
use device::MemorySet;
use format::{ArrayUuid, CheckpointKind, CodeKind, Consistency, LayoutKind, SchemeKind, Superblock};

const MEMBERS: u16 = 4;

/// The core of an array of 2 + 1 members and a log device that was just created.
fn core(options: EngineOptions) -> Core {
    let create_options = CreateOptions {
        scheme: SchemeKind::Eplog,
        code: CodeKind::Xor,
        layout: LayoutKind::Spread,
        consistency: Consistency::Resync,
        geometry: Geometry::new(2, 1, 4096).unwrap(),
        reserve_permille: 150,
        unit_rows: None,
    };
    let size = 4 << 20;
    let config = plan_config(&create_options, size, size, 1).unwrap();
    let mut devices = MemorySet::new(&[size; MEMBERS as usize]).unwrap();
    let new = NewArray { uuid: ArrayUuid::new([7; 16]), name: "test".into(), nonce: 99, created_unix_s: 0 };
    create(&mut devices, config, &new).unwrap();
    let mut block = [0; META_BYTES];
    let mut superblock = |dev| {
        devices.read_now(dev, format::SUPERBLOCK_OFFSETS[1], &mut block).unwrap();
        Superblock::decode(&block, 1).unwrap()
    };
    let found: Vec<Superblock> = (0..MEMBERS).map(|dev| superblock(DevIndex::new(dev))).collect();
    let (parts, _) = crate::recovery::assemble(
        &mut devices,
        &arrange(&found).unwrap(),
        4242,
        Bounds::NONE,
        &mut || Ok(()),
    )
    .unwrap();
    Core::new(parts, options, crate::Policies::default())
}

/// Takes the operations issued so far, all of which end now: what they were for.
fn end_operations(core: &mut Core) -> Vec<(OpKind, Tag)> {
    let ops = std::mem::take(core.take_ops().0);
    ops.iter().map(|op| (op.kind, core.ops.flights.end_of(op.tag))).collect()
}

/// An operation of a round of superblocks ends well.
fn end(publisher: &mut Publisher, core: &mut Core, Tag { purpose, dev }: Tag) {
    if let Purpose::Superblock { slot } = purpose {
        publisher.written(core, dev, slot, Ok(()));
    } else {
        publisher.flushed_member(core, dev, Ok(()));
    }
}

fn answer(tag: u64) -> Done {
    Done { tag, result: Ok(()) }
}

#[test]
fn answers_are_held_until_every_member_has_its_superblock() {
    let mut core = core(EngineOptions::default());
    let mut publisher = Publisher::default();
    core.health.config_seq += 1;
    core.publish_members();
    core.finish(answer(1));
    assert!(core.answers.done.is_empty() && publisher.is_busy(&core));
    for step in [OpKind::Write, OpKind::Flush] {
        let ops = end_operations(&mut core);
        assert_eq!(ops.len(), usize::from(MEMBERS));
        for (kind, tag) in ops {
            assert!(kind == step && !core.board.flush.unfenced);
            end(&mut publisher, &mut core, tag);
        }
    }
    assert_eq!((core.answers.done.as_slice(), core.board.flush.unfenced), (&[answer(1)][..], true));
    assert_eq!(core.board.members.published(), core.health.config_seq);
    assert_eq!(publisher.left_undone(&core), None);
}

#[test]
fn naming_what_is_durable_holds_back_no_answer_until_the_members_change() {
    let mut core = core(EngineOptions::default());
    let mut publisher = Publisher::default();
    core.publish_durable();
    core.finish(answer(1));
    assert_eq!(std::mem::take(&mut core.answers.done), [answer(1)]);
    assert!(publisher.is_busy(&core) && !core.may_name_durable());
    // One fails meanwhile: the others are to know of it, by a round of its own.
    core.fail_member(DevIndex::new(0), crate::FailCause::Asked);
    core.finish(answer(2));
    for round in [usize::from(MEMBERS), usize::from(MEMBERS) - 1] {
        for operations in [round, usize::from(MEMBERS) - 1] {
            assert!(core.answers.done.is_empty());
            let ops = end_operations(&mut core);
            assert_eq!(ops.len(), operations);
            ops.into_iter().for_each(|(_, tag)| end(&mut publisher, &mut core, tag));
        }
    }
    assert_eq!(core.answers.done, [answer(2)]);
    assert_eq!(core.board.members.published(), core.health.config_seq);
    assert_eq!(publisher.left_undone(&core), None);
}

#[test]
fn what_changes_during_a_round_is_told_by_the_next_one() {
    let mut core = core(EngineOptions::default());
    let mut publisher = Publisher::default();
    core.health.config_seq += 1;
    core.publish_members();
    core.health.config_seq += 1;
    core.publish_members();
    core.finish(answer(1));
    let mut writes = 0;
    loop {
        let ops = end_operations(&mut core);
        if ops.is_empty() {
            break;
        }
        for (kind, tag) in ops {
            writes += usize::from(kind == OpKind::Write);
            end(&mut publisher, &mut core, tag);
        }
    }
    assert_eq!((writes, core.answers.done.len()), (2 * usize::from(MEMBERS), 1));
    assert_eq!(core.board.members.published(), core.health.config_seq);
}

/// Torn on every member, a round must leave the one before it, whatever has changed in between.
#[test]
fn the_copies_of_superblocks_are_written_in_turn() {
    for changes in 1..5 {
        let mut core = core(EngineOptions::default());
        let mut publisher = Publisher::default();
        let mut written = Vec::new();
        core.health.config_seq += 1;
        core.publish_members();
        for _ in 0..changes {
            core.health.config_seq += 1;
            core.publish_members();
        }
        while publisher.is_busy(&core) {
            let writes = core.ops.list.iter().filter(|op| op.kind == OpKind::Write);
            written.extend(writes.map(|op| op.offset_bytes).take(1));
            for (_, tag) in end_operations(&mut core) {
                end(&mut publisher, &mut core, tag);
            }
        }
        assert!(written.len() == 2 && written[0] != written[1], "{changes} changes: {written:?}");
        assert_eq!(core.board.members.published(), core.health.config_seq, "{changes} changes");
    }
}

/// A round that a successor alone is told must not make the next one go over the newest copy of the others,
/// nor over the only one of the successor.
#[test]
fn the_copies_of_superblocks_are_written_in_turn_with_a_successor_too() {
    let mut core = core(EngineOptions::default());
    let mut publisher = Publisher::default();
    let mut last = vec![None; usize::from(MEMBERS)];
    let mut writes = 0;
    let successor = DevIndex::new(1);
    core.health.config_seq += 1;
    core.publish_members();
    for step in 0..4 {
        match step {
            1 => assert!(core.succeed(successor, 77)),
            2 => core.tell_of_successor(),
            3 => core.publish_durable(),
            _ => (),
        }
        while publisher.is_busy(&core) {
            for op in core.ops.list.iter().filter(|op| op.kind == OpKind::Write) {
                let before = last[op.dev.index()].replace(op.offset_bytes);
                assert!(
                    before != Some(op.offset_bytes) || (step, op.dev) == (1, successor),
                    "{step}: {op:?}"
                );
                writes += 1;
            }
            for (_, tag) in end_operations(&mut core) {
                end(&mut publisher, &mut core, tag);
            }
        }
    }
    assert_eq!(writes, 3 * usize::from(MEMBERS) + 1);
}

#[test]
fn a_flush_flushes_who_was_written_to_and_answers_who_waited() {
    let mut core = core(EngineOptions::default());
    let mut flusher = Flusher::default();
    core.board.flush.wrote(DevIndex::new(2));
    core.flush(5);
    flusher.drive(&mut core);
    let ops = end_operations(&mut core);
    assert_eq!(ops.len(), 1);
    assert_eq!(ops[0], (OpKind::Flush, Tag { purpose: Purpose::Flush, dev: DevIndex::new(2) }));
    core.flush(6); // joins the next one
    flusher.device_flushed(&mut core, DevIndex::new(2), Ok(()));
    assert_eq!((core.answers.done.as_slice(), core.board.flush.ended.take()), (&[answer(5)][..], Some(1)));
    flusher.drive(&mut core);
    assert_eq!((core.answers.done.len(), core.board.flush.ended), (2, Some(2)));
    assert_eq!(flusher.left_undone(&core), None);
}

#[test]
fn a_flush_ends_only_when_the_members_know_of_a_failure() {
    let mut core = core(EngineOptions::default());
    let mut flusher = Flusher::default();
    core.flush(5);
    core.fail_member(DevIndex::new(0), crate::FailCause::Asked);
    flusher.drive(&mut core);
    assert!(core.board.flush.ended.is_none() && flusher.is_busy(&core));
    core.answers.fence = false;
    flusher.unfenced(&mut core);
    assert_eq!((core.answers.done.as_slice(), core.board.flush.ended), (&[answer(5)][..], Some(1)));
}

#[test]
fn a_stop_waits_for_a_checkpoint_of_what_changed() {
    let mut core = core(EngineOptions::default());
    core.publish_clean(9);
    core.jobs.retired = core.board.checkpoint.through.next();
    Stop.drive(&mut core);
    assert!(core.board.checkpoint.is_busy() && !core.board.members.clean && !core.accepts_writes());
    let mut core = self::core(EngineOptions::default());
    core.publish_clean(9);
    Stop.drive(&mut core);
    assert!(core.board.members.clean && core.board.members.is_publishing());
    assert_eq!(core.ops.list.iter().filter(|op| op.stream == Stream::Metadata).count(), usize::from(MEMBERS));
}

#[test]
fn a_frozen_array_writes_no_checkpoint_and_says_so() {
    let mut core = core(EngineOptions::default());
    let request = core.open_control(3);
    core.board.checkpoint.want(request, CheckpointKind::Full);
    core.board.frozen = true;
    Checkpointer::default().drive_frozen(&mut core);
    assert_eq!(core.answers.done, [Done { tag: 3, result: Err(EngineError::ArrayFailed) }]);
    assert!(core.ops.are_taken() && !core.board.checkpoint.is_busy());
}

#[test]
fn what_the_last_flush_made_durable_is_named_when_nothing_comes() {
    let options = EngineOptions { confirm_idle_ns: Some(50), ..EngineOptions::default() };
    let mut core = core(options);
    core.board.last_request_ns = 100;
    core.board.members.confirmed_through = Seq::new(0);
    core.board.flush.checkpointed(Seq::new(7));
    assert_eq!(Confirmation.deadline(&core), Some(Deadline::Work(150)));
    core.now_ns = 149;
    Confirmation.drive(&mut core);
    assert!(core.ops.are_taken());
    core.now_ns = 150;
    Confirmation.drive(&mut core);
    assert_eq!((core.ops.list.len(), core.board.members.confirmed_through), (4, Seq::new(7)));
    assert_eq!(Confirmation.deadline(&core), None);
}

/// Of an array whose table is paged, so many records that no checkpoint holds.
fn core_behind(records: u64) -> Core {
    let mut core = core(EngineOptions::default());
    let config = core.store.config;
    core.store.table.set_bytes_max(&config, 0);
    core.jobs.retired = Seq::new(core.board.checkpoint.through.get() + records);
    assert!(core.store.table.is_paged());
    core
}

#[test]
fn records_that_came_quickly_make_a_checkpoint_due_when_they_are_old() {
    // Small arrays: 64 records, twice as old as they would be if one came in 120 us, as no page changed.
    let due_ns = 2 * 64 * 120_000;
    let mut checkpointer = Checkpointer::default();
    assert_eq!(checkpointer.deadline(&core_behind(64)), None);
    let mut core = core_behind(65);
    assert_eq!(checkpointer.deadline(&core), Some(Deadline::Room(due_ns)));
    core.now_ns = due_ns - 1;
    checkpointer.drive(&mut core);
    assert!(!core.board.checkpoint.is_busy());
    core.now_ns = due_ns;
    checkpointer.drive(&mut core);
    assert!(core.board.checkpoint.is_under_way());
    assert_eq!(checkpointer.deadline(&core), None);
}

#[test]
fn very_many_records_make_a_checkpoint_due_at_once() {
    for (records, is_due) in [(64 * 32, false), (64 * 32 + 1, true)] {
        let (mut checkpointer, mut core) = (Checkpointer::default(), core_behind(records));
        checkpointer.drive(&mut core);
        assert_eq!(core.board.checkpoint.is_under_way(), is_due, "{records} records");
    }
}
