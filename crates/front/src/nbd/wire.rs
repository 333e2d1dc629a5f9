//! The NBD wire format: numbers, and pure functions between bytes and types. All integers are big-endian.
//!
//! Source: NetworkBlockDevice/nbd, `doc/proto.md`.
//!
//! | message | layout |
//! |---|---|
//! | greeting | `NBDMAGIC` 8, `IHAVEOPT` 8, handshake flags 2 |
//! | client flags | 4 |
//! | option | `IHAVEOPT` 8, option 4, length 4, data |
//! | option reply | magic 8, option 4, type 4, length 4, data |
//! | request | magic 4, flags 2, type 2, cookie 8, offset 8, length 4, payload of a write |
//! | simple reply | magic 4, error 4, cookie 8, payload of a read |
//! | structured reply chunk | magic 4, flags 2, type 2, cookie 8, length 4, data |

/// `NBDMAGIC`.
pub const GREETING_MAGIC: u64 = 0x4e42_444d_4147_4943;
/// `IHAVEOPT`, in the greeting and before each option.
pub const OPTION_MAGIC: u64 = 0x4948_4156_454f_5054;
/// Before each option reply.
pub const OPTION_REPLY_MAGIC: u64 = 0x0003_e889_0455_65a9;
/// Before each request.
pub const REQUEST_MAGIC: u32 = 0x2560_9513;
/// Before each simple reply.
pub const SIMPLE_REPLY_MAGIC: u32 = 0x6744_6698;
/// Before each structured reply chunk.
pub const STRUCTURED_REPLY_MAGIC: u32 = 0x668e_33ef;

/// Bytes of the greeting.
pub const GREETING_BYTES: usize = 18;
/// Bytes of the header of an option reply.
pub const OPTION_REPLY_HEADER_BYTES: usize = 20;
/// Bytes of a simple reply's header.
pub const SIMPLE_REPLY_BYTES: usize = 16;
/// Bytes of the client flags.
pub const CLIENT_FLAGS_BYTES: usize = 4;
/// Bytes of an option header.
pub const OPTION_HEADER_BYTES: usize = 16;
/// Bytes of a request header.
pub const REQUEST_HEADER_BYTES: usize = 28;

/// Longest data of an option we take; the protocol's own strings end at 4 KiB, so this is plenty.
pub const OPTION_BYTES_MAX: u32 = 64 << 10;
/// Options of one handshake; clients send fewer than twenty.
pub const OPTION_COUNT_MAX: u32 = 128;
/// Longest name or string (`doc/proto.md`: "no more than 4096 bytes").
pub const NAME_BYTES_MAX: usize = 4096;
/// Longest read or write (what the protocol tells clients to assume without other advice).
pub const REQUEST_BYTES_MAX: u32 = 32 << 20;
/// Smallest unit of requests.
pub const BLOCK_BYTES_MIN: u32 = 512;
/// Extents in a block status reply.
pub const EXTENT_COUNT_MAX: usize = 4096;

/// The one metadata context we know.
pub const CONTEXT_NAME: &[u8] = b"base:allocation";
/// Its number.
pub const CONTEXT_ID: u32 = 1;

/// Handshake flags; the client's answers have the same bits.
pub mod handshake_flag {
    /// Fixed newstyle.
    pub const FIXED_NEWSTYLE: u32 = 1;
    /// No 124 zeros after the export name.
    pub const NO_ZEROES: u32 = 2;
}

/// Options.
pub mod option {
    /// Old way into transmission.
    pub const EXPORT_NAME: u32 = 1;
    /// Soft end.
    pub const ABORT: u32 = 2;
    /// Names of exports.
    pub const LIST: u32 = 3;
    /// TLS.
    pub const STARTTLS: u32 = 5;
    /// Facts of an export.
    pub const INFO: u32 = 6;
    /// Facts, then transmission.
    pub const GO: u32 = 7;
    /// Turns structured replies on.
    pub const STRUCTURED_REPLY: u32 = 8;
    /// Which contexts exist.
    pub const LIST_META_CONTEXT: u32 = 9;
    /// Chooses contexts.
    pub const SET_META_CONTEXT: u32 = 10;
}

