//! State and request in, plan text out; garbage collection step by step; what a checkpoint keeps.

use super::Elastic;
use super::rows::RowWord;
use crate::create::{CreateOptions, plan_config};
use crate::health::Health;
use crate::plan::{Codeword, Plan, Word};
use crate::scheme::{
    ChunkWrite, Classes, CollectOutcome, Collects, Located, Logs as _, Origin, Scheme, SchemeOptions,
};
use crate::store::Store;
use block::{ChunkIndex, Geometry, Lba, Lcn, Pool, Seq};
use format::{
    CodeKind, Consistency, ElasticMember, LayoutKind, ListItem, MemberEntry, MemberState, RecordBuf,
    RecordRef, SchemeKind, UNITS_SPARE, record,
};
use placement::{Class, GcGroup, GcThreshold, GcWrite, PlacementKind, Tuning};

mod holes;

const CHUNK: u32 = 4096;

struct Bench {
    store: Store,
    scheme: Elastic,
    health: Health,
    pool: Pool,
}

impl Bench {
    /// An array with as few units as garbage collection can do with; column c of row r is on device (r + c)
    /// mod n.
    fn new(k: usize, m: usize, unit_rows: u32, stripes: u32, options: &SchemeOptions) -> Self {
        Self::with_more((0, 0), (k, m), unit_rows, stripes, options)
    }

    /// The same with so many log devices, and so many more units.
    fn with_more(
        (logs, more): (usize, u32),
        (k, m): (usize, usize),
        unit_rows: u32,
        stripes: u32,
        options: &SchemeOptions,
    ) -> Self {
        let create = CreateOptions {
            scheme: SchemeKind::Elastic,
            code: if m == 1 { CodeKind::Xor } else { CodeKind::Cauchy },
            layout: LayoutKind::Rotate,
            consistency: Consistency::Resync,
            geometry: Geometry::new(k, m, u64::from(CHUNK)).expect("valid"),
            reserve_permille: 0,
            unit_rows: Some(unit_rows),
        };
        let mut config = plan_config(&create, 16 << 20, 4 << 20, logs).expect("fits");
        let units = stripes.div_ceil(unit_rows - 1) + UNITS_SPARE as u32 + more;
        (config.chunks_per_device, config.stripe_count) = (units * unit_rows, stripes.into());
        config.validate().expect("as many units as there must be");
        let entries = vec![MemberEntry { serial: 1, state: MemberState::Healthy }; k + m + logs];
        let store = Store::new(config).expect("valid");
        let mut scheme = Elastic::new(&store);
        scheme.configure(&store, options);
        Self {
            scheme,
            health: Health::new(&config, &entries, 1),
            pool: Pool::new(CHUNK as usize, 2048),
            store,
        }
    }

    fn plan(&mut self, lcns: &[u64]) -> (Plan, usize) {
        self.plan_into(Plan::default(), lcns)
    }

    fn plan_into(&mut self, mut plan: Plan, lcns: &[u64]) -> (Plan, usize) {
        let mut writes = Vec::new();
        for &lcn in lcns {
            self.scheme.begin_write(Lba::new(lcn * 8), 8);
            let class = self.scheme.class_of_write(&self.store, Lcn::new(lcn));
            let slot = self.pool.alloc().expect("enough slots");
            writes.push(ChunkWrite {
                origin: Origin::Request(0),
                lcn: Lcn::new(lcn),
                slot,
                from: 0,
                to: CHUNK,
                class,
                order: 0,
            });
        }
        let mut refused = Vec::new();
        let pool = &mut self.pool;
        self.scheme.plan_writes(&mut self.store, &self.health, pool, &mut writes, &mut refused, &mut plan);
        writes.iter().chain(&refused).for_each(|write| self.pool.free(write.slot));
        (plan, refused.len())
    }

    /// Plans and carries out; the plan's text.
    fn write(&mut self, lcns: &[u64]) -> String {
        let (plan, refused) = self.plan(lcns);
        assert_eq!(refused, 0);
        self.carry_out(plan)
    }

