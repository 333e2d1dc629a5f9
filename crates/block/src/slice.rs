//! A slice of every member of a set, as a set of its own: what a shard of an array runs on.

use crate::planted::{Planted, planted};
use crate::{Completion, DevIndex, DeviceOp, DeviceSet, FlushNow, IoFault, OpKind, Pool, ReadNow, WriteNow};
use std::collections::BTreeMap;

/// Which part of one member belongs to the slice.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Extent {
    /// Where it begins, in bytes from the beginning of the member; a multiple of 4096.
    pub origin_bytes: u64,
    /// How long it is at most, in bytes; it ends where the member ends.
    pub length_bytes: u64,
    /// Where it goes on, if it is not all in one place.
    pub turns: Option<Turns>,
}

/// How a slice goes on in room that all slices of a member share: a unit to each, in turn. So there is room
/// for all of them however often a member becomes larger, and what a slice has stays where it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Turns {
    /// Bytes of the slice that are at its origin, in one piece; the others are in the units.
    pub first_bytes: u64,
    /// Where the first unit of this slice begins, in bytes from the beginning of the member.
    pub origin_bytes: u64,
    /// How long a unit is.
    pub unit_bytes: u64,
    /// From one unit of the slice to its next.
    pub step_bytes: u64,
}

impl Extent {
    /// The whole member.
    pub const WHOLE: Self = Self { origin_bytes: 0, length_bytes: u64::MAX, turns: None };

    /// Where a byte of the slice is on the member, and how many from there on are neighbours on both.
    #[inline]
    pub fn place(&self, offset_bytes: u64) -> (u64, u64) {
        let Some(turns) = self.turns else { return (self.origin_bytes + offset_bytes, u64::MAX) };
        let Some(behind) = offset_bytes.checked_sub(turns.first_bytes) else {
            return (self.origin_bytes + offset_bytes, turns.first_bytes - offset_bytes);
        };
        let (turn, within) = (behind / turns.unit_bytes, behind % turns.unit_bytes);
        let turn = if planted(Planted::UnitsOfTheNext) { turn.max(1) - 1 } else { turn };
        let place = turn.saturating_mul(turns.step_bytes).saturating_add(turns.origin_bytes + within);
        (place, turns.unit_bytes - within)
    }

    /// How many bytes of the slice a member of that size has.
    pub fn bytes_within(&self, member_bytes: u64) -> u64 {
        let in_one_piece = member_bytes.saturating_sub(self.origin_bytes);
        let found = match self.turns {
            None => in_one_piece,
            Some(turns) => {
                let room = member_bytes.saturating_sub(turns.origin_bytes);
                let (whole, rest) = (room / turns.step_bytes, room % turns.step_bytes);
                in_one_piece.min(turns.first_bytes) + whole * turns.unit_bytes + rest.min(turns.unit_bytes)
            }
        };
        found.min(self.length_bytes)
    }
}

/// See the module's documentation. A slice that is the whole of every member costs nothing.
pub struct Slice<D> {
    inner: D,
    /// By member; of those beyond its end all belongs to the slice.
    extents: Vec<Extent>,
    is_whole: bool,
    ops: Vec<DeviceOp>,
    /// Operations that were cut: parts under way, and what has come of the others.
    cut: BTreeMap<u64, Cut>,
}

struct Cut {
    left: usize,
    result: Result<(), IoFault>,
}

impl<D> Slice<D> {
    /// The given part of each member of `inner`.
    pub fn new(inner: D, extents: Vec<Extent>) -> Self {
        let is_whole = extents.iter().all(|&extent| extent == Extent::WHOLE);
        Self { inner, extents, is_whole, ops: Vec::new(), cut: BTreeMap::new() }
    }

    /// The whole of every member.
    pub fn whole(inner: D) -> Self {
        Self::new(inner, Vec::new())
    }

    /// From now on it is these parts of the members; what is where does not change for what it was. Nothing
    /// may be in flight.
    pub fn extend_to(&mut self, extents: Vec<Extent>) {
        assert!(self.cut.is_empty(), "something is in flight");
        self.is_whole = extents.iter().all(|&extent| extent == Extent::WHOLE);
        self.extents = extents;
    }

    /// The set that it is a slice of.
    pub fn inner(&self) -> &D {
        &self.inner
    }

