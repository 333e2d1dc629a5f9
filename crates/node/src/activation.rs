//! Sockets that the service manager listens at for this process (`LISTEN_FDS`, sd_listen_fds(3)): clients may
//! connect before the server runs, and while it is started anew.

use crate::error::Error;
use listenfd::ListenFd;
use rustix::net::sockopt::socket_acceptconn;
use std::net::TcpListener;
use std::os::unix::net::UnixListener;

/// A socket that somebody else has bound.
#[derive(Debug)]
pub enum Passed {
    /// In the file system.
    Unix(UnixListener),
    /// Of the network.
    Tcp(TcpListener),
}

/// All that were passed to this process. They are taken once; children do not get them.
pub fn passed() -> Result<Vec<Passed>, Error> {
    let mut given = ListenFd::from_env();
    let mut taken = Vec::new();
    for index in 0..given.len() {
        let strange = || Error::NotAListener { number: index + 3 };
        let socket = match given.take_unix_listener(index) {
            Ok(socket) => socket.map(Passed::Unix),
            Err(_) => given.take_tcp_listener(index).map_err(|_| strange())?.map(Passed::Tcp),
        };
        let socket = socket.ok_or_else(strange)?;
        let listens = match &socket {
            Passed::Unix(socket) => socket_acceptconn(socket),
            Passed::Tcp(socket) => socket_acceptconn(socket),
        };
        if !listens.unwrap_or(false) {
            return Err(strange());
        }
        taken.push(socket);
    }
    Ok(taken)
}
