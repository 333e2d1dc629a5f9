//! What the client has told of its memory and rings, by messages over the socket.

use super::memory::{Memory, REGIONS_MAX};
use super::wire::{self, RINGS_MAX, feature, narrow, wide};
use crate::export::Export;
use rustix::event::{PollFd, PollFlags, Timespec, epoll, poll};
use rustix::fs::OFlags;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use vhost::VhostUserMemoryRegionBase;
use vhost::vhost_user::message::{
    VhostTransferStateDirection, VhostTransferStatePhase, VhostUserConfigFlags, VhostUserInflight,
    VhostUserLog, VhostUserMemoryRegion, VhostUserShMemConfig, VhostUserSharedMsg,
    VhostUserSingleMemoryRegion, VhostUserVringAddrFlags, VhostUserVringState,
};
use vhost::vhost_user::{
    Error, GpuBackend, Result, VhostUserBackendReqHandlerMut, VhostUserProtocolFeatures,
    VhostUserVirtioFeatures,
};
use virtio_queue::{Queue, QueueT};

/// Entries that a ring may have.
const RING_SIZE_MAX: u16 = 1024;
/// Bytes of configuration that a client may ask for; behind the end of it there are zeros.
const CONFIG_BYTES_MAX: usize = 256;

/// A descriptor by which the client rings, watched until it is dropped.
struct Kick {
    event: File,
    epoll: Arc<OwnedFd>,
}

impl Drop for Kick {
    fn drop(&mut self) {
        // Closing is not enough, as the client has the same descriptor open.
        let _ = epoll::delete(&self.epoll, &self.event);
    }
}

/// A ring.
#[derive(Default)]
pub struct Ring {
    /// Where the client has got to with it, and where the device.
    pub queue: Queue,
    /// The client tells of new requests.
    pub armed: bool,
    /// There are answers that the client was not told of.
    pub answered: bool,
    /// How the client is told of answers.
    call: Option<File>,
    kick: Option<Kick>,
    enabled: bool,
}

impl Ring {
    /// Whether requests are taken from it.
    fn runs(&self) -> bool {
        self.enabled && self.kick.is_some() && self.queue.ready()
    }

    /// Tells the client that there are answers.
    pub fn call(&self) {
        let Some(call) = &self.call else { return };
        // Who shares it may have changed that writing to it does not block.
        let mut writable = [PollFd::new(call, PollFlags::OUT)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        if poll(&mut writable, Some(&now)) == Ok(1) {
            let _ = rustix::io::write(call, &1u64.to_ne_bytes());
        }
        // Else it is full, and the client is about to look.
    }
}

/// See the module's documentation.
#[derive(Default)]
pub struct Device {
    /// The client's memory.
    pub memory: Memory,
    /// Its rings.
    pub rings: Vec<Ring>,
    /// Those of them that run.
    pub running: Vec<usize>,
    /// What a message was refused for.
    pub complaint: Option<String>,
    offered: u64,
    acknowledged: u64,
    config: Vec<u8>,
    /// Where the rings' descriptors are watched, and under which name.
    watch: Option<(Arc<OwnedFd>, u64)>,
}

impl Device {
    /// The device that a volume is; what rings is watched there.
    pub fn new(export: &Export, epoll: Arc<OwnedFd>, token: u64) -> Self {
        Self {
            offered: wire::features(export) | VhostUserVirtioFeatures::PROTOCOL_FEATURES.bits(),
            config: wire::config(export),
            watch: Some((epoll, token)),
            ..Self::default()
        }
    }

    /// The volume has another size.
    pub fn resize(&mut self, export: &Export) {
        self.config = wire::config(export);
    }

    /// Whether the client will say when its writes are to be durable.
    pub fn flushes(&self) -> bool {
        self.acknowledged & feature::FLUSH != 0
    }

    /// Notes a complaint; the error that stands for it.
    fn complain(&mut self, what: impl Into<String>) -> Error {
        self.complaint = Some(what.into());
        Error::InvalidParam
    }

    fn ring(&mut self, index: u32) -> Result<&mut Ring> {
        let index = narrow(index);
        if index >= usize::from(RINGS_MAX) {
            return Err(self.complain(format!("ring {index}, there are {RINGS_MAX}")));
        }
        while self.rings.len() <= index {
            let queue = Queue::new(RING_SIZE_MAX).expect("the size is a power of two");
            self.rings.push(Ring { queue, ..Ring::default() });
        }
        Ok(&mut self.rings[index])
    }

