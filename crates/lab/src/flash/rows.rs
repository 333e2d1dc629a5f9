//! The counted part of a run of one SSD as a series of rows (`--interval`).

use super::latencies;
use crate::drive::series::{Done, Every, Moment, Row, Series};
use crate::failure::Failure;
use flash::Ssd;

/// See the module's documentation; without an interval it does nothing.
pub struct Rows {
    series: Option<Series>,
    every: Option<Every>,
    /// Requests when the last row ended.
    ended: u64,
    is_timed: bool,
}

impl Rows {
    /// From this moment on, in which the SSD's counters are 0.
    pub fn begin(every: Option<Every>, ssd: &Ssd, now_ns: u64) -> Result<Self, Failure> {
        let is_timed = ssd.config().timing.is_some();
        if matches!(every, Some(Every::Nanoseconds(_))) && !is_timed {
            return Err(Failure::new(
                "--interval: found a time, expected a number of requests: this SSD has no service times, so no time passes",
            ));
        }
        let page_bytes = u64::from(ssd.config().geometry.page_bytes);
        let series = every.map(|every| Series::new(every, page_bytes, moment(ssd, now_ns), latencies()));
        Ok(Self { series, every, ended: 0, is_timed })
    }

    /// How many requests, at most so many, can be made from here before a row may end.
    pub fn requests_left(&self, requests: u64, most: u64) -> u64 {
        match self.every {
            None => most,
            Some(Every::Nanoseconds(_)) => 1,
            Some(Every::Requests(count)) => (self.ended + count - requests).min(most),
        }
    }

    /// A request has ended.
    pub fn note(&mut self, latency_ns: u64) {
        if let Some(series) = self.series.as_mut().filter(|_| self.is_timed) {
            series.note(latency_ns);
        }
    }

    /// Ends a row if one is due when so many requests have been made.
    pub fn look(&mut self, requests: u64, ssd: &Ssd, now_ns: u64) -> Result<(), Failure> {
        let done = done(requests, ssd);
        if let Some(series) = &mut self.series
            && series.is_due(now_ns, done)
        {
            series.end_row(moment(ssd, now_ns), done)?;
            self.ended = requests;
        }
        Ok(())
    }

    /// All rows, if they were asked for.
    pub fn finish(self, requests: u64, ssd: &Ssd, now_ns: u64) -> Result<Option<Vec<Row>>, Failure> {
        self.series.map(|series| series.finish(moment(ssd, now_ns), done(requests, ssd))).transpose()
    }
}

fn moment(ssd: &Ssd, now_ns: u64) -> Moment {
    Moment { now_ns, flash: Some(ssd.counters()), ..Moment::default() }
}

fn done(requests: u64, ssd: &Ssd) -> Done {
    let counters = ssd.counters();
    Done { requests, chunks_written: counters.host_pages_written, chunks_read: counters.host_pages_read }
}
