//! Creating a store, and opening one: which segments there are, which records count, and what is missing.
//!
//! Of every slot the newest table says whether a segment must be in it. A closed segment is known by its
//! summary; any other is walked through (`walk.rs`), closed, and given one. Whatever must be there and is not
//! makes a *void*: then records from before it are in doubt, and refused as damaged until they are written
//! anew, or the loss is accepted.

use super::compact::Compaction;
use super::cycle::Cycles;
use super::find::{class_of, payload};
use super::options::Options;
use super::outlived::Outlived;
use super::reading::{READS_AT_A_TIME, read_all};
use super::walk::{Walk, Wanted, walk};
use super::{Course, Marks, Store, Traffic, Work};
use crate::ask::Figures;
use crate::blocks::{BLOCK_BYTES, Buffer, Fault, Issued, Medium, Request};
use crate::cuckoo::Cuckoo;
use crate::hash::{KeyHash, Secret};
use crate::kept::Kept;
use crate::known::Known;
use crate::layout::{
    Batch, Durable, Entry, Footer, Geometry, HEADER_PLACES, Header, Kind, Malformed, Table, VolumeShape,
    summary_bytes, table_bytes,
};
use crate::locks::{ByHash, Locks};
use crate::log::{Log, Next};
use crate::numbers::{narrow, small, wide};
use crate::planted::{Planted, planted};
use crate::slots::{Slots, Use};
use block::Durability;
use block::slab::Slab;
use std::collections::{HashSet, VecDeque};
use std::fmt;
use std::sync::Arc;

/// What is read of a summary at first.
const SUMMARY_AT_FIRST_BYTES: u64 = 64 << 10;

/// What a new store is given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Create {
    /// Volume and segments.
    pub shape: VolumeShape,
    /// Who it is.
    pub uuid: [u8; 16],
    /// A secret drawn at random, with which keys are hashed.
    pub secret: Secret,
}

/// Why a store cannot be created or opened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum OpenError {
    /// The volume cannot be cut up so.
    Shape(Malformed),
    /// The volume is too small for a store.
    TooSmall {
        /// Its size.
        found_bytes: u64,
        /// What it must have at least.
        expected_bytes: u64,
    },
    /// No copy of the header is good; why the first is not.
    Header(Malformed),
    /// The volume is smaller than it was.
    Shrunk {
        /// Its size.
        found_bytes: u64,
        /// What the store uses of it.
        expected_bytes: u64,
    },
    /// No table of segments can be read that is as new as it must be.
    Table {
        /// The newest there is; 0: none.
        found_epoch: u64,
        /// The one that was in use.
        expected_epoch: u64,
    },
    /// The volume cannot be read or written.
    Volume(Fault),
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shape(error) => write!(f, "The volume cannot hold a store: {error}."),
            Self::TooSmall { found_bytes, expected_bytes } => {
                write!(f, "The volume has {found_bytes} bytes; a store needs at least {expected_bytes}.")
            }
            Self::Header(error) => write!(f, "There is no store on the volume: of its header {error}."),
            Self::Shrunk { found_bytes, expected_bytes } => {
                write!(f, "The volume has {found_bytes} bytes; the store uses {expected_bytes}.")
            }
            Self::Table { found_epoch, expected_epoch } => write!(
                f,
                "The table of segments number {expected_epoch} cannot be read; the newest good one is {found_epoch}."
            ),
            Self::Volume(fault) => write!(f, "The volume failed while the store was opened: {fault:?}."),
        }
    }
}

impl std::error::Error for OpenError {}

fn write(offset_bytes: u64, bytes: &[u8]) -> Issued {
    let buffer = Arc::new(Buffer::of(bytes));
    Issued { tag: 0, request: Request::Write { offset_bytes, buffer, durability: Durability::Volatile } }
}

/// Carries out writes, or a flush, one after the other ones have ended.
fn all(medium: &mut dyn Medium, requests: Vec<Request>) -> Result<(), OpenError> {
    let issued = requests.into_iter().enumerate().map(|(tag, request)| Issued { tag: wide(tag), request });
    for ended in medium.carry(issued.collect()) {
        ended.result.map_err(OpenError::Volume)?;
    }
    Ok(())
}

