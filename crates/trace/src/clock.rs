//! The clock of a trace: it begins with the first request, whatever the clocks of its files show then.
//!
//! | the next file begins | it is taken for | its times |
//! |---|---|---|
//! | in the later half of what came before, or up to a year behind | the same recording | go on |
//! | anywhere else | another recording | begin when the one before ends |
//!
//! A request whose time lies before that of the first one of its recording counts as sent with that.

/// Longer pauses are none: such clocks do not count from the same moment.
const PAUSE_US_MAX: u64 = 366 * 86_400 * 1_000_000;

/// See the module's documentation.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Clock {
    /// What the file's clock shows at the beginning of the recording; none if a file begins.
    file_us: Option<u64>,
    /// What this clock shows then.
    since_us: u64,
    /// The latest time so far.
    latest_us: u64,
    /// The beginning of the recording so far, while the next file begins.
    before_us: Option<u64>,
}

impl Clock {
    /// A file ends and the next one begins.
    pub(crate) fn next_file(&mut self) {
        self.before_us = self.file_us.take().or(self.before_us);
    }

    /// The time of a request of which its file says `time_us`.
    pub(crate) fn time_us(&mut self, time_us: u64) -> u64 {
        let file_us = match self.file_us {
            Some(file_us) => file_us,
            None => self.begin(time_us),
        };
        let shown_us = self.since_us.saturating_add(time_us.saturating_sub(file_us));
        self.latest_us = self.latest_us.max(shown_us);
        shown_us
    }

    fn begin(&mut self, time_us: u64) -> u64 {
        let length_us = self.latest_us - self.since_us;
        let goes_on = |&before_us: &u64| {
            let passed_us = time_us.checked_sub(before_us);
            passed_us
                .is_some_and(|us| us >= length_us.div_ceil(2) && us.saturating_sub(length_us) <= PAUSE_US_MAX)
        };
        let file_us = self.before_us.filter(goes_on).unwrap_or_else(|| {
            self.since_us = self.latest_us;
            time_us
        });
        *self.file_us.insert(file_us)
    }
}

#[cfg(test)]
mod tests {
    use super::Clock;

    const EPOCH_US: u64 = 1_700_000_000_000_000;

    fn shown(files: &[&[u64]]) -> Vec<u64> {
        let mut clock = Clock::default();
        let mut times = Vec::new();
        for file in files {
            times.extend(file.iter().map(|&time_us| clock.time_us(time_us)));
            clock.next_file();
        }
        times
    }

    #[test]
    fn it_begins_with_the_first_request() {
        assert_eq!(shown(&[&[5, 100, 3, 7]]), [0, 95, 0, 2]);
        assert_eq!(shown(&[&[EPOCH_US, EPOCH_US - 1, EPOCH_US + 9]]), [0, 0, 9]);
        assert_eq!(shown(&[&[u64::MAX, 0, u64::MAX]]), [0, 0, 0]);
        assert_eq!(
            shown(&[&[0, u64::MAX], &[u64::MAX, 0], &[u64::MAX]]),
            [0, u64::MAX, u64::MAX, 0, u64::MAX]
        );
    }

    #[test]
    fn a_recording_that_was_cut_goes_on() {
        assert_eq!(shown(&[&[5, 100], &[105, 200], &[], &[201]]), [0, 95, 100, 195, 196]);
        assert_eq!(
            shown(&[&[EPOCH_US, EPOCH_US + 100], &[EPOCH_US + 98, EPOCH_US + 300]]),
            [0, 100, 98, 300]
        );
        // A night between.
        assert_eq!(shown(&[&[0, 100], &[30_000_000_000]]), [0, 100, 30_000_000_000]);
    }

    #[test]
    fn another_recording_begins_when_the_one_before_ends() {
        assert_eq!(shown(&[&[0, 100], &[0, 100], &[40, 140, 39]]), [0, 100, 100, 200, 200, 300, 200]);
        // Of the same days, of days before, and of another kind of clock.
        let (one, two) = ([EPOCH_US, EPOCH_US + 100], [EPOCH_US + 3, EPOCH_US + 103]);
        assert_eq!(shown(&[&one, &two]), [0, 100, 100, 200]);
        assert_eq!(shown(&[&two, &[EPOCH_US - 900, EPOCH_US - 800]]), [0, 100, 100, 200]);
        assert_eq!(shown(&[&[0, 100], &one, &[0, 7]]), [0, 100, 100, 200, 200, 207]);
    }
}
