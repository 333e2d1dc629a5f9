//! Rows, places in them, and which logical chunk each place holds the newest version of.

use crate::store::Store;
use block::{ChunkAddr, ChunkIndex, Lcn, StripeId};
use format::ArrayConfig;

const FREED: u32 = 1 << 31;
const OPEN: u32 = 1 << 30;

/// What the table says of a row: nothing; a stripe of so many data chunks, of a class, which may be open; or
/// one whose unit is free since.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RowWord(u32);

impl RowWord {
    /// A row that holds a stripe of `width` data chunks, 1..=255.
    pub fn new(width: usize, class: u8) -> Self {
        Self(width as u32 & 0xff | u32::from(class) << 8)
    }

    pub fn read(store: &Store, row: u32) -> Self {
        Self(store.table.row(row))
    }

    pub fn write(self, store: &mut Store, row: u32) {
        store.table.set_row(row, self.0);
    }

    /// The same, with nothing in it that anybody needs.
    pub fn freed(self) -> Self {
        Self(self.0 | FREED)
    }

    /// The same, its parity in the log.
    pub fn open(self) -> Self {
        Self(self.0 | OPEN)
    }

    /// Whether its parity is in the log.
    pub fn is_open(self) -> bool {
        self.is_live() && self.0 & OPEN != 0
    }

    pub fn is_live(self) -> bool {
        self.0 != 0 && self.0 & FREED == 0
    }

    /// Whether no scheme writes such a word.
    pub fn is_damaged(self) -> bool {
        self.0 != 0 && (self.width() == 0 || self.0 & !(FREED | OPEN | 0xffff) != 0)
    }

    /// Data chunks, those of a freed row too; 0 if it was never written.
    pub fn width(self) -> usize {
        (self.0 & 0xff) as usize
    }

    pub fn class(self) -> u8 {
        (self.0 >> 8 & 0xff) as u8
    }
}

/// Where column `column` (data, then parity) of a row is.
pub fn address(store: &Store, row: u32, column: usize) -> ChunkAddr {
    ChunkAddr::new(store.layout.device(StripeId::new(row.into()), column), ChunkIndex::new(row + 1))
}

/// Where a parity of a row is whose parities are at `block` of the log; if that is none, in the row.
pub fn parity_address(store: &Store, row: u32, block: ChunkIndex, parity: usize) -> ChunkAddr {
    match block.is_none() {
        true => address(store, row, store.config.geometry.data_count() + parity),
        false => ChunkAddr::new(store.log_device(parity), block),
    }
}

/// See the module's documentation. A *place* is row x k + column + 1.
pub struct Rows {
    data_count: u32,
    /// Per place: 1 + the logical chunk whose newest version it holds, 0 if it holds none.
    owners: Vec<u32>,
}

impl Rows {
    pub fn new(store: &Store) -> Self {
        let k = store.config.geometry.data_count();
        Self { data_count: k as u32, owners: vec![0; store.config.chunks_per_device as usize * k] }
    }

    pub fn row_of(&self, place: u32) -> u32 {
        (place - 1) / self.data_count
    }

    pub fn column_of(&self, place: u32) -> usize {
        ((place - 1) % self.data_count) as usize
    }

    pub fn place_at(&self, row: u32, column: usize) -> u32 {
        row * self.data_count + column as u32 + 1
    }

    /// The logical chunk whose newest version is at a place.
    pub fn owner(&self, place: u32) -> Option<Lcn> {
        let owner = self.owners[place as usize - 1].checked_sub(1)?;
        Some(Lcn::new(owner.into()))
    }

    pub fn own(&mut self, place: u32, lcn: Lcn) {
        self.owners[place as usize - 1] = lcn.get() as u32 + 1;
    }

    pub fn disown(&mut self, place: u32) {
        self.owners[place as usize - 1] = 0;
    }

    pub fn bytes_for(config: &ArrayConfig) -> u64 {
        u64::from(config.chunks_per_device) * config.geometry.data_count() as u64 * 4
    }

    pub fn memory_bytes(&self) -> u64 {
        self.owners.len() as u64 * 4
    }
}
