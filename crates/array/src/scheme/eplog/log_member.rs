//! A member of a live log stripe, as it is kept in memory.

use block::{ChunkIndex, Lcn};
use format::{LCN_LIMIT, LogMember, MemberFate};

/// The number of a log stripe, or a place, to look something up by.
#[inline]
pub fn index(number: u32) -> usize {
    number as usize
}

/// A member and what became of it.
#[derive(Clone, Copy)]
pub struct Member {
    /// Above [`LCN_LIMIT`] is the fate.
    lcn_and_fate: u64,
    pub chunk: ChunkIndex,
    pub crc: u32,
}

const _: () = assert!(size_of::<Member>() == 16, "a log stripe is spread over as few lines of the cache");

/// Where the fate is, above the number of the chunk.
const FATE_SHIFT: u32 = LCN_LIMIT.trailing_zeros();

impl Member {
    /// In place of one where there is none.
    pub const NONE: Self =
        Self { lcn_and_fate: fate_bits(MemberFate::Superseded), chunk: ChunkIndex::NONE, crc: 0 };

    /// What a record says, and what became of it.
    #[inline(always)]
    pub fn new(LogMember { lcn, chunk, crc }: LogMember, fate: MemberFate) -> Self {
        debug_assert!(lcn.get() < LCN_LIMIT, "{lcn} is none of a record");
        Self { lcn_and_fate: lcn.get() | fate_bits(fate), chunk, crc }
    }

    /// The chunk of the volume.
    #[inline]
    pub fn lcn(self) -> Lcn {
        Lcn::new(self.lcn_and_fate & (LCN_LIMIT - 1))
    }

    /// What it is to its data stripe.
    #[inline]
    pub fn fate(self) -> MemberFate {
        match self.lcn_and_fate >> FATE_SHIFT {
            0 => MemberFate::Newest,
            1 => MemberFate::Covered,
            _ => MemberFate::Superseded,
        }
    }

    /// It became something else.
    #[inline]
    pub fn set_fate(&mut self, fate: MemberFate) {
        self.lcn_and_fate = self.lcn().get() | fate_bits(fate);
    }

    /// Whether it is this version, and that became of it.
    pub fn is(self, lcn: Lcn, chunk: ChunkIndex, fate: MemberFate) -> bool {
        self.lcn() == lcn && self.chunk == chunk && self.fate() == fate
    }
}

const fn fate_bits(fate: MemberFate) -> u64 {
    let fate: u64 = match fate {
        MemberFate::Newest => 0,
        MemberFate::Covered => 1,
        MemberFate::Superseded => 2,
    };
    fate << FATE_SHIFT
}