    /// Begins with a ring that was told of by a kick, from where the client has got to.
    fn start(&mut self, index: u32) -> Result<()> {
        let has_protocol = self.acknowledged & VhostUserVirtioFeatures::PROTOCOL_FEATURES.bits() != 0;
        let counts_events = self.acknowledged & feature::EVENT_INDEX != 0;
        self.ring(index)?;
        let ring = &mut self.rings[narrow(index)];
        // Without the protocol's features there is no word for it.
        ring.enabled |= !has_protocol;
        ring.queue.set_event_idx(counts_events);
        ring.queue.set_ready(true);
        if !ring.queue.is_valid(self.memory.map()) {
            return Err(self.complain(format!("ring {index} does not lie within its memory")));
        }
        match ring.queue.used_idx(self.memory.map(), std::sync::atomic::Ordering::Acquire) {
            Ok(used) => ring.queue.set_next_used(used.0),
            Err(error) => return Err(self.complain(format!("ring {index}: {error}"))),
        }
        Ok(())
    }

    fn note_running(&mut self) {
        let rings = self.rings.iter().enumerate();
        self.running = rings.filter(|(_, ring)| ring.runs()).map(|(index, _)| index).collect();
    }

    fn add_region(&mut self, region: &VhostUserMemoryRegion, file: File) -> Result<()> {
        self.memory.add(region, file).map_err(|why| self.complain(why))
    }

    fn stop_all(&mut self) {
        self.rings.clear();
        self.running.clear();
    }
}

/// A client that does not take what it is sent must not keep this thread waiting.
fn without_blocking(file: File) -> io::Result<File> {
    let flags = rustix::fs::fcntl_getfl(&file)?;
    rustix::fs::fcntl_setfl(&file, flags | OFlags::NONBLOCK)?;
    Ok(file)
}

impl VhostUserBackendReqHandlerMut for Device {
    fn set_owner(&mut self) -> Result<()> {
        Ok(())
    }

    fn reset_owner(&mut self) -> Result<()> {
        self.reset_device()
    }

    fn reset_device(&mut self) -> Result<()> {
        self.stop_all();
        self.acknowledged = 0;
        Ok(())
    }

    fn get_features(&mut self) -> Result<u64> {
        Ok(self.offered)
    }

    fn set_features(&mut self, features: u64) -> Result<()> {
        let strange = features & !self.offered;
        if strange != 0 {
            return Err(self.complain(format!("features {strange:#x}, which were not offered")));
        }
        self.acknowledged = features;
        Ok(())
    }

    fn set_mem_table(
        &mut self,
        regions: &[VhostUserMemoryRegion],
        files: Vec<File>,
        _postcopy_listening: Option<bool>,
    ) -> Result<Option<Vec<VhostUserMemoryRegionBase>>> {
        self.memory = Memory::default();
        regions.iter().zip(files).try_for_each(|(region, file)| self.add_region(region, file))?;
        Ok(None)
    }

    fn set_vring_num(&mut self, index: u32, num: u32) -> Result<()> {
        let ring = self.ring(index)?;
        let size = u16::try_from(num).ok().filter(|&size| ring.queue.try_set_size(size).is_ok());
        match size {
            Some(_) => Ok(()),
            None => Err(self.complain(format!(
                "ring {index} with {num} entries, expected a power of two up to {RING_SIZE_MAX}"
            ))),
        }
    }

    fn set_vring_addr(
        &mut self,
        index: u32,
        _flags: VhostUserVringAddrFlags,
        descriptor: u64,
        used: u64,
        available: u64,
        _log: u64,
    ) -> Result<()> {
        let places = [descriptor, available, used].map(|user| self.memory.of_user(user));
        let queue = &mut self.ring(index)?.queue;
        let set = match places {
            [Ok(descriptor), Ok(available), Ok(used)] => {
                let descriptor = queue.try_set_desc_table_address(descriptor);
                let available = queue.try_set_avail_ring_address(available);
                let used = queue.try_set_used_ring_address(used);
                descriptor.and(available).and(used).map_err(|error| error.to_string())
            }
            [Err(why), _, _] | [_, Err(why), _] | [_, _, Err(why)] => Err(why),
        };
        set.map_err(|why| self.complain(why))
    }

    fn set_vring_base(&mut self, index: u32, base: u32) -> Result<()> {
        let Ok(base) = u16::try_from(base) else {
            return Err(self.complain(format!("ring {index} goes on at {base}")));
        };
        self.ring(index)?.queue.set_next_avail(base);
        Ok(())
    }

    fn get_vring_base(&mut self, index: u32) -> Result<VhostUserVringState> {
        let ring = self.ring(index)?;
        ring.queue.set_ready(false);
        (ring.kick, ring.call, ring.armed) = (None, None, false);
        let next = ring.queue.next_avail();
        self.note_running();
        Ok(VhostUserVringState::new(index, u32::from(next)))
    }

