//! Members as paths: opening, locking, describing, and synchronous I/O.
//!
//! A member is a block device or a regular file. It is opened with O_DIRECT (without, and with a [`Note`],
//! where the file system refuses) and locked: `flock` keeps other processes of ours out, O_EXCL on a block
//! device keeps mounts and md out.

mod content;
mod direct;
mod error;
mod extent;
mod facts;
mod helpers;
mod open;
mod place;
mod probe;
mod signature;

pub use content::{Content, first_content};
pub(crate) use direct::RUN_MAX;
pub use error::OpenError;
pub use extent::share_bytes;
pub use facts::{Identity, identity};
use helpers::Helpers;
pub use open::{Access, DirectIo, Note, OpenOptions};
pub use place::Whereabouts;
pub use probe::{Existing, Probe, allocate_file, create_file, probe};

use crate::operation::{assert_grid, range_fits};
use crate::shelter::Shelter;
use crate::streams::WriteStreams;
use block::{DevIndex, FlushNow, IoFault, Pool, ReadNow, WriteNow};
use std::fs::File;
use std::io::{self, IoSliceMut};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// Threads that read from one member at most: an SSD answers several requests in hardly more time than one.
const MEMBER_THREADS: usize = 4;

/// Bytes that are worth a thread of their own: it takes as long to wake as the reading of a few blocks.
const THREAD_BYTES_MIN: usize = 256 << 10;

/// What O_DIRECT asks of addresses in memory, everywhere.
const ALIGNMENT: usize = 4096;

/// Synchronous I/O goes through an aligned buffer of this size, which O_DIRECT asks for.
const BOUNCE_BYTES: usize = 1 << 20;

/// What a member's path names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A regular file.
    File,
    /// A block device.
    Block,
}

/// A file under a lock of ours, which goes with it.
#[derive(Debug)]
struct LockedFile(File);

impl Drop for LockedFile {
    fn drop(&mut self) {
        // Closing alone would do, were it not that a ring's registration keeps the file open until the kernel
        // gets round to taking the ring down.
        let _ = self.0.unlock();
    }
}

/// One opened and locked member. A clone is the same open file under the same lock, for another set of
/// devices.
#[derive(Clone, Debug)]
pub struct Member {
    file: Arc<LockedFile>,
    path: PathBuf,
    kind: Kind,
    size_bytes: u64,
    logical_block_bytes: u32,
    direct_io: bool,
    is_allocated: bool,
    may_block: bool,
    in_memory: bool,
    streams: WriteStreams,
    /// As it was opened: a device that does not answer is not asked again.
    identity: Identity,
}

impl Member {
    /// Where it was found.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Which device it is, as when it was opened.
    pub fn identity(&self) -> Identity {
        self.identity
    }

    /// File or block device.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Size when it was opened, or [measured](Members::measure) since.
    pub fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    /// The smallest unit it can write without reading; at most 4096.
    pub fn logical_block_bytes(&self) -> u32 {
        self.logical_block_bytes
    }

    /// Whether transfers bypass the page cache.
    pub fn direct_io(&self) -> bool {
        self.direct_io
    }

    /// A file that had all its room when it was opened: discards would take it away.
    pub fn is_allocated(&self) -> bool {
        self.is_allocated
    }

    /// Whoever starts a transfer may have to wait for another process or machine.
    pub(crate) fn may_block(&self) -> bool {
        self.may_block
    }

    /// A file of a file system in memory: transfers never wait.
    pub(crate) fn in_memory(&self) -> bool {
        self.in_memory
    }

    /// What a drive is told of each write.
    pub fn write_streams(&self) -> &WriteStreams {
        &self.streams
    }

    pub(crate) fn file(&self) -> &File {
        &self.file.0
    }
}

/// The members of an array by index, some possibly absent.
///
/// Can move between threads, unlike the ring that is later started on it.
pub struct Members {
    list: Vec<Option<Member>>,
    options: OpenOptions,
    bounce: Pool,
    helpers: Helpers,
    /// Where writes go, if not to the members.
    shelter: Option<Shelter>,
}