    fn carry_out(&mut self, mut plan: Plan) -> String {
        let text = plan.text(self.store.main_count());
        for index in 0..plan.records.len() {
            self.scheme.apply(&mut self.store, Seq::new(1), plan.records.get(index)).expect("fits");
        }
        plan.release_slots(&mut self.pool);
        text
    }

    fn collect(&mut self) -> Option<Plan> {
        let mut plan = Plan::default();
        let outcome = self.scheme.plan_collect(&mut self.store, &mut self.pool, &mut plan);
        (outcome == CollectOutcome::Planned).then_some(plan)
    }

    /// What the engine does when what was freed is durable.
    fn release(&mut self) {
        for run in std::mem::take(&mut self.store.freed) {
            self.store.release_run(run);
            self.scheme.released(run);
        }
    }

    fn row_of(&self, lcn: u64) -> u32 {
        match self.scheme.locate(&self.store, Lcn::new(lcn)) {
            Located::At { word: Word::Row(row), .. } => row,
            found @ (Located::At { .. } | Located::Zero) => panic!("{found:?}"),
        }
    }

    fn free_rows(&self) -> u32 {
        self.store.spaces[0].free_count()
    }

    /// Writes chunks in no order, each in a stripe of its own, until no more rows than garbage collection
    /// needs are left.
    fn fill(&mut self) {
        self.fill_with(1);
    }

    /// The same with stripes of `width` chunks.
    fn fill_with(&mut self, width: u64) {
        let volume = self.store.config.stripe_count * self.store.config.geometry.data_count() as u64;
        let mut state = 1u64;
        loop {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let lcns: Vec<u64> = (0..width).map(|i| (state >> 33).wrapping_mul(2 * i + 1) % volume).collect();
            let (plan, refused) = self.plan(&lcns);
            if refused > 0 {
                return;
            }
            self.carry_out(plan);
            self.release();
        }
    }
}

fn stripe_of(plan: &Plan, index: usize) -> record::Elastic<'_> {
    let RecordRef::Elastic(record) = plan.records.get(index) else { panic!("an elastic stripe") };
    record
}

/// Where the plan moves chunks from.
fn moved_from(plan: &Plan) -> Vec<u32> {
    let stripes = (0..plan.records.len()).map(|index| stripe_of(plan, index));
    stripes.flat_map(|stripe| stripe.members().iter().map(|member| member.from)).collect()
}

fn zero(first: u64, count: u64) -> RecordBuf {
    let mut records = RecordBuf::default();
    record::Zero::push(&mut records, Lcn::new(first), count);
    records
}

#[track_caller]
fn same(found: &str, expected: &str) {
    let expected: String =
        expected.lines().map(str::trim).filter(|l| !l.is_empty()).map(|l| format!("{l}\n")).collect();
    assert_eq!(found, expected);
}

/// Requirement W-18.
#[test]
fn chunks_of_a_batch_fill_stripes_and_the_rest_makes_a_short_one() {
    let mut bench = Bench::new(3, 1, 4, 8, &SchemeOptions::default());
    same(
        &bench.write(&[5, 0, 9, 2]),
        "encode columns [0, 1, 2] into 1
         encode columns [0] into 1
         write data ssd0:1
         write data ssd1:1
         write data ssd2:1
         write parity ssd3:1
         write data ssd1:2
         write parity ssd0:2
         record elastic stripe 0 of chunks [5, 0, 9]
         record elastic stripe 1 of chunks [2]",
    );
    let mut word = Codeword::default();
    bench.scheme.codeword(&bench.store, Word::Row(1), &mut word);
    assert_eq!((word.pieces.len(), word.data_count), (2, 1), "columns never written are no part of it");
}

