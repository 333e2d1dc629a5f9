//! The codes and their operations.

use crate::kernel::{self, Kernels, Memory, Region, Shape, Slices, TARGETS_MAX};
use crate::{Backend, CodeError, matrix, rdp, rebuild};
use std::fmt;
use std::sync::Arc;

/// Which code. A kind that is not a matrix of byte coefficients has its own arm in the
/// operations of [`Code`].
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
            CodeKind::Rdp => parity_count == rdp::PARITY_COUNT && width_max <= rdp::WIDTH_MAX,
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
            CodeKind::Rdp => rdp::prime(self.width_max) - 1,
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

    /// Encodes: overwrites the pieces at `outputs` (one for each parity, in order) with the parities of the
    /// codeword whose data column `columns[i]` lies at `inputs[i]`. Every piece is `len` bytes of `region`.
    /// Columns come in any order; those not listed are zeros. Never allocates.
    ///
    /// # Panics
    /// If a piece reaches beyond the region, an output overlaps any other piece, a column is listed twice or
    /// beyond `width_max`, the lists do not match, or `len` does not suit the code ([`Code::check_length`]).
    pub fn encode_in(
        &self,
        region: &mut [u8],
        len: usize,
        columns: &[usize],
        inputs: &[usize],
        outputs: &[usize],
    ) {
        kernel::assert_disjoint(len, inputs.iter().copied(), outputs);
        assert_eq!(columns.len(), inputs.len(), "each column has one input");
        assert_eq!(outputs.len(), self.parity_count, "each parity has one output");
        self.encode_pieces(&mut Region::new(region, len), columns, |i| inputs[i], |r| outputs[r]);
    }

    /// [`Code::encode_in`] on slices: column `columns[i]` is `data[i]`.
    ///
    /// # Panics
    /// As [`Code::encode_in`], and if the slices are not equally long.
    pub fn encode_columns(&self, columns: &[usize], data: &[&[u8]], parities: &mut [&mut [u8]]) {
        assert_eq!(columns.len(), data.len(), "each column has one input");
        assert_eq!(parities.len(), self.parity_count, "each parity has one output");
        self.encode_pieces(&mut Slices::new(data, parities), columns, |i| i, |r| r);
    }

    /// [`Code::encode_columns`] for the columns `0..data.len()`.
    ///
    /// # Panics
    /// As [`Code::encode_columns`].
    pub fn encode(&self, data: &[&[u8]], parities: &mut [&mut [u8]]) {
        let columns: [usize; rdp::WIDTH_MAX] = std::array::from_fn(|column| column);
        assert!(data.len() <= self.width_max, "{} columns of at most {}", data.len(), self.width_max);
        self.encode_columns(&columns[..data.len()], data, parities);
    }

    fn encode_pieces<M: Memory>(
        &self,
        memory: &mut M,
        columns: &[usize],
        input: impl Fn(usize) -> usize,
        output: impl Fn(usize) -> usize,
    ) {
        PieceSet::of(columns);
        match self.kind {
            CodeKind::Xor | CodeKind::Cauchy => {
                let shape = Shape { sources: columns.len(), targets: self.parity_count };
                let coefficients = |i: usize, row| self.group(columns[i], row);
                kernel::combine(self.kernels, memory, shape, input, output, coefficients);
            }
            CodeKind::Rdp => rdp::encode(self, memory, columns, input, output),
        }
    }

    /// Updates all parities (pieces at `parities`, in order) for a change of data column `column`: adds the
    /// column's coefficient times (`old` + `new`). `None` stands for zeros, as of a column that joins or
    /// leaves the codeword.
    ///
    /// # Panics
    /// If a piece reaches beyond the region, a parity overlaps any other piece, `column` is
    /// beyond `width_max`, there are not as many offsets as parities, or `len` does not suit
    /// the code ([`Code::check_length`]).
    pub fn update_in(
        &self,
        region: &mut [u8],
        len: usize,
        column: usize,
        old: Option<usize>,
        new: Option<usize>,
        parities: &[usize],
    ) {
        kernel::assert_disjoint(len, old.into_iter().chain(new), parities);
        assert_eq!(parities.len(), self.parity_count, "each parity is updated");
        let mut memory = Region::new(region, len);
        self.update_pieces(&mut memory, column, (old, new), |r| parities[r]);
    }

    /// [`Code::update_in`] on slices.
    ///
    /// # Panics
    /// As [`Code::update_in`], and if the slices are not equally long.
    pub fn update(&self, column: usize, old: Option<&[u8]>, new: Option<&[u8]>, parities: &mut [&mut [u8]]) {
        assert_eq!(parities.len(), self.parity_count, "each parity is updated");
        let empty: &[u8] = &[];
        let change = (old.map(|_| 0), new.map(|_| usize::from(old.is_some())));
        let sources = match (old, new) {
            (None, None) => return,
            (Some(old), Some(new)) => [old, new],
            (Some(one), None) | (None, Some(one)) => [one, empty],
        };
        let count = sources.len() - usize::from(old.is_none() || new.is_none());
        self.update_pieces(&mut Slices::new(&sources[..count], parities), column, change, |r| r);
    }

    fn update_pieces<M: Memory>(
        &self,
        memory: &mut M,
        column: usize,
        change: (Option<usize>, Option<usize>),
        parity: impl Fn(usize) -> usize,
    ) {
        match self.kind {
            CodeKind::Xor | CodeKind::Cauchy => {
                let coefficients = |row| self.group(column, row);
                kernel::update(self.kernels, memory, change, self.parity_count, parity, coefficients);
            }
            CodeKind::Rdp => rdp::update(self, memory, column, change, parity),
        }
    }

    /// Rebuilds pieces of a codeword.
    ///
    /// `columns` are the data columns the codeword has; all others are zeros. `present` are the pieces at
    /// hand and `wanted` those to be produced (data or parity), each with its number and its byte offset in
    /// `region`; every piece is `len` bytes. Parities of low number are preferred if more are present than
    /// needed: give all. Does not allocate unless more than 8 data columns are missing, or one of two missing
    /// pieces of more than 4 KiB is wanted without the other from row-diagonal parity.
    ///
    /// # Errors
    /// Nothing is written then. [`CodeError::TooManyLosses`] if the pieces present do not determine the
    /// codeword, [`CodeError::Length`] if `len` does not suit the code.
    ///
    /// # Panics
    /// If a piece reaches beyond the region, a wanted piece overlaps any other piece, a number is listed
    /// twice or is none of the code, or a data column is present that the codeword does not have.
    pub fn rebuild_in(
        &self,
        region: &mut [u8],
        len: usize,
        columns: &[usize],
        present: &[(usize, usize)],
        wanted: &[(usize, usize)],
    ) -> Result<(), CodeError> {
        for (i, &(_, offset)) in wanted.iter().enumerate() {
            let others = present.iter().chain(&wanted[..i]).map(|&(_, other)| other);
            kernel::assert_disjoint(len, others, &[offset]);
        }
        self.rebuild_pieces(&mut Region::new(region, len), columns, present, wanted)
    }

    /// [`Code::rebuild_in`] on slices: `present` and `wanted` are piece numbers with their content.
    ///
    /// # Errors
    /// As [`Code::rebuild_in`].
    ///
    /// # Panics
    /// As [`Code::rebuild_in`], and if the slices are not equally long.
    pub fn rebuild(
        &self,
        columns: &[usize],
        present: &[(usize, &[u8])],
        wanted: &mut [(usize, &mut [u8])],
    ) -> Result<(), CodeError> {
        let sources: Vec<&[u8]> = present.iter().map(|&(_, bytes)| bytes).collect();
        let present: Vec<_> = present.iter().enumerate().map(|(at, &(piece, _))| (piece, at)).collect();
        let produced: Vec<_> = wanted.iter().enumerate().map(|(at, (piece, _))| (*piece, at)).collect();
        let mut targets: Vec<&mut [u8]> = wanted.iter_mut().map(|(_, bytes)| &mut **bytes).collect();
        let mut memory = Slices::new(&sources, &mut targets);
        self.rebuild_pieces(&mut memory, columns, &present, &produced)
    }

    fn rebuild_pieces<M: Memory>(
        &self,
        memory: &mut M,
        columns: &[usize],
        present: &[(usize, usize)],
        wanted: &[(usize, usize)],
    ) -> Result<(), CodeError> {
        match self.kind {
            CodeKind::Xor | CodeKind::Cauchy => rebuild::rebuild(self, memory, columns, present, wanted),
            CodeKind::Rdp => rdp::rebuild(self, memory, columns, present, wanted),
        }
    }
}

/// A set of piece numbers.
#[derive(Clone, Copy, Default)]
pub(crate) struct PieceSet([u64; PIECE_WORDS]);

/// The most pieces of a codeword of any kind.
const PIECE_COUNT_MAX: usize = rdp::WIDTH_MAX + rdp::PARITY_COUNT;
const PIECE_WORDS: usize = PIECE_COUNT_MAX.div_ceil(64);

impl PieceSet {
    /// The set of `pieces`.
    ///
    /// # Panics
    /// If a piece is listed twice.
    pub(crate) fn of<'a>(pieces: impl IntoIterator<Item = &'a usize>) -> Self {
        let mut set = Self::default();
        for &piece in pieces {
            assert!(
                piece < PIECE_COUNT_MAX && !set.contains(piece),
                "piece {piece} is listed twice or no piece"
            );
            set.0[piece / 64] |= 1 << (piece % 64);
        }
        set
    }

    /// Whether `piece` is in the set.
    pub(crate) fn contains(&self, piece: usize) -> bool {
        self.0[piece / 64] >> (piece % 64) & 1 == 1
    }
}
