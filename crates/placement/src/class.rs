//! The name of an open group.

/// An open group that chunks join; below [`crate::Placement::classes`]. Low classes hold what is expected to
/// be overwritten soon.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Class(u8);

impl Class {
    /// Wraps a raw number.
    pub const fn new(raw: u8) -> Self {
        Self(raw)
    }

    /// The raw number.
    pub const fn get(self) -> u8 {
        self.0
    }

    /// For indexing tables by class.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}