fn table_writes(header: &Header, table: &Table) -> Vec<Request> {
    let bytes = table.encode(header.owner());
    let mut writes = Vec::new();
    for copy in 0..2 {
        let mut place = header.geometry.table_place(table.epoch, copy);
        for piece in bytes.chunks(crate::ask::PART_BYTES_MAX) {
            writes.push(write(place, piece).request);
            place += wide(piece.len());
        }
    }
    writes
}

/// Zeros in the place of a table.
fn blank_table(geometry: &Geometry, epoch: u64) -> Vec<Request> {
    let blank = vec![0; narrow(table_bytes(geometry.slot_count))];
    (0..2).map(|copy| write(geometry.table_place(epoch, copy), &blank).request).collect()
}

/// Writes an empty store; what was on the volume is lost.
pub fn create(medium: &mut dyn Medium, create: &Create) -> Result<(), OpenError> {
    let geometry = Geometry::new(create.shape).map_err(|error| {
        if !matches!(error, Malformed::Range { field: "number of segments", .. }) {
            return OpenError::Shape(error);
        }
        let expected_bytes = Geometry::least_bytes(create.shape);
        OpenError::TooSmall { found_bytes: create.shape.volume_bytes, expected_bytes }
    })?;
    let header = Header { uuid: create.uuid, secret: create.secret, geometry };
    all(medium, [0, 1].into_iter().flat_map(|epoch| blank_table(&geometry, epoch)).collect())?;
    // What an earlier use of the volume left behind need not be looked at, if the volume forgets it.
    let segments = Request::Discard {
        offset_bytes: geometry.first_slot,
        length_bytes: geometry.slot_count * geometry.segment_bytes,
    };
    medium.carry(vec![Issued { tag: 0, request: segments }]);
    let table = Table {
        epoch: 1,
        durable: Durable { sequences: 1, epoch: 1, ..Durable::default() },
        next_sequence: 1,
        next_record: 1,
        next_value: 1,
        slots: vec![0; geometry.slots()],
        ..Table::default()
    };
    all(medium, table_writes(&header, &table))?;
    all(medium, vec![Request::Flush])?;
    write_header(medium, &header, &geometry.header_places())
}

/// Writes copies of the header, which are durable then.
fn write_header(medium: &mut dyn Medium, header: &Header, places: &[u64]) -> Result<(), OpenError> {
    all(medium, places.iter().map(|place| write(*place, &header.encode()).request).collect())?;
    all(medium, vec![Request::Flush])
}

/// Reads the header. Of several that of the store as it has grown counts.
///
/// The copy at the end is not believed alone if what is read in front has nothing of a store: then the volume
/// has been given to something else, which left its end alone.
fn read_header(medium: &mut dyn Medium, volume_bytes: u64) -> Result<Header, OpenError> {
    let block = wide(BLOCK_BYTES);
    let mut places: Vec<(u64, u64)> = HEADER_PLACES.iter().map(|place| (*place, block)).collect();
    places.retain(|(place, _)| place + block <= volume_bytes);
    let front_count = places.len();
    places.extend((volume_bytes / block).checked_sub(1).map(|last| (last * block, block)));
    let found = read_all(medium, &places);
    let decoded: Vec<_> = found.iter().map(|found| found.as_deref().map(Header::decode)).collect();
    let is_elsewhere =
        decoded[..front_count].iter().all(|front| matches!(front, Some(Err(Malformed::Magic))));
    let believed = if is_elsewhere && !planted(Planted::EndBelieved) { front_count } else { decoded.len() };
    let good = decoded[..believed].iter().flatten().flatten();
    match good.max_by_key(|header| header.geometry.growths) {
        Some(header) if header.geometry.volume_bytes > volume_bytes => {
            let expected_bytes = header.geometry.volume_bytes;
            Err(OpenError::Shrunk { found_bytes: volume_bytes, expected_bytes })
        }
        Some(header) => Ok(header.clone()),
        None if decoded.iter().any(Option::is_none) => Err(OpenError::Volume(Fault::Io)),
        None => {
            let first = decoded.into_iter().flatten().find_map(Result::err);
            Err(OpenError::Header(first.unwrap_or(Malformed::Magic)))
        }
    }
}