/// Types of option replies.
pub mod reply {
    /// Done.
    pub const ACK: u32 = 1;
    /// An export.
    pub const SERVER: u32 = 2;
    /// A fact.
    pub const INFO: u32 = 3;
    /// A context.
    pub const META_CONTEXT: u32 = 4;
    /// Not known.
    pub const ERR_UNSUP: u32 = (1 << 31) + 1;
    /// Not allowed here.
    pub const ERR_POLICY: u32 = (1 << 31) + 2;
    /// Malformed or out of order.
    pub const ERR_INVALID: u32 = (1 << 31) + 3;
    /// Nothing is said before the connection is encrypted.
    pub const ERR_TLS_REQD: u32 = (1 << 31) + 5;
    /// No such export.
    pub const ERR_UNKNOWN: u32 = (1 << 31) + 6;
    /// Too big.
    pub const ERR_TOO_BIG: u32 = (1 << 31) + 9;
}

/// Facts in `NBD_OPT_INFO` and `NBD_OPT_GO`.
pub mod info {
    /// Size and flags.
    pub const EXPORT: u16 = 0;
    /// Name.
    pub const NAME: u16 = 1;
    /// Description.
    pub const DESCRIPTION: u16 = 2;
    /// Smallest, preferred and largest request.
    pub const BLOCK_SIZE: u16 = 3;
}

/// Transmission flags.
pub mod transmission_flag {
    /// Always set.
    pub const HAS_FLAGS: u16 = 1;
    /// Takes no writes.
    pub const READ_ONLY: u16 = 1 << 1;
    /// Knows flush.
    pub const SEND_FLUSH: u16 = 1 << 2;
    /// Knows FUA.
    pub const SEND_FUA: u16 = 1 << 3;
    /// Knows trim.
    pub const SEND_TRIM: u16 = 1 << 5;
    /// Knows write-zeroes.
    pub const SEND_WRITE_ZEROES: u16 = 1 << 6;
    /// Knows DF.
    pub const SEND_DF: u16 = 1 << 7;
    /// A flush covers all connections.
    pub const CAN_MULTI_CONN: u16 = 1 << 8;
    /// Knows cache.
    pub const SEND_CACHE: u16 = 1 << 10;
}

/// Command flags.
pub mod command_flag {
    /// Durable when answered.
    pub const FUA: u16 = 1;
    /// Zeros must stay allocated.
    pub const NO_HOLE: u16 = 1 << 1;
    /// A read's answer is one chunk.
    pub const DF: u16 = 1 << 2;
    /// Block status: one extent is enough.
    pub const REQ_ONE: u16 = 1 << 3;
}

/// Types of structured reply chunks.
pub mod chunk {
    /// Set on a reply's last chunk.
    pub const FLAG_DONE: u16 = 1;
    /// No data.
    pub const NONE: u16 = 0;
    /// Offset, then data.
    pub const OFFSET_DATA: u16 = 1;
    /// Extents.
    pub const BLOCK_STATUS: u16 = 5;
    /// An error.
    pub const ERROR: u16 = (1 << 15) + 1;
}

/// State flags of `base:allocation`.
pub mod extent_state {
    /// Nothing is stored, reads as zeros.
    pub const HOLE_ZERO: u32 = 3;
    /// Stored.
    pub const DATA: u32 = 0;
}

/// Errors of the transmission phase.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Errno {
    /// Not allowed (the volume is read-only).
    Perm,
    /// Input/output error.
    Io,
    /// Malformed request.
    Inval,
    /// Beyond the end, or full.
    NoSpc,
    /// The server is stopping.
    Shutdown,
}

