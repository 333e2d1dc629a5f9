//! Rebuilding pieces: every wanted piece is one sum over the pieces at hand, so one kernel pass makes them all.
//!
//! Let E be the missing columns and R as many parities at hand, and M the matrix of the coefficients of E in R.
//! The *syndrome* of a parity in R is it plus what the columns at hand contribute to it, and M x (data of E) = syndromes.
//! A wanted piece is therefore weights x syndromes, plus, if it is a parity, its own sum over the columns at hand; the
//! weights are a row of M^-1 for a column, and coefficients x M^-1 for a parity.

use crate::code::PieceSet;
use crate::kernel::{self, Memory, Shape, TARGETS_MAX};
use crate::{Code, CodeError, field, matrix};

/// Up to so many missing columns the work space is on the stack.
const STACK_LOSSES_MAX: usize = 8;

/// What a source of the sums is.
#[derive(Clone, Copy)]
enum Role {
    Column(usize),
    /// A parity that makes up for a missing column: its position among such.
    Syndrome(usize),
}

/// Which pieces the sums run over, and what is missing.
struct Sources {
    /// Role and name of each piece used.
    used: [(Role, usize); matrix::PIECE_COUNT_MAX],
    used_count: usize,
    /// The missing columns.
    missing: [usize; matrix::PIECE_COUNT_MAX],
    missing_count: usize,
    /// The rows of the parities used, as many as columns are missing.
    rows: [usize; matrix::PIECE_COUNT_MAX],
}

/// [`Code::rebuild_in`] on any memory; checks everything but overlap.
pub(crate) fn rebuild<M: Memory>(
    code: &Code,
    memory: &mut M,
    columns: &[usize],
    present: &[(usize, usize)],
    wanted: &[(usize, usize)],
) -> Result<(), CodeError> {
    let piece_count = code.width_max() + code.parity_count();
    PieceSet::of(wanted.iter().map(|(piece, _)| piece));
    assert!(wanted.iter().all(|&(piece, _)| piece < piece_count), "a wanted piece is none of the code's");
    let sources = choose(code, columns, present)?;
    let size = sources.missing_count;
    let mut stack = [0; 2 * STACK_LOSSES_MAX * STACK_LOSSES_MAX + TARGETS_MAX * STACK_LOSSES_MAX];
    let needed = 2 * size * size + TARGETS_MAX * size;
    let mut heap = Vec::new();
    let space = if needed <= stack.len() {
        &mut stack[..needed]
    } else {
        heap.resize(needed, 0);
        &mut heap[..]
    };
    let (work, space) = space.split_at_mut(size * size);
    let (inverse, weights) = space.split_at_mut(size * size);
    for (i, &row) in sources.rows[..size].iter().enumerate() {
        for (j, &column) in sources.missing[..size].iter().enumerate() {
            work[i * size + j] = code.coefficient(row, column);
        }
    }
    matrix::invert(work, inverse, size);
    for group in wanted.chunks(TARGETS_MAX) {
        rebuild_group(code, memory, &sources, inverse, weights, group);
    }
    Ok(())
}

/// Decides which pieces to use.
fn choose(code: &Code, columns: &[usize], present: &[(usize, usize)]) -> Result<Sources, CodeError> {
    let width = code.width_max();
    let piece_count = width + code.parity_count();
    let in_codeword = PieceSet::of(columns);
    assert!(columns.iter().all(|&column| column < width), "a column is none of the code's {width}");
    let at_hand = PieceSet::of(present.iter().map(|(piece, _)| piece));
    let mut sources = Sources {
        used: [(Role::Column(0), 0); matrix::PIECE_COUNT_MAX],
        used_count: 0,
        missing: [0; matrix::PIECE_COUNT_MAX],
        missing_count: 0,
        rows: [0; matrix::PIECE_COUNT_MAX],
    };
    for &column in columns.iter().filter(|&&column| !at_hand.contains(column)) {
        sources.missing[sources.missing_count] = column;
        sources.missing_count += 1;
    }
    for &(piece, name) in present.iter().filter(|(piece, _)| *piece < width) {
        assert!(in_codeword.contains(piece), "data column {piece} is present but not of the codeword");
        sources.used[sources.used_count] = (Role::Column(piece), name);
        sources.used_count += 1;
    }
    let parity_rows = (0..code.parity_count()).filter(|row| at_hand.contains(width + row));
    let mut found = 0;
    for row in parity_rows.take(sources.missing_count) {
        let piece = present.iter().find(|(piece, _)| *piece == width + row);
        let (_, name) = piece.expect("the set was made from this list");
        sources.rows[found] = row;
        sources.used[sources.used_count] = (Role::Syndrome(found), *name);
        (found, sources.used_count) = (found + 1, sources.used_count + 1);
    }
    assert!(present.iter().all(|&(piece, _)| piece < piece_count), "a piece present is none of the code's");
    if found < sources.missing_count {
        let lost = columns.len() + code.parity_count() - present.len();
        return Err(CodeError::TooManyLosses { lost, tolerated: code.parity_count() });
    }
    Ok(sources)
}

/// Produces up to [`TARGETS_MAX`] pieces in one pass.
fn rebuild_group<M: Memory>(
    code: &Code,
    memory: &mut M,
    sources: &Sources,
    inverse: &[u8],
    weights: &mut [u8],
    wanted: &[(usize, usize)],
) {
    let (width, size) = (code.width_max(), sources.missing_count);
    for (&(piece, _), weights) in wanted.iter().zip(weights.chunks_exact_mut(size.max(1))) {
        weights.fill(0);
        for (&column, row_of_inverse) in sources.missing[..size].iter().zip(inverse.chunks_exact(size.max(1)))
        {
            let factor = if piece >= width {
                code.coefficient(piece - width, column)
            } else {
                u8::from(piece == column)
            };
            for (weight, &element) in weights.iter_mut().zip(row_of_inverse) {
                *weight ^= field::multiply(factor, element);
            }
        }
    }
    let weights = &*weights;
    let coefficients = |source: usize, _: usize| {
        let mut result = [0; TARGETS_MAX];
        for (i, (&(piece, _), result)) in wanted.iter().zip(&mut result).enumerate() {
            let weights = &weights[i * size..][..size];
            *result = match sources.used[source].0 {
                Role::Syndrome(position) => weights[position],
                Role::Column(column) => {
                    let own = if piece >= width {
                        code.coefficient(piece - width, column)
                    } else {
                        u8::from(piece == column)
                    };
                    weights.iter().zip(&sources.rows).fold(own, |sum, (&weight, &row)| {
                        sum ^ field::multiply(weight, code.coefficient(row, column))
                    })
                }
            };
        }
        result
    };
    let shape = Shape { sources: sources.used_count, targets: wanted.len() };
    kernel::combine(code.backend(), memory, shape, |i| sources.used[i].1, |t| wanted[t].1, coefficients);
}