impl Members {
    /// Opens and locks one member for every path; `None` makes an absent member.
    pub fn open(paths: &[Option<PathBuf>], options: OpenOptions) -> Result<Self, OpenError> {
        open::refuse_duplicates(paths)?;
        let list =
            paths.iter().map(|path| path.as_deref().map(|path| Member::open(path, options)).transpose());
        let list = list.collect::<Result<Vec<_>, _>>()?;
        let shelter = (options.access == Access::Sheltered).then(Shelter::default);
        let (bounce, helpers) = (Pool::new(BOUNCE_BYTES, 1), Helpers::default());
        Ok(Self { list, options, bounce, helpers, shelter })
    }

    /// The same members once more, under the same locks.
    pub fn share(&self) -> Self {
        let (list, shelter) = (self.list.clone(), self.shelter.clone());
        let (bounce, helpers) = (Pool::new(BOUNCE_BYTES, 1), Helpers::default());
        Self { list, options: self.options, bounce, helpers, shelter }
    }

    /// Where writes go, if not to the members.
    pub fn shelter(&self) -> Option<&Shelter> {
        self.shelter.as_ref()
    }

    /// Which files and devices are open.
    pub fn identities(&self) -> Vec<Identity> {
        self.list.iter().flatten().map(|member| member.identity).collect()
    }

    /// How many members there are, absent ones included.
    pub fn count(&self) -> usize {
        self.list.len()
    }

    /// The member at an index, unless absent.
    pub fn get(&self, dev: DevIndex) -> Option<&Member> {
        self.list.get(dev.index())?.as_ref()
    }

    /// What is worth telling the operator about these members.
    pub fn notes(&self) -> Vec<Note> {
        let buffered = self.list.iter().flatten().filter(|member| !member.direct_io);
        buffered.map(|member| Note::Buffered { path: member.path.clone() }).collect()
    }

    /// Size of a member in bytes; 0 if it is absent.
    pub fn size_bytes(&self, dev: DevIndex) -> u64 {
        self.get(dev).map_or(0, Member::size_bytes)
    }

    /// Looks which members have become larger since they were opened.
    pub fn measure(&mut self) {
        for member in self.list.iter_mut().flatten() {
            let now = rustix::fs::seek(member.file(), rustix::fs::SeekFrom::End(0));
            member.size_bytes = now.map_or(member.size_bytes, |bytes| bytes.max(member.size_bytes));
        }
    }

    /// Opens `path` in the place of `dev`; the old member is closed and unlocked. An index past the end adds
    /// absent members up to it. A device may take its own place again; if that fails, it is absent.
    pub fn replace(&mut self, dev: DevIndex, path: &Path) -> Result<(), OpenError> {
        let others = self.list.iter().enumerate().filter(|&(index, _)| index != dev.index());
        let mut paths: Vec<_> = others.map(|(_, member)| member.as_ref().map(|m| m.path.clone())).collect();
        paths.push(Some(path.to_owned()));
        open::refuse_duplicates(&paths)?;
        if let Some(old) = self.get(dev)
            && open::refuse_duplicates(&[Some(old.path.clone()), Some(path.to_owned())]).is_err()
        {
            self.remove(dev); // its own lock would shut it out
        }
        self.put(dev, Member::open(path, self.options)?);
        Ok(())
    }

    /// Puts a member that was opened elsewhere in the place of `dev`, with its lock. The old one is closed
    /// and unlocked.
    pub fn put(&mut self, dev: DevIndex, member: Member) {
        while self.list.len() <= dev.index() {
            self.list.push(None);
        }
        self.list[dev.index()] = Some(member);
    }

    /// Takes a member out with its lock; it is absent from now on.
    pub fn take(&mut self, dev: DevIndex) -> Option<Member> {
        self.list.get_mut(dev.index()).and_then(Option::take)
    }

    /// Closes and unlocks a member, which is absent from now on.
    pub fn remove(&mut self, dev: DevIndex) {
        if let Some(member) = self.list.get_mut(dev.index()) {
            *member = None;
        }
    }

