//! What is exported, as told to clients.

use super::wire;
use crate::Volume;

/// Name, size and abilities of the exported volume.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Export {
    /// The export's name; the empty name (the default export) means it, too.
    pub name: String,
    /// Free text shown by `nbdinfo`.
    pub description: String,
    /// Size in bytes.
    pub size_bytes: u64,
    /// Preferred request size.
    pub preferred_bytes: u32,
    /// Whether writes are refused.
    pub read_only: bool,
}

impl Export {
    /// The export of a volume. Name and description are cut at [`wire::NAME_BYTES_MAX`].
    pub fn new(name: &str, description: &str, volume: &dyn Volume) -> Self {
        let preferred = u32::try_from(volume.chunk_bytes()).unwrap_or(wire::REQUEST_BYTES_MAX);
        Self {
            name: cut(name, wire::NAME_BYTES_MAX).to_owned(),
            description: cut(description, wire::NAME_BYTES_MAX).to_owned(),
            size_bytes: volume.size_bytes(),
            preferred_bytes: preferred.clamp(wire::BLOCK_BYTES_MIN, wire::REQUEST_BYTES_MAX),
            read_only: volume.read_only(),
        }
    }

    /// Whether a client that says `name` means this export.
    pub fn is_named(&self, name: &[u8]) -> bool {
        name.is_empty() || name == self.name.as_bytes()
    }

    /// The transmission flags. Several connections may be opened: a flush on one covers all.
    pub fn transmission_flags(&self, structured_replies: bool) -> u16 {
        use wire::transmission_flag as flag;
        let mut flags = flag::HAS_FLAGS | flag::SEND_FLUSH | flag::SEND_FUA | flag::SEND_TRIM;
        flags |= flag::SEND_WRITE_ZEROES | flag::CAN_MULTI_CONN | flag::SEND_CACHE;
        if self.read_only {
            flags |= flag::READ_ONLY;
        }
        if structured_replies {
            flags |= flag::SEND_DF;
        }
        flags
    }
}

fn cut(text: &str, bytes_max: usize) -> &str {
    let end = (0..=bytes_max.min(text.len())).rev().find(|&i| text.is_char_boundary(i)).unwrap_or(0);
    &text[..end]
}
