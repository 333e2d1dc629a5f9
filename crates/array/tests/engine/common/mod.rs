//! An array on memory devices, for the tests of this folder.

use array::{Array, CreateOptions, EngineOptions, NewArray, arrange, create, plan_config};
use block::{Completion, DevIndex, DeviceOp, DeviceSet, Durability, Geometry, IoFault, OpKind, Pool, Slot};
use device::MemorySet;
use format::{ArrayUuid, CodeKind, Consistency, LayoutKind, SchemeKind, Superblock};
use std::cell::RefCell;
use std::rc::Rc;

/// Options of a test array: no idle commit, small pool.
pub fn options() -> EngineOptions {
    let mut options = EngineOptions::default();
    options.commit.idle_ns = None;
    options.pool_bytes = 16 << 20;
    options
}

/// What a test wants.
pub fn create_options(scheme: SchemeKind, k: usize, m: usize) -> CreateOptions {
    CreateOptions {
        scheme,
        code: if m == 1 { CodeKind::Xor } else { CodeKind::Cauchy },
        layout: LayoutKind::Spread,
        consistency: Consistency::Resync,
        geometry: Geometry::new(k, m, 4096).unwrap(),
        reserve_permille: 150,
        unit_rows: None,
    }
}

/// Reads the superblocks back, in member order.
pub fn superblocks(devices: &mut MemorySet, count: usize) -> Vec<Superblock> {
    let mut found = Vec::new();
    for dev in (0..count as u16).map(DevIndex::new) {
        found.extend(Superblock::read_newest(|offset| {
            let mut block = vec![0; 4096];
            devices.read_now(dev, offset, &mut block).ok().map(|()| block)
        }));
    }
    found
}

/// A new array of memory devices.
pub fn fresh(options: &CreateOptions, main_mib: u64, log_mib: u64) -> MemorySet {
    let logs = if options.scheme.has_log() { options.geometry.parity_count() } else { 0 };
    fresh_with_logs(options, main_mib, log_mib, logs)
}

/// The same with so many log devices.
pub fn fresh_with_logs(options: &CreateOptions, main_mib: u64, log_mib: u64, logs: usize) -> MemorySet {
    let n = options.geometry.device_count();
    let config = plan_config(options, main_mib << 20, log_mib << 20, logs).unwrap();
    let sizes: Vec<u64> = (0..n + logs).map(|i| if i < n { main_mib << 20 } else { log_mib << 20 }).collect();
    let mut devices = MemorySet::new(&sizes).unwrap();
    let new = NewArray { uuid: ArrayUuid::new([7; 16]), name: "test".into(), nonce: 99, created_unix_s: 0 };
    create(&mut devices, config, &new).unwrap();
    devices
}

/// Assembles it.
pub fn assemble(
    mut devices: MemorySet,
    count: usize,
    options: EngineOptions,
) -> (Array<MemorySet>, array::RecoveryReport) {
    let found = superblocks(&mut devices, count);
    let arrangement = arrange(&found).unwrap();
    Array::assemble(devices, &arrangement, 4242, options).unwrap()
}

/// Writes `bytes` at `offset` (any 512-byte alignment) and waits.
pub fn write(
    array: &mut Array<MemorySet>,
    offset: u64,
    bytes: &[u8],
    durable: Durability,
) -> Result<(), array::EngineError> {
    let (chunk, slots) = take(array, offset, bytes.len() as u64);
    let mut done = 0;
    for (i, &slot) in slots.iter().enumerate() {
        let from = if i == 0 { (offset % chunk) as usize } else { 0 };
        let take = (bytes.len() - done).min(chunk as usize - from);
        array.engine().pool().bytes_mut(slot)[from..from + take].copy_from_slice(&bytes[done..done + take]);
        done += take;
    }
    let result = array.run(|e, tag| e.write(tag, offset, bytes.len() as u64, &slots, durable));
    give(array, &slots);
    result
}

/// Reads `len` bytes at `offset` and waits.
pub fn read(array: &mut Array<MemorySet>, offset: u64, len: u64) -> Result<Vec<u8>, array::EngineError> {
    let (chunk, slots) = take(array, offset, len);
    let result = array.run(|e, tag| e.read(tag, offset, len, &slots));
    let mut out = Vec::new();
    for (i, &slot) in slots.iter().enumerate() {
        let from = if i == 0 { (offset % chunk) as usize } else { 0 };
        let take = (len as usize - out.len()).min(chunk as usize - from);
        out.extend_from_slice(&array.engine().pool().bytes(slot)[from..from + take]);
    }
    give(array, &slots);
    result.map(|()| out)
}

