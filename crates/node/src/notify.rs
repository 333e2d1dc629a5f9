//! Words with the service manager that started this process (`Type=notify` of systemd, sd_notify(3)).

use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::{Duration, Instant};

/// The variable that says where it listens. Children must not have it: they would speak in our name.
pub const VARIABLE: &str = "NOTIFY_SOCKET";

/// Says how this process is, if anybody wants to know.
pub fn notify(state: &str) {
    if let Some(place) = std::env::var_os(VARIABLE).filter(|place| !place.is_empty()) {
        let _ = send(&place, state); // without a service manager nobody waits for it
    }
}

fn send(place: &OsStr, state: &str) -> io::Result<usize> {
    let address = match place.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(place)?,
    };
    UnixDatagram::unbound()?.send_to_addr(state.as_bytes(), &address)
}

/// Tells the service manager that this process is not stuck, as often as it wants to hear it
/// (`WatchdogSec=` of systemd).
pub struct Watchdog {
    every: Duration,
    due: Instant,
}

impl Watchdog {
    /// As the environment says; `None` if nobody wants to hear it of this process.
    pub fn of_environment() -> Option<Self> {
        let number = |name: &str| std::env::var(name).ok()?.parse::<u64>().ok();
        if number("WATCHDOG_PID").is_some_and(|pid| pid != u64::from(std::process::id())) {
            return None;
        }
        let limit_us = number("WATCHDOG_USEC").filter(|&us| us > 0)?;
        // Half of the time is what sd_watchdog_enabled(3) recommends.
        let every = Duration::from_micros((limit_us / 2).max(1000));
        Some(Self { every, due: Instant::now() })
    }

    /// Says it, if it is time to.
    pub fn look(&mut self) {
        let now = Instant::now();
        if now >= self.due {
            notify("WATCHDOG=1");
            self.due = now + self.every;
        }
    }

    /// In how many nanoseconds it is time to.
    pub fn due_in_ns(&self) -> u64 {
        let left = self.due.saturating_duration_since(Instant::now());
        u64::try_from(left.as_nanos()).unwrap_or(u64::MAX)
    }
}
