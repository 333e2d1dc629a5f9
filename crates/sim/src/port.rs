//! The world as the machine and the shards of an array hold it, all of them the same one.

use crate::disk::{BLOCK_BYTES, Block, bytes_of};
use crate::world::{BESIDE, World};
use array::Array;
use block::{Completion, DevIndex, DeviceOp, DeviceSet, IoFault, Paired, Pool, Slice};
use format::{ArrayUuid, Superblock};
use std::cell::{Ref, RefCell, RefMut};
use std::rc::Rc;

/// One shard as it runs.
pub type Shard = Array<Paired<Slice<Port>>>;

/// The newest superblock in a slice of a device, as a power cut at this moment would leave it; `array` is the
/// shard's UUID.
pub fn superblock_of(slice: &[Option<Block>], array: ArrayUuid) -> Option<Superblock> {
    Superblock::read_newest_of(array, |offset| {
        let block = usize::try_from(offset).ok()? / BLOCK_BYTES;
        slice.get(block).map(bytes_of)
    })
}

/// A world that the machine and the array both hold.
#[derive(Clone)]
pub struct Shared(Rc<RefCell<World>>);

impl Shared {
    /// Shares a world.
    pub fn new(world: World) -> Self {
        Self(Rc::new(RefCell::new(world)))
    }

    /// The world, to look at.
    pub fn look(&self) -> Ref<'_, World> {
        self.0.borrow()
    }

    /// The world, to change.
    pub fn change(&self) -> RefMut<'_, World> {
        self.0.borrow_mut()
    }

    /// The devices as a shard drives them.
    pub fn port(&self, shard: u16) -> Port {
        Port { world: self.clone(), shard, first: 0 }
    }

    /// A device that is no member, as a shard drives it beside those: its number is 0 there.
    pub fn port_of(&self, shard: u16, dev: u16) -> Port {
        Port { world: self.clone(), shard: shard + BESIDE, first: dev }
    }
}

/// The devices as one shard drives them: what it began ends at it, and only what it began.
#[derive(Clone)]
pub struct Port {
    world: Shared,
    shard: u16,
    /// The device that is number 0.
    first: u16,
}

impl Port {
    fn of(&self, dev: DevIndex) -> DevIndex {
        DevIndex::new(self.first + dev.get())
    }
}

impl DeviceSet for Port {
    fn submit(&mut self, pool: &mut Pool, ops: &[DeviceOp]) {
        if self.first == 0 {
            return self.world.change().submit(self.shard, pool, ops);
        }
        let ops: Vec<DeviceOp> = ops.iter().map(|op| DeviceOp { dev: self.of(op.dev), ..*op }).collect();
        self.world.change().submit(self.shard, pool, &ops);
    }

    fn poll(&mut self, pool: &mut Pool, completions: &mut Vec<Completion>) {
        self.world.change().poll(self.shard, pool, completions);
    }

    fn wait(&mut self, _timeout_ns: u64) {
        self.world.change().tick_to_next();
    }

    fn give_up(&mut self, dev: DevIndex) {
        self.world.change().give_up(self.shard, self.of(dev));
    }

    fn size_bytes(&self, dev: DevIndex) -> u64 {
        self.world.look().size_bytes(self.shard, self.of(dev))
    }

    fn read_now(&mut self, dev: DevIndex, offset_bytes: u64, into: &mut [u8]) -> Result<(), IoFault> {
        self.world.change().read_now((self.shard, self.of(dev)), offset_bytes, into)
    }

    fn write_now(&mut self, dev: DevIndex, offset_bytes: u64, from: &[u8]) -> Result<(), IoFault> {
        self.world.change().write_now((self.shard, self.of(dev)), offset_bytes, from)
    }

    fn flush_now(&mut self, dev: DevIndex) -> Result<(), IoFault> {
        self.world.change().flush_now((self.shard, self.of(dev)))
    }
}
