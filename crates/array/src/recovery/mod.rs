//! Assembly: from the members' bytes to a running engine.
//!
//! Newest checkpoint, then the journal's records in order. Before anything is written, `proof` makes sure
//! that nothing durable is missing. Records known durable (`flushed_through` of any frame) are applied as
//! they are; later ones are verified against the checksums they carry, healed if the code allows, and dropped
//! otherwise: nobody was told that they are durable. Recovery ends with a checkpoint of a new epoch, so
//! frames of the old one are never looked at again; a crash before that repeats the same recovery.

mod ahead;
mod chain;
mod grow;
mod load;
mod membership;
mod partial;
mod proof;
mod replay;
mod room;
mod scan;
mod secure;

pub(crate) use grow::{confirm_size, grow_to};
pub use membership::{Arrangement, arrange, arrange_any, last_served, went_on_apart};

use crate::away;
use crate::bounds::Bounds;
use crate::health::Health;
use crate::image::{BodyPage, CheckpointPlace, Image, Now, PatchRoom};
use crate::journal::Journal;
use crate::older::Inconsistency;
use crate::planted::{Planted, planted};
use crate::restart::{
    AssembleError, RecoveryReport, Restart, flush_all, too_many_faults, write_all_or_fail, write_or_fail,
};
use crate::saved::SavedPages;
use crate::scheme::{self, Scheme};
use crate::serial::before_those_of;
use crate::slots::PageArea;
use crate::store::Store;
use crate::table::Table;
use block::{DevIndex, DeviceSet, Epoch, META_BYTES, Pool, Seq, WriteNow};
use format::{BodyCrc, CheckpointNumbers, List, Superblock};
use std::cell::OnceCell;
use std::ops::Range;

/// Checkpoints that an assembly may have begun behind the last of which superblocks or headers tell.
const NUMBERS_SKIPPED: u64 = 4;
/// Updates of the superblocks that the assembly before may have begun behind the last that a working member
/// of it has: whatever changed while one round was written is in the next. Odd, as the copies of a member are
/// written in turn. A start skips so many twice: before it changes anything, and when it names its assembly.
const UPDATES_SKIPPED: u64 = (1 << 16) + 1;
/// Blocks of a checkpoint written at once.
const WRITE_BLOCKS: usize = 512;

/// What an engine is made of.
pub(crate) struct Parts {
    pub store: Store,
    pub scheme: Box<dyn Scheme>,
    pub health: Health,
    pub journal: Journal,
    pub checkpoint: CheckpointPlace,
    /// What superblocks say besides the members; its `config_seq` is the last update that every working
    /// member has.
    pub superblock: Superblock,
}

/// Makes the parts of an engine from the members, within these bounds of memory. `nonce` must be fresh and
/// hard to guess. `may_write` is asked before anything is written.
pub(crate) fn assemble(
    devices: &mut dyn DeviceSet,
    arrangement: &Arrangement,
    nonce: u64,
    bounds: Bounds,
    may_write: &mut dyn FnMut() -> Result<(), AssembleError>,
) -> Result<(Parts, RecoveryReport), AssembleError> {
    let mut devices = room::WatchRoom::new(devices);
    let result = assemble_on(&mut devices, arrangement, nonce, bounds, may_write);
    devices.full().map_or(result, |dev| Err(AssembleError::MemberFull { dev }))
}

