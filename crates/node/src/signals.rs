//! Signals of a server: each becomes a readable descriptor, and none ends the process before the array is
//! stopped in order, but those that say that the program itself is broken (SIGSEGV, SIGABRT and the like)
//! and SIGKILL.

use crate::error::Error;
use signal_hook::consts::{
    SIGALRM, SIGCHLD, SIGHUP, SIGINT, SIGIO, SIGPROF, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGVTALRM, SIGXCPU,
    SIGXFSZ,
};
use signal_hook::iterator::backend::SignalDelivery;
use signal_hook::iterator::exfiltrator::SignalOnly;
use std::fs::{self, File};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

/// Signals that end serving, in order. SIGXCPU: the limit of processor time is near.
const ENDING: [i32; 4] = [SIGTERM, SIGINT, SIGQUIT, SIGXCPU];
/// Signals that mean nothing to a server but would kill it. SIGXFSZ: the write beyond the limit of file
/// sizes fails, too, and that is dealt with.
const MEANINGLESS: [i32; 7] = [SIGUSR1, SIGUSR2, SIGALRM, SIGVTALRM, SIGPROF, SIGIO, SIGXFSZ];
/// Signals for the use of programs; Linux has 34 to 64 left for them.
const REAL_TIME: std::ops::RangeInclusive<i32> = 34..=64;

/// What a signal asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wish {
    /// End in order, because of this signal.
    Stop(&'static str),
    /// The process of `--run` may have ended.
    LookAtChild,
    /// Read again what may change.
    Reload,
    /// Nothing; it is worth a line in the log.
    Nothing(i32),
}

/// See the module's documentation.
pub struct Signals {
    delivery: SignalDelivery<UnixStream, SignalOnly>,
    /// Whether the server was started from a terminal.
    has_terminal: bool,
}

impl Signals {
    /// From now on signals are collected here.
    pub fn collect() -> Result<Self, Error> {
        let failed = Error::Signals;
        let (receiver, sender) = UnixStream::pair().map_err(failed)?;
        receiver.set_nonblocking(true).map_err(failed)?;
        let wanted = that_end_a_process().chain(REAL_TIME).chain([SIGCHLD]);
        let delivery = SignalDelivery::with_pipe(receiver, sender, SignalOnly, wanted).map_err(failed)?;
        Ok(Self { delivery, has_terminal: terminal_is_there() })
    }

    /// Readable when there is something to [`Signals::take`].
    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.delivery.get_read().as_fd()
    }

    /// What came since the last call.
    pub fn take(&mut self) -> Vec<Wish> {
        let pending = self.delivery.pending();
        pending.map(|signal| wish(signal, self.has_terminal)).collect()
    }
}

/// Signals with a name that end a process which does nothing about them, and that it can do something about.
pub fn that_end_a_process() -> impl Iterator<Item = i32> {
    // nohup and some service managers have it ignored, and so it stays.
    let closed_terminal = (!is_ignored(SIGHUP)).then_some(SIGHUP);
    ENDING.into_iter().chain(MEANINGLESS).chain(closed_terminal)
}

fn wish(signal: i32, has_terminal: bool) -> Wish {
    match signal {
        SIGCHLD => Wish::LookAtChild,
        SIGTERM => Wish::Stop("SIGTERM"),
        SIGINT => Wish::Stop("SIGINT"),
        SIGQUIT => Wish::Stop("SIGQUIT"),
        SIGXCPU => Wish::Stop("SIGXCPU: the limit of processor time is near"),
        // When a terminal is closed, the kernel takes it away from its processes before it tells them.
        SIGHUP if has_terminal && !terminal_is_there() => Wish::Stop("SIGHUP: the terminal is gone"),
        // To a daemon it means: read the configuration again.
        SIGHUP => Wish::Reload,
        other => Wish::Nothing(other),
    }
}

fn terminal_is_there() -> bool {
    File::open("/dev/tty").is_ok()
}

/// Whether whoever started this process had the signal ignored.
fn is_ignored(signal: i32) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok()).unwrap_or(0);
    mask >> (signal - 1) & 1 == 1
}

/// What the log calls a signal.
pub fn name_of(signal: i32) -> String {
    let known = [
        (SIGHUP, "SIGHUP"),
        (SIGUSR1, "SIGUSR1"),
        (SIGUSR2, "SIGUSR2"),
        (SIGALRM, "SIGALRM"),
        (SIGVTALRM, "SIGVTALRM"),
        (SIGPROF, "SIGPROF"),
        (SIGIO, "SIGIO"),
        (SIGXFSZ, "SIGXFSZ"),
    ];
    let name = known.iter().find(|(number, _)| *number == signal).map(|(_, name)| (*name).to_owned());
    name.unwrap_or_else(|| format!("signal {signal}"))
}
