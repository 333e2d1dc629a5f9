//! The memory the kernel reads from and writes to, and how it is registered.
//!
//! Either the set's own ([`Buffers::own`]): operations copy between it and the caller's pool, and it lives as
//! long as the set. Or the caller's pool itself ([`Buffers::shared`]): nothing is copied, and the caller has
//! promised that the pool's memory outlives the set. See `docs/decisions/0012-uring-buffers.md`.

use crate::member::Note;
use block::{Pool, Slot};
use io_uring::IoUring;

/// The kernel takes at most 1 GiB in one registered buffer.
const FIXED_BUFFER_BYTES_MAX: usize = 1 << 30;

/// A slot's memory, for as long as an operation on it lasts.
#[derive(Clone, Copy)]
pub(super) struct Buffer {
    slot: Slot,
    /// The spare region it lies in; `None` for the first region.
    spare: Option<usize>,
    /// Where it starts within its region, in bytes.
    offset: usize,
}

/// A region cut into slots, known to the kernel.
pub(super) struct Buffers {
    own: Option<Pool>,
    /// Further regions of the set's own, in the place of what the kernel keeps of operations given up.
    spares: Vec<Pool>,
    /// Where the first region starts. Only the kernel reads or writes through this address, in slots that no
    /// safe code has a slice of while an operation is under way. This program never does: it goes through
    /// `bytes` and `bytes_mut` of the pool, whose reborrows this pointer need not survive.
    start: *mut u8,
    region_bytes: usize,
    slot_bytes: usize,
    /// Bytes in a registered buffer, a multiple of the slot; 0 if none is registered.
    fixed_bytes: usize,
}

impl Buffers {
    /// Memory of the set's own: `count` slots of `slot_bytes`.
    pub(super) fn own(slot_bytes: usize, count: usize) -> Self {
        let mut pool = Pool::new(slot_bytes, count);
        let buffers = Self::shared(&mut pool);
        Self { own: Some(pool), ..buffers }
    }

    /// The caller's pool. Safe to build; the promise is made where operations are started.
    pub(super) fn shared(pool: &mut Pool) -> Self {
        let slot_bytes = pool.slot_bytes();
        let region = pool.region_mut();
        let (start, region_bytes) = (region.as_mut_ptr(), region.len());
        Self { own: None, spares: Vec::new(), start, region_bytes, slot_bytes, fixed_bytes: 0 }
    }

    /// Registers the region with the ring, so that the kernel need not map it anew for every operation.
    pub(super) fn register(&mut self, ring: &IoUring) -> Option<Note> {
        if self.region_bytes == 0 || self.slot_bytes > FIXED_BUFFER_BYTES_MAX {
            return None;
        }
        let fixed_bytes = FIXED_BUFFER_BYTES_MAX / self.slot_bytes * self.slot_bytes;
        let pieces: Vec<_> = (0..self.region_bytes)
            .step_by(fixed_bytes)
            .map(|offset| libc::iovec {
                iov_base: self.start.wrapping_add(offset).cast(),
                iov_len: fixed_bytes.min(self.region_bytes - offset),
            })
            .collect();
        // SAFETY: the pieces lie within the region, which stays allocated while the ring lives: it is
        // dropped after the ring's last operation (own), or the caller of the unsafe constructor
        // promised it (shared).
        // JUSTIFICATION: registered buffers save mapping and unmapping the pages of every operation.
        match unsafe { ring.submitter().register_buffers(&pieces) } {
            Ok(()) => {
                self.fixed_bytes = fixed_bytes;
                None
            }
            Err(error) => Some(Note::BuffersNotRegistered {
                bytes: self.region_bytes as u64,
                errno: error.raw_os_error().unwrap_or(0),
            }),
        }
    }

