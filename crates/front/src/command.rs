//! What clients ask for, whatever protocol they speak.

/// A kind of request.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Command {
    /// Give content.
    Read,
    /// Take content.
    Write,
    /// Make what was done durable.
    Flush,
    /// Forget content.
    Discard,
    /// Hold zeros.
    WriteZeroes,
    /// A hint: it will be read soon.
    Cache,
    /// Say what is stored and what is a hole.
    Extents,
}

impl Command {
    /// How many there are.
    pub const COUNT: usize = Self::Extents as usize + 1;

    /// Its place in tables of [`Self::COUNT`] entries.
    pub const fn index(self) -> usize {
        self as usize
    }
}
