//! As much of an NBD client as a round needs: fixed newstyle, NBD_OPT_GO, simple replies, many requests in
//! flight. It is written from the protocol's document and shares no code with the server.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

const NBD_MAGIC: u64 = 0x4e42_444d_4147_4943;
const OPTION_MAGIC: u64 = 0x4948_4156_454f_5054;
const OPTION_REPLY_MAGIC: u64 = 0x0003_e889_0455_65a9;
const REQUEST_MAGIC: u32 = 0x2560_9513;
const REPLY_MAGIC: u32 = 0x6744_6698;
const OPTION_GO: u32 = 7;
const REPLY_ACK: u32 = 1;
const REPLY_INFO: u32 = 3;
/// How long one read of the socket may wait before its caller looks at the time again.
const TICK: Duration = Duration::from_millis(20);

/// What a request asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Command {
    /// NBD_CMD_READ.
    Read,
    /// NBD_CMD_WRITE.
    Write,
    /// NBD_CMD_FLUSH.
    Flush,
    /// NBD_CMD_TRIM.
    Trim,
    /// NBD_CMD_WRITE_ZEROES.
    WriteZeroes,
}

impl Command {
    fn code(self) -> u16 {
        match self {
            Self::Read => 0,
            Self::Write => 1,
            Self::Flush => 3,
            Self::Trim => 4,
            Self::WriteZeroes => 6,
        }
    }
}

/// One request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// What it asks for.
    pub command: Command,
    /// Durable when it is answered (NBD_CMD_FLAG_FUA).
    pub fua: bool,
    /// First byte.
    pub offset: u64,
    /// Bytes.
    pub length: u32,
}

/// An answer. `error` is 0 if all went well.
#[derive(Debug)]
pub struct Reply {
    /// Of the request.
    pub cookie: u64,
    /// NBD's error number.
    pub error: u32,
    /// What was read.
    pub data: Vec<u8>,
}

/// The half of a connection that sends.
pub struct Sender {
    stream: UnixStream,
}

/// The half that receives.
pub struct Receiver {
    stream: UnixStream,
    buffer: Vec<u8>,
}

/// What receiving came to.
pub enum Received {
    /// An answer.
    Reply(Reply),
    /// Nothing for a moment.
    Nothing,
    /// The other side has closed the connection.
    Closed,
}

fn protocol(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("NBD: {what}"))
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_be_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

/// Connects; the answer also says how many bytes the volume has.
pub fn connect(path: &Path, patience: Duration) -> io::Result<(Sender, Receiver, u64)> {
    let mut stream = UnixStream::connect(path)?;
    stream.set_read_timeout(Some(patience))?;
    stream.set_write_timeout(Some(patience))?;
    let mut hello = [0; 18];
    stream.read_exact(&mut hello)?;
    if u64_at(&hello, 0) != NBD_MAGIC || u64_at(&hello, 8) != OPTION_MAGIC {
        return Err(protocol("the greeting is not that of a fixed newstyle server"));
    }
    stream.write_all(&3u32.to_be_bytes())?; // fixed newstyle, no zeroes
    let mut go = OPTION_MAGIC.to_be_bytes().to_vec();
    go.extend(OPTION_GO.to_be_bytes());
    go.extend(6u32.to_be_bytes()); // an empty export name and no questions
    go.extend([0; 6]);
    stream.write_all(&go)?;
    let size_bytes = await_go(&mut stream)?;
    stream.set_read_timeout(Some(TICK))?;
    let sender = Sender { stream: stream.try_clone()? };
    Ok((sender, Receiver { stream, buffer: Vec::new() }, size_bytes))
}

fn await_go(stream: &mut UnixStream) -> io::Result<u64> {
    let mut size_bytes = None;
    loop {
        let mut header = [0; 20];
        stream.read_exact(&mut header)?;
        let length = u32_at(&header, 16);
        if u64_at(&header, 0) != OPTION_REPLY_MAGIC || length > 1 << 16 {
            return Err(protocol("a malformed answer to NBD_OPT_GO"));
        }
        let mut data = vec![0; length as usize];
        stream.read_exact(&mut data)?;
        match u32_at(&header, 12) {
            REPLY_ACK => return size_bytes.ok_or_else(|| protocol("no size before the acknowledgement")),
            REPLY_INFO if data.len() == 12 && data[..2] == [0, 0] => size_bytes = Some(u64_at(&data, 2)),
            REPLY_INFO => {}
            error => return Err(protocol(&format!("NBD_OPT_GO was refused: {error:#x}"))),
        }
    }
}

impl Sender {
    /// Sends a request; `payload` is what a write writes.
    pub fn send(&mut self, cookie: u64, request: Request, payload: &[u8]) -> io::Result<()> {
        let mut bytes = Vec::with_capacity(28 + payload.len());
        bytes.extend(REQUEST_MAGIC.to_be_bytes());
        bytes.extend(u16::from(request.fua).to_be_bytes());
        bytes.extend(request.command.code().to_be_bytes());
        bytes.extend(cookie.to_be_bytes());
        bytes.extend(request.offset.to_be_bytes());
        bytes.extend(request.length.to_be_bytes());
        bytes.extend_from_slice(payload);
        self.stream.write_all(&bytes)
    }

    /// Ends the connection, for both halves.
    pub fn close(&self) {
        let _ = self.stream.shutdown(std::net::Shutdown::Both); // it may be closed already
    }
}

impl Receiver {
    /// Waits a moment for an answer. `read_bytes` says how many bytes the answer to a read has.
    pub fn receive(&mut self, read_bytes: impl Fn(u64) -> usize) -> io::Result<Received> {
        if let Some(reply) = self.take(&read_bytes)? {
            return Ok(Received::Reply(reply));
        }
        let mut part = [0; 64 << 10];
        match self.stream.read(&mut part) {
            Ok(0) => Ok(Received::Closed),
            Ok(count) => {
                self.buffer.extend_from_slice(&part[..count]);
                Ok(self.take(&read_bytes)?.map_or(Received::Nothing, Received::Reply))
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                Ok(Received::Nothing)
            }
            Err(error)
                if matches!(error.kind(), io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe) =>
            {
                Ok(Received::Closed)
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(Received::Nothing),
            Err(error) => Err(error),
        }
    }

    fn take(&mut self, read_bytes: &impl Fn(u64) -> usize) -> io::Result<Option<Reply>> {
        if self.buffer.len() < 16 {
            return Ok(None);
        }
        if u32_at(&self.buffer, 0) != REPLY_MAGIC {
            return Err(protocol("a reply without its magic"));
        }
        let (error, cookie) = (u32_at(&self.buffer, 4), u64_at(&self.buffer, 8));
        let end = 16 + if error == 0 { read_bytes(cookie) } else { 0 };
        if self.buffer.len() < end {
            return Ok(None);
        }
        let data = self.buffer[16..end].to_vec();
        self.buffer.drain(..end);
        Ok(Some(Reply { cookie, error, data }))
    }
}

/// The time by which something must have happened.
#[derive(Clone, Copy, Debug)]
pub struct Deadline(Instant);

impl Deadline {
    /// So long from now.
    pub fn after(patience: Duration) -> Self {
        Self(Instant::now() + patience)
    }

    /// Whether it has passed.
    pub fn has_passed(self) -> bool {
        Instant::now() >= self.0
    }
}
