//! A log device is one ascending stream: no place of it is written for the first time after a later place.
//!
//! What is written again, a healed log chunk, or a write that found no room, may come at any time; and so may
//! anything on a device that is being rebuilt.

use crate::violation;
use crate::violation::Violation;
use array::Engine;
use block::{ChunkIndex, DevIndex, META_BYTES};
use format::{LOG_START_BYTES, MemberState};

/// What is known of the log devices since the session began.
pub(super) struct LogOrder {
    /// Of each log device, unless it was out of service at the last look.
    streams: Vec<Option<Stream>>,
    /// Where the log ended at the last look.
    head: u64,
    writes: Vec<(DevIndex, u64)>,
}

struct Stream {
    /// Where the log ended when the device came into service: nothing is known of what lies before.
    from: u64,
    /// The position last written to each block, 0 if there is none from `from` on.
    last: Vec<u64>,
    /// Behind the highest position written.
    reached: u64,
}

impl LogOrder {
    pub(super) fn new(engine: &Engine) -> Self {
        Self { streams: Vec::new(), head: engine.store().log.head(), writes: Vec::new() }
    }

    /// Where to put what was written since the last look.
    pub(super) fn writes(&mut self) -> &mut Vec<(DevIndex, u64)> {
        &mut self.writes
    }

    /// Judges what was written since the last look.
    pub(super) fn check(&mut self, engine: &Engine) -> Result<(), Violation> {
        let store = engine.store();
        let logs = store.main_count()..engine.health().members().len();
        self.streams.resize_with(logs.len(), || None);
        for (stream, dev) in self.streams.iter_mut().zip(logs) {
            let serves = engine.health().state(DevIndex::new(dev as u16)) == MemberState::Healthy;
            match stream {
                Some(_) if !serves => *stream = None,
                None if serves => *stream = Some(Stream::new(self.head, store.log.block_count())),
                Some(_) | None => {}
            }
        }
        for (dev, offset_bytes) in self.writes.drain(..) {
            let block = ((offset_bytes - LOG_START_BYTES) / META_BYTES as u64) as u32;
            let position = store.log.position_of(ChunkIndex::new(block + 1));
            if let Some(stream) = &mut self.streams[dev.index() - store.main_count()] {
                stream.note(dev, block, position)?;
            }
        }
        self.head = store.log.head();
        Ok(())
    }
}

impl Stream {
    fn new(from: u64, blocks: u32) -> Self {
        Self { from, last: vec![0; blocks as usize], reached: from }
    }

    fn note(&mut self, dev: DevIndex, block: u32, position: u64) -> Result<(), Violation> {
        let last = &mut self.last[block as usize];
        if position < self.from || *last == position + 1 {
            return Ok(());
        }
        if position < self.reached {
            return Err(violation!(
                "the log on device {dev} is not one ascending stream: position {position} is written for the \
                 first time after position {}",
                self.reached - 1
            ));
        }
        (*last, self.reached) = (position + 1, position + 1);
        Ok(())
    }
}
