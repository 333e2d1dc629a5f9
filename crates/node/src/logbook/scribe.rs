//! Who writes the lines of a log, one after the other, on a thread of its own.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::Builder;
use std::time::Duration;

/// Lines that wait at most.
const LINES_MAX: usize = 1000;

#[derive(Default)]
struct Desk {
    lines: VecDeque<String>,
    /// Lines that found no room since the last that did.
    lost: u64,
    is_writing: bool,
}

/// See the module's documentation.
pub(super) struct Scribe {
    desk: Mutex<Desk>,
    changed: Condvar,
    /// What is said of lines that found no room, whose number is given.
    describe_lost: fn(u64) -> String,
}

impl Scribe {
    /// Has lines written by `write`; `None` if the system has no thread for that.
    pub fn start(
        write: impl Fn(&str) + Send + 'static,
        describe_lost: fn(u64) -> String,
    ) -> Option<Arc<Self>> {
        let (desk, changed) = (Mutex::default(), Condvar::new());
        let scribe = Arc::new(Self { desk, changed, describe_lost });
        let own = Arc::clone(&scribe);
        let thread = Builder::new().name("log".into()).spawn(move || own.write_all(write));
        thread.is_ok().then_some(scribe)
    }

    /// Adds a line; never waits for whoever reads it.
    pub fn put(&self, line: String) {
        let mut desk = self.desk();
        if desk.lines.len() >= LINES_MAX {
            desk.lost += 1;
            return;
        }
        if desk.lost > 0 {
            let lost = std::mem::take(&mut desk.lost);
            desk.lines.push_back((self.describe_lost)(lost));
        }
        desk.lines.push_back(line);
        self.changed.notify_all();
    }

    /// Waits until everything is written, for so long at most.
    pub fn finish(&self, patience: Duration) {
        let is_busy = |desk: &mut Desk| desk.is_writing || !desk.lines.is_empty();
        // Whoever does not read it now will not do so later.
        let _ = self.changed.wait_timeout_while(self.desk(), patience, is_busy);
    }

    fn write_all(&self, write: impl Fn(&str)) {
        loop {
            let has_none = |desk: &mut Desk| desk.lines.is_empty();
            let waited = self.changed.wait_while(self.desk(), has_none);
            let mut desk = waited.unwrap_or_else(PoisonError::into_inner);
            let Some(line) = desk.lines.pop_front() else { continue };
            desk.is_writing = true;
            drop(desk);
            write(&line);
            self.desk().is_writing = false;
            self.changed.notify_all();
        }
    }

    fn desk(&self) -> MutexGuard<'_, Desk> {
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn lines_come_in_order_and_who_does_not_read_loses_the_last_ones() {
        let (reads, read) = channel::<()>();
        let (writes, written) = channel();
        let write = move |line: &str| {
            if read.recv().is_ok() {
                writes.send(line.to_owned()).unwrap();
            }
        };
        let scribe = Scribe::start(write, |lost| format!("{lost} lost")).unwrap();
        scribe.put("0".to_owned());
        while !scribe.desk().is_writing {
            std::thread::yield_now();
        }
        (1..=LINES_MAX + 7).for_each(|number| scribe.put(number.to_string()));
        scribe.finish(Duration::from_millis(1));
        (0..=LINES_MAX).for_each(|_| reads.send(()).unwrap());
        let found: Vec<String> = (0..=LINES_MAX).map(|_| written.recv().unwrap()).collect();
        assert_eq!(found, (0..=LINES_MAX).map(|number| number.to_string()).collect::<Vec<_>>());
        scribe.put("next".to_owned());
        (0..2).for_each(|_| reads.send(()).unwrap());
        scribe.finish(Duration::from_secs(60));
        let found: Vec<String> = written.try_iter().collect();
        assert_eq!(found, ["7 lost", "next"]);
    }
}
