//! What is exported, as told to clients.

use crate::Volume;

/// Name, size and abilities of the exported volume.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Export {
    /// The export's name; the empty name (the default export) means it, too.
    pub name: String,
    /// Free text for people.
    pub description: String,
    /// What tells the volume from others, for protocols that have no room for a name.
    pub serial: [u8; 20],
    /// Size in bytes.
    pub size_bytes: u64,
    /// Request size at which the volume is at its best.
    pub preferred_bytes: usize,
    /// Whether writes are refused.
    pub read_only: bool,
}

impl Export {
    /// The export of a volume.
    pub fn new(name: &str, description: &str, volume: &dyn Volume) -> Self {
        // No protocol has a word for it yet: what can be told, people are told.
        let untorn = match volume.untorn_bytes() {
            0 => String::new(),
            bytes => format!("; writes of up to {} KiB, aligned to their size, are never torn", bytes / 1024),
        };
        Self {
            name: name.to_owned(),
            description: format!("{description}{untorn}"),
            serial: [0; 20],
            size_bytes: volume.size_bytes(),
            preferred_bytes: volume.chunk_bytes(),
            read_only: volume.read_only(),
        }
    }

    /// Whether a client that says `name` means this export.
    pub fn is_named(&self, name: &[u8]) -> bool {
        name.is_empty() || name == self.name.as_bytes()
    }
}