fn assemble_on(
    devices: &mut dyn DeviceSet,
    arrangement: &Arrangement,
    nonce: u64,
    bounds: Bounds,
    may_write: &mut dyn FnMut() -> Result<(), AssembleError>,
) -> Result<(Parts, RecoveryReport), AssembleError> {
    let newest = &arrangement.newest;
    let health = Health::new(&newest.config, &arrangement.members, newest.config_seq);
    let rebuilt = if newest.config.scheme.is_in_place() { &[] } else { arrangement.rebuilt.as_slice() };
    let mut health = health.remembering(&arrangement.faults).resuming(rebuilt);
    check_shape(devices, arrangement)?;
    let mut store = Store::new(newest.config)?;
    store.table.set_bytes_max(&newest.config, bounds.table_bytes);
    let mut scheme = scheme::new(&store, bounds.list_bytes);
    let (mut loaded, mut lists) = load::load(devices, &health, newest, &mut store, &mut *scheme)?;
    let words = OnceCell::new();
    let of_loaded = (&mut loaded, &mut lists, &words);
    let (found, list) = scan_and_take(devices, &health, newest, of_loaded, (&mut store, &mut *scheme))?;
    load_away(&mut health, list, &loaded, newest)?;
    drop(words);
    let proof::Proven { flushed, lost } = proof::prove(arrangement, &health, &loaded, &found)?;
    // What an older state says of the chunks is not what they are.
    let was_clean = newest.clean && lost.is_none();
    let restart = Restart { was_clean, dirty_degraded: arrangement.dirty_degraded };
    scheme::may_start(&store.config, &health, restart)?;
    may_write()?;
    // After a kill what was read may be in the caches of the devices alone. What is written from here on must
    // not outlive it.
    flush_all(devices, &mut health);
    complete_superblocks(devices, &mut health, arrangement);
    // Before anything else changes: a member that is missing now must not pass for a good one after a crash;
    // and no later assembly may use the number of the checkpoint that ends this one, should it be cut short.
    loaded.place.used = unused_number(newest, &loaded) - 1;
    let mut newest = newer_than_absent(newest, &loaded, &health);
    let epoch = Epoch::new(loaded.epoch.max(newest.epoch).max(found.newest_epoch).get() + 1);
    disown_maimed(&mut health, &arrangement.maimed, epoch);
    let forced = forced_in(&newest, epoch, lost.is_some() || arrangement.is_dirty_degraded());
    if !planted(Planted::ForcedToldLate) {
        newest.losses.forced = forced;
    }
    health.config_seq += if planted(Planted::UpdateUsedAgain) { 1 } else { UPDATES_SKIPPED };
    write_superblocks(devices, &mut health, &mut newest)?;
    if lost.is_some() || scheme::forgets_writes(&store.config, restart) {
        health.forget_away();
    }
    // What an older state says was written elsewhere than what was rebuilt.
    if lost.is_some() && health.forget_rebuilt() {
        write_superblocks(devices, &mut health, &mut newest)?;
    }
    let mut report = RecoveryReport {
        was_clean: newest.clean,
        checkpoint: loaded.place.number,
        lost,
        forced,
        ..RecoveryReport::default()
    };
    let journal = (&loaded, found, flushed);
    let replayed =
        replay::replay(devices, &mut health, newest.array, &mut store, &mut *scheme, journal, &mut report)?;
    loaded.saved.forget_ahead();
    scheme::recover(&mut *scheme, &mut store, devices, &mut health, (restart, &loaded.saved), &mut report)?;
    if let Some(partial) = loaded.partial.take() {
        partial.complete(devices, &mut health, &store);
    }
    replayed.frontiers.iter().zip(&mut store.spaces).for_each(|(&chunk, space)| space.set_frontier(chunk));
    store.freed.clear();
    restore_log(&mut store, &*scheme, loaded.log_head);

    let journal = Journal::new(newest.array, epoch, nonce, replayed.last_seq.next(), &store);
    let mut parts = Parts { store, scheme, health, journal, checkpoint: loaded.place, superblock: newest };
    write_checkpoint(devices, &mut parts, replayed.last_seq, Some(&loaded.saved))?;
    let (checkpoints, durable_through) = (parts.checkpoint.numbers(), replayed.last_seq);
    parts.superblock =
        Superblock { epoch, nonce, clean: false, checkpoints, durable_through, ..parts.superblock };
    parts.superblock.losses.forced = forced;
    // Both copies: should all of the newer ones be lost, the others must not name the assembly before, or its
    // orderly stop.
    parts.health.config_seq += UPDATES_SKIPPED;
    for _ in format::SUPERBLOCK_OFFSETS {
        write_superblocks(devices, &mut parts.health, &mut parts.superblock)?;
    }
    // Not before: recovery relies on nothing of a member that is being rebuilt.
    parts.health.trust_what_stayed();
    Ok((parts, report))
}