/// Requirement W-25.
#[test]
fn collection_moves_what_is_valid_together_and_frees_the_unit() {
    let mut bench = Bench::new(2, 1, 2, 40, &SchemeOptions::default());
    bench.fill();
    let freed_before = bench.store.freed.len();
    let plan = bench.collect().expect("users had to stop");
    assert!(!plan.reads.is_empty() && plan.records.len() == plan.reads.len().div_ceil(2));
    let (from, rows) = (plan.reads[0].addr.chunk.get() - 1, plan.records.len());
    let unit = bench.scheme.units.of_row(from);
    bench.carry_out(plan);
    assert!(rows < 2, "a victim has more rows than its chunks take");
    let freed = &bench.store.freed[freed_before..];
    assert_eq!(freed.len(), 3, "a run on each of three devices");
    assert!(freed.iter().all(|run| (run.first.chunk.get(), run.count) == (unit * 2 + 1, 2)), "{freed:?}");
    for row in bench.scheme.units.rows_of(unit) {
        assert!(!RowWord::read(&bench.store, row).is_live());
        assert!(bench.scheme.word_at(&bench.store, row.into()).is_none());
    }
}

#[test]
fn collection_always_gets_users_going_again() {
    for (placement, gc_group) in [
        (PlacementKind::Single, GcGroup::Coldest),
        (PlacementKind::Was, GcGroup::Own),
        (PlacementKind::SepBit, GcGroup::Coldest),
    ] {
        let options = SchemeOptions {
            placement: Some(placement),
            tuning: Tuning { gc_group, ..Tuning::default() },
            ..SchemeOptions::default()
        };
        let mut bench = Bench::new(3, 2, 3, 80, &options);
        for round in 0..50 {
            bench.fill();
            for steps in 0.. {
                assert!(steps < 1000, "{placement}, round {round}: collection gains nothing");
                let (plan, refused) = bench.plan(&[1]);
                bench.carry_out(plan);
                if refused == 0 {
                    break;
                }
                match bench.collect() {
                    Some(plan) => _ = bench.carry_out(plan),
                    None => assert!(!bench.store.freed.is_empty(), "{placement}, round {round}: stuck"),
                }
                bench.release();
            }
        }
    }
}

/// One chunk that is lost must not take all rows that are left.
#[test]
fn what_cannot_be_read_does_not_stop_collection() {
    let mut bench = Bench::new(40, 1, 2, 400, &SchemeOptions::default());
    for lost in 0..8 {
        bench.fill_with(40);
        let mut bad = Vec::new();
        for step in 0.. {
            assert!(step < 5000, "collection gains nothing after {lost} losses");
            let (plan, refused) = bench.plan(&[1]);
            bench.carry_out(plan);
            if refused == 0 {
                break;
            }
            let Some(plan) = bench.collect() else {
                assert!(!bench.store.freed.is_empty(), "stuck after {lost} losses");
                bench.release();
                continue;
            };
            let from = moved_from(&plan);
            if bad.is_empty() {
                bad.extend(from.last());
            }
            if from.iter().any(|place| bad.contains(place)) {
                bench.undo(plan);
            } else {
                bench.carry_out(plan);
            }
            bench.release();
        }
    }
}

#[test]
fn a_chunk_overwritten_while_it_is_moved_is_not_brought_back() {
    let mut bench = Bench::new(2, 1, 2, 40, &SchemeOptions::default());
    bench.fill();
    let plan = bench.collect().expect("wanted");
    let lcn = stripe_of(&plan, 0).members().at(0).lcn.get();
    // The write of the user is planned, and known, before the move is.
    let user = bench.user_plan(lcn);
    bench.carry_out(user);
    let newest = bench.row_of(lcn);
    bench.carry_out(plan);
    assert_eq!(bench.row_of(lcn), newest);
}

impl Bench {
    /// A write of one chunk although only collection may take rows.
    fn user_plan(&mut self, lcn: u64) -> Plan {
        let lease = self.scheme.units.take_row(&mut self.store, 0, 0, false).expect("kept for collection");
        let mut plan = Plan::default();
        let row = plan.leases.hold_row(lease);
        let slot = plan.own_slot(&mut self.pool);
        let chunk = super::write::Chunk { lcn: Lcn::new(lcn), slot, from: 0, crc: None };
        super::write::plan_stripe(&self.store, &mut self.pool, row, 0, [chunk].into_iter(), &mut plan);
        plan
    }
}

