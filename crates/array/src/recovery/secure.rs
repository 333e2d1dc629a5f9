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
use std::collections::{BTreeMap, HashMap};

/// First and last record of a frame. One that grows is found several times, with the same first one.
type Extent = (Seq, Seq);

/// Where frames were found that recovery needs.
#[derive(Default)]
pub(super) struct Copies {
    devices: HashMap<Extent, Vec<DevIndex>>,
    /// Blocks of rings and log regions with such a frame.
    blocks: HashMap<(DevIndex, u32), Extent>,
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
        let (first, last) = extent_of(frame);
        if last.next() > through {
            self.blocks.insert((frame.dev, frame.block), (first, last));
            let devices = self.devices.entry((first, last)).or_default();
            // One without records is no copy of the next one, which begins with the same number.
            if !frame.records.is_empty() && !devices.contains(&frame.dev) {
                devices.push(frame.dev);
            }
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
            let writes = frame.records.iter().any(|record| record.overwrites().is_some());
            writes && extent_of(frame).1 > source.flushed
        };
        let unsure: Vec<&Frame> = frames.values().filter(in_place).collect();
        if unsure.is_empty() {
            return;
        }
        // What was found may be in caches alone, and goes on to be all there is of a frame that has grown.
        flush_all(devices, health);
        let members = (0u16..).map(DevIndex::new).take(health.members().len());
        let absent = members.filter(|&dev| !is_present(health, dev)).count();
        let wanted = (store.config.geometry.parity_count() + 1).saturating_sub(absent);
        self.forget_absent(health);
        self.forget_outgrown(wanted);
        for frame in unsure {
            self.complete(devices, health, store, frame, source, wanted);
        }
        flush_all(devices, health);
    }

    /// A member that has failed since its frames were read counts among the absent ones: it holds no copy.
    fn forget_absent(&mut self, health: &Health) {
        for holders in self.devices.values_mut() {
            holders.retain(|&dev| is_present(health, dev));
        }
    }

    /// Blocks with less of a frame than enough others hold are free.
    fn forget_outgrown(&mut self, wanted: usize) {
        let mut whole: HashMap<Seq, Seq> = HashMap::new();
        for (&(first, last), _) in self.devices.iter().filter(|(_, devices)| devices.len() >= wanted) {
            let longest = whole.entry(first).or_insert(last);
            *longest = last.max(*longest);
        }
        self.blocks.retain(|_, (first, last)| whole.get(first).is_none_or(|longest| *last >= *longest));
    }

    fn complete(
        &mut self,
        devices: &mut dyn DeviceSet,
        health: &mut Health,
        store: &Store,
        frame: &Frame,
        source: Source,
        wanted: usize,
    ) {
        let mut builder = FrameBuilder::new();
        for (seq, record, bond) in frame.numbered() {
            if !builder.try_push(seq, record, bond) {
                // Not reachable: they come from a frame, and what writes in place has no short forms.
                return;
            }
        }
        let mut block = [0; META_BYTES];
        for dev in (0u16..).map(DevIndex::new).take(store.main_count()) {
            let have = self.devices.entry(extent_of(frame)).or_default();
            if have.len() >= wanted {
                return;
            }
            let free = (0..store.config.journal_blocks).find(|&at| !self.blocks.contains_key(&(dev, at)));
            if let Some(at) = free
                && health.is_writable(dev)
                && !have.contains(&dev)
            {
                let stamp = FrameStamp {
                    array: source.array,
                    epoch: frame.epoch,
                    nonce: source.nonce,
                    flushed_through: frame.flushed_through,
                    next_seq: extent_of(frame).1.next(),
                    dev,
                    block: at,
                };
                builder.seal_into(&stamp, &mut block);
                write_or_fail(devices, health, dev, store.config.journal_offset(at), &block);
                self.blocks.insert((dev, at), extent_of(frame));
                have.push(dev);
            }
        }
    }
}

