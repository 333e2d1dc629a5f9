//! The client's memory, as it shares it.

use std::fs::File;
use std::sync::Arc;
use vhost::vhost_user::message::VhostUserMemoryRegion;
use vm_memory::mmap::{GuestRegionMmap, MmapRegion};
use vm_memory::{FileOffset, GuestAddress, GuestMemoryMmap};

/// What is mapped, by the client's physical addresses.
pub type Map = GuestMemoryMmap<()>;

/// Where a region lies in the client's own address space, in which it names its rings.
struct View {
    user: u64,
    guest: u64,
    size_bytes: u64,
}

/// Memory that a client shares.
#[derive(Default)]
pub struct Memory {
    map: Map,
    views: Vec<View>,
}

/// Regions that a client may share; each is a mapping of this process.
pub const REGIONS_MAX: usize = 256;

impl Memory {
    /// By the client's physical addresses.
    pub fn map(&self) -> &Map {
        &self.map
    }

    /// One region more.
    pub fn add(&mut self, region: &VhostUserMemoryRegion, file: File) -> Result<(), String> {
        if self.views.len() >= REGIONS_MAX {
            return Err(format!("more than {REGIONS_MAX} regions of memory"));
        }
        let found = file.metadata().map_err(|error| format!("its memory: {error}"))?;
        let end = region.mmap_offset.checked_add(region.memory_size);
        // What lies behind the end of the file could be mapped, and would kill whoever touches it.
        if !found.is_file() || end.is_none_or(|end| end > found.len()) {
            let (size, offset) = (region.memory_size, region.mmap_offset);
            return Err(format!("{size} bytes of memory at {offset} of a file of {} bytes", found.len()));
        }
        let size = usize::try_from(region.memory_size).map_err(|error| error.to_string())?;
        let mapping = MmapRegion::from_file(FileOffset::new(file, region.mmap_offset), size);
        let mapping = mapping.map_err(|error| format!("its memory cannot be mapped: {error}"))?;
        let guest = GuestAddress(region.guest_phys_addr);
        let mapped = GuestRegionMmap::new(mapping, guest).ok_or("a region that ends behind all addresses")?;
        self.map = self.map.insert_region(Arc::new(mapped)).map_err(|error| error.to_string())?;
        self.views.push(View {
            user: region.user_addr,
            guest: region.guest_phys_addr,
            size_bytes: region.memory_size,
        });
        Ok(())
    }

    /// One region less.
    pub fn remove(&mut self, region: &VhostUserMemoryRegion) -> Result<(), String> {
        let (guest, size_bytes) = (region.guest_phys_addr, region.memory_size);
        let removed = self.map.remove_region(GuestAddress(guest), size_bytes);
        (self.map, _) = removed.map_err(|error| error.to_string())?;
        self.views.retain(|view| view.guest != guest);
        Ok(())
    }

    /// The physical address of one in the client's own space.
    pub fn of_user(&self, user: u64) -> Result<GuestAddress, String> {
        let found =
            self.views.iter().find(|view| user.checked_sub(view.user).is_some_and(|at| at < view.size_bytes));
        let view =
            found.ok_or_else(|| format!("a ring at {user:#x}, which is in no region of its memory"))?;
        Ok(GuestAddress(view.guest + (user - view.user)))
    }
}
