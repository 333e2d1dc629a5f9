//! Numbers and layouts of the driver's interface (`linux/ublk_cmd.h`).

/// Sectors of requests, whatever the device's block size.
pub const SECTOR_BYTES: u64 = 512;

/// Bytes of a control command.
const CONTROL_BYTES: usize = 32;
/// Bytes of a command of a queue.
const COMMAND_BYTES: usize = 16;
/// Bytes of what is told of a device.
pub const INFO_BYTES: usize = 64;
/// Bytes of parameters: head, basic, discard.
pub const PARAMETERS_BYTES: usize = 60;
/// Bytes of the set of features.
pub const FEATURES_BYTES: usize = 8;
/// Bytes of a request's description.
pub const ASK_BYTES: usize = 24;
/// Places that a queue may have.
pub const DEPTH_MAX: usize = 4096;
/// A device of any number; a command that is of no queue.
pub const ANY_NUMBER: u32 = u32::MAX;
const NO_QUEUE: u16 = u16::MAX;

/// As `_IOR` and `_IOWR` put a command together.
const fn code(direction: u32, bytes: u32, number: u32) -> u32 {
    const TYPE: u32 = 0x75;
    direction << 30 | bytes << 16 | TYPE << 8 | number
}

/// Control commands.
pub mod control {
    use super::code;
    pub const GET_INFO: u32 = code(2, 32, 0x02);
    pub const ADD: u32 = code(3, 32, 0x04);
    pub const DELETE: u32 = code(3, 32, 0x05);
    pub const START: u32 = code(3, 32, 0x06);
    pub const STOP: u32 = code(3, 32, 0x07);
    pub const SET_PARAMETERS: u32 = code(3, 32, 0x08);
    pub const GET_PARAMETERS: u32 = code(2, 32, 0x09);
    pub const START_RECOVERY: u32 = code(3, 32, 0x10);
    pub const END_RECOVERY: u32 = code(3, 32, 0x11);
    pub const GET_FEATURES: u32 = code(2, 32, 0x13);
    pub const DELETE_SOON: u32 = code(2, 32, 0x14);
}

/// Commands of queues.
pub mod command {
    use super::code;
    pub const FETCH: u32 = code(3, 16, 0x20);
    pub const COMMIT_AND_FETCH: u32 = code(3, 16, 0x21);
}

/// What a device does, and what the driver can do.
pub mod flag {
    pub const RECOVERY: u64 = 1 << 3;
    pub const RECOVERY_REISSUE: u64 = 1 << 4;
    pub const CODES: u64 = 1 << 6;
    pub const USER_COPY: u64 = 1 << 7;
}

mod attribute {
    pub const READ_ONLY: u32 = 1 << 0;
    pub const VOLATILE_CACHE: u32 = 1 << 2;
    pub const FUA: u32 = 1 << 3;
}

mod parameter {
    pub const BASIC: u32 = 1 << 0;
    pub const DISCARD: u32 = 1 << 1;
}

/// A control command: of which device, where its buffer is, and a number.
pub fn control_command(number: u32, buffer: (u64, u16), data: u64) -> [u8; 80] {
    let mut out = [0; 80];
    out[0..4].copy_from_slice(&number.to_ne_bytes());
    out[4..6].copy_from_slice(&NO_QUEUE.to_ne_bytes());
    out[6..8].copy_from_slice(&buffer.1.to_ne_bytes());
    out[8..16].copy_from_slice(&buffer.0.to_ne_bytes());
    out[16..24].copy_from_slice(&data.to_ne_bytes());
    debug_assert!(out[CONTROL_BYTES..].iter().all(|&byte| byte == 0));
    out
}

/// A command of a queue: which, for which place, and how the request there ended.
pub fn queue_command(queue: u16, tag: u16, result: i32) -> [u8; COMMAND_BYTES] {
    let mut out = [0; COMMAND_BYTES];
    out[0..2].copy_from_slice(&queue.to_ne_bytes());
    out[2..4].copy_from_slice(&tag.to_ne_bytes());
    out[4..8].copy_from_slice(&result.to_ne_bytes());
    out
}

