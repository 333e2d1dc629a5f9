//! Each planted bug is found within a bounded number of worlds; without one, the same worlds are fine.
//!
//! `planted_worlds.txt` says in which world each was found last. That one is tried first, and the others from
//! 0 on only if it finds nothing, as after a change of what worlds do. `ELASTRIPE_SIM_HUNT=anew` goes without
//! it, and prints the lines of a new one; `ELASTRIPE_SIM_PLANT` names a single bug.
#![allow(
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    reason = "tests may panic; most bugs need nothing special"
)]

use array::{Planted, plant};
use format::SchemeKind;
use sim::{Area, Pinned, Scarce, Script, Violation, replay_command, run_caught};
use std::panic::catch_unwind;
use std::sync::Mutex;

/// Worlds that may be needed to find a bug; most need a few dozen.
const WORLDS_MAX: u64 = 40_000;

/// Worlds in which the bug has a chance to do harm.
fn worlds_for(bug: Planted) -> Pinned {
    let scheme = match bug {
        Planted::OverwriteUnflushed
        | Planted::ChainOverGap
        | Planted::RedoOneByOne
        | Planted::CheckpointUnsealed
        | Planted::DiscardEdgesApart
        | Planted::ForgetStopCheckpoint
        | Planted::PatrolSkipsIncremental
        | Planted::CopyWhatIsWritten
        | Planted::StripeCacheKeepsOld
        | Planted::StripeCacheLetsGo
        | Planted::StripeCacheFilledEarly
        | Planted::KeepBadSuperblock => SchemeKind::Raid,
        Planted::CommitForgetsDelta
        | Planted::KeepVoidDeltas
        | Planted::OverwriteBeforeLog
        | Planted::RedoWithoutLog
        | Planted::GrowForgetsList => SchemeKind::ParityLog,
        Planted::ShortStripeAsWide
        | Planted::MoveOverNewer
        | Planted::FreeUnitEarly
        | Planted::GrowthForgetsBefore
        | Planted::TrimOpenParity
        | Planted::OpenRowAsWritten
        | Planted::GrowWhileBusy
        | Planted::KeepWhatBuildsOnDropped
        | Planted::TrimUnitEarly
        | Planted::RebuildBeforeKnown
        | Planted::FrameOverItself
        | Planted::PositionBeforeFlush
        | Planted::GrowLeavesRows
        | Planted::PromiseRowsBeyond
        | Planted::PatrolSkipsJournal => SchemeKind::Elastic,
        Planted::DurableBeforeFence => SchemeKind::Was,
        _ => SchemeKind::Eplog,
    };
    let scarce = match bug {
        Planted::CheckpointUnsealed => Some(Scarce::Stripes),
        Planted::PromiseRowsBeyond => Some(Scarce::Space),
        // Else the journal still has what is lost with the checkpoint.
        Planted::BesideOnNewMembers => Some(Scarce::Journal),
        _ => None,
    };
    let blackouts = matches!(
        bug,
        Planted::DurableBeforeFence
            | Planted::WriteOnWhenFailed
            | Planted::TellPastTolerance
            | Planted::ShownAsFirstShardHasIt
            | Planted::WipeReturned
    );
    let (rot, ruin) = (is_about_rot(bug), is_about_ruin(bug));
    let returns = is_about_returns(bug);
    let (succeeds, hangs) = (is_about_successors(bug), is_about_silence(bug));
    let shards = Some(shards_for(bug));
    Pinned {
        scheme: Some(scheme),
        scarce,
        blackouts,
        ruin,
        rot,
        returns,
        succeeds,
        hangs,
        shards,
        grows: is_about_growth(bug),
        maims: bug == Planted::MaimedComesBack,
    }
}

/// Whether more has to be lost than the code bears for it to do harm.
fn is_about_ruin(bug: Planted) -> bool {
    matches!(
        bug,
        Planted::OlderEpoch
            | Planted::ChainOverGap
            | Planted::IgnoreGap
            | Planted::ForcedToldLate
            | Planted::DropAfterStop
            | Planted::ForgetStopCheckpoint
            | Planted::ForgetLost
            | Planted::KeepLost
            | Planted::NameOldFlush
            | Planted::SuspectNothing
    )
}