/// Writes the header where another one is, so that no copy leads back to how the store was before it grew,
/// and where none is. Only the former must succeed.
fn complete_header(medium: &mut dyn Medium, header: &Header) -> Result<(), OpenError> {
    let places = header.geometry.header_places();
    let found = read_all(medium, &places.map(|place| (place, wide(BLOCK_BYTES))));
    let (mut others, mut missing) = (Vec::new(), Vec::new());
    for (place, found) in places.into_iter().zip(&found) {
        match found.as_deref().map(Header::decode) {
            Some(Ok(there)) if there == *header => {}
            Some(Ok(_)) => others.push(place),
            Some(Err(_)) | None => missing.push(place),
        }
    }
    if !others.is_empty() {
        write_header(medium, header, &others)?;
    }
    if !missing.is_empty() {
        let _ = write_header(medium, header, &missing);
    }
    Ok(())
}

/// Says on the volume that the store has grown; its new table is given.
///
/// Nothing that was used is overwritten: the table is behind the old end, and is durable before the first
/// header names it; and before a segment is begun where the old tables were all headers do.
fn write_growth(medium: &mut dyn Medium, header: &Header, table: &Table) -> Result<(), OpenError> {
    let [first, second, last] = header.geometry.header_places();
    if planted(Planted::GrowsBeforeTable) {
        write_header(medium, header, &[first, last])?;
    }
    let mut writes = blank_table(&header.geometry, table.epoch + 1);
    writes.extend(table_writes(header, table));
    all(medium, writes)?;
    all(medium, vec![Request::Flush])?;
    write_header(medium, header, &[first, last])?;
    write_header(medium, header, &[second])
}

fn read_table(medium: &mut dyn Medium, header: &Header) -> (Option<Table>, bool) {
    let geometry = &header.geometry;
    let size = table_bytes(geometry.slot_count);
    let mut places = Vec::new();
    for epoch in 0..2 {
        for copy in 0..2 {
            let place = geometry.table_place(epoch, copy);
            let pieces = (0..size).step_by(crate::ask::PART_BYTES_MAX);
            places
                .push(pieces.map(move |at| (place + at, (size - at).min(wide(crate::ask::PART_BYTES_MAX)))));
        }
    }
    let (mut newest, mut is_unreadable) = (None::<Table>, false);
    for pieces in places {
        let found: Option<Vec<Buffer>> = read_all(medium, &pieces.collect::<Vec<_>>()).into_iter().collect();
        let Some(bytes) =
            found.map(|pieces| pieces.iter().flat_map(|piece| piece.iter().copied()).collect::<Vec<u8>>())
        else {
            is_unreadable = true;
            continue;
        };
        if let Ok(table) = Table::decode(&bytes, header.owner(), geometry.slot_count)
            && newest.as_ref().is_none_or(|newest| table.epoch > newest.epoch)
        {
            newest = Some(table);
        }
    }
    (newest, is_unreadable)
}

/// A segment that is there.
struct Segment {
    slot: usize,
    sequence: u64,
    entries: Vec<Entry>,
    closed: bool,
}

/// The newest record of a key.
#[derive(Clone, Copy)]
struct Newest {
    seq: u64,
    address: u64,
    taken_bytes: u64,
    kind: Kind,
    /// The value that a manifest owns.
    owns: u64,
}

/// What was found on the volume.
struct Found {
    header: Header,
    table: Table,
    segments: Vec<Segment>,
    lost: Vec<(usize, u64)>,
    durable: Durable,
    highest_batch: u64,
    highest_record: u64,
    highest_sequence: u64,
    void: bool,
}