/// Where the payload of a request is in the node's file.
pub fn payload_offset(queue: u16, tag: u16, at_bytes: u32) -> u64 {
    const PAYLOAD: u64 = 0x8000_0000;
    PAYLOAD + (u64::from(queue) << 41 | u64::from(tag) << 25 | u64::from(at_bytes))
}

/// What becomes of requests while there is no server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Recovery {
    /// The device ends with its server.
    None,
    /// They wait for the next server, which also gets those that the last one did not answer.
    Reissue,
}

/// How a device is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// Not started, or stopped.
    Dead,
    /// In service.
    Live,
    /// Waiting for a server.
    Quiesced,
    /// Waiting for a server; requests fail.
    Failing,
    /// Something that this program does not know.
    Unknown(u16),
}

impl State {
    fn of(number: u16) -> Self {
        match number {
            0 => Self::Dead,
            1 => Self::Live,
            2 => Self::Quiesced,
            3 => Self::Failing,
            other => Self::Unknown(other),
        }
    }
}

/// A device that is wanted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Plan {
    /// Its number; any that is free, without.
    pub number: Option<u32>,
    /// Its queues; the driver gives at most one for each processor.
    pub queues: u16,
    /// Requests that each queue has room for.
    pub depth: u16,
    /// Longest read or write, in bytes; at most 32 MiB.
    pub transfer_bytes_max: u32,
    /// What becomes of it without a server.
    pub recovery: Recovery,
    /// A number that is kept with it, for whoever finds it again.
    pub mark: u64,
}

impl Plan {
    /// As the driver takes it.
    pub fn encoded(&self) -> [u8; INFO_BYTES] {
        let recovery = match self.recovery {
            Recovery::None => 0,
            Recovery::Reissue => flag::RECOVERY | flag::RECOVERY_REISSUE,
        };
        let mut out = [0; INFO_BYTES];
        out[0..2].copy_from_slice(&self.queues.to_ne_bytes());
        out[2..4].copy_from_slice(&self.depth.to_ne_bytes());
        out[8..12].copy_from_slice(&self.transfer_bytes_max.to_ne_bytes());
        out[12..16].copy_from_slice(&self.number.unwrap_or(ANY_NUMBER).to_ne_bytes());
        out[24..32].copy_from_slice(&(flag::USER_COPY | flag::CODES | recovery).to_ne_bytes());
        out[32..40].copy_from_slice(&self.mark.to_ne_bytes());
        out
    }
}

/// What the driver tells of a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Info {
    /// Its number.
    pub number: u32,
    /// Its queues.
    pub queues: u16,
    /// Requests that each queue has room for.
    pub depth: u16,
    /// How it is.
    pub state: State,
    /// The process that serves it, or did so last.
    pub process: i32,
    /// What is kept with it.
    pub mark: u64,
    flags: u64,
}

impl Info {
    /// From the driver's bytes.
    pub fn decoded(bytes: &[u8; INFO_BYTES]) -> Self {
        Self {
            queues: half(bytes, 0),
            depth: half(bytes, 2),
            state: State::of(half(bytes, 4)),
            number: word(bytes, 12),
            process: word(bytes, 16).cast_signed(),
            flags: long(bytes, 24),
            mark: long(bytes, 32),
        }
    }

    /// What becomes of its requests without a server.
    pub fn recovery(&self) -> Recovery {
        let all = flag::RECOVERY | flag::RECOVERY_REISSUE;
        if self.flags & all == all { Recovery::Reissue } else { Recovery::None }
    }

    /// Whether payload is copied by reading and writing its node.
    pub fn copies_by_node(&self) -> bool {
        self.flags & flag::USER_COPY != 0
    }
}

/// What a disk is like, as its users see it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Parameters {
    /// Size in bytes.
    pub size_bytes: u64,
    /// Whether writes are refused.
    pub read_only: bool,
    /// Whether writes wait for a flush.
    pub volatile_cache: bool,
    /// What is written as a whole or not at all; a power of two, from a sector to a page.
    pub physical_block_bytes: u32,
    /// Size and alignment of requests at which it is at its best, a power of two.
    pub best_bytes: u32,
    /// Longest read or write, in bytes.
    pub transfer_bytes_max: u32,
    /// Longest discard or run of zeros, in bytes.
    pub discard_bytes_max: u32,
}

