//! The cache of stripes of scheme `raid`: reads as Linux md counts them with its own, and nothing stale.

use crate::common::*;
use array::{Array, EngineOptions, EngineStats, MemoryNeed, arrange, plan_config};
use block::{DevIndex, Durability, Random as _, SplitMix, Stream};
use device::{Counting, MemorySet};
use format::SchemeKind;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

const CHUNK: u64 = 4096;

fn cached(stripes: u32) -> EngineOptions {
    let mut options = options();
    options.scheme.stripe_cache = stripes;
    options
}

/// An array whose first chunks are written, in whole stripes, put together again: nothing is in memory.
fn prefilled(k: usize, m: usize, chunks: u64, stripes: u32) -> Array<Counting<MemorySet>> {
    let create = create_options(SchemeKind::Raid, k, m);
    let main_mib = chunks.div_ceil(k as u64) * CHUNK / (1 << 20) + 4;
    let (mut array, _) = assemble(fresh(&create, main_mib, 0), k + m, options());
    let stripe = vec![0x5a; k * CHUNK as usize];
    for first in (0..chunks).step_by(k) {
        write(&mut array, first * CHUNK, &stripe, Durability::Volatile).unwrap();
    }
    array.stop().unwrap();
    let mut devices = array.into_devices();
    let arrangement = arrange(&superblocks(&mut devices, k + m)).unwrap();
    let (mut array, _) = Array::assemble(Counting::new(devices), &arrangement, 9, cached(stripes)).unwrap();
    array.devices().reset();
    array
}

/// Writes one range after the other; chunks written and read, and figures.
fn replay(array: &mut Array<Counting<MemorySet>>, writes: &[(u64, u64)]) -> (u64, u64, EngineStats) {
    let mut slots = Vec::new();
    for (index, &(offset, length)) in writes.iter().enumerate() {
        let count = (offset + length).div_ceil(CHUNK) - offset / CHUNK;
        assert!(array.engine().take_slots(usize::try_from(count).unwrap(), &mut slots));
        let byte = u8::try_from(index % 251).unwrap();
        slots.iter().for_each(|&slot| array.engine().pool().bytes_mut(slot).fill(byte));
        array.run(|e, tag| e.write(tag, offset, length, &slots, Durability::Volatile)).unwrap();
        slots.drain(..).for_each(|slot| array.engine().pool().free(slot));
    }
    let total = array.devices().total();
    let chunks = |ops: &[u64; 4]| ops[Stream::Data.index()] + ops[Stream::Parity.index()];
    (chunks(&total.write_ops), chunks(&total.read_ops), array.engine().stats())
}

/// What md counts, from its rules alone: `handle_stripe_dirtying` over pages of which some are up to date,
/// and its cache of stripes.
struct Md {
    k: u64,
    m: u64,
    /// Stripes with their pages that are up to date, the oldest first.
    lists: [VecDeque<(u64, BTreeSet<u64>)>; 8],
    sizes: [usize; 8],
    reads: u64,
    touched: u64,
    found: u64,
}

impl Md {
    fn new(k: u64, m: u64, stripes: usize) -> Self {
        let sizes = std::array::from_fn(|list| (list..stripes).step_by(8).count());
        Self { k, m, lists: Default::default(), sizes, reads: 0, touched: 0, found: 0 }
    }

    fn write(&mut self, offset: u64, length: u64) {
        let mut stripes: BTreeMap<u64, BTreeMap<u64, bool>> = BTreeMap::new();
        for chunk in offset / CHUNK..(offset + length).div_ceil(CHUNK) {
            let whole = offset <= chunk * CHUNK && (chunk + 1) * CHUNK <= offset + length;
            stripes.entry(chunk / self.k).or_default().insert(chunk % self.k, whole);
        }
        stripes.into_iter().for_each(|(stripe, written)| self.write_stripe(stripe, &written));
    }

