//! A control connection, as the server sees it.

use super::Wait;
use crate::control::{LINE_BYTES_MAX, Reply};
use front::Interest;
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;

/// A control connection.
pub(super) struct Client {
    pub(super) stream: UnixStream,
    input: Vec<u8>,
    pub(super) output: Vec<u8>,
    /// What the present request waits for; no other is read meanwhile.
    pub(super) wait: Option<Wait>,
    /// It will send nothing more.
    ended: bool,
    /// It is of no use any more.
    broken: bool,
}

impl Client {
    /// Somebody who has come; nothing that is done for him blocks.
    pub(super) fn new(stream: UnixStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        let (input, output) = (Vec::new(), Vec::new());
        Ok(Self { stream, input, output, wait: None, ended: false, broken: false })
    }

    /// Whether it has not taken all that was said to it, and may.
    pub(super) fn is_behind(&self) -> bool {
        !self.output.is_empty() && !self.broken
    }

    pub(super) fn answer(&mut self, reply: &Reply) {
        match serde_json::to_vec(reply) {
            Ok(line) => self.output.extend(line),
            Err(_) => self.broken = true,
        }
        self.output.push(b'\n');
        self.send();
    }

    pub(super) fn next_line(&mut self) -> Option<Vec<u8>> {
        let end = self.input.iter().position(|&byte| byte == b'\n')?;
        let rest = self.input.split_off(end + 1);
        Some(std::mem::replace(&mut self.input, rest))
    }

    /// Whether there is nothing left to be done for it.
    pub(super) fn is_over(&self) -> bool {
        self.broken || (self.ended && self.wait.is_none() && self.output.is_empty())
    }

    /// Whether it is gone, has asked for nothing more, and waits for nothing.
    pub(super) fn has_left(&self) -> bool {
        let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        let ends =
            || matches!(recv(&self.stream, &mut [0u8; 1][..], flags), Ok((0, _)) | Err(Errno::CONNRESET));
        self.wait.is_none() && self.output.is_empty() && self.input.is_empty() && ends()
    }

    /// What the client is waited for; nothing while it waits for us.
    pub(super) fn interest(&self) -> Option<Interest> {
        match (self.ended, self.output.is_empty()) {
            (false, true) => Some(Interest::Read),
            (false, false) => Some(Interest::ReadWrite),
            (true, false) => Some(Interest::Write),
            (true, true) => None,
        }
    }

    /// Receives what has come.
    pub(super) fn receive(&mut self) {
        let mut bytes = [0u8; 4096];
        loop {
            match self.stream.read(&mut bytes) {
                Ok(0) => return self.ended = true,
                Ok(count) if self.input.len() + count <= LINE_BYTES_MAX => self.input.extend(&bytes[..count]),
                Ok(_) => return self.broken = true,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return self.broken = true,
            }
        }
    }

    /// Sends what the socket takes now.
    pub(super) fn send(&mut self) {
        while !self.output.is_empty() {
            match self.stream.write(&self.output) {
                Ok(count) if count > 0 => drop(self.output.drain(..count)),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Ok(_) | Err(_) => return self.broken = true,
            }
        }
    }
}