    /// Panics if `pool` is not the pool that the kernel knows: its addresses would be wrong.
    pub(super) fn check(&self, pool: &Pool) {
        match &self.own {
            Some(own) => {
                assert_eq!(
                    own.slot_bytes(),
                    pool.slot_bytes(),
                    "the set was started for slots of another size"
                );
            }
            None => assert!(
                std::ptr::eq(pool.region().as_ptr(), self.start) && pool.region().len() == self.region_bytes,
                "the set was started for another pool"
            ),
        }
    }

    pub(super) fn slot_bytes(&self) -> usize {
        self.slot_bytes
    }

    /// How many more operations there is memory for.
    pub(super) fn free_count(&self) -> usize {
        let spare: usize = self.spares.iter().map(Pool::free_count).sum();
        self.own.as_ref().map_or(usize::MAX, |own| own.free_count() + spare)
    }

    /// Whether operations have memory of the set's own, so that the caller's slots are free when one
    /// is given up.
    pub(super) fn are_own(&self) -> bool {
        self.own.is_some()
    }

    /// Memory for `count` more operations, in the place of what the kernel keeps.
    pub(super) fn add_spare(&mut self, count: usize) {
        if count > 0 {
            self.spares.push(Pool::new(self.slot_bytes, count));
        }
    }

    /// The memory for an operation on `slot` of the caller's pool; `None` when it is all in use.
    pub(super) fn acquire(&mut self, pool: &Pool, slot: Slot) -> Option<Buffer> {
        let Some(own) = &mut self.own else {
            return Some(Buffer { slot, spare: None, offset: pool.offset(slot) });
        };
        if let Some(slot) = own.alloc() {
            return Some(Buffer { slot, spare: None, offset: own.offset(slot) });
        }
        self.spares.iter_mut().enumerate().find_map(|(index, spare)| {
            spare.alloc().map(|slot| Buffer { slot, spare: Some(index), offset: spare.offset(slot) })
        })
    }

    /// Gives back what [`Buffers::acquire`] gave.
    pub(super) fn release(&mut self, buffer: Buffer) {
        if let Some(own) = self.pool_mut(buffer) {
            own.free(buffer.slot);
        }
    }

    /// The pool of the set's own that the buffer is in.
    fn pool_mut(&mut self, buffer: Buffer) -> Option<&mut Pool> {
        match buffer.spare {
            None => self.own.as_mut(),
            Some(index) => self.spares.get_mut(index),
        }
    }

    /// Before a write: brings the caller's bytes in.
    pub(super) fn fill(&mut self, buffer: Buffer, pool: &Pool, slot: Slot, length: usize) {
        if let Some(own) = self.pool_mut(buffer) {
            own.bytes_mut(buffer.slot)[..length].copy_from_slice(&pool.bytes(slot)[..length]);
        }
    }

    /// After a read: takes the bytes out to the caller.
    pub(super) fn drain(&self, buffer: Buffer, pool: &mut Pool, slot: Slot, length: usize) {
        if let Some(own) = buffer.spare.map_or(self.own.as_ref(), |index| self.spares.get(index)) {
            pool.bytes_mut(slot)[..length].copy_from_slice(&own.bytes(buffer.slot)[..length]);
        }
    }

    /// Where a buffer starts.
    pub(super) fn address(&mut self, buffer: Buffer) -> *mut u8 {
        if let Some(index) = buffer.spare {
            return self.spares[index].bytes_mut(buffer.slot).as_mut_ptr();
        }
        assert!(buffer.offset < self.region_bytes, "{:?} is of another pool", buffer.slot);
        self.start.wrapping_add(buffer.offset)
    }

    /// The registered buffer that holds `length` bytes at `address`, if one does.
    pub(super) fn fixed_index(&self, address: *mut u8, length: usize) -> Option<u16> {
        let offset = address.addr().wrapping_sub(self.start.addr());
        if self.fixed_bytes == 0 || offset >= self.region_bytes {
            return None; // nothing is registered, or it is a spare
        }
        let index = offset / self.fixed_bytes;
        if (offset + length - 1) / self.fixed_bytes != index {
            return None;
        }
        u16::try_from(index).ok()
    }
}
