//! Pages of the log "Device Statistics" (04h) of ATA drives. Little-endian; places are bytes.
//!
//! A page begins with its number; a statistic is eight bytes, of which the last has flags: whether the drive
//! knows it at all, and whether what it says now is valid.

use super::{PAGE_BYTES, Wear};

/// Pages that say something of wear.
pub(super) const PAGES: [u8; 4] = [SOLID_STATE, GENERAL, ERRORS, TEMPERATURE];

const GENERAL: u8 = 1;
const ERRORS: u8 = 4;
const TEMPERATURE: u8 = 5;
const SOLID_STATE: u8 = 7;

const IS_KNOWN: u8 = 1 << 7;
const IS_VALID: u8 = 1 << 6;

/// A page that a drive answered with, and the size of its sectors.
#[derive(Clone, Debug)]
pub(super) struct Page {
    pub bytes: Box<[u8; PAGE_BYTES]>,
    pub sector_bytes: u64,
}

/// Adds what a page says to what is known, or says what is wrong with it.
pub(super) fn decode(page: &Page, wear: Wear) -> Result<Wear, &'static str> {
    let Page { bytes, sector_bytes } = page;
    if u16::from_le_bytes([bytes[0], bytes[1]]) == 0 {
        return Err("no revision");
    }
    let figure = |at| statistic(bytes, at);
    let sectors = |at| figure(at).map(|sectors: u64| sectors.saturating_mul(*sector_bytes));
    match bytes[2] {
        GENERAL => Ok(Wear {
            power_on_hours: figure(16).map(|hours| hours & u64::from(u32::MAX)),
            written_bytes: sectors(24),
            read_bytes: sectors(40),
            ..wear
        }),
        ERRORS => Ok(Wear { media_errors: figure(8).map(|count| count & u64::from(u32::MAX)), ..wear }),
        TEMPERATURE => {
            let celsius = figure(8).map(|_| i16::from(i8::from_le_bytes([bytes[8]])));
            Ok(Wear { temperature_c: celsius, ..wear })
        }
        SOLID_STATE => Ok(Wear { used_percent: figure(8).map(|_| bytes[8]), ..wear }),
        _ => Err("a page that was not asked for"),
    }
}

/// The six bytes of a statistic that is known and valid.
fn statistic(page: &[u8; PAGE_BYTES], at: usize) -> Option<u64> {
    let flags = page[at + 7];
    let bytes: [u8; 8] = std::array::from_fn(|index| if index < 6 { page[at + index] } else { 0 });
    (flags & IS_KNOWN != 0 && flags & IS_VALID != 0).then(|| u64::from_le_bytes(bytes))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests {
    use super::*;
    use block::{Random as _, SplitMix};

    fn page(number: u8, statistics: &[(usize, u64, u8)]) -> Page {
        let mut bytes = Box::new([0; PAGE_BYTES]);
        (bytes[0], bytes[2]) = (1, number);
        for &(at, value, flags) in statistics {
            bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
            bytes[at + 7] = flags;
        }
        Page { bytes, sector_bytes: 512 }
    }

    const GOOD: u8 = IS_KNOWN | IS_VALID;

    #[test]
    fn each_page_adds_what_it_says() {
        let pages = [
            page(SOLID_STATE, &[(8, 34, GOOD)]),
            page(GENERAL, &[(16, 1_000, GOOD), (24, 4_000, GOOD), (40, 2_000, GOOD)]),
            page(ERRORS, &[(8, 5, GOOD)]),
            page(TEMPERATURE, &[(8, u64::from(0xffu8), GOOD)]),
        ];
        let wear = pages.iter().try_fold(Wear::default(), |wear, page| decode(page, wear)).unwrap();
        let expected = Wear {
            used_percent: Some(34),
            written_bytes: Some(2_048_000),
            read_bytes: Some(1_024_000),
            media_errors: Some(5),
            temperature_c: Some(-1),
            power_on_hours: Some(1_000),
            ..Wear::default()
        };
        assert_eq!(wear, expected);
    }

    #[test]
    fn what_is_unknown_or_not_valid_is_no_figure() {
        for flags in [0, IS_KNOWN, IS_VALID] {
            let wear = decode(&page(SOLID_STATE, &[(8, 34, flags)]), Wear::default()).unwrap();
            assert_eq!(wear.used_percent, None, "flags {flags:#x}");
        }
        let other = decode(&page(9, &[]), Wear::default());
        assert_eq!(other, Err("a page that was not asked for"));
        let empty = Page { bytes: Box::new([0; PAGE_BYTES]), sector_bytes: 512 };
        assert_eq!(decode(&empty, Wear::default()), Err("no revision"));
    }

    #[test]
    fn any_bytes_are_decoded_or_refused() {
        let mut random = SplitMix::new(7);
        for round in 0..20_000u64 {
            let mut page = page(PAGES[usize::try_from(round % 4).unwrap()], &[(8, 1, GOOD), (24, 2, GOOD)]);
            for _ in 0..32 {
                let at = usize::try_from(random.below(512)).unwrap();
                page.bytes[at] = random.word().to_le_bytes()[0];
            }
            let known = PAGES.contains(&page.bytes[2]) && (page.bytes[0], page.bytes[1]) != (0, 0);
            assert_eq!(decode(&page, Wear::default()).is_ok(), known);
        }
    }
}