/// Whether a volume that begins with this block holds a store, intact or not.
pub fn is_store(first_block: &[u8]) -> bool {
    Header::begins(first_block)
}

/// Opens the store on a volume. If the volume has become larger, so does the store.
pub fn open(medium: &mut dyn Medium, volume_bytes: u64, options: Options) -> Result<Store, OpenError> {
    let header = read_header(medium, volume_bytes)?;
    let (table, is_unreadable) = read_table(medium, &header);
    // What cannot be read now may be there still.
    let no_table = |error| {
        let may_be_there = is_unreadable && matches!(error, OpenError::Table { .. });
        if may_be_there { OpenError::Volume(Fault::Io) } else { error }
    };
    let Some(table) = table else {
        return Err(no_table(OpenError::Table { found_epoch: 0, expected_epoch: 1 }));
    };
    let mut found = Found {
        highest_batch: table.durable.number,
        highest_record: table.next_record,
        highest_sequence: table.next_sequence,
        durable: table.durable,
        header,
        table,
        segments: Vec::new(),
        lost: Vec::new(),
        void: false,
    };
    let walks = find_segments(medium, &mut found);
    judge(&mut found, walks).map_err(no_table)?;
    // Nothing was written so far: what cannot be opened stays as it is.
    complete_header(medium, &found.header)?;
    close_walked(medium, &found)?;
    let before = found.header.geometry;
    let grown = before.grown(volume_bytes);
    found.grow(grown.unwrap_or(before));
    let mut store = build(found, options);
    all(medium, vec![Request::Flush])?;
    // What was found and what is free is now said by a table, before anything new is written.
    let table = store.table(store.marks.epoch);
    if let Some(grown) = grown {
        write_growth(medium, &store.header, &table)?;
        store.gained_bytes = grown.volume_bytes - before.volume_bytes;
    } else {
        all(medium, table_writes(&store.header, &table))?;
        all(medium, vec![Request::Flush])?;
    }
    Ok(store)
}

impl Found {
    /// The same in a store that has more slots, which are free.
    fn grow(&mut self, geometry: Geometry) {
        self.header.geometry = geometry;
        self.table.slots.resize(geometry.slots(), 0);
    }
}

/// Finds what is in each slot: segments with summaries, and walks through all others.
fn find_segments(medium: &mut dyn Medium, found: &mut Found) -> Vec<Walk> {
    let geometry = found.header.geometry;
    let (owner, size) = (found.header.owner(), geometry.segment_bytes);
    let mut unknown = Vec::new();
    let first_bytes = SUMMARY_AT_FIRST_BYTES.min(size / 4);
    let slots: Vec<usize> = (0..geometry.slots()).collect();
    for some in slots.chunks(READS_AT_A_TIME) {
        let end = |slot: usize| geometry.slot_start(slot) + size;
        let places: Vec<(u64, u64)> = some
            .iter()
            .map(|&slot| match found.table.slots[slot] {
                // Where a segment may or may not be, its last block says.
                0 => (end(slot) - wide(BLOCK_BYTES), wide(BLOCK_BYTES)),
                _ => (end(slot) - first_bytes, first_bytes),
            })
            .collect();
        let ends = read_all(medium, &places);
        for (&slot, bytes) in some.iter().zip(ends) {
            let named = found.table.slots[slot];
            let wanted = if named > 0 { Wanted::Is(named) } else { Wanted::From(found.table.next_sequence) };
            let start = geometry.slot_start(slot);
            let footer = bytes.as_deref().and_then(|bytes| Footer::decode(bytes, owner, start, size).ok());
            let footer = footer.filter(|footer| wanted.fits(footer.sequence));
            let entries =
                footer.and_then(|footer| read_entries(medium, &geometry, slot, footer, bytes.as_deref()));
            if let (Some(footer), Some(entries)) = (footer, entries) {
                let sequence = footer.sequence;
                found.segments.push(Segment { slot, sequence, entries, closed: true });
                continue;
            }
            unknown.push((slot, wanted));
        }
    }
    let starts: Vec<(u64, u64)> =
        unknown.iter().map(|(slot, _)| (geometry.slot_start(*slot), wide(BLOCK_BYTES))).collect();
    let mut walks = Vec::new();
    for ((slot, wanted), first) in unknown.into_iter().zip(read_all(medium, &starts)) {
        if !is_left_over(first.as_deref(), &found.header, slot, wanted) {
            walks.push(walk(medium, &found.header, slot, wanted));
        }
    }
    walks
}

