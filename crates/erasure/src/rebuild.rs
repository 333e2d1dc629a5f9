//! Rebuilding pieces: every wanted piece is one sum over the pieces at hand, so one kernel pass
//! makes them all.
//!
//! Let E be the missing columns and R as many parities at hand, and M the matrix of the coefficients of E in
//! R. The *syndrome* of a parity in R is it plus what the columns at hand contribute to it, and M x (data of
//! E) = syndromes. A wanted piece is therefore weights x syndromes, plus, if it is a parity, its own sum over
//! the columns at hand; the weights are a row of M^-1 for a column, and coefficients x M^-1 for a parity.
//!
//! All data columns and parity 0 together sum to zero. If all of them that are not at hand are wanted, one of
//! them, the *closing* piece, is the sum of those at hand and of the other wanted ones: it costs no
//! multiplication, and two lost pieces cost as much as encoding two parities.

use crate::kernel::{self, Memory, Shape, TARGETS_MAX};
use crate::pieces::PieceSet;
use crate::{Code, CodeError, field, matrix};

/// Up to so many missing columns the work space is on the stack.
const STACK_LOSSES_MAX: usize = 8;

/// Pieces: numbers and names in memory.
type Pieces<'a> = &'a [(usize, usize)];
/// Piece numbers or positions; they fit a byte.
type Bytes = [u8; matrix::PIECE_COUNT_MAX];

/// Which pieces the sums run over, and what is missing. Small, because every call fills it anew.
struct Sources {
    /// Positions in `present` of the pieces used: first data columns, then a parity for each missing column.
    used: Bytes,
    column_count: usize,
    /// The missing columns.
    missing: Bytes,
    /// The rows of the parities used.
    rows: Bytes,
    /// How many columns are missing and parities used.
    missing_count: usize,
}

impl Default for Sources {
    #[inline(always)]
    fn default() -> Self {
        // Each list is cleared where it lies; a cleared one that is copied into all takes longer.
        Self {
            used: [0; matrix::PIECE_COUNT_MAX],
            column_count: 0,
            missing: [0; matrix::PIECE_COUNT_MAX],
            rows: [0; matrix::PIECE_COUNT_MAX],
            missing_count: 0,
        }
    }
}

/// [`Code::rebuild_in`] on any memory; checks everything but overlap.
pub(crate) fn rebuild<M: Memory>(
    code: &Code,
    memory: &mut M,
    columns: &[usize],
    present: &[(usize, usize)],
    wanted: &[(usize, usize)],
) -> Result<(), CodeError> {
    let (in_codeword, at_hand) = check(code, columns, present, wanted);
    let mut sources = Sources::default();
    choose(code, columns, present, &at_hand, &mut sources)?;
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
            work[i * size + j] = code.coefficient(usize::from(row), usize::from(column));
        }
    }
    matrix::invert(work, inverse, size);
    let width = code.width_max();
    let is_unknown = |piece| (in_codeword.contains(piece) || piece == width) && !at_hand.contains(piece);
    let unknown_count = size + usize::from(!at_hand.contains(width));
    let made_count = wanted.iter().filter(|(piece, _)| is_unknown(*piece)).count();
    let closes = made_count == unknown_count && (1..=TARGETS_MAX).contains(&unknown_count);
    let mut folded = closes.then(|| unknown_count - 1);
    let first = wanted.iter().filter(|(piece, _)| is_unknown(*piece));
    let mut ordered = first.chain(wanted.iter().filter(|(piece, _)| !is_unknown(*piece)));
    for start in (0..wanted.len()).step_by(TARGETS_MAX) {
        let mut group = [(0, 0); TARGETS_MAX];
        // The places come first, so that a piece is taken from the list only when there is one for it.
        group.iter_mut().zip(ordered.by_ref()).for_each(|(place, &piece)| *place = piece);
        let group = &group[..TARGETS_MAX.min(wanted.len() - start)];
        rebuild_group(code, memory, &sources, (inverse, weights), (present, group), folded.take());
    }
    Ok(())
}

/// The columns of the codeword and the pieces at hand.
///
/// # Panics
/// If the lists contradict each other or the code ([`Code::rebuild_in`]).
pub(crate) fn check(
    code: &Code,
    columns: &[usize],
    present: Pieces<'_>,
    wanted: Pieces<'_>,
) -> (PieceSet, PieceSet) {
    let (width, piece_count) = (code.width_max(), code.width_max() + code.parity_count());
    PieceSet::of(wanted.iter().map(|(piece, _)| piece));
    assert!(wanted.iter().all(|&(piece, _)| piece < piece_count), "a wanted piece is none of the code's");
    let in_codeword = PieceSet::of(columns);
    assert!(columns.iter().all(|&column| column < width), "a column is none of the code's {width}");
    let at_hand = PieceSet::of(present.iter().map(|(piece, _)| piece));
    for &(piece, _) in present {
        assert!(piece < piece_count, "piece {piece} is present but none of the code's");
        let expected = piece >= width || in_codeword.contains(piece);
        assert!(expected, "data column {piece} is present but not of the codeword");
    }
    (in_codeword, at_hand)
}

