//! Row-diagonal parity (Corbett et al., "Row-Diagonal Parity for Double Disk Failure Correction", FAST 2004).
//!
//! In the paper's terms there are p + 1 disks with p - 1 rows of symbols: data disks 0 to p - 2, the row
//! parity disk p - 1, and the diagonal parity disk. Data column `c` is disk `c`; the data disks that a
//! codeword does not have are zeros. Symbol `r` of disk `d` lies on diagonal `(r + d) mod p`, and symbol `i`
//! of the diagonal parity is the sum of diagonal `i` over the other p disks; diagonal p - 1 is not stored. So
//! the sums over diagonals are sums of pieces that are turned on a ring of p places ([`ring`]): by `-d` for
//! disk `d`.
//!
//! Without the row parity disk itself its symbols are replaced by what they are, sums over rows: then every
//! data disk is in the diagonal parity twice, turned by `-c` and by `-(p - 1) = 1`.

use crate::kernel::ring::{self, Place, Ring, SPARE, Stretch, Turned, WithSpare};
use crate::kernel::walk::{self, Walk};
use crate::kernel::{self, Memory, Mode, Shape, TARGETS_MAX};
use crate::pieces::{PieceSet, RDP_PARITY_COUNT, rdp_prime};
use crate::{Code, CodeError, CodeKind, rebuild};

/// Up to so many bytes the spare piece is on the stack.
const STACK_BYTES: usize = 4096;

/// The coefficients of a plain sum.
const ONES: [u8; TARGETS_MAX] = [1; TARGETS_MAX];

/// How pieces of `len` bytes are cut.
fn ring(code: &Code, len: usize) -> Result<Ring, CodeError> {
    let prime = rdp_prime(code.width_max());
    if !len.is_multiple_of(prime - 1) {
        return Err(CodeError::Length { kind: CodeKind::Rdp, len, unit: prime - 1 });
    }
    Ok(Ring { prime, symbol: len / (prime - 1) })
}

/// The ring of an operation that has no error to return.
fn ring_or_panic(code: &Code, len: usize) -> Ring {
    ring(code, len).unwrap_or_else(|error| panic!("{error}"))
}

/// The turn with which a disk's symbols come to lie on diagonals, if `diagonal` is to come to lie on place 0.
fn turn(ring: Ring, disk: usize, diagonal: usize) -> usize {
    (diagonal + ring.prime - disk) % ring.prime
}

/// All symbols of a target.
fn whole(ring: Ring, target: usize) -> Stretch {
    Stretch { first: 0, end: ring.prime - 1, target, at: 0 }
}

/// A piece as it lies: the sums over these are sums over rows.
fn in_row(place: Place) -> Turned {
    Turned { place, turn: 0 }
}

/// [`Code::encode_in`] on any memory.
pub(crate) fn encode<M: Memory>(
    code: &Code,
    memory: &mut M,
    columns: &[usize],
    input: impl Fn(usize) -> usize,
    output: impl Fn(usize) -> usize,
) {
    let ring = ring_or_panic(code, memory.len());
    check_columns(code, columns);
    let (kernels, row_disk) = (code.kernels(), ring.prime - 1);
    let data = || columns.iter().enumerate().map(|(i, &column)| (column, Place::Source(input(i))));
    let shape = Shape::plain(columns.len(), 1);
    kernel::combine(kernels, memory, shape, &input, |_| output(0), |_, _| ONES);
    let disks = data().chain([(row_disk, Place::Target(output(0)))]);
    let diagonals = disks.map(|(disk, place)| Turned { place, turn: turn(ring, disk, 0) });
    ring::sum(kernels, memory, ring, whole(ring, output(1)), Mode::Overwrite, diagonals);
}

fn check_columns(code: &Code, columns: &[usize]) {
    let width = code.width_max();
    let beyond = columns.iter().find(|&&column| column >= width);
    assert!(beyond.is_none(), "data column {beyond:?} of a code with {width} columns");
}

/// [`Code::update_in`] on any memory. Uses the change alone, not the row parity: that may be out of date.
pub(crate) fn update<M: Memory>(
    code: &Code,
    memory: &mut M,
    column: usize,
    change: (Option<usize>, Option<usize>),
    parity: impl Fn(usize) -> usize,
) {
    let ring = ring_or_panic(code, memory.len());
    check_columns(code, &[column]);
    kernel::update(code.kernels(), memory, change, 1, |_| parity(0), |_| ONES);
    let turns = [turn(ring, column, 0), turn(ring, ring.prime - 1, 0)];
    let versions = [change.0, change.1].into_iter().flatten().map(Place::Source);
    let diagonals = versions.flat_map(|place| turns.map(|turn| Turned { place, turn }));
    ring::sum(code.kernels(), memory, ring, whole(ring, parity(1)), Mode::Add, diagonals);
}

