//! Which device holds which column of a data stripe.
//!
//! A column never leaves its device: updates go to another chunk of the same SSD (EPLOG, section 3.2), so
//! this map is a pure function of the stripe number.

use block::{DevIndex, Divisor, Geometry, Lcn, StripeId};
use format::LayoutKind;

/// Widest array for which [`LayoutKind::Spread`] is tabulated: its period is lcm(1..=n), 2,520 stripes for
/// n = 10.
pub const SPREAD_DEVICES_MAX: usize = 10;

/// The column-to-device map of an array.
pub struct Layout {
    geometry: Geometry,
    by_period: Divisor,
    /// As many rows as the period has, of n devices: k data columns, then m parity columns.
    devices: Vec<u8>,
    /// As many rows of n columns: the column that each device holds.
    columns: Vec<u8>,
}

/// The devices of the columns of a stripe among so many, of which so many hold its data.
type Row = fn(u64, usize, usize) -> Vec<u8>;

/// The devices of the columns of a stripe, data, then parity.
#[derive(Clone, Copy)]
pub struct Devices<'a>(&'a [u8]);

impl Devices<'_> {
    /// That of one column.
    #[inline]
    pub fn get(&self, column: usize) -> DevIndex {
        DevIndex::new(u16::from(self.0[column]))
    }
}

impl Layout {
    /// Builds the map. `Spread` falls back to `Rotate` above `SPREAD_DEVICES_MAX` devices.
    pub fn new(kind: LayoutKind, geometry: Geometry) -> Self {
        let n = geometry.device_count();
        let (period, row_of): (u64, Row) = match kind {
            LayoutKind::Spread if n <= SPREAD_DEVICES_MAX => ((1..=n as u64).fold(1, lcm), spread_row),
            LayoutKind::Spread | LayoutKind::Rotate => (n as u64, rotate_row),
            LayoutKind::Fixed => (1, |_, n, k| rotate_row(0, n, k)),
            LayoutKind::LeftSymmetric => (n as u64, left_symmetric_row),
        };
        let mut devices = Vec::with_capacity(period as usize * n);
        let mut columns = vec![0u8; period as usize * n];
        for stripe in 0..period {
            let row = row_of(stripe, n, geometry.data_count());
            for (column, &dev) in row.iter().enumerate() {
                columns[stripe as usize * n + dev as usize] = column as u8;
            }
            devices.extend(row);
        }
        Self { geometry, by_period: Divisor::new(period), devices, columns }
    }

    /// The device of column `column` of `stripe`: data columns 0..k, then parity columns k..n.
    #[inline]
    pub fn device(&self, stripe: StripeId, column: usize) -> DevIndex {
        let row = self.by_period.remainder(stripe.get()) as usize * self.geometry.device_count();
        DevIndex::new(u16::from(self.devices[row + column]))
    }

    /// The devices of all columns of `stripe`.
    #[inline]
    pub fn devices(&self, stripe: StripeId) -> Devices<'_> {
        let n = self.geometry.device_count();
        let row = self.by_period.remainder(stripe.get()) as usize * n;
        Devices(&self.devices[row..row + n])
    }

    /// The column of `stripe` that a main device holds.
    #[inline]
    pub fn column_on(&self, stripe: StripeId, dev: DevIndex) -> usize {
        let row = self.by_period.remainder(stripe.get()) as usize * self.geometry.device_count();
        usize::from(self.columns[row + dev.index()])
    }

    /// The device that holds every version of a logical chunk.
    #[inline]
    pub fn device_of(&self, lcn: Lcn) -> DevIndex {
        self.device(self.geometry.stripe_of(lcn), self.geometry.column_of(lcn))
    }
}

/// The placement of the EPLOG prototype: column i goes to entry (stripe mod (n - i)) of the devices not yet
/// used by the stripe, in ascending order. Remainders by numbers with a divisor in common depend on each
/// other: some devices get more parity than others (`docs/decisions/0080-left-symmetric.md`).
fn spread_row(stripe: u64, n: usize, _: usize) -> Vec<u8> {
    let mut left: Vec<u8> = (0..n as u8).collect();
    (0..n).map(|column| left.remove((stripe % (n - column) as u64) as usize)).collect()
}

