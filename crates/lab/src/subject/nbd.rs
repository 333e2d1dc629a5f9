//! A small NBD client: one connection, fixed newstyle, simple replies, many requests in flight.
//!
//! The socket never blocks: requests wait in a buffer until the server takes them, replies are taken as
//! they come, and waiting is done by `poll`. Source: NetworkBlockDevice/nbd, `doc/proto.md`.

use super::snapshot::Snapshot;
use super::target::{Finished, Part, Sink, Source, Target};
use crate::failure::Failure;
use format::{ArrayConfig, CheckpointKind};
use front::nbd::wire::{self, Command, RequestHeader, handshake_flag, option, reply, transmission_flag};
use node::status::Memory;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// Longest read or write; the protocol allows 32 MiB without asking.
const PART_BYTES: u64 = 4 << 20;
/// Requests are held back while so much waits to be sent.
const OUT_BYTES_MAX: usize = 32 << 20;
/// Longest data of a reply to an option: a server has no reason to send more.
const OPTION_BYTES_MAX: u32 = 64 << 10;
/// How long the server may take to answer the handshake or the last requests.
const PATIENCE: Duration = Duration::from_secs(60);
/// Tag of the client's own flush.
const OWN_COOKIE: u64 = u64::MAX;

/// Where a server is.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Address {
    Unix(String),
    Tcp(String),
}

/// An export of a server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Uri {
    address: Address,
    export: String,
}

impl std::str::FromStr for Uri {
    type Err = String;

    /// `nbd+unix:///EXPORT?socket=PATH`, `nbd://HOST[:PORT]/EXPORT`, `unix:PATH` or `tcp:HOST:PORT`.
    fn from_str(text: &str) -> Result<Self, String> {
        let expected = || {
            format!(
                "found {text:?}, expected nbd+unix:///EXPORT?socket=PATH, nbd://HOST:PORT/EXPORT, unix:PATH or tcp:HOST:PORT"
            )
        };
        if let Some(path) = text.strip_prefix("unix:").filter(|path| !path.is_empty()) {
            return Ok(Self { address: Address::Unix(path.to_owned()), export: String::new() });
        }
        if let Some(host) = text.strip_prefix("tcp:").filter(|host| host.contains(':')) {
            return Ok(Self { address: Address::Tcp(host.to_owned()), export: String::new() });
        }
        if let Some(rest) = text.strip_prefix("nbd+unix:///") {
            let (export, query) = rest.split_once('?').ok_or_else(expected)?;
            let path = query.split('&').find_map(|pair| pair.strip_prefix("socket=")).ok_or_else(expected)?;
            let address = Address::Unix(unescape(path).ok_or_else(expected)?);
            return Ok(Self { address, export: unescape(export).ok_or_else(expected)? });
        }
        let rest = text.strip_prefix("nbd://").ok_or_else(expected)?;
        let (host, export) = rest.split_once('/').unwrap_or((rest, ""));
        if host.is_empty() {
            return Err(expected());
        }
        let host = if host.rsplit(']').next().is_some_and(|end| end.contains(':')) {
            host.to_owned()
        } else {
            format!("{host}:10809")
        };
        Ok(Self { address: Address::Tcp(host), export: unescape(export).ok_or_else(expected)? })
    }
}

/// Undoes percent encoding.
fn unescape(text: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        rest = tail;
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let (digits, tail) = rest.split_at_checked(2)?;
        bytes.push(u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?);
        rest = tail;
    }
    String::from_utf8(bytes).ok()
}

enum Socket {
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl Socket {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        match self {
            Self::Unix(socket) => socket.read(into),
            Self::Tcp(socket) => socket.read(into),
        }
    }

    fn write(&mut self, from: &[u8]) -> std::io::Result<usize> {
        match self {
            Self::Unix(socket) => socket.write(from),
            Self::Tcp(socket) => socket.write(from),
        }
    }

    fn read_exact(&mut self, into: &mut [u8]) -> std::io::Result<()> {
        match self {
            Self::Unix(socket) => socket.read_exact(into),
            Self::Tcp(socket) => socket.read_exact(into),
        }
    }

    fn write_all(&mut self, from: &[u8]) -> std::io::Result<()> {
        match self {
            Self::Unix(socket) => socket.write_all(from),
            Self::Tcp(socket) => socket.write_all(from),
        }
    }

    fn set_patience(&self, patience: Duration) -> std::io::Result<()> {
        match self {
            Self::Unix(socket) => {
                socket.set_read_timeout(Some(patience))?;
                socket.set_write_timeout(Some(patience))
            }
            Self::Tcp(socket) => {
                socket.set_nodelay(true)?;
                socket.set_read_timeout(Some(patience))?;
                socket.set_write_timeout(Some(patience))
            }
        }
    }

