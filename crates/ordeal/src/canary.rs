//! Lies of the harness about what it does. Each imitates a fault of the product, and some check must find it
//! out: a check that lets its canary pass would let the fault pass, too.

use crate::verdict::Check;

/// A lie.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Canary {
    /// A write counts as answered and durable, and is never sent.
    LostWrite,
    /// A request is never sent, and its answer waited for.
    LostRequest,
    /// A bit of what was read is another one.
    FlippedBit,
    /// After an orderly stop all members are put back to what they held a session ago.
    RolledBack,
    /// `status` is taken to say healthy, whatever it says.
    SaysHealthy,
    /// A command is taken to have panicked.
    SaysPanic,
    /// One member more is taken away than the array bears, and it is not noted.
    LostMember,
    /// The server is killed behind the harness's back.
    LostServer,
    /// Half of a member's data and one more member's are overwritten, and it is not noted.
    LostChunks,
    /// A member that came back loses what it holds, and so do as many others as the array bears; only of the
    /// others it is noted.
    StaleReturn,
    /// A member's successor loses what it holds, and so do as many others as the array bears; only of the
    /// others it is noted.
    BlankSuccessor,
}

impl Canary {
    /// All of them.
    pub const ALL: [(&'static str, Self); 11] = [
        ("lost-write", Self::LostWrite),
        ("lost-request", Self::LostRequest),
        ("flipped-bit", Self::FlippedBit),
        ("rolled-back", Self::RolledBack),
        ("says-healthy", Self::SaysHealthy),
        ("says-panic", Self::SaysPanic),
        ("lost-member", Self::LostMember),
        ("lost-server", Self::LostServer),
        ("lost-chunks", Self::LostChunks),
        ("stale-return", Self::StaleReturn),
        ("blank-successor", Self::BlankSuccessor),
    ];

    /// The check that must find it out.
    pub fn check(self) -> &'static [Check] {
        match self {
            Self::LostWrite | Self::RolledBack => &[Check::OlderState],
            Self::LostRequest => &[Check::Hang],
            Self::FlippedBit => &[Check::WrongData],
            Self::SaysHealthy => &[Check::FalselyHealthy],
            Self::SaysPanic => &[Check::Panic],
            Self::LostMember => &[Check::NeedlessRefusal],
            Self::LostServer => &[Check::Lost],
            Self::LostChunks | Self::StaleReturn | Self::BlankSuccessor => &[Check::NeedlessError],
        }
    }
}
