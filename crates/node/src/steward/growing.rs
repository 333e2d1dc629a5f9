//! An array that is asked to grow while it is served: who is told what, and what cannot be asked meanwhile.

use super::{Outcome, Steward, Wait};
use crate::control::{Reply, Request};
use crate::error::Error;
use crate::grow::Growth;
use crate::logbook::Level;
use crate::refusal::Refusal;
use crate::running::Running;
use crate::units::show_size;

impl Steward {
    /// Whether this may be asked for now.
    pub(super) fn check_may_ask(&self, request: &Request) -> Result<(), Refusal> {
        if self.operator.is_read_only() && request.is_kept() {
            return Err(Refusal::ServedReadOnly);
        }
        let waits = self.operator.is_growing() && !request.is_answered_anyway();
        if waits { Err(Refusal::Growing) } else { Ok(()) }
    }

    /// Has the array grow.
    pub(super) fn grow(&mut self, running: &mut Running) -> Result<Outcome, Error> {
        self.operator.grow(running)?;
        self.note("grow", "the array grows; what clients ask waits");
        Ok(Outcome::Later(Wait::Growth))
    }

    /// It has.
    pub(super) fn report_growth(&mut self, growth: Box<Growth>, running: &mut Running) {
        self.users.look_at_size();
        self.reactions.tell_end(Level::Info, "grown", "", &describe_growth(&growth));
        for small in &growth.small_spares {
            self.reactions.note(Level::Warning, "spare", "", small);
        }
        let reply = Reply { grown: Some(growth), ..Reply::done() };
        self.answer(Wait::Growth, &reply, running);
    }

    /// It has not.
    pub(super) fn report_no_growth(&mut self, why: String, running: &mut Running) {
        self.reactions.tell_end(Level::Error, "not-grown", "", &format!("the array has not grown: {why}"));
        self.answer(Wait::Growth, &Reply::refused(why), running);
    }
}

/// What the array has become, and for how long its clients waited.
fn describe_growth(growth: &Growth) -> String {
    let (before, now) = (show_size(growth.volume_bytes_before), show_size(growth.volume_bytes));
    let waited = growth.show_wait().map(|wait| format!("; what clients asked waited for {wait}"));
    format!("the array has grown from {before} to {now}{}", waited.unwrap_or_default())
}
