//! A device's node, and its queues.
#![allow(unsafe_code, reason = "the kernel describes requests in memory that it shares")]

use super::wire::{self, ASK_BYTES, DEPTH_MAX, command};
use super::{Ask, Error, Info};
use crate::uring::is_transient;
use io_uring::{IoUring, opcode, types};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::fs::{File, OpenOptions};
use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsRawFd as _, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a node may take to appear, and to be given its owner and mode.
const NODE_WAIT: Duration = Duration::from_secs(10);
const NODE_LOOK: Duration = Duration::from_millis(5);

/// A device's node, opened. One process at a time can have it.
pub struct Node {
    file: File,
    number: u32,
    queues: u16,
    depth: u16,
}

impl Node {
    /// Opens the node of a device. Right after it was added that may take a moment.
    pub fn open(info: &Info) -> Result<Arc<Self>, Error> {
        let (number, path) = (info.number, format!("/dev/ublkc{}", info.number));
        let until = Instant::now() + NODE_WAIT;
        loop {
            match OpenOptions::new().read(true).write(true).open(&path) {
                Ok(file) => {
                    return Ok(Arc::new(Self { file, number, queues: info.queues, depth: info.depth }));
                }
                Err(error)
                    if Instant::now() < until
                        && matches!(
                            error.raw_os_error(),
                            Some(libc::ENOENT | libc::EACCES | libc::EBUSY | libc::ENXIO)
                        ) =>
                {
                    std::thread::sleep(NODE_LOOK);
                }
                Err(source) => return Err(Error::Node { number, source }),
            }
        }
    }

    /// All queues of the device.
    pub fn queues(self: &Arc<Self>) -> Result<Vec<Queue>, Error> {
        (0..self.queues).map(|index| Queue::new(self, index)).collect()
    }
}

/// The kernel's descriptions of the requests in a queue.
struct Descriptions {
    start: NonNull<u64>,
    bytes: usize,
    count: usize,
}

// SAFETY: the mapping belongs to this value alone, and can be read and unmapped from any thread.
// JUSTIFICATION: the raw pointer takes the automatic implementation away.
unsafe impl Send for Descriptions {}

impl Descriptions {
    fn map(node: &Node, queue: u16) -> io::Result<Self> {
        let page = rustix::param::page_size();
        let stride = (DEPTH_MAX * ASK_BYTES).next_multiple_of(page);
        let count = usize::from(node.depth);
        let bytes = (count * ASK_BYTES).next_multiple_of(page);
        let offset = u64::try_from(usize::from(queue) * stride).expect("an offset has 64 bits at most");
        // SAFETY: a fresh mapping at an address of the kernel's choice touches no existing memory.
        // JUSTIFICATION: only by mapping it can the kernel's memory be read.
        let start = unsafe {
            mmap(std::ptr::null_mut(), bytes, ProtFlags::READ, MapFlags::SHARED, &node.file, offset)?
        };
        let start = NonNull::new(start.cast::<u64>()).expect("mmap never returns the null page");
        Ok(Self { start, bytes, count })
    }

    /// The first two words of a description: the third is an address, which means nothing here.
    fn read(&self, tag: u16) -> [u64; 2] {
        const WORDS: usize = ASK_BYTES / 8;
        let index = usize::from(tag);
        assert!(index < self.count, "the kernel names places of the queue only");
        [0, 1].map(|word| {
            // SAFETY: the word lies within the mapping, which is as long as the queue is deep, and is
            // aligned, as pages are. The kernel wrote it before it handed the request over, and leaves it
            // alone until that is answered.
            unsafe { self.start.add(index * WORDS + word).read_volatile() }
        })
    }
}

