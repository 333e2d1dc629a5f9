//! Making durable what recovery goes by, before it overwrites anything.
//!
//! A write in place is carried out again because of its record. Should power fail in the middle of that, and
//! devices be lost with it, the next attempt must find the same record, or it would take the half-written
//! stripe for an untouched one. The engine had waited for m + 1 durable copies before it touched the stripe,
//! but recovery also goes by records that the power cut caught on their way: it completes their copies first.
//! And what it read may have been in a cache, if only this program had stopped and not the machine:
//! everything is flushed.

use crate::health::Health;
use crate::restart::{flush_all, is_present, write_or_fail};
use crate::store::Store;
use block::{DevIndex, DeviceSet, META_BYTES, Seq};
use format::{ArrayUuid, Frame, FrameBuilder, FrameStamp};
use std::collections::{BTreeMap, HashMap, HashSet};

/// Where frames were found that recovery needs.
#[derive(Default)]
pub(super) struct Copies {
    devices: HashMap<Seq, Vec<DevIndex>>,
    used: HashSet<(DevIndex, u32)>,
}

/// The journal that is being replayed.
#[derive(Clone, Copy)]
pub(super) struct Source {
    pub array: ArrayUuid,
    pub nonce: u64,
    /// Records up to here are known durable.
    pub flushed: Seq,
}

impl Copies {
    /// A frame was found that has records after `through`, or says something about them.
    pub(super) fn note(&mut self, frame: &Frame, through: Seq) {
        if frame.first_seq.get() + frame.records.len() as u64 > through.get() {
            self.used.insert((frame.dev, frame.block));
            self.devices.entry(frame.first_seq).or_default().push(frame.dev);
        }
    }

    /// Completes the copies of all frames that may make recovery write in place.
    pub(super) fn secure(
        &mut self,
        devices: &mut dyn DeviceSet,
        health: &mut Health,
        store: &Store,
        frames: &BTreeMap<Seq, Frame>,
        source: Source,
    ) {
        let in_place = |frame: &&Frame| {
            let end = frame.first_seq.get() + frame.records.len() as u64;
            let writes = frame.records.iter().any(|record| record.overwrites().is_some());
            writes && end > source.flushed.get() + 1
        };
        let mut any = false;
        for frame in frames.values().filter(in_place) {
            self.complete(devices, health, store, frame, source);
            any = true;
        }
        if any {
            flush_all(devices, health);
        }
    }

    fn complete(
        &mut self,
        devices: &mut dyn DeviceSet,
        health: &mut Health,
        store: &Store,
        frame: &Frame,
        source: Source,
    ) {
        let members = || (0..store.main_count() as u16).map(DevIndex::new);
        let absent = members().filter(|&dev| !is_present(health, dev)).count();
        let wanted = (store.config.geometry.parity_count() + 1).saturating_sub(absent);
        let mut builder = FrameBuilder::new();
        for (seq, record) in (frame.first_seq.get()..).map(Seq::new).zip(frame.records.iter()) {
            if !builder.try_push(seq, record) {
                return; // Not reachable: the records come from a frame.
            }
        }
        let mut block = [0; META_BYTES];
        for dev in members() {
            let have = self.devices.entry(frame.first_seq).or_default();
            if have.len() >= wanted {
                return;
            }
            let free = (0..store.config.journal_blocks).find(|&at| !self.used.contains(&(dev, at)));
            if let Some(at) = free
                && health.is_writable(dev)
                && !have.contains(&dev)
            {
                let stamp = FrameStamp {
                    array: source.array,
                    epoch: frame.epoch,
                    nonce: source.nonce,
                    flushed_through: frame.flushed_through,
                    next_seq: Seq::new(frame.first_seq.get() + frame.records.len() as u64),
                    dev,
                    block: at,
                };
                builder.seal_into(&stamp, &mut block);
                write_or_fail(devices, health, dev, store.config.journal_offset(at), &block);
                self.used.insert((dev, at));
                have.push(dev);
            }
        }
    }
}