/// The exponent of a power of two.
fn exponent(bytes: u32) -> u8 {
    u8::try_from(bytes.max(1).ilog2()).expect("at most 31")
}

/// Sectors in so many bytes.
fn sectors(bytes: u32) -> u32 {
    bytes / 512
}

impl Parameters {
    /// As the driver takes them.
    pub fn encoded(&self) -> [u8; PARAMETERS_BYTES] {
        let mut attributes = 0;
        if self.read_only {
            attributes |= attribute::READ_ONLY;
        }
        if self.volatile_cache {
            attributes |= attribute::VOLATILE_CACHE | attribute::FUA;
        }
        let types = if self.read_only { parameter::BASIC } else { parameter::BASIC | parameter::DISCARD };
        let mut out = empty_parameters();
        out[4..8].copy_from_slice(&types.to_ne_bytes());
        out[8..12].copy_from_slice(&attributes.to_ne_bytes());
        let best = exponent(self.best_bytes);
        out[12..16].copy_from_slice(&[9, exponent(self.physical_block_bytes), best, best]);
        out[16..20].copy_from_slice(&sectors(self.transfer_bytes_max).to_ne_bytes());
        out[24..32].copy_from_slice(&(self.size_bytes / SECTOR_BYTES).to_ne_bytes());
        if !self.read_only {
            let most = sectors(self.discard_bytes_max);
            for (at, value) in [(44, self.best_bytes), (48, most), (52, most)] {
                out[at..at + 4].copy_from_slice(&value.to_ne_bytes());
            }
            out[56..58].copy_from_slice(&1u16.to_ne_bytes()); // ranges of one discard
        }
        out
    }

    /// From the driver's bytes.
    pub fn decoded(bytes: &[u8; PARAMETERS_BYTES]) -> Self {
        let attributes = word(bytes, 8);
        let power = |at: usize| 1u32.checked_shl(bytes[at].into()).unwrap_or(0);
        Self {
            size_bytes: long(bytes, 24).saturating_mul(SECTOR_BYTES),
            read_only: attributes & attribute::READ_ONLY != 0,
            volatile_cache: attributes & attribute::VOLATILE_CACHE != 0,
            physical_block_bytes: power(13),
            best_bytes: power(15),
            transfer_bytes_max: word(bytes, 16).saturating_mul(512),
            discard_bytes_max: word(bytes, 48).saturating_mul(512),
        }
    }
}

/// Room for parameters, with its length in the first field.
pub fn empty_parameters() -> [u8; PARAMETERS_BYTES] {
    let mut out = [0; PARAMETERS_BYTES];
    let length = u32::try_from(PARAMETERS_BYTES).expect("few");
    out[0..4].copy_from_slice(&length.to_ne_bytes());
    out
}

/// What a request asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operation {
    /// Give content.
    Read,
    /// Take content.
    Write,
    /// Make what was done durable.
    Flush,
    /// Forget content.
    Discard,
    /// Hold zeros.
    WriteZeroes,
    /// Something that this program does not know.
    Unknown(u8),
}

/// A request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ask {
    /// What.
    pub operation: Operation,
    /// It must be durable before it is answered.
    pub durable: bool,
    /// Zeros must keep their space.
    pub keep_space: bool,
    /// Where it starts, in sectors.
    pub sector: u64,
    /// How long it is, in sectors.
    pub sectors: u32,
}

impl Ask {
    /// From the driver's words.
    pub fn decoded(words: [u64; 2]) -> Self {
        const DURABLE: u32 = 1 << 13;
        const KEEP_SPACE: u32 = 1 << 15;
        let [a, b, c, d, e, f, g, h] = words[0].to_ne_bytes();
        let what = u32::from_ne_bytes([a, b, c, d]);
        let operation = match what.to_le_bytes()[0] {
            0 => Operation::Read,
            1 => Operation::Write,
            2 => Operation::Flush,
            3 => Operation::Discard,
            5 => Operation::WriteZeroes,
            other => Operation::Unknown(other),
        };
        Self {
            operation,
            durable: what & DURABLE != 0,
            keep_space: what & KEEP_SPACE != 0,
            sectors: u32::from_ne_bytes([e, f, g, h]),
            sector: words[1],
        }
    }
}

