//! Replaying the journal: take its records in order, verify what is not known durable, apply.

use super::load::Loaded;
use super::scan::Found;
use super::secure::Source;
use crate::checksum::chunk_checksum;
use crate::health::Health;
use crate::older::Inconsistency;
use crate::plan::Piece;
use crate::planted::{Planted, planted};
use crate::restart::{AssembleError, RecoveryReport, flush_all, write_or_fail};
use crate::scheme::{InPlaceProgress, Scheme};
use crate::store::Store;
use block::{ChunkAddr, ChunkIndex, DevIndex, DeviceSet, Seq, StripeId};
use format::{ArrayUuid, Frame, LogMember, Record, RecordRef};
use std::collections::HashMap;

/// Where replay ended.
pub(super) struct Replayed {
    /// The last sequence number ever seen.
    pub last_seq: Seq,
    /// Where each main device's allocation continues.
    pub frontiers: Vec<u32>,
}

struct Replay<'a> {
    devices: &'a mut dyn DeviceSet,
    health: &'a mut Health,
    store: &'a mut Store,
    report: &'a mut RecoveryReport,
    frontiers: Vec<u32>,
    /// The last record that writes to a stripe in place.
    in_place: HashMap<StripeId, Seq>,
}

/// Replays the records behind the checkpoint as far as they go without a gap.
pub(super) fn replay(
    devices: &mut dyn DeviceSet,
    health: &mut Health,
    array: ArrayUuid,
    store: &mut Store,
    scheme: &mut dyn Scheme,
    (loaded, found, flushed): (&Loaded, Found, Seq),
    report: &mut RecoveryReport,
) -> Result<Replayed, AssembleError> {
    let frontiers = vec![1; store.main_count()];
    let in_place = HashMap::new();
    let mut replay = Replay { devices, health, store, report, frontiers, in_place };
    let Found { frames, mut copies, last_seq, .. } = found;
    frames.values().for_each(|frame| replay.note_in_place(frame));
    let source = Source { array, nonce: loaded.nonce, flushed };
    copies.secure(replay.devices, replay.health, replay.store, &frames, source);
    let mut next = loaded.through.next();
    'frames: for frame in frames.values() {
        for (seq, record) in (frame.first_seq.get()..).map(Seq::new).zip(&frame.records) {
            if seq < next {
                continue;
            }
            if seq > next {
                break 'frames;
            }
            next = seq.next();
            replay.one(scheme, seq, record, seq <= flushed)?;
        }
    }
    // What lies behind a gap, its frame on no member, is known durable only up to `flushed`: then the operator was asked.
    replay.report.dropped += (last_seq.get() + 1).saturating_sub(next.get().max(flushed.get() + 1));
    flush_all(replay.devices, replay.health);
    Ok(Replayed { last_seq: last_seq.max(flushed), frontiers: replay.frontiers })
}

