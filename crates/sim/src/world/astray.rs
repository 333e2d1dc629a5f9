//! Where writes land that do not arrive where they ought to.

use super::{Member, World};
use block::{DeviceOp, Random as _};

impl World {
    /// Where a misdirected write of content lands: beyond the metadata of any slice.
    pub(super) fn misdirected(&mut self, op: &DeviceOp) -> u64 {
        let Member { ref disk, stride, .. } = self.members[op.dev.index()];
        let (size, start) = (disk.size_bytes(), self.layout.data_start[op.dev.index()]);
        if stride == 0 {
            let is_main = op.dev.index() < self.layout.first_log;
            let size = self.layout.data_end.filter(|_| is_main).map_or(size, |end| end.min(size));
            let places = (size - start) / op.length_bytes;
            return start + self.rng.below(places) * op.length_bytes;
        }
        // What is behind the slices of devices that have become larger is metadata in part.
        let size = if self.layout.is_enlarged { size.min(self.layout.room.0 * stride) } else { size };
        // What a larger device has behind the last slice may be short of one.
        let slices = (size.saturating_sub(start + op.length_bytes) / stride + 1).min(size.div_ceil(stride));
        let origin = self.rng.below(slices) * stride;
        let places = ((size - origin).min(stride) - start) / op.length_bytes;
        origin + start + self.rng.below(places) * op.length_bytes
    }

    /// The same place in another slice.
    pub(super) fn astray(&mut self, op: &DeviceOp) -> u64 {
        let Member { ref disk, stride, .. } = self.members[op.dev.index()];
        if let Some((_, of, _)) = self.behind_slices(op) {
            let (count, unit) = self.layout.room;
            let other = (of + 1 + self.rng.below(count - 1)) % count;
            let at = op.offset_bytes - of * unit + other * unit;
            return if at + op.length_bytes <= disk.size_bytes() { at } else { op.offset_bytes };
        }
        let (size, within) = (disk.size_bytes(), self.within_slice(op));
        let size = if self.layout.is_enlarged { size.min(self.layout.room.0 * stride) } else { size };
        let there = |slice: &u64| slice * stride + within + op.length_bytes <= size;
        let others = (0..size.div_ceil(stride)).filter(|slice| slice * stride + within != op.offset_bytes);
        let others: Vec<u64> = others.filter(there).collect();
        if others.is_empty() { op.offset_bytes } else { self.rng.pick(&others) * stride + within }
    }
}
