//! What can be wrong with bytes or a configuration.

use crate::ArrayUuid;
use block::Epoch;
use thiserror::Error;

/// Why bytes were not accepted as the block asked for, or a configuration is not usable.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum FormatError {
    /// The caller passed a buffer of another size than one metadata block.
    #[error("{what}: found {found} bytes, expected {expected}")]
    Length {
        /// Which structure.
        what: &'static str,
        /// Bytes given.
        found: usize,
        /// Bytes of a block.
        expected: usize,
    },
    /// The block is something else: never written, user data, or another structure.
    #[error("{what}: found {}, expected it to begin with \"{}\"", beginning(found), expected.escape_ascii())]
    BadMagic {
        /// Which structure.
        what: &'static str,
        /// The first eight bytes.
        found: [u8; 8],
        /// What they should be.
        expected: [u8; 8],
    },
    /// Written by another version of the format.
    #[error("{what}: found format version {found}, expected {expected}")]
    Version {
        /// Which structure.
        what: &'static str,
        /// The block's version.
        found: u16,
        /// The version that this code reads.
        expected: u16,
    },
    /// Torn or corrupted.
    #[error("{what}: found checksum {found:#010x}, expected {expected:#010x} from the content")]
    Checksum {
        /// Which structure.
        what: &'static str,
        /// The checksum stored in the block.
        found: u32,
        /// The checksum of the block's content.
        expected: u32,
    },
    /// An intact block in the wrong place: a misdirected read or write, or a left-over of an earlier use of
    /// the place.
    #[error("{what}: found {found}, expected {expected}")]
    Misplaced {
        /// Which structure and which part of its address.
        what: &'static str,
        /// The address that the block carries.
        found: u64,
        /// Where it was read.
        expected: u64,
    },
    /// A block of another array.
    #[error("{what}: found array {found}, expected {expected}")]
    OtherArray {
        /// Which structure.
        what: &'static str,
        /// The block's array.
        found: ArrayUuid,
        /// The array asked for.
        expected: ArrayUuid,
    },
    /// A block of an earlier (or, from a stale member's view, later) assembly of the array.
    #[error("{what}: found epoch {found}, expected {expected}")]
    OtherEpoch {
        /// Which structure.
        what: &'static str,
        /// The block's epoch.
        found: Epoch,
        /// The epoch asked for.
        expected: Epoch,
    },
    /// A block that does not carry the secret of this epoch: user data made to look like metadata. The nonces
    /// are not shown, so that a log file does not give them away.
    #[error("{what}: found another nonce than that of the epoch: not written by this array")]
    OtherNonce {
        /// Which structure.
        what: &'static str,
    },
    /// Intact bytes with a value that no writer of this version produces.
    #[error("{what}: found {found}, expected {expected}")]
    Malformed {
        /// Which field of which structure.
        what: &'static str,
        /// The value found.
        found: u64,
        /// The rule it breaks.
        expected: &'static str,
    },
    /// A configuration that does not fit together.
    #[error("configuration: {what} is {found}, expected {expected}")]
    Config {
        /// Which setting.
        what: &'static str,
        /// Its value.
        found: u64,
        /// The rule it breaks.
        expected: &'static str,
    },
}

/// The first bytes of a block that is something else.
fn beginning(bytes: &[u8; 8]) -> String {
    if bytes.iter().all(|&byte| byte == 0) {
        "zeros, as where nothing was written".to_owned()
    } else {
        format!("something that begins with \"{}\"", bytes.escape_ascii())
    }
}
