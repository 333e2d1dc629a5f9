//! Service times in virtual time: when flash operations begin and end.
//!
//! Each plane does one operation after the other, and each channel one transfer. An operation is put at the
//! end of its plane's and channel's line when it is issued, so GC delays whatever comes later on the same
//! plane. Times are nanoseconds; nothing is random.
//!
//! A copy by GC is a read, two transfers and a program; reads of a victim and programs elsewhere overlap.
//! Planes of a die are taken as independent. Planes have cache registers, so a page crosses the channel while
//! the plane still works; a channel is charged for its transfers, never for waiting. Reads do not overtake,
//! and nothing is suspended.

use crate::error::{ConfigError, within};
use crate::geometry::Geometry;
use crate::slc::Mode;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// What an acknowledged write means before a flush.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Buffering {
    /// A write completes when it is programmed.
    #[default]
    None,
    /// It completes when it is in a buffer of so many pages that survives power loss; a flush has
    /// nothing to do.
    Protected(u32),
    /// It completes when it is in a buffer of so many pages; a flush waits for their programming.
    Volatile(u32),
}

/// Service times of the flash, the channels and the host's link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Timing {
    /// Reading a page, by mode ([`Mode::index`]).
    pub read_ns: [u64; 2],
    /// Programming a page, by mode.
    pub program_ns: [u64; 2],
    /// Erasing a block.
    pub erase_ns: u64,
    /// A page over a channel.
    pub transfer_ns: u64,
    /// A page over the host's link.
    pub link_ns: u64,
    /// What the controller needs for a request.
    pub command_ns: u64,
    /// The write buffer.
    pub buffering: Buffering,
}

impl Timing {
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        const SECOND_NS: u64 = 1_000_000_000;
        for time in self.read_ns.into_iter().chain(self.program_ns) {
            within("read and program times in ns", time, 1, SECOND_NS)?;
        }
        within("erase time in ns", self.erase_ns, 0, 10 * SECOND_NS)?;
        within("transfer time of a page in ns", self.transfer_ns, 0, SECOND_NS)?;
        within("link time of a page in ns", self.link_ns, 0, SECOND_NS)?;
        within("command time in ns", self.command_ns, 0, SECOND_NS)?;
        match self.buffering {
            Buffering::None => Ok(()),
            Buffering::Protected(pages) | Buffering::Volatile(pages) => {
                within("write buffer in pages", u64::from(pages), 1, 1 << 24).map(|_| ())
            }
        }
    }
}

/// Where the FTL reports what it does to the flash.
pub(crate) trait Media {
    /// A page the host reads.
    fn read(&mut self, block: u32, mode: Mode);
    /// A page the host writes.
    fn program(&mut self, block: u32, mode: Mode);
    /// A translation page that must be read before the request can go on.
    fn map_read(&mut self, block: u32, mode: Mode);
    /// A translation page written.
    fn map_program(&mut self, block: u32, mode: Mode);
    /// Pages moved by GC or wear levelling.
    fn copy(&mut self, from: (u32, Mode), to: (u32, Mode), pages: u32);
    /// A block erased.
    fn erase(&mut self, block: u32);
}

/// Counts only.
pub(crate) struct Untimed;

impl Media for Untimed {
    #[inline]
    fn read(&mut self, _: u32, _: Mode) {}
    #[inline]
    fn program(&mut self, _: u32, _: Mode) {}
    #[inline]
    fn map_read(&mut self, _: u32, _: Mode) {}
    #[inline]
    fn map_program(&mut self, _: u32, _: Mode) {}
    #[inline]
    fn copy(&mut self, _: (u32, Mode), _: (u32, Mode), _: u32) {}
    #[inline]
    fn erase(&mut self, _: u32) {}
}

/// The lines of planes, channels and link, and the request under way.
#[derive(Clone, Debug)]
pub(crate) struct Clock {
    timing: Timing,
    channels: u32,
    /// Planes of a domain; those of domain `d` begin at `d * planes`.
    planes: u32,
    plane_free_ns: Vec<u64>,
    channel_free_ns: Vec<u64>,
    link_free_ns: u64,
    /// When the pages in the write buffer will be programmed.
    buffer: BinaryHeap<Reverse<u64>>,
    buffer_pages: usize,
    last_program_ns: u64,
    /// Of the request under way: when the flash may be asked next, when all of it is done, its
    /// domain's first plane.
    ready_ns: u64,
    done_ns: u64,
    first_plane: u32,
}

