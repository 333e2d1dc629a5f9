//! A volume in plain memory: for conformance tests and as the yardstick of what the front end itself costs.
//!
//! Every request is done at the next [`Volume::drive`]. Chunks that were never written, or were discarded,
//! are reported as holes.

use crate::session::spans;
use crate::{Answer, Ask, Done, Punch, Volume, VolumeError, VolumeRequest};
use block::{Pool, SECTOR_BYTES, Slot};
use std::os::fd::BorrowedFd;

/// A volume in memory.
pub struct MemoryVolume {
    data: Vec<u8>,
    stored: Vec<bool>,
    pool: Pool,
    done: Vec<Done>,
    read_only: bool,
    unit_bytes: Option<u64>,
    untorn_bytes: u64,
}

/// Extents reported at once.
const EXTENT_COUNT_MAX: usize = 1024;

impl MemoryVolume {
    /// Carries out what another thread asks, in the buffers that come with it.
    pub fn answer(&mut self, ask: Ask) -> Answer {
        let Ask { tag, request, mut buffers, .. } = ask;
        let mut slots = Vec::new();
        for buffer in &buffers {
            let slot = self.pool().alloc().expect("as many slots as a request has buffers");
            self.pool().bytes_mut(slot).copy_from_slice(buffer);
            slots.push(slot);
        }
        let result = self.carry_out(request, &slots);
        for (buffer, slot) in buffers.iter_mut().zip(slots) {
            buffer.copy_from_slice(self.pool().bytes(slot));
            self.pool().free(slot);
        }
        Answer { tag, result, buffers }
    }

    /// A volume of zeros of `size_bytes`, cut to whole sectors, whose chunks and slots have `chunk_bytes`
    /// (a multiple of 4096) and whose pool has `slot_count` slots.
    pub fn new(size_bytes: usize, chunk_bytes: usize, slot_count: usize) -> Self {
        let sector = usize::try_from(SECTOR_BYTES).expect("a sector fits into memory");
        let size_bytes = size_bytes - size_bytes % sector;
        Self {
            data: vec![0; size_bytes],
            stored: vec![false; size_bytes.div_ceil(chunk_bytes)],
            pool: Pool::new(chunk_bytes, slot_count),
            done: Vec::new(),
            read_only: false,
            unit_bytes: None,
            untorn_bytes: 0,
        }
    }

    /// The same, refusing writes.
    pub fn into_read_only(self) -> Self {
        Self { read_only: true, ..self }
    }

    /// The same, asking that reads and writes keep to units of so many bytes.
    pub fn in_units(self, unit_bytes: u64) -> Self {
        Self { unit_bytes: Some(unit_bytes), ..self }
    }

    /// The same, asking that no aligned block of so many bytes comes in pieces. (All of it is lost together.)
    pub fn untorn(self, untorn_bytes: u64) -> Self {
        Self { untorn_bytes, ..self }
    }

    /// What is stored.
    pub fn data(&self) -> &[u8] {
        &self.data
    }

    fn range(offset_bytes: u64, length_bytes: u64) -> std::ops::Range<usize> {
        let at = |bytes: u64| usize::try_from(bytes).expect("the front end keeps requests within the volume");
        at(offset_bytes)..at(offset_bytes + length_bytes)
    }

    fn transfer(&mut self, write: bool, range: std::ops::Range<usize>, slots: &[Slot]) {
        let chunk_bytes = self.pool.slot_bytes();
        let mut at = range.start;
        for (index, start, length) in spans(range.start % chunk_bytes, range.len(), chunk_bytes) {
            let slot = &mut self.pool.bytes_mut(slots[index])[start..start + length];
            let data = &mut self.data[at..at + length];
            if write {
                data.copy_from_slice(slot);
                self.stored[at / chunk_bytes] = true;
            } else {
                slot.copy_from_slice(data);
            }
            at += length;
        }
    }

    fn zero(&mut self, range: std::ops::Range<usize>, punch: Punch) {
        let chunk_bytes = self.pool.slot_bytes();
        if range.is_empty() {
            return;
        }
        for chunk in range.start / chunk_bytes..range.end.div_ceil(chunk_bytes) {
            let end = ((chunk + 1) * chunk_bytes).min(self.data.len());
            let whole = range.start <= chunk * chunk_bytes && end <= range.end;
            match punch {
                Punch::Allowed if whole => self.stored[chunk] = false,
                Punch::Allowed => {}
                Punch::Forbidden => self.stored[chunk] = true,
            }
        }
        self.data[range].fill(0);
    }

    fn carry_out(&mut self, request: VolumeRequest, slots: &[Slot]) -> Result<(), VolumeError> {
        match request {
            VolumeRequest::Read { offset_bytes, length_bytes } => {
                self.transfer(false, Self::range(offset_bytes, length_bytes), slots);
            }
            VolumeRequest::Flush | VolumeRequest::Cache { .. } => {}
            VolumeRequest::Write { .. }
            | VolumeRequest::Discard { .. }
            | VolumeRequest::WriteZeroes { .. }
                if self.read_only =>
            {
                return Err(VolumeError::ReadOnly);
            }
            VolumeRequest::Write { offset_bytes, length_bytes, .. } => {
                self.transfer(true, Self::range(offset_bytes, length_bytes), slots);
            }
            VolumeRequest::Discard { offset_bytes, length_bytes, .. } => {
                self.zero(Self::range(offset_bytes, length_bytes), Punch::Allowed);
            }
            VolumeRequest::WriteZeroes { offset_bytes, length_bytes, punch, .. } => {
                self.zero(Self::range(offset_bytes, length_bytes), punch);
            }
        }
        Ok(())
    }
}

impl Volume for MemoryVolume {
    fn size_bytes(&self) -> u64 {
        self.data.len() as u64
    }

    fn chunk_bytes(&self) -> usize {
        self.pool.slot_bytes()
    }

    fn untorn_bytes(&self) -> u64 {
        self.untorn_bytes
    }

    fn unit_bytes(&self) -> Option<u64> {
        self.unit_bytes
    }

    fn read_only(&self) -> bool {
        self.read_only
    }

    fn pool(&mut self) -> &mut Pool {
        &mut self.pool
    }

    fn start(&mut self, tag: u64, request: VolumeRequest, slots: &[Slot]) {
        let result = self.carry_out(request, slots);
        self.done.push(Done { tag, result });
    }

    fn drive(&mut self, done: &mut Vec<Done>) {
        done.append(&mut self.done);
    }

    fn idle_for(&self) -> Option<u64> {
        (!self.done.is_empty()).then_some(0)
    }

    fn wake_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn allocated(&self, offset_bytes: u64, length_bytes: u64, out: &mut Vec<(u64, bool)>) {
        let chunk_bytes = self.pool.slot_bytes();
        let first = out.len();
        let range = Self::range(offset_bytes, length_bytes);
        for (index, _, length) in spans(range.start % chunk_bytes, range.len(), chunk_bytes) {
            let hole = !self.stored[range.start / chunk_bytes + index];
            let full = out.len() - first >= EXTENT_COUNT_MAX;
            match out[first..].last_mut() {
                Some((last, same)) if *same == hole => *last += length as u64,
                Some(_) if full => return,
                Some(_) | None => out.push((length as u64, hole)),
            }
        }
    }
}
