//! Streams: what the host says of a write, and which writes share blocks.
//!
//! The host tags each write ([`Tag`]); the device keeps tags apart as far as its [`StreamOptions`] say. A
//! *slot* is what the device really has: a set of open blocks. Pages of different slots never share a block,
//! also when they are copied by GC, where they stay in their slot (P-02, P-05, A-23).
//!
//! # When the device has too few slots
//! Slots are handed out when a tag is first written, as hosts open NVMe streams on demand. Slot 0 belongs to
//! `Data(0)` from the start. A tag that finds none left shares the slot of the next lower class of its kind
//! that has one (`Parity(2)` with `Parity(1)`, else `Parity(0)`), and if there is none, slot 0.

use crate::error::{ConfigError, within};

/// Classes of data, and of parity, that can be told apart.
pub const CLASSES: u8 = 8;
/// Tags there are.
const TAGS: usize = 2 * CLASSES as usize + 2;

/// What a write is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Tag {
    /// User data of a hotness class; 0 if the host knows none. Classes from [`CLASSES`] on count as
    /// the last one.
    Data(u8),
    /// Parity of an update-pattern class (L-18).
    Parity(u8),
    /// Log chunks.
    Log,
    /// Metadata.
    Metadata,
}

impl Tag {
    fn index(self) -> usize {
        match self {
            Self::Data(class) => usize::from(class.min(CLASSES - 1)),
            Self::Parity(class) => usize::from(CLASSES + class.min(CLASSES - 1)),
            Self::Log => usize::from(2 * CLASSES),
            Self::Metadata => usize::from(2 * CLASSES) + 1,
        }
    }

    /// The tag whose slot this one shares if it gets none.
    fn fallback(self) -> Self {
        match self {
            Self::Data(class @ 1..) => Self::Data(class.min(CLASSES - 1) - 1),
            Self::Parity(class @ 1..) => Self::Parity(class.min(CLASSES - 1) - 1),
            Self::Data(0) | Self::Parity(0) | Self::Log | Self::Metadata => Self::Data(0),
        }
    }

    /// Whether it is parity: what convertible programming may write in SLC mode (P-06).
    pub fn is_parity(self) -> bool {
        match self {
            Self::Parity(_) => true,
            Self::Data(_) | Self::Log | Self::Metadata => false,
        }
    }
}

impl From<block::Stream> for Tag {
    fn from(stream: block::Stream) -> Self {
        match stream {
            block::Stream::Data => Self::Data(0),
            block::Stream::Parity => Self::Parity(0),
            block::Stream::Log => Self::Log,
            block::Stream::Metadata => Self::Metadata,
        }
    }
}

/// Which tags are kept apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Separation {
    /// None: all writes share blocks.
    #[default]
    None,
    /// Parity from everything else, as in the parity-stream paper (P-01).
    Parity,
    /// Classes of data and of parity from each other; log and metadata go with `Data(0)`.
    Class,
    /// Every tag from every other.
    All,
}

impl Separation {
    /// The tag that stands for `tag`.
    fn narrow(self, tag: Tag) -> Tag {
        match (self, tag) {
            (Self::None, _) | (Self::Parity | Self::Class, Tag::Log | Tag::Metadata) => Tag::Data(0),
            (Self::Parity, Tag::Data(_)) => Tag::Data(0),
            (Self::Parity, Tag::Parity(_)) => Tag::Parity(0),
            (Self::Class, Tag::Data(_) | Tag::Parity(_)) | (Self::All, _) => tag,
        }
    }
}

/// How a device keeps streams.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StreamOptions {
    /// Which tags are kept apart.
    pub separation: Separation,
    /// Slots the device has; drives of today have 8 or 16.
    pub limit: u8,
    /// Classes into which the device itself sorts parity that comes as `Parity(0)`, by how long the page's
    /// version before lived (L-18); 1 is off.
    pub parity_classes: u8,
}

impl Default for StreamOptions {
    fn default() -> Self {
        Self { separation: Separation::None, limit: 8, parity_classes: 1 }
    }
}