/// Whether metadata has to rot for it to do harm.
fn is_about_rot(bug: Planted) -> bool {
    matches!(bug, Planted::PatrolSkipsIncremental | Planted::PatrolSkipsSlots | Planted::KeepBadSuperblock)
}

/// Whether members have to come back for it to do harm.
fn is_about_returns(bug: Planted) -> bool {
    matches!(
        bug,
        Planted::LeaveTooLate
            | Planted::ReplayMissesNothing
            | Planted::ReturnUnchecked
            | Planted::TrustReturned
            | Planted::MaimedComesBack
            | Planted::AwayHasDurable
            | Planted::ReturnForgetsPlanned
            | Planted::ReturnUnsealed
            | Planted::ReturnLacksPages
            | Planted::CopyForFirst
    )
}

/// Whether members that work have to be replaced for it to do harm.
fn is_about_successors(bug: Planted) -> bool {
    matches!(
        bug,
        Planted::SuccessorToldLast
            | Planted::SucceedEarly
            | Planted::TellBetween
            | Planted::SucceedFirstShardFirst
            | Planted::CopyUnlocked
            | Planted::CopyWhatIsWritten
            | Planted::FlushMemberOnly
            | Planted::PartnerOwesWhileStopped
            | Planted::SkipWhatIsWritten
            | Planted::SkipWhatIsUnknown
            | Planted::SucceedUnread
    )
}

/// Whether devices have to become larger for it to do harm.
fn is_about_growth(bug: Planted) -> bool {
    matches!(
        bug,
        Planted::GrowCommitsFirst
            | Planted::GrowTellsOne
            | Planted::GrowOverMetadata
            | Planted::GrowLeavesRows
            | Planted::GrowForgetsList
            | Planted::GrowLeavesHalfTold
            | Planted::UnitsOfTheNext
            | Planted::PastTheUnit
            | Planted::RoomOfTheFirst
    )
}

/// Whether devices have to hang for it to do harm.
fn is_about_silence(bug: Planted) -> bool {
    matches!(
        bug,
        Planted::StoppedCountsAsSilent
            | Planted::ShelfThrownOut
            | Planted::SilenceUntold
            | Planted::GiveUpBeforeSubmit
            | Planted::NumberUsedAgain
    )
}

/// How many shards the array has; what is wrong with a single one is looked for there.
fn shards_for(bug: Planted) -> u16 {
    let of_shards = matches!(
        bug,
        Planted::FanAnswersFirst
            | Planted::FanForgetsError
            | Planted::FirstShareOnly
            | Planted::ShareOfRoundBefore
            | Planted::RunPastUnit
            | Planted::SlicesOverlap
            | Planted::ShardsShareUuid
            | Planted::TellNobody
            | Planted::TellPastTolerance
            | Planted::ShownAsFirstShardHasIt
            | Planted::FirstShardFirst
            | Planted::ReplaceUnfailed
            | Planted::ReplaceWhileBusy
            | Planted::RebuildFirstShardOnly
            | Planted::WipeReturned
            | Planted::AnyShardsSuperblock
            | Planted::TellBetween
            | Planted::SucceedFirstShardFirst
            | Planted::GrowLeavesHalfTold
            | Planted::UnitsOfTheNext
            | Planted::PastTheUnit
            | Planted::RoomOfTheFirst
    );
    match bug {
        // With more shards more steps lie between the member's last write and the first of the new device.
        Planted::ReplaceWhileBusy => 4,
        // With two shards the first of them must be one that gave the device up, and the other needs it.
        Planted::WipeReturned => 3,
        _ if of_shards => 2,
        _ => 1,
    }
}

/// The world in which a bug was found last.
fn last_found(bug: Planted) -> Option<u64> {
    let anew = std::env::var("ELASTRIPE_SIM_HUNT").is_ok_and(|how| how == "anew");
    if anew {
        return None;
    }
    let name = format!("{bug:?}");
    include_str!("planted_worlds.txt")
        .lines()
        .filter_map(|line| line.split_once(' '))
        .find(|(of, _)| *of == name)
        .map(|(_, seed)| seed.parse().expect("a seed"))
}