impl Clock {
    pub(crate) fn new(timing: Timing, geometry: &Geometry, domains: u32) -> Self {
        let planes = geometry.planes();
        let buffer_pages = match timing.buffering {
            Buffering::None => 0,
            Buffering::Protected(pages) | Buffering::Volatile(pages) => pages as usize,
        };
        Self {
            timing,
            channels: geometry.channels,
            planes: planes / domains,
            plane_free_ns: vec![0; planes as usize],
            channel_free_ns: vec![0; geometry.channels as usize],
            link_free_ns: 0,
            buffer: BinaryHeap::new(),
            buffer_pages,
            last_program_ns: 0,
            ready_ns: 0,
            done_ns: 0,
            first_plane: 0,
        }
    }

    /// A request comes in.
    pub(crate) fn start(&mut self, now_ns: u64) {
        self.ready_ns = now_ns + self.timing.command_ns;
        self.done_ns = self.ready_ns;
    }

    /// Its next page belongs to this domain.
    #[inline]
    pub(crate) fn enter(&mut self, domain: u32) {
        self.first_plane = domain * self.planes;
    }

    /// When the request is done.
    pub(crate) fn finish(&self) -> u64 {
        self.done_ns
    }

    /// When everything written so far is durable.
    pub(crate) fn flush(&mut self, now_ns: u64) -> u64 {
        let ready_ns = now_ns + self.timing.command_ns;
        match self.timing.buffering {
            Buffering::None | Buffering::Protected(_) => ready_ns,
            Buffering::Volatile(_) => ready_ns.max(self.last_program_ns),
        }
    }

    #[inline]
    fn place(&self, block: u32) -> (usize, usize) {
        let plane = self.first_plane + block % self.planes;
        (plane as usize, (plane % self.channels) as usize)
    }

    /// Sends a page over the host's link, beginning at `from_ns` at the earliest.
    fn link(&mut self, from_ns: u64) -> u64 {
        self.link_free_ns = self.link_free_ns.max(from_ns) + self.timing.link_ns;
        self.link_free_ns
    }

    /// Reads a page out of the flash, beginning at `from_ns` at the earliest.
    fn read_page(&mut self, block: u32, mode: Mode, from_ns: u64) -> u64 {
        let (plane, channel) = self.place(block);
        let sensed_ns = self.plane_free_ns[plane].max(from_ns) + self.timing.read_ns[mode.index()];
        let channel_ns = self.channel_free_ns[channel].max(from_ns) + self.timing.transfer_ns;
        let end_ns = channel_ns.max(sensed_ns + self.timing.transfer_ns);
        self.plane_free_ns[plane] = sensed_ns;
        self.channel_free_ns[channel] = channel_ns;
        end_ns
    }

    /// Brings a page to the flash and programs it.
    fn program_page(&mut self, block: u32, mode: Mode, from_ns: u64) -> u64 {
        let (plane, channel) = self.place(block);
        let loaded_ns = self.channel_free_ns[channel].max(from_ns) + self.timing.transfer_ns;
        self.channel_free_ns[channel] = loaded_ns;
        let end_ns = self.plane_free_ns[plane].max(loaded_ns) + self.timing.program_ns[mode.index()];
        self.plane_free_ns[plane] = end_ns;
        self.last_program_ns = self.last_program_ns.max(end_ns);
        end_ns
    }
}

impl Media for Clock {
    fn read(&mut self, block: u32, mode: Mode) {
        let out_ns = self.read_page(block, mode, self.ready_ns);
        let end_ns = self.link(out_ns);
        self.done_ns = self.done_ns.max(end_ns);
    }

    fn program(&mut self, block: u32, mode: Mode) {
        let mut here_ns = self.link(self.ready_ns);
        if self.buffer_pages > 0 {
            while self.buffer.peek().is_some_and(|&Reverse(end_ns)| end_ns <= here_ns) {
                self.buffer.pop();
            }
            if self.buffer.len() >= self.buffer_pages
                && let Some(Reverse(end_ns)) = self.buffer.pop()
            {
                here_ns = end_ns;
            }
        }
        let end_ns = self.program_page(block, mode, here_ns);
        if self.buffer_pages > 0 {
            self.buffer.push(Reverse(end_ns));
            self.done_ns = self.done_ns.max(here_ns);
        } else {
            self.done_ns = self.done_ns.max(end_ns);
        }
    }

    fn map_read(&mut self, block: u32, mode: Mode) {
        self.ready_ns = self.read_page(block, mode, self.ready_ns);
    }

    fn map_program(&mut self, block: u32, mode: Mode) {
        self.program_page(block, mode, self.ready_ns);
    }

    fn copy(&mut self, from: (u32, Mode), to: (u32, Mode), pages: u32) {
        for _ in 0..pages {
            let out_ns = self.read_page(from.0, from.1, self.ready_ns);
            self.program_page(to.0, to.1, out_ns);
        }
    }

    fn erase(&mut self, block: u32) {
        let (plane, _) = self.place(block);
        self.plane_free_ns[plane] = self.plane_free_ns[plane].max(self.ready_ns) + self.timing.erase_ns;
    }
}