impl StreamOptions {
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        within("stream limit", u64::from(self.limit), 1, TAGS as u64)?;
        within("parity classes", u64::from(self.parity_classes), 1, 4)?;
        let apart = matches!(self.separation, Separation::Class | Separation::All);
        if self.parity_classes > 1 && !apart {
            return Err(ConfigError::new(
                "parity classes",
                self.parity_classes,
                "1, or streams kept apart by class or all",
            ));
        }
        Ok(())
    }

    /// Slots that can come into use.
    pub(crate) fn slots_max(&self) -> u8 {
        match self.separation {
            Separation::None => 1,
            Separation::Parity => self.limit.min(2),
            Separation::Class => self.limit.min(2 * CLASSES),
            Separation::All => self.limit,
        }
    }
}

/// Which slot a tag has.
#[derive(Clone, Debug)]
pub(crate) struct SlotTable {
    options: StreamOptions,
    slots: [Option<u8>; TAGS],
    used: u8,
    /// Bit per slot: whether parity goes there, and nothing else.
    parity: u32,
}

impl SlotTable {
    pub(crate) fn new(options: StreamOptions) -> Self {
        let mut slots = [None; TAGS];
        slots[Tag::Data(0).index()] = Some(0);
        Self { options, slots, used: 1, parity: 0 }
    }

    pub(crate) fn slot_of(&mut self, tag: Tag) -> u8 {
        let mut tag = self.options.separation.narrow(tag);
        if let Some(slot) = self.slots[tag.index()] {
            return slot;
        }
        if self.used < self.options.limit {
            let slot = self.used;
            self.used += 1;
            self.parity |= u32::from(tag.is_parity()) << slot;
            self.slots[tag.index()] = Some(slot);
            return slot;
        }
        let wanted = tag.index();
        let slot = loop {
            tag = tag.fallback();
            if let Some(slot) = self.slots[tag.index()] {
                break slot;
            }
        };
        self.slots[wanted] = Some(slot);
        slot
    }

    /// Whether nothing but parity is in this slot.
    pub(crate) fn is_parity(&self, slot: u8) -> bool {
        self.parity & (1 << slot) != 0
    }

    /// Slots handed out.
    pub(crate) fn used(&self) -> u8 {
        self.used
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(separation: Separation, limit: u8) -> SlotTable {
        SlotTable::new(StreamOptions { separation, limit, parity_classes: 1 })
    }

    #[test]
    fn separations_put_tags_into_slots() {
        let mut none = table(Separation::None, 8);
        assert!(
            [Tag::Parity(3), Tag::Log, Tag::Data(7)].map(|tag| none.slot_of(tag)).iter().all(|&s| s == 0)
        );
        let mut parity = table(Separation::Parity, 8);
        let found = [Tag::Data(2), Tag::Parity(0), Tag::Parity(4), Tag::Log, Tag::Metadata]
            .map(|t| parity.slot_of(t));
        assert_eq!(found, [0, 1, 1, 0, 0]);
        assert!(parity.is_parity(1) && !parity.is_parity(0));
        let mut all = table(Separation::All, 16);
        let found =
            [Tag::Log, Tag::Parity(0), Tag::Data(0), Tag::Parity(1), Tag::Log].map(|t| all.slot_of(t));
        assert_eq!(found, [1, 2, 0, 3, 1]);
        assert_eq!(all.used(), 4);
    }

    #[test]
    fn too_few_slots_fall_back_to_the_next_lower_class_then_to_slot_zero() {
        let mut table = table(Separation::All, 3);
        assert_eq!(table.slot_of(Tag::Parity(0)), 1);
        assert_eq!(table.slot_of(Tag::Parity(2)), 2);
        assert_eq!(table.slot_of(Tag::Parity(1)), 1); // none left: with Parity(0)
        assert_eq!(table.slot_of(Tag::Parity(3)), 2); // with Parity(2)
        assert_eq!(table.slot_of(Tag::Log), 0);
        assert!(table.is_parity(1) && table.is_parity(2));
        assert_eq!(table.slot_of(Tag::Parity(200)), table.slot_of(Tag::Parity(7)));
    }

    #[test]
    fn options_are_checked() {
        let bad = StreamOptions { limit: 0, ..StreamOptions::default() };
        assert_eq!(
            bad.check().map_err(|e| e.to_string()),
            Err("stream limit: found 0, expected 1 to 18".to_owned())
        );
        let bad = StreamOptions { parity_classes: 2, ..StreamOptions::default() };
        assert!(bad.check().is_err());
    }
}
