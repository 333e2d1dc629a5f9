//! Where the segments of a trace's devices go in the one volume that a replay uses.
//!
//! Both layouts are monotone: of two positions of the trace, the later one (by device, then offset) never
//! comes first in the volume. A segment that was dropped has no room; positions in it become the start of the
//! next one.

use crate::{DevMode, PrepareError, PrepareOptions, Request, TouchedBy};
use std::collections::{BTreeMap, HashSet};

/// More segments than this make no volume (64 TiB at 1 MiB).
const SEGMENTS_MAX: usize = 1 << 26;

/// The map from a trace's devices and offsets to one volume.
#[derive(Clone, Debug)]
pub struct Layout {
    spaces: Vec<Space>,
    segment_bytes: u64,
    dev_mode: DevMode,
    footprint_bytes: u64,
}

#[derive(Clone, Debug)]
struct Space {
    dev: u32,
    /// Where it starts in the volume.
    base_bytes: u64,
    room: Room,
}

#[derive(Clone, Debug)]
enum Room {
    /// The numbers of the touched segments, ascending; the i-th lies at base + i x segment.
    Touched(Vec<u64>),
    /// Everything up to the end of the last touched segment.
    Whole(u64),
}

impl Layout {
    /// Size of the volume in bytes: what is filled before the replay.
    pub fn footprint_bytes(&self) -> u64 {
        self.footprint_bytes
    }

    /// Bytes in a segment.
    pub fn segment_bytes(&self) -> u64 {
        self.segment_bytes
    }

    /// Where the bytes `offset_bytes..+length_bytes` of a device went, as start and length; shorter, perhaps
    /// 0, by what was dropped.
    pub fn place(&self, dev: u32, offset_bytes: u64, length_bytes: u64) -> (u64, u64) {
        let dev = self.dev_mode.space_of(dev);
        let at = self.spaces.partition_point(|space| space.dev < dev);
        let Some(space) = self.spaces.get(at).filter(|space| space.dev == dev) else {
            return (0, 0);
        };
        let start = space.position(offset_bytes, self.segment_bytes);
        let end = space.position(offset_bytes.saturating_add(length_bytes), self.segment_bytes);
        (start, end - start)
    }
}

impl Space {
    fn position(&self, offset_bytes: u64, segment_bytes: u64) -> u64 {
        match &self.room {
            Room::Whole(size_bytes) => self.base_bytes + offset_bytes.min(*size_bytes),
            Room::Touched(segments) => {
                let segment = offset_bytes / segment_bytes;
                let rank = segments.partition_point(|&touched| touched < segment);
                let within =
                    if segments.get(rank) == Some(&segment) { offset_bytes % segment_bytes } else { 0 };
                // Rank and base were checked against overflow when the layout was made.
                self.base_bytes + rank as u64 * segment_bytes + within
            }
        }
    }

    fn size_bytes(&self, segment_bytes: u64) -> Option<u64> {
        match &self.room {
            Room::Whole(size_bytes) => Some(*size_bytes),
            Room::Touched(segments) => u64::try_from(segments.len()).ok()?.checked_mul(segment_bytes),
        }
    }
}

/// Collects what a trace touches.
pub(crate) struct Survey<'a> {
    options: &'a PrepareOptions,
    touched: HashSet<(u32, u64)>,
    /// End of the last touched segment of each space, in segments.
    ends: BTreeMap<u32, u64>,
    latest: Option<(u32, u64)>,
}

impl<'a> Survey<'a> {
    pub(crate) fn new(options: &'a PrepareOptions) -> Self {
        Self { options, touched: HashSet::new(), ends: BTreeMap::new(), latest: None }
    }

    pub(crate) fn add(&mut self, request: &Request) -> Result<(), PrepareError> {
        let counts = match self.options.touched_by {
            TouchedBy::Transfers => request.is_transfer(),
            TouchedBy::Writes => request.op == crate::Op::Write,
        };
        let segments = request.chunks(self.options.segment_bytes);
        if !counts || segments.is_empty() {
            return Ok(());
        }
        let space = self.options.dev_mode.space_of(request.dev);
        if !self.options.compact {
            let end = self.ends.entry(space).or_default();
            *end = segments.end.max(*end);
            return Ok(());
        }
        for segment in segments {
            let key = (space, segment);
            if self.latest != Some(key) {
                self.latest = Some(key);
                self.touched.insert(key);
            }
        }
        if self.touched.len() > SEGMENTS_MAX {
            return Err(PrepareError::TooManySegments { limit: SEGMENTS_MAX });
        }
        Ok(())
    }

    pub(crate) fn finish(self) -> Result<Layout, PrepareError> {
        let PrepareOptions { segment_bytes, dev_mode, .. } = *self.options;
        let mut spaces = Vec::new();
        for (dev, end) in self.ends {
            let size_bytes = end.checked_mul(segment_bytes).ok_or(PrepareError::FootprintTooLarge)?;
            spaces.push(Space { dev, base_bytes: 0, room: Room::Whole(size_bytes) });
        }
        let mut touched: Vec<_> = self.touched.into_iter().collect();
        touched.sort_unstable();
        for of_dev in touched.chunk_by(|a, b| a.0 == b.0) {
            let segments = of_dev.iter().map(|&(_, segment)| segment).collect();
            spaces.push(Space { dev: of_dev[0].0, base_bytes: 0, room: Room::Touched(segments) });
        }
        let mut footprint_bytes = 0u64;
        for space in &mut spaces {
            space.base_bytes = footprint_bytes;
            footprint_bytes = space
                .size_bytes(segment_bytes)
                .and_then(|size| footprint_bytes.checked_add(size))
                .filter(|&end| end <= crate::MAX_END_BYTES)
                .ok_or(PrepareError::FootprintTooLarge)?;
        }
        Ok(Layout { spaces, segment_bytes, dev_mode, footprint_bytes })
    }
}