/// Finds the journal's frames, and takes the list, whose words come to be in `words`. If the table is in
/// memory the list is taken while rings are read, else while pages are read for which replay will ask.
fn scan_and_take<'a>(
    devices: &mut dyn DeviceSet,
    health: &Health,
    newest: &Superblock,
    (loaded, lists, words): (&mut load::Loaded, &mut load::Lists, &'a OnceCell<Vec<u32>>),
    (store, scheme): (&mut Store, &mut dyn Scheme),
) -> Result<(scan::Found, List<'a>), AssembleError> {
    let (checkpoint, is_paged) = (loaded.place.number, store.table.is_paged());
    let (mut folded, mut list) = (Ok(()), None);
    let found = scan::scan(devices, health, newest, loaded, &mut || {
        folded = lists.fold(checkpoint).map(|all| {
            let words = words.get_or_init(|| all);
            if !is_paged {
                list = Some(load::take_list(words, checkpoint, store, scheme));
            }
        });
    });
    folded?;
    if let (None, Some(words)) = (&list, words.get()) {
        let ahead = replay::pages_ahead(&found, loaded, store);
        let ahead = loaded.saved.first_places(&store.table, &ahead);
        let mut take_list = || list = Some(load::take_list(words, checkpoint, store, scheme));
        loaded.saved.read_ahead(devices, &ahead, &mut take_list);
    }
    Ok((found, list.expect("taken beside one of them")?))
}

/// What superblocks say before anything else changes, of the newest assembly that is known of. With an update
/// behind all that its rounds may have told a member alone that is missing now, that one does not pass for a
/// good one when it is back, nor for one that was in service meanwhile.
fn newer_than_absent(newest: &Superblock, loaded: &load::Loaded, health: &Health) -> Superblock {
    let checkpoints = CheckpointNumbers { used: loaded.place.next(), ..newest.checkpoints };
    // Its superblocks may have arrived where nobody looks now: then its checkpoint was on all that hold it.
    let was_cut_short = loaded.epoch > newest.epoch && partial::are_enough(&loaded.place.devices, health);
    let (epoch, nonce) = if was_cut_short && !planted(Planted::UpdateUsedAgain) {
        (loaded.epoch, loaded.nonce)
    } else {
        (newest.epoch, newest.nonce)
    };
    Superblock { checkpoints, epoch, nonce, ..newest.clone() }
}

/// The assembly that superblocks name from the first ones on as started by force, until somebody has taken
/// note: the first of several. Should this start be cut short, what it wrote may let the next one pass
/// without force; that must not make it good.
fn forced_in(newest: &Superblock, epoch: Epoch, gives_up: bool) -> Option<Epoch> {
    newest.losses.forced.or(gives_up.then_some(epoch))
}

/// Members whose devices hold less than they did are nobody's from the first superblocks on: no device has
/// their new serial numbers. Should this start be cut short, and a device have its length again in the next
/// one, that cannot tell what it lacks.
fn disown_maimed(health: &mut Health, maimed: &[DevIndex], epoch: Epoch) {
    for &dev in maimed.iter().filter(|_| !planted(Planted::MaimedComesBack)) {
        health.take_away(dev);
        if !planted(Planted::MaimedToldLate) {
            health.disown(dev, before_those_of(epoch));
        }
    }
}

/// A number that no checkpoint ever had, whole or not. The assembly before may have begun some since it last
/// wrote superblocks, or since the checkpoint that was found: an incremental one and a full one of the same
/// instant, and as many more if a member failed during these, as their headers wait for superblocks. Whatever
/// of these is still on its way to a device that hangs, and arrives there later, has another number than what
/// lies in its place by then.
fn unused_number(newest: &Superblock, loaded: &load::Loaded) -> u64 {
    if planted(Planted::NumberUsedAgain) {
        return loaded.place.next();
    }
    loaded.place.number.max(newest.checkpoints.used) + NUMBERS_SKIPPED + 1
}

