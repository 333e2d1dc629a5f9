//! What a round can find wrong.

use std::fmt;

/// The checks; each has a canary that must make it fire.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Check {
    /// Bytes that were never written there.
    WrongData,
    /// An older version than the newest durable one, or a torn chunk.
    OlderState,
    /// An I/O error although the array bears what was done to it.
    NeedlessError,
    /// A start or command refused although the array bears what was done to it.
    NeedlessRefusal,
    /// A request or command without an end.
    Hang,
    /// `status` calls healthy what is not.
    FalselyHealthy,
    /// A command panicked or aborted.
    Panic,
    /// A server ended by itself, or a member that nobody touched is out of service.
    Lost,
    /// The harness itself could not go on.
    Harness,
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::WrongData => "wrong-data",
            Self::OlderState => "older-state",
            Self::NeedlessError => "needless-error",
            Self::NeedlessRefusal => "needless-refusal",
            Self::Hang => "hang",
            Self::FalselyHealthy => "falsely-healthy",
            Self::Panic => "panic",
            Self::Lost => "lost",
            Self::Harness => "harness",
        })
    }
}

/// A check that failed, and what was seen.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Verdict {
    /// Which one.
    pub check: Check,
    /// What was seen.
    pub what: String,
}

impl Verdict {
    /// This check failed.
    pub fn new(check: Check, what: impl Into<String>) -> Self {
        Self { check, what: what.into() }
    }

    /// The harness itself failed; nothing is said about the product.
    pub fn harness(what: impl Into<String>) -> Self {
        Self::new(Check::Harness, what)
    }
}

impl From<std::io::Error> for Verdict {
    fn from(error: std::io::Error) -> Self {
        Self::harness(error.to_string())
    }
}

impl From<crate::ledger::Wrong> for Verdict {
    fn from(wrong: crate::ledger::Wrong) -> Self {
        let check = match wrong {
            crate::ledger::Wrong::Foreign { .. } => Check::WrongData,
            crate::ledger::Wrong::Older { .. } | crate::ledger::Wrong::Torn { .. } => Check::OlderState,
        };
        Self::new(check, wrong.to_string())
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.check, self.what)
    }
}