    /// The same, to be changed.
    pub fn inner_mut(&mut self) -> &mut D {
        &mut self.inner
    }

    /// The same, given back.
    pub fn into_inner(self) -> D {
        self.inner
    }

    #[inline]
    fn extent(&self, dev: DevIndex) -> Extent {
        self.extents.get(dev.index()).copied().unwrap_or(Extent::WHOLE)
    }

    /// Where a range of the slice of a member is on the member, piece by piece. A set looks only at its
    /// members' ends, so that the range is within the slice is looked at here.
    fn pieces(&self, dev: DevIndex, offset_bytes: u64, length_bytes: u64) -> Pieces {
        let extent = self.extent(dev);
        assert!(
            offset_bytes.checked_add(length_bytes).is_some_and(|end| end <= extent.length_bytes),
            "{length_bytes} bytes at {offset_bytes} of member {dev} reach beyond the slice"
        );
        Pieces { extent, offset_bytes, left_bytes: length_bytes }
    }

    /// One operation, or its parts.
    fn push(&mut self, op: &DeviceOp) {
        let mut pieces = self.pieces(op.dev, op.offset_bytes, op.length_bytes);
        let Some(first) = pieces.next() else {
            return self.ops.push(*op); // A flush is about all of the member.
        };
        let at = |(offset_bytes, length_bytes)| DeviceOp { offset_bytes, length_bytes, ..*op };
        self.ops.push(at(first));
        let before = self.ops.len();
        self.ops.extend(pieces.map(at));
        let more = self.ops.len() - before;
        if more > 0 {
            // A buffer goes to one place: chunks and blocks do not cross the end of a unit.
            assert!(op.kind == OpKind::Discard, "{op:?} crosses the end of a unit");
            self.cut.insert(op.tag, Cut { left: more + 1, result: Ok(()) });
        }
    }

    /// Of the completions from one on those of parts are joined: the last of them ends the operation.
    fn join(&mut self, completions: &mut Vec<Completion>, from: usize) {
        let ended: Vec<Completion> = completions.drain(from..).collect();
        for completion in ended {
            let Some(cut) = self.cut.get_mut(&completion.tag) else {
                completions.push(completion);
                continue;
            };
            cut.left -= 1;
            // That a device is gone is worth more than that it did not like a hint.
            if cut.result.is_ok() || completion.result == Err(IoFault::Gone) {
                cut.result = completion.result;
            }
            if cut.left == 0 {
                completions.push(Completion { tag: completion.tag, result: cut.result });
                self.cut.remove(&completion.tag);
            }
        }
    }
}

/// See [`Slice::pieces`]: where each begins on the member, and how long it is.
struct Pieces {
    extent: Extent,
    offset_bytes: u64,
    left_bytes: u64,
}

impl Iterator for Pieces {
    type Item = (u64, u64);

    fn next(&mut self) -> Option<(u64, u64)> {
        if self.left_bytes == 0 {
            return None;
        }
        let (place, run_bytes) = self.extent.place(self.offset_bytes);
        let run_bytes = if planted(Planted::PastTheUnit) { u64::MAX } else { run_bytes };
        let length_bytes = self.left_bytes.min(run_bytes);
        (self.offset_bytes, self.left_bytes) =
            (self.offset_bytes + length_bytes, self.left_bytes - length_bytes);
        Some((place, length_bytes))
    }
}

fn length_of(bytes: &[u8]) -> u64 {
    u64::try_from(bytes.len()).unwrap_or(u64::MAX)
}

/// A piece's length in memory.
fn in_memory(length_bytes: u64) -> usize {
    usize::try_from(length_bytes).expect("part of what is in memory")
}

impl<D: DeviceSet> DeviceSet for Slice<D> {
    #[inline]
    fn submit(&mut self, pool: &mut Pool, ops: &[DeviceOp]) {
        if self.is_whole {
            return self.inner.submit(pool, ops);
        }
        self.ops.clear();
        for op in ops {
            self.push(op);
        }
        self.inner.submit(pool, &self.ops);
    }

    #[inline]
    fn poll(&mut self, pool: &mut Pool, completions: &mut Vec<Completion>) {
        let from = completions.len();
        self.inner.poll(pool, completions);
        if !self.cut.is_empty() {
            self.join(completions, from);
        }
    }