/// What the checkpoint's list says of members that are away.
fn load_away(
    health: &mut Health,
    list: List<'_>,
    loaded: &load::Loaded,
    newest: &Superblock,
) -> Result<(), AssembleError> {
    let point = away::point(loaded.epoch, loaded.nonce, loaded.config_seq);
    let result = health.load_away(list, (point, &newest.members), (&newest.config, loaded.place.number));
    result.map_err(|cause| Inconsistency::State { checkpoint: loaded.place.number, cause }.into())
}

/// Before anything is laid out in memory: the members are as large as the superblock says, and the scheme has
/// its log.
fn check_shape(devices: &dyn DeviceSet, arrangement: &Arrangement) -> Result<(), AssembleError> {
    let config = &arrangement.newest.config;
    let (n, m) = (config.geometry.device_count(), config.geometry.parity_count());
    let found = usize::from(config.log_count);
    let expected = if config.scheme.has_log() || found > 0 { m } else { 0 };
    if found < expected {
        return Err(AssembleError::LogDevices { found, expected });
    }
    let page_blocks = PageArea::blocks_for(config.geometry, Table::page_count_for(config));
    if u64::from(config.page_blocks) < page_blocks {
        return Err(AssembleError::PageArea { found: config.page_blocks, expected: page_blocks });
    }
    for index in (0..arrangement.places.len()).filter(|&index| arrangement.places[index].is_some()) {
        let dev = DevIndex::new(index as u16);
        let expected_bytes = if index < n { config.main_device_bytes() } else { config.log_device_bytes() };
        let found_bytes = devices.size_bytes(dev);
        // A device that is gone is found out by its first operation; one that is too short was truncated.
        if found_bytes != 0 && found_bytes < expected_bytes {
            return Err(AssembleError::Truncated { dev, found_bytes, expected_bytes });
        }
    }
    Ok(())
}

/// The log region goes on behind the newest log chunk that is needed. Frames and dead log chunks are of no
/// use any more: the checkpoint that ends recovery holds all there is. If none lives, it goes on at block
/// `head`.
fn restore_log(store: &mut Store, scheme: &dyn Scheme, head: u32) {
    let lap = store.config.log_blocks;
    let after = scheme
        .newest_log_block()
        .map_or(head.clamp(1, lap.max(1)), |first| first.get() + store.chunk_blocks());
    let (lap, head) = (u64::from(lap), u64::from(lap) + u64::from(after - 1));
    store.log.restore(head, head - lap);
    let tail = scheme.log_tail(store);
    store.log.trim(tail);
}

/// Items of a list that are said at once: what they are before they are packed is in memory beside it.
const ITEMS_AT_ONCE: usize = 4096;