fn take(array: &mut Array<MemorySet>, offset: u64, len: u64) -> (u64, Vec<Slot>) {
    let chunk = array.engine().store().config.geometry.chunk_bytes() as u64;
    let count = (offset + len).div_ceil(chunk) - offset / chunk;
    let mut slots = Vec::new();
    assert!(array.engine().take_slots(count as usize, &mut slots));
    (chunk, slots)
}

fn give(array: &mut Array<MemorySet>, slots: &[Slot]) {
    slots.iter().for_each(|&slot| array.engine().pool().free(slot));
}

/// Discards a range.
pub fn discard(array: &mut Array<MemorySet>, offset: u64, len: u64) -> Result<(), array::EngineError> {
    let mut slots = Vec::new();
    assert!(array.engine().take_slots(2, &mut slots));
    let result = array.run(|e, tag| e.zero(tag, offset, len, [slots[0], slots[1]], Durability::Volatile));
    give(array, &slots);
    result
}

/// Keeps `depth` writes of one chunk under way until `count` have ended; `next` says where each goes, and
/// whether it asks for durability.
pub fn write_many<D: DeviceSet>(
    array: &mut Array<D>,
    (count, depth): (u64, usize),
    mut next: impl FnMut() -> (u64, Durability),
) {
    let chunk = array.engine().store().config.geometry.chunk_bytes() as u64;
    let (mut asked, mut answers) = (0, Vec::new());
    let mut under_way: Vec<(u64, Slot)> = Vec::new();
    while asked < count || !under_way.is_empty() {
        while asked < count && under_way.len() < depth {
            let mut slots = Vec::new();
            assert!(array.engine().take_slots(1, &mut slots));
            let (offset, durable) = next();
            array.engine().write(asked, offset, chunk, &slots, durable);
            under_way.push((asked, slots[0]));
            asked += 1;
        }
        array.turn();
        array.take_answers(&mut answers);
        for done in answers.drain(..) {
            assert_eq!(done.result, Ok(()));
            let at = under_way.iter().position(|&(tag, _)| tag == done.tag).unwrap();
            let (_, slot) = under_way.swap_remove(at);
            array.engine().pool().free(slot);
        }
    }
}

/// The same content once more, on so many members.
pub fn copy_of(image: &MemorySet, members: usize) -> MemorySet {
    let members = || (0..members as u16).map(DevIndex::new);
    let mut copy = MemorySet::new(&members().map(|dev| image.size_bytes(dev)).collect::<Vec<_>>()).unwrap();
    members().for_each(|dev| copy.bytes_mut(dev).copy_from_slice(image.bytes(dev)));
    copy
}

/// A start of a small array writes fewer times by far.
pub const WRITES_OF_A_START_MAX: u32 = 400;

/// Members whose power fails after so many writes, and of which one may not answer.
pub struct Cut {
    pub inner: Rc<RefCell<MemorySet>>,
    pub writes_left: u32,
    pub gone: Option<DevIndex>,
}

impl Cut {
    fn may(&self, dev: DevIndex) -> Result<(), IoFault> {
        if self.gone == Some(dev) { Err(IoFault::Gone) } else { Ok(()) }
    }
}

impl DeviceSet for Cut {
    fn submit(&mut self, pool: &mut Pool, ops: &[DeviceOp]) {
        self.inner.borrow_mut().submit(pool, ops);
    }

    fn poll(&mut self, pool: &mut Pool, completions: &mut Vec<Completion>) {
        self.inner.borrow_mut().poll(pool, completions);
    }

    fn wait(&mut self, timeout_ns: u64) {
        self.inner.borrow_mut().wait(timeout_ns);
    }

    fn size_bytes(&self, dev: DevIndex) -> u64 {
        self.inner.borrow().size_bytes(dev)
    }

    fn read_now(&mut self, dev: DevIndex, offset_bytes: u64, into: &mut [u8]) -> Result<(), IoFault> {
        self.may(dev)?;
        self.inner.borrow_mut().read_now(dev, offset_bytes, into)
    }

