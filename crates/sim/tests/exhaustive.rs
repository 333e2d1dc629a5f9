//! Power cuts at every operation of small plans, and at every operation of the recovery from some of them.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

use format::SchemeKind;
use sim::{Area, Script, Tear};

fn check(name: &str, worlds: Result<u64, sim::Violation>) {
    match worlds {
        Ok(worlds) => println!("{name}: {worlds} worlds"),
        Err(violation) => panic!("{name}: {violation}"),
    }
}

#[test]
fn every_cut_of_an_everyday_plan() {
    check("eplog 2+1", Script::everyday(SchemeKind::Eplog, 1).every_cut());
    check("raid 2+1", Script::everyday(SchemeKind::Raid, 1).every_cut());
    check("parity-log 2+1", Script::everyday(SchemeKind::ParityLog, 1).every_cut());
    check("elastic 2+1", Script::everyday(SchemeKind::Elastic, 1).every_cut());
}

#[test]
fn every_cut_while_garbage_is_collected() {
    let script = Script::collecting(SchemeKind::Elastic);
    let collected = script.units_collected().unwrap();
    assert!(collected >= 3, "the script makes {collected} units be collected");
    check("elastic 2+1, collecting", script.every_cut());
}

#[test]
fn every_cut_of_a_replacement() {
    check("eplog 2+1", Script::replacement(SchemeKind::Eplog, 1).every_cut());
    check("parity-log 2+1", Script::replacement(SchemeKind::ParityLog, 1).every_cut());
    check("elastic 2+1", Script::replacement(SchemeKind::Elastic, 1).every_cut());
}

#[test]
fn every_cut_of_recovery() {
    let script = Script::everyday(SchemeKind::Eplog, 1);
    for after in [60, 150, 260, 330] {
        for (tear, lost) in [(Tear::KeepAll, None), (Tear::Sectors, Some(1)), (Tear::LoseAll, Some(3))] {
            check("recovery", script.every_cut_of_recovery(after, tear, lost));
        }
    }
}

#[test]
fn every_cut_while_space_is_reused() {
    check("eplog 4+1", Script::reuse().every_cut());
}

#[test]
fn every_loss_after_a_scrub_mended() {
    for area in [Area::Chunks, Area::Journal] {
        for scheme in [SchemeKind::Eplog, SchemeKind::Raid, SchemeKind::ParityLog, SchemeKind::Elastic] {
            for dev in 0..3 {
                let name = format!("{scheme} 2+1, {area:?} of {dev}");
                check(&name, Script::mending(scheme, dev, area).every_loss_at_the_end());
            }
        }
    }
}

#[test]
fn every_loss_after_a_member_was_replaced_late() {
    for scheme in [SchemeKind::Eplog, SchemeKind::Raid, SchemeKind::ParityLog, SchemeKind::Elastic] {
        for flushes in 1..=3 {
            let name = format!("{scheme} 2+1, {flushes} flushes after a replacement");
            check(&name, Script::replaced_late(scheme, flushes).every_loss_at_the_end());
        }
    }
}

#[test]
fn every_cut_of_growth_and_every_loss_after_it() {
    for scheme in [SchemeKind::Raid, SchemeKind::Eplog] {
        check(&format!("{scheme} 2+1, two shards"), Script::growing(scheme).every_cut_of_growth());
    }
}

#[test]
fn every_start_without_the_member_that_is_replaced() {
    for scheme in [SchemeKind::Eplog, SchemeKind::Elastic] {
        check(&format!("{scheme} 2+1"), Script::rebuilt_in_steps(scheme, 7).every_start_without(0));
    }
}

#[test]
fn every_start_that_replaces_the_member_that_is_replaced() {
    for scheme in [SchemeKind::Eplog, SchemeKind::Raid, SchemeKind::Elastic] {
        let script = Script::replacement(scheme, 1);
        check(&format!("{scheme} 2+1"), script.every_start_that_replaces(0));
    }
}

#[test]
fn every_start_that_finds_a_member_cut_short() {
    for scheme in [SchemeKind::Eplog, SchemeKind::Raid, SchemeKind::ParityLog, SchemeKind::Elastic] {
        check(&format!("{scheme} 2+1"), Script::everyday(scheme, 1).every_start_without_an_end());
    }
}

#[test]
fn every_device_of_another_course() {
    for scheme in [SchemeKind::Eplog, SchemeKind::Raid, SchemeKind::ParityLog, SchemeKind::Elastic] {
        check(&format!("{scheme} 2+1"), Script::everyday(scheme, 1).every_device_of_another_course());
    }
}

#[test]
fn every_copy_put_back() {
    for scheme in [SchemeKind::Eplog, SchemeKind::Raid, SchemeKind::ParityLog, SchemeKind::Elastic] {
        check(&format!("{scheme} 2+1"), Script::everyday(scheme, 1).every_copy_put_back());
    }
}
