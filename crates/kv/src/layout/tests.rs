//! Round trips, and arbitrary bytes: no decoder panics, and none takes what was changed.

use super::*;
use crate::hash::{KeyHash, Secret};
use proptest::prelude::*;

fn geometry() -> Geometry {
    Geometry::new(VolumeShape { volume_bytes: 2 << 20, segment_bytes: Some(64 << 10) }).expect("it fits")
}

fn header() -> Header {
    Header { uuid: *b"0123456789abcdef", secret: Secret([3, 4]), geometry: geometry() }
}

fn entries() -> Vec<Entry> {
    let entry = |n: u32| Entry {
        hash: KeyHash { main: n.into(), more: n },
        seq: u64::from(n) + 7,
        offset_units: 6 + n * 4,
        units: 4,
        kind: if n == 3 { None } else { Some(Kind::Value) },
    };
    (0..300).map(entry).collect()
}

#[test]
fn volumes_of_all_sizes_are_cut_up_within_themselves() {
    for volume_bytes in [16 << 20, 17 << 20, 100 << 20, 1 << 30, 3 << 40, 16 << 40] {
        let geometry = Geometry::new(VolumeShape { volume_bytes, segment_bytes: None }).expect("it fits");
        assert!(geometry.slot_start(geometry.slots()) + 4096 <= volume_bytes);
        assert!(geometry.segment_payload_bytes() > geometry.segment_bytes / 2);
        assert_eq!(geometry.slot_of(geometry.slot_start(5) + 1), 5);
    }
    for volume_bytes in [0, 1 << 20, 17 << 40, u64::MAX] {
        assert!(Geometry::new(VolumeShape { volume_bytes, segment_bytes: None }).is_err());
    }
    for segment_bytes in [0, 3 << 20, 16 << 20, 4096] {
        let shape = VolumeShape { volume_bytes: 1 << 30, segment_bytes: Some(segment_bytes) };
        assert!(Geometry::new(shape).is_err());
    }
}

#[test]
fn what_has_grown_overlaps_nothing_that_was_used() {
    let mut geometry = geometry();
    for volume_bytes in [(2 << 20) + 200_000, 40 << 20, 60 << 20, 1 << 34] {
        let grown = geometry.grown(volume_bytes).expect("there is room");
        assert!(grown.slot_count > geometry.slot_count);
        assert_eq!(grown.slot_start(5), geometry.slot_start(5));
        let table = table_bytes(grown.slot_count);
        let tables = [(0, 0), (0, 1), (1, 0), (1, 1)].map(|(epoch, copy)| grown.table_place(epoch, copy));
        assert!(tables[0] >= geometry.volume_bytes && tables[0] >= grown.slot_start(grown.slots()));
        assert!(tables.windows(2).all(|two| two[1] - two[0] == table));
        assert_eq!(tables[3] + table, grown.header_places()[2]);
        let header = Header { geometry: grown, ..header() };
        assert_eq!(Header::decode(&header.encode()), Ok(header));
        geometry = grown;
    }
    assert_eq!(geometry.grown(geometry.volume_bytes), None);
    assert_eq!(geometry.grown(geometry.volume_bytes + (64 << 10)), None, "tables would lie over tables");
    assert_eq!(geometry.grown(1 << 20), None);
    // With segments so small more of them would make the tables too large.
    assert_eq!((geometry.slot_count, geometry.grown(3 << 40)), (16 << 10, None));
    // Beyond what addresses reach nothing is used.
    let large = Geometry::new(VolumeShape { volume_bytes: 1 << 40, segment_bytes: None }).expect("it fits");
    assert_eq!(large.grown(u64::MAX).map(|grown| grown.volume_bytes), Some(16 << 40));
}

#[test]
fn everything_comes_back_as_it_was() {
    assert_eq!(Header::decode(&header().encode()), Ok(header()));
    let durable = Durable { number: 9, sequences: 4, reached: [(3, 16), (2, 2048)], epoch: 77 };
    let batch = Batch {
        owner: 5,
        sequence: 3,
        address: 8192,
        number: 10,
        used_bytes: 200,
        last: true,
        stream: 1,
        record_limit: 1 << 40,
        durable,
    };
    let mut bytes = [0; BATCH_BYTES];
    batch.encode(&mut bytes);
    assert_eq!(Batch::decode(&bytes, 5, 8192, 4096), Ok(batch));
    assert_eq!(Batch::decode(&bytes, 5, 4096, 4096), Err(Malformed::Elsewhere));
    let table = Table { epoch: 3, durable, next_sequence: 8, slots: vec![1, 0, 7], ..Table::default() };
    assert_eq!(Table::decode(&table.encode(5), 5, 3), Ok(table));
    let blocks = Footer::encode(5, 3, 65536, &entries());
    let footer = Footer::decode(&blocks, 5, 65536, 64 << 10).expect("written so");
    assert_eq!(footer.entries(&blocks, 64 << 10), Ok(entries()));
    let place = Place { sequence: 3, address: 4192 };
    let head = Head::new(Kind::Value, 1 << 47, 12345, b"key", b"value");
    let mut bytes = Vec::new();
    head.append(&mut bytes, place, b"key", b"value");
    assert_eq!(crate::numbers::wide(bytes.len()), head.taken_bytes());
    assert_eq!(Head::decode(&bytes, place), Ok((head, &b"key"[..])));
    assert_eq!(head.value(&bytes), Ok(&b"value"[..]));
    assert!(Head::decode(&bytes, Place { sequence: 4, address: 4192 }).is_err());
    let manifest = Manifest { id: 4, value_bytes: 1 << 29 };
    assert_eq!(Manifest::decode(&manifest.encode()), Ok(manifest));
}

proptest! {
    #[test]
    fn arbitrary_bytes_are_refused_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..5000)) {
        prop_assert!(Header::decode(&bytes).is_err());
        prop_assert!(Batch::decode(&bytes, 1, 0, 1 << 20).is_err());
        prop_assert!(Table::decode(&bytes, 1, 3).is_err());
        prop_assert!(Footer::decode(&bytes, 1, 0, 1 << 20).is_err());
        let place = Place { sequence: 1, address: 0 };
        prop_assert!(Head::decode(&bytes, place).is_err());
        let _ = Manifest::decode(&bytes);
    }

    #[test]
    fn one_changed_byte_is_found(at in 0_usize..8192, change in 1_u8..) {
        let mut bytes = header().encode();
        if at < 96 {
            bytes[at] ^= change;
            prop_assert!(Header::decode(&bytes).is_err());
        }
        let mut bytes = Footer::encode(5, 3, 65536, &entries());
        let used = entries().len() * ENTRY_BYTES + FOOTER_BYTES;
        let at = bytes.len() - 1 - at % used;
        bytes[at] ^= change;
        let found = Footer::decode(&bytes, 5, 65536, 64 << 10);
        prop_assert!(found.and_then(|footer| footer.entries(&bytes, 64 << 10)).is_err());
        let place = Place { sequence: 3, address: 4192 };
        let mut bytes = Vec::new();
        let head = Head::new(Kind::Value, 5, 0, b"key", &[7; 100]);
        head.append(&mut bytes, place, b"key", &[7; 100]);
        let at = at % 129;
        bytes[at] ^= change;
        let found = Head::decode(&bytes, place).and_then(|(head, _)| head.value(&bytes).map(<[u8]>::to_vec));
        prop_assert!(found.is_err());
    }
}