/// Decides which pieces to use. Fills `sources`, which is empty: it is too large to be handed back.
fn choose(
    code: &Code,
    columns: &[usize],
    present: Pieces<'_>,
    at_hand: &PieceSet,
    sources: &mut Sources,
) -> Result<(), CodeError> {
    let (width, parity_count) = (code.width_max(), code.parity_count());
    for &column in columns.iter().filter(|&&column| !at_hand.contains(column)) {
        sources.missing[sources.missing_count] = byte(column);
        sources.missing_count += 1;
    }
    for (position, &(piece, _)) in present.iter().enumerate() {
        if piece < width {
            sources.used[sources.column_count] = byte(position);
            sources.column_count += 1;
        }
    }
    let mut found = 0;
    for row in (0..parity_count).filter(|row| at_hand.contains(width + row)).take(sources.missing_count) {
        let position = present.iter().position(|(piece, _)| *piece == width + row);
        sources.rows[found] = byte(row);
        sources.used[sources.column_count + found] = byte(position.expect("the set was made from this list"));
        found += 1;
    }
    if found < sources.missing_count {
        let lost = columns.len() + parity_count - present.len();
        return Err(CodeError::TooManyLosses { lost, tolerated: parity_count });
    }
    Ok(())
}

fn byte(number: usize) -> u8 {
    u8::try_from(number).expect("a codeword has fewer than 256 pieces")
}

/// Produces up to [`TARGETS_MAX`] pieces in one pass. If the first one closes the sum of all data columns and
/// parity 0, `folded` is how many others of that sum come right after it.
fn rebuild_group<M: Memory>(
    code: &Code,
    memory: &mut M,
    sources: &Sources,
    (inverse, weights): (&[u8], &mut [u8]),
    (present, wanted): (Pieces, Pieces),
    folded: Option<usize>,
) {
    let (width, size) = (code.width_max(), sources.missing_count);
    // What a column contributes to a wanted piece of itself: itself to itself, its coefficient to a parity.
    let own = |wanted: usize, column: usize| match wanted.checked_sub(width) {
        Some(row) => code.coefficient(row, column),
        None => u8::from(wanted == column),
    };
    let closing_count = usize::from(folded.is_some());
    let rows_of_weights = weights.chunks_exact_mut(size.max(1));
    for (&(piece, _), weights) in wanted.iter().zip(rows_of_weights).skip(closing_count) {
        weights.fill(0);
        for (&column, row_of_inverse) in sources.missing[..size].iter().zip(inverse.chunks_exact(size.max(1)))
        {
            let factor = own(piece, usize::from(column));
            if factor == 0 {
                continue;
            }
            for (weight, &element) in weights.iter_mut().zip(row_of_inverse) {
                *weight ^= field::multiply(factor, element);
            }
        }
    }
    let weights = &*weights;
    let coefficients = |source: usize, _: usize| {
        let column = present[usize::from(sources.used[source])].0;
        let coefficient = |i: usize, piece: usize| {
            let weights = &weights[i * size..][..size];
            match source.checked_sub(sources.column_count) {
                Some(syndrome) => weights[syndrome],
                None => weights.iter().zip(&sources.rows).fold(own(piece, column), |sum, (&weight, &row)| {
                    // Parity 0 has no coefficients but 1.
                    sum ^ match row {
                        0 => weight,
                        _ => field::multiply(weight, code.coefficient(usize::from(row), column)),
                    }
                }),
            }
        };
        // The closing piece has the sum of the data columns and of parity 0, which is `width`. One number
        // takes them all: bytes written one by one and read together would stall the processor.
        let mut all = u32::from(column <= width);
        for (i, &(piece, _)) in wanted.iter().enumerate().skip(closing_count) {
            let others = if i == 0 { 0 } else { all };
            all = others | u32::from(coefficient(i, piece)) << (8 * i);
        }
        all.to_le_bytes()
    };
    let sources_count = sources.column_count + size;
    let shape = Shape { sources: sources_count, targets: wanted.len(), folded: folded.unwrap_or(0) };
    let source = |i: usize| present[usize::from(sources.used[i])].1;
    kernel::combine(code.kernels(), memory, shape, source, |t| wanted[t].1, coefficients);
}
