//! What can go wrong with a code.

use crate::{Backend, CodeKind};
use std::fmt;

/// Why a code could not be made or a piece not be rebuilt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CodeError {
    /// The kind of code does not exist for this shape.
    Geometry {
        /// Kind asked for.
        kind: CodeKind,
        /// Data columns asked for.
        width_max: usize,
        /// Parities asked for.
        parity_count: usize,
    },
    /// The code cuts pieces in symbols, and pieces of this length cannot be cut.
    Length {
        /// Kind of code.
        kind: CodeKind,
        /// Bytes of a piece.
        len: usize,
        /// What the length must be a multiple of, in bytes.
        unit: usize,
    },
    /// More pieces of the codeword are missing than the code can make up for.
    TooManyLosses {
        /// Data columns and parities of the codeword that are not at hand.
        lost: usize,
        /// How many may be missing.
        tolerated: usize,
    },
    /// This CPU cannot run the back end.
    Backend {
        /// Back end asked for.
        backend: Backend,
    },
}

impl fmt::Display for CodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Geometry { kind, width_max, parity_count } => {
                let expected = match kind {
                    CodeKind::Xor => "at least 1 data column, exactly 1 parity and at most 255 in all",
                    CodeKind::Cauchy => "at least 1 of each and at most 255 in all",
                    CodeKind::Rdp => "1 to 256 data columns, exactly 2 parities",
                };
                write!(
                    f,
                    "{kind} code with {width_max} data columns and {parity_count} parities: expected {expected}"
                )
            }
            Self::Length { kind, len, unit } => {
                write!(f, "{kind} code on pieces of {len} bytes: expected a multiple of {unit} bytes")
            }
            Self::TooManyLosses { lost, tolerated } => {
                write!(f, "{lost} pieces of the codeword are missing: the code tolerates {tolerated}")
            }
            Self::Backend { backend } => {
                write!(f, "code back end {backend} needs instructions that this CPU does not have")
            }
        }
    }
}

impl std::error::Error for CodeError {}