#[test]
fn what_cannot_be_read_is_tried_alone_and_then_left_where_it_is() {
    let mut bench = Bench::new(4, 1, 4, 60, &SchemeOptions::default());
    bench.fill();
    let before = bench.free_rows();
    let plan = bench.collect().expect("wanted");
    let mut left = moved_from(&plan);
    let unit = bench.scheme.units.of_row(bench.scheme.rows.row_of(left[0]));
    bench.undo(plan);
    assert_eq!(bench.free_rows(), before, "rows that were not written are free again");
    let bad = left.pop().expect("several chunks");
    while let Some(plan) = bench.collect() {
        let members = stripe_of(&plan, 0).members();
        if members.len() != 1 {
            bench.undo(plan);
            break;
        }
        let from = members.at(0).from;
        if let Some(at) = left.iter().position(|&other| other == from) {
            left.swap_remove(at);
            bench.carry_out(plan);
        } else {
            bench.undo(plan);
            if from != bad {
                break;
            }
        }
    }
    assert_eq!(left, [], "each was moved alone");
    assert!(!bench.scheme.units.is_moving(unit) && bench.scheme.rows.owner(bad).is_some());
    let state = |bench: &Bench| placement::Units::state(&bench.scheme.units, placement::UnitId::new(unit));
    assert_eq!(state(&bench), None, "it is left alone");
    // Whoever overwrites what is lost makes the unit one like others: here the last one valid, so that
    // it is free.
    let lcn = bench.scheme.rows.owner(bad).expect("as above").get();
    let valid = |bench: &Bench| {
        let rows = bench.scheme.units.rows_of(unit);
        let places = bench.scheme.rows.place_at(rows.start, 0)..bench.scheme.rows.place_at(rows.end, 0);
        places.filter_map(|place| bench.scheme.rows.owner(place)).map(Lcn::get).collect::<Vec<_>>()
    };
    assert_eq!(valid(&bench), [lcn]);
    let plan = bench.user_plan(lcn);
    bench.carry_out(plan);
    assert!(valid(&bench).is_empty() && !bench.store.freed.is_empty());
}

#[test]
fn a_unit_that_was_left_alone_is_collected_when_something_of_it_was_overwritten() {
    let mut bench = Bench::new(4, 1, 4, 60, &SchemeOptions::default());
    for lcn in (0..240).step_by(4) {
        bench.write(&[lcn, lcn + 1, lcn + 2, lcn + 3]);
    }
    let state = |bench: &Bench| placement::Units::state(&bench.scheme.units, placement::UnitId::new(0));
    // Four of the sixteen chunks of the first unit are overwritten, and one of the others cannot be read.
    bench.write(&[0, 1, 2, 3]);
    assert!(state(&bench).is_some());
    bench.scheme.units.start_moving(0);
    bench.scheme.units.stick(0);
    bench.scheme.units.note_none_qualifies();
    bench.write(&[20]);
    assert!(state(&bench).is_none() && !bench.scheme.units.may_qualify(), "nothing of it was overwritten");
    bench.write(&[5]);
    assert!(state(&bench).is_some() && bench.scheme.units.may_qualify());
}

impl Bench {
    fn undo(&mut self, mut plan: Plan) {
        let units = &mut self.scheme.units;
        plan.leases
            .give_all_back((&mut self.store.spaces, &mut self.store.table), |row| units.row_returned(row));
        self.scheme.step_lost(&plan);
        plan.release_slots(&mut self.pool);
    }
}

/// Users write one class; collection separates by number.
struct ByNumber;

impl placement::Placement for ByNumber {
    fn classes(&self) -> usize {
        4
    }

    fn place_user(&mut self, _write: placement::UserWrite) -> Class {
        Class::new(0)
    }

    fn place_gc(&mut self, write: GcWrite) -> Class {
        Class::new((write.lcn.get() % 4) as u8)
    }

    fn memory_bytes(&self) -> usize {
        0
    }
}

