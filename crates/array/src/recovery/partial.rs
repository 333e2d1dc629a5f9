//! A full checkpoint that too few members hold, whose copies are completed before the next one is written.
//!
//! The next one goes where the one before this lies: to its area, and to the slots of its pages. If power
//! fails meanwhile and members are lost with it, this one is all there is. Whoever wrote it has waited until
//! its copies were durable before it wrote another one, but recovery also goes by one whose headers a power
//! cut caught on their way. Its pages that are in slots are on every working member already: headers are
//! written when they are durable.

use crate::health::Health;
use crate::restart::{flush_all, write_or_fail};
use crate::store::Store;
use block::{DevIndex, DeviceSet, META_BYTES};
use format::{BodyCrc, CheckpointHeader, MemberState, PAGE_WORDS, PageKind, PageStamp, encode_page};

/// See the module's documentation.
pub(super) struct Partial {
    header: CheckpointHeader,
    /// What follows its header.
    root: Vec<u32>,
    list: Vec<u32>,
    /// The members that hold all of that.
    holders: Vec<DevIndex>,
}

/// Whether one of them is left whatever may still be lost: those that are missing already, a member that is
/// being rebuilt among them, and as many more as the code tolerates.
pub(super) fn are_enough(holders: &[DevIndex], health: &Health) -> bool {
    let wanted = (health.tolerated() + 1).saturating_sub(health.missing_count());
    holders.iter().filter(|&&dev| is_whole(health, dev)).count() >= wanted
}

fn is_whole(health: &Health, dev: DevIndex) -> bool {
    health.state(dev) == MemberState::Healthy
}

impl Partial {
    /// A checkpoint that was read back from `holders`; none if they are enough.
    pub(super) fn of(
        header: CheckpointHeader,
        (root, list): (&[u32], &[u32]),
        holders: &[DevIndex],
        health: &Health,
    ) -> Option<Self> {
        let pages = root.len().div_ceil(PAGE_WORDS) + list.len().div_ceil(PAGE_WORDS);
        let is_one = usize::try_from(header.page_count) == Ok(pages);
        (is_one && !are_enough(holders, health)).then(|| Self {
            header,
            root: root.to_vec(),
            list: list.to_vec(),
            holders: holders.to_vec(),
        })
    }

    /// Writes it to as many more members as are needed: what follows the header, a flush, the header, a
    /// flush.
    pub(super) fn complete(mut self, devices: &mut dyn DeviceSet, health: &mut Health, store: &Store) {
        for dev in (0u16..).map(DevIndex::new).take(store.main_count()) {
            if are_enough(&self.holders, health) {
                return;
            }
            if is_whole(health, dev) && !self.holders.contains(&dev) {
                self.copy_to(dev, devices, health, store);
                self.holders.push(dev);
            }
        }
    }

    fn copy_to(&self, dev: DevIndex, devices: &mut dyn DeviceSet, health: &mut Health, store: &Store) {
        let CheckpointHeader { array, area, number, .. } = self.header;
        let offset = |block| store.config.full_offset(usize::from(area), block);
        let (mut out, mut body) = ([0; META_BYTES], BodyCrc::new());
        let mut block = self.header.block;
        for (kind, words) in [(PageKind::Root, &self.root), (PageKind::List, &self.list)] {
            for (index, words) in (0..).zip(words.chunks(PAGE_WORDS)) {
                block += 1;
                let stamp = PageStamp { array, dev, area, block, number, kind, index };
                body.push(encode_page(&stamp, words, &mut out));
                write_or_fail(devices, health, dev, offset(block), &out);
            }
        }
        flush_all(devices, health);
        let header = CheckpointHeader { dev, body_crc: body.finish(), ..self.header };
        header.encode(&mut out);
        write_or_fail(devices, health, dev, offset(header.block), &out);
        flush_all(devices, health);
    }
}
