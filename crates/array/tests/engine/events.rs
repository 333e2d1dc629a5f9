//! What the engine tells of the array besides answers: that a member failed and of what, and when work on all
//! of it began and ended.

use crate::common::{Ailing, EIO, create_options, fresh, options, superblocks};
use array::{Array, AssembleError, EngineError, Event, FailCause, WorkKind, WorkOrigin, arrange};
use block::{DevIndex, Durability, OpKind, Stream};
use format::SchemeKind;

const CHUNK: u64 = 4096;

fn ailing() -> Array<Ailing> {
    assembled_without(&[]).unwrap()
}

/// The array, assembled while nothing can be written to some members.
fn assembled_without(mute: &[u16]) -> Result<Array<Ailing>, AssembleError> {
    let create = create_options(SchemeKind::Raid, 4, 2);
    let mut inner = fresh(&create, 12, 64);
    let arrangement = arrange(&superblocks(&mut inner, 6)).unwrap();
    let mute = mute.iter().copied().map(DevIndex::new).collect();
    let mut devices = Ailing::new(inner);
    devices.layer.mute = mute;
    Ok(Array::assemble(devices, &arrangement, 9, options())?.0)
}

/// Writes the first stripe a few times, whatever comes of it.
fn write_some(array: &mut Array<Ailing>, times: usize) {
    let mut slots = Vec::new();
    assert!(array.engine().take_slots(4, &mut slots));
    for _ in 0..times {
        array.run(|e, tag| e.write(tag, 0, 4 * CHUNK, &slots, Durability::Durable)).unwrap();
    }
    slots.into_iter().for_each(|slot| array.engine().pool().free(slot));
}

fn events(array: &mut Array<Ailing>) -> Vec<Event> {
    let mut events = Vec::new();
    array.engine().take_events(&mut events);
    events
}

#[test]
fn a_member_that_fails_says_of_which_operation_and_with_what_errno() {
    for kind in [OpKind::Write, OpKind::Flush] {
        let mut array = ailing();
        write_some(&mut array, 100);
        assert_eq!(events(&mut array), [], "requests are no events");
        let dev = DevIndex::new(2);
        array.devices().layer.bad = Some((dev, kind));
        write_some(&mut array, 2);
        let told = events(&mut array);
        let [Event::MemberFailed { dev: which, cause: FailCause::Fault(fault) }] = told[..] else {
            panic!("one member failed: {told:?}");
        };
        assert_eq!((which, fault.kind, fault.fault), (dev, kind, EIO));
        assert_eq!(fault.length_bytes > 0, kind == OpKind::Write, "{fault:?}");
        let trouble = array.engine().member_trouble(dev);
        assert_eq!((trouble.last_fault, trouble.failed), (Some(fault), Some(FailCause::Fault(fault))));
        assert_eq!(events(&mut array), [], "an event is told once");
    }
}

#[test]
fn a_read_that_fails_is_remembered_and_fails_nobody() {
    let mut array = ailing();
    write_some(&mut array, 1);
    let devices: Vec<DevIndex> = (0..6).map(DevIndex::new).collect();
    let mut slots = Vec::new();
    assert!(array.engine().take_slots(1, &mut slots));
    for dev in devices {
        array.devices().layer.bad = Some((dev, OpKind::Read));
        array.run(|e, tag| e.read(tag, 0, CHUNK, &slots)).unwrap();
    }
    assert_eq!(events(&mut array), []);
    let faults: Vec<_> =
        (0..6).filter_map(|dev| array.engine().member_trouble(DevIndex::new(dev)).last_fault).collect();
    let [fault] = faults[..] else { panic!("the chunk is on one member: {faults:?}") };
    assert_eq!((fault.kind, fault.stream, fault.fault), (OpKind::Read, Some(Stream::Data), EIO));
}

#[test]
fn work_on_all_of_the_array_is_told_from_its_beginning_to_its_end() {
    let mut array = ailing();
    write_some(&mut array, 1);
    array.run(|e, tag| e.scrub(tag, 0)).unwrap();
    let told = events(&mut array);
    let origin = WorkOrigin::Request;
    assert_eq!(told[0], Event::WorkBegan { kind: WorkKind::Scrub, origin });
    assert!(
        matches!(told[1..], [Event::WorkEnded { kind: WorkKind::Scrub, found, .. }] if found.completed),
        "{told:?}"
    );

    let dev = DevIndex::new(1);
    array.engine().fail_device(dev);
    array.settle();
    assert_eq!(events(&mut array), [Event::MemberFailed { dev, cause: FailCause::Asked }]);
    array.devices().inner.replace(dev, 12 << 20).unwrap();
    array.run(|e, tag| e.rebuild(tag, dev, 7)).unwrap();
    let told = events(&mut array);
    assert_eq!(
        told[..2],
        [Event::WorkBegan { kind: WorkKind::Rebuild, origin }, Event::MemberRebuilt { dev }]
    );
    assert!(
        matches!(told[2..], [Event::WorkEnded { kind: WorkKind::Rebuild, found, .. }] if found.completed),
        "{told:?}"
    );
}

#[test]
fn a_rebuild_that_cannot_begin_says_why() {
    let mut array = ailing();
    let (dev, unknown) = (DevIndex::new(1), DevIndex::new(9));
    let in_service = array.run(|e, tag| e.rebuild(tag, dev, 7));
    assert_eq!(in_service, Err(EngineError::MemberInService { dev }));
    let nobody = array.run(|e, tag| e.rebuild(tag, unknown, 7));
    assert_eq!(nobody, Err(EngineError::UnknownMember { dev: unknown }));
    let told = events(&mut array);
    let refused = |event: &Event| matches!(event, Event::WorkEnded { found, .. } if !found.completed);
    assert!(told.len() == 2 && told.iter().all(refused), "{told:?}");
}

#[test]
fn a_member_that_fails_during_assembly_is_told_of_like_any_other() {
    let mut array = assembled_without(&[3]).unwrap();
    let told = events(&mut array);
    let [Event::MemberFailed { dev, cause: FailCause::Fault(fault) }] = told[..] else {
        panic!("one member failed: {told:?}");
    };
    assert_eq!((dev, fault.kind, fault.fault), (DevIndex::new(3), OpKind::Write, EIO));
    assert_eq!(array.engine().member_trouble(dev).last_fault, Some(fault));
}

#[test]
fn too_many_failures_during_assembly_are_named_each_with_its_operation() {
    let Err(error @ AssembleError::TooManyFaults(_)) = assembled_without(&[0, 1, 3]).map(|_| ()) else {
        panic!("the array bears two");
    };
    let text = error.to_string();
    for dev in ["device 0 (write of ", "device 1 (write of ", "device 3 (write of "] {
        assert!(text.contains(dev) && text.contains("(errno 5)"), "{text}");
    }
}