/// Where separated chunks would take more rows than there are, they join the coldest of their classes: with
/// the hottest, cold chunks would be moved again and again with it.
#[test]
fn chunks_moved_together_go_to_the_coldest_class_among_them() {
    let mut bench = Bench::new(3, 1, 8, 1400, &SchemeOptions::default());
    bench.scheme.placement = Box::new(ByNumber);
    bench.scheme.units.set_classes(4);
    for lcn in (0..4200).step_by(3) {
        bench.write(&[lcn, lcn + 1, lcn + 2]);
    }
    let mut colder = 0;
    for _ in 0..100 {
        bench.fill_with(3);
        while let Some(plan) = bench.collect() {
            assert!(plan.records.len() < 8, "a row of the eight is gained");
            for index in 0..plan.records.len() {
                let (class, members) = (stripe_of(&plan, index).class(), stripe_of(&plan, index).members());
                let own = members.iter().map(|member| (member.lcn.get() % 4) as u8);
                assert!(own.clone().all(|own| own <= class), "{members:?}");
                colder += own.filter(|&own| own < class).count();
            }
            bench.carry_out(plan);
            bench.release();
        }
    }
    assert!(colder > 10, "hardly any chunk had to join another class: {colder}");
}

/// Looking at all units for one to collect costs nothing when none came to qualify since the last time.
#[test]
fn units_are_not_looked_at_again_when_none_qualifies() {
    let mut bench = Bench::new(2, 1, 2, 40, &SchemeOptions::default());
    for lcn in (0..80).step_by(2) {
        bench.write(&[lcn, lcn + 1]);
    }
    assert!(bench.scheme.units.may_qualify());
    bench.scheme.units.set_threshold(GcThreshold::new(1).expect("in range"));
    bench.scheme.units.set_classes(8);
    while !bench.scheme.wants_collection() {
        let row = bench.scheme.units.take_row(&mut bench.store, 7, 0, false);
        assert!(row.is_some(), "all rows are taken");
    }
    assert!(bench.collect().is_none() && !bench.scheme.units.may_qualify(), "all are valid, or not full");
    // One chunk less in a full unit: the unit gains no row yet.
    let discard = |bench: &mut Bench, first: u64| {
        bench.scheme.apply(&mut bench.store, Seq::new(1), zero(first, 1).get(0)).expect("fits");
    };
    discard(&mut bench, 8);
    assert!(!bench.scheme.units.may_qualify() && bench.collect().is_none());
    discard(&mut bench, 9);
    assert!(bench.scheme.units.may_qualify() && bench.collect().is_some());
}

#[test]
fn the_table_says_everything() {
    let options = SchemeOptions { placement: Some(PlacementKind::SepBit), ..SchemeOptions::default() };
    let mut bench = Bench::new(3, 2, 3, 80, &options);
    for _ in 0..5 {
        bench.fill();
        while let Some(plan) = bench.collect() {
            bench.carry_out(plan);
            bench.release();
        }
    }
    bench.scheme.apply(&mut bench.store, Seq::new(1), zero(2, 9).get(0)).expect("fits");
    let mut again = Store::new(bench.store.config).expect("valid");
    for page in 0..bench.store.table.page_count() {
        assert!(again.table.load_page(page, bench.store.table.page(page)));
    }
    let mut scheme = Elastic::new(&again);
    load(&mut scheme, &mut again, &[]).expect("it is sound");
    let mut claimed = again.nothing_claimed();
    scheme.claim_space(&again, &mut claimed).expect("no row twice");
    again.adopt(claimed).expect("they are in memory");
    for lcn in (0..240).map(Lcn::new) {
        assert_eq!(scheme.locate(&again, lcn), bench.scheme.locate(&bench.store, lcn));
    }
    bench.release();
    assert_eq!(again.spaces[0].free_count(), bench.free_rows());
    assert!(matches!(scheme.locate(&again, Lcn::new(2)), Located::Zero));
}

