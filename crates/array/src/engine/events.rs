//! What happens to the array, told to whoever keeps a log, runs hooks or counts.
//!
//! The engine notes an [`Event`] where the thing happens, with its cause;
//! [`Engine::take_events`](super::Engine::take_events) hands them out beside
//! [`Engine::take_done`](super::Engine::take_done). No decision of the engine depends on an event. None is
//! noted per request, so the path of a request allocates nothing for them; and where nobody takes them the
//! oldest are forgotten.

use super::Core;
use super::report::{MaintenanceReport, WorkKind};
use super::request::Request;
use crate::fault::{FailCause, Finding};
use crate::health::{Health, Member};
use block::DevIndex;
use block::slab::Key;
use std::collections::VecDeque;

/// Events that are kept for whoever takes them. A driver takes them every turn, in which few happen.
const EVENTS_MAX: usize = 1024;

/// Why requests wait for a member in service.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HoldUp {
    /// There is no room where it lies.
    LacksRoom,
    /// It does not answer, and the array cannot do without it.
    NotAnswering,
}

/// Who wanted a rebuild or scrub.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WorkOrigin {
    /// A request, which is answered at its end.
    Request,
    /// The engine itself, which tries a rebuild again that met lost code words.
    Retry,
}

/// Something that happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// A member went out of service.
    MemberFailed {
        /// Which.
        dev: DevIndex,
        /// Why.
        cause: FailCause,
    },
    /// No copy of a page of the table is good: what it speaks of cannot be read, and the array takes no
    /// writes.
    PageLost {
        /// Which page.
        page: usize,
    },
    /// A device is useless as the member it is.
    MemberUnfit {
        /// The member.
        dev: DevIndex,
        /// What was found.
        found: Finding,
        /// Whether it goes out of service for that; not so if the array does not bear another loss.
        failed: bool,
    },
    /// What took a member's place holds everything it should.
    MemberRebuilt {
        /// Which.
        dev: DevIndex,
    },
    /// Requests wait for a member from now on.
    HeldUp {
        /// Which.
        dev: DevIndex,
        /// Why.
        why: HoldUp,
    },
    /// They wait no more, at least not for this reason.
    HoldUpEnded {
        /// The member.
        dev: DevIndex,
        /// The reason that is no more.
        why: HoldUp,
    },
    /// A rebuild or scrub has begun, or one under way begins anew for another member.
    WorkBegan {
        /// Which.
        kind: WorkKind,
        /// Who wanted it.
        origin: WorkOrigin,
    },
    /// A rebuild or scrub has ended, or was given up, also before it could begin.
    WorkEnded {
        /// Which.
        kind: WorkKind,
        /// Who wanted it.
        origin: WorkOrigin,
        /// What it found and did, and whether it looked at everything.
        found: MaintenanceReport,
        /// How long it took.
        elapsed_ns: u64,
    },
}

/// Events that nobody has taken yet, oldest first.
#[derive(Default)]
pub(super) struct Events(VecDeque<Event>);

impl Events {
    /// That members failed while the array was being assembled.
    pub(super) fn of_assembly(health: &Health) -> Self {
        let failed = |(index, member): (u16, &Member)| {
            member.failed.map(|cause| Event::MemberFailed { dev: DevIndex::new(index), cause })
        };
        Self((0u16..).zip(health.members()).filter_map(failed).collect())
    }

    pub(super) fn push(&mut self, event: Event) {
        if self.0.len() >= EVENTS_MAX {
            self.0.pop_front();
        }
        self.0.push_back(event);
    }

    /// Those come first.
    pub(super) fn come_after(&mut self, before: Self) {
        let own = std::mem::replace(self, before);
        own.0.into_iter().for_each(|event| self.push(event));
    }

    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Moves all of them to the end of `out`.
    pub(super) fn take(&mut self, out: &mut Vec<Event>) {
        out.extend(self.0.drain(..));
    }
}

impl Core {
    /// A rebuild or scrub begins, for `request` if anybody asked.
    pub(super) fn note_work_began(&mut self, kind: WorkKind, request: Option<Key<Request>>) {
        let origin = if request.is_some() { WorkOrigin::Request } else { WorkOrigin::Retry };
        self.answers.events.push(Event::WorkBegan { kind, origin });
    }

    /// A rebuild or scrub that was asked for cannot begin.
    pub(super) fn note_work_refused(&mut self, kind: WorkKind) {
        let (origin, found) = (WorkOrigin::Request, MaintenanceReport::default());
        self.answers.events.push(Event::WorkEnded { kind, origin, found, elapsed_ns: 0 });
    }

    /// A rebuild or scrub that began at `began_ns` ends, for the requests `answers`.
    pub(super) fn note_work_ended(
        &mut self,
        kind: WorkKind,
        answers: &[Key<Request>],
        found: MaintenanceReport,
        began_ns: u64,
    ) {
        let origin = if answers.is_empty() { WorkOrigin::Retry } else { WorkOrigin::Request };
        let elapsed_ns = self.now_ns.saturating_sub(began_ns);
        self.answers.events.push(Event::WorkEnded { kind, origin, found, elapsed_ns });
    }
}
