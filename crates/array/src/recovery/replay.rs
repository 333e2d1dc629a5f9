//! Replaying the journal: take its records in order, verify what is not known durable, apply.

use super::ahead::Ahead;
use super::load::Loaded;
use super::scan::Found;
use super::secure::Source;
use crate::checksum::chunk_checksum;
use crate::health::Health;
use crate::older::{Inconsistency, Misfit};
use crate::plan::Piece;
use crate::planted::{Planted, planted};
use crate::restart::{AssembleError, RecoveryReport, flush_all, write_or_fail};
use crate::saved::SavedPages;
use crate::scheme::{InPlaceProgress, RedoStep, Scheme};
use crate::space::Space;
use crate::store::{ChunkRun, Store};
use crate::table::later_max;
use crate::written::each_written;
use block::{ChunkAddr, DeviceSet, Lcn, Seq, StripeId};
use format::record::{CodeIndex, Evidence, Home, NewChunk};
use format::{ArrayUuid, Bond, Frame, RecordRef};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// Records whose pages are brought in together at most: enough to read side by side what they need.
const RECORDS_AT_ONCE: usize = 1024;

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
    saved: &'a SavedPages,
    /// What is replayed on.
    checkpoint: u64,
    frontiers: Vec<u32>,
    /// The last record that writes to a stripe in place.
    in_place: HashMap<StripeId, Seq>,
    ahead: Ahead,
    /// Chunks of which a version was dropped.
    dropped: HashSet<Lcn>,
}

/// A record, its number, and whether the next one belongs to it.
type Numbered<'a> = (Seq, RecordRef<'a>, Bond);

/// The records behind `through`, as far as they go without a gap.
fn records_behind(frames: &BTreeMap<Seq, Frame>, through: Seq) -> Vec<Numbered<'_>> {
    let (mut records, mut next) = (Vec::new(), through.next());
    for frame in frames.values() {
        for (seq, record, bond) in frame.numbered() {
            if seq > next {
                return records;
            }
            if seq == next {
                records.push((seq, record, bond));
                next = seq.next();
            }
        }
        if planted(Planted::BondsEndWithFrame)
            && let Some((_, _, bond)) = records.last_mut()
        {
            *bond = Bond::None;
        }
    }
    records
}

/// The records that the first one belongs to, or all if their end is missing.
fn first_bonded<'r, 'a>(records: &'r [Numbered<'a>]) -> &'r [Numbered<'a>] {
    let end = records.iter().position(|&(_, _, bond)| bond == Bond::None);
    &records[..end.map_or(records.len(), |last| last + 1)]
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
    let frontiers = store.spaces.iter().map(Space::frontier).collect();
    let (in_place, ahead, dropped) = (HashMap::new(), Ahead::new(store), HashSet::new());
    let (saved, checkpoint) = (&loaded.saved, loaded.place.number);
    let mut replay =
        Replay { devices, health, store, report, saved, checkpoint, frontiers, in_place, ahead, dropped };
    let Found { frames, mut copies, last_seq, .. } = found;
    frames.values().for_each(|frame| replay.note_in_place(frame));
    let source = Source { array, nonce: loaded.nonce, flushed };
    copies.secure(replay.devices, replay.health, replay.store, &frames, source);
    let records = records_behind(&frames, loaded.through);
    let durable = records.partition_point(|&(seq, ..)| seq <= flushed);
    let (durable, mut doubtful) = records.split_at(durable);
    replay.all(scheme, durable, true)?;
    while !doubtful.is_empty() {
        let (now, later) = doubtful.split_at(replay.read_ahead(doubtful));
        replay.all(scheme, now, false)?;
        doubtful = later;
    }
    // What lies behind a gap, its frame on no member, is known durable only up to `flushed`: then
    // the operator was asked.
    let next = records.last().map_or(loaded.through, |&(seq, ..)| seq).next();
    replay.report.dropped += (last_seq.get() + 1).saturating_sub(next.get().max(flushed.get() + 1));
    flush_all(replay.devices, replay.health);
    Ok(Replayed { last_seq: last_seq.max(flushed), frontiers: replay.frontiers })
}

