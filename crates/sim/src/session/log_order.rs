//! A log device is one ascending stream: no place of it is written for the first time after a later place.
//!
//! What is written again, a healed log chunk, or a write that found no room, may come at any time; and so may
//! anything on a device that is being rebuilt. Log devices that hold frames alone are rings of their own,
//! whose places are not those of the log.

use crate::violation;
use crate::violation::Violation;
use crate::world::LogWrite;
use array::Engine;
use block::{ChunkIndex, DevIndex};
use format::{LOG_START_BYTES, MemberState};
use std::collections::BTreeMap;

/// What is known of the log devices of one shard since the session began.
pub(super) struct LogOrder {
    /// Of each log device, unless it was out of service at the last look.
    streams: Vec<Option<Stream>>,
    /// Where the log ended at the last look.
    head: u64,
    writes: Vec<LogWrite>,
}

struct Stream {
    /// Where the log ended when the device came into service: nothing is known of what lies before.
    from: u64,
    /// The position last written to each block.
    last: BTreeMap<ChunkIndex, u64>,
    /// Behind the highest position written.
    reached: u64,
}

impl LogOrder {
    pub(super) fn new(engine: &Engine) -> Self {
        Self { streams: Vec::new(), head: engine.store().log.head(), writes: Vec::new() }
    }

    /// Where to put what was written since the last look.
    pub(super) fn writes(&mut self) -> &mut Vec<LogWrite> {
        &mut self.writes
    }

    /// Judges what was written since the last look.
    pub(super) fn check(&mut self, engine: &Engine) -> Result<(), Violation> {
        let store = engine.store();
        let (first, members) = (store.main_count(), engine.health().members().len());
        self.streams.resize_with(members - first, || None);
        let logs = (0u16..).map(DevIndex::new).skip(first);
        for (stream, dev) in self.streams.iter_mut().zip(logs) {
            let in_log = store.config.has_log_chunks(dev);
            let serves = in_log && engine.health().state(dev) == MemberState::Healthy;
            match stream {
                Some(_) if !serves => *stream = None,
                None if serves => *stream = Some(Stream::new(self.head)),
                Some(_) | None => {}
            }
        }
        for (_, dev, offset_bytes) in self.writes.drain(..) {
            let block_bytes = store.config.log_offset(ChunkIndex::new(2)) - LOG_START_BYTES;
            let block = u32::try_from((offset_bytes - LOG_START_BYTES) / block_bytes + 1);
            let block = ChunkIndex::new(block.expect("the log region has fewer blocks than 2^32"));
            if let Some(stream) = &mut self.streams[dev.index() - first] {
                stream.note(dev, block, store.log.position_of(block))?;
            }
        }
        self.head = store.log.head();
        Ok(())
    }
}

impl Stream {
    fn new(from: u64) -> Self {
        Self { from, last: BTreeMap::new(), reached: from }
    }

    fn note(&mut self, dev: DevIndex, block: ChunkIndex, position: u64) -> Result<(), Violation> {
        if position < self.from || self.last.get(&block) == Some(&position) {
            return Ok(());
        }
        if position < self.reached {
            return Err(violation!(
                "the log on device {dev} is not one ascending stream: position {position} is written for the \
                 first time after position {}",
                self.reached - 1
            ));
        }
        self.last.insert(block, position);
        self.reached = position + 1;
        Ok(())
    }
}
