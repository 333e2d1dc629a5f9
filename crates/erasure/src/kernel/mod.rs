//! The inner loops, one set per instruction set, and the safe functions around them.
//!
//! [`combine`] and [`update`] cut a job into what one kernel call takes (up to [`TARGETS_MAX`] targets and
//! [`TERMS_MAX`] terms) and hand out pointers; a [`Memory`] guarantees that those are in bounds. Nothing here
//! allocates.
#![allow(unsafe_code, reason = "vector instructions; this folder is the only one of the crate that has any")]

mod lane;
mod memory;
mod portable;
pub(crate) mod ring;
mod scalar;
mod vector;
pub(crate) mod walk;
#[cfg(target_arch = "x86_64")]
mod x86;

pub use memory::{Apart, Memory, Region};
pub(crate) use memory::{Slices, assert_disjoint};

use std::fmt;
use std::mem::MaybeUninit;
use std::sync::OnceLock;

/// Most targets of one kernel call: with more, accumulators no longer fit the registers.
pub(crate) const TARGETS_MAX: usize = 4;
/// Most terms of one kernel call; longer sums take several calls that add to the targets.
const TERMS_MAX: usize = 32;

/// A set of kernels. All give the same bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Backend {
    /// Byte by byte with logarithm tables: the golden version.
    Scalar,
    /// Plain integers, any CPU.
    Portable,
    /// x86-64: 128 bits, byte shuffles.
    Ssse3,
    /// x86-64: 256 bits, byte shuffles.
    Avx2,
    /// x86-64: 256 bits, affine transformations.
    Gfni256,
    /// x86-64: 512 bits, affine transformations.
    Gfni512,
}

impl Backend {
    /// Every back end, slowest first.
    pub const ALL: &[Self] =
        &[Self::Scalar, Self::Portable, Self::Ssse3, Self::Avx2, Self::Gfni256, Self::Gfni512];

    /// Whether this CPU has the instructions.
    pub fn is_available(self) -> bool {
        self.kernels().is_some()
    }

    /// The fastest back end of this CPU; looked up once.
    pub fn detected() -> Self {
        Self::detected_kernels().backend
    }

    /// The kernels of [`Backend::detected`].
    pub(crate) fn detected_kernels() -> &'static Kernels {
        static DETECTED: OnceLock<&Kernels> = OnceLock::new();
        DETECTED.get_or_init(|| {
            let mut usable = Self::ALL.iter().rev().filter_map(|backend| backend.kernels());
            usable.next().expect("the scalar back end runs everywhere")
        })
    }

    /// A short name for logs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Scalar => "scalar",
            Self::Portable => "portable",
            Self::Ssse3 => "ssse3",
            Self::Avx2 => "avx2",
            Self::Gfni256 => "gfni256",
            Self::Gfni512 => "gfni512",
        }
    }

    /// The kernels, if this CPU can run them.
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn kernels(self) -> Option<&'static Kernels> {
        use std::arch::is_x86_feature_detected as has;
        match self {
            Self::Scalar => Some(&scalar::KERNELS),
            Self::Portable => Some(&portable::KERNELS),
            Self::Ssse3 => has!("ssse3").then_some(&x86::ssse3::KERNELS),
            Self::Avx2 => has!("avx2").then_some(&x86::avx2::KERNELS),
            Self::Gfni256 => (has!("avx2") && has!("gfni")).then_some(&x86::gfni256::KERNELS),
            Self::Gfni512 => {
                (has!("avx512f") && has!("avx512bw") && has!("gfni")).then_some(&x86::gfni512::KERNELS)
            }
        }
    }

    /// The kernels, if this CPU can run them.
    #[cfg(not(target_arch = "x86_64"))]
    pub(crate) fn kernels(self) -> Option<&'static Kernels> {
        match self {
            Self::Scalar => Some(&scalar::KERNELS),
            Self::Portable => Some(&portable::KERNELS),
            Self::Ssse3 | Self::Avx2 | Self::Gfni256 | Self::Gfni512 => None,
        }
    }
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The name of the back end that new codes use on this CPU.
pub fn backend_name() -> &'static str {
    Backend::detected().name()
}

/// One source of a sum and its coefficient for each target of the call.
#[derive(Clone, Copy)]
struct Term {
    source: *const u8,
    coefficients: [u8; TARGETS_MAX],
}

/// Whether a kernel sets its targets or adds to them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mode {
    Overwrite,
    Add,
}

/// The functions of a back end; [`Backend::kernels`] only hands out those that this CPU can run.
pub(crate) struct Kernels {
    backend: Backend,
    /// `targets[t] (+)= sum over terms of coefficients[t] * source`, for 1 to [`TARGETS_MAX`] targets and 1
    /// to [`TERMS_MAX`] terms; then `targets[0] += targets[1] + ... + targets[folded]`, where `folded` is
    /// less than the number of targets.
    ///
    /// SAFETY contract: every source is readable and every target readable and writable for `len` bytes, and
    /// the CPU has the instructions of the back end. (Overlap is not unsound, merely wrong.)
    sum: unsafe fn(terms: &[Term], targets: &[*mut u8], len: usize, mode: Mode, folded: usize),
    /// `targets[t] += coefficients[t] * (old + new)`; same contract.
    update: unsafe fn(
        old: *const u8,
        new: *const u8,
        coefficients: [u8; TARGETS_MAX],
        targets: &[*mut u8],
        len: usize,
    ),
    /// Solves along a walk over two pieces, rows and diagonals.
    ///
    /// SAFETY contract: both pieces are readable and writable for all symbols of the ring, and the CPU has
    /// the instructions of the back end.
    solve: unsafe fn(pieces: (*mut u8, *mut u8), ring: ring::Ring, walk: walk::Walk),
}