/// The pages that replay will ask for first, of those that have to be read.
pub(super) fn pages_ahead(found: &Found, loaded: &Loaded, store: &Store) -> Vec<usize> {
    let (table, mut pages) = (&store.table, BTreeSet::new());
    let must_read = |page: &usize| table.is_absent(*page) && table.slots().state(*page).is_written();
    if table.is_paged() {
        for (_, record, _) in records_behind(&found.frames, loaded.through) {
            if pages.len() >= table.pages_ahead() {
                break;
            }
            pages.extend(pages_of(store, record).into_iter().filter(must_read));
        }
    }
    pages.into_iter().collect()
}

/// The pages that say what a record changes, and whether what it takes is free. What does not fit the array
/// at all is dropped unlooked at.
fn pages_of(store: &Store, record: RecordRef<'_>) -> Vec<usize> {
    let Store { table, config, .. } = store;
    if !record.fits(config) {
        return Vec::new();
    }
    let mut stripes = Vec::new();
    record.stripes(&config.geometry, |stripe| stripes.push(stripe));
    let mut pages = table.pages_of(stripes.into_iter());
    let of_space = taken_chunks(store, record).into_iter().map(|addr| table.space_page_of(addr));
    pages.extend(of_space.filter(|&page| page < table.page_count()));
    pages
}

/// Where a chunk of a record is.
fn address(store: &Store, NewChunk { home, chunk, .. }: NewChunk) -> ChunkAddr {
    let dev = match home {
        Home::OfChunk(lcn) => store.layout.device_of(lcn),
        Home::OfColumn(stripe, column) | Home::InTakenRow(stripe, column) => {
            store.layout.device(stripe, column)
        }
        Home::OfLog(row) => store.log_device(row),
    };
    ChunkAddr::new(dev, chunk)
}

/// The chunks of main devices that a record takes.
fn taken_chunks(store: &Store, record: RecordRef<'_>) -> Vec<ChunkAddr> {
    let mut chunks = Vec::new();
    record.new_chunks(&store.config.geometry, |new| match new.home {
        Home::OfLog(_) | Home::InTakenRow(..) => {}
        Home::OfChunk(_) | Home::OfColumn(..) => chunks.push(address(store, new)),
    });
    chunks.retain(|addr| !addr.chunk.is_none());
    chunks
}

/// Why a record does not fit: it writes to a chunk that is not free, or its scheme rejected it.
fn misfit(occupied: Option<ChunkAddr>) -> Misfit {
    occupied.map_or(Misfit::Rejected, Misfit::Occupied)
}