/// Writes a checkpoint synchronously: incremental if the devices that hold the newest one still work and have
/// room. If pages may be absent, `saved` has those that a full one writes.
pub(crate) fn write_checkpoint(
    devices: &mut dyn DeviceSet,
    parts: &mut Parts,
    through: Seq,
    saved: Option<&SavedPages>,
) -> Result<(), AssembleError> {
    let Parts { store, scheme, health, journal, .. } = parts;
    let room = &mut Vec::new();
    let mut now = Now { store, scheme: &mut **scheme, journal, health, through, room };
    let mut image = parts.checkpoint.choose_first(&mut now);
    while !image.is_listed() {
        image.list_more(now.store, now.scheme, ITEMS_AT_ONCE);
    }
    let table = &mut parts.store.table;
    let absent: Vec<usize> = image.absent_pages(table).collect();
    if let Some(saved) = saved {
        saved.hold(devices, table, &absent)?;
    }
    let bodies = write_units(devices, parts, &image);
    SavedPages::let_go(&mut parts.store.table, &absent);
    for unit in 0..image.unit_count() {
        for &page in image.table_pages(&parts.store, unit) {
            parts.store.table.release_page(page);
        }
    }
    parts.store.table.end_snapshot(image.number);
    flush_all(devices, &mut parts.health);
    if parts.health.config_seq != parts.superblock.config_seq {
        // Who missed pages must not pass for a good member after a crash: its slots hold other ones.
        write_superblocks(devices, &mut parts.health, &mut parts.superblock)?;
    }
    image.config_seq = parts.superblock.config_seq;
    let block = &mut [0u8; META_BYTES];
    for (&dev, body) in image.devices.iter().zip(&bodies) {
        image.encode_header(&parts.journal, dev, body, block);
        write_or_fail(devices, &mut parts.health, dev, image.offset(&parts.store, 0), block);
    }
    flush_all(devices, &mut parts.health);
    if !image.devices.iter().any(|&dev| parts.health.is_writable(dev)) {
        return Err(too_many_faults(&parts.health));
    }
    parts.checkpoint = parts.checkpoint.after(&image);
    Ok(())
}

/// Writes everything of a checkpoint but its headers, neighbours in one transfer and copies side by side, the
/// next blocks being encoded meanwhile; returns the checksums for those.
fn write_units(devices: &mut dyn DeviceSet, parts: &mut Parts, image: &Image) -> Vec<BodyCrc> {
    let copies = image.devices.len();
    let mut bodies = vec![BodyCrc::new(); copies];
    let at_once = image.unit_count().clamp(1, WRITE_BLOCKS);
    let mut room = Pool::new(at_once * META_BYTES * copies.max(1), 2);
    write_slots(devices, parts, image, room.region_mut());
    let mut patches: Vec<_> = (0..at_once).map(|_| PatchRoom::default()).collect();
    let (mut now, mut later) = room.region_mut().split_at_mut(at_once * META_BYTES * copies.max(1));
    let mut left = image.saved_units().end..image.unit_count();
    let take = |left: &mut Range<usize>| {
        let units = left.start..left.end.min(left.start + at_once);
        left.start = units.end;
        units
    };
    let Parts { store, journal, health, .. } = parts;
    let mut encode = |units: Range<usize>, blocks: &mut [u8]| {
        // What all copies have in common is made once.
        let room = units.clone().zip(&mut patches);
        let pages: Vec<BodyPage<'_>> =
            room.map(|(unit, patches)| image.body_page(store, unit, patches)).collect();
        for (copy, blocks) in blocks.chunks_exact_mut(at_once * META_BYTES).take(copies).enumerate() {
            for ((unit, &page), block) in units.clone().zip(&pages).zip(blocks.chunks_exact_mut(META_BYTES)) {
                image.encode_body(journal, (unit, copy), page, &mut bodies, block);
            }
        }
    };
    let mut units = take(&mut left);
    encode(units.clone(), now);
    while !units.is_empty() {
        let next = take(&mut left);
        let copy_of = |(copy, blocks): (usize, _)| {
            let (dev, offset_bytes) = image.target(store, units.start, copy);
            let blocks: &[u8] = blocks;
            WriteNow { dev, offset_bytes, from: &blocks[..units.len() * META_BYTES], result: Ok(()) }
        };
        let writes = now.chunks_exact(at_once * META_BYTES).take(copies).enumerate().map(copy_of).collect();
        write_all_or_fail(devices, health, writes, &mut || encode(next.clone(), later));
        (now, later, units) = (later, now, next);
    }
    bodies
}