    fn set_nonblocking(&self) -> std::io::Result<()> {
        match self {
            Self::Unix(socket) => socket.set_nonblocking(true),
            Self::Tcp(socket) => socket.set_nonblocking(true),
        }
    }

    fn fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Unix(socket) => socket.as_fd(),
            Self::Tcp(socket) => socket.as_fd(),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Waiting {
    Nothing,
    Answer,
    /// A read: the payload follows the answer.
    Payload,
}

struct Place {
    waiting: Waiting,
    offset_bytes: u64,
    payload: Vec<u8>,
}

/// See the module's documentation.
pub struct NbdTarget {
    name: String,
    socket: Socket,
    volume_bytes: u64,
    flags: u16,
    out: Vec<u8>,
    out_sent: usize,
    /// Header of the reply being read.
    header: [u8; wire::SIMPLE_REPLY_BYTES],
    header_len: usize,
    /// The read whose payload is being taken, and how much of it is there.
    filling: Option<(usize, usize)>,
    places: Vec<Place>,
    finished: Vec<Finished>,
    own_flush: Option<Result<(), String>>,
}

impl NbdTarget {
    /// Connects to an export.
    pub fn connect(uri: &Uri) -> Result<Self, Failure> {
        let name = match &uri.address {
            Address::Unix(path) => path.clone(),
            Address::Tcp(host) => host.clone(),
        };
        let failed = |error: std::io::Error| Failure::new(format!("{name}: {error}"));
        let mut socket = match &uri.address {
            Address::Unix(path) => Socket::Unix(UnixStream::connect(path).map_err(failed)?),
            Address::Tcp(host) => Socket::Tcp(TcpStream::connect(host.as_str()).map_err(failed)?),
        };
        socket.set_patience(PATIENCE).map_err(failed)?;
        let (volume_bytes, flags) =
            handshake(&mut socket, &uri.export).map_err(|what| Failure::new(format!("{name}: {what}")))?;
        socket.set_nonblocking().map_err(failed)?;
        Ok(Self {
            name,
            socket,
            volume_bytes,
            flags,
            out: Vec::new(),
            out_sent: 0,
            header: [0; wire::SIMPLE_REPLY_BYTES],
            header_len: 0,
            filling: None,
            places: Vec::new(),
            finished: Vec::new(),
            own_flush: None,
        })
    }

    fn has_room(&self) -> bool {
        self.out.len() - self.out_sent <= OUT_BYTES_MAX
    }

    fn request(&mut self, command: Command, cookie: u64, offset: u64, length: u64) {
        if self.out_sent == self.out.len() {
            self.out.clear();
            self.out_sent = 0;
        } else if self.out_sent > self.out.len() / 2 {
            self.out.drain(..self.out_sent);
            self.out_sent = 0;
        }
        let length_bytes = u32::try_from(length).unwrap_or(u32::MAX);
        let header =
            RequestHeader { flags: 0, code: command.code(), cookie, offset_bytes: offset, length_bytes };
        wire::put_request(&mut self.out, &header);
    }

    fn lost(&self, what: impl std::fmt::Display) -> Failure {
        Failure::new(format!("{}: {what}", self.name))
    }

