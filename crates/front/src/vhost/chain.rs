//! One request as it lies in a ring: a chain of descriptors, checked.

use super::memory::Map;
use super::violation::Violation;
use super::wire::{HEADER_BYTES, narrow, wide};
use virtio_queue::DescriptorChain;
use vm_memory::{Bytes, GuestAddress, GuestMemoryBackend, GuestMemoryError};

/// Descriptors of one chain. A table of its own may have 65,535, and what they take would be kept.
const DESCRIPTORS_MAX: usize = 1026;

/// A piece of the client's memory.
#[derive(Clone, Copy)]
struct Segment {
    address: u64,
    length_bytes: usize,
}

/// A request that was taken out of a ring. Entries are used again, with their vectors.
#[derive(Default)]
pub struct Transfer {
    /// The ring.
    pub ring: usize,
    /// The first descriptor, by which the client knows the request.
    pub head: u16,
    /// The head of the request.
    pub header: [u8; HEADER_BYTES],
    /// What the client has written, behind the head.
    from_client: Vec<Segment>,
    /// What it wants written, without the byte of status.
    to_client: Vec<Segment>,
    status_at: u64,
}

impl Transfer {
    /// Takes a chain apart.
    pub fn take(&mut self, ring: usize, chain: DescriptorChain<&Map>, map: &Map) -> Result<(), Violation> {
        let head = chain.head_index();
        (self.ring, self.head) = (ring, head);
        self.from_client.clear();
        self.to_client.clear();
        let broken = |what| Violation::Chain { ring, head, what };
        let mut goes_on = true;
        for descriptor in chain {
            let length_bytes = narrow(descriptor.len());
            let segment = Segment { address: descriptor.addr().0, length_bytes };
            match (descriptor.is_write_only(), self.to_client.is_empty()) {
                (true, _) => self.to_client.push(segment),
                (false, true) => self.from_client.push(segment),
                (false, false) => return Err(broken("what is to be read comes after what is to be written")),
            }
            goes_on = descriptor.has_next();
            if self.to_client.len() + self.from_client.len() > DESCRIPTORS_MAX {
                return Err(broken("it has more descriptors than any ring"));
            }
        }
        if goes_on {
            return Err(broken("it has no end, or leads out of its table or the client's memory"));
        }
        let status = self.to_client.last_mut().filter(|last| last.length_bytes > 0);
        let status = status.ok_or_else(|| broken("there is no room for the status"))?;
        status.length_bytes -= 1;
        self.status_at = status
            .address
            .checked_add(wide(status.length_bytes))
            .ok_or_else(|| broken("it leads behind all addresses"))?;
        if self.written_bytes() < wide(HEADER_BYTES) {
            return Err(broken("the head of the request is too short"));
        }
        let mut header = [0; HEADER_BYTES];
        self.copy_in(0, &mut header, map)?;
        self.header = header;
        Ok(())
    }

    /// Bytes that the client has written, the head among them.
    fn written_bytes(&self) -> u64 {
        self.from_client.iter().map(|segment| wide(segment.length_bytes)).sum()
    }

    /// Bytes of payload that the client has written.
    pub fn payload_bytes(&self) -> u64 {
        self.written_bytes() - wide(HEADER_BYTES)
    }

    /// Bytes that it wants, without the status.
    pub fn room_bytes(&self) -> u64 {
        self.to_client.iter().map(|segment| wide(segment.length_bytes)).sum()
    }

    fn address_fault(&self, address: u64, length_bytes: usize) -> Violation {
        Violation::Address { ring: self.ring, head: self.head, address, length_bytes }
    }

    /// Copies what the client has written behind the head, from byte `from_bytes` on.
    pub fn copy_payload(&self, from_bytes: u64, to: &mut [u8], map: &Map) -> Result<(), Violation> {
        self.copy_in(from_bytes + wide(HEADER_BYTES), to, map)
    }

    fn copy_in(&self, from_bytes: u64, to: &mut [u8], map: &Map) -> Result<(), Violation> {
        let mut done = 0;
        for (address, length_bytes) in parts(&self.from_client, from_bytes, to.len()) {
            let part = &mut to[done..done + length_bytes];
            read(map, part, address).map_err(|_| self.address_fault(address, length_bytes))?;
            done += length_bytes;
        }
        Ok(())
    }

    /// Hands the client bytes, from byte `from_bytes` of what it wants on.
    pub fn copy_out(&self, from_bytes: u64, bytes: &[u8], map: &Map) -> Result<(), Violation> {
        let mut done = 0;
        for (address, length_bytes) in parts(&self.to_client, from_bytes, bytes.len()) {
            let part = &bytes[done..done + length_bytes];
            write(map, part, address).map_err(|_| self.address_fault(address, length_bytes))?;
            done += length_bytes;
        }
        Ok(())
    }

    /// Says how the request ended.
    pub fn put_status(&self, status: u8, map: &Map) -> Result<(), Violation> {
        write(map, &[status], self.status_at).map_err(|_| self.address_fault(self.status_at, 1))
    }
}

/// Copies from the client's memory. What lies in one region, as nearly all does, takes a shorter way.
fn read(map: &Map, to: &mut [u8], address: u64) -> Result<(), GuestMemoryError> {
    match map.get_slice(GuestAddress(address), to.len()) {
        Ok(found) => {
            found.copy_to(to);
            Ok(())
        }
        Err(_) => map.read_slice(to, GuestAddress(address)),
    }
}

/// Copies into the client's memory.
fn write(map: &Map, from: &[u8], address: u64) -> Result<(), GuestMemoryError> {
    match map.get_slice(GuestAddress(address), from.len()) {
        Ok(found) => {
            found.copy_from(from);
            Ok(())
        }
        Err(_) => map.write_slice(from, GuestAddress(address)),
    }
}

/// Where `length_bytes` from byte `from_bytes` of a row of segments lie. An address that would overflow is
/// one that is nowhere.
fn parts(segments: &[Segment], from_bytes: u64, length_bytes: usize) -> impl Iterator<Item = (u64, usize)> {
    let (mut skip, mut left) = (from_bytes, length_bytes);
    segments.iter().filter_map(move |segment| {
        let within = skip.min(wide(segment.length_bytes));
        skip -= within;
        let rest = segment.length_bytes - usize::try_from(within).expect("it lies within the segment");
        let length_bytes = rest.min(left);
        left -= length_bytes;
        (length_bytes > 0).then(|| (segment.address.saturating_add(within), length_bytes))
    })
}
