//! How much clients may make the server hold, of all together.

/// Bytes that are held, and how many may be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Budget {
    used_bytes: usize,
    max_bytes: usize,
}

impl Budget {
    /// Nothing is held yet.
    pub fn new(max_bytes: usize) -> Self {
        Self { used_bytes: 0, max_bytes }
    }

    /// Takes so many bytes, if there are as many.
    #[must_use]
    pub fn take(&mut self, bytes: usize) -> bool {
        let fits = bytes <= self.max_bytes.saturating_sub(self.used_bytes);
        if fits {
            self.used_bytes += bytes;
        }
        fits
    }

    /// Takes what is there already, whether it fits or not; the next who asks is refused.
    pub fn note(&mut self, bytes: usize) {
        self.used_bytes = self.used_bytes.saturating_add(bytes);
    }

    /// Gives back what was taken.
    pub fn give(&mut self, bytes: usize) {
        debug_assert!(bytes <= self.used_bytes, "more is given back than was taken");
        self.used_bytes = self.used_bytes.saturating_sub(bytes);
    }

    /// How much is held.
    pub fn used_bytes(&self) -> usize {
        self.used_bytes
    }

    /// Whether more is held than may be.
    pub fn is_over(&self) -> bool {
        self.used_bytes > self.max_bytes
    }
}