#[test]
fn a_table_that_contradicts_itself_is_refused() {
    let loads = |damage: &dyn Fn(&mut Store)| {
        let mut bench = Bench::new(2, 1, 2, 4, &SchemeOptions::default());
        bench.write(&[0, 1, 2]);
        damage(&mut bench.store);
        load(&mut Elastic::new(&bench.store), &mut bench.store, &[]).is_ok()
    };
    assert!(loads(&|_| {}));
    assert!(!loads(&|store| store.table.set_place(Lcn::new(3), 1)), "two chunks at one place");
    assert!(!loads(&|store| store.table.set_place(Lcn::new(3), 4)), "beyond the width of a short stripe");
    assert!(!loads(&|store| store.table.set_place(Lcn::new(3), 9)), "in a row that holds nothing");
    assert!(!loads(&|store| store.table.set_row(0, 3)), "wider than a stripe");
    assert!(!loads(&|store| store.table.set_row(0, 1 << 20 | 2)), "an unknown bit");
    assert!(!loads(&|store| RowWord::read(store, 0).freed().write(store, 0)), "a free row that is in use");
}

#[test]
fn records_that_do_not_fit_are_refused() {
    let mut bench = Bench::new(2, 1, 2, 4, &SchemeOptions::default());
    bench.write(&[0, 1]);
    let member = |lcn, from| ElasticMember { lcn: Lcn::new(lcn), from, crc: 1 };
    let mut accepts = |row, class, members: &[ElasticMember], parities: usize| {
        let mut records = RecordBuf::default();
        record::Elastic::begin(&mut records, row, class);
        for &member in members {
            record::Elastic::push(&mut records, member);
        }
        (0..parities).for_each(|_| {
            record::Elastic::push_parity(&mut records);
        });
        let record = records.get(0);
        let accepted = bench.scheme.accepts(&bench.store, record);
        assert_eq!(bench.scheme.apply(&mut bench.store, Seq::new(1), record).is_ok(), accepted);
        accepted
    };
    assert!(!accepts(0, 0, &[member(2, 0)], 1), "the row is in use");
    assert!(!accepts(44, 0, &[member(2, 0)], 1), "no such row");
    assert!(!accepts(u32::MAX, 0, &[member(2, 0)], 1), "no such row");
    assert!(!accepts(1, 8, &[member(2, 0)], 1), "no such class");
    assert!(!accepts(1, 0, &[], 1), "no data");
    assert!(!accepts(1, 0, &[member(2, 0); 3], 1), "too wide");
    assert!(!accepts(1, 0, &[member(2, 0)], 0), "no parity");
    assert!(!accepts(1, 0, &[member(8, 0)], 1), "past the end of the volume");
    assert!(!accepts(1, 0, &[member(2, 89)], 1), "moved from nowhere");
    assert!(accepts(1, 7, &[member(2, 88)], 1));
}

/// An array with log devices whose row 0 is open and has one chunk.
fn with_an_open_stripe() -> Bench {
    let mut bench = Bench::with_more((1, 0), (2, 1), 2, 4, &SchemeOptions::default());
    bench.write(&[0]);
    bench
}

#[test]
fn records_of_open_stripes_that_do_not_fit_are_refused() {
    let mut bench = with_an_open_stripe();
    let crc = bench.store.table.row_crc(0, 0);
    let mut accepts = |row, block, before: &[u32], lcns: &[u64], parities: usize| {
        let mut records = RecordBuf::default();
        let (block, before) = (ChunkIndex::new(block), before.iter().copied());
        record::OpenStripe::begin(&mut records, (row, 0), block, before, parities);
        for &lcn in lcns {
            record::OpenStripe::push(&mut records, ElasticMember { lcn: Lcn::new(lcn), from: 0, crc: 1 });
        }
        let record = records.get(0);
        let accepted = bench.scheme.accepts(&bench.store, record);
        assert_eq!(bench.scheme.apply(&mut bench.store, Seq::new(2), record).is_ok(), accepted);
        accepted
    };
    assert!(!accepts(0, 2, &[], &[2], 1), "the row is in use");
    assert!(!accepts(1, 2, &[crc], &[2], 1), "the row was not begun");
    assert!(!accepts(0, 2, &[crc ^ 1], &[2], 1), "another chunk");
    assert!(!accepts(0, 2, &[crc, crc], &[], 1), "wider than it is");
    assert!(!accepts(0, 2, &[crc], &[2, 3], 1), "too wide");
    assert!(!accepts(0, u32::MAX, &[crc], &[2], 1), "past the end of the log");
    assert!(!accepts(44, 2, &[], &[2], 1), "no such row");
    assert!(!accepts(1, 2, &[], &[], 1), "no data");
    assert!(!accepts(1, 2, &[], &[2], 2), "too many parities");
    assert!(!accepts(1, 2, &[], &[8], 1), "past the end of the volume");
    assert!(accepts(0, 2, &[crc], &[], 1), "its parity has moved");
    assert!(accepts(0, 0, &[crc], &[], 1), "closed as it is");
    assert!(!accepts(0, 2, &[crc], &[2], 1), "closed already");
}