impl Errno {
    /// The number on the wire.
    pub const fn code(self) -> u32 {
        match self {
            Self::Perm => 1,
            Self::Io => 5,
            Self::Inval => 22,
            Self::NoSpc => 28,
            Self::Shutdown => 108,
        }
    }
}

/// Commands.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Command {
    /// Read.
    Read,
    /// Write; payload follows the header.
    Write,
    /// End of the session; not answered.
    Disconnect,
    /// Flush.
    Flush,
    /// Trim.
    Trim,
    /// Cache.
    Cache,
    /// Write zeros.
    WriteZeroes,
    /// Block status.
    BlockStatus,
}

impl Command {
    /// Every command, by its number on the wire.
    pub const ALL: [Self; 8] = [
        Self::Read,
        Self::Write,
        Self::Disconnect,
        Self::Flush,
        Self::Trim,
        Self::Cache,
        Self::WriteZeroes,
        Self::BlockStatus,
    ];

    /// The command of a number on the wire.
    pub fn from_code(code: u16) -> Option<Self> {
        Self::ALL.get(usize::from(code)).copied()
    }

    /// The number on the wire.
    pub const fn code(self) -> u16 {
        self as u16
    }

    /// What it asks of the volume; `None` ends the session.
    pub const fn asks(self) -> Option<crate::Command> {
        Some(match self {
            Self::Read => crate::Command::Read,
            Self::Write => crate::Command::Write,
            Self::Disconnect => return None,
            Self::Flush => crate::Command::Flush,
            Self::Trim => crate::Command::Discard,
            Self::Cache => crate::Command::Cache,
            Self::WriteZeroes => crate::Command::WriteZeroes,
            Self::BlockStatus => crate::Command::Extents,
        })
    }

    /// The flags that make sense. FUA is taken with every command (`doc/proto.md`, "NBD_CMD_FLAG_FUA").
    pub const fn flags_allowed(self) -> u16 {
        command_flag::FUA
            | match self {
                Self::Read => command_flag::DF,
                Self::WriteZeroes => command_flag::NO_HOLE,
                Self::BlockStatus => command_flag::REQ_ONE,
                Self::Write | Self::Disconnect | Self::Flush | Self::Trim | Self::Cache => 0,
            }
    }
}

/// A request header, not yet checked against the export.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RequestHeader {
    /// Command flags.
    pub flags: u16,
    /// Command number.
    pub code: u16,
    /// Comes back in the reply.
    pub cookie: u64,
    /// Offset on the volume in bytes.
    pub offset_bytes: u64,
    /// Length in bytes.
    pub length_bytes: u32,
}

/// An option header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OptionHeader {
    /// Which.
    pub option: u32,
    /// Bytes of data that follow.
    pub length_bytes: u32,
}

/// A magic number was wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("magic number {found:#x}, expected {expected:#x}")]
pub struct WrongMagic {
    /// What was there.
    pub found: u64,
    /// What should have been there.
    pub expected: u64,
}

fn be16(bytes: &[u8]) -> Option<(u16, &[u8])> {
    let (head, rest) = bytes.split_first_chunk()?;
    Some((u16::from_be_bytes(*head), rest))
}

fn be32(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let (head, rest) = bytes.split_first_chunk()?;
    Some((u32::from_be_bytes(*head), rest))
}

fn be64(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (head, rest) = bytes.split_first_chunk()?;
    Some((u64::from_be_bytes(*head), rest))
}

/// A string with its length (4 bytes) before it, and what follows. `None`: too short, or longer than names
/// may be.
fn string(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = be32(bytes)?;
    let length = usize::try_from(length).ok().filter(|&length| length <= NAME_BYTES_MAX)?;
    rest.split_at_checked(length)
}

/// The client flags at the start of `bytes`; `None`: more bytes are needed.
pub fn client_flags(bytes: &[u8]) -> Option<u32> {
    be32(bytes).map(|(flags, _)| flags)
}