    /// Sends what the server takes; whether anything was sent.
    fn push(&mut self) -> Result<bool, Failure> {
        let mut moved = false;
        while self.out_sent < self.out.len() {
            match self.socket.write(&self.out[self.out_sent..]) {
                Ok(0) => return Err(self.lost("the server closed the connection")),
                Ok(count) => {
                    self.out_sent += count;
                    moved = true;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(self.lost(error)),
            }
        }
        Ok(moved)
    }

    /// Takes what the server sent; whether anything came.
    fn pull(&mut self) -> Result<bool, Failure> {
        let mut moved = false;
        loop {
            let result = match self.filling {
                Some((tag, at)) => self.socket.read(&mut self.places[tag].payload[at..]),
                None => self.socket.read(&mut self.header[self.header_len..]),
            };
            match result {
                Ok(0) => return Err(self.lost("the server closed the connection")),
                Ok(count) => {
                    moved = true;
                    self.took(count)?;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(moved),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(self.lost(error)),
            }
        }
    }

    fn took(&mut self, count: usize) -> Result<(), Failure> {
        if let Some((tag, at)) = self.filling {
            self.filling = Some((tag, at + count));
            if at + count == self.places[tag].payload.len() {
                self.filling = None;
                self.end(tag, Ok(()));
            }
            return Ok(());
        }
        self.header_len += count;
        if self.header_len < self.header.len() {
            return Ok(());
        }
        self.header_len = 0;
        let reply = wire::simple_reply(&self.header).map_err(|wrong| {
            self.lost(format!("a reply begins with {:#x}, expected {:#x}", wrong.found, wrong.expected))
        })?;
        let cookie = reply.cookie;
        let result = match reply.error {
            0 => Ok(()),
            error => Err(format!("the server answered with error {error}")),
        };
        if cookie == OWN_COOKIE {
            self.own_flush = Some(result);
            return Ok(());
        }
        let tag = usize::try_from(cookie).unwrap_or(usize::MAX);
        let waiting = self.places.get(tag).map_or(Waiting::Nothing, |place| place.waiting);
        match (waiting, &result) {
            (Waiting::Nothing, _) => {
                return Err(self.lost(format!("a reply to request {cookie}, which was not sent")));
            }
            (Waiting::Payload, Ok(())) => self.filling = Some((tag, 0)),
            (Waiting::Payload, Err(_)) | (Waiting::Answer, _) => self.end(tag, result),
        }
        Ok(())
    }

    fn end(&mut self, tag: usize, result: Result<(), String>) {
        self.places[tag].waiting = Waiting::Nothing;
        self.finished.push(Finished { tag, result });
    }

    fn wait(&self, wait_ns: u64) -> Result<(), Failure> {
        let mut flags = PollFlags::IN;
        if self.out_sent < self.out.len() {
            flags |= PollFlags::OUT;
        }
        let timeout = Timespec {
            tv_sec: i64::try_from(wait_ns / 1_000_000_000).unwrap_or(i64::MAX),
            // Below one second.
            tv_nsec: (wait_ns % 1_000_000_000) as _,
        };
        match poll(&mut [PollFd::from_borrowed_fd(self.socket.fd(), flags)], Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(self.lost(error)),
        }
    }
}

/// The size and flags of the export, and the connection ready for requests.
fn handshake(socket: &mut Socket, export: &str) -> Result<(u64, u16), String> {
    let io = |error: std::io::Error| format!("during the NBD handshake: {error}");
    let mut greeting = [0u8; wire::GREETING_BYTES];
    socket.read_exact(&mut greeting).map_err(io)?;
    let flags = wire::greeting(&greeting).ok_or("not an NBD server of the fixed newstyle")?;
    if flags & handshake_flag::FIXED_NEWSTYLE == 0 {
        return Err("the NBD server does not speak the fixed newstyle".to_owned());
    }
    if export.len() > wire::NAME_BYTES_MAX {
        return Err("the name of the export is too long".to_owned());
    }
    let mut message = Vec::new();
    let known = handshake_flag::FIXED_NEWSTYLE | handshake_flag::NO_ZEROES;
    wire::put_client_flags(&mut message, flags & known);
    wire::put_option(&mut message, option::GO, &wire::go_data(export));
    socket.write_all(&message).map_err(io)?;
    let mut found = None;
    loop {
        let mut header = [0u8; wire::OPTION_REPLY_HEADER_BYTES];
        socket.read_exact(&mut header).map_err(io)?;
        let header = wire::option_reply_header(&header)
            .filter(|header| header.length_bytes <= OPTION_BYTES_MAX)
            .ok_or("the NBD server answered an option with something else")?;
        let mut data = vec![0u8; header.length_bytes as usize];
        socket.read_exact(&mut data).map_err(io)?;
        match header.kind {
            reply::ACK => {
                return found.ok_or_else(|| "the NBD server did not say how large the export is".to_owned());
            }
            reply::INFO => found = wire::export_info(&data).or(found),
            refused => {
                let said = String::from_utf8_lossy(&data);
                return Err(format!("the NBD server refused export {export:?} (reply {refused:#x}) {said}"));
            }
        }
    }
}

impl Target for NbdTarget {
    fn prepare(&mut self, places: usize) {
        self.places.resize_with(places, || Place {
            waiting: Waiting::Nothing,
            offset_bytes: 0,
            payload: Vec::new(),
        });
    }

    fn volume_bytes(&self) -> u64 {
        self.volume_bytes
    }

    fn part_bytes_max(&self) -> u64 {
        PART_BYTES
    }

    fn trims_to_zeros(&self) -> bool {
        false
    }

    fn start_write(&mut self, part: Part, source: Source<'_>) -> bool {
        if !self.has_room() {
            return false;
        }
        self.request(Command::Write, part.tag as u64, part.offset_bytes, part.length_bytes);
        let start = self.out.len();
        // A part fits memory.
        self.out.resize(start + part.length_bytes as usize, 0);
        source(part.offset_bytes, &mut self.out[start..]);
        self.places[part.tag].waiting = Waiting::Answer;
        true
    }

    fn start_read(&mut self, part: Part) -> bool {
        if !self.has_room() {
            return false;
        }
        self.request(Command::Read, part.tag as u64, part.offset_bytes, part.length_bytes);
        let place = &mut self.places[part.tag];
        (place.waiting, place.offset_bytes) = (Waiting::Payload, part.offset_bytes);
        place.payload.resize(part.length_bytes as usize, 0);
        true
    }

    fn start_flush(&mut self, tag: usize) -> bool {
        if self.flags & transmission_flag::SEND_FLUSH == 0 {
            self.finished.push(Finished { tag, result: Ok(()) });
            return true;
        }
        self.request(Command::Flush, tag as u64, 0, 0);
        self.places[tag].waiting = Waiting::Answer;
        true
    }

    fn start_trim(&mut self, part: Part) -> bool {
        if self.flags & transmission_flag::SEND_TRIM == 0 || u32::try_from(part.length_bytes).is_err() {
            // A hint that cannot be given.
            self.finished.push(Finished { tag: part.tag, result: Ok(()) });
            return true;
        }
        self.request(Command::Trim, part.tag as u64, part.offset_bytes, part.length_bytes);
        self.places[part.tag].waiting = Waiting::Answer;
        true
    }

    fn turn(&mut self, _now_ns: u64, wait_ns: u64) -> Result<(), Failure> {
        let moved = self.push()? | self.pull()?;
        if !moved && self.finished.is_empty() && wait_ns > 0 {
            self.wait(wait_ns)?;
        }
        Ok(())
    }

    fn take_finished(&mut self, out: &mut Vec<Finished>) {
        out.append(&mut self.finished);
    }

    fn content(&mut self, tag: usize, sink: Sink<'_>) {
        let place = &self.places[tag];
        sink(place.offset_bytes, &place.payload);
    }

    fn release(&mut self, _tag: usize) {}

    fn snapshot(&self) -> Option<Snapshot> {
        None
    }

    fn settle(&mut self) -> Result<(), Failure> {
        if self.flags & transmission_flag::SEND_FLUSH == 0 {
            return Ok(());
        }
        self.request(Command::Flush, OWN_COOKIE, 0, 0);
        loop {
            self.turn(0, 1_000_000_000)?;
            match self.own_flush.take() {
                None => {}
                Some(Ok(())) => return Ok(()),
                Some(Err(reason)) => return Err(self.lost(format!("flush: {reason}"))),
            }
        }
    }

    fn commit(&mut self) -> Result<(), Failure> {
        Err(self.lost("parity commit cannot be asked for over NBD; use `elastripe commit`"))
    }

    fn checkpoint(&mut self, _kind: CheckpointKind) -> Result<(), Failure> {
        Err(self.lost("a checkpoint cannot be asked for over NBD; use `elastripe checkpoint`"))
    }

    fn lose(&mut self, _members: usize) {}

    fn commit_every(&mut self, _writes: Option<u64>) {
        // The server's affair; the command refuses the option.
    }

    fn memory(&self) -> Option<Memory> {
        None
    }

    fn config(&self) -> Option<&ArrayConfig> {
        None
    }

    fn stop(&mut self) -> Result<(), Failure> {
        self.request(Command::Disconnect, 0, 0, 0);
        self.push().map(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uris() {
        let unix =
            |path: &str, export: &str| Uri { address: Address::Unix(path.into()), export: export.into() };
        let tcp =
            |host: &str, export: &str| Uri { address: Address::Tcp(host.into()), export: export.into() };
        for (text, expected) in [
            ("unix:/tmp/s", unix("/tmp/s", "")),
            ("nbd+unix:///a%20b?socket=/tmp/s", unix("/tmp/s", "a b")),
            ("nbd+unix:///?socket=/tmp/s", unix("/tmp/s", "")),
            ("tcp:localhost:99", tcp("localhost:99", "")),
            ("nbd://host/x", tcp("host:10809", "x")),
            ("nbd://host:1", tcp("host:1", "")),
            ("nbd://[::1]:5/x", tcp("[::1]:5", "x")),
            ("nbd://[::1]/x", tcp("[::1]:10809", "x")),
        ] {
            assert_eq!(text.parse(), Ok(expected), "{text}");
        }
        for bad in
            ["", "unix:", "tcp:host", "nbd://", "nbd+unix:///x", "nbd+unix:///x?socket=%zz", "http://x"]
        {
            assert!(bad.parse::<Uri>().is_err(), "{bad}");
        }
    }
}
