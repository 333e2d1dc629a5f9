//! Watching the members of a running array: what a round over the metadata found about a device, whether
//! its path still leads to it, and how many errors it made.

use crate::event::Event;
use crate::open::member_name;
use crate::running::Running;
use crate::units::{show_count, show_time};
use array::{Finding, MemberErrors};
use block::DevIndex;
use device::{Identity, Member, Whereabouts};
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::thread::{Builder, JoinHandle};

/// The log is told of errors at most this often,
const ERRORS_NS: u64 = 60_000_000_000;
/// and this long after the first one: repairs come a little later, and so do further errors.
const SETTLE_NS: u64 = 1_000_000_000;
/// How often it is asked whether somebody has seen where the paths lead.
const LOOKER_NS: u64 = 20_000_000;

/// See the module's documentation.
#[derive(Default)]
pub struct Watch {
    /// Rounds over the metadata that had begun when the paths were last looked at.
    rounds: u64,
    /// Who looks at them: that may hang.
    looker: Option<JoinHandle<Vec<Found>>>,
    /// Errors of each member that the log knows of.
    told: Option<Vec<u64>>,
    /// When the log may be told again.
    next_ns: u64,
    /// When it is to be told of errors that it does not know of; and how long that was from the last look on.
    due_ns: Option<u64>,
    due_in_ns: Option<u64>,
}

impl Watch {
    /// With each round over the metadata, looks where the paths lead. A member whose device will not be
    /// found again is as good as lost: it is taken out of service if the array bears that. Those that were.
    pub fn look(&mut self, running: &mut Running, events: &mut Vec<Event>) -> Vec<DevIndex> {
        let mut lost = Vec::new();
        let begun = running.engines().map(|engine| engine.patrol_rounds().0).sum();
        // Whoever hangs is not sent again.
        if std::mem::replace(&mut self.rounds, begun) != begun && self.looker.is_none() {
            self.looker = send_looker(running);
        }
        let Some(looker) = self.looker.take_if(|looker| looker.is_finished()) else { return lost };
        for (dev, device, whereabouts) in looker.join().unwrap_or_else(|panic| resume_unwind(panic)) {
            // Another one may have come meanwhile.
            if running.open_device(dev).is_none_or(|now| now.identity() != device) {
                continue;
            }
            let why = match whereabouts {
                Whereabouts::Here => continue,
                Whereabouts::Deleted => "was deleted: what is written to it is gone when the server stops",
                Whereabouts::Elsewhere => {
                    "is not what its path leads to now: the next start would find another"
                }
            };
            if running.engines().any(|engine| engine.health().is_writable(dev)) {
                let failed = running.missing_count() < running.lead().health().tolerated();
                if failed {
                    running.fail_device(dev);
                    lost.push(dev);
                }
                events.push(Event::Unfit { dev, why, failed });
            }
        }
        lost
    }

    /// What the log is to be told of errors: totals of a member, with its name, now and then.
    pub fn errors(&mut self, running: &Running) -> Vec<(String, String)> {
        let count = |errors: MemberErrors| errors.checksum + errors.read;
        let now: Vec<u64> = running.members().map(|dev| count(running.errors_of(dev))).collect();
        // What was counted before this start was told before it.
        let told = self.told.get_or_insert_with(|| now.clone());
        told.resize(now.len(), 0);
        // A device that is counted anew begins at zero.
        told.iter_mut().zip(&now).for_each(|(told, &now)| *told = now.min(*told));
        if told == &now {
            (self.due_ns, self.due_in_ns) = (None, None);
            return Vec::new();
        }
        let now_ns = running.now_ns();
        let due_ns = *self.due_ns.get_or_insert(self.next_ns.max(now_ns.saturating_add(SETTLE_NS)));
        if now_ns < due_ns {
            self.due_in_ns = Some(due_ns - now_ns);
            return Vec::new();
        }
        (self.due_ns, self.due_in_ns, self.next_ns) = (None, None, now_ns.saturating_add(ERRORS_NS));
        let lead = running.lead();
        let news = running.members().zip(now.iter().zip(told.iter())).filter(|(_, (now, told))| now > told);
        let lines = news
            .map(|(dev, _)| {
                let counted_since = lead.health().members()[dev.index()].counted_since_unix_s.into();
                let name = member_name(lead.store().main_count(), dev);
                let since = since(counted_since, lead.created_unix_s());
                let text = format!("{} {since}", describe_errors(&name, running.errors_of(dev)));
                (name, text)
            })
            .collect();
        self.told = Some(now);
        lines
    }

    /// In how many nanoseconds after the last look the next one is due.
    pub fn due_in_ns(&self) -> Option<u64> {
        let looks = self.looker.as_ref().map(|_| LOOKER_NS);
        self.due_in_ns.into_iter().chain(looks).min()
    }
}

/// A member, the device that it was, and what has become of its path.
type Found = (DevIndex, Identity, Whereabouts);

/// Has a thread look where the paths of the members in service lead.
fn send_looker(running: &Running) -> Option<JoinHandle<Vec<Found>>> {
    let in_service = running.members().filter(|&dev| running.is_in_service(dev));
    let devices: Vec<_> = in_service.filter_map(|dev| Some((dev, running.open_device(dev)?))).collect();
    let look = |(dev, device): (DevIndex, Member)| (dev, device.identity(), device.whereabouts());
    let work = move || devices.into_iter().map(look).collect();
    // Without a thread the next round may find one.
    Builder::new().name("paths".into()).spawn(work).ok()
}

/// `since 2026-11-22 01:58:09 UTC`.
pub fn since(counted_unix_s: u64, created_unix_s: u64) -> String {
    format!("since {}", show_time(if counted_unix_s > 0 { counted_unix_s } else { created_unix_s }))
}

/// `data1 returned wrong data 342 times and failed 1 read; 342 repaired`.
pub fn describe_errors(name: &str, errors: MemberErrors) -> String {
    let times = |count: u64, one: &str, many: &str| {
        if count == 1 { one.to_owned() } else { format!("{} {many}", show_count(count)) }
    };
    let mut did = Vec::new();
    if errors.checksum > 0 {
        did.push(format!("returned wrong data {}", times(errors.checksum, "once", "times")));
    }
    if errors.read > 0 {
        did.push(format!("failed {}", times(errors.read, "1 read", "reads")));
    }
    let repaired = match errors.healed {
        0 => "none was repaired".to_owned(),
        healed if healed >= errors.checksum + errors.read => "all were repaired".to_owned(),
        healed => format!("{} chunks were repaired", show_count(healed)),
    };
    format!("{name} {} ({repaired})", did.join(" and "))
}

/// What a round over the metadata found about a device.
pub fn describe_finding(found: Finding) -> &'static str {
    match found {
        Finding::Truncated => "ends before its layout does: it was truncated",
        Finding::Foreign => "holds the superblocks of another member or array: it was overwritten",
    }
}

/// What is said of a device that is useless as the member it is.
pub fn describe_unfit(name: &str, path: Option<&PathBuf>, why: &str, failed: bool) -> String {
    let path = path.map_or_else(String::new, |path| format!(" ({})", Path::display(path)));
    let what = if failed {
        "it is taken out of service; replace it"
    } else {
        "the array does not bear its loss, so it stays in service; save what matters, then replace what has failed"
    };
    format!("{name}{path} {why}; {what}")
}
