//! Invariants of an array at rest.

use crate::Rng;
use crate::disk::{BLOCK_BYTES, Image, bytes_of};
use crate::violation;
use crate::violation::Violation;
use crate::world::World;
use array::{Codeword, Engine, Located, Piece, RecoveryReport, Store, Word};
use block::{ChunkIndex, Lcn, Random as _, StripeId};
use std::ops::Range;

/// All code words: every data stripe or elastic stripe, every live log stripe.
fn words(engine: &Engine) -> Vec<Word> {
    let (scheme, store) = (engine.scheme(), engine.store());
    let mut words: Vec<Word> =
        (0..scheme.word_count(store)).filter_map(|index| scheme.word_at(store, index)).collect();
    engine.scheme().log_words(&mut words);
    words
}

fn raw(image: &Image, offset_bytes: u64, out: &mut [u8]) {
    let first = offset_bytes as usize / BLOCK_BYTES;
    for (out, block) in out.chunks_exact_mut(BLOCK_BYTES).zip(&image[first..]) {
        out.copy_from_slice(bytes_of(block));
    }
}

/// Where a piece is on its device, in bytes.
fn place_of(store: &Store, piece: &Piece) -> u64 {
    store.config.place_on(piece.addr.dev, store.offset_of(piece.addr))
}

/// Every piece of every code word on a device without fault is durable and right; the others, and any that
/// could be lost besides, can be rebuilt.
pub(crate) fn covers(
    engine: &Engine,
    world: &World,
    is_suspect: &impl Fn(u16) -> bool,
    rng: &mut Rng,
) -> Result<(), Violation> {
    let store = engine.store();
    let len = store.config.geometry.chunk_bytes();
    let mut word = Codeword::default();
    let mut region = Vec::new();
    if engine.stats().cache.stale > 0 {
        return Err(violation!("{} chunks of the cache of stripes are stale", engine.stats().cache.stale));
    }
    for name in words(engine) {
        engine.scheme().codeword(store, name, &mut word);
        if word.data_count == 0 {
            continue;
        }
        let parts: Vec<Range<usize>> = word.parts().collect();
        region.clear();
        region.resize(len * parts.len(), 0);
        let mut bad = vec![false; parts.len()];
        for (i, part) in parts.iter().enumerate() {
            // Recovery cannot make good an addend that never arrived if another one of the sum is lost: so is
            // the sum.
            let excused =
                |piece: &Piece| is_suspect(piece.addr.dev.get()) || !engine.health().is_readable(piece.addr);
            let lost = part.len() > 1 && word.pieces[part.clone()].iter().any(excused);
            for piece in &word.pieces[part.clone()] {
                let mut bytes = vec![0; len];
                raw(world.disk(piece.addr.dev.get()).durable(), place_of(store, piece), &mut bytes);
                let good =
                    engine.health().is_readable(piece.addr) && array::chunk_checksum(&bytes) == piece.crc;
                bad[i] |= !good;
                region[i * len..(i + 1) * len].iter_mut().zip(&bytes).for_each(|(sum, byte)| *sum ^= byte);
                if !good && !lost && !is_suspect(piece.addr.dev.get()) {
                    return Err(not_durable(engine, world, name, &word, piece));
                }
            }
        }
        let lost = bad.iter().filter(|&&b| b).count();
        let tolerated = store.config.geometry.parity_count();
        if lost > tolerated {
            return Err(violation!("{name:?}: {lost} of {} parts are bad: {:?}", parts.len(), word.pieces));
        }
        if lost > 0 || rng.chance(1, 3) {
            rebuild(store, name, &word, &parts, &mut region, &mut bad, rng)?;
        }
    }
    Ok(())
}

fn not_durable(engine: &Engine, world: &World, name: Word, word: &Codeword, piece: &Piece) -> Violation {
    let store = engine.store();
    let mut now = vec![0; store.config.geometry.chunk_bytes()];
    world.disk(piece.addr.dev.get()).read(place_of(store, piece), &mut now);
    let visible = array::chunk_checksum(&now) == piece.crc;
    violation!(
        "{name:?}: piece {} at {:?} on a device without fault is not durable and right (to reads it is {}, readable {}): {:?}",
        piece.index,
        piece.addr,
        if visible { "right" } else { "wrong" },
        engine.health().is_readable(piece.addr),
        word.pieces
    )
}

