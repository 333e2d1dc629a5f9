//! Which items a list that is said piece by piece has said.

/// The number of the list that is being said, or was last: items that bear it were said, or came since it was
/// begun. A byte of each item is enough.
#[derive(Default)]
pub struct ListNumber(u8);

impl ListNumber {
    /// Another list is begun: no item bears its number. `marks` are those of all items.
    pub fn advance<'a>(&mut self, marks: impl Iterator<Item = &'a mut u8>) {
        if self.0 == u8::MAX {
            marks.for_each(|mark| *mark = 0);
            self.0 = 0;
        }
        self.0 += 1;
    }

    /// An item that bears this is said; `false` if it was.
    #[inline]
    pub fn say(&self, said: &mut u8) -> bool {
        std::mem::replace(said, self.0) != self.0
    }

    /// What an item bears that is said.
    #[inline]
    pub fn mark(&self) -> u8 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_item_bears_the_number_of_a_list_that_begins() {
        let (mut number, mut marks) = (ListNumber::default(), [0; 3]);
        for list in 0..1000 {
            number.advance(marks.iter_mut());
            assert!(marks.iter().all(|&mark| mark != number.mark()), "list {list}");
            // The others bear what they were given long ago.
            marks[list % 2] = number.mark();
        }
    }
}
