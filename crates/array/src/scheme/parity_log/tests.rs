//! State and request in, plan text out; and what a checkpoint keeps.

use super::{ParityLog, STRIPE_DELTAS_MAX, deltas_max};
use crate::create::{CreateOptions, plan_config};
use crate::fault::FailCause;
use crate::health::Health;
use crate::plan::{Codeword, Plan, Word};
use crate::scheme::{ChunkWrite, CommitOutcome, Commits, Logs as _, Origin, Scheme};
use crate::store::Store;
use block::{ChunkIndex, DevIndex, Geometry, Lcn, Pool, Seq, StripeId};
use format::record::{Delta, Zero};
use format::{
    CodeKind, Consistency, InPlacePiece, LayoutKind, ListItem, MemberEntry, MemberState, RecordBuf,
    SchemeKind,
};

const CHUNK: u32 = 4096;

struct Bench {
    store: Store,
    scheme: ParityLog,
    health: Health,
    pool: Pool,
}

impl Bench {
    /// An array whose first `filled` stripes are written; column c of stripe s is on device (s + c) mod n.
    fn new(k: usize, m: usize, filled: u64) -> Self {
        let options = CreateOptions {
            scheme: SchemeKind::ParityLog,
            code: if m == 1 { CodeKind::Xor } else { CodeKind::Cauchy },
            layout: LayoutKind::Rotate,
            consistency: Consistency::Journal,
            geometry: Geometry::new(k, m, u64::from(CHUNK)).expect("valid"),
            reserve_permille: 0,
            unit_rows: None,
        };
        let config = plan_config(&options, 16 << 20, 8 << 20, m).expect("fits");
        let entries = vec![MemberEntry { serial: 1, state: MemberState::Healthy }; k + 2 * m];
        let store = Store::new(config).expect("valid");
        let scheme = ParityLog::new(&store);
        let health = Health::new(&config, &entries, 1);
        let mut bench = Self { store, scheme, health, pool: Pool::new(CHUNK as usize, 2048) };
        for stripe in 0..filled {
            bench.write(stripe * k as u64, k as u64);
        }
        bench
    }

    /// Plans one request for whole chunks.
    fn plan(&mut self, first: u64, count: u64) -> Plan {
        self.plan_bytes(first * u64::from(CHUNK), count * u64::from(CHUNK))
    }

    fn plan_bytes(&mut self, offset: u64, length: u64) -> Plan {
        let (chunk, mut writes) = (u64::from(CHUNK), Vec::new());
        for lcn in offset / chunk..(offset + length).div_ceil(chunk) {
            let from = offset.saturating_sub(lcn * chunk).min(chunk) as u32;
            let to = (offset + length - lcn * chunk).min(chunk) as u32;
            let slot = self.pool.alloc().expect("enough slots");
            writes.push(ChunkWrite {
                origin: Origin::Request(0),
                lcn: Lcn::new(lcn),
                slot,
                from,
                to,
                class: 0,
                order: 0,
            });
        }
        let (mut plan, mut refused) = (Plan::default(), Vec::new());
        let pool = &mut self.pool;
        self.scheme.plan_writes(&mut self.store, &self.health, pool, &mut writes, &mut refused, &mut plan);
        assert!(refused.is_empty());
        plan
    }

    /// Plans and carries out; the plan's text.
    fn write(&mut self, first: u64, count: u64) -> String {
        let plan = self.plan(first, count);
        self.carry_out(plan)
    }

    fn commit(&mut self, stripe: u64) -> String {
        let mut plan = Plan::default();
        let stripe = StripeId::new(stripe);
        let outcome =
            self.scheme.plan_commit(&mut self.store, &self.health, &mut self.pool, stripe, &mut plan);
        assert_eq!(outcome, CommitOutcome::Planned);
        self.carry_out(plan)
    }

    fn carry_out(&mut self, mut plan: Plan) -> String {
        let text = plan.text(self.store.main_count());
        for append in std::mem::take(&mut plan.appends) {
            let (_, block) = self.store.log.append_reserved();
            plan.records.set_log_block(append.record, block);
        }
        for index in 0..plan.records.len() {
            self.scheme.apply(&mut self.store, Seq::new(1), plan.records.get(index)).expect("fits");
        }
        plan.release_slots(&mut self.pool);
        text
    }

    fn codeword(&self, stripe: u64) -> Codeword {
        let mut word = Codeword::default();
        self.scheme.codeword(&self.store, Word::Stripe(StripeId::new(stripe)), &mut word);
        word
    }
}

#[track_caller]
fn same(found: &str, expected: &str) {
    let expected: String =
        expected.lines().map(str::trim).filter(|l| !l.is_empty()).map(|l| format!("{l}\n")).collect();
    assert_eq!(found, expected);
}