/// The option header at the start of `bytes`; `None`: more bytes are needed.
pub fn option_header(bytes: &[u8]) -> Result<Option<OptionHeader>, WrongMagic> {
    let Some((magic, rest)) = be64(bytes) else { return Ok(None) };
    if magic != OPTION_MAGIC {
        return Err(WrongMagic { found: magic, expected: OPTION_MAGIC });
    }
    let header = be32(rest)
        .and_then(|(option, rest)| be32(rest).map(|(length_bytes, _)| OptionHeader { option, length_bytes }));
    Ok(header)
}

/// The request header at the start of `bytes`; `None`: more bytes are needed.
pub fn request_header(bytes: &[u8]) -> Result<Option<RequestHeader>, WrongMagic> {
    let Some(&header) = bytes.first_chunk::<REQUEST_HEADER_BYTES>() else { return Ok(None) };
    let header: &[u8] = &header;
    let fields = (|| {
        let (magic, rest) = be32(header)?;
        let (flags, rest) = be16(rest)?;
        let (code, rest) = be16(rest)?;
        let (cookie, rest) = be64(rest)?;
        let (offset_bytes, rest) = be64(rest)?;
        let (length_bytes, _) = be32(rest)?;
        Some((magic, RequestHeader { flags, code, cookie, offset_bytes, length_bytes }))
    })();
    match fields {
        Some((REQUEST_MAGIC, header)) => Ok(Some(header)),
        Some((found, _)) => Err(WrongMagic { found: found.into(), expected: REQUEST_MAGIC.into() }),
        None => Ok(None),
    }
}

/// The handshake flags of a greeting, as a client reads it.
pub fn greeting(bytes: &[u8; GREETING_BYTES]) -> Option<u32> {
    let (magic, rest) = be64(bytes)?;
    let (option_magic, rest) = be64(rest)?;
    let (flags, _) = be16(rest)?;
    ((magic, option_magic) == (GREETING_MAGIC, OPTION_MAGIC)).then_some(flags.into())
}

/// The header of an option reply.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OptionReplyHeader {
    /// Type, of those in [`reply`].
    pub kind: u32,
    /// Bytes of data that follow.
    pub length_bytes: u32,
}

/// The header of an option reply, as a client reads it; `None` if it is something else.
pub fn option_reply_header(bytes: &[u8; OPTION_REPLY_HEADER_BYTES]) -> Option<OptionReplyHeader> {
    let (magic, rest) = be64(bytes)?;
    let (_, rest) = be32(rest)?;
    let (kind, rest) = be32(rest)?;
    let (length_bytes, _) = be32(rest)?;
    (magic == OPTION_REPLY_MAGIC).then_some(OptionReplyHeader { kind, length_bytes })
}

/// Size and transmission flags in the data of a reply of the type [`reply::INFO`], if it is about these.
pub fn export_info(data: &[u8]) -> Option<(u64, u16)> {
    let (kind, rest) = be16(data)?;
    let (size_bytes, rest) = be64(rest)?;
    let (flags, rest) = be16(rest)?;
    (kind == info::EXPORT && rest.is_empty()).then_some((size_bytes, flags))
}

/// A simple reply's header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SimpleReply {
    /// 0, or an error's number.
    pub error: u32,
    /// The request's cookie.
    pub cookie: u64,
}

/// A simple reply's header, as a client reads it.
pub fn simple_reply(bytes: &[u8; SIMPLE_REPLY_BYTES]) -> Result<SimpleReply, WrongMagic> {
    let [m0, m1, m2, m3, e0, e1, e2, e3, cookie @ ..] = *bytes;
    let magic = u32::from_be_bytes([m0, m1, m2, m3]);
    if magic != SIMPLE_REPLY_MAGIC {
        return Err(WrongMagic { found: magic.into(), expected: SIMPLE_REPLY_MAGIC.into() });
    }
    Ok(SimpleReply { error: u32::from_be_bytes([e0, e1, e2, e3]), cookie: u64::from_be_bytes(cookie) })
}

/// Encodes the client flags, as a client does.
pub fn put_client_flags(out: &mut Vec<u8>, flags: u32) {
    out.extend_from_slice(&flags.to_be_bytes());
}

