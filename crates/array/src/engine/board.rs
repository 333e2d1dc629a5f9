//! What activities want of each other, and must know of each other. They never call one another: whoever
//! wants something writes it here, and whoever it is wanted of looks here when its turn comes.

use super::checkpoint::CheckpointBoard;
use super::commit::CommitBoard;
use super::flush::FlushBoard;
use super::lost::LossList;
use super::maintain::UpkeepBoard;
use super::members::MembersBoard;
use super::patrol::MetadataBoard;
use super::zero::ZeroRange;
use crate::image::CheckpointPlace;
use block::Seq;
use format::Superblock;
use std::collections::VecDeque;

/// See the module's documentation.
pub(super) struct Board {
    pub flush: FlushBoard,
    pub checkpoint: CheckpointBoard,
    pub commit: CommitBoard,
    pub upkeep: UpkeepBoard,
    pub metadata: MetadataBoard,
    pub members: MembersBoard,
    pub losses: LossList,
    /// Discards of which the next stretch may begin.
    pub zeros: VecDeque<ZeroRange>,
    /// Writes found no space since the last step of garbage collection ended.
    pub short_of_space: bool,
    /// More members are lost than the code tolerates: nothing is written any more.
    pub frozen: bool,
    /// The array is being stopped: no write is taken.
    pub read_only: bool,
    /// Rebuild, scrub and patrol were given up before a stop.
    pub halted: bool,
    /// When the last request came.
    pub last_request_ns: u64,
}

impl Board {
    /// Of so many members, the first ones of which are main devices.
    pub fn new(
        (members, main_count): (usize, usize),
        superblock: Superblock,
        place: CheckpointPlace,
        durable: Seq,
    ) -> Self {
        Self {
            flush: FlushBoard::new(members, main_count, durable),
            checkpoint: CheckpointBoard::new(place, durable),
            commit: CommitBoard::default(),
            upkeep: UpkeepBoard::default(),
            metadata: MetadataBoard::default(),
            losses: LossList::new(superblock.losses.chunks),
            members: MembersBoard::new(superblock),
            zeros: VecDeque::new(),
            short_of_space: false,
            frozen: false,
            read_only: false,
            halted: false,
            last_request_ns: 0,
        }
    }
}
