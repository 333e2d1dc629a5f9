//! Sums of pieces that are cut in symbols and turned on a ring of a prime number of places, as row-diagonal
//! parity has them.
//!
//! A piece has a symbol on every place of the ring but the last, the *hole*, which counts as zeros.

use super::{Kernels, Memory, Mode, TARGETS_MAX, TERMS_MAX, Term};
use std::mem::MaybeUninit;

/// The largest prime of a ring.
pub(crate) const PRIME_MAX: usize = 257;

/// How pieces are cut.
#[derive(Clone, Copy)]
pub(crate) struct Ring {
    /// Places; a piece has one symbol fewer.
    pub(crate) prime: usize,
    /// Bytes of a symbol.
    pub(crate) symbol: usize,
}

/// A piece that a sum reads: one of the sources of a memory, or one of its targets.
#[derive(Clone, Copy)]
pub(crate) enum Place {
    Source(usize),
    Target(usize),
}

/// A piece in a sum, turned so that place `r` of the ring gets what the piece has at `r + turn`.
#[derive(Clone, Copy)]
pub(crate) struct Turned {
    pub(crate) place: Place,
    /// Places, below the prime.
    pub(crate) turn: usize,
}

/// Which places of the ring a sum is over, and where it goes.
#[derive(Clone, Copy)]
pub(crate) struct Stretch {
    /// The first place and the one after the last; the hole may be the last.
    pub(crate) first: usize,
    pub(crate) end: usize,
    /// The name of the target and the symbol of it that place `first` goes to.
    pub(crate) target: usize,
    pub(crate) at: usize,
}

/// Pieces summed at a time. Each breaks the ring at its hole into runs, and every run is a call for all
/// pieces of the round: with many pieces a round there are many small calls, with few the target is read and
/// written more often. On a small ring all pieces fit one round; measured best on the large one.
fn round_terms(ring: Ring) -> usize {
    if ring.prime <= TERMS_MAX { TERMS_MAX } else { 8 }
}

/// Pointer to a piece, and its turn.
type Base = (*const u8, usize);

/// Sets a stretch of a target to the sum of the pieces `terms`, or adds it (`Mode::Add`). No allocation.
pub(crate) fn sum<M: Memory>(
    kernels: &Kernels,
    memory: &mut M,
    ring: Ring,
    stretch: Stretch,
    mut mode: Mode,
    terms: impl IntoIterator<Item = Turned>,
) {
    let symbols = stretch.at + (stretch.end - stretch.first);
    assert!(ring.prime <= PRIME_MAX && stretch.end <= ring.prime, "a stretch of the ring");
    assert!(symbols < ring.prime && (ring.prime - 1) * ring.symbol <= memory.len(), "symbols of a piece");
    let target = memory.target(stretch.target);
    let mut terms = terms.into_iter();
    let most = round_terms(ring);
    loop {
        let mut bases: [Base; TERMS_MAX] = [(std::ptr::null(), 0); TERMS_MAX];
        let mut count = 0;
        for (base, term) in bases[..most].iter_mut().zip(terms.by_ref()) {
            let piece = match term.place {
                Place::Source(name) => memory.source(name),
                // The pointer at hand: asking again may take it away from us.
                Place::Target(name) if name == stretch.target => target.cast_const(),
                Place::Target(name) => memory.target(name).cast_const(),
            };
            *base = (piece, term.turn);
            count += 1;
        }
        sum_round(kernels, ring, stretch, mode, target, &bases[..count]);
        if count < most {
            return;
        }
        mode = Mode::Add;
    }
}

/// One round of [`sum`]: up to [`TERMS_MAX`] pieces. Between two places where a piece has its hole, all
/// pieces are contiguous, which is one call of a kernel.
fn sum_round(kernels: &Kernels, ring: Ring, stretch: Stretch, mode: Mode, target: *mut u8, bases: &[Base]) {
    let mut breaks = Breaks::default();
    for &(_, turn) in bases {
        assert!(turn < ring.prime, "a turn below the prime");
        let hole = ring.prime - 1 - turn;
        breaks.add(hole);
        breaks.add(hole + 1);
    }
    let mut terms = [const { MaybeUninit::<Term>::uninit() }; TERMS_MAX];
    let mut place = stretch.first;
    while place < stretch.end {
        let end = breaks.next_after(place).min(stretch.end);
        let mut count = 0;
        for &(piece, turn) in bases {
            let turned = place + turn;
            let symbol = if turned < ring.prime { turned } else { turned - ring.prime };
            if symbol == ring.prime - 1 {
                continue;
            }
            assert!(symbol + (end - place) < ring.prime, "a run ends before the hole of each piece");
            // JUSTIFICATION: kernels take pointers.
            // SAFETY: just checked to lie within the piece, whose length `sum` checked.
            let source = unsafe { piece.add(symbol * ring.symbol) };
            terms[count].write(Term { source, coefficients: [1; TARGETS_MAX] });
            count += 1;
        }
        let bytes = (end - place) * ring.symbol;
        // JUSTIFICATION: as above.
        // SAFETY: the loop wrote the first `count` terms; `sum` checked that the stretch lies within the
        // target; the kernels are those of this CPU.
        unsafe {
            let terms = std::slice::from_raw_parts(terms.as_ptr().cast::<Term>(), count);
            let into = target.add((stretch.at + place - stretch.first) * ring.symbol);
            match (count, mode) {
                (0, Mode::Overwrite) => into.write_bytes(0, bytes),
                (0, Mode::Add) => {}
                (_, _) => (kernels.sum)(terms, &[into], bytes, mode, 0),
            }
        }
        place = end;
    }
}

/// Places of the ring at which something changes.
#[derive(Default)]
struct Breaks([u64; PRIME_MAX / 64 + 1]);

impl Breaks {
    fn add(&mut self, place: usize) {
        self.0[place / 64] |= 1 << (place % 64);
    }

    /// The first break after `place`, or a number beyond all places.
    fn next_after(&self, place: usize) -> usize {
        let (mut word, mut mask) = ((place + 1) / 64, !0 << ((place + 1) % 64));
        while let Some(bits) = self.0.get(word) {
            if bits & mask != 0 {
                return word * 64 + (bits & mask).trailing_zeros() as usize;
            }
            (word, mask) = (word + 1, !0);
        }
        usize::MAX
    }
}

/// A memory with one more target, of the name [`SPARE`].
pub(crate) struct WithSpare<'a, M> {
    memory: &'a mut M,
    spare: &'a mut [u8],
}

/// The name of the spare piece: no offset or position reaches it.
pub(crate) const SPARE: usize = usize::MAX;

impl<'a, M: Memory> WithSpare<'a, M> {
    pub(crate) fn new(memory: &'a mut M, spare: &'a mut [u8]) -> Self {
        assert!(spare.len() >= memory.len(), "the spare piece has the length of the others");
        Self { memory, spare }
    }
}

// SAFETY: `new` checked the length of the spare piece; the others are those of the memory.
unsafe impl<M: Memory> Memory for WithSpare<'_, M> {
    fn distance(&self) -> usize {
        self.memory.distance()
    }

    fn len(&self) -> usize {
        self.memory.len()
    }

    fn source(&self, name: usize) -> *const u8 {
        self.memory.source(name)
    }

    fn target(&mut self, name: usize) -> *mut u8 {
        if name == SPARE { self.spare.as_mut_ptr() } else { self.memory.target(name) }
    }
}
