//! A table with stable places, each known by a key that says what kind of thing it names.
//!
//! Places are used again, the newest first. What a place held stays there until its next user comes: an entry
//! that owns buffers can so be used again without a new allocation ([`Slab::reuse`]).

use std::fmt;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;
use std::ops::{Index, IndexMut};

/// The place of a `T` in its [`Slab`]. Keys of different tables do not fit each other.
pub struct Key<T> {
    index: u32,
    of: PhantomData<fn() -> T>,
}

impl<T> Key<T> {
    /// The key of a place whose number went through something that knows numbers only.
    pub const fn from_index(index: u32) -> Self {
        Self { index, of: PhantomData }
    }

    /// Number of the place, for what knows numbers only.
    pub const fn index(self) -> u32 {
        self.index
    }
}

impl<T> Clone for Key<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Key<T> {}

impl<T> PartialEq for Key<T> {
    fn eq(&self, other: &Self) -> bool {
        self.index == other.index
    }
}

impl<T> Eq for Key<T> {}

impl<T> Hash for Key<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.index.hash(state);
    }
}

impl<T> fmt::Debug for Key<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.index)
    }
}

struct Place<T> {
    entry: T,
    used: bool,
}

/// See the module's documentation.
pub struct Slab<T> {
    places: Vec<Place<T>>,
    free: Vec<u32>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self { places: Vec::new(), free: Vec::new() }
    }
}

impl<T> Slab<T> {
    /// Takes a place for `entry`.
    #[inline]
    pub fn insert(&mut self, entry: T) -> Key<T> {
        self.insert_with(|_| entry)
    }

    /// Takes a place for an entry that knows its own key.
    #[inline]
    pub fn insert_with(&mut self, make: impl FnOnce(Key<T>) -> T) -> Key<T> {
        match self.free.pop() {
            Some(index) => {
                let key = Key::from_index(index);
                let place = &mut self.places[index as usize];
                (place.entry, place.used) = (make(key), true);
                key
            }
            None => {
                let index = u32::try_from(self.places.len()).expect("work in flight is bounded");
                self.append(make(Key::from_index(index)))
            }
        }
    }

    /// Takes a place whose entry is what its last user left; `fresh` makes one if all places are in use. The
    /// caller resets it.
    #[inline]
    pub fn reuse(&mut self, fresh: impl FnOnce() -> T) -> Key<T> {
        match self.free.pop() {
            Some(index) => {
                self.places[index as usize].used = true;
                Key::from_index(index)
            }
            None => self.append(fresh()),
        }
    }

    #[cold]
    fn append(&mut self, entry: T) -> Key<T> {
        let index = u32::try_from(self.places.len()).expect("work in flight is bounded");
        self.places.push(Place { entry, used: true });
        Key::from_index(index)
    }

    /// Gives a place back.
    #[inline]
    pub fn release(&mut self, key: Key<T>) {
        let used = &mut self.places[key.index as usize].used;
        assert!(std::mem::replace(used, false), "a place is given back once");
        self.free.push(key.index);
    }

    /// The entry, if the place is in use.
    pub fn get(&self, key: Key<T>) -> Option<&T> {
        self.places.get(key.index as usize).filter(|place| place.used).map(|place| &place.entry)
    }

    /// Entries in use.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.places.iter().filter(|place| place.used).map(|place| &place.entry)
    }

    /// How many places are in use.
    pub fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }

    /// Whether no place is in use.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<T: Copy> Slab<T> {
    /// Takes an entry out and gives its place back.
    pub fn remove(&mut self, key: Key<T>) -> T {
        let entry = self[key];
        self.release(key);
        entry
    }
}

impl<T> Index<Key<T>> for Slab<T> {
    type Output = T;

    #[inline]
    fn index(&self, key: Key<T>) -> &T {
        &self.places[key.index as usize].entry
    }
}

impl<T> IndexMut<Key<T>> for Slab<T> {
    #[inline]
    fn index_mut(&mut self, key: Key<T>) -> &mut T {
        &mut self.places[key.index as usize].entry
    }
}

#[cfg(test)]
mod tests {
    use super::Slab;

    #[test]
    fn a_place_is_used_again_with_what_it_owns() {
        let mut slab: Slab<Vec<u8>> = Slab::default();
        let first = slab.insert(vec![1, 2, 3]);
        slab.release(first);
        assert!(slab.is_empty() && slab.get(first).is_none());
        let again = slab.reuse(Vec::new);
        assert_eq!((again, slab[again].as_slice(), slab.len()), (first, &[1, 2, 3][..], 1));
    }

    #[test]
    fn the_place_given_back_last_is_taken_first() {
        let mut slab = Slab::default();
        let keys: Vec<_> = (0..3).map(|number| slab.insert(number)).collect();
        assert_eq!((slab.remove(keys[0]), slab.remove(keys[2])), (0, 2));
        assert_eq!(slab.iter().copied().collect::<Vec<i32>>(), [1]);
        assert_eq!((slab.insert(7), slab.insert(8), slab.insert(9).index()), (keys[2], keys[0], 3));
    }

    #[test]
    #[should_panic(expected = "given back once")]
    fn a_place_is_given_back_once() {
        let mut slab = Slab::default();
        let key = slab.insert(());
        slab.release(key);
        slab.release(key);
    }
}