impl Replay<'_> {
    /// Applies records in order, or drops those that are not known durable and did not arrive whole; what
    /// belongs together is applied or dropped together.
    fn all(
        &mut self,
        scheme: &mut dyn Scheme,
        mut records: &[Numbered<'_>],
        durable: bool,
    ) -> Result<(), AssembleError> {
        if durable {
            return self.each(scheme, records, |this, scheme, record| this.one(scheme, record, true));
        }
        while !records.is_empty() {
            let single = records.iter().position(|&(_, _, bond)| bond == Bond::Next).unwrap_or(records.len());
            let (singles, rest) = records.split_at(single);
            self.each(scheme, singles, |this, scheme, record| this.one(scheme, record, false))?;
            let bonded = first_bonded(rest);
            if !bonded.is_empty() {
                self.bonded(scheme, bonded)?;
            }
            records = &rest[bonded.len()..];
        }
        Ok(())
    }

    /// Applies records that belong together if all of them are there and arrived, else none.
    fn bonded(&mut self, scheme: &mut dyn Scheme, records: &[Numbered<'_>]) -> Result<(), AssembleError> {
        let is_complete = records.last().is_some_and(|&(_, _, bond)| bond == Bond::None);
        let had_ended = records.iter().any(|&(seq, record, _)| self.has_ended(seq, record));
        let progress = if had_ended { InPlaceProgress::Ended } else { InPlaceProgress::Unknown };
        if planted(Planted::TakeHalfOfBonded) {
            return self.each(scheme, records, |this, scheme, record| this.one(scheme, record, false));
        }
        let look = if planted(Planted::RedoOneByOne) { RedoStep::All } else { RedoStep::Look };
        let mut whole = is_complete;
        self.each(scheme, records, |this, scheme, (_, record, _)| {
            this.report.verified += 1;
            whole = whole
                && this.occupied_chunk(record).is_none()
                && !this.builds_on_dropped(record)
                && scheme.accepts(this.store, record)
                && this.arrived(scheme, record, (progress, look));
            Ok(())
        })?;
        whole = whole && scheme.accepts_all(&mut records.iter().map(|&(_, record, _)| record));
        for step in [RedoStep::Copies, RedoStep::All] {
            self.each(scheme, records, |this, scheme, (_, record, _)| {
                let overwrites = record.evidence() == Evidence::Overwritten;
                whole = whole && (!overwrites || this.arrived(scheme, record, (progress, step)));
                Ok(())
            })?;
        }
        self.each(scheme, records, |this, scheme, (seq, record, _)| {
            this.report.replayed += 1;
            let applied = whole && this.occupied_chunk(record).is_none();
            let applied = applied && scheme.apply(this.store, seq, record).is_ok();
            this.settle(record, applied, false)
        })
    }

    /// Does something for each of some records in order, the pages of many of which are brought in together.
    fn each(
        &mut self,
        scheme: &mut dyn Scheme,
        mut records: &[Numbered<'_>],
        mut what: impl FnMut(&mut Self, &mut dyn Scheme, Numbered<'_>) -> Result<(), AssembleError>,
    ) -> Result<(), AssembleError> {
        while !records.is_empty() {
            let (pages, count) = self.pages_of_first(records);
            let (now, later) = records.split_at(count);
            self.saved.hold(self.devices, &mut self.store.table, &pages)?;
            let table = &self.store.table;
            let mut checked = pages.iter().map(|&page| scheme.check_page(table, page, table.page(page)));
            let checkpoint = self.checkpoint;
            let checked: Result<(), _> = checked.try_for_each(|page| page);
            checked.map_err(|cause| Inconsistency::State { checkpoint, cause })?;
            for &record in now {
                what(self, scheme, record)?;
            }
            SavedPages::let_go(&mut self.store.table, &pages);
            records = later;
        }
        Ok(())
    }

    /// The pages that say what the first of these records change, none twice; and how many records that are,
    /// at least one.
    fn pages_of_first(&self, records: &[Numbered<'_>]) -> (Vec<usize>, usize) {
        let table = &self.store.table;
        let mut pages = Vec::new();
        if !table.is_paged() {
            return (pages, records.len());
        }
        let mut count = 0;
        for &(_, record, _) in records.iter().take(RECORDS_AT_ONCE) {
            let mut its_pages = pages_of(self.store, record);
            if count > 0 && pages.len() + its_pages.len() > table.pages_at_once() {
                break;
            }
            pages.append(&mut its_pages);
            count += 1;
        }
        pages.sort_unstable();
        pages.dedup();
        (pages, count)
    }

    /// Applies a record, or drops it if it is not known durable and did not arrive whole. The pages of the
    /// table that it needs are in memory.
    fn one(
        &mut self,
        scheme: &mut dyn Scheme,
        (seq, record, _): Numbered<'_>,
        durable: bool,
    ) -> Result<(), AssembleError> {
        self.report.replayed += 1;
        let occupied = self.occupied_chunk(record);
        let whole = occupied.is_none()
            && (durable || planted(Planted::ApplyUnverified) || {
                self.report.verified += 1;
                let had_ended = self.has_ended(seq, record);
                let progress = if had_ended { InPlaceProgress::Ended } else { InPlaceProgress::Unknown };
                !self.builds_on_dropped(record)
                    && scheme.accepts(self.store, record)
                    && self.arrived(scheme, record, (progress, RedoStep::All))
            });
        let applied = whole && scheme.apply(self.store, seq, record).is_ok();
        self.settle(record, applied, durable)?;
        if !applied && durable {
            return Err(Inconsistency::Record { seq, kind: record.name(), cause: misfit(occupied) }.into());
        }
        Ok(())
    }

    /// A record was applied, or dropped.
    fn settle(&mut self, record: RecordRef<'_>, applied: bool, durable: bool) -> Result<(), AssembleError> {
        self.settle_space(record, applied)?;
        if applied {
            let Self { health, store, .. } = self;
            if health.is_any_away() {
                each_written(store, record, |addr| health.miss_in_replay(addr, durable));
            }
            self.note_frontier(record);
            return Ok(());
        }
        self.report.dropped += 1;
        let Self { store, dropped, .. } = self;
        if record.fits(&store.config) {
            record.written(&store.config.geometry, |lcn| {
                dropped.insert(lcn);
            });
        }
        Ok(())
    }

    /// Whether a record may have a part of what was dropped: who writes a chunk in part takes the rest from
    /// the version before. Nobody was told that it is durable, since that is so of no record behind one that
    /// is not.
    fn builds_on_dropped(&self, record: RecordRef<'_>) -> bool {
        let mut builds = false;
        if !self.dropped.is_empty() && record.fits(&self.store.config) {
            record.written(&self.store.config.geometry, |lcn| builds |= self.dropped.contains(&lcn));
        }
        builds && !planted(Planted::KeepWhatBuildsOnDropped)
    }

    /// Whether a later record writes to the same stripe in place: then this write had ended.
    fn has_ended(&self, seq: Seq, record: RecordRef<'_>) -> bool {
        let last = record.overwrites().and_then(|stripe| self.in_place.get(&stripe));
        last.is_some_and(|&last| last > seq)
    }

    /// Reads what will be asked of the first of these records; returns of how many, at least one, and none
    /// without what belongs to it.
    fn read_ahead(&mut self, records: &[Numbered<'_>]) -> usize {
        let (mut addrs, mut count) = (Vec::new(), 0);
        for &(_, record, _) in records {
            // What does not fit the array at all is dropped unlooked at.
            let evidence = if record.fits(&self.store.config) { record.evidence() } else { Evidence::Record };
            let looked_at = match evidence {
                Evidence::CodeWord | Evidence::EachChunk => self.pieces_of(record).0,
                Evidence::Record | Evidence::Overwritten => Vec::new(),
            };
            if count > 0 && addrs.len() + looked_at.len() > self.ahead.chunks_max() {
                break;
            }
            let readable = looked_at.iter().map(|piece| piece.addr).filter(|&addr| self.is_chunk(addr));
            addrs.extend(readable);
            count += 1;
        }
        self.ahead.read(self.devices, self.store, &addrs);
        count - 1 + first_bonded(&records[count - 1..]).len()
    }

    /// Whether an address that a record names is one, on a member that can be read.
    fn is_chunk(&self, addr: ChunkAddr) -> bool {
        let config = &self.store.config;
        let last = if self.store.is_log(addr.dev) {
            config.log_blocks.saturating_sub(self.store.chunk_blocks() - 1)
        } else {
            config.chunks_per_device
        };
        let is_member = addr.dev.index() < self.health.members().len();
        is_member && (1..=last).contains(&addr.chunk.get()) && self.health.is_readable(addr)
    }

    fn note_in_place(&mut self, frame: &Frame) {
        for (seq, record, _) in frame.numbered() {
            if let Some(stripe) = record.overwrites() {
                let last = self.in_place.entry(stripe).or_insert(seq);
                *last = seq.max(*last);
            }
        }
    }

    /// The first chunk that a record writes to although it is not free, or twice: such a record is forged or
    /// damaged.
    fn occupied_chunk(&self, record: RecordRef<'_>) -> Option<ChunkAddr> {
        let chunks = taken_chunks(self.store, record);
        let mut each = chunks.iter().enumerate();
        each.find(|(i, addr)| self.store.is_used(**addr) || chunks[..*i].contains(addr))
            .map(|(_, addr)| *addr)
    }

    /// Keeps the space as it was live: what an applied record took is used, what it freed may be
    /// taken by a later one.
    fn settle_space(&mut self, record: RecordRef<'_>, applied: bool) -> Result<(), AssembleError> {
        let mut freed = std::mem::take(&mut self.store.freed);
        if applied {
            for addr in taken_chunks(self.store, record) {
                self.store.claim(addr);
            }
            self.release(&freed)?;
        }
        freed.clear();
        self.store.freed = freed;
        Ok(())
    }

    /// Frees chunks. Bits whose pages are absent wait for them only as far as the list of the checkpoint that
    /// ends this start has room for them; else the pages are brought in.
    fn release(&mut self, freed: &[ChunkRun]) -> Result<(), AssembleError> {
        let Self { devices, store, saved, .. } = self;
        let count: u64 = freed.iter().map(|run| u64::from(run.count)).sum();
        let fits = store.table.later_count() + count <= later_max(&store.config);
        if fits || !store.table.is_paged() || !store.config.scheme.has_log_stripes() {
            freed.iter().for_each(|&run| store.release_used(run));
            return Ok(());
        }
        let mut pieces: Vec<(usize, ChunkRun)> =
            freed.iter().flat_map(|&run| store.by_space_page(run)).collect();
        pieces.sort_unstable_by_key(|&(page, run)| (page, run.first));
        for pieces in pieces.chunks(store.table.pages_at_once()) {
            let pages: Vec<usize> = pieces.iter().map(|&(page, _)| page).collect();
            saved.hold(*devices, &mut store.table, &pages)?;
            pieces.iter().for_each(|&(_, run)| store.release_used(run));
            SavedPages::let_go(&mut store.table, &pages);
        }
        Ok(())
    }

    /// Allocation continues behind the newest chunk that was placed wherever there was room.
    fn note_frontier(&mut self, record: RecordRef<'_>) {
        let Self { store, frontiers, .. } = self;
        record.new_chunks(&store.config.geometry, |new| {
            if let Home::OfChunk(lcn) = new.home {
                frontiers[store.layout.device_of(lcn).index()] = new.chunk.get() + 1;
            }
        });
    }

    /// Whether what a record speaks of is all there, or can be made whole from the rest, which is then done;
    /// writes in place are carried out as far as `how` says.
    fn arrived(
        &mut self,
        scheme: &mut dyn Scheme,
        record: RecordRef<'_>,
        how: (InPlaceProgress, RedoStep),
    ) -> bool {
        match record.evidence() {
            Evidence::Record => true,
            Evidence::CodeWord => {
                let (pieces, data_count) = self.pieces_of(record);
                self.make_whole(&pieces, data_count)
            }
            Evidence::EachChunk => {
                let (pieces, _) = self.pieces_of(record);
                let mut buffer = self.buffer();
                // What a rebuild is to go on with must be there as on any other member: nobody will write it.
                pieces.iter().all(|piece| {
                    let asked =
                        self.health.is_readable(piece.addr) || self.health.rebuilt(piece.addr.dev) > 0;
                    !asked || self.read(piece.addr, piece.crc, &mut buffer)
                })
            }
            Evidence::Overwritten => {
                self.ahead.forget_all();
                let (devices, health) = (&mut *self.devices, &mut *self.health);
                let healed = &mut self.report.healed;
                scheme
                    .in_place()
                    .is_some_and(|scheme| scheme.redo(self.store, devices, health, record, how, healed))
            }
        }
    }

    /// What a record has written, as a code word; and how many of the pieces are data.
    fn pieces_of(&self, record: RecordRef<'_>) -> (Vec<Piece>, usize) {
        let width = self.store.code.width_max();
        let (mut pieces, mut data_count) = (Vec::new(), 0);
        record.new_chunks(&self.store.config.geometry, |new| {
            let Some((index, crc)) = new.content else { return };
            let index = match index {
                CodeIndex::Data(index) => {
                    data_count += 1;
                    index
                }
                CodeIndex::Parity(row) => width + row,
            };
            pieces.push(Piece { index, addr: address(self.store, new), crc });
        });
        (pieces, data_count)
    }

    fn buffer(&self) -> Vec<u8> {
        vec![0; self.store.config.geometry.chunk_bytes()]
    }

    fn read(&mut self, addr: ChunkAddr, crc: u32, into: &mut [u8]) -> bool {
        if let Some(chunk) = self.ahead.chunk(addr) {
            into.copy_from_slice(chunk);
            return chunk_checksum(into) == crc;
        }
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
            || self
                .store
                .code
                .rebuild_in(&mut erasure::Region::new(&mut region, len), &columns, &present, &wanted)
                .is_err()
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
                    self.ahead.forget(addr);
                    self.report.healed += 1;
                }
            }
        }
        good
    }
}
