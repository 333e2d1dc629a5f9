//! What codes do to pieces: encode, update and rebuild, where those lie ([`Memory`]) or on slices.

use crate::kernel::{self, Memory, Shape, Slices};
use crate::pieces::{PieceSet, RDP_WIDTH_MAX};
use crate::{Code, CodeError, CodeKind, rdp, rebuild};

impl Code {
    /// Encodes: overwrites the pieces at `outputs` (one for each parity, in order) with the parities of the
    /// codeword whose data column `columns[i]` is the piece `inputs[i]` of `memory`.
    /// Columns come in any order; those not listed are zeros. Never allocates.
    ///
    /// # Panics
    /// If a piece reaches beyond the memory, an output overlaps any other piece, a column is listed twice or
    /// beyond `width_max`, the lists do not match, or the pieces' length does not suit the code
    /// ([`Code::check_length`]).
    pub fn encode_in(
        &self,
        memory: &mut impl Memory,
        columns: &[usize],
        inputs: &[usize],
        outputs: &[usize],
    ) {
        kernel::assert_disjoint(memory.distance(), inputs.iter().copied(), outputs);
        assert_eq!(columns.len(), inputs.len(), "each column has one input");
        assert_eq!(outputs.len(), self.parity_count(), "each parity has one output");
        self.encode_pieces(memory, columns, |i| inputs[i], |r| outputs[r]);
    }

    /// [`Code::encode_in`] on slices: column `columns[i]` is `data[i]`.
    ///
    /// # Panics
    /// As [`Code::encode_in`], and if the slices are not equally long.
    pub fn encode_columns(&self, columns: &[usize], data: &[&[u8]], parities: &mut [&mut [u8]]) {
        assert_eq!(columns.len(), data.len(), "each column has one input");
        assert_eq!(parities.len(), self.parity_count(), "each parity has one output");
        self.encode_pieces(&mut Slices::new(data, parities), columns, |i| i, |r| r);
    }

    /// [`Code::encode_columns`] for the columns `0..data.len()`.
    ///
    /// # Panics
    /// As [`Code::encode_columns`].
    pub fn encode(&self, data: &[&[u8]], parities: &mut [&mut [u8]]) {
        let columns: [usize; RDP_WIDTH_MAX] = std::array::from_fn(|column| column);
        assert!(data.len() <= self.width_max(), "{} columns of at most {}", data.len(), self.width_max());
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
        match self.kind() {
            CodeKind::Xor | CodeKind::Cauchy => {
                let shape = Shape::plain(columns.len(), self.parity_count());
                let coefficients = |i: usize, row| self.group(columns[i], row);
                kernel::combine(self.kernels(), memory, shape, input, output, coefficients);
            }
            CodeKind::Rdp => rdp::encode(self, memory, columns, input, output),
        }
    }

    /// Updates all parities (pieces at `parities`, in order) for a change of data column `column`: adds the
    /// column's coefficient times (`old` + `new`). `None` stands for zeros, as of a column that joins or
    /// leaves the codeword.
    ///
    /// # Panics
    /// If a piece reaches beyond the memory, a parity overlaps any other piece, `column` is
    /// beyond `width_max`, there are not as many names as parities, or the pieces' length does not suit
    /// the code ([`Code::check_length`]).
    pub fn update_in(
        &self,
        memory: &mut impl Memory,
        column: usize,
        old: Option<usize>,
        new: Option<usize>,
        parities: &[usize],
    ) {
        kernel::assert_disjoint(memory.distance(), old.into_iter().chain(new), parities);
        assert_eq!(parities.len(), self.parity_count(), "each parity is updated");
        self.update_pieces(memory, column, (old, new), |r| parities[r]);
    }

    /// [`Code::update_in`] on slices.
    ///
    /// # Panics
    /// As [`Code::update_in`], and if the slices are not equally long.
    pub fn update(&self, column: usize, old: Option<&[u8]>, new: Option<&[u8]>, parities: &mut [&mut [u8]]) {
        assert_eq!(parities.len(), self.parity_count(), "each parity is updated");
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
        match self.kind() {
            CodeKind::Xor | CodeKind::Cauchy => {
                let coefficients = |row| self.group(column, row);
                kernel::update(self.kernels(), memory, change, self.parity_count(), parity, coefficients);
            }
            CodeKind::Rdp => rdp::update(self, memory, column, change, parity),
        }
    }

    /// Rebuilds pieces of a codeword.
    ///
    /// `columns` are the data columns the codeword has; all others are zeros. `present` are the pieces at
    /// hand and `wanted` those to be produced (data or parity), each with its number and its name in
    /// `memory`. Parities of low number are preferred if more are present than
    /// needed: give all. Does not allocate unless more than 8 data columns are missing, or one of two missing
    /// pieces of more than 4 KiB is wanted without the other from row-diagonal parity.
    ///
    /// # Errors
    /// Nothing is written then. [`CodeError::TooManyLosses`] if the pieces present do not determine the
    /// codeword, [`CodeError::Length`] if the pieces' length does not suit the code.
    ///
    /// # Panics
    /// If a piece reaches beyond the memory, a wanted piece overlaps any other piece, a number is listed
    /// twice or is none of the code, or a data column is present that the codeword does not have.
    pub fn rebuild_in(
        &self,
        memory: &mut impl Memory,
        columns: &[usize],
        present: &[(usize, usize)],
        wanted: &[(usize, usize)],
    ) -> Result<(), CodeError> {
        let distance = memory.distance();
        for (i, &(_, name)) in wanted.iter().enumerate() {
            // Without a branch for each piece; the reason of a panic is looked for when there is one.
            let clear = |pieces: &[(usize, usize)]| {
                pieces.iter().fold(true, |clear, &(_, other)| clear & (name.abs_diff(other) >= distance))
            };
            if !(clear(present) & clear(&wanted[..i])) {
                let others = present.iter().chain(&wanted[..i]).map(|&(_, other)| other);
                kernel::assert_disjoint(distance, others, &[name]);
            }
        }
        self.rebuild_pieces(memory, columns, present, wanted)
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
        match self.kind() {
            CodeKind::Xor | CodeKind::Cauchy => rebuild::rebuild(self, memory, columns, present, wanted),
            CodeKind::Rdp => rdp::rebuild(self, memory, columns, present, wanted),
        }
    }
}