    fn write_stripe(&mut self, stripe: u64, written: &BTreeMap<u64, bool>) {
        let (k, parities) = (self.k, self.k..self.k + self.m);
        let list = &mut self.lists[usize::try_from(stripe % 8).unwrap()];
        let known = list.iter().position(|&(other, _)| other == stripe);
        let mut current = known.and_then(|at| list.remove(at)).map(|(_, pages)| pages).unwrap_or_default();
        let modify = written.keys().copied().chain(parities.clone());
        let modify: Vec<u64> = modify.filter(|page| !current.contains(page)).collect();
        let partly = |page: &u64| !written.get(page).copied().unwrap_or(false);
        let rest: Vec<u64> = (0..k).filter(partly).filter(|page| !current.contains(page)).collect();
        let read = match (modify.len(), rest.len()) {
            (0, _) | (_, 0) => Vec::new(),
            (modified, reconstructed) if modified < reconstructed => modify,
            _ => rest,
        };
        self.reads += read.len() as u64;
        self.touched += 1;
        self.found += u64::from(known.is_some());
        current.extend(read.into_iter().chain(written.keys().copied()).chain(parities));
        list.push_back((stripe, current));
        while list.len() > self.sizes[usize::try_from(stripe % 8).unwrap()] {
            list.pop_front();
        }
    }
}

/// Python's generator (MT19937, seeded by an array of one word), which md's writes were drawn from.
struct Twister {
    state: Vec<u32>,
    at: usize,
}

impl Twister {
    fn new(seed: u32) -> Self {
        let mut state = vec![19_650_218u32];
        for i in 1..624 {
            let last: u32 = state[state.len() - 1];
            state.push((last ^ (last >> 30)).wrapping_mul(1_812_433_253).wrapping_add(i));
        }
        let mut at = 1;
        let step = |state: &mut Vec<u32>, at: &mut usize, factor: u32, add: &dyn Fn(usize) -> u32| {
            let last = state[*at - 1];
            let mixed = state[*at] ^ (last ^ (last >> 30)).wrapping_mul(factor);
            state[*at] = mixed.wrapping_add(add(*at));
            *at += 1;
            if *at == 624 {
                state[0] = state[623];
                *at = 1;
            }
        };
        (0..624).for_each(|_| step(&mut state, &mut at, 1_664_525, &|_| seed));
        let less = |at: usize| u32::try_from(at).unwrap().wrapping_neg();
        (0..623).for_each(|_| step(&mut state, &mut at, 1_566_083_941, &less));
        state[0] = 0x8000_0000;
        Self { state, at: 624 }
    }

    fn word(&mut self) -> u32 {
        if self.at == 624 {
            for i in 0..624 {
                let y = self.state[i] & 0x8000_0000 | self.state[(i + 1) % 624] & 0x7fff_ffff;
                let odd = if y % 2 == 1 { 0x9908_b0df } else { 0 };
                self.state[i] = self.state[(i + 397) % 624] ^ (y >> 1) ^ odd;
            }
            self.at = 0;
        }
        let mut y = self.state[self.at];
        self.at += 1;
        y ^= y >> 11;
        y ^= y << 7 & 0x9d2c_5680;
        y ^= y << 15 & 0xefc6_0000;
        y ^ y >> 18
    }

    /// `randrange(count)`.
    fn below(&mut self, count: u32) -> u32 {
        let bits = 32 - count.leading_zeros();
        std::iter::repeat_with(|| self.word() >> (32 - bits)).find(|&drawn| drawn < count).unwrap()
    }
}

/// What Linux 7.2.7 was given: 4,000 writes of 1 to 16 chunks anywhere in 64 MiB.
fn mixed() -> Vec<(u64, u64)> {
    let mut random = Twister::new(7);
    let chunks = 64 * 256;
    (0..4000)
        .map(|_| {
            let length = random.below(16) + 1;
            (u64::from(random.below(chunks - length)) * CHUNK, u64::from(length) * CHUNK)
        })
        .collect()
}

/// What Linux md (7.2.7 and 6.12.101) read and wrote with its cache of 256 stripes: `docs/measurements.md`.
#[test]
fn reads_are_those_of_linux_md_with_as_many_stripes() {
    let writes = mixed();
    assert_eq!(writes.iter().map(|(_, length)| length / CHUNK).sum::<u64>(), 33_608);
    for (k, m, written, read, found) in
        [(4, 1, 44_997, 9_275, 739), (6, 2, 51_550, 15_637, 872), (7, 1, 41_808, 14_611, 917)]
    {
        let mut array = prefilled(k, m, 64 * 256, 256);
        let (writes, reads, stats) = replay(&mut array, &writes);
        assert_eq!((writes, reads, stats.cache.stripes_found), (written, read, found), "{k}+{m}");
        assert_eq!(stats.cache.stale, 0, "{k}+{m}");
    }
}