/// [`Code::rebuild_in`] on any memory; checks everything but overlap.
pub(crate) fn rebuild<M: Memory>(
    code: &Code,
    memory: &mut M,
    columns: &[usize],
    present: &[(usize, usize)],
    wanted: &[(usize, usize)],
) -> Result<(), CodeError> {
    let ring = ring(code, memory.len())?;
    let (in_codeword, at_hand) = rebuild::check(code, columns, present, wanted);
    let unknown = unknown_disks(code, columns, &at_hand)?;
    let job = Job { code, ring, present, wanted };
    for &(piece, target) in wanted {
        let is_zero = piece < code.width_max() && !in_codeword.contains(piece);
        if is_zero || at_hand.contains(piece) {
            let source = present.iter().find(|&&(other, _)| other == piece);
            let copy = source.map(|&(_, name)| in_row(Place::Source(name)));
            ring::sum(code.kernels(), memory, ring, whole(ring, target), Mode::Overwrite, copy);
        }
    }
    match unknown {
        Unknown::Nothing => {}
        Unknown::One(disk) => job.rebuild_row(memory, disk),
        Unknown::Two(x, y) => job.rebuild_two(memory, x, y),
    }
    if !at_hand.contains(code.width_max() + 1) {
        job.rebuild_diagonal(memory, unknown);
    }
    Ok(())
}

/// Disks other than the diagonal parity that are not at hand, the lower one first.
#[derive(Clone, Copy)]
enum Unknown {
    Nothing,
    One(usize),
    Two(usize, usize),
}

fn unknown_disks(code: &Code, columns: &[usize], at_hand: &PieceSet) -> Result<Unknown, CodeError> {
    let (width, row_disk) = (code.width_max(), rdp_prime(code.width_max()) - 1);
    let missing = columns.iter().copied().filter(|&column| !at_hand.contains(column));
    let row_parity = (!at_hand.contains(width)).then_some(row_disk);
    let mut disks = missing.clone().chain(row_parity);
    let parities_at_hand = (width..width + RDP_PARITY_COUNT).filter(|&piece| at_hand.contains(piece)).count();
    let missing_count = missing.count();
    if missing_count > parities_at_hand {
        let lost = missing_count + RDP_PARITY_COUNT - parities_at_hand;
        return Err(CodeError::TooManyLosses { lost, tolerated: RDP_PARITY_COUNT });
    }
    Ok(match (disks.next(), disks.next()) {
        (Some(one), Some(other)) => Unknown::Two(one.min(other), one.max(other)),
        (Some(one), None) => Unknown::One(one),
        (None, _) => Unknown::Nothing,
    })
}

/// What [`rebuild`] was asked for.
struct Job<'a> {
    code: &'a Code,
    ring: Ring,
    present: &'a [(usize, usize)],
    wanted: &'a [(usize, usize)],
}