/// Writes the pages of a checkpoint that go to their slots.
fn write_slots(devices: &mut dyn DeviceSet, parts: &mut Parts, image: &Image, blocks: &mut [u8]) {
    let units = image
        .saved_units()
        .flat_map(|unit| (0..image.copies(&parts.store, unit)).map(move |copy| (unit, copy)));
    let mut targets: Vec<_> =
        units.map(|(unit, copy)| (image.target(&parts.store, unit, copy), (unit, copy))).collect();
    targets.sort_unstable();
    let is_next = |one: &((DevIndex, u64), _), other: &((DevIndex, u64), _)| {
        let ((one_dev, one_at), (dev, at)) = (one.0, other.0);
        one_dev == dev && one_at + META_BYTES as u64 == at
    };
    let at_once = blocks.len() / META_BYTES;
    for run in targets.chunk_by(is_next).flat_map(|run| run.chunks(at_once)) {
        for (&(_, unit), block) in run.iter().zip(blocks.chunks_exact_mut(META_BYTES)) {
            image.encode_slot((&parts.store, &parts.journal), unit, block);
        }
        let (dev, offset) = run[0].0;
        write_or_fail(devices, &mut parts.health, dev, offset, &blocks[..run.len() * META_BYTES]);
    }
}

/// Gives every member the newest superblock. The two copies on a member are written in turn: whoever missed
/// this one has its only good copy where the next one goes.
fn complete_superblocks(devices: &mut dyn DeviceSet, health: &mut Health, arrangement: &Arrangement) {
    let newest = &arrangement.newest;
    for &dev in &arrangement.lagging {
        let serial = newest.members[dev.index()].serial;
        let (faults, rebuilt) = (arrangement.faults[dev.index()], arrangement.rebuilt[dev.index()]);
        let own = Superblock { dev, role: role_of(newest, dev), serial, faults, rebuilt, ..newest.clone() };
        let copy = (own.config_seq % 2) as usize;
        let mut block = [0u8; META_BYTES];
        own.encode(copy, &mut block);
        write_or_fail(devices, health, dev, format::SUPERBLOCK_OFFSETS[copy], &block);
    }
    if !arrangement.lagging.is_empty() {
        flush_all(devices, health);
    }
}

/// Writes every working member's superblock synchronously, again if one of them fails meanwhile: the others
/// must know. Epoch, nonce, cleanness and all that does not change are those of `template`; its `config_seq`
/// is that of the update before, and then of this one. The copies are written in turn, however much has
/// changed in between.
pub(crate) fn write_superblocks(
    devices: &mut dyn DeviceSet,
    health: &mut Health,
    template: &mut Superblock,
) -> Result<(), AssembleError> {
    loop {
        health.config_seq = format::update_after(template.config_seq, health.config_seq);
        let written = health.config_seq;
        template.config_seq = written;
        let copy = (written % 2) as usize;
        let members: Vec<DevIndex> = health.writable().collect();
        let mut blocks = vec![[0u8; META_BYTES]; members.len()];
        let mut writes = Vec::with_capacity(members.len());
        for (&dev, block) in members.iter().zip(&mut blocks) {
            superblock_of(template, health, dev).encode(copy, block);
            let offset_bytes = format::SUPERBLOCK_OFFSETS[copy];
            writes.push(WriteNow { dev, offset_bytes, from: block, result: Ok(()) });
        }
        write_all_or_fail(devices, health, writes, &mut || {});
        flush_all(devices, health);
        if health.missing_count() > template.config.geometry.parity_count() {
            return Err(too_many_faults(health));
        }
        if health.config_seq == written {
            return Ok(());
        }
    }
}

/// One member's superblock.
pub(crate) fn superblock_of(template: &Superblock, health: &Health, dev: DevIndex) -> Superblock {
    let members = health.entries();
    Superblock {
        dev,
        role: role_of(template, dev),
        config_seq: health.config_seq,
        serial: members[dev.index()].serial,
        faults: health.fault_record(dev),
        rebuilt: health.rebuilt(dev),
        members,
        ..template.clone()
    }
}

fn role_of(superblock: &Superblock, dev: DevIndex) -> format::Role {
    let main = dev.index() < superblock.config.geometry.device_count();
    if main { format::Role::Main } else { format::Role::Log }
}
