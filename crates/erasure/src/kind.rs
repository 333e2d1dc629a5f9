//! The kinds of codes.

use std::fmt;

/// Which code. A kind that is not a matrix of byte coefficients has its own arm in the
/// operations of [`Code`](crate::Code).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum CodeKind {
    /// One parity, the XOR of all columns.
    Xor,
    /// Cauchy Reed-Solomon, any number of parities.
    Cauchy,
    /// Row-diagonal parity, two parities: XORs only, across symbols within a piece.
    Rdp,
}

impl fmt::Display for CodeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Xor => "xor",
            Self::Cauchy => "cauchy",
            Self::Rdp => "rdp",
        })
    }
}
