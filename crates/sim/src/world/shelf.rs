//! A device on the shelf, which is no member but may become one; and a server that is killed while the
//! devices go on.

use super::{Member, World};
use crate::disk::Disk;
use block::{OpKind, Random as _};

impl World {
    /// One more device, which is no member.
    pub fn add_shelf(&mut self, size_bytes: u64) {
        let disk = Disk::new(size_bytes);
        self.members.push(Member {
            disk,
            present: true,
            hidden: 0,
            stride: 0,
            hung_until: 0,
            is_shelf: true,
            silence: None,
        });
        self.layout.data_start.push(u64::MAX);
    }

    /// The devices have become larger, main devices and the one on the shelf.
    pub fn enlarge(&mut self, more_bytes: u64) {
        self.layout.is_enlarged = true;
        let first_log = self.layout.first_log;
        let is_grown = |(index, member): &(usize, &mut Member)| *index < first_log || member.is_shelf;
        for (_, member) in self.members.iter_mut().enumerate().filter(is_grown) {
            member.disk.enlarge(more_bytes);
        }
    }

    /// What a disk has in its cache is durable.
    pub fn settle(&mut self, dev: u16) {
        let disk = &mut self.members[usize::from(dev)].disk;
        disk.flush(disk.stamp());
    }

    /// The disks of two devices change places.
    pub fn swap(&mut self, one: u16, other: u16) {
        let (one, other) = (usize::from(one), usize::from(other));
        self.flights.retain(|flight| !flight.given_up || ![one, other].contains(&flight.op.dev.index()));
        self.ghosts.retain(|ghost| ![one, other].contains(&usize::from(ghost.dev())));
        let rest = self.members.len().min(one.max(other));
        let (front, back) = self.members.split_at_mut(rest);
        if let (Some(one), Some(other)) = (front.get_mut(one.min(other)), back.first_mut()) {
            std::mem::swap(&mut one.disk, &mut other.disk);
            (one.hung_until, other.hung_until) = (0, 0);
            (one.silence, other.silence) = (None, None);
        }
    }

    /// The server is killed, and the machine goes on: what the devices have taken stays in their caches, what
    /// was on its way arrives or does not. It can be started again.
    pub fn kill(&mut self) {
        self.gone.clear();
        self.log_writes.clear();
        self.leave_ghosts();
        for flight in std::mem::take(&mut self.flights) {
            let arrives = flight.op.kind == OpKind::Write && flight.fault.is_none();
            if arrives && self.rng.chance(1, 2) {
                self.members[flight.op.dev.index()].disk.write(flight.offset_bytes, &flight.blocks);
            }
        }
        self.start_over();
    }
}
