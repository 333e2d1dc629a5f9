//! Words with the service manager that started this process (`Type=notify` of systemd, sd_notify(3)).

use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

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
