//! Serial numbers of devices: by which of them a place in the array was, and is, held.

use block::Epoch;

/// Serial numbers of an assembly begin with its epoch times this. If power fails in the round of superblocks
/// in which a device gets one, that device alone may know of it. What the next assembly gives another device
/// is another number therefore, and the first is known as one that does not belong.
const SERIALS_PER_EPOCH: u64 = 256;

/// Below the first that an assembly gives. Beyond four billion, or 16 million starts, they are given one
/// after the other, as they were before: 0.
pub fn before_those_of(epoch: Epoch) -> u32 {
    u32::try_from(epoch.get().saturating_mul(SERIALS_PER_EPOCH)).unwrap_or(0)
}

/// Whether a device with this serial number, one of so many members, may have come to its place in this
/// assembly or in a later one. Those an array is created with are numbered from 1. Builds before this rule
/// counted on from there, so of such numbers nobody knows.
pub fn may_have_come_since(serial: u32, epoch: Epoch, members: usize) -> bool {
    let first = before_those_of(epoch);
    let is_old = u64::from(serial) < SERIALS_PER_EPOCH;
    let is_first = usize::try_from(serial).is_ok_and(|serial| serial <= members);
    serial >= first || (is_old && !is_first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_came_when_is_told_by_the_number() {
        let came = |serial, epoch| may_have_come_since(serial, Epoch::new(epoch), 9);
        assert!(!came(1, 1) && !came(9, 70), "of creation");
        assert!(came(10, 70) && came(255, 70), "given by a build that counted on");
        assert!(came(257, 1) && came(513, 2) && came(700, 2), "of this assembly, or a later one");
        assert!(!came(513, 3) && !came(770, 4), "of one before");
        assert!(came(1, 1 << 24), "nobody can tell any more");
    }
}