    fn wait(&mut self, timeout_ns: u64) {
        self.inner.wait(timeout_ns);
    }

    fn give_up(&mut self, dev: DevIndex) {
        self.inner.give_up(dev);
    }

    fn size_bytes(&self, dev: DevIndex) -> u64 {
        self.extent(dev).bytes_within(self.inner.size_bytes(dev))
    }

    fn read_now(&mut self, dev: DevIndex, offset_bytes: u64, into: &mut [u8]) -> Result<(), IoFault> {
        let mut rest = into;
        for (place, length_bytes) in self.pieces(dev, offset_bytes, length_of(rest)) {
            let (piece, behind) = std::mem::take(&mut rest).split_at_mut(in_memory(length_bytes));
            self.inner.read_now(dev, place, piece)?;
            rest = behind;
        }
        Ok(())
    }

    fn read_all_now(&mut self, reads: &mut [ReadNow<'_>]) {
        self.read_all_beside(reads, &mut || {});
    }

    fn read_all_beside(&mut self, reads: &mut [ReadNow<'_>], work: &mut dyn FnMut()) {
        if self.is_whole {
            return self.inner.read_all_beside(reads, work);
        }
        let mut parts: Vec<ReadNow<'_>> = Vec::with_capacity(reads.len());
        for (tag, read) in reads.iter_mut().enumerate() {
            let (dev, pieces) = (read.dev, self.pieces(read.dev, read.offset_bytes, read.length_bytes()));
            let mut rest: &mut [u8] = &mut *read.into;
            for (offset_bytes, length_bytes) in pieces {
                let (into, behind) = std::mem::take(&mut rest).split_at_mut(in_memory(length_bytes));
                parts.push(ReadNow { tag, dev, offset_bytes, into, result: Ok(()) });
                rest = behind;
            }
        }
        self.inner.read_all_beside(&mut parts, work);
        let ended: Vec<_> = parts.into_iter().map(|part| (part.tag, part.result)).collect();
        reads.iter_mut().for_each(|read| read.result = Ok(()));
        for (index, result) in ended {
            reads[index].result = reads[index].result.and(result);
        }
    }

    fn write_now(&mut self, dev: DevIndex, offset_bytes: u64, from: &[u8]) -> Result<(), IoFault> {
        let mut rest = from;
        for (place, length_bytes) in self.pieces(dev, offset_bytes, length_of(from)) {
            let (piece, behind) = rest.split_at(in_memory(length_bytes));
            self.inner.write_now(dev, place, piece)?;
            rest = behind;
        }
        Ok(())
    }

    fn write_all_now(&mut self, writes: &mut [WriteNow<'_>]) {
        self.write_all_beside(writes, &mut || {});
    }

    fn write_all_beside(&mut self, writes: &mut [WriteNow<'_>], work: &mut dyn FnMut()) {
        if self.is_whole {
            return self.inner.write_all_beside(writes, work);
        }
        // A set may put them in another order; none lies over another, so each is known by its place.
        let (mut parts, mut of) = (Vec::with_capacity(writes.len()), BTreeMap::new());
        for (index, write) in writes.iter().enumerate() {
            let (dev, mut rest) = (write.dev, write.from);
            for (offset_bytes, length_bytes) in self.pieces(dev, write.offset_bytes, length_of(rest)) {
                let (from, behind) = rest.split_at(in_memory(length_bytes));
                parts.push(WriteNow { dev, offset_bytes, from, result: Ok(()) });
                of.insert((dev, offset_bytes), index);
                rest = behind;
            }
        }
        self.inner.write_all_beside(&mut parts, work);
        writes.iter_mut().for_each(|write| write.result = Ok(()));
        for part in parts {
            if let Some(&index) = of.get(&(part.dev, part.offset_bytes)) {
                writes[index].result = writes[index].result.and(part.result);
            }
        }
    }

    fn flush_now(&mut self, dev: DevIndex) -> Result<(), IoFault> {
        self.inner.flush_now(dev)
    }

    fn flush_all_now(&mut self, flushes: &mut [FlushNow]) {
        self.inner.flush_all_now(flushes);
    }
}

#[cfg(test)]
mod tests;
