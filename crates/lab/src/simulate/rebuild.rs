//! SSDs that are lost at the end of a run and rebuilt, in virtual time (X-09, EPLOG, experiment 5).
//!
//! As in the paper parity is committed before, and what is rebuilt goes to the same SSDs.

use crate::drive::driver::Driver;
use crate::drive::phase::{Phase, extend};
use crate::failure::Failure;
use crate::options::batches::{Batches, check_commits};
use crate::simulated::SimulatedSet;
use crate::subject::array::ArrayTarget;
use crate::subject::target::Target as _;
use block::{DevIndex, Stream};
use clap::Args;
use format::SchemeKind;
use node::units::show_size;
use serde_json::{Value, json};
use std::time::Duration;

/// Marks what the rebuilt members are.
const FIRST_SERIAL: u32 = 1 << 30;

/// Which SSDs are lost, and how they are rebuilt.
#[derive(Args, Clone, Copy, PartialEq, Eq, Debug)]
pub struct Recovery {
    /// Behind the last request lose so many of the SSDs, 0 too, and commit parity in what is left; all of
    /// that is part of the run's time (as `--commit-every end` is, which it takes the place of).
    #[arg(long, value_name = "SSDS")]
    pub fail: Option<usize>,
    /// Lose the SSDs of --fail when so many requests have been sent, instead of behind the last one; the rest
    /// runs without them, under any scheme.
    #[arg(long, requires = "fail", value_parser = clap::value_parser!(u64).range(1..), value_name = "REQUESTS")]
    pub fail_at: Option<u64>,
    /// At the end, after a parity commit, lose so many of the SSDs and rebuild them (at most as many as there
    /// are parities).
    #[arg(long, default_value = "0", value_name = "SSDS")]
    pub rebuild: usize,
    #[command(flatten)]
    pub batches: Batches,
}

/// What a rebuild came to.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Rebuilt {
    /// SSDs that were lost.
    pub ssds: usize,
    /// Bytes of chunks written to them.
    pub bytes: u64,
    /// Bytes read from the others.
    pub bytes_read: u64,
    /// How long it took.
    pub virtual_ns: u64,
}

impl Rebuilt {
    /// Recovered bytes per second, as the paper counts them.
    pub fn bytes_per_s(&self) -> u64 {
        let per_s = u128::from(self.bytes) * 1_000_000_000 / u128::from(self.virtual_ns.max(1));
        u64::try_from(per_s).unwrap_or(u64::MAX)
    }

    /// Virtual seconds that it took.
    pub fn seconds(&self) -> f64 {
        Duration::from_nanos(self.virtual_ns).as_secs_f64()
    }

    /// A line for people.
    pub fn line(&self) -> String {
        format!(
            "rebuild    {} of {} SSDs in {:.3} virtual s: {}/s; {} read\n",
            show_size(self.bytes),
            self.ssds,
            self.seconds(),
            show_size(self.bytes_per_s()),
            show_size(self.bytes_read),
        )
    }

    /// As JSON; `docs/simulate.md` lists the keys.
    pub fn to_json(self) -> Value {
        json!({
            "ssds": self.ssds,
            "bytes": self.bytes,
            "bytes_read": self.bytes_read,
            "virtual_seconds": self.seconds(),
            "bytes_per_s": self.bytes_per_s(),
        })
    }
}

impl Recovery {
    /// Refuses more than the code makes up for, and what no request is left for.
    pub fn check(&self, parity_count: usize, requests: usize) -> Result<(), Failure> {
        if let Some(at) = self.fail_at.filter(|&at| usize::try_from(at).is_ok_and(|at| at > requests)) {
            return Err(Failure::new(format!(
                "--fail-at: found {at}, expected at most the {requests} requests of the trace"
            )));
        }
        if self.fail.is_some_and(|fail| fail > 0) && self.rebuild > 0 {
            return Err(Failure::new("--fail: found beside --rebuild, expected one of them"));
        }
        if let Some(fail) = self.fail.filter(|&fail| fail > parity_count) {
            return Err(Failure::new(format!(
                "--fail: found {fail}, expected at most the {parity_count} SSDs that the array can lose"
            )));
        }
        if self.rebuild <= parity_count {
            return Ok(());
        }
        Err(Failure::new(format!(
            "--rebuild: found {}, expected at most the {parity_count} SSDs that the array can lose",
            self.rebuild
        )))
    }

    /// Refuses what means nothing to a scheme.
    pub fn check_scheme(&self, scheme: SchemeKind) -> Result<(), Failure> {
        let at_the_end = self.fail.filter(|_| self.fail_at.is_none());
        check_commits(at_the_end.map(|fail| format!("--fail {fail}")), scheme)
    }

    /// The request at which SSDs are lost on the way, and how many.
    pub fn loss(&self) -> Option<(u64, usize)> {
        self.fail_at.zip(self.fail)
    }

    /// Loses the first SSDs, if that has not been on the way, and commits parity, if there is any to commit:
    /// part of the phase behind which it comes.
    pub fn degrade(
        &self,
        scheme: SchemeKind,
        driver: &mut Driver<'_>,
        phase: &mut Phase,
    ) -> Result<(), Failure> {
        let Some(fail) = self.fail else { return Ok(()) };
        extend(driver, phase, |target| {
            if self.fail_at.is_none() {
                target.lose(fail);
            }
            target.settle()?;
            if scheme.has_log() {
                target.commit()?;
            }
            Ok(scheme.has_log())
        })
    }

    /// Loses the first SSDs and rebuilds them.
    pub fn run(&self, target: &mut ArrayTarget<SimulatedSet>) -> Result<Option<Rebuilt>, Failure> {
        if self.rebuild == 0 {
            return Ok(None);
        }
        target.commit()?;
        let lost: Vec<DevIndex> = (0u16..).map(DevIndex::new).take(self.rebuild).collect();
        target.lose(self.rebuild);
        target.settle()?;
        let (before, begun_ns) = (transferred(target, &lost), target.clock_ns().unwrap_or(0));
        target.rebuild(&lost, FIRST_SERIAL)?;
        let (after, ended_ns) = (transferred(target, &lost), target.clock_ns().unwrap_or(0));
        Ok(Some(Rebuilt {
            ssds: self.rebuild,
            bytes: after.0 - before.0,
            bytes_read: after.1 - before.1,
            virtual_ns: ended_ns - begun_ns,
        }))
    }
}

/// Bytes of chunks written to the lost SSDs, and read from all members.
fn transferred(target: &ArrayTarget<SimulatedSet>, lost: &[DevIndex]) -> (u64, u64) {
    let devices = target.array().devices_ref();
    let chunks = |dev: &DevIndex| {
        let written = devices.device(*dev).write_bytes;
        written[Stream::Data.index()] + written[Stream::Parity.index()]
    };
    (lost.iter().map(chunks).sum(), devices.total().read_bytes_all())
}