    fn set_vring_kick(&mut self, index: u8, fd: Option<File>) -> Result<()> {
        let watch = self.watch.clone();
        let (Some(event), Some((epoll, token))) = (fd, watch) else {
            return Err(self.complain(format!("ring {index} without an event descriptor to ring with")));
        };
        // The old one goes before the new one comes: they may be the same.
        self.ring(index.into())?.kick = None;
        let flags = epoll::EventFlags::IN | epoll::EventFlags::ET;
        let watched = without_blocking(event).and_then(|event| {
            epoll::add(&epoll, &event, epoll::EventData::new_u64(token), flags)?;
            Ok(Kick { event, epoll })
        });
        match watched {
            Ok(kick) => self.ring(index.into())?.kick = Some(kick),
            Err(error) => return Err(self.complain(format!("what ring {index} rings with: {error}"))),
        }
        self.start(index.into())?;
        self.note_running();
        Ok(())
    }

    fn set_vring_call(&mut self, index: u8, fd: Option<File>) -> Result<()> {
        let call = fd.map(without_blocking).transpose();
        let call = call.map_err(|error| self.complain(format!("what ring {index} is called by: {error}")))?;
        let ring = self.ring(index.into())?;
        ring.call = call;
        // Answers may have been given before there was something to call by.
        ring.call();
        Ok(())
    }

    fn set_vring_err(&mut self, _index: u8, _fd: Option<File>) -> Result<()> {
        Ok(()) // the connection ends instead
    }

    fn get_protocol_features(&mut self) -> Result<VhostUserProtocolFeatures> {
        Ok(VhostUserProtocolFeatures::MQ
            | VhostUserProtocolFeatures::CONFIG
            | VhostUserProtocolFeatures::BACKEND_REQ
            | VhostUserProtocolFeatures::CONFIGURE_MEM_SLOTS
            | VhostUserProtocolFeatures::RESET_DEVICE)
    }

    fn set_protocol_features(&mut self, _features: u64) -> Result<()> {
        Ok(())
    }

    fn get_queue_num(&mut self) -> Result<u64> {
        Ok(RINGS_MAX.into())
    }

    fn set_vring_enable(&mut self, index: u32, enable: bool) -> Result<()> {
        self.ring(index)?.enabled = enable;
        self.note_running();
        Ok(())
    }

    fn get_config(&mut self, offset: u32, size: u32, _flags: VhostUserConfigFlags) -> Result<Vec<u8>> {
        let range = (usize::try_from(offset), usize::try_from(size));
        let (Ok(offset), Ok(size)) = range else { return Err(Error::InvalidParam) };
        if offset.saturating_add(size) > CONFIG_BYTES_MAX {
            return Err(Error::InvalidParam);
        }
        let padded = self.config.iter().copied().chain(std::iter::repeat(0));
        Ok(padded.skip(offset).take(size).collect())
    }

    fn set_config(&mut self, _offset: u32, _buf: &[u8], _flags: VhostUserConfigFlags) -> Result<()> {
        Ok(()) // nothing of it can be changed
    }

    fn set_gpu_socket(&mut self, _gpu_backend: GpuBackend) -> Result<()> {
        Err(Error::InvalidParam)
    }

    fn get_shared_object(&mut self, _uuid: VhostUserSharedMsg) -> Result<File> {
        Err(Error::InvalidParam)
    }

    fn get_inflight_fd(&mut self, _inflight: &VhostUserInflight) -> Result<(VhostUserInflight, File)> {
        Err(Error::InvalidParam)
    }

    fn set_inflight_fd(&mut self, _inflight: &VhostUserInflight, _file: File) -> Result<()> {
        Err(Error::InvalidParam)
    }

    fn get_max_mem_slots(&mut self) -> Result<u64> {
        Ok(wide(REGIONS_MAX))
    }

    fn add_mem_region(
        &mut self,
        region: &VhostUserSingleMemoryRegion,
        fd: File,
        _postcopy_listening: Option<bool>,
    ) -> Result<Option<VhostUserMemoryRegionBase>> {
        self.add_region(region, fd)?;
        Ok(None)
    }

    fn remove_mem_region(&mut self, region: &VhostUserSingleMemoryRegion) -> Result<()> {
        self.memory.remove(region).map_err(|why| self.complain(why))
    }

    fn set_device_state_fd(
        &mut self,
        _direction: VhostTransferStateDirection,
        _phase: VhostTransferStatePhase,
        _fd: File,
    ) -> Result<Option<File>> {
        Err(Error::InvalidParam)
    }

    fn check_device_state(&mut self) -> Result<()> {
        Err(Error::InvalidParam)
    }

    fn get_shmem_config(&mut self) -> Result<VhostUserShMemConfig> {
        Err(Error::InvalidParam)
    }

    fn set_log_base(&mut self, _log: &VhostUserLog, _file: File) -> Result<()> {
        Err(Error::InvalidParam)
    }
}
