//! State and request in, plan text out.

use super::Raid;
use crate::create::{CreateOptions, plan_config};
use crate::fault::FailCause;
use crate::health::Health;
use crate::plan::Plan;
use crate::scheme::{ChunkWrite, Origin, Scheme, SchemeOptions};
use crate::store::Store;
use block::{DevIndex, Geometry, Lcn, Pool, Seq, StripeId};
use format::record::{InPlace, Zero};
use format::{
    CodeKind, Consistency, InPlacePiece, LayoutKind, MemberEntry, MemberState, RecordBuf, SchemeKind,
};

const CHUNK: u32 = 4096;

struct Bench {
    store: Store,
    scheme: Raid,
    health: Health,
    pool: Pool,
}

impl Bench {
    /// An array whose first `filled` stripes are written; column c of stripe s is on device (s + c) mod n.
    fn new(k: usize, m: usize, consistency: Consistency, filled: u64) -> Self {
        let options = CreateOptions {
            scheme: SchemeKind::Raid,
            code: if m == 1 { CodeKind::Xor } else { CodeKind::Cauchy },
            layout: LayoutKind::Rotate,
            consistency,
            geometry: Geometry::new(k, m, u64::from(CHUNK)).expect("valid"),
            reserve_permille: 0,
            unit_rows: None,
        };
        let config = plan_config(&options, 16 << 20, 0, 0).expect("fits");
        let entries = vec![MemberEntry { serial: 1, state: MemberState::Healthy }; k + m];
        let mut store = Store::new(config).expect("valid");
        let mut scheme = Raid::default();
        for stripe in 0..filled {
            write_all(&mut scheme, &mut store, stripe, 0..k);
        }
        let pool = Pool::new(CHUNK as usize, 1024);
        Self { store, scheme, health: Health::new(&config, &entries, 1), pool }
    }

    fn lose(mut self, devices: &[u16]) -> Self {
        devices.iter().for_each(|&dev| assert!(self.health.fail(DevIndex::new(dev), FailCause::Asked)));
        self
    }

    /// The plan of one request per range of bytes; how many chunk writes were refused.
    fn plan_requests(&mut self, requests: &[(u64, u64)]) -> (String, usize) {
        self.plan_into(requests, &mut Plan::default())
    }

    fn plan_into(&mut self, requests: &[(u64, u64)], plan: &mut Plan) -> (String, usize) {
        let mut writes = Vec::new();
        for (&(offset, length), request) in requests.iter().zip(0..) {
            let chunk = u64::from(CHUNK);
            for lcn in offset / chunk..(offset + length).div_ceil(chunk) {
                let from = offset.saturating_sub(lcn * chunk).min(chunk) as u32;
                let to = (offset + length - lcn * chunk).min(chunk) as u32;
                let slot = self.pool.alloc().expect("enough slots");
                writes.push(ChunkWrite {
                    origin: Origin::Request(request),
                    lcn: Lcn::new(lcn),
                    slot,
                    from,
                    to,
                    class: 0,
                    order: 0,
                });
            }
        }
        let mut refused = Vec::new();
        let pool = &mut self.pool;
        self.scheme.plan_writes(&mut self.store, &self.health, pool, &mut writes, &mut refused, plan);
        (plan.text(self.store.main_count()), refused.len())
    }

    fn plan(mut self, offset: u64, length: u64) -> String {
        let (text, refused) = self.plan_requests(&[(offset, length)]);
        assert_eq!(refused, 0);
        text
    }
}

fn write_all(scheme: &mut Raid, store: &mut Store, stripe: u64, data: std::ops::Range<usize>) {
    let k = store.config.geometry.data_count();
    let columns = data.chain(k..store.main_count());
    let pieces: Vec<InPlacePiece> =
        columns.map(|column| InPlacePiece { column: column as u16, crc: 7, payload_block: 0 }).collect();
    scheme.apply(store, Seq::new(1), in_place(stripe, &pieces).get(0)).expect("fits");
}

