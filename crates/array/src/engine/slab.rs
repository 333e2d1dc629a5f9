//! A table with stable places and a free list; entries are boxed nowhere and recycled in place.

/// See the module's documentation.
pub struct Slab<T> {
    entries: Vec<T>,
    used: Vec<bool>,
    free: Vec<u32>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self { entries: Vec::new(), used: Vec::new(), free: Vec::new() }
    }
}

impl<T: Default> Slab<T> {
    /// A place whose entry is whatever its last user left (or the default); the caller resets it.
    pub fn take(&mut self) -> u32 {
        let place = self.free.pop().unwrap_or_else(|| {
            self.entries.push(T::default());
            self.used.push(false);
            u32::try_from(self.entries.len() - 1).expect("work in flight is bounded")
        });
        self.used[place as usize] = true;
        place
    }

    /// Gives a place back.
    pub fn give(&mut self, place: u32) {
        assert!(std::mem::replace(&mut self.used[place as usize], false), "a place is given back once");
        self.free.push(place);
    }

    /// All entries, those that nobody uses included.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.entries.iter()
    }

    /// How many places are taken.
    pub fn len(&self) -> usize {
        self.entries.len() - self.free.len()
    }
}

impl<T> std::ops::Index<u32> for Slab<T> {
    type Output = T;

    fn index(&self, place: u32) -> &T {
        &self.entries[place as usize]
    }
}

impl<T> std::ops::IndexMut<u32> for Slab<T> {
    fn index_mut(&mut self, place: u32) -> &mut T {
        &mut self.entries[place as usize]
    }
}

/// Numbers handed out in order; knows the oldest that has not come back.
#[derive(Default)]
pub struct Tickets {
    oldest: u64,
    done: std::collections::VecDeque<bool>,
}

impl Tickets {
    /// The next number.
    pub fn issue(&mut self) -> u64 {
        self.done.push_back(false);
        self.next() - 1
    }

    /// A number came back.
    pub fn finish(&mut self, ticket: u64) {
        self.done[(ticket - self.oldest) as usize] = true;
        while self.done.front() == Some(&true) {
            self.done.pop_front();
            self.oldest += 1;
        }
    }

    /// All numbers below this have come back.
    pub fn oldest(&self) -> u64 {
        self.oldest
    }

    /// The number that will be issued next.
    pub fn next(&self) -> u64 {
        self.oldest + self.done.len() as u64
    }
}