    fn write_now(&mut self, dev: DevIndex, offset_bytes: u64, from: &[u8]) -> Result<(), IoFault> {
        self.may(dev)?;
        self.writes_left = self.writes_left.checked_sub(1).ok_or(IoFault::Gone)?;
        self.inner.borrow_mut().write_now(dev, offset_bytes, from)
    }

    fn flush_now(&mut self, dev: DevIndex) -> Result<(), IoFault> {
        self.may(dev)
    }
}

/// What a device says of a failed operation.
pub const EIO: IoFault = IoFault::Device { errno: 5 };

/// What stands between an array and its devices. What a test does not care about goes through.
pub trait Layer<D: DeviceSet> {
    /// As [`DeviceSet::submit`].
    fn submit(&mut self, inner: &mut D, pool: &mut Pool, ops: &[DeviceOp]) {
        inner.submit(pool, ops);
    }

    /// As [`DeviceSet::poll`].
    fn poll(&mut self, inner: &mut D, pool: &mut Pool, completions: &mut Vec<Completion>) {
        inner.poll(pool, completions);
    }

    /// A synchronous read begins.
    fn reads_now(&mut self, _dev: DevIndex, _offset_bytes: u64, _length: usize) {}

    /// Whether a synchronous write to a member is carried out.
    fn may_write_now(&self, _dev: DevIndex) -> Result<(), IoFault> {
        Ok(())
    }
}

/// Devices behind a layer.
pub struct Layered<D, L> {
    pub inner: D,
    pub layer: L,
}

impl<D: DeviceSet, L: Layer<D>> DeviceSet for Layered<D, L> {
    fn submit(&mut self, pool: &mut Pool, ops: &[DeviceOp]) {
        self.layer.submit(&mut self.inner, pool, ops);
    }

    fn poll(&mut self, pool: &mut Pool, completions: &mut Vec<Completion>) {
        self.layer.poll(&mut self.inner, pool, completions);
    }

    fn wait(&mut self, timeout_ns: u64) {
        self.inner.wait(timeout_ns);
    }

    fn size_bytes(&self, dev: DevIndex) -> u64 {
        self.inner.size_bytes(dev)
    }

    fn read_now(&mut self, dev: DevIndex, offset_bytes: u64, into: &mut [u8]) -> Result<(), IoFault> {
        self.layer.reads_now(dev, offset_bytes, into.len());
        self.inner.read_now(dev, offset_bytes, into)
    }

    fn write_now(&mut self, dev: DevIndex, offset_bytes: u64, from: &[u8]) -> Result<(), IoFault> {
        self.layer.may_write_now(dev)?;
        self.inner.write_now(dev, offset_bytes, from)
    }

    fn flush_now(&mut self, dev: DevIndex) -> Result<(), IoFault> {
        self.inner.flush_now(dev)
    }
}

/// Memory some of which fails.
pub type Ailing = Layered<MemorySet, Ailment>;

/// A member does not carry out operations of a kind, once there is one.
pub struct Ailment {
    pub bad: Option<(DevIndex, OpKind)>,
    /// Before this offset it does.
    pub from_bytes: u64,
    /// What it answers then.
    pub fault: IoFault,
    /// Members that nothing can be written to while the array is being assembled.
    pub mute: Vec<DevIndex>,
    failed: Vec<Completion>,
}

impl Ailing {
    /// Well so far.
    pub fn new(inner: MemorySet) -> Self {
        let layer = Ailment { bad: None, from_bytes: 0, fault: EIO, mute: Vec::new(), failed: Vec::new() };
        Self { inner, layer }
    }
}

impl Layer<MemorySet> for Ailment {
    fn submit(&mut self, inner: &mut MemorySet, pool: &mut Pool, ops: &[DeviceOp]) {
        for op in ops {
            if self.bad == Some((op.dev, op.kind)) && op.offset_bytes >= self.from_bytes {
                self.failed.push(Completion { tag: op.tag, result: Err(self.fault) });
            } else {
                inner.submit(pool, std::slice::from_ref(op));
            }
        }
    }

    fn poll(&mut self, inner: &mut MemorySet, pool: &mut Pool, completions: &mut Vec<Completion>) {
        completions.append(&mut self.failed);
        inner.poll(pool, completions);
    }

    fn may_write_now(&self, dev: DevIndex) -> Result<(), IoFault> {
        if self.mute.contains(&dev) { Err(EIO) } else { Ok(()) }
    }
}
