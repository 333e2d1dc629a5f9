//! Less than the newest durable state: how recovery says what is missing, what contradicts itself, and what
//! it could start from instead.

use block::{ChunkAddr, DevIndex, Epoch, Lcn, Seq, StripeId};
use format::ArrayConfig;
use std::fmt;

/// What of a loaded state contradicts the rest of it, although every checksum is right.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Contradiction {
    /// Two owners claim one chunk.
    #[error("two owners claim chunk {} of device {}", .0.chunk, .0.dev)]
    Owners(ChunkAddr),
    /// The map of a stripe, or a list item about it.
    #[error("{what} of stripe {stripe} does not fit")]
    Stripe {
        /// What does not fit.
        what: &'static str,
        /// The stripe.
        stripe: StripeId,
    },
    /// The owner of a chunk.
    #[error("{what} of chunk {lcn} of the volume does not fit")]
    Chunk {
        /// What does not fit.
        what: &'static str,
        /// The logical chunk.
        lcn: Lcn,
    },
    /// The bits that say which chunks are in use differ from what is named.
    #[error("chunk {} of device {} is in use and nothing names it, or the other way round", .0.chunk, .0.dev)]
    Unclaimed(ChunkAddr),
    /// A row of elastic stripes.
    #[error("row {0} of elastic stripes does not fit")]
    Row(u32),
    /// A log stripe of the list.
    #[error("the log stripe of record {0} does not fit")]
    LogStripe(Seq),
    /// A part of the state that has no name of its own.
    #[error("{0}")]
    Other(&'static str),
}

/// What to do if the members prove that newer durable state existed than any of them holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum OlderState {
    /// Do not assemble the array.
    #[default]
    Refuse,
    /// Assemble it in the newest state that there is: everything durable that came after it is lost.
    Accept,
}

/// What is known to have been durable and is on no member.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Missing {
    /// Every checkpoint of the newest assembly. Superblocks name an assembly only when its first checkpoint
    /// is durable.
    Assembly {
        /// The assembly.
        epoch: Epoch,
        /// The newest checkpoint that the superblocks name; 0 if they name none.
        checkpoint: u64,
    },
    /// The checkpoint of an orderly stop, of an array whose writes no record describes.
    Checkpoint {
        /// Its number.
        number: u64,
    },
    /// Records of the journal.
    Records {
        /// The first one missing.
        first: Seq,
        /// The last one known to have been durable.
        last: Seq,
    },
    /// An update of the superblocks: who is a member, and which of them failed.
    Superblocks {
        /// The update that the newest checkpoint names.
        wanted: u64,
        /// The newest that was found.
        found: u64,
    },
}

/// See the module's documentation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StateLost {
    /// What is missing.
    pub missing: Missing,
    /// The newest checkpoint that there is.
    pub checkpoint: u64,
    /// The assembly that wrote it.
    pub epoch: Epoch,
    /// The last record of what can be had.
    pub through: Seq,
    /// Members on which it was looked for.
    pub searched: Vec<String>,
    /// Members that are not there, or out of service.
    pub absent: Vec<String>,
}

impl StateLost {
    /// What `--force` gives, or gave.
    pub fn alternative(&self) -> String {
        format!(
            "the state as of checkpoint {} of assembly {} and the records behind it up to number {}; everything \
             written after that is lost",
            self.checkpoint, self.epoch, self.through
        )
    }
}

impl fmt::Display for StateLost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.missing {
            Missing::Assembly { epoch, checkpoint: 0 } => {
                write!(
                    f,
                    "the checkpoints of assembly {epoch}, of which superblocks or frames are left, are"
                )?;
            }
            Missing::Assembly { epoch, checkpoint } => {
                write!(f, "checkpoint {checkpoint} of assembly {epoch}, which the superblocks name, is")?;
            }
            Missing::Checkpoint { number } => {
                write!(f, "checkpoint {number}, with which the array was stopped, is")?;
            }
            Missing::Records { first, last } => {
                write!(f, "records {first} to {last} of the journal were durable, but are")?;
            }
            Missing::Superblocks { wanted, found } => {
                write!(f, "update {wanted} of the superblocks (the newest found is {found}) is")?;
            }
        }
        write!(f, " on none of the members found ({})", self.searched.join(", "))?;
        if !self.absent.is_empty() {
            write!(
                f,
                ", and {} may hold it: name every member that can still be read",
                self.absent.join(", ")
            )?;
        }
        write!(f, ": more members are damaged than the array tolerates")
    }
}

/// What a member is called: `data0`.., `log0`..
pub(crate) fn member_name(config: &ArrayConfig, dev: DevIndex) -> String {
    let n = config.geometry.device_count();
    if dev.index() < n { format!("data{dev}") } else { format!("log{}", dev.index() - n) }
}

/// What of the metadata contradicts itself, although every checksum is right.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Inconsistency {
    /// The table names what the devices do not have.
    #[error("the table of checkpoint {checkpoint} names chunks that the devices do not have")]
    Table {
        /// The checkpoint.
        checkpoint: u64,
    },
    /// The list cannot be read.
    #[error("the list of checkpoint {checkpoint} cannot be read: {cause}")]
    List {
        /// The checkpoint.
        checkpoint: u64,
        /// Why.
        cause: format::FormatError,
    },
    /// What was loaded contradicts itself.
    #[error("the state of checkpoint {checkpoint} contradicts itself: {cause}")]
    State {
        /// The checkpoint.
        checkpoint: u64,
        /// Where.
        cause: Contradiction,
    },
    /// A durable record does not fit.
    #[error("record {seq} ({kind}) was durable, but does not fit the state before it: {cause}")]
    Record {
        /// Which.
        seq: Seq,
        /// What it is a record of.
        kind: &'static str,
        /// Why it does not fit.
        cause: Misfit,
    },
}

/// Why a record does not fit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Misfit {
    /// It writes to a chunk that is in use, or that the device does not have, or twice to one.
    #[error("chunk {} of device {} is not free for it", .0.chunk, .0.dev)]
    Occupied(ChunkAddr),
    /// The scheme found that it does not belong to what the stripe holds, or that it is of another scheme.
    #[error("the scheme does not accept what it says")]
    Rejected,
}