/// Whether the first block of a free slot says that nothing new is in it: it has never been written, or is of
/// a segment from before the table, or of another store. A segment that is durable in part has its first
/// block.
fn is_left_over(first: Option<&[u8]>, header: &Header, slot: usize, wanted: Wanted) -> bool {
    let (Some(bytes), Wanted::From(_)) = (first, wanted) else { return false };
    let start = header.geometry.slot_start(slot);
    match Batch::decode(bytes, header.owner(), start, header.geometry.segment_bytes) {
        Ok(batch) => !wanted.fits(batch.sequence),
        Err(Malformed::Elsewhere) => true,
        Err(Malformed::Magic) => bytes.iter().all(|byte| *byte == 0),
        Err(Malformed::Checksum | Malformed::Version { .. } | Malformed::Range { .. }) => false,
    }
}

fn read_entries(
    medium: &mut dyn Medium,
    geometry: &Geometry,
    slot: usize,
    footer: Footer,
    bytes: Option<&[u8]>,
) -> Option<Vec<Entry>> {
    let (size, taken) = (geometry.segment_bytes, footer.taken_bytes());
    if let Some(bytes) = bytes.filter(|bytes| wide(bytes.len()) >= taken) {
        return footer.entries(bytes, size).ok();
    }
    let place = (geometry.slot_start(slot) + size - taken, taken);
    let bytes = read_all(medium, &[place]).pop()??;
    footer.entries(&bytes, size).ok()
}

/// Decides of each walk whether what must be there was found.
fn judge(found: &mut Found, walks: Vec<Walk>) -> Result<(), OpenError> {
    // What was durable is said by many; all of it is true, so the most of it holds.
    for walk in &walks {
        let (most, said) = (&mut found.durable, &walk.durable);
        most.number = most.number.max(said.number);
        most.sequences = most.sequences.max(said.sequences);
        most.epoch = most.epoch.max(said.epoch);
        for (most, said) in most.reached.iter_mut().zip(said.reached) {
            *most = said.max(*most);
        }
        found.highest_batch = found.highest_batch.max(walk.highest_batch);
        found.highest_record = found.highest_record.max(walk.record_limit);
    }
    if found.durable.epoch > found.table.epoch {
        return Err(OpenError::Table { found_epoch: found.table.epoch, expected_epoch: found.durable.epoch });
    }
    for walk in walks {
        let named = found.table.slots[walk.slot];
        let Some(sequence) = walk.sequence else {
            if named > 0 {
                found.void = true;
                found.lost.push((walk.slot, named));
            }
            continue;
        };
        // A table names a segment that was open then as reached; the others in it were closed, whatever older
        // batches say.
        let open = named == 0 || found.table.durable.reached.iter().any(|(at, _)| *at == sequence);
        let reached = found.durable.reached.iter().find(|(at, _)| open && *at == sequence);
        let whole = walk.saw_last && walk.whole_blocks == walk.end_blocks;
        let complete = match reached {
            Some((_, blocks)) => whole || walk.whole_blocks >= *blocks,
            None => whole || sequence >= found.durable.sequences,
        };
        found.void |= !complete;
        found.segments.push(Segment { slot: walk.slot, sequence, entries: walk.entries, closed: false });
    }
    // Segments that have begun since the table have consecutive sequences, and those that were durable must
    // be there.
    let first = found.table.next_sequence;
    let begun = found.durable.sequences.saturating_sub(first);
    let mut there: Vec<u64> = found.segments.iter().map(|segment| segment.sequence).collect();
    there.retain(|sequence| (first..found.durable.sequences).contains(sequence));
    there.sort_unstable();
    there.dedup();
    found.void |= wide(there.len()) < begun;
    for segment in &found.segments {
        found.highest_sequence = found.highest_sequence.max(segment.sequence + 1);
        let highest = segment.entries.iter().map(|entry| entry.seq + 1).max().unwrap_or(0);
        found.highest_record = found.highest_record.max(highest);
    }
    found.highest_sequence = found.highest_sequence.max(found.durable.sequences);
    Ok(())
}