impl Drop for Descriptions {
    fn drop(&mut self) {
        // SAFETY: mapped by `map` with this start and length; nothing points into it any more.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

/// What comes from the kernel.
#[derive(Debug)]
pub enum Event {
    /// A request, in this place.
    Asked(u16, Ask),
    /// No request will come in this place any more: the device is being stopped.
    Over(u16),
    /// The kernel refuses a command for this place.
    Refused(u16, io::Error),
}

/// A queue of a device. It may be moved to another thread until its first command.
pub struct Queue {
    ring: IoUring,
    node: Arc<Node>,
    descriptions: Descriptions,
    index: u16,
    /// Whether commands wait to be taken in.
    has_news: bool,
}

impl Queue {
    fn new(node: &Arc<Node>, index: u16) -> Result<Self, Error> {
        let entries = u32::from(node.depth).max(1).next_power_of_two();
        // One command of each place at most is under way, so there is always room.
        let ring = IoUring::builder().setup_coop_taskrun().build(entries).map_err(Error::Ring)?;
        let number = node.number;
        let failed = |source| Error::Command { number, what: "a queue cannot be set up", source };
        ring.submitter().register_files(&[node.file.as_raw_fd()]).map_err(failed)?;
        let descriptions = Descriptions::map(node, index).map_err(failed)?;
        Ok(Self { ring, node: Arc::clone(node), descriptions, index, has_news: false })
    }

    /// How many requests it has room for.
    pub fn depth(&self) -> u16 {
        self.node.depth
    }

    /// Which of the device's queues it is.
    pub fn index(&self) -> u16 {
        self.index
    }

    /// The device's number.
    pub fn number(&self) -> u32 {
        self.node.number
    }

    /// A descriptor of its own that is readable while there are events.
    pub fn descriptor(&self) -> io::Result<OwnedFd> {
        // SAFETY: the ring keeps its descriptor open for as long as it lives, which is longer than this call.
        // JUSTIFICATION: the ring's type offers nothing else but the number.
        let ring = unsafe { BorrowedFd::borrow_raw(self.ring.as_raw_fd()) };
        Ok(rustix::io::fcntl_dupfd_cloexec(ring, 0)?)
    }

    /// Asks for a request in every place. All commands come from this thread from now on.
    pub fn fetch_all(&mut self) -> io::Result<()> {
        for tag in 0..self.depth() {
            self.push(command::FETCH, tag, 0);
        }
        self.submit()
    }

    /// Answers the request in a place, and asks for the next: how many bytes were moved, or an errno below
    /// zero.
    pub fn answer(&mut self, tag: u16, result: i32) {
        self.push(command::COMMIT_AND_FETCH, tag, result);
    }

    fn push(&mut self, code: u32, tag: u16, result: i32) {
        let bytes = wire::queue_command(self.index, tag, result);
        let entry = opcode::UringCmd16::new(types::Fixed(0), code).cmd(bytes).build().user_data(tag.into());
        // SAFETY: the command carries no address: payload is copied through the node.
        // JUSTIFICATION: a ring's commands may carry addresses, so giving one is never safe code.
        let pushed = unsafe { self.ring.submission().push(&entry) };
        pushed.expect("there is room for a command of each place");
        self.has_news = true;
    }

    /// Whether commands wait to be taken in.
    pub fn has_news(&self) -> bool {
        self.has_news
    }

    /// Has the kernel take in what was answered; it may have to be tried again.
    pub fn submit(&mut self) -> io::Result<()> {
        if !self.has_news {
            return Ok(());
        }
        match self.ring.submit() {
            Ok(_) => {
                self.has_news = !self.ring.submission().is_empty();
                Ok(())
            }
            Err(error) if is_transient(&error) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// The next event, if there is one.
    pub fn next_event(&mut self) -> Option<Event> {
        let done = self.ring.completion().next()?;
        let tag = u16::try_from(done.user_data()).expect("commands are named by their places");
        Some(match done.result() {
            0 => Event::Asked(tag, Ask::decoded(self.descriptions.read(tag))),
            result if -result == libc::ENODEV => Event::Over(tag),
            result if result < 0 => Event::Refused(tag, io::Error::from_raw_os_error(-result)),
            _ => Event::Refused(tag, io::ErrorKind::InvalidData.into()),
        })
    }

    /// Takes payload of the write in a place, from a byte of it on.
    pub fn take(&self, tag: u16, at_bytes: u32, to: &mut [IoSliceMut<'_>]) -> io::Result<()> {
        let wanted = to.iter().map(|slice| slice.len()).sum();
        let offset = wire::payload_offset(self.index, tag, at_bytes);
        whole(rustix::io::preadv(&self.node.file, to, offset)?, wanted)
    }

    /// Gives payload to the read in a place, from a byte of it on.
    pub fn give(&self, tag: u16, at_bytes: u32, from: &[IoSlice<'_>]) -> io::Result<()> {
        let wanted = from.iter().map(|slice| slice.len()).sum();
        let offset = wire::payload_offset(self.index, tag, at_bytes);
        whole(rustix::io::pwritev(&self.node.file, from, offset)?, wanted)
    }
}

/// Copies are whole, unless the kernel is out of memory.
fn whole(moved: usize, wanted: usize) -> io::Result<()> {
    if moved == wanted { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}
