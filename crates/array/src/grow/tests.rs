//! What an array becomes on larger devices, and why it does not.

use super::*;
use crate::create::{CreateOptions, plan_config};
use block::Geometry;
use format::{CodeKind, Consistency, LayoutKind, SchemeKind};

fn config(scheme: SchemeKind, main_bytes: u64) -> ArrayConfig {
    let options = CreateOptions {
        scheme,
        code: CodeKind::Cauchy,
        layout: LayoutKind::Rotate,
        consistency: Consistency::Journal,
        geometry: Geometry::new(4, 2, 4096).expect("valid"),
        reserve_permille: if scheme.is_elastic() { 200 } else { 100 },
        unit_rows: None,
    };
    let logs = if scheme.has_log() { 2 } else { 0 };
    plan_config(&options, main_bytes, 16 << 20, logs).expect("large enough")
}

const SCHEMES: [SchemeKind; 5] =
    [SchemeKind::Raid, SchemeKind::Eplog, SchemeKind::ParityLog, SchemeKind::Elastic, SchemeKind::Was];

/// Whatever there is stays where it is, what is new is behind it, and a device twice as large gives nearly
/// twice the volume; again and again.
#[test]
fn what_is_there_stays_and_what_is_new_is_behind_it() {
    for scheme in SCHEMES {
        let mut before = config(scheme, 64 << 20);
        for size in [128 << 20, 129 << 20, 512 << 20, 4 << 30] {
            let after = match grown_config(&before, &[size; 6]) {
                Ok(after) => after,
                Err(error) => {
                    assert!(matches!(error, GrowError::TooSmall { .. }) && size == 129 << 20, "{error}");
                    continue;
                }
            };
            after.validate().expect("an array");
            assert_eq!(after.data_start(), before.data_start(), "{scheme}");
            assert!(after.metadata_start() >= before.main_device_bytes(), "{scheme}");
            assert!(after.main_device_bytes() <= size, "{scheme}");
            assert!(after.main_device_bytes() + (2 << 20) > size, "{scheme}: {after:?}");
            assert!(after.stripe_count > before.stripe_count, "{scheme}");
            if size > 129 << 20 {
                let fresh = config(scheme, size).volume_bytes() as f64;
                let share = after.volume_bytes() as f64 / fresh;
                assert!((0.93..=1.15).contains(&share), "{scheme}: {share} of a new array of {size}");
            }
            before = after;
        }
    }
}

#[test]
fn the_smallest_device_decides_and_is_named() {
    let before = config(SchemeKind::Eplog, 64 << 20);
    let used_bytes = before.main_device_bytes();
    let mut sizes = [256 << 20; 6];
    sizes[3] = used_bytes + 4096;
    let Err(GrowError::TooSmall { dev, found_bytes, needed_bytes, .. }) = grown_config(&before, &sizes)
    else {
        panic!("it is not too small");
    };
    assert_eq!((dev, found_bytes), (DevIndex::new(3), sizes[3]));
    sizes[3] = needed_bytes;
    let after = grown_config(&before, &sizes).expect("large enough now");
    assert!(after.stripe_count > before.stripe_count);
    sizes[3] = needed_bytes - 1;
    assert!(grown_config(&before, &sizes).is_err());
    sizes[3] = used_bytes - 1;
    let shrunk = GrowError::Shrunk { dev, found_bytes: used_bytes - 1, used_bytes };
    assert_eq!(grown_config(&before, &sizes), Err(shrunk));
}
