//! What happened to the array, for the log, hooks, and whoever waits for it.

use super::{Outcome, Steward, Wait};
use crate::checks::same_file;
use crate::control::Reply;
use crate::error::Error;
use crate::event::{Event, describe_lost_page, work_name};
use crate::faults::describe_cause;
use crate::logbook::Level;
use crate::open::member_name;
use crate::running::Running;
use crate::status::LastScrub;
use crate::units::{show_count, show_seconds, show_size};
use crate::watch::describe_unfit;
use array::{MaintenanceReport, WorkKind};
use block::DevIndex;
use std::path::{Path, PathBuf};

impl Steward {
    /// Errors, of one member or of all, are counted anew; with those of all, what a forced start gave up is
    /// known.
    pub(super) fn clear(&mut self, running: &mut Running, device: Option<&str>) -> Result<Outcome, Error> {
        let dev = device.map(|device| self.operator.find(running, device)).transpose()?;
        if dev.is_none() {
            self.operator.note_lost(None);
        }
        Ok(Outcome::Later(Wait::Tag(running.control(|engine, tag| engine.clear_errors(tag, dev)))))
    }

    pub(super) fn report(&mut self, running: &mut Running) {
        let main_count = running.lead().store().main_count();
        let name = |dev: DevIndex| member_name(main_count, dev);
        for event in std::mem::take(&mut self.events) {
            let missing = running.missing_count();
            self.physician.is_stale = true;
            match event {
                Event::Failed { dev, cause } => {
                    let bears = running.lead().health().tolerated();
                    let describe = |cause| describe_cause(cause, running.now_ns());
                    let why = cause.map_or_else(String::new, describe);
                    let text = format!(
                        "{} failed{why}; {missing} out of service, the array bears {bears}",
                        name(dev)
                    );
                    self.reactions.tell(Level::Warning, "failed", &name(dev), &text);
                }
                Event::PageLost(page) => {
                    self.reactions.tell(Level::Error, "lost", "", &describe_lost_page(page));
                }
                Event::Replaced { dev, path } => {
                    let text = format!("{} takes the place of {}; rebuilding", path.display(), name(dev));
                    self.reactions.tell(Level::Info, "replaced", &name(dev), &text);
                    self.stale.retain(|stale| !same_file(stale, &path));
                    self.note_paths();
                    self.answer(Wait::Place(dev), &Reply::done(), running);
                }
                Event::Succeeded { dev, path, before, moved_bytes } => {
                    let text = describe_succession(&path, &name(dev), before, moved_bytes);
                    self.reactions.tell_end(Level::Info, "replaced", &name(dev), &text);
                    self.note_paths();
                }
                Event::CameBack { dev, path } => {
                    let text =
                        format!("{} is {} again; rebuilding what it missed", path.display(), name(dev));
                    self.reactions.tell(Level::Info, "online", &name(dev), &text);
                    self.stale.retain(|stale| !same_file(stale, &path));
                    self.note_paths();
                    self.answer(Wait::Place(dev), &Reply::done(), running);
                }
                Event::NotReplaced { dev, path, why } => {
                    let text = format!("{} cannot take the place of {}: {why}", path.display(), name(dev));
                    self.reactions.tell(Level::Error, "not-replaced", &name(dev), &text);
                    self.answer(Wait::Place(dev), &Reply::refused(why), running);
                }
                Event::CalledOff { dev, path } => {
                    let why = "it was called off, as asked";
                    let text = format!("{} does not take the place of {}: {why}", path.display(), name(dev));
                    self.reactions.tell(Level::Info, "not-replaced", &name(dev), &text);
                    self.answer(Wait::Place(dev), &Reply::refused(why), running);
                }
                Event::Rebuilt(dev) => {
                    let text = format!("{} is rebuilt", name(dev));
                    self.reactions.tell(Level::Info, "rebuilt", &name(dev), &text);
                }
                Event::Unfit { dev, why, failed } => {
                    let path = self.operator.paths()[dev.index()].as_ref();
                    let text = describe_unfit(&name(dev), path, why, failed);
                    self.reactions.tell(Level::Error, "unfit", &name(dev), &text);
                }
                Event::HeldUp { dev, why } => self.trouble.note(dev, why, true),
                Event::HoldUpEnded { dev, why } => self.trouble.note(dev, why, false),
                Event::Grown(growth) => self.report_growth(growth, running),
                Event::NotGrown { why } => self.report_no_growth(why, running),
                Event::WorkBegan { kind, resumed } => {
                    self.note(work_name(kind), &describe_begin(kind, resumed, running.rebuilt_percent()));
                }
                Event::WorkEnded { kind, found, seconds } => self.report_end(kind, &found, seconds),
            }
        }
    }

    /// Tells of the members' errors, now and then, and of spares that cannot help.
    pub(super) fn report_errors(&mut self, running: &Running) {
        for (device, text) in self.operator.lines_of_unfit_spares(running) {
            self.reactions.tell(Level::Warning, "not-replaced", &device, &text);
        }
        for (device, text) in self.operator.error_lines(running) {
            self.reactions.tell(Level::Warning, "checksum-errors", &device, &text);
        }
    }

    fn report_end(&mut self, kind: WorkKind, found: &MaintenanceReport, seconds: u64) {
        let text = describe_end(kind, found, seconds);
        let (level, event, text) = match found.errors_left() {
            0 => (Level::Info, work_name(kind), text),
            _ => {
                let (lost, mismatches) = (found.lost, found.code_mismatches);
                let what =
                    format!("{lost} code words are lost, {mismatches} stripes had parity that did not match");
                (Level::Error, "lost", format!("{text}; {what}"))
            }
        };
        match kind {
            WorkKind::Rebuild => self.reactions.tell_end(level, event, "", &text),
            // Members remember it: `status` shows it also when nobody serves them.
            WorkKind::Scrub => self.reactions.tell(level, event, "", &text),
        }
    }
}

/// That work on the whole array begins; of so many percent of it a rebuild finds its part done.
fn describe_begin(kind: WorkKind, resumed: bool, percent: u64) -> String {
    match (kind, resumed) {
        (WorkKind::Scrub, false) => "scrub begins".to_owned(),
        (WorkKind::Scrub, true) => "scrub goes on where it was interrupted".to_owned(),
        (WorkKind::Rebuild, false) => "rebuild begins".to_owned(),
        (WorkKind::Rebuild, true) => format!("rebuild goes on after the restart, at {percent} %"),
    }
}

/// What came of it.
fn describe_end(kind: WorkKind, found: &MaintenanceReport, seconds: u64) -> String {
    // Whoever found what cannot be mended says so, and need not have come to the end for it.
    let ended = found.completed || found.errors_left() > 0;
    match kind {
        WorkKind::Scrub => LastScrub::of_report(found, seconds, ended).line(),
        WorkKind::Rebuild if ended => {
            let (chunks, errors) = (show_count(found.chunks_rebuilt), found.errors_left());
            format!(
                "rebuild ended after {} with {errors} errors left, {chunks} chunks written",
                show_seconds(seconds)
            )
        }
        WorkKind::Rebuild => format!("rebuild was given up after {}", show_seconds(seconds)),
    }
}

/// What has become of a member that was replaced while it worked: bytes read of it, and written.
fn describe_succession(
    path: &Path,
    name: &str,
    before: Option<PathBuf>,
    (read, written): (u64, u64),
) -> String {
    let free = before.map(|path| format!(", {} is free", path.display())).unwrap_or_default();
    let (read, written) = (show_size(read), show_size(written));
    format!("{} has taken the place of {name}{free}; {read} read, {written} of it written", path.display())
}