/// Erases more of the word, up to what the code tolerates, and rebuilds all that is missing. A sum counts as
/// one piece.
fn rebuild(
    store: &Store,
    name: Word,
    word: &Codeword,
    parts: &[Range<usize>],
    region: &mut [u8],
    bad: &mut [bool],
    rng: &mut Rng,
) -> Result<(), Violation> {
    let len = store.config.geometry.chunk_bytes();
    let parities = parts.len() - word.data_count;
    if parities != store.config.geometry.parity_count() {
        return Err(violation!("{name:?}: {parities} parities: {:?}", word.pieces));
    }
    let (before, known) = (region.to_vec(), bad.to_vec());
    let mut left = store.config.geometry.parity_count() - bad.iter().filter(|&&b| b).count();
    while left > 0 && bad.iter().any(|&b| !b) {
        bad[rng.index(bad.len())] = true;
        left -= 1;
    }
    let at = |want_bad: bool, bad: &[bool]| -> Vec<(usize, usize)> {
        parts
            .iter()
            .enumerate()
            .filter(|&(i, _)| bad[i] == want_bad)
            .map(|(i, part)| (word.pieces[part.start].index, i * len))
            .collect()
    };
    let (present, wanted) = (at(false, bad), at(true, bad));
    for &(_, offset) in &wanted {
        region[offset..offset + len].fill(0xa5);
    }
    let columns: Vec<usize> = word.pieces[..word.data_count].iter().map(|p| p.index).collect();
    store
        .code
        .rebuild_in(&mut erasure::Region::new(region, len), &columns, &present, &wanted)
        .map_err(|e| violation!("{name:?}: pieces {wanted:?} cannot be rebuilt: {e}"))?;
    for (i, part) in parts.iter().enumerate().filter(|&(i, _)| bad[i]) {
        let rebuilt = &region[i * len..(i + 1) * len];
        let right = match &word.pieces[part.clone()] {
            [piece] => array::chunk_checksum(rebuilt) == piece.crc,
            // Of a sum that could not be read nothing is known.
            _ => known[i] || rebuilt == &before[i * len..(i + 1) * len],
        };
        if !right {
            return Err(violation!(
                "{name:?}: what the word has at {:?} is not what its cover gives",
                &word.pieces[part.clone()]
            ));
        }
    }
    Ok(())
}

/// No chunk leaked, none used twice.
pub(crate) fn space(engine: &Engine) -> Result<(), Violation> {
    let store = engine.store();
    let mut fresh = Store::new(store.config).map_err(|e| violation!("the code is gone: {e}"))?;
    for page in 0..store.table.page_count() {
        fresh.table.load_page(page, store.table.page(page));
    }
    let mut claims = fresh.nothing_claimed();
    let claimed = engine.scheme().claim_space(&fresh, &mut claims);
    claimed.map_err(|cause| violation!("the space contradicts itself: {cause}"))?;
    let spaces = store.spaces.iter().zip(&claims).enumerate();
    for (dev, (live, claimed)) in spaces.filter(|_| !store.config.scheme.is_in_place()) {
        for chunk in (1..=store.config.chunks_per_device).map(ChunkIndex::new) {
            match (live.is_used(&store.table, chunk), claimed.is_used(chunk)) {
                (true, false) => {
                    return Err(violation!(
                        "chunk {chunk} of device {dev} leaked: used, but nothing names it"
                    ));
                }
                (false, true) => return Err(violation!("chunk {chunk} of device {dev} is named, but free")),
                (true, true) | (false, false) => {}
            }
        }
        if live.free_count() != claimed.free_count() {
            return Err(violation!(
                "device {dev} counts {} free chunks, not {}",
                live.free_count(),
                claimed.free_count()
            ));
        }
    }
    Ok(())
}

/// Figures that cannot be.
pub(crate) fn counters(engine: &Engine) -> Result<(), Violation> {
    let stats = engine.stats();
    if stats.lost > 0 {
        return Err(violation!(
            "{} chunks could not be had although the code tolerates the damage",
            stats.lost
        ));
    }
    if stats.log_members < stats.log_stripes {
        return Err(violation!("log stripes without members: {stats:?}"));
    }
    let report = engine.last_report();
    if report.code_mismatches > 0 || report.lost > 0 {
        return Err(violation!("scrub or rebuild found {report:?}"));
    }
    if !engine.stuck_stripes().is_empty() {
        return Err(violation!("stripes {:?} cannot be committed", engine.stuck_stripes()));
    }
    Ok(())
}

/// Where a chunk is, and what it looks like, without names that differ between runs.
fn place(engine: &Engine, lcn: Lcn) -> Option<(Piece, Vec<Piece>)> {
    match engine.scheme().locate(engine.store(), lcn) {
        Located::Zero => None,
        Located::At { piece, word } => {
            let mut codeword = Codeword::default();
            engine.scheme().codeword(engine.store(), word, &mut codeword);
            Some((piece, codeword.pieces))
        }
    }
}

/// What replay gives is what the live array is.
pub(crate) fn same_state(live: &Engine, replayed: &Engine, report: &RecoveryReport) -> Result<(), Violation> {
    if report.dropped > 0 {
        return Err(violation!("replay of an array at rest drops records: {report:?}"));
    }
    let config = live.store().config;
    for lcn in (0..config.stripe_count * config.geometry.data_count() as u64).map(Lcn::new) {
        let (one, other) = (place(live, lcn), place(replayed, lcn));
        if one != other {
            return Err(violation!("chunk {lcn} is live at {one:?}, replayed at {other:?}"));
        }
    }
    for stripe in (0..config.stripe_count).map(StripeId::new) {
        let (mut one, mut other) = (Codeword::default(), Codeword::default());
        live.scheme().codeword(live.store(), Word::Stripe(stripe), &mut one);
        replayed.scheme().codeword(replayed.store(), Word::Stripe(stripe), &mut other);
        let dirty = (live.scheme().is_dirty(stripe), replayed.scheme().is_dirty(stripe));
        if one.pieces != other.pieces || dirty.0 != dirty.1 {
            return Err(violation!("stripe {stripe} is live {one:?}, replayed {other:?}, dirty {dirty:?}"));
        }
    }
    if !live.store().table.is_same(&replayed.store().table) {
        return Err(violation!("the table differs between live and replayed state"));
    }
    Ok(())
}
