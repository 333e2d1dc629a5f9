//! How much memory may be taken for what is known of the chunks.

/// Bytes of memory at most.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Bounds {
    /// The table, but for what must stay.
    pub table_bytes: u64,
    /// What waits for a commit, as a checkpoint's list says it, unpacked.
    pub list_bytes: u64,
}

/// A list may take at least so much: a million updates.
const LIST_BYTES_LEAST: u64 = 32 << 20;
/// A table may take as many times what a list may. In memory what waits for a commit takes six times what the
/// list does, at worst twenty times.
const TABLE_PER_LIST: u64 = 16;

impl Bounds {
    /// What there is room for on the devices.
    pub const NONE: Self = Self { table_bytes: u64::MAX, list_bytes: u64::MAX };
    /// As little as may be.
    pub const LEAST: Self = Self::of_table(0);

    /// What follows from the bound of the table.
    pub const fn of_table(table_bytes: u64) -> Self {
        let of_table = table_bytes / TABLE_PER_LIST;
        let list_bytes = if of_table > LIST_BYTES_LEAST { of_table } else { LIST_BYTES_LEAST };
        Self { table_bytes, list_bytes }
    }
}
