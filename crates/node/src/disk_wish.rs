//! What is wanted of a disk of this machine's kernel, whether this build can make one or not.

/// What answers of the disk promise.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DiskCache {
    /// What is answered is durable, and the disk outlives a server that is killed.
    None,
    /// Writes are durable after a flush; the disk ends with its server.
    Volatile,
}

/// See the module's documentation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DiskWish {
    /// Its number; the one it has, or any that is free, without.
    pub number: Option<u32>,
    /// What it promises.
    pub cache: DiskCache,
    /// Its queues: one for each thread that serves clients.
    pub queues: u16,
}
