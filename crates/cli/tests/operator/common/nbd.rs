//! The least of an NBD client: as many requests in flight as the test likes, answers in any order, and never
//! a wait without an end.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

const OPTION_MAGIC: u64 = 0x4948_4156_454f_5054;
const REQUEST_MAGIC: u32 = 0x2560_9513;
const REPLY_MAGIC: u32 = 0x6744_6698;

/// What to ask for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Command {
    Read = 0,
    Write = 1,
    Flush = 3,
    Trim = 4,
    WriteZeroes = 6,
}

/// A connection.
pub struct Nbd {
    stream: UnixStream,
    /// Of the export, as the server said at the beginning.
    pub size_bytes: u64,
}

impl Nbd {
    /// Connects to the default export; no answer is waited for longer than `limit`.
    pub fn connect(socket: &Path, limit: Duration) -> Self {
        let mut stream = UnixStream::connect(socket).unwrap();
        stream.set_read_timeout(Some(limit)).unwrap();
        let mut hello = [0; 18];
        stream.read_exact(&mut hello).unwrap();
        assert_eq!(hello[..8], *b"NBDMAGIC");
        // Fixed newstyle without zeroes, and the option that names an export: the empty name.
        let mut words = 3u32.to_be_bytes().to_vec();
        words.extend(OPTION_MAGIC.to_be_bytes());
        words.extend(1u32.to_be_bytes());
        words.extend(0u32.to_be_bytes());
        stream.write_all(&words).unwrap();
        let mut export = [0; 10];
        stream.read_exact(&mut export).unwrap();
        let size_bytes = u64::from_be_bytes(export[..8].try_into().unwrap());
        Self { stream, size_bytes }
    }

    /// Sends a request and waits for nothing.
    pub fn send(&mut self, command: Command, cookie: u64, offset: u64, length: u32, payload: &[u8]) {
        assert!(self.try_send(command, cookie, offset, length, payload), "the server is gone");
    }

    /// The same; `false` if the server is gone.
    pub fn try_send(
        &mut self,
        command: Command,
        cookie: u64,
        offset: u64,
        length: u32,
        payload: &[u8],
    ) -> bool {
        let mut bytes = REQUEST_MAGIC.to_be_bytes().to_vec();
        bytes.extend(0u16.to_be_bytes());
        bytes.extend((command as u16).to_be_bytes());
        bytes.extend(cookie.to_be_bytes());
        bytes.extend(offset.to_be_bytes());
        bytes.extend(length.to_be_bytes());
        bytes.extend(payload);
        self.stream.write_all(&bytes).is_ok()
    }

    /// The next answer, which must be a good one: its cookie and when it came; `None` if none comes in time.
    pub fn answer(&mut self) -> Option<(u64, Instant)> {
        let mut reply = [0; 16];
        self.stream.read_exact(&mut reply).ok()?;
        let now = Instant::now();
        assert_eq!(u32::from_be_bytes(reply[..4].try_into().unwrap()), REPLY_MAGIC);
        assert_eq!(u32::from_be_bytes(reply[4..8].try_into().unwrap()), 0, "an error was answered");
        Some((u64::from_be_bytes(reply[8..].try_into().unwrap()), now))
    }

    /// One request from its beginning to its end.
    pub fn request(&mut self, command: Command, offset: u64, length: u32, payload: &[u8]) {
        self.send(command, u64::MAX, offset, length, payload);
        assert_eq!(self.answer().expect("an answer in time").0, u64::MAX);
    }

    /// Reads a range.
    pub fn read(&mut self, offset: u64, length: u32) -> Vec<u8> {
        self.request(Command::Read, offset, length, &[]);
        let mut bytes = vec![0; length as usize];
        self.stream.read_exact(&mut bytes).unwrap();
        bytes
    }

    /// Says goodbye.
    pub fn leave(mut self) {
        let mut bytes = REQUEST_MAGIC.to_be_bytes().to_vec();
        bytes.extend(0u16.to_be_bytes());
        bytes.extend(2u16.to_be_bytes());
        bytes.extend([0; 20]);
        self.stream.write_all(&bytes).unwrap();
    }
}