/// Encodes the data of `NBD_OPT_GO` that ask for nothing but what is told anyway, as a client does.
pub fn go_data(name: &str) -> Vec<u8> {
    let length = u32::try_from(name.len()).unwrap_or(u32::MAX);
    [&length.to_be_bytes(), name.as_bytes(), &[0, 0]].concat()
}

/// Encodes a request header, as a client does.
pub fn put_request(out: &mut Vec<u8>, header: &RequestHeader) {
    out.extend_from_slice(&REQUEST_MAGIC.to_be_bytes());
    out.extend_from_slice(&header.flags.to_be_bytes());
    out.extend_from_slice(&header.code.to_be_bytes());
    out.extend_from_slice(&header.cookie.to_be_bytes());
    out.extend_from_slice(&header.offset_bytes.to_be_bytes());
    out.extend_from_slice(&header.length_bytes.to_be_bytes());
}

/// Encodes an option, as a client does.
pub fn put_option(out: &mut Vec<u8>, option: u32, data: &[u8]) {
    out.extend_from_slice(&OPTION_MAGIC.to_be_bytes());
    out.extend_from_slice(&option.to_be_bytes());
    out.extend_from_slice(&u32::try_from(data.len()).unwrap_or(u32::MAX).to_be_bytes());
    out.extend_from_slice(data);
}

/// The data of `NBD_OPT_INFO` and `NBD_OPT_GO`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InfoQuery<'a> {
    /// Which export.
    pub name: &'a [u8],
    requests: &'a [u8],
}

impl<'a> InfoQuery<'a> {
    /// `None`: malformed.
    pub fn parse(data: &'a [u8]) -> Option<Self> {
        let (name, rest) = string(data)?;
        let (count, requests) = be16(rest)?;
        (requests.len() == usize::from(count) * 2).then_some(Self { name, requests })
    }

    /// Whether a fact was asked for.
    pub fn asks_for(&self, info: u16) -> bool {
        self.requests.chunks_exact(2).any(|pair| pair == info.to_be_bytes())
    }
}

/// The data of `NBD_OPT_LIST_META_CONTEXT` and `NBD_OPT_SET_META_CONTEXT`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ContextQuery<'a> {
    /// Which export.
    pub name: &'a [u8],
    /// How many queries there are.
    pub count: u32,
    queries: &'a [u8],
}

impl<'a> ContextQuery<'a> {
    /// `None`: malformed.
    pub fn parse(data: &'a [u8]) -> Option<Self> {
        let (name, rest) = string(data)?;
        let (count, queries) = be32(rest)?;
        let mut rest = queries;
        for _ in 0..count {
            rest = string(rest)?.1; // ends at the first query that is not there: a huge count costs nothing
        }
        rest.is_empty().then_some(Self { name, count, queries })
    }

    /// Whether a query satisfies a condition.
    pub fn any(&self, mut wanted: impl FnMut(&[u8]) -> bool) -> bool {
        let mut rest = self.queries;
        while let Some((query, tail)) = string(rest) {
            if wanted(query) {
                return true;
            }
            rest = tail;
        }
        false
    }
}

/// Encodes the greeting.
pub fn put_greeting(out: &mut Vec<u8>) {
    out.extend_from_slice(&GREETING_MAGIC.to_be_bytes());
    out.extend_from_slice(&OPTION_MAGIC.to_be_bytes());
    let flags = handshake_flag::FIXED_NEWSTYLE | handshake_flag::NO_ZEROES;
    out.extend_from_slice(&flags.to_be_bytes()[2..]);
}

/// Encodes an option reply whose data are the given parts.
pub fn put_option_reply(out: &mut Vec<u8>, option: u32, kind: u32, data: &[&[u8]]) {
    let length: usize = data.iter().map(|part| part.len()).sum();
    out.extend_from_slice(&OPTION_REPLY_MAGIC.to_be_bytes());
    out.extend_from_slice(&option.to_be_bytes());
    out.extend_from_slice(&kind.to_be_bytes());
    out.extend_from_slice(&u32::try_from(length).expect("option replies are short").to_be_bytes());
    data.iter().for_each(|part| out.extend_from_slice(part));
}