#[test]
fn an_update_reads_the_old_version_of_what_it_writes_and_logs_a_chunk_for_each_parity() {
    same(
        &Bench::new(6, 2, 10).write(6 + 2, 1),
        "read data ssd3:2
         fold the change of column 2 into 2
         write data ssd3:2
         write log log0, at its end
         write log log1, at its end
         record stripe 1 columns [2] in place, the change of its parity logged",
    );
}

#[test]
fn a_request_over_two_stripes_takes_a_log_chunk_for_each() {
    same(
        &Bench::new(4, 1, 10).write(3, 4),
        "read data ssd3:1
         read data ssd1:2
         read data ssd2:2
         read data ssd3:2
         fold the change of column 3 into 1
         fold the change of column 0 into 1
         fold the change of column 1 into 1
         fold the change of column 2 into 1
         write data ssd3:1
         write log log0, at its end
         write data ssd1:2
         write data ssd2:2
         write data ssd3:2
         write log log0, at its end
         record stripe 0 columns [3] in place, the change of its parity logged
         record stripe 1 columns [0, 1, 2] in place, the change of its parity logged",
    );
}

#[test]
fn a_stripe_never_written_costs_no_read() {
    let mut bench = Bench::new(4, 1, 0);
    let plan = bench.plan_bytes(4096 + 512, 1024);
    same(
        &plan.text(5),
        "complete bytes 512..1536 from zeros
         fold the change of column 1 into 1
         write data ssd1:1
         write log log0, at its end
         record stripe 0 columns [1] in place, the change of its parity logged",
    );
}

#[test]
fn a_chunk_written_in_part_needs_its_old_version_once() {
    let mut bench = Bench::new(6, 1, 10);
    let plan = bench.plan_bytes(1024, 512);
    same(
        &plan.text(7),
        "read data ssd0:1
         complete bytes 1024..1536 from the old version
         fold the change of column 0 into 1
         write data ssd0:1
         write log log0, at its end
         record stripe 0 columns [0] in place, the change of its parity logged",
    );
}

const WRITTEN_WITH_PARITY: &str = "encode columns [0, 1, 2, 3] into 2
         write data ssd1:2
         write data ssd2:2
         write data ssd3:2
         write data ssd4:2
         write parity ssd5:2
         write parity ssd0:2
         record stripe 1 columns [0, 1, 2, 3, 4, 5] in place";

#[test]
fn the_first_write_of_a_whole_stripe_writes_its_parity() {
    let mut bench = Bench::new(4, 2, 1);
    same(&bench.write(4, 4), WRITTEN_WITH_PARITY);
    assert!(!bench.scheme.is_dirty(StripeId::new(1)));
    assert_eq!(bench.scheme.log_tail(&bench.store), bench.store.log.head());
}

#[test]
fn a_whole_stripe_written_again_logs_its_parity_and_makes_log_chunks_void() {
    const LOGGED: &str = "encode columns [0, 1, 2, 3] into 2
         write data ssd1:2
         write data ssd2:2
         write data ssd3:2
         write data ssd4:2
         write log log0, at its end
         write log log1, at its end
         record stripe 1 columns [0, 1, 2, 3] in place, its parity logged";
    let mut bench = Bench::new(4, 2, 10);
    same(&bench.write(4, 4), LOGGED);
    (0..2).for_each(|_| drop(bench.write(5, 1)));
    assert!(bench.codeword(1).has_sums());
    same(&bench.write(4, 4), LOGGED);
    assert!(bench.scheme.is_dirty(StripeId::new(1)) && !bench.codeword(1).has_sums());
    assert_eq!((bench.codeword(1).pieces.len(), bench.scheme.deltas.count()), (6, 1));
}

#[test]
fn a_whole_stripe_is_written_with_its_parity_if_the_log_is_full() {
    let mut bench = Bench::new(4, 2, 10);
    bench.write(5, 1);
    while bench.store.log.reserve_chunk(64).is_some() {}
    same(&bench.write(4, 4), WRITTEN_WITH_PARITY);
    assert!(!bench.scheme.is_dirty(StripeId::new(1)) && !bench.codeword(1).has_sums());
}

#[test]
fn the_parity_of_a_dirty_stripe_is_a_sum_of_what_one_main_and_one_log_device_hold() {
    let mut bench = Bench::new(4, 2, 10);
    (0..3).for_each(|_| drop(bench.write(0, 1)));
    let word = bench.codeword(0);
    assert_eq!((word.pieces.len(), word.data_count), (4 + 2 * (1 + 3), 4));
    let width = bench.store.code.width_max();
    for (row, main) in [(0, 4), (1, 5)] {
        let part = word.parts().nth(4 + row).expect("a part for each parity");
        let pieces = &word.pieces[part];
        assert!(pieces.iter().all(|piece| piece.index == width + row));
        let devices: Vec<u16> = pieces.iter().map(|piece| piece.addr.dev.get()).collect();
        assert_eq!(devices, [main, 6 + row as u16, 6 + row as u16, 6 + row as u16]);
        assert!(word.is_sum(width + row));
    }
}