    /// Reads synchronously; `offset_bytes` and the length are multiples of 4096.
    pub fn read_now(&mut self, dev: DevIndex, offset_bytes: u64, into: &mut [u8]) -> Result<(), IoFault> {
        let Self { list, bounce, .. } = self;
        let member = list.get(dev.index()).and_then(Option::as_ref).ok_or(IoFault::Gone)?;
        let mut read = ReadNow { tag: 0, dev, offset_bytes, into, result: Ok(()) };
        read_alone(member, &mut read, bounce.region_mut())
    }

    /// Reads many places side by side: a thread for each member, some where there is much to read, neighbours
    /// in one transfer. Afterwards they are in order of members and places.
    pub fn read_all_now(&self, reads: &mut [ReadNow<'_>]) {
        self.read_all_and(reads, None);
    }

    /// The same, while the caller's thread does `work`.
    pub fn read_all_beside(&self, reads: &mut [ReadNow<'_>], work: &mut dyn FnMut()) {
        self.read_all_and(reads, Some(work));
    }

    fn read_all_and(&self, reads: &mut [ReadNow<'_>], work: Option<&mut dyn FnMut()>) {
        reads.sort_unstable_by_key(|read| (read.dev, read.offset_bytes));
        let of_members = reads.chunk_by_mut(|one, next| one.dev == next.dev);
        let groups = of_members
            .flat_map(|reads| {
                let length = reads.iter().map(|read| read.into.len()).max().unwrap_or(0);
                let worth_it = (THREAD_BYTES_MIN / length.max(1)).max(1);
                let of_thread = reads.len().div_ceil(MEMBER_THREADS).max(worth_it);
                reads.chunks_mut(of_thread)
            })
            .collect();
        let read = |of_member: &mut [ReadNow<'_>]| {
            let unaligned = of_member.iter().filter(|read| !is_aligned(read.into));
            let mut bounce = bounce(unaligned.map(|read| read.into.len()).sum());
            match self.get(of_member[0].dev) {
                Some(member) => read_in_order(member, of_member, bounce.region_mut()),
                None => of_member.iter_mut().for_each(|read| read.result = Err(IoFault::Gone)),
            }
        };
        side_by_side(&self.helpers, groups, &read, work);
    }

    /// Writes synchronously; volatile until [`Members::flush_now`].
    pub fn write_now(&mut self, dev: DevIndex, offset_bytes: u64, from: &[u8]) -> Result<(), IoFault> {
        self.check(dev, offset_bytes, from.len())?;
        let Self { list, bounce, .. } = self;
        let member = list.get(dev.index()).and_then(Option::as_ref).ok_or(IoFault::Gone)?;
        let result = write_through(member, offset_bytes, from, bounce.region_mut());
        result.map_err(|error| self.fault_of_failed_write(dev, &error))
    }

    /// Writes many places side by side, a thread for each member.
    pub fn write_all_now(&self, writes: &mut [WriteNow<'_>]) {
        self.write_all_and(writes, None);
    }

    /// The same, while the caller's thread does `work`.
    pub fn write_all_beside(&self, writes: &mut [WriteNow<'_>], work: &mut dyn FnMut()) {
        self.write_all_and(writes, Some(work));
    }

    fn write_all_and(&self, writes: &mut [WriteNow<'_>], work: Option<&mut dyn FnMut()>) {
        writes.sort_unstable_by_key(|write| (write.dev, write.offset_bytes));
        let groups = writes.chunk_by_mut(|one, next| one.dev == next.dev).collect();
        let write = |of_member: &mut [WriteNow<'_>]| {
            let mut bounce = bounce(of_member.iter().map(|write| write.from.len()).max().unwrap_or(0));
            for write in of_member {
                write.result = self.write_with(write, bounce.region_mut());
            }
        };
        side_by_side(&self.helpers, groups, &write, work);
    }

    fn write_with(&self, write: &WriteNow<'_>, bounce: &mut [u8]) -> Result<(), IoFault> {
        let &WriteNow { dev, offset_bytes, from, .. } = write;
        self.check(dev, offset_bytes, from.len())?;
        let member = self.get(dev).ok_or(IoFault::Gone)?;
        let result = write_through(member, offset_bytes, from, bounce);
        result.map_err(|error| self.fault_of_failed_write(dev, &error))
    }

    fn fault_of_failed_write(&self, dev: DevIndex, error: &io::Error) -> IoFault {
        error.raw_os_error().map_or_else(|| fault_of(error), |errno| self.fault_of_write(dev, errno))
    }

    /// Makes everything written so far to the member durable.
    pub fn flush_now(&self, dev: DevIndex) -> Result<(), IoFault> {
        self.get(dev).ok_or(IoFault::Gone)?.file().sync_data().map_err(|error| fault_of(&error))
    }

    /// The same for several members, side by side.
    pub fn flush_all_now(&self, flushes: &mut [FlushNow]) {
        let groups = flushes.chunks_mut(1).collect();
        let flush = |flushes: &mut [FlushNow]| {
            flushes.iter_mut().for_each(|flush| flush.result = self.flush_now(flush.dev));
        };
        side_by_side(&self.helpers, groups, &flush, None);
    }

    fn check(&self, dev: DevIndex, offset_bytes: u64, length: usize) -> Result<(), IoFault> {
        assert_grid(offset_bytes, length);
        let member = self.get(dev).ok_or(IoFault::Gone)?;
        if range_fits(offset_bytes, length as u64, member.size_bytes) { Ok(()) } else { Err(IoFault::Short) }
    }
}

/// Does `each` for every group, a thread for each; the caller's is one of them, but for the work that it has
/// to do first.
fn side_by_side<T: Send>(
    helpers: &Helpers,
    groups: Vec<&mut [T]>,
    each: &(dyn Fn(&mut [T]) + Sync),
    work: Option<&mut dyn FnMut()>,
) {
    let wanted = groups.len().saturating_sub(usize::from(work.is_none()));
    let groups = Mutex::new(groups);
    let next = || groups.lock().ok().and_then(|mut groups| groups.pop());
    let task = || {
        while let Some(group) = next() {
            each(group);
        }
    };
    helpers.run(wanted, &task, work);
}

/// The aligned buffer of a thread that has so many bytes to transfer.
fn bounce(bytes: usize) -> Pool {
    Pool::new(bytes.next_multiple_of(ALIGNMENT).clamp(ALIGNMENT, BOUNCE_BYTES / MEMBER_THREADS), 1)
}

/// Writes by way of an aligned buffer, unless what is written is aligned itself.
fn write_through(member: &Member, offset_bytes: u64, from: &[u8], bounce: &mut [u8]) -> io::Result<()> {
    if is_aligned(from) {
        return member.file().write_all_at(from, offset_bytes);
    }
    let mut at = offset_bytes;
    for part in from.chunks(bounce.len()) {
        let bounce = &mut bounce[..part.len()];
        bounce.copy_from_slice(part);
        member.file().write_all_at(bounce, at)?;
        at += part.len() as u64;
    }
    Ok(())
}

/// Whether a transfer may go straight to or from this memory.
fn is_aligned(memory: &[u8]) -> bool {
    memory.as_ptr().align_offset(ALIGNMENT) == 0
}

/// Reads places of one member, in order.
fn read_in_order(member: &Member, reads: &mut [ReadNow<'_>], bounce: &mut [u8]) {
    for run in reads.chunk_by_mut(|one, next| one.is_before(next)) {
        let are_aligned = run.iter().all(|read| is_aligned(read.into));
        let bytes_max = if are_aligned { BOUNCE_BYTES } else { bounce.len() };
        let mut rest = run;
        while !rest.is_empty() {
            let mut bytes = 0;
            let fits = |read: &&ReadNow<'_>| {
                bytes += read.into.len();
                bytes <= bytes_max
            };
            let count = rest.iter().take_while(fits).count().max(1);
            let (now, later) = rest.split_at_mut(count);
            let is_alone = now.len() == 1 || !now.iter().all(|read| is_within(member, read));
            if is_alone || !read_together(member, now, are_aligned, bounce) {
                // One that cannot be read must not take its neighbours with it.
                now.iter_mut().for_each(|read| read.result = read_alone(member, read, bounce));
            }
            rest = later;
        }
    }
}

/// Neighbours, in one transfer, straight to where they go or by way of the buffer, which they fit; `false` if
/// that failed.
fn read_together(member: &Member, reads: &mut [ReadNow<'_>], are_aligned: bool, bounce: &mut [u8]) -> bool {
    let (offset, bytes) = (reads[0].offset_bytes, reads.iter().map(|read| read.into.len()).sum());
    if are_aligned {
        let mut into: Vec<_> = reads.iter_mut().map(|read| IoSliceMut::new(read.into)).collect();
        if rustix::io::preadv(member.file(), &mut into, offset) != Ok(bytes) {
            return false;
        }
    } else if member.file().read_exact_at(&mut bounce[..bytes], offset).is_err() {
        return false;
    }
    let mut from = &bounce[..];
    for read in reads {
        if !are_aligned {
            let (own, behind) = from.split_at(read.into.len());
            read.into.copy_from_slice(own);
            from = behind;
        }
        read.result = Ok(());
    }
    true
}

fn is_within(member: &Member, read: &ReadNow<'_>) -> bool {
    range_fits(read.offset_bytes, read.length_bytes(), member.size_bytes)
}

fn read_alone(member: &Member, read: &mut ReadNow<'_>, bounce: &mut [u8]) -> Result<(), IoFault> {
    assert_grid(read.offset_bytes, read.into.len());
    if !is_within(member, read) {
        return Err(IoFault::Short);
    }
    let mut at = read.offset_bytes;
    if is_aligned(read.into) {
        return member.file().read_exact_at(read.into, at).map_err(|error| fault_of(&error));
    }
    for part in read.into.chunks_mut(bounce.len()) {
        let bounce = &mut bounce[..part.len()];
        member.file().read_exact_at(bounce, at).map_err(|error| fault_of(&error))?;
        part.copy_from_slice(bounce);
        at += part.len() as u64;
    }
    Ok(())
}

/// The engine's view of an operating system error.
pub(crate) fn fault_of(error: &io::Error) -> IoFault {
    match error.raw_os_error() {
        Some(errno) => fault_of_errno(errno),
        None if error.kind() == io::ErrorKind::UnexpectedEof || error.kind() == io::ErrorKind::WriteZero => {
            IoFault::Short
        }
        None => IoFault::Device { errno: 0 },
    }
}

/// The engine's view of an errno: a device that was unplugged is gone, all else is a device error.
pub(crate) fn fault_of_errno(errno: i32) -> IoFault {
    match errno {
        libc::ENODEV | libc::ENXIO | libc::ENOMEDIUM => IoFault::Gone,
        errno => IoFault::Device { errno },
    }
}

impl Members {
    /// The engine's view of the errno that a write of a member ended with. Not for flushes: what a flush
    /// reports as not written was accepted before and is gone, and the next flush would say that all is well.
    pub(crate) fn fault_of_write(&self, dev: DevIndex, errno: i32) -> IoFault {
        match errno {
            libc::ENOSPC | libc::EDQUOT if !self.has_shrunk(dev) => IoFault::NoSpace,
            errno => fault_of_errno(errno),
        }
    }

    /// Whether a block device holds less than when it was opened: writes past its end report that there is no
    /// space, too.
    fn has_shrunk(&self, dev: DevIndex) -> bool {
        self.get(dev).is_some_and(|member| {
            let now = rustix::fs::seek(member.file(), rustix::fs::SeekFrom::End(0));
            member.kind == Kind::Block && now.is_ok_and(|bytes| bytes < member.size_bytes)
        })
    }
}

#[cfg(test)]
mod tests;
