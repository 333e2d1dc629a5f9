//! vhost-user-blk: a virtio block device for virtual machines and for programs that drive one themselves.
//!
//! The client shares its memory and puts requests into rings there; over the socket go only words about
//! memory and rings. So nothing of a request passes through the kernel: a `Guest` takes requests out of
//! the rings, copies payload between the client's memory and the slots of the volume, and puts the answers
//! back.
//!
//! ```text
//!   socket --- messages ----> Device (memory, rings, features)
//!   memory --- rings -------> Transfer (one chain) ---> pieces of the volume
//!          <-- used rings ---                      <---
//! ```
//!
//! # Invariants
//! - What the client's memory says is read once and then checked. Addresses outside of the memory that was
//!   shared, chains that are broken and indexes that cannot be end the connection; they are never followed.
//! - Messages are looked at only while none of the client's requests is under way: memory is never taken
//!   away from beneath one.
//! - A ring is asked to tell of new requests only before the thread goes to sleep, and looked at once more
//!   after that.
//!
//! Not defended against: a client that makes the file of its memory shorter while it is mapped. Then the
//! processor reports an access beyond its end (SIGBUS), which ends the server. The client itself can do that
//! (a virtual machine monitor), not what runs within the machine.

mod chain;
mod channel;
mod device;
mod guest;
mod memory;
mod violation;
mod wire;

pub(crate) use guest::Guest;
pub use violation::Violation;