fn in_place(stripe: u64, pieces: &[InPlacePiece]) -> RecordBuf {
    let mut records = RecordBuf::default();
    InPlace::begin(&mut records, StripeId::new(stripe));
    for &piece in pieces {
        InPlace::push(&mut records, piece);
    }
    records
}

fn chunks(count: u64) -> u64 {
    count * u64::from(CHUNK)
}

#[track_caller]
fn same(found: &str, expected: &str) {
    let expected: String =
        expected.lines().map(str::trim).filter(|l| !l.is_empty()).map(|l| format!("{l}\n")).collect();
    assert_eq!(found, expected);
}

#[test]
fn one_chunk_of_six_is_read_modify_written_with_one_parity() {
    same(
        &Bench::new(6, 1, Consistency::Resync, 10).plan(0, chunks(1)),
        "read data ssd0:1
         read parity ssd6:1
         fold the change of column 0 into 1
         write data ssd0:1
         write parity ssd6:1
         record stripe 0 columns [0, 6] in place",
    );
}

#[test]
fn one_chunk_of_six_is_read_modify_written_with_two_parities() {
    same(
        &Bench::new(6, 2, Consistency::Resync, 10).plan(chunks(6 + 2), chunks(1)),
        "read data ssd3:2
         read parity ssd7:2
         read parity ssd0:2
         fold the change of column 2 into 2
         write data ssd3:2
         write parity ssd7:2
         write parity ssd0:2
         record stripe 1 columns [2, 6, 7] in place",
    );
}

#[test]
fn four_chunks_of_six_are_reconstruct_written() {
    same(
        &Bench::new(6, 1, Consistency::Resync, 10).plan(chunks(1), chunks(4)),
        "read data ssd0:1
         read data ssd5:1
         encode columns [0, 1, 2, 3, 4, 5] into 1
         write data ssd1:1
         write data ssd2:1
         write data ssd3:1
         write data ssd4:1
         write parity ssd6:1
         record stripe 0 columns [1, 2, 3, 4, 6] in place",
    );
}

#[test]
fn on_a_tie_the_rest_is_read_as_md_does() {
    // 6+2: two chunks cost 2 + 2 reads one way and 4 the other.
    same(
        &Bench::new(6, 2, Consistency::Resync, 10).plan(0, chunks(2)),
        "read data ssd2:1
         read data ssd3:1
         read data ssd4:1
         read data ssd5:1
         encode columns [0, 1, 2, 3, 4, 5] into 2
         write data ssd0:1
         write data ssd1:1
         write parity ssd6:1
         write parity ssd7:1
         record stripe 0 columns [0, 1, 6, 7] in place",
    );
}

#[test]
fn a_full_stripe_reads_nothing_and_writes_parity_once() {
    same(
        &Bench::new(4, 2, Consistency::Journal, 10).plan(chunks(4), chunks(4)),
        "encode columns [0, 1, 2, 3] into 2
         write data ssd1:2
         write data ssd2:2
         write data ssd3:2
         write data ssd4:2
         write parity ssd5:2
         write parity ssd0:2
         record stripe 1 columns [0, 1, 2, 3, 4, 5] in place",
    );
}

#[test]
fn a_request_over_two_stripes_is_planned_stripe_by_stripe() {
    same(
        &Bench::new(4, 1, Consistency::Resync, 10).plan(chunks(3), chunks(5)),
        "read data ssd3:1
         read parity ssd4:1
         fold the change of column 3 into 1
         encode columns [0, 1, 2, 3] into 1
         write data ssd3:1
         write parity ssd4:1
         write data ssd1:2
         write data ssd2:2
         write data ssd3:2
         write data ssd4:2
         write parity ssd0:2
         record stripe 0 columns [3, 4] in place
         record stripe 1 columns [0, 1, 2, 3, 4] in place",
    );
}