impl Kernels {
    /// Whose kernels these are.
    pub(crate) fn backend(&self) -> Backend {
        self.backend
    }
}

impl fmt::Debug for Kernels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.backend.fmt(f)
    }
}

/// How many pieces a job reads and writes.
#[derive(Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) sources: usize,
    pub(crate) targets: usize,
    /// So many targets after the first one are added to it when they are complete: at most
    /// [`TARGETS_MAX`] - 1.
    pub(crate) folded: usize,
}

impl Shape {
    /// A job in which every target is a sum of sources alone.
    pub(crate) fn plain(sources: usize, targets: usize) -> Self {
        Self { sources, targets, folded: 0 }
    }
}

/// Sets every target to the sum of all sources times their coefficients; then adds to the first target those
/// that are folded into it. `source` and `target` name pieces of `memory` by their position in the job;
/// `coefficients(s, t)` are those of source `s` for the targets from position `t` on.
pub(crate) fn combine<M: Memory>(
    kernels: &Kernels,
    memory: &mut M,
    shape: Shape,
    source: impl Fn(usize) -> usize,
    target: impl Fn(usize) -> usize,
    coefficients: impl Fn(usize, usize) -> [u8; TARGETS_MAX],
) {
    let len = memory.len();
    assert!(shape.folded < TARGETS_MAX.min(shape.targets.max(1)), "folded targets are made by one call");
    for first_target in (0..shape.targets).step_by(TARGETS_MAX) {
        let target_count = TARGETS_MAX.min(shape.targets - first_target);
        let mut targets = [std::ptr::null_mut(); TARGETS_MAX];
        for (i, pointer) in targets[..target_count].iter_mut().enumerate() {
            *pointer = memory.target(target(first_target + i));
        }
        let targets = &targets[..target_count];
        if shape.sources == 0 {
            for &pointer in targets {
                // JUSTIFICATION: the pieces of a job are handed out as pointers, see `Memory`.
                // SAFETY: `Memory::target` promises `len` writable bytes.
                unsafe { pointer.write_bytes(0, len) };
            }
        }
        for first_source in (0..shape.sources).step_by(TERMS_MAX) {
            let term_count = TERMS_MAX.min(shape.sources - first_source);
            let mut terms = [const { MaybeUninit::uninit() }; TERMS_MAX];
            for (i, term) in (first_source..).zip(&mut terms[..term_count]) {
                let source = memory.source(source(i));
                term.write(Term { source, coefficients: coefficients(i, first_target) });
            }
            // JUSTIFICATION: clearing all terms first costs more than the setup of a short sum.
            // SAFETY: the loop wrote the first `term_count`.
            let terms = unsafe { std::slice::from_raw_parts(terms.as_ptr().cast::<Term>(), term_count) };
            let mode = if first_source == 0 { Mode::Overwrite } else { Mode::Add };
            let complete = first_target == 0 && first_source + term_count == shape.sources;
            let folded = if complete { shape.folded } else { 0 };
            // JUSTIFICATION: kernels use vector instructions on pieces some of which are read and
            // some written.
            // SAFETY: `Memory` promises `len` readable bytes behind each source and `len` readable and
            // writable ones behind each target; `Kernels` are only handed out if the CPU can run them.
            unsafe { (kernels.sum)(terms, targets, len, mode, folded) };
        }
    }
}

/// Adds `coefficients * (old + new)` to every target; an `old` or `new` that is absent counts as zeros.
pub(crate) fn update<M: Memory>(
    kernels: &Kernels,
    memory: &mut M,
    change: (Option<usize>, Option<usize>),
    target_count: usize,
    target: impl Fn(usize) -> usize,
    coefficients: impl Fn(usize) -> [u8; TARGETS_MAX],
) {
    let len = memory.len();
    for first in (0..target_count).step_by(TARGETS_MAX) {
        let count = TARGETS_MAX.min(target_count - first);
        let mut targets = [std::ptr::null_mut(); TARGETS_MAX];
        for (i, pointer) in targets[..count].iter_mut().enumerate() {
            *pointer = memory.target(target(first + i));
        }
        let (targets, coefficients) = (&targets[..count], coefficients(first));
        match change {
            (None, None) => {}
            (Some(one), None) | (None, Some(one)) => {
                let term = Term { source: memory.source(one), coefficients };
                // JUSTIFICATION and SAFETY: as in `combine`.
                unsafe { (kernels.sum)(&[term], targets, len, Mode::Add, 0) };
            }
            (Some(old), Some(new)) => {
                let (old, new) = (memory.source(old), memory.source(new));
                // JUSTIFICATION and SAFETY: as in `combine`.
                unsafe { (kernels.update)(old, new, coefficients, targets, len) };
            }
        }
    }
}
