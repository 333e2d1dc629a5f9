//! The smallest devices that an array can be made of are as large as the refusal of smaller ones says.

use array::{CreateError, CreateOptions, plan_config};
use block::Geometry;
use format::{CodeKind, Consistency, LayoutKind, SchemeKind};

/// What is missing to make an array of devices of that size, in bytes; `None` if nothing is.
fn needed(options: &CreateOptions, main_bytes: u64) -> Option<u64> {
    let m = options.geometry.parity_count();
    let logs = if options.scheme.has_log() { m } else { 0 };
    match plan_config(options, main_bytes, 1 << 30, logs) {
        Ok(config) => {
            assert!(config.main_device_bytes() <= main_bytes && config.stripe_count > 0);
            None
        }
        Err(CreateError::TooSmall { expected_bytes, .. }) => Some(expected_bytes),
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn devices_as_large_as_the_refusal_says_suffice_and_smaller_ones_do_not() {
    let schemes =
        [SchemeKind::Raid, SchemeKind::ParityLog, SchemeKind::Eplog, SchemeKind::Elastic, SchemeKind::Was];
    for scheme in schemes {
        let units = if scheme.is_elastic() { &[None, Some(2), Some(4096)][..] } else { &[None] };
        for (k, m, chunk_bytes) in [(1, 1, 4096), (6, 2, 4096), (30, 3, 65536), (3, 1, 1 << 20)] {
            for (&unit_rows, reserve_permille) in units.iter().flat_map(|u| [0, 200, 900].map(|r| (u, r))) {
                for consistency in [Consistency::Resync, Consistency::Journal] {
                    let options = CreateOptions {
                        scheme,
                        code: if m == 1 { CodeKind::Xor } else { CodeKind::Cauchy },
                        layout: LayoutKind::Spread,
                        consistency,
                        geometry: Geometry::new(k, m, chunk_bytes).unwrap(),
                        reserve_permille,
                        unit_rows,
                    };
                    let bytes = needed(&options, 1 << 20).unwrap();
                    assert_eq!(needed(&options, bytes), None, "{options:?}");
                    assert_eq!(needed(&options, bytes - 4096), Some(bytes), "{options:?}");
                }
            }
        }
    }
}
