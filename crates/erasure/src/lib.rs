//! Erasure codes as pure functions on bytes: XOR, Cauchy Reed-Solomon over GF(2^8), and row-diagonal parity.
//!
//! A codeword is a set of *data columns*, numbered from 0, and `m` *parities*. XOR and Reed-Solomon work byte
//! by byte: a piece may have any length and byte `i` of a parity depends on byte `i` of the data columns
//! only. Row-diagonal parity cuts pieces in symbols, of which their length must be a multiple.
//!
//! # The code on disk (never changes)
//! The field is GF(2^8) with polynomial 0x11D (that of Linux RAID-6, ISA-L and Jerasure). Parity `r` of a
//! codeword is the sum over its columns `c` of `coefficient(r, c) * data[c]`, where
//!
//! | parity | coefficient of column `c` |
//! |---|---|
//! | 0 | 1: plain XOR |
//! | 1 | 2^c: with parity 0 these are the P and Q of Linux RAID-6 |
//! | r >= 2 | y(c) / (y(c) + x(r)), with y(c) = 2^c / (2^c + 1) and x(r) = y(256 - r); column 0, where y is infinite, has 1 |
//!
//! This is one Cauchy matrix 1 / (x(r) + y(c)) (EPLOG, section 3.5, codes with Cauchy Reed-Solomon) whose
//! columns are scaled by y(c), with x(0) = 0 and x(1) = 1. Scaling rows or columns keeps every square
//! submatrix invertible, so any `m` pieces of a codeword may be lost.
//!
//! **Stable prefix.** A coefficient depends on its row and its column alone: not on how many columns a
//! codeword has, not on the width the code was made for, not on `m`. Therefore
//! - a codeword with few columns is the wide one with zero columns left out (elastic log stripes, EPLOG
//!   section 3.2); columns may be any subset, in any order;
//! - parity `r` is the same bytes whether the code has `r + 1` parities or more;
//! - XOR is the Cauchy code with one parity.
//!
//! # Row-diagonal parity on disk (never changes)
//! Two parities, XORs only (Corbett et al., FAST 2004). The prime p is 17 if the code was made for at most
//! 16 data columns, else 257 (up to 256 columns). A piece is p - 1 symbols of equal length, symbol `r` of
//! which is row `r`. With `d[c][r]` for symbol `r` of data column `c`, symbols and columns that do not
//! exist being zeros,
//!
//! | parity | symbol `r` |
//! |---|---|
//! | 0 (row) | `P[r]` = sum over columns `c` of `d[c][r]`: plain XOR |
//! | 1 (diagonal) | sum over columns `c` of `d[c][(r - c) mod p]`, plus `P[r + 1]` |
//!
//! Again a codeword with few columns is the wide one with zero columns left out, in any subset and order; but
//! the diagonal parity depends on p, and so on whether the code was made for more than 16 columns.
//!
//! # Speed
//! The kernels of XOR and Reed-Solomon read every source once and write every parity once; those of
//! row-diagonal parity read every source twice. The back end is chosen at run time ([`backend_name`]);
//! [`Backend::Scalar`] is the golden version that every other one must equal byte for byte.
#![deny(unsafe_code)]

mod code;
mod error;
mod field;
mod kernel;
mod kind;
mod matrix;
mod operations;
mod pieces;
mod rdp;
mod rebuild;

pub use code::Code;
pub use error::CodeError;
pub use kernel::{Apart, Backend, Memory, Region, backend_name};
pub use kind::CodeKind;

/// Overwrites the piece `output` with the XOR of all `inputs`; zeros if there are none.
///
/// # Panics
/// If a piece reaches beyond the memory or the output overlaps an input.
pub fn xor_in(memory: &mut impl Memory, inputs: &[usize], output: usize) {
    kernel::assert_disjoint(memory.distance(), inputs.iter().copied(), &[output]);
    let shape = kernel::Shape::plain(inputs.len(), 1);
    kernel::combine(Backend::detected_kernels(), memory, shape, |i| inputs[i], |_| output, |_, _| [1; 4]);
}

/// Whether every byte is zero; true for no bytes at all.
pub fn is_zero(bytes: &[u8]) -> bool {
    // Whole blocks without an exit inside let the compiler use vectors; most non-zero chunks end at
    // the first block.
    const BLOCK_BYTES: usize = 512;
    let mut blocks = bytes.chunks_exact(BLOCK_BYTES);
    blocks.by_ref().all(|block| block.iter().fold(0, |sum, &byte| sum | byte) == 0)
        && blocks.remainder().iter().all(|&byte| byte == 0)
}
