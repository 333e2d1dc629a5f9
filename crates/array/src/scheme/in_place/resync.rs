//! After an unclean stop without a journal: parity and checksums of every stripe anew, as md's
//! resync does it.
//!
//! Nothing tells which stripes were being written, so all of them are read, in large pieces: chunk `s + 1` is
//! the chunk of stripe `s` on every device. The data is taken as it is (of what was being written, any sector
//! may be old or new) and parity that does not match is replaced. Chunks that cannot be read are computed
//! from parity as it is; on a degraded array that may be wrong, so it must be asked for.

use super::{addr_of, chunk_of, index_of, set_written};
use crate::checksum::chunk_checksum;
use crate::health::Health;
use crate::restart::{AssembleError, DirtyDegraded, RecoveryReport, Restart, write_or_fail};
use crate::saved::SavedPages;
use crate::store::Store;
use block::{ChunkAddr, DevIndex, DeviceSet, StripeId};

/// What is known of the parity on the main devices.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Parity {
    /// It belongs to the data, but for the stripes that were being written.
    Current,
    /// Any stripe's may lack changes that were only logged: chunks that cannot be read are not computed from
    /// it unless the operator accepts wrong data.
    MayBeStale,
}

/// Bytes read from a device at once, at least a chunk.
const READ_BYTES: usize = 1 << 20;

/// Some consecutive stripes in memory.
struct Window<'a> {
    store: &'a mut Store,
    devices: &'a mut dyn DeviceSet,
    health: &'a mut Health,
    /// Stripes in it at most.
    width: usize,
    first: u64,
    count: usize,
    /// `width` chunks of each device, then one chunk for each parity.
    region: Vec<u8>,
    /// Which chunks of `region` could not be read.
    bad: Vec<bool>,
    /// Whether what could not be read is computed from parity.
    computes: bool,
}

/// Whether all members are there, or the operator accepts what that may do to the data.
pub fn may_start(health: &Health, restart: Restart) -> Result<(), AssembleError> {
    match restart.dirty_degraded {
        DirtyDegraded::Refuse if health.missing_count() > 0 => Err(AssembleError::DirtyDegraded),
        DirtyDegraded::Refuse | DirtyDegraded::Accept => Ok(()),
    }
}

/// Makes every stripe consistent.
pub fn resync(
    store: &mut Store,
    devices: &mut dyn DeviceSet,
    health: &mut Health,
    (restart, saved): (Restart, &SavedPages),
    parity: Parity,
    report: &mut RecoveryReport,
) -> Result<(), AssembleError> {
    may_start(health, restart)?; // members may have failed since it was asked first
    let (len, stripes) = (store.config.geometry.chunk_bytes(), store.config.stripe_count);
    let (n, m) = (store.main_count(), store.config.geometry.parity_count());
    let width = (READ_BYTES / len).max(1).min(usize::try_from(stripes).unwrap_or(usize::MAX));
    let computes = parity == Parity::Current || restart.dirty_degraded == DirtyDegraded::Accept;
    let (region, bad) = (vec![0; (n * width + m) * len], vec![false; n * width]);
    let mut window = Window { store, devices, health, width, first: 0, count: 0, region, bad, computes };
    while window.first < stripes {
        window.count = usize::try_from(stripes - window.first).unwrap_or(usize::MAX).min(width);
        for dev in (0..n as u16).map(DevIndex::new) {
            window.load(dev);
        }
        let stripes = (0..window.count).map(|index| window.stripe(index));
        let pages = window.store.table.pages_of(stripes);
        saved.hold(window.devices, &mut window.store.table, &pages)?;
        for index in 0..window.count {
            window.settle(index);
        }
        SavedPages::let_go(&mut window.store.table, &pages);
        report.resynced += window.count as u64;
        window.first += window.count as u64;
    }
    Ok(())
}

impl Window<'_> {
    fn stripe(&self, index: usize) -> StripeId {
        StripeId::new(self.first + index as u64)
    }

    /// Reads the window's chunks of one device; where that fails, chunk by chunk.
    fn load(&mut self, dev: DevIndex) {
        let len = self.store.config.geometry.chunk_bytes();
        let chunks = dev.index() * self.width..dev.index() * self.width + self.count;
        let offset = self.store.config.chunk_offset(chunk_of(self.stripe(0)));
        let bytes = &mut self.region[chunks.start * len..chunks.end * len];
        let works = self.health.is_readable(ChunkAddr::new(dev, chunk_of(StripeId::new(self.first))));
        if works && self.devices.read_now(dev, offset, bytes).is_ok() {
            return self.bad[chunks].fill(false);
        }
        for (i, (bytes, bad)) in bytes.chunks_mut(len).zip(&mut self.bad[chunks]).enumerate() {
            *bad = !works || self.devices.read_now(dev, offset + (i * len) as u64, bytes).is_err();
        }
    }

    /// Where a column of a stripe is in `bad`, and, times the chunk size, in `region`.
    fn place(&self, index: usize, column: usize) -> usize {
        self.store.layout.device(self.stripe(index), column).index() * self.width + index
    }

    /// Computes what could not be read, then parity and checksums, and writes what differs.
    fn settle(&mut self, index: usize) {
        let geometry = self.store.config.geometry;
        let (k, n, len) = (geometry.data_count(), geometry.device_count(), geometry.chunk_bytes());
        let places: Vec<usize> = (0..n).map(|column| self.place(index, column)).collect();
        let data: Vec<usize> = (0..k).collect();
        let pick = |columns: std::ops::Range<usize>, bad: bool| -> Vec<(usize, usize)> {
            let picked = columns.filter(|&column| self.bad[places[column]] == bad);
            picked.map(|column| (index_of(self.store, column), places[column] * len)).collect()
        };
        let (present, wanted) = (pick(0..n, false), pick(0..k, true));
        if !wanted.is_empty()
            && (!self.computes
                || self
                    .store
                    .code
                    .rebuild_in(&mut erasure::Region::new(&mut self.region, len), &data, &present, &wanted)
                    .is_err())
        {
            return self.give_up(index, &places);
        }
        let inputs: Vec<usize> = places[..k].iter().map(|place| place * len).collect();
        let outputs: Vec<usize> = (0..n - k).map(|row| (n * self.width + row) * len).collect();
        self.store.code.encode_in(&mut erasure::Region::new(&mut self.region, len), &data, &inputs, &outputs);
        for column in 0..n {
            let found = places[column] * len;
            let right = if column < k { found } else { outputs[column - k] };
            let differs = self.bad[places[column]]
                || self.region[found..found + len] != self.region[right..right + len];
            let (addr, bytes) =
                (addr_of(self.store, self.stripe(index), column), &self.region[right..right + len]);
            if differs {
                let offset = self.store.config.chunk_offset(addr.chunk);
                write_or_fail(self.devices, self.health, addr.dev, offset, bytes);
            }
            set_written(self.store, StripeId::new(self.first + index as u64), column, chunk_checksum(bytes));
        }
    }

    /// Too much of the stripe cannot be read: what can be is kept, the rest will read as an error.
    fn give_up(&mut self, index: usize, places: &[usize]) {
        let len = self.store.config.geometry.chunk_bytes();
        for (column, &place) in places.iter().enumerate() {
            let crc = chunk_checksum(&self.region[place * len..(place + 1) * len]);
            let crc = if self.bad[place] { !crc } else { crc };
            set_written(self.store, self.stripe(index), column, crc);
        }
    }
}