/// What is found, if anything.
fn hunt(bug: Planted) -> Option<String> {
    if let Some(scripted) = scripted(bug) {
        return scripted;
    }
    let pinned = worlds_for(bug);
    plant(Some(bug));
    let mut seeds = last_found(bug).into_iter().chain(0..WORLDS_MAX);
    let found = seeds.find_map(|seed| Some((seed, run_caught(seed, pinned, false).err()?)));
    plant(None);
    let (seed, violation) = found?;
    let fine = run_caught(seed, pinned, false);
    assert!(fine.is_ok(), "without a planted bug: {}", replay_command(seed, pinned));
    Some(format!("{bug:?} {seed}\n    {:.160}", violation.to_string()))
}

/// What is found of a bug for which worlds drawn at random hardly ever come to what it spoils.
fn scripted(bug: Planted) -> Option<Option<String>> {
    match bug {
        Planted::ReuseBeforePersisted => Some(hunt_script(bug, &[Script::reuse()], Script::every_cut)),
        Planted::PatrolSkipsJournal => {
            let scripts = [0, 1, 2].map(|dev| Script::mending(SchemeKind::Eplog, dev, Area::Journal));
            Some(hunt_script(bug, &scripts, Script::every_loss_at_the_end))
        }
        Planted::ScrubUnflushed => {
            let scripts = [0, 1, 2].map(|dev| Script::mending(SchemeKind::Raid, dev, Area::Chunks));
            Some(hunt_script(bug, &scripts, Script::every_loss_at_the_end))
        }
        Planted::RingsBeginAtTheirFirstBlock => {
            let scripts = [1, 2, 3].map(|flushes| Script::replaced_late(SchemeKind::Eplog, flushes));
            Some(hunt_script(bug, &scripts, Script::every_loss_at_the_end))
        }
        Planted::UpdateUsedAgain => {
            let scripts = [5, 7].map(|stripes| Script::rebuilt_in_steps(SchemeKind::Elastic, stripes));
            Some(hunt_script(bug, &scripts, |script| script.every_start_without(0)))
        }
        Planted::OlderCopyCounts => {
            Some(hunt_script(bug, &[Script::everyday(SchemeKind::Raid, 1)], Script::every_copy_put_back))
        }
        Planted::ForgetNamesAlone => Some(hunt_script(
            bug,
            &[Script::everyday(SchemeKind::Eplog, 1)],
            Script::every_device_of_another_course,
        )),
        Planted::SerialGivenTwice => {
            let scripts = [SchemeKind::Eplog, SchemeKind::Raid].map(|scheme| Script::replacement(scheme, 1));
            Some(hunt_script(bug, &scripts, |script| script.every_start_that_replaces(0)))
        }
        Planted::MaimedToldLate => Some(hunt_script(
            bug,
            &[Script::everyday(SchemeKind::Eplog, 1)],
            Script::every_start_without_an_end,
        )),
        Planted::GrowLeavesHalfTold => {
            let scripts = [Script::growing(SchemeKind::Raid)];
            Some(hunt_script(bug, &scripts, Script::every_cut_of_growth))
        }
        _ => None,
    }
}

/// What scripts find; without the bug they are in `exhaustive.rs`.
fn hunt_script(
    bug: Planted,
    scripts: &[Script],
    run: fn(&Script) -> Result<u64, Violation>,
) -> Option<String> {
    plant(Some(bug));
    let found = catch_unwind(|| scripts.iter().find_map(|script| run(script).err()));
    plant(None);
    let what = match found {
        Ok(violation) => violation?.to_string(),
        Err(_) => "panicked".to_owned(),
    };
    Some(format!("{bug:?}: {what:.160}"))
}

#[test]
fn every_planted_bug_is_found() {
    let only = std::env::var("ELASTRIPE_SIM_PLANT").ok();
    let wanted = |bug: &&Planted| match &only {
        Some(only) => *only == format!("{bug:?}"),
        None => true,
    };
    let left = Mutex::new(Planted::ALL.iter().filter(wanted).collect::<Vec<_>>());
    let missed = Mutex::new(Vec::new());
    let worker = || {
        loop {
            let Some(&bug) = left.lock().unwrap().pop() else { return };
            match hunt(bug) {
                Some(found) => println!("{found}"),
                None => missed.lock().unwrap().push(bug),
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(worker);
        }
    });
    let missed = missed.into_inner().unwrap();
    assert!(missed.is_empty(), "not found in {WORLDS_MAX} worlds each: {missed:?}");
}
