//! Why a client's rings or messages end its connection.

/// What a client of this protocol did wrong.
#[derive(Debug, thiserror::Error)]
pub enum Violation {
    /// A message that makes no sense, or not now.
    #[error("a message of the client: {0}")]
    Message(String),
    /// It does not read what it is answered.
    #[error("the client does not read its answers")]
    Deaf,
    /// The index of available requests is ahead by more than the ring holds, or cannot be read.
    #[error("ring {ring}: what it says is available cannot be: {why}")]
    Available {
        /// The ring.
        ring: usize,
        /// What the library says.
        why: String,
    },
    /// A chain of descriptors that is not one.
    #[error("ring {ring}, the chain at descriptor {head}: {what}")]
    Chain {
        /// The ring.
        ring: usize,
        /// Its first descriptor.
        head: u16,
        /// What is wrong with it.
        what: &'static str,
    },
    /// An address that leads out of the memory that the client shares.
    #[error(
        "ring {ring}, the chain at descriptor {head}: {length_bytes} bytes at {address:#x} are not in the client's memory"
    )]
    Address {
        /// The ring.
        ring: usize,
        /// First descriptor of the chain.
        head: u16,
        /// Where, in the client's physical addresses.
        address: u64,
        /// How much.
        length_bytes: usize,
    },
    /// The ring of answers cannot be written.
    #[error("ring {ring}: its answers cannot be written: {why}")]
    Used {
        /// The ring.
        ring: usize,
        /// What the library says.
        why: String,
    },
}