#[test]
fn a_stripe_never_written_has_zeros_beside_the_new_chunk() {
    same(
        &Bench::new(4, 1, Consistency::Resync, 0).plan(chunks(1) + 512, 1024),
        "complete bytes 512..1536 from zeros
         encode columns [1] into 1
         write data ssd1:1
         write parity ssd4:1
         record stripe 0 columns [1, 4] in place",
    );
}

#[test]
fn zero_columns_cost_no_read() {
    let mut bench = Bench::new(4, 2, Consistency::Resync, 0);
    write_all(&mut bench.scheme, &mut bench.store, 0, 0..1);
    same(
        &bench.plan(chunks(2), chunks(1)),
        "read data ssd0:1
         encode columns [0, 2] into 2
         write data ssd2:1
         write parity ssd4:1
         write parity ssd5:1
         record stripe 0 columns [2, 4, 5] in place",
    );
}

#[test]
fn a_chunk_written_in_part_needs_its_old_version_once() {
    same(
        &Bench::new(6, 1, Consistency::Resync, 10).plan(1024, 512),
        "read data ssd0:1
         read parity ssd6:1
         complete bytes 1024..1536 from the old version
         fold the change of column 0 into 1
         write data ssd0:1
         write parity ssd6:1
         record stripe 0 columns [0, 6] in place",
    );
    same(
        &Bench::new(3, 1, Consistency::Resync, 10).plan(512, chunks(3) - 512),
        "read data ssd0:1
         complete bytes 512..4096 from the old version
         encode columns [0, 1, 2] into 1
         write data ssd0:1
         write data ssd1:1
         write data ssd2:1
         write parity ssd3:1
         record stripe 0 columns [0, 1, 2, 3] in place",
    );
}

#[test]
fn what_cannot_be_read_is_avoided() {
    // Column 0 is lost and written: the rest is read, though read-modify-write would need fewer chunks.
    same(
        &Bench::new(6, 1, Consistency::Resync, 10).lose(&[0]).plan(0, chunks(1)),
        "read data ssd1:1
         read data ssd2:1
         read data ssd3:1
         read data ssd4:1
         read data ssd5:1
         encode columns [0, 1, 2, 3, 4, 5] into 1
         write data ssd0:1
         write parity ssd6:1
         record stripe 0 columns [0, 6] in place",
    );
    // Column 0 is lost and not written: read-modify-write, though the rest would be fewer chunks.
    same(
        &Bench::new(3, 1, Consistency::Resync, 10).lose(&[0]).plan(chunks(1), chunks(2)),
        "read data ssd1:1
         read data ssd2:1
         read parity ssd3:1
         fold the change of column 1 into 1
         fold the change of column 2 into 1
         write data ssd1:1
         write data ssd2:1
         write parity ssd3:1
         record stripe 0 columns [1, 2, 3] in place",
    );
    // A parity is lost: the rest is read.
    same(
        &Bench::new(4, 2, Consistency::Resync, 10).lose(&[5]).plan(0, chunks(1)),
        "read data ssd1:1
         read data ssd2:1
         read data ssd3:1
         encode columns [0, 1, 2, 3] into 2
         write data ssd0:1
         write parity ssd4:1
         write parity ssd5:1
         record stripe 0 columns [0, 4, 5] in place",
    );
}

/// Requests of one chunk each, one after the other: what the last of them plans.
fn last_with_cache(k: usize, m: usize, chunks_written: &[u64]) -> String {
    let mut bench = Bench::new(k, m, Consistency::Resync, 10);
    let options = SchemeOptions { stripe_cache: 8, ..SchemeOptions::default() };
    bench.scheme.configure(&bench.store, &options);
    bench.scheme.take_buffers(&bench.store, &mut bench.pool);
    let mut text = String::new();
    for &chunk in chunks_written {
        let mut plan = Plan::default();
        (text, _) = bench.plan_into(&[(chunks(chunk), chunks(1))], &mut plan);
        bench.scheme.caches().expect("it has a cache").applied(&mut plan.held);
    }
    text
}