impl Job<'_> {
    /// The disks at hand but for the diagonal parity, with their places.
    fn known(&self) -> impl Iterator<Item = (usize, Place)> + Clone + use<'_> {
        let (width, row_disk) = (self.code.width_max(), self.ring.prime - 1);
        let disks = self.present.iter().filter(move |(piece, _)| *piece <= width);
        disks.map(move |&(piece, name)| (if piece == width { row_disk } else { piece }, Place::Source(name)))
    }

    /// Where a disk is to be produced, if it is.
    fn target_of(&self, disk: usize) -> Option<usize> {
        let piece = if disk == self.ring.prime - 1 { self.code.width_max() } else { disk };
        self.wanted.iter().find(|(wanted, _)| *wanted == piece).map(|&(_, name)| name)
    }

    /// Produces the only unknown disk from rows.
    fn rebuild_row<M: Memory>(&self, memory: &mut M, disk: usize) {
        if let Some(target) = self.target_of(disk) {
            let stretch = whole(self.ring, target);
            let rows = self.known().map(|(_, place)| in_row(place));
            ring::sum(self.code.kernels(), memory, self.ring, stretch, Mode::Overwrite, rows);
        }
    }

    /// Produces the diagonal parity, if it is wanted, with at most one other disk unknown, which is
    /// there already if it is wanted as well. If not, it is replaced by what it is, the sum of the known
    /// ones over rows.
    fn rebuild_diagonal<M: Memory>(&self, memory: &mut M, unknown: Unknown) {
        let piece = self.code.width_max() + 1;
        let Some(&(_, target)) = self.wanted.iter().find(|(wanted, _)| *wanted == piece) else { return };
        let (kernels, stretch) = (self.code.kernels(), whole(self.ring, target));
        let turned = |(disk, place)| Turned { place, turn: turn(self.ring, disk, 0) };
        let known = self.known().map(turned);
        let disk = match unknown {
            Unknown::One(disk) => disk,
            Unknown::Nothing | Unknown::Two(..) => {
                return ring::sum(kernels, memory, self.ring, stretch, Mode::Overwrite, known);
            }
        };
        match self.target_of(disk) {
            Some(name) => {
                let all = known.chain([turned((disk, Place::Target(name)))]);
                ring::sum(kernels, memory, self.ring, stretch, Mode::Overwrite, all);
            }
            None => {
                let all = known.chain(self.known().map(|(_, place)| turned((disk, place))));
                ring::sum(kernels, memory, self.ring, stretch, Mode::Overwrite, all);
            }
        }
    }

    /// Produces the disks `x` < `y` as far as they are wanted, from rows and diagonals.
    fn rebuild_two<M: Memory>(&self, memory: &mut M, x: usize, y: usize) {
        let (rows, diagonals) = match (self.target_of(x), self.target_of(y)) {
            (Some(rows), Some(diagonals)) => return self.solve_two(memory, (x, rows), (y, diagonals)),
            (None, None) => return,
            (Some(rows), None) => (rows, SPARE),
            (None, Some(diagonals)) => (SPARE, diagonals),
        };
        let (mut stack, mut heap) = ([0; STACK_BYTES], Vec::new());
        let spare = match stack.get_mut(..memory.len()) {
            Some(spare) => spare,
            None => {
                heap.resize(memory.len(), 0);
                &mut heap[..]
            }
        };
        self.solve_two(&mut WithSpare::new(memory, spare), (x, rows), (y, diagonals));
    }

    /// The paper's reconstruction (section 5): what is known of all rows and diagonals is taken off them;
    /// what is left is solved from the two diagonals that have a symbol of one unknown disk only, and by
    /// turns from row to diagonal, to the diagonal that is not stored.
    ///
    /// Both targets have a symbol for each row. That of `x` takes the row; that of `y` takes the diagonal on
    /// which its symbol lies, but for the symbol on the diagonal that is not stored: this one takes diagonal
    /// y - 1, which misses disk y.
    fn solve_two<M: Memory>(
        &self,
        memory: &mut M,
        (x, rows): (usize, usize),
        (y, diagonals): (usize, usize),
    ) {
        let (kernels, ring, missing) = (self.code.kernels(), self.ring, self.ring.prime - 1);
        let in_rows = self.known().map(|(_, place)| in_row(place));
        ring::sum(kernels, memory, ring, whole(ring, rows), Mode::Overwrite, in_rows);
        let piece = self.code.width_max() + 1;
        let parity = self.present.iter().filter(|(present, _)| *present == piece);
        let parity = parity.map(|&(_, name)| (0, Place::Source(name)));
        let known = self.known().chain(parity);
        let on_diagonals = known.map(|(disk, place)| Turned { place, turn: turn(ring, disk, y) });
        let stretch = whole(ring, diagonals);
        ring::sum(kernels, memory, ring, stretch, Mode::Overwrite, on_diagonals.clone());
        let stretch = Stretch { first: missing, end: ring.prime, target: diagonals, at: missing - y };
        ring::sum(kernels, memory, ring, stretch, Mode::Overwrite, on_diagonals);
        let distance = y - x;
        let walk = Walk { rows, diagonals, start: 0, step: 0, last: 0, known: None };
        if x > 0 {
            // From diagonal x - 1, which misses disk x: the first symbol of disk y stands alone.
            let (start, step) = ((x + ring.prime - 1 - y) % ring.prime, ring.prime - distance);
            walk::solve(kernels, memory, ring, Walk { start, step, last: missing - x, ..walk });
        }
        let (start, last) = (distance - 1, missing - y);
        walk::solve(kernels, memory, ring, Walk { start, step: distance, last, known: Some(last), ..walk });
    }
}