/// Loads a list of these items.
fn load(scheme: &mut Elastic, store: &mut Store, items: &[ListItem]) -> Result<(), crate::Contradiction> {
    let mut words = Vec::new();
    items.iter().for_each(|item| item.encode(&mut words));
    scheme.load(store, format::List::read(&words).expect("as encoded"))
}

#[test]
fn a_list_of_open_stripes_that_contradicts_the_table_is_refused() {
    let item = |row, block| ListItem::OpenStripe { seq: Seq::new(1), row, log_block: ChunkIndex::new(block) };
    let loads = |items: &[ListItem]| {
        let mut bench = with_an_open_stripe();
        load(&mut Elastic::new(&bench.store), &mut bench.store, items).is_ok()
    };
    assert!(loads(&[item(0, 1)]));
    assert!(!loads(&[]), "the row says that it is open");
    assert!(!loads(&[item(0, 1), item(0, 1)]), "twice");
    assert!(!loads(&[item(1, 1)]), "another row");
    assert!(!loads(&[item(u32::MAX, 1)]), "no such row");
    assert!(!loads(&[item(0, 0)]), "no block");
    assert!(!loads(&[item(0, u32::MAX)]), "past the end of the log");
}

#[test]
fn what_was_saved_of_open_stripes_is_loaded() {
    let mut bench = with_an_open_stripe();
    let (mut words, mut before, mut after) = (Vec::new(), Codeword::default(), Codeword::default());
    bench.scheme.save(&bench.store, &mut words);
    let items = format::decode_list(&words).expect("as encoded");
    let mut loaded = Elastic::new(&bench.store);
    load(&mut loaded, &mut bench.store, &items).expect("as saved");
    bench.scheme.codeword(&bench.store, Word::Row(0), &mut before);
    loaded.codeword(&bench.store, Word::Row(0), &mut after);
    assert_eq!(before.pieces, after.pieces);
    let log = bench.store.log_device(0);
    assert!(before.pieces.iter().any(|piece| piece.addr.dev == log), "its parity is in the log");
    assert_eq!(loaded.newest_log_block(), bench.scheme.newest_log_block());
    // It is not in buffers, so it is closed: its data is read.
    let mut plan = Plan::default();
    assert_eq!(loaded.plan_collect(&mut bench.store, &mut bench.pool, &mut plan), CollectOutcome::Planned);
    assert_eq!((plan.reads.len(), plan.writes.len()), (1, 1));
}

/// L-15: map, checksums and owners of an array as it is created.
#[test]
fn at_most_12_bytes_per_chunk() {
    let create = CreateOptions {
        scheme: SchemeKind::Was,
        code: CodeKind::Cauchy,
        layout: LayoutKind::Rotate,
        consistency: Consistency::Resync,
        geometry: Geometry::new(6, 2, u64::from(CHUNK)).expect("valid"),
        reserve_permille: 200,
        unit_rows: None,
    };
    let config = plan_config(&create, 256 << 20, 0, 0).expect("fits");
    let store = Store::new(config).expect("valid");
    let mut scheme = Elastic::new(&store);
    scheme.configure(&store, &SchemeOptions::default());
    let memory = scheme.memory();
    let chunks = u64::from(config.chunks_per_device) * config.geometry.device_count() as u64;
    let bytes = store.table.memory_bytes() + memory.fixed_bytes;
    assert!(bytes <= 12 * chunks, "{bytes} bytes for {chunks} chunks");
    assert!((4000..8000).contains(&memory.placement_bytes), "W-06: {} bytes", memory.placement_bytes);
}