fn half(bytes: &[u8], at: usize) -> u16 {
    u16::from_ne_bytes([bytes[at], bytes[at + 1]])
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn long(bytes: &[u8], at: usize) -> u64 {
    let mut out = [0; 8];
    out.copy_from_slice(&bytes[at..at + 8]);
    u64::from_ne_bytes(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_those_of_the_header() {
        // As a C compiler puts them together from linux/ublk_cmd.h.
        assert_eq!(control::GET_FEATURES, 0x8020_7513);
        assert_eq!(control::ADD, 0xc020_7504);
        assert_eq!(control::GET_PARAMETERS, 0x8020_7509);
        assert_eq!(command::FETCH, 0xc010_7520);
        assert_eq!(command::COMMIT_AND_FETCH, 0xc010_7521);
        assert_eq!(payload_offset(1, 2, 3), 0x8000_0000 + (1 << 41) + (2 << 25) + 3);
    }

    #[test]
    fn what_is_planned_is_told() {
        let plan = Plan {
            number: Some(7),
            queues: 2,
            depth: 64,
            transfer_bytes_max: 1 << 20,
            recovery: Recovery::Reissue,
            mark: 0x0123_4567_89ab_cdef,
        };
        let info = Info::decoded(&plan.encoded());
        assert_eq!((info.number, info.queues, info.depth, info.mark), (7, 2, 64, plan.mark));
        assert_eq!((info.recovery(), info.copies_by_node(), info.state), (plan.recovery, true, State::Dead));
        let other = Info::decoded(&Plan { recovery: Recovery::None, number: None, ..plan }.encoded());
        assert_eq!((other.recovery(), other.number), (Recovery::None, ANY_NUMBER));
    }

    #[test]
    fn parameters_come_back_as_they_were() {
        let disk = Parameters {
            size_bytes: 3 << 30,
            read_only: false,
            volatile_cache: true,
            physical_block_bytes: 4096,
            best_bytes: 65536,
            transfer_bytes_max: 1 << 20,
            discard_bytes_max: 1 << 31,
        };
        assert_eq!(Parameters::decoded(&disk.encoded()), disk);
        let read_only = Parameters { read_only: true, volatile_cache: false, discard_bytes_max: 0, ..disk };
        assert_eq!(Parameters::decoded(&read_only.encoded()), read_only);
        assert_eq!(word(&disk.encoded(), 4), 3, "basic and discard");
        assert_eq!(word(&read_only.encoded(), 4), 1, "basic");
        assert_eq!(half(&disk.encoded(), 56), 1, "one range");
    }

    #[test]
    fn any_description_is_read_without_harm() {
        let words = |what: u32, sectors: u32, sector| {
            let [a, b, c, d] = what.to_ne_bytes();
            let [e, f, g, h] = sectors.to_ne_bytes();
            [u64::from_ne_bytes([a, b, c, d, e, f, g, h]), sector]
        };
        let ask = Ask::decoded(words(1 | 1 << 13, 8, 4096));
        assert_eq!(ask.operation, Operation::Write);
        assert!(ask.durable && !ask.keep_space && ask.sector == 4096 && ask.sectors == 8);
        let ask = Ask::decoded(words(5 | 1 << 15, u32::MAX, u64::MAX));
        assert!(ask.operation == Operation::WriteZeroes && ask.keep_space && !ask.durable);
        assert_eq!(Ask::decoded(words(0xff, 0, 0)).operation, Operation::Unknown(0xff));
        assert!(matches!(Info::decoded(&[0xff; INFO_BYTES]).state, State::Unknown(0xffff)));
        assert_eq!(Parameters::decoded(&[0xff; PARAMETERS_BYTES]).best_bytes, 0);
    }
}