#[test]
fn reads_are_those_of_mds_rules_whatever_the_size() {
    let mut rng = SplitMix::new(12);
    for (k, m, stripes) in [(4, 1, 1), (4, 1, 17), (6, 2, 8), (3, 3, 40), (1, 1, 9), (10, 2, 64), (5, 1, 300)]
    {
        let chunks = 150 * k as u64;
        let sectors = chunks * 8;
        let writes: Vec<(u64, u64)> = (0..2000)
            .map(|_| {
                let length = rng.below(2 * k as u64 * 8) + 1;
                // Half of them in a tenth of the range, so that some are found again.
                let range = if rng.below(2) == 0 { sectors } else { sectors / 10 };
                (rng.below(range - length) * 512, length * 512)
            })
            .collect();
        let mut md = Md::new(k as u64, m as u64, stripes as usize);
        writes.iter().for_each(|&(offset, length)| md.write(offset, length));
        let mut array = prefilled(k, m, chunks, stripes);
        let (_, reads, stats) = replay(&mut array, &writes);
        assert_eq!((reads, stats.cache.stripes_found), (md.reads, md.found), "{k}+{m}, {stripes} stripes");
        assert!(md.found > 0 && stats.cache.stale == 0, "{k}+{m}, {stripes} stripes");
        // Stripes whose list has no entry are not counted.
        let counted = stats.cache.stripes_found + stats.cache.stripes_not_found;
        assert!(if stripes < 8 { counted < md.touched } else { counted == md.touched });
    }
}

#[test]
fn what_the_cache_has_is_compared_with_its_checksum_and_read_if_it_differs() {
    let (k, m, stripes) = (4, 2, 8);
    let create = create_options(SchemeKind::Raid, k, m);
    let (mut array, _) = assemble(fresh(&create, 8, 0), k + m, cached(stripes));
    let mut model = vec![0u8; 8 * k * CHUNK as usize];
    let mut put = |array: &mut Array<MemorySet>, at: usize, bytes: &[u8]| {
        write(array, at as u64, bytes, Durability::Volatile).unwrap();
        model[at..at + bytes.len()].copy_from_slice(bytes);
        model.clone()
    };
    for stripe in 0..8 {
        put(&mut array, stripe * k * CHUNK as usize, &vec![7; k * CHUNK as usize]);
    }
    // Behind the chunk of zeros lie the buffers of the cache.
    let buffers = &mut array.engine().pool().pieces_mut()[1..1 + 8 * (k + m)];
    buffers.iter_mut().for_each(|buffer| buffer.fill(0xee));
    for stripe in 0..8 {
        put(&mut array, stripe * k * CHUNK as usize + 512, &[0xab; 1024]);
    }
    let stats = array.engine().stats();
    // All columns of each: where nothing need be read, parity is computed anew, as by md.
    assert_eq!((stats.cache.stripes_found, stats.cache.stale), (8, 8 * 4));
    let model = put(&mut array, 9216, &[0xcd; 4096]);
    array.engine().fail_device(DevIndex::new(0));
    array.engine().fail_device(DevIndex::new(3));
    assert!(read(&mut array, 0, model.len() as u64).unwrap() == model, "parity is right as well");
}

#[test]
fn its_memory_is_that_of_its_stripes_and_shards_share_it() {
    let config = plan_config(&create_options(SchemeKind::Raid, 6, 2), 64 << 20, 0, 0).unwrap();
    let need = |stripes| MemoryNeed::of(&config, &cached(stripes)).unwrap().buffers_bytes;
    assert_eq!(need(256) - need(0), 256 * 8 * CHUNK);
    let mut shared = config;
    shared.shard.count = 4;
    assert_eq!(cached(256).of_shard(&shared).scheme.stripe_cache, 64);
    let others = plan_config(&create_options(SchemeKind::ParityLog, 6, 2), 64 << 20, 64 << 20, 2).unwrap();
    let need = |stripes| MemoryNeed::of(&others, &cached(stripes)).unwrap().buffers_bytes;
    assert_eq!(need(256), need(0), "others have no such cache");
}