/// Gives every segment that was walked through its summary, so that nothing is appended to it and its gaps
/// are known.
fn close_walked(medium: &mut dyn Medium, found: &Found) -> Result<(), OpenError> {
    let geometry = &found.header.geometry;
    let mut writes = Vec::new();
    for segment in found.segments.iter().filter(|segment| !segment.closed) {
        let start = geometry.slot_start(segment.slot);
        let blocks = Footer::encode(found.header.owner(), segment.sequence, start, &segment.entries);
        let place = start + geometry.segment_bytes - summary_bytes(segment.entries.len());
        writes.push(write(place, &blocks).request);
    }
    all(medium, writes)
}

/// Parts of the hashes that are looked at one after the other, so that what is looked at fits the processor's
/// cache.
const PARTITIONS: usize = 256;
/// Parts of which the records are gathered at a time: more would take more memory, fewer more walks over all
/// lines.
const PARTITIONS_AT_A_TIME: usize = 16;

/// The records of keys in some parts by the first bits of their hashes, with the value that a manifest owns.
fn records_of(found: &Found, floor: u64, first: usize) -> Vec<Vec<(KeyHash, Newest)>> {
    let mut parts: Vec<Vec<(KeyHash, Newest)>> = Vec::new();
    parts.resize_with(PARTITIONS_AT_A_TIME, Vec::new);
    for segment in &found.segments {
        let start = found.header.geometry.slot_start(segment.slot);
        for (at, entry) in segment.entries.iter().enumerate() {
            let part = narrow(entry.hash.main >> 56).wrapping_sub(first);
            let Some(kind) = entry.kind.filter(|_| part < PARTITIONS_AT_A_TIME) else { continue };
            if matches!(kind, Kind::Part | Kind::Clear) || entry.seq < floor {
                continue;
            }
            let next = segment.entries.get(at + 1).filter(|next| next.kind.is_none());
            let owns = next.map_or(0, |next| next.hash.main);
            let (address, taken_bytes) = (start + entry.offset_bytes(), entry.taken_bytes());
            parts[part].push((entry.hash, Newest { seq: entry.seq, address, taken_bytes, kind, owns }));
        }
    }
    parts
}

/// The newest record of each key.
fn newest_of(records: Vec<(KeyHash, Newest)>) -> ByHash<KeyHash, Newest> {
    let mut newest: ByHash<KeyHash, Newest> = ByHash::default();
    newest.reserve(records.len());
    for (hash, new) in records {
        let old = newest.entry(hash).or_insert(new);
        // Of two with one number both say the same, or one is the tombstone of a key whose time was up.
        let wins = (new.seq, new.kind == Kind::Tombstone) > (old.seq, old.kind == Kind::Tombstone);
        if wins || planted(Planted::LastFoundWins) {
            *old = new;
        }
    }
    newest
}

fn floor_of(found: &Found) -> u64 {
    if planted(Planted::ClearForgotten) {
        return 0;
    }
    let entries = found.segments.iter().flat_map(|segment| &segment.entries);
    let cleared = entries.filter(|entry| entry.kind == Some(Kind::Clear)).map(|entry| entry.seq);
    cleared.max().unwrap_or(0).max(found.table.floor)
}