#[test]
fn commit_adds_the_log_chunks_if_that_reads_less() {
    let mut bench = Bench::new(6, 2, 10);
    bench.write(1, 1);
    same(
        &bench.commit(0),
        "read parity ssd6:1
         read log log0:1
         read parity ssd7:1
         read log log1:1
         add 2 chunks
         add 2 chunks
         write parity ssd6:1
         write parity ssd7:1
         record stripe 0 columns [6, 7] in place",
    );
    let (store, pool, mut plan) = (&mut bench.store, &mut bench.pool, Plan::default());
    let nothing = bench.scheme.plan_commit(store, &bench.health, pool, StripeId::new(0), &mut plan);
    assert_eq!(nothing, CommitOutcome::Clean);
}

#[test]
fn commit_encodes_if_that_reads_less_or_a_log_device_is_lost() {
    const ENCODES: &str = "read data ssd0:1
         read data ssd1:1
         read data ssd2:1
         read data ssd3:1
         encode columns [0, 1, 2, 3] into 1
         write parity ssd4:1
         record stripe 0 columns [4] in place";
    let mut bench = Bench::new(4, 1, 10);
    (0..3).for_each(|_| drop(bench.write(1, 1)));
    same(&bench.commit(0), ENCODES);
    bench.write(1, 1);
    assert!(bench.health.fail(DevIndex::new(5), FailCause::Asked));
    same(&bench.commit(0), ENCODES);
}

#[test]
fn commit_encodes_after_it_could_not_read_what_it_adds_up() {
    let mut bench = Bench::new(6, 1, 10);
    bench.write(1, 1);
    assert!(bench.scheme.commit_otherwise(StripeId::new(0)));
    assert!(!bench.scheme.commit_otherwise(StripeId::new(0)), "there is no third way");
    let text = bench.commit(0);
    assert_eq!((text.matches("read data").count(), text.matches("read log").count()), (6, 0));
    bench.write(1, 1);
    assert_eq!(bench.commit(0).matches("read log").count(), 1, "a new log chunk has not failed yet");
}

#[test]
fn parity_of_a_stripe_never_written_whole_is_the_log_chunk() {
    let mut bench = Bench::new(6, 1, 0);
    bench.write(0, 3);
    assert!(!bench.codeword(0).has_sums());
    same(
        &bench.commit(0),
        "read log log0:1
         write parity ssd6:1
         record stripe 0 columns [6] in place",
    );
}

#[test]
fn a_stripe_with_many_log_chunks_gets_one_that_is_its_parity() {
    let mut bench = Bench::new(4, 1, 1);
    (0..STRIPE_DELTAS_MAX).for_each(|_| drop(bench.write(1, 1)));
    assert_eq!(bench.scheme.deltas.count(), STRIPE_DELTAS_MAX as u64);
    same(
        &bench.write(1, 1),
        "read data ssd0:1
         read data ssd2:1
         read data ssd3:1
         encode columns [0, 1, 2, 3] into 1
         write data ssd1:1
         write log log0, at its end
         record stripe 0 columns [1] in place, its parity logged",
    );
    let word = bench.codeword(0);
    assert_eq!((word.pieces.len(), word.has_sums()), (5, false));
    assert_eq!(bench.scheme.deltas.count(), 1);
    let text = bench.write(1, 1);
    assert!(text.contains("the change of its parity"), "{text}");
}

#[test]
fn live_log_chunks_never_outgrow_a_checkpoint() {
    let mut bench = Bench::new(2, 1, 0);
    bench.store.config.log_blocks = u32::MAX / 2;
    bench.store.config.stripe_count = 20;
    bench.scheme.deltas_max = 25;
    for step in 0..400u64 {
        let stripe = step * 7 % 20;
        bench.write(2 * stripe, 1);
        bench.scheme.deltas.in_log_order().for_each(drop);
        assert!(bench.scheme.deltas.count() <= 25, "step {step}");
    }
    assert_eq!(bench.scheme.deltas.dirty_count(), 20);
}

#[test]
fn a_new_array_has_room_for_a_log_chunk_of_every_stripe() {
    for (k, m) in [(1, 1), (4, 1), (6, 2), (8, 3)] {
        let store = Bench::new(k, m, 0).store;
        let log_chunks = u64::from(store.config.log_blocks);
        assert!(deltas_max(&store.config) >= store.config.stripe_count.min(log_chunks));
    }
}

