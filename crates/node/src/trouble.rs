//! Members in service that hold up requests: they lack room, or do not answer; threads that stand still. What
//! the log says of them.

use crate::logbook::Level;
use crate::open::member_name;
use crate::running::Running;
use array::HoldUp;
use block::DevIndex;
use std::time::{Duration, Instant};

/// How long a device may take to answer, unless told otherwise.
pub const DEVICE_TIMEOUT_NS: u64 = 30_000_000_000;
/// How often the log looks.
const LOOK_NS: u64 = 1_000_000_000;

/// How long nothing is said of a thread that stands still.
const SILENCE: Duration = Duration::from_secs(2);

/// What holds up requests at a member.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
struct Held {
    lacks_room: bool,
    not_answering: bool,
}

/// Says in the log when trouble begins and ends.
#[derive(Default)]
pub struct TroubleLog {
    /// Of each member what the log knows, and what is so.
    members: Vec<(Held, Held)>,
    next_ns: u64,
    /// Since when a thread of shards stands still,
    stands_since: Option<Instant>,
    /// and whether the log knows.
    standing_told: bool,
}

impl TroubleLog {
    /// Whether a thread of shards stands still.
    pub fn stands_still(&self) -> bool {
        self.stands_since.is_some()
    }

    /// The thread of that shard stands still, or none does; what there is to say of it.
    pub fn note_standing(&mut self, shard: Option<usize>) -> Option<(Level, String)> {
        let Some(shard) = shard else {
            self.stands_since = None;
            let was_told = std::mem::take(&mut self.standing_told);
            return was_told.then(|| (Level::Info, "the thread that did not answer goes on".to_owned()));
        };
        let since = *self.stands_since.get_or_insert_with(Instant::now);
        if since.elapsed() < SILENCE || std::mem::replace(&mut self.standing_told, true) {
            return None;
        }
        let text = format!(
            "the thread that runs shard {shard} has not answered for {} s; what is asked of the array waits for \
             it, clients of shards on other threads are served",
            SILENCE.as_secs()
        );
        Some((Level::Warning, text))
    }

    /// Whether something was said that has not ended, or is to be said: look again soon.
    pub fn is_waiting(&self) -> bool {
        self.members.iter().any(|&(told, now)| told != Held::default() || told != now)
    }

    /// Takes note of what the engine told.
    pub fn note(&mut self, dev: DevIndex, why: HoldUp, holds: bool) {
        let count = self.members.len().max(dev.index() + 1);
        self.members.resize(count, (Held::default(), Held::default()));
        let now = &mut self.members[dev.index()].1;
        match why {
            HoldUp::LacksRoom => now.lacks_room = holds,
            HoldUp::NotAnswering => now.not_answering = holds,
        }
    }

    /// Says what has changed, at most once a second: room comes and goes. `tell` hears how bad it is, of
    /// which member, and what.
    pub fn look(&mut self, running: &Running, tell: &mut dyn FnMut(Level, &str, &str)) {
        let now_ns = running.now_ns();
        if !self.is_waiting() || now_ns < self.next_ns {
            return;
        }
        self.next_ns = now_ns.saturating_add(LOOK_NS);
        let main_count = running.lead().store().main_count();
        for (index, (told, now)) in (0u16..).zip(&mut self.members) {
            let name = member_name(main_count, DevIndex::new(index));
            let mut say = |level, text: &str| tell(level, &name, &format!("{name}{text}"));
            match (told.lacks_room, now.lacks_room) {
                (false, true) => say(
                    Level::Warning,
                    ": there is no room where it lies; writes wait, and are refused when they have waited for long",
                ),
                (true, false) => {
                    say(Level::Info, ": there is room again, or it is out of service; writes go on")
                }
                (true, true) | (false, false) => {}
            }
            match (told.not_answering, now.not_answering) {
                (false, true) => {
                    say(Level::Warning, " does not answer, and the array cannot do without it: requests wait")
                }
                (true, false) => say(Level::Info, " answers again, or is out of service"),
                (true, true) | (false, false) => {}
            }
            *told = *now;
        }
    }
}