fn rotate_row(stripe: u64, n: usize, _: usize) -> Vec<u8> {
    (0..n).map(|column| ((stripe as usize + column) % n) as u8).collect()
}

/// The placement that Linux md has by default: the parities begin at the last device and move back by one
/// each stripe, the data begins behind them. A request that crosses into the next stripe goes on with a
/// device that it has not used (with one parity the very next).
fn left_symmetric_row(stripe: u64, n: usize, k: usize) -> Vec<u8> {
    let (first_parity, m) = (n - 1 - stripe as usize % n, n - k);
    let data = (0..k).map(|column| first_parity + m + column);
    data.chain((0..m).map(|row| first_parity + row)).map(|place| (place % n) as u8).collect()
}

fn lcm(a: u64, b: u64) -> u64 {
    let gcd = |mut a: u64, mut b: u64| {
        while b != 0 {
            (a, b) = (b, a % b);
        }
        a
    };
    a / gcd(a, b) * b
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_stripe_uses_every_device_once() {
        for (kind, k, m) in [
            (LayoutKind::Spread, 6, 2),
            (LayoutKind::Spread, 4, 1),
            (LayoutKind::Rotate, 6, 2),
            (LayoutKind::Spread, 20, 3),
            (LayoutKind::LeftSymmetric, 6, 2),
            (LayoutKind::LeftSymmetric, 4, 1),
            (LayoutKind::LeftSymmetric, 20, 3),
            (LayoutKind::Fixed, 6, 1),
            (LayoutKind::Fixed, 12, 2),
        ] {
            let geometry = Geometry::new(k, m, 4096).expect("valid");
            let layout = Layout::new(kind, geometry);
            let n = k + m;
            let mut parity_load = vec![0u64; n];
            for s in (0..layout.by_period.get()).map(StripeId::new) {
                let mut seen = vec![false; n];
                for column in 0..n {
                    let dev = layout.device(s, column);
                    assert!(!std::mem::replace(&mut seen[dev.index()], true));
                    assert_eq!(layout.column_on(s, dev), column);
                    if column >= k {
                        parity_load[dev.index()] += 1;
                    }
                }
            }
            let (low, high) = (parity_load.iter().min(), parity_load.iter().max());
            match kind {
                LayoutKind::Rotate | LayoutKind::LeftSymmetric => {
                    assert_eq!(low, high, "{k}+{m}: {kind} shares parity out evenly");
                }
                LayoutKind::Fixed => {
                    assert_eq!((low, high), (Some(&0), Some(&1)), "{k}+{m}: one row, parity behind data");
                    assert!(parity_load[..k].iter().all(|&load| load == 0));
                }
                LayoutKind::Spread => {
                    assert!(low.is_some_and(|&load| load > 0), "{k}+{m}: every device takes parity")
                }
            }
        }
    }

    /// `raid5_compute_sector` of Linux (drivers/md/raid5.c), ALGORITHM_LEFT_SYMMETRIC, for RAID-5 and RAID-6.
    #[test]
    fn left_symmetric_is_that_of_linux() {
        let devices = |k, m| {
            let layout = Layout::new(LayoutKind::LeftSymmetric, Geometry::new(k, m, 4096).expect("valid"));
            let row = |stripe| layout.devices(StripeId::new(stripe)).0.to_vec();
            (0..3).map(row).collect::<Vec<_>>()
        };
        assert_eq!(devices(3, 1), [[0, 1, 2, 3], [3, 0, 1, 2], [2, 3, 0, 1]]);
        assert_eq!(devices(3, 2), [[1, 2, 3, 4, 0], [0, 1, 2, 3, 4], [4, 0, 1, 2, 3]]);
    }

    #[test]
    fn one_more_neighbours_than_a_stripe_has_data_are_on_as_many_devices() {
        for (k, m) in (1..9).flat_map(|k| (1..4).map(move |m| (k, m))) {
            let geometry = Geometry::new(k, m, 4096).expect("valid");
            let layout = Layout::new(LayoutKind::LeftSymmetric, geometry);
            for first in 0..3 * (k * (k + m)) as u64 {
                let devices: std::collections::HashSet<DevIndex> =
                    (first..=first + k as u64).map(|lcn| layout.device_of(Lcn::new(lcn))).collect();
                assert_eq!(devices.len(), k + 1, "{k}+{m}, from chunk {first}");
            }
        }
    }
}
