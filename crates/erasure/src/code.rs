//! The codes: their shapes and coefficients. What they do to pieces is in `operations.rs`.

use crate::kernel::{Kernels, TARGETS_MAX};
use crate::{Backend, CodeError, CodeKind, matrix, pieces};
use std::sync::Arc;

/// A code: turns data columns into parities, and pieces of a codeword into the missing ones.
///
/// Pieces of a codeword are numbered: `0..width_max` are data columns, `width_max + r` is parity `r`. Columns
/// that a codeword does not have are zeros (crate documentation, "stable prefix").
///
/// The functions ending in `_in` work on pieces of one region, named by byte offset; the others on slices.
#[derive(Clone, Debug)]
pub struct Code {
    kind: CodeKind,
    width_max: usize,
    parity_count: usize,
    kernels: &'static Kernels,
    /// The coefficients of column 0 for every parity, then those of column 1, and so on; [`TARGETS_MAX`] - 1
    /// zeros at the end, so that a full group can be taken from anywhere. None for row-diagonal parity.
    coefficients: Arc<[u8]>,
}

impl Code {
    /// A code of up to `width_max` data columns and `parity_count` parities: at least 1 of each and at most
    /// 255 in all; row-diagonal parity has 2 parities and up to 256 data columns.
    pub fn new(kind: CodeKind, width_max: usize, parity_count: usize) -> Result<Self, CodeError> {
        let in_all = width_max.saturating_add(parity_count) <= matrix::PIECE_COUNT_MAX;
        let possible = match kind {
            CodeKind::Xor => parity_count == 1 && in_all,
            CodeKind::Cauchy => parity_count >= 1 && in_all,
            CodeKind::Rdp => parity_count == pieces::RDP_PARITY_COUNT && width_max <= pieces::RDP_WIDTH_MAX,
        };
        if !possible || width_max == 0 {
            return Err(CodeError::Geometry { kind, width_max, parity_count });
        }
        let matrix_width = if kind == CodeKind::Rdp { 0 } else { width_max };
        let rows_of = |column| (0..parity_count).map(move |row| matrix::coefficient(row, column));
        let coefficients = (0..matrix_width).flat_map(rows_of).chain([0; TARGETS_MAX - 1]).collect();
        Ok(Self { kind, width_max, parity_count, kernels: Backend::detected_kernels(), coefficients })
    }

    /// The same code, computed by another back end; the bytes are the same.
    pub fn with_backend(mut self, backend: Backend) -> Result<Self, CodeError> {
        self.kernels = backend.kernels().ok_or(CodeError::Backend { backend })?;
        Ok(self)
    }

    /// Which code it is.
    pub fn kind(&self) -> CodeKind {
        self.kind
    }

    /// m: parities of a codeword, and how many pieces may be lost.
    pub fn parity_count(&self) -> usize {
        self.parity_count
    }

    /// The most data columns of a codeword.
    pub fn width_max(&self) -> usize {
        self.width_max
    }

    /// The back end that computes.
    pub fn backend(&self) -> Backend {
        self.kernels.backend()
    }

    /// What computes.
    pub(crate) fn kernels(&self) -> &'static Kernels {
        self.kernels
    }

    /// What the length of pieces must be a multiple of, in bytes.
    pub fn length_unit(&self) -> usize {
        match self.kind {
            CodeKind::Xor | CodeKind::Cauchy => 1,
            CodeKind::Rdp => pieces::rdp_prime(self.width_max) - 1,
        }
    }

    /// Whether the code works on pieces of `len` bytes.
    ///
    /// # Errors
    /// [`CodeError::Length`] if `len` is not a multiple of [`Code::length_unit`]; then encode
    /// and update panic.
    pub fn check_length(&self, len: usize) -> Result<(), CodeError> {
        let unit = self.length_unit();
        if len.is_multiple_of(unit) { Ok(()) } else { Err(CodeError::Length { kind: self.kind, len, unit }) }
    }

    /// The factor of data column `column` in parity `row`.
    ///
    /// # Panics
    /// If the code has no such parity or column, or no coefficients because it is row-diagonal parity.
    pub fn coefficient(&self, row: usize, column: usize) -> u8 {
        assert!(row < self.parity_count, "parity {row} of a code with {} parities", self.parity_count);
        self.group(column, row)[0]
    }

    /// The coefficients of `column` for the parities from `row` on, followed by anything.
    pub(crate) fn group(&self, column: usize, row: usize) -> [u8; TARGETS_MAX] {
        assert!(column < self.width_max, "data column {column} of a code with {} columns", self.width_max);
        assert!(self.kind != CodeKind::Rdp, "row-diagonal parity has no coefficients");
        let start = column * self.parity_count + row;
        *self.coefficients[start..].first_chunk().expect("the table ends with zeros")
    }
}