/// Without records, the last one is that before the first.
fn extent_of(frame: &Frame) -> Extent {
    let next = frame.first_seq.get() + frame.records.len() as u64;
    (frame.first_seq, Seq::new(next.saturating_sub(1)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::create::{CreateOptions, plan_config};
    use crate::fault::FailCause;
    use block::{Epoch, Geometry, StripeId};
    use device::MemorySet;
    use format::record::{InPlace, InPlacePiece, RecordBuf};
    use format::{
        Bond, CodeKind, Consistency, FrameExpect, LayoutKind, MemberEntry, MemberState, SchemeKind,
        decode_frame,
    };

    const ARRAY: ArrayUuid = ArrayUuid::new([7; 16]);
    const NONCE: u64 = 99;
    const SIZE: u64 = 8 << 20;

    fn config() -> format::ArrayConfig {
        let options = CreateOptions {
            scheme: SchemeKind::Raid,
            code: CodeKind::Cauchy,
            layout: LayoutKind::Spread,
            consistency: Consistency::Resync,
            geometry: Geometry::new(2, 2, 4096).expect("valid"),
            reserve_permille: 0,
            unit_rows: None,
        };
        plan_config(&options, SIZE, 0, 0).expect("fits")
    }

    /// A frame on a device, from record 5 on.
    fn frame(builder: &FrameBuilder, dev: u16, block: u32) -> Frame {
        let (dev, epoch) = (DevIndex::new(dev), Epoch::new(3));
        let stamp = FrameStamp {
            array: ARRAY,
            epoch,
            nonce: NONCE,
            flushed_through: Seq::new(4),
            next_seq: Seq::new(5),
            dev,
            block,
        };
        let mut bytes = [0; META_BYTES];
        builder.seal_into(&stamp, &mut bytes);
        decode_frame(&bytes, &FrameExpect { array: ARRAY, epoch, nonce: NONCE, dev, block }).expect("sound")
    }

    /// Where the frame with record 5 is written when its copies are secured, of which these are there, in an
    /// array of four of which some have failed since.
    fn secured(noted: &[Frame], failed: &[u16]) -> Vec<(u16, u32)> {
        let config = config();
        let mut copies = Copies::default();
        let through = Seq::new(4);
        noted.iter().for_each(|frame| copies.note(frame, through));

        let mut devices = MemorySet::new(&[SIZE; 4]).expect("memory");
        let entries = [MemberEntry { serial: 1, state: MemberState::Healthy }; 4];
        let mut health = Health::new(&config, &entries, 1);
        failed.iter().for_each(|&dev| assert!(health.fail(DevIndex::new(dev), FailCause::Asked)));
        let store = Store::new(config).expect("valid");
        let frames = BTreeMap::from([(Seq::new(5), noted[0].clone())]);
        let source = Source { array: ARRAY, nonce: NONCE, flushed: through };
        copies.secure(&mut devices, &mut health, &store, &frames, source);

        let written = |dev: u16, block: u32| {
            let (dev, at) = (DevIndex::new(dev), store.config.journal_offset(block) as usize);
            let expect = FrameExpect { array: ARRAY, epoch: Epoch::new(3), nonce: NONCE, dev, block };
            let found = decode_frame(&devices.bytes(dev)[at..at + META_BYTES], &expect);
            found.is_ok_and(|frame| frame.first_seq == Seq::new(5) && frame.records == noted[0].records)
        };
        let blocks = [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1), (3, 0), (3, 1)];
        blocks.into_iter().filter(|&(dev, block)| written(dev, block)).collect()
    }

    /// Record 5, that stripe 0 is written in place.
    fn record_5() -> FrameBuilder {
        let mut records = RecordBuf::default();
        InPlace::begin(&mut records, StripeId::new(0));
        InPlace::push(&mut records, InPlacePiece { column: 2, crc: 1, payload_block: 0 });
        let mut builder = FrameBuilder::new();
        assert!(builder.try_push(Seq::new(5), records.get(0), Bond::None));
        builder
    }

    /// Of four members each has a frame that begins with record 5, but only the first has that record: the
    /// others had nothing to say but what is durable. Two more need a copy.
    #[test]
    fn a_frame_without_records_is_no_copy() {
        let with_record = frame(&record_5(), 0, 1);
        let without = (1..4).map(|dev| frame(&FrameBuilder::new(), dev, 0));
        let noted: Vec<Frame> = std::iter::once(with_record).chain(without).collect();
        assert_eq!(secured(&noted, &[]), [(1, 1), (2, 1)], "beside the frames that were there");
    }

    /// A member that failed after its frame was read is missing, so two of the others need a copy: one that
    /// has none and the one that has it.
    #[test]
    fn a_member_that_has_failed_holds_no_copy() {
        let noted = [frame(&record_5(), 0, 1), frame(&record_5(), 3, 1)];
        assert_eq!(secured(&noted, &[0]), [(1, 0)], "beside that of the last member");
        assert_eq!(secured(&noted[..1], &[0]), [(1, 0), (2, 0)]);
        assert_eq!(secured(&noted[..1], &[0, 1]), [(2, 0)]);
    }
}