impl Replay<'_> {
    /// Applies a record, or drops it if it is not known durable and did not arrive whole.
    fn one(
        &mut self,
        scheme: &mut dyn Scheme,
        seq: Seq,
        record: &Record,
        durable: bool,
    ) -> Result<(), AssembleError> {
        self.report.replayed += 1;
        let sane = self.takes_free_chunks(record.as_ref());
        let whole = sane
            && (durable || planted(Planted::ApplyUnverified) || {
                self.report.verified += 1;
                scheme.accepts(self.store, record.as_ref()) && self.arrived(scheme, seq, record.as_ref())
            });
        let applied = whole && scheme.apply(self.store, seq, record.as_ref()).is_ok();
        self.settle_space(record.as_ref(), applied);
        if applied {
            self.note_frontier(record.as_ref());
        } else if durable {
            return Err(Inconsistency::Record(seq).into());
        } else {
            self.report.dropped += 1;
        }
        Ok(())
    }

    fn note_in_place(&mut self, frame: &Frame) {
        for (seq, record) in (frame.first_seq.get()..).map(Seq::new).zip(&frame.records) {
            if let Record::InPlace { stripe, .. } | Record::Delta { stripe, .. } = record {
                let last = self.in_place.entry(*stripe).or_insert(seq);
                *last = seq.max(*last);
            }
        }
    }

    /// The chunks that a record of an out-of-place scheme writes to.
    fn new_chunks(&self, record: RecordRef<'_>) -> Vec<ChunkAddr> {
        let layout = &self.store.layout;
        let k = self.store.config.geometry.data_count();
        let at = |stripe, column, &chunk: &ChunkIndex| ChunkAddr::new(layout.device(stripe, column), chunk);
        let mut chunks: Vec<ChunkAddr> = match record {
            RecordRef::LogStripe { members, .. } => {
                members.iter().map(|m| ChunkAddr::new(layout.device_of(m.lcn), m.chunk)).collect()
            }
            RecordRef::FullStripe { stripe, chunks, .. } => chunks
                .iter()
                .take(self.store.main_count())
                .enumerate()
                .map(|(i, c)| at(stripe, i, c))
                .collect(),
            RecordRef::Commit { stripe, parity, .. } => {
                let rows = parity.iter().take(self.store.main_count() - k).enumerate();
                rows.map(|(row, c)| at(stripe, k + row, c)).collect()
            }
            // A short stripe, too, takes the row on every device.
            RecordRef::Elastic { row, .. } => (0..self.store.main_count() as u16)
                .map(|dev| ChunkAddr::new(DevIndex::new(dev), ChunkIndex::new(row.saturating_add(1))))
                .collect(),
            RecordRef::Zero { .. } | RecordRef::InPlace { .. } | RecordRef::Delta { .. } => Vec::new(),
        };
        chunks.retain(|addr| !addr.chunk.is_none());
        chunks
    }

    /// Whether a record writes to free chunks only, each once: all others are forged or damaged.
    fn takes_free_chunks(&self, record: RecordRef<'_>) -> bool {
        let chunks = self.new_chunks(record);
        let free = |addr: &ChunkAddr| {
            let space = &self.store.spaces[addr.dev.index()];
            addr.chunk.get() <= space.chunk_count() && !space.is_used(addr.chunk)
        };
        chunks.iter().enumerate().all(|(i, addr)| free(addr) && !chunks[..i].contains(addr))
    }

    /// Keeps the space as it was live: what an applied record took is used, what it freed may be taken by a later one.
    fn settle_space(&mut self, record: RecordRef<'_>, applied: bool) {
        if applied {
            for addr in self.new_chunks(record) {
                self.store.spaces[addr.dev.index()].claim(addr.chunk);
            }
            for run in std::mem::take(&mut self.store.freed) {
                let space = &mut self.store.spaces[run.first.dev.index()];
                for chunk in (run.first.chunk.get()..run.end().get()).map(ChunkIndex::new) {
                    if space.is_used(chunk) {
                        space.release(chunk);
                    }
                }
            }
        }
        self.store.freed.clear();
    }

    fn note_frontier(&mut self, record: RecordRef<'_>) {
        if let RecordRef::LogStripe { members, .. } = record {
            for LogMember { lcn, chunk, .. } in members {
                self.frontiers[self.store.layout.device_of(*lcn).index()] = chunk.get() + 1;
            }
        }
    }

    /// Whether what a record speaks of is all there, or can be made whole from the rest, which is then done.
    fn arrived(&mut self, scheme: &mut dyn Scheme, seq: Seq, record: RecordRef<'_>) -> bool {
        let width = self.store.code.width_max();
        let k = self.store.config.geometry.data_count();
        let mut pieces: Vec<Piece> = Vec::new();
        match record {
            RecordRef::LogStripe { log_block, log_crcs, members } => {
                pieces.extend(members.iter().enumerate().map(|(index, member)| {
                    let addr = ChunkAddr::new(self.store.layout.device_of(member.lcn), member.chunk);
                    Piece { index, addr, crc: member.crc }
                }));
                pieces.extend(log_crcs.iter().enumerate().map(|(row, &crc)| {
                    let addr = ChunkAddr::new(self.store.log_device(row), log_block);
                    Piece { index: width + row, addr, crc }
                }));
                self.make_whole(&pieces, members.len())
            }
            RecordRef::FullStripe { stripe, chunks, crcs } => {
                pieces.extend(chunks.iter().zip(crcs).enumerate().map(|(column, (&chunk, &crc))| {
                    let addr = ChunkAddr::new(self.store.layout.device(stripe, column), chunk);
                    Piece { index: if column < k { column } else { width + column - k }, addr, crc }
                }));
                self.make_whole(&pieces, k)
            }
            RecordRef::Commit { stripe, parity, parity_crcs, .. } => {
                let mut buffer = self.buffer();
                parity.iter().zip(parity_crcs).enumerate().all(|(row, (&chunk, &crc))| {
                    let addr = ChunkAddr::new(self.store.layout.device(stripe, k + row), chunk);
                    chunk.is_none() || !self.health.is_readable(addr) || self.read(addr, crc, &mut buffer)
                })
            }
            RecordRef::Elastic { row, members, crcs, .. } => {
                let stripe = StripeId::new(row.into());
                pieces.extend(crcs.iter().enumerate().map(|(i, &crc)| {
                    let parity = i.checked_sub(members.len());
                    let (column, index) = parity.map_or((i, i), |parity| (k + parity, width + parity));
                    let addr =
                        ChunkAddr::new(self.store.layout.device(stripe, column), ChunkIndex::new(row + 1));
                    Piece { index, addr, crc }
                }));
                self.make_whole(&pieces, members.len())
            }
            RecordRef::Zero { .. } => true,
            RecordRef::InPlace { stripe, .. } | RecordRef::Delta { stripe, .. } => {
                let later = self.in_place.get(&stripe).is_some_and(|&last| last > seq);
                let progress = if later { InPlaceProgress::Ended } else { InPlaceProgress::Unknown };
                scheme.redo(self.store, self.devices, self.health, record, progress, &mut self.report.healed)
            }
        }
    }

    fn buffer(&self) -> Vec<u8> {
        vec![0; self.store.config.geometry.chunk_bytes()]
    }

    fn read(&mut self, addr: ChunkAddr, crc: u32, into: &mut [u8]) -> bool {
        let offset = self.store.offset_of(addr);
        self.devices.read_now(addr.dev, offset, into).is_ok() && chunk_checksum(into) == crc
    }

    /// Reads a code word; rebuilds and rewrites what did not arrive, if enough did.
    fn make_whole(&mut self, pieces: &[Piece], data_count: usize) -> bool {
        let len = self.store.config.geometry.chunk_bytes();
        let mut region = vec![0u8; len * pieces.len()];
        let mut present = Vec::new();
        let mut wanted = Vec::new();
        for (i, piece) in pieces.iter().enumerate() {
            let there = self.health.is_readable(piece.addr)
                && self.read(piece.addr, piece.crc, &mut region[i * len..(i + 1) * len]);
            if there { present.push((piece.index, i * len)) } else { wanted.push((piece.index, i * len)) }
        }
        if wanted.is_empty() {
            return true;
        }
        let columns: Vec<usize> = pieces[..data_count].iter().map(|piece| piece.index).collect();
        if present.len() < data_count
            || self.store.code.rebuild_in(&mut region, len, &columns, &present, &wanted).is_err()
        {
            return false;
        }
        let rebuilt =
            |index: usize| pieces.iter().position(|p| p.index == index).expect("wanted pieces are listed");
        let good = wanted
            .iter()
            .all(|&(index, at)| chunk_checksum(&region[at..at + len]) == pieces[rebuilt(index)].crc);
        if good {
            for &(index, at) in &wanted {
                let addr = pieces[rebuilt(index)].addr;
                if self.health.is_writable(addr.dev) {
                    let offset = self.store.offset_of(addr);
                    write_or_fail(self.devices, self.health, addr.dev, offset, &region[at..at + len]);
                    self.report.healed += 1;
                }
            }
        }
        good
    }
}
