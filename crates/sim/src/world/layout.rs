//! What is where on the devices of a world: slices, content in them, and the room behind them.

use super::World;
use block::DeviceOp;
use format::SUPERBLOCK_OFFSETS;

/// See the module's documentation.
pub(super) struct Layout {
    /// Where chunks or log blocks start in each slice of each device: misdirected writes land beyond it.
    pub data_start: Vec<u64>,
    /// Where they end on main devices, with metadata behind them: only once an array has grown.
    pub data_end: Option<u64>,
    /// Shards that have slices of main devices, and what goes to one of them before the next of the room
    /// behind those, if main devices have become larger.
    pub room: (u64, u64),
    pub is_enlarged: bool,
    pub first_log: usize,
}

impl Layout {
    /// Of so many devices nothing is known.
    pub fn new(count: usize) -> Self {
        let data_start = vec![u64::MAX; count];
        Self { data_start, data_end: None, room: (1, u64::MAX), is_enlarged: false, first_log: usize::MAX }
    }
}

impl World {
    /// Where user content starts on each device, and which devices are log devices: those from `first_log`.
    pub fn set_data_start(&mut self, starts: Vec<u64>, first_log: usize) {
        (self.layout.data_start, self.layout.first_log) = (starts, first_log);
    }

    /// How far apart the slices of each device are; 0 if it has one only.
    pub fn set_strides(&mut self, strides: &[u64]) {
        self.members.iter_mut().zip(strides).for_each(|(member, &stride)| member.stride = stride);
    }

    /// How many shards there are, and what goes to one of them before the next of the room behind their
    /// slices.
    pub fn set_room(&mut self, count: u16, unit_bytes: u64) {
        self.layout.room = (count.into(), unit_bytes);
    }

    /// The array has grown: its metadata is behind its data.
    pub fn set_data_end(&mut self, end: u64) {
        self.layout.data_end = Some(end);
    }

    /// Where an operation is in its slice.
    pub(super) fn within_slice(&self, op: &DeviceOp) -> u64 {
        let stride = self.members[op.dev.index()].stride;
        match self.behind_slices(op) {
            Some((turn, _, within)) => stride + turn * self.layout.room.1 + within,
            None if stride == 0 => op.offset_bytes,
            None => op.offset_bytes % stride,
        }
    }

    /// Where it is in the room behind the slices, if it is there: in which turn, whose, and where in that.
    pub(super) fn behind_slices(&self, op: &DeviceOp) -> Option<(u64, u64, u64)> {
        let is_main = op.dev.index() < self.layout.first_log;
        let (stride, (count, unit)) = (self.members[op.dev.index()].stride, self.layout.room);
        let behind = op.offset_bytes.checked_sub(count * stride)?;
        let turn = behind / unit.saturating_mul(count);
        (stride > 0 && is_main && self.layout.is_enlarged).then_some((
            turn,
            behind / unit % count,
            behind % unit,
        ))
    }

    pub(super) fn is_content(&self, op: &DeviceOp) -> bool {
        let is_main = op.dev.index() < self.layout.first_log;
        let is_behind = self.layout.data_end.is_some_and(|end| is_main && self.within_slice(op) >= end);
        self.within_slice(op) >= self.layout.data_start[op.dev.index()] && !is_behind
    }

    pub(super) fn is_superblock(&self, op: &DeviceOp) -> bool {
        SUPERBLOCK_OFFSETS.contains(&self.within_slice(op))
    }
}