/// The store of what was found.
fn build(found: Found, options: Options) -> Store {
    let geometry = found.header.geometry;
    let floor = floor_of(&found);
    let void = found.void && !options.accept_loss && !planted(Planted::VoidIgnored);
    let in_doubt = found.table.doubt_below.max(if void { found.highest_record } else { 0 });
    // Sequences that were given since and are lost must not come again: what they left would be taken for
    // theirs.
    let gap = geometry.slot_count + 1;
    let next = Next {
        batch: found.highest_batch + 1,
        record: found.highest_record,
        sequence: found.highest_sequence + gap,
    };
    let epoch = found.durable.epoch.max(found.table.epoch) + 1;
    let mut slots = Slots::new(&geometry);
    for segment in &found.segments {
        slots.found(segment.slot, Use::Closed, segment.sequence);
        slots.present_all(segment.slot, &segment.entries);
    }
    if !options.accept_loss {
        for (slot, sequence) in &found.lost {
            slots.found(*slot, Use::Lost, *sequence);
        }
    }
    slots.settle();
    let marks = Marks {
        floor,
        doubt_below: if options.accept_loss || in_doubt <= floor { 0 } else { in_doubt },
        epoch,
        next_value: found.table.next_value,
        ..Marks::default()
    };
    let mut store = Store {
        options,
        index: Cuckoo::new(),
        cache: Known::new(options.cache_keys),
        kept: Kept::new(options.kept_bytes),
        outlived: Outlived::default(),
        parts: ByHash::default(),
        slots,
        log: Log::new(geometry, found.header.owner(), next, epoch),
        work: Work {
            operations: Slab::default(),
            scans: Slab::default(),
            count: 0,
            locks: Locks::default(),
            ready: VecDeque::new(),
            loading_bytes: 0,
            awaits_turn: VecDeque::new(),
            stalled: VecDeque::new(),
            unpromised: VecDeque::new(),
            held_back: VecDeque::new(),
            forgotten: HashSet::new(),
            told: Vec::new(),
        },
        traffic: Traffic::new(),
        cycles: Cycles::new(),
        compaction: Compaction::new(),
        marks,
        course: Course::Running,
        figures: Figures::default(),
        header: found.header.clone(),
        gained_bytes: 0,
    };
    for first in (0..PARTITIONS).step_by(PARTITIONS_AT_A_TIME) {
        for records in records_of(&found, floor, first) {
            store.take_in(newest_of(records));
        }
    }
    store.take_in_parts(&found.segments);
    store
}

impl Store {
    /// Takes the newest record of each key into the index.
    fn take_in(&mut self, newest: ByHash<KeyHash, Newest>) {
        for (hash, newest) in newest {
            let class = class_of(newest.address, newest.taken_bytes);
            if self.index.insert(hash.main, payload(newest.address), class).is_err() {
                continue;
            }
            self.slots.lives(self.geometry().slot_of(newest.address), newest.kind, newest.taken_bytes);
            self.marks.key_count += u64::from(newest.kind != Kind::Tombstone);
            if newest.kind == Kind::Large {
                self.parts.insert(newest.owns, Vec::new());
            }
        }
    }

    /// Takes in the parts that manifests own.
    fn take_in_parts(&mut self, segments: &[Segment]) {
        let mut parts: ByHash<KeyHash, (u64, u64, u64)> = ByHash::default();
        for segment in segments {
            let start = self.geometry().slot_start(segment.slot);
            for entry in segment.entries.iter().filter(|entry| entry.kind == Some(Kind::Part)) {
                self.marks.next_value = self.marks.next_value.max(entry.hash.main.saturating_add(1));
                if self.parts.contains_key(&entry.hash.main) {
                    let new = (entry.seq, start + entry.offset_bytes(), entry.taken_bytes());
                    let old = parts.entry(entry.hash).or_insert(new);
                    *old = new.max(*old);
                }
            }
        }
        for (hash, (_, address, taken)) in parts {
            let Some(places) = self.parts.get_mut(&hash.main) else { continue };
            let at = small(hash.more);
            // A part of a value that is longer than any can be is none.
            if hash.more > 1 << 20 {
                continue;
            }
            if places.len() <= at {
                places.resize(at + 1, 0);
            }
            places[at] = address;
            self.slots.lives(self.geometry().slot_of(address), Kind::Part, taken);
        }
    }
}