#[test]
fn what_the_cache_has_is_not_read() {
    // The same chunk: its old version and the parities are known.
    same(
        &last_with_cache(6, 2, &[0, 0]),
        "have data ssd0:1
         have parity ssd6:1
         have parity ssd7:1
         fold the change of column 0 into 2
         write data ssd0:1
         write parity ssd6:1
         write parity ssd7:1
         record stripe 0 columns [0, 6, 7] in place",
    );
    // Another one: one read instead of three.
    same(
        &last_with_cache(6, 2, &[0, 1]),
        "read data ssd1:1
         have parity ssd6:1
         have parity ssd7:1
         fold the change of column 1 into 2
         write data ssd1:1
         write parity ssd6:1
         write parity ssd7:1
         record stripe 0 columns [1, 6, 7] in place",
    );
    // The rest is known, the chunk is not: it is reconstructed without a read, as md does it.
    same(
        &last_with_cache(3, 1, &[0, 1, 2]),
        "have data ssd0:1
         have data ssd1:1
         encode columns [0, 1, 2] into 1
         write data ssd2:1
         write parity ssd3:1
         record stripe 0 columns [2, 3] in place",
    );
    // Stripe 8 has the place of stripe 0 now.
    same(
        &last_with_cache(4, 1, &[0, 32, 0]),
        "read data ssd0:1
         read parity ssd4:1
         fold the change of column 0 into 1
         write data ssd0:1
         write parity ssd4:1
         record stripe 0 columns [0, 4] in place",
    );
}

#[test]
fn a_plan_takes_no_more_than_buffers_and_journal_allow() {
    let requests: Vec<(u64, u64)> = (0..600).map(|stripe| (chunks(stripe * 4), chunks(1))).collect();
    let mut bench = Bench::new(4, 1, Consistency::Journal, 0);
    // Slots 600 for the requests and 1 per parity; 256 chunks are in a payload ring.
    let (text, refused) = bench.plan_requests(&requests);
    assert_eq!((text.matches("record").count(), refused), (256, 344));
    let mut bench = Bench::new(4, 1, Consistency::Resync, 0);
    // 36 slots stay free, and a stripe is planned only if it could take 5.
    let (text, refused) = bench.plan_requests(&requests);
    assert_eq!((text.matches("record").count(), refused), (1024 - 600 - 36 - 4, 600 - 384));
}

#[test]
fn only_records_of_this_array_are_accepted() {
    let bench = Bench::new(4, 2, Consistency::Journal, 1);
    let last = bench.store.config.stripe_count - 1;
    let piece = |column, payload_block| InPlacePiece { column, crc: 1, payload_block };
    let accepts =
        |stripe, pieces: &[InPlacePiece]| bench.scheme.accepts(&bench.store, in_place(stripe, pieces).get(0));
    let blocks = bench.store.config.payload_blocks;
    assert!(accepts(last, &[piece(0, 1), piece(4, blocks), piece(5, 0)]));
    assert!(!accepts(last + 1, &[piece(0, 1), piece(4, 1), piece(5, 1)]), "past the last stripe");
    assert!(!accepts(0, &[piece(0, blocks + 1), piece(4, 1), piece(5, 1)]), "past the payload ring");
    assert!(!accepts(0, &[piece(0, 1), piece(4, 1), piece(6, 1)]), "past the last column");
    assert!(!accepts(0, &[piece(0, 1), piece(5, 1), piece(4, 1)]), "out of order");
    assert!(!accepts(0, &[piece(0, 1), piece(4, 1)]), "a parity is missing");
    let mut zero = RecordBuf::default();
    Zero::push(&mut zero, Lcn::new(0), 1);
    assert!(!bench.scheme.accepts(&bench.store, zero.get(0)));
}