#[test]
fn a_full_log_is_refused_and_says_that_a_commit_helps() {
    let mut bench = Bench::new(2, 1, 0);
    while bench.store.log.reserve_chunk(64).is_some() {}
    let slot = bench.pool.alloc().expect("enough slots");
    let write = ChunkWrite {
        origin: Origin::Request(0),
        lcn: Lcn::new(0),
        slot,
        from: 0,
        to: CHUNK,
        class: 0,
        order: 0,
    };
    let (mut writes, mut refused, mut plan) = (vec![write], Vec::new(), Plan::default());
    let (store, pool) = (&mut bench.store, &mut bench.pool);
    bench.scheme.plan_writes(store, &bench.health, pool, &mut writes, &mut refused, &mut plan);
    assert!((writes.is_empty(), refused.len()) == (true, 1) && bench.scheme.commit_would_help());
}

/// Loads a list of these items.
fn load(scheme: &mut ParityLog, store: &mut Store, items: &[ListItem]) -> Result<(), crate::Contradiction> {
    let mut words = Vec::new();
    items.iter().for_each(|item| item.encode(&mut words));
    scheme.load(store, format::List::read(&words).expect("as encoded"))
}

#[test]
fn what_is_saved_loads_in_the_order_of_the_log() {
    let mut bench = Bench::new(4, 2, 10);
    for lcn in [0, 9, 1, 36, 9] {
        bench.write(lcn, 1);
    }
    bench.commit(9);
    let mut words = Vec::new();
    bench.scheme.save(&bench.store, &mut words);
    let items = format::decode_list(&words).expect("as encoded");
    let stripes: Vec<u64> = items
        .iter()
        .map(|item| match item {
            ListItem::Delta { stripe, .. } => stripe.get(),
            ListItem::DirtyStripe { .. }
            | ListItem::UpdatedColumns { .. }
            | ListItem::LogStripe { .. }
            | ListItem::Space { .. }
            | ListItem::OpenStripe { .. }
            | ListItem::Missed { .. } => u64::MAX,
        })
        .collect();
    assert_eq!(stripes, [0, 2, 0, 2]);
    let mut loaded = ParityLog::new(&bench.store);
    load(&mut loaded, &mut bench.store, &items).expect("as saved");
    let (before, mut after) = (bench.codeword(2), Codeword::default());
    loaded.codeword(&bench.store, Word::Stripe(StripeId::new(2)), &mut after);
    assert_eq!(before.pieces, after.pieces);
    assert_eq!(loaded.newest_log_block(), bench.scheme.newest_log_block());
    assert_eq!(loaded.log_tail(&bench.store), bench.scheme.log_tail(&bench.store));

    let twice = [items.clone(), items[..1].to_vec()].concat();
    assert!(
        load(&mut ParityLog::new(&bench.store), &mut bench.store, &twice).is_err(),
        "one place, two log chunks"
    );
    let foreign =
        ListItem::Delta { stripe: StripeId::new(20), log_block: ChunkIndex::new(9), log_crcs: vec![1, 2] };
    assert!(
        load(&mut ParityLog::new(&bench.store), &mut bench.store, &[foreign]).is_err(),
        "a log chunk of a stripe without data"
    );
}

#[test]
fn only_records_of_this_array_are_accepted() {
    let bench = Bench::new(4, 2, 1);
    let config = bench.store.config;
    let piece = |column, payload_block| InPlacePiece { column, crc: 1, payload_block };
    let accepts = |stripe, block, log_crcs: &[u32], pieces: &[InPlacePiece]| {
        let mut records = RecordBuf::default();
        Delta::begin(&mut records, StripeId::new(stripe), false, log_crcs.len());
        for &piece in pieces {
            Delta::push(&mut records, piece);
        }
        records.set_log_block(0, ChunkIndex::new(block));
        bench.scheme.accepts(&bench.store, records.get(0))
    };
    let last = config.stripe_count - 1;
    assert!(accepts(last, config.log_blocks, &[1, 2], &[piece(0, 1), piece(3, config.payload_blocks)]));
    assert!(!accepts(last + 1, 1, &[1, 2], &[piece(0, 1)]), "past the last stripe");
    assert!(!accepts(0, config.log_blocks + 1, &[1, 2], &[piece(0, 1)]), "past the log");
    assert!(!accepts(0, 0, &[1, 2], &[piece(0, 1)]), "no place in the log");
    assert!(!accepts(0, 1, &[1], &[piece(0, 1)]), "a log chunk is missing");
    assert!(!accepts(0, 1, &[1, 2], &[piece(4, 1)]), "parity is logged, not written");
    assert!(!accepts(0, 1, &[1, 2], &[piece(1, 1), piece(0, 1)]), "out of order");
    assert!(!accepts(0, 1, &[1, 2], &[]), "nothing written");
    let mut zero = RecordBuf::default();
    Zero::push(&mut zero, Lcn::new(0), 1);
    assert!(!bench.scheme.accepts(&bench.store, zero.get(0)));
}