/// Encodes a simple reply's header.
pub fn put_simple_reply(out: &mut Vec<u8>, cookie: u64, error: Option<Errno>) {
    let mut bytes = [0; 16];
    bytes[..4].copy_from_slice(&SIMPLE_REPLY_MAGIC.to_be_bytes());
    bytes[4..8].copy_from_slice(&error.map_or(0, Errno::code).to_be_bytes());
    bytes[8..].copy_from_slice(&cookie.to_be_bytes());
    out.extend_from_slice(&bytes);
}

/// The header of a structured reply chunk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ChunkHeader {
    /// [`chunk::FLAG_DONE`] or 0.
    pub flags: u16,
    /// Type.
    pub kind: u16,
    /// The request's cookie.
    pub cookie: u64,
    /// Bytes that follow.
    pub length_bytes: u32,
}

/// Encodes a structured reply chunk's header.
pub fn put_chunk_header(out: &mut Vec<u8>, header: &ChunkHeader) {
    let mut bytes = [0; 20];
    bytes[..4].copy_from_slice(&STRUCTURED_REPLY_MAGIC.to_be_bytes());
    bytes[4..6].copy_from_slice(&header.flags.to_be_bytes());
    bytes[6..8].copy_from_slice(&header.kind.to_be_bytes());
    bytes[8..16].copy_from_slice(&header.cookie.to_be_bytes());
    bytes[16..].copy_from_slice(&header.length_bytes.to_be_bytes());
    out.extend_from_slice(&bytes);
}

/// Encodes the head of a data chunk; `length_bytes` of data (at most 32 MiB) must follow.
pub fn put_data_chunk(out: &mut Vec<u8>, flags: u16, cookie: u64, offset_bytes: u64, length_bytes: u32) {
    let header =
        ChunkHeader { flags, kind: chunk::OFFSET_DATA, cookie, length_bytes: length_bytes.saturating_add(8) };
    put_chunk_header(out, &header);
    out.extend_from_slice(&offset_bytes.to_be_bytes());
}

/// Encodes a reply's last chunk: an error without a message, or nothing.
pub fn put_last_chunk(out: &mut Vec<u8>, cookie: u64, error: Option<Errno>) {
    let flags = chunk::FLAG_DONE;
    match error {
        None => put_chunk_header(out, &ChunkHeader { flags, kind: chunk::NONE, cookie, length_bytes: 0 }),
        Some(error) => {
            put_chunk_header(out, &ChunkHeader { flags, kind: chunk::ERROR, cookie, length_bytes: 6 });
            out.extend_from_slice(&error.code().to_be_bytes());
            out.extend_from_slice(&0u16.to_be_bytes());
        }
    }
}

/// Encodes a block status reply of `(length in bytes, whether a hole)` extents, at most [`EXTENT_COUNT_MAX`].
pub fn put_block_status(out: &mut Vec<u8>, cookie: u64, extents: &[(u32, bool)]) {
    let extents = &extents[..extents.len().min(EXTENT_COUNT_MAX)];
    let length = u32::try_from(4 + extents.len() * 8).expect("the number of extents is bounded");
    let header =
        ChunkHeader { flags: chunk::FLAG_DONE, kind: chunk::BLOCK_STATUS, cookie, length_bytes: length };
    put_chunk_header(out, &header);
    out.extend_from_slice(&CONTEXT_ID.to_be_bytes());
    for &(length_bytes, hole) in extents {
        out.extend_from_slice(&length_bytes.to_be_bytes());
        let state = if hole { extent_state::HOLE_ZERO } else { extent_state::DATA };
        out.extend_from_slice(&state.to_be_bytes());
    }
}
