//! The log page "SMART / Health Information" (02h) of NVMe drives. Little-endian; places are bytes.

use super::{PAGE_BYTES, Warning, Wear};

/// Figures of data are in units of this: 1,000 sectors of 512 bytes.
const UNIT_BYTES: u64 = 512_000;

/// The bits of the first byte.
const WARNINGS: [(u8, Warning); 6] = [
    (0, Warning::SpareLow),
    (1, Warning::Temperature),
    (2, Warning::Unreliable),
    (3, Warning::ReadOnly),
    (4, Warning::CacheUnprotected),
    (5, Warning::MemoryRegion),
];

/// What a page says, or what is wrong with it.
pub(super) fn decode(page: &[u8; PAGE_BYTES]) -> Result<Wear, &'static str> {
    let warnings = WARNINGS.iter().filter(|(bit, _)| page[0] & (1 << bit) != 0).map(|&(_, warning)| warning);
    let kelvin = u16::from_le_bytes([page[1], page[2]]);
    let (spare, spare_min, used) = (page[3], page[4], page[5]);
    if spare > 100 || spare_min > 100 {
        return Err("more spare than all of it");
    }
    // Zero is how a drive says that it does not count them.
    let counted = |at| Some(figure(page, at)).filter(|&units| units > 0);
    let bytes = |at| counted(at).map(|units| units.saturating_mul(UNIT_BYTES));
    Ok(Wear {
        used_percent: Some(used),
        written_bytes: bytes(48),
        read_bytes: bytes(32),
        media_errors: Some(figure(page, 160)),
        spare_percent: Some(spare),
        spare_percent_min: Some(spare_min),
        temperature_c: (kelvin > 0).then(|| i16::try_from(i32::from(kelvin) - 273).unwrap_or(i16::MAX)),
        power_on_hours: Some(figure(page, 128)),
        unsafe_shutdowns: Some(figure(page, 144)),
        warnings: warnings.collect(),
    })
}

/// 16 bytes as a number; what does not fit into 64 bits is as good as endless.
fn figure(page: &[u8; PAGE_BYTES], at: usize) -> u64 {
    let bytes: [u8; 16] = std::array::from_fn(|index| page[at + index]);
    u64::try_from(u128::from_le_bytes(bytes)).unwrap_or(u64::MAX)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests {
    use super::*;
    use block::{Random as _, SplitMix};

    /// A drive in use, field by field after the specification.
    fn page() -> [u8; PAGE_BYTES] {
        let mut page = [0; PAGE_BYTES];
        page[1..3].copy_from_slice(&311u16.to_le_bytes());
        (page[3], page[4], page[5]) = (97, 10, 12);
        page[32..48].copy_from_slice(&5_000u128.to_le_bytes());
        page[48..64].copy_from_slice(&2_000_000u128.to_le_bytes());
        page[128..144].copy_from_slice(&8_760u128.to_le_bytes());
        page[144..160].copy_from_slice(&3u128.to_le_bytes());
        page[160..176].copy_from_slice(&1u128.to_le_bytes());
        page
    }

    #[test]
    fn every_field_is_at_its_place() {
        let expected = Wear {
            used_percent: Some(12),
            written_bytes: Some(1_024_000_000_000),
            read_bytes: Some(2_560_000_000),
            media_errors: Some(1),
            spare_percent: Some(97),
            spare_percent_min: Some(10),
            temperature_c: Some(38),
            power_on_hours: Some(8_760),
            unsafe_shutdowns: Some(3),
            warnings: Vec::new(),
        };
        assert_eq!(decode(&page()), Ok(expected));
    }

    #[test]
    fn every_bit_is_a_warning_of_its_own() {
        for (bit, warning) in WARNINGS {
            let mut page = page();
            page[0] = 1 << bit;
            assert_eq!(decode(&page).unwrap().warnings, [warning]);
        }
        let mut page = page();
        page[0] = 0xff;
        assert_eq!(
            decode(&page).unwrap().warnings.len(),
            WARNINGS.len(),
            "bits of later versions are passed over"
        );
    }

    #[test]
    fn what_is_not_reported_is_no_zero() {
        let wear = decode(&[0; PAGE_BYTES]).unwrap();
        assert_eq!((wear.written_bytes, wear.read_bytes, wear.temperature_c), (None, None, None));
        assert_eq!((wear.used_percent, wear.media_errors), (Some(0), Some(0)));
    }

    #[test]
    fn extremes_stay_within_their_types_and_nonsense_is_refused() {
        assert_eq!(decode(&[0xff; PAGE_BYTES]), Err("more spare than all of it"));
        let mut page = [0xff; PAGE_BYTES];
        (page[3], page[4]) = (100, 100);
        let wear = decode(&page).unwrap();
        assert_eq!((wear.used_percent, wear.written_bytes), (Some(255), Some(u64::MAX)));
        assert_eq!(wear.temperature_c, Some(i16::MAX));
    }

    #[test]
    fn any_bytes_are_decoded_or_refused() {
        let mut random = SplitMix::new(13);
        for _ in 0..20_000 {
            let mut page = page();
            for _ in 0..1 + random.below(64) {
                let at = usize::try_from(random.below(512)).unwrap();
                page[at] = random.word().to_le_bytes()[0];
            }
            match decode(&page) {
                Ok(wear) => assert!(wear.spare_percent.unwrap() <= 100),
                Err(why) => assert!(page[3] > 100 || page[4] > 100, "{why}"),
            }
        }
    }
}
