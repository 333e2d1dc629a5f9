//! Checks that every driver makes on an operation before it moves bytes.

use block::{DeviceOp, META_BYTES, OpKind, Slot};

const GRID_BYTES: u64 = META_BYTES as u64;

/// The slot of a read or write, and how many of its bytes; panics where the caller broke the contract of
/// [`DeviceOp`].
pub(crate) fn transfer_place(op: &DeviceOp, slot_bytes: usize) -> (Slot, usize) {
    assert!(
        op.length_bytes <= slot_bytes as u64 && on_grid(op),
        "{:?} of {} bytes at {} of {:?}: expected multiples of 4096 and at most a slot of {slot_bytes} bytes",
        op.kind,
        op.length_bytes,
        op.offset_bytes,
        op.dev
    );
    // At most a slot.
    (op.slot.expect("reads and writes name a slot"), op.length_bytes as usize)
}

/// Whether offset and length are multiples of 4096.
pub(crate) const fn on_grid(op: &DeviceOp) -> bool {
    (op.offset_bytes | op.length_bytes).is_multiple_of(GRID_BYTES)
}

/// Whether the operation stays within a member of `size_bytes`.
pub(crate) fn in_range(op: &DeviceOp, size_bytes: u64) -> bool {
    op.kind == OpKind::Flush || range_fits(op.offset_bytes, op.length_bytes, size_bytes)
}

/// Whether `length_bytes` at `offset_bytes` lie within `size_bytes`.
pub(crate) const fn range_fits(offset_bytes: u64, length_bytes: u64, size_bytes: u64) -> bool {
    match offset_bytes.checked_add(length_bytes) {
        Some(end) => end <= size_bytes,
        None => false,
    }
}

/// Panics unless a synchronous transfer is on the 4096-byte grid.
pub(crate) fn assert_grid(offset_bytes: u64, length: usize) {
    assert!(
        offset_bytes.is_multiple_of(GRID_BYTES) && length.is_multiple_of(META_BYTES),
        "synchronous transfer of {length} bytes at {offset_bytes}: expected multiples of 4096"
    );
}
