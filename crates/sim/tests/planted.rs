//! Each planted bug is found within a bounded number of worlds; without one, the same worlds are fine.
#![allow(
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    reason = "tests may panic; most bugs need nothing special"
)]

use array::{Planted, plant};
use format::SchemeKind;
use sim::{Pinned, Scarce, Script, replay_command, run_caught};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;

/// Worlds that may be needed to find a bug; most need a few dozen.
const WORLDS_MAX: u64 = 40_000;

/// Bugs of which worlds have become so rare that a hunt takes longer than all others together: hunted when
/// they are named by `ELASTRIPE_SIM_PLANT`.
const RARE: [Planted; 2] = [Planted::PatrolSkipsJournal, Planted::ScrubUnflushed];

/// Worlds in which the bug has a chance to do harm.
fn worlds_for(bug: Planted) -> Pinned {
    let scheme = match bug {
        Planted::OverwriteUnflushed
        | Planted::RedoOneByOne
        | Planted::CheckpointUnsealed
        | Planted::DiscardEdgesApart
        | Planted::ForgetStopCheckpoint
        | Planted::PatrolSkipsIncremental
        | Planted::CopyWhatIsWritten
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
        | Planted::PatrolSkipsJournal => SchemeKind::Elastic,
        Planted::DurableBeforeFence => SchemeKind::Was,
        _ => SchemeKind::Eplog,
    };
    let scarce = (bug == Planted::CheckpointUnsealed).then_some(Scarce::Stripes);
    let blackouts = matches!(
        bug,
        Planted::DurableBeforeFence
            | Planted::WriteOnWhenFailed
            | Planted::TellPastTolerance
            | Planted::WipeReturned
    );
    let ruin = matches!(
        bug,
        Planted::OlderEpoch
            | Planted::IgnoreGap
            | Planted::DropAfterStop
            | Planted::ForgetStopCheckpoint
            | Planted::ForgetLost
            | Planted::KeepLost
            | Planted::NameOldFlush
            | Planted::SuspectNothing
    );
    let rot = is_about_rot(bug);
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
    }
}

/// Whether metadata has to rot for it to do harm.
fn is_about_rot(bug: Planted) -> bool {
    matches!(
        bug,
        Planted::PatrolSkipsIncremental
            | Planted::PatrolSkipsSlots
            | Planted::PatrolSkipsJournal
            | Planted::KeepBadSuperblock
            | Planted::ScrubUnflushed
    )
}

/// Whether members have to come back for it to do harm.
fn is_about_returns(bug: Planted) -> bool {
    matches!(
        bug,
        Planted::LeaveTooLate
            | Planted::ReplayMissesNothing
            | Planted::ReturnUnchecked
            | Planted::TrustReturned
            | Planted::AwayHasDurable
            | Planted::ReturnForgetsPlanned
            | Planted::ReturnUnsealed
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
            | Planted::FirstShardFirst
            | Planted::ReplaceUnfailed
            | Planted::ReplaceWhileBusy
            | Planted::RebuildFirstShardOnly
            | Planted::WipeReturned
            | Planted::AnyShardsSuperblock
            | Planted::TellBetween
            | Planted::SucceedFirstShardFirst
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

/// What is found, if anything.
fn hunt(bug: Planted) -> Option<String> {
    if bug == Planted::ReuseBeforePersisted {
        return hunt_script(bug, &Script::reuse());
    }
    let pinned = worlds_for(bug);
    plant(Some(bug));
    let found = (0..WORLDS_MAX).find_map(|seed| Some((seed, run_caught(seed, pinned, false).err()?)));
    plant(None);
    let (seed, violation) = found?;
    let fine = run_caught(seed, pinned, false);
    assert!(fine.is_ok(), "without a planted bug: {}", replay_command(seed, pinned));
    Some(format!("{bug:?}: world {}: {:.160}", seed + 1, violation.to_string()))
}

/// For what is too improbable in worlds drawn at random.
fn hunt_script(bug: Planted, script: &Script) -> Option<String> {
    plant(Some(bug));
    let found = catch_unwind(AssertUnwindSafe(|| script.every_cut()));
    plant(None);
    let what = match found {
        Ok(outcome) => outcome.err()?.to_string(),
        Err(_) => "panicked".to_owned(),
    };
    Some(format!("{bug:?}: {what:.160}"))
}

#[test]
fn every_planted_bug_is_found() {
    let only = std::env::var("ELASTRIPE_SIM_PLANT").ok();
    let wanted = |bug: &&Planted| match &only {
        Some(only) => *only == format!("{bug:?}"),
        None => !RARE.contains(bug),
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
