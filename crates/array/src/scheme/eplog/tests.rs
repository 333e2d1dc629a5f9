//! State and request in, plan text out.

mod changes;

use super::Eplog;
use crate::create::{CreateOptions, plan_config};
use crate::health::Health;
use crate::plan::Plan;
use crate::scheme::{ChunkWrite, CommitOutcome, Commits, Logs as _, Origin, Rewrites, Scheme, SchemeOptions};
use crate::store::Store;
use crate::table::Extent;
use block::{ChunkIndex, Geometry, Lcn, Pool, Seq, StripeId};
use format::record::Zero;
use format::{
    CodeKind, Consistency, LayoutKind, ListItem, MemberEntry, MemberFate, MemberState, RecordBuf, SchemeKind,
};

const CHUNK: u32 = 4096;

struct Bench {
    store: Store,
    scheme: Eplog,
    health: Health,
    pool: Pool,
    /// Of the record that was applied last.
    seq: Seq,
}

impl Bench {
    /// An array whose first `filled` stripes are written; column c of stripe s is on device (s + c) mod n.
    fn new(k: usize, m: usize, filled: u64) -> Self {
        let options = CreateOptions {
            scheme: SchemeKind::Eplog,
            code: if m == 1 { CodeKind::Xor } else { CodeKind::Cauchy },
            layout: LayoutKind::Rotate,
            consistency: Consistency::Journal,
            geometry: Geometry::new(k, m, u64::from(CHUNK)).expect("valid"),
            reserve_permille: 100,
            unit_rows: None,
        };
        let config = plan_config(&options, 16 << 20, 8 << 20, m).expect("fits");
        let entries = vec![MemberEntry { serial: 1, state: MemberState::Healthy }; k + 2 * m];
        let store = Store::new(config).expect("valid");
        let mut scheme = Eplog::new(&store, u64::MAX);
        scheme.configure(&store, &SchemeOptions { rewrites: Rewrites::Replace, ..SchemeOptions::default() });
        let health = Health::new(&config, &entries, 1);
        let mut bench =
            Self { store, scheme, health, pool: Pool::new(CHUNK as usize, 2048), seq: Seq::new(0) };
        for stripe in 0..filled {
            bench.write(&(stripe * k as u64..(stripe + 1) * k as u64).collect::<Vec<u64>>());
        }
        bench
    }

    /// The same with another choice of what becomes of whole stripes that are written again.
    fn with(rewrites: Rewrites, k: usize, m: usize, filled: u64) -> Self {
        let mut bench = Self::new(k, m, filled);
        bench.scheme.configure(&bench.store, &SchemeOptions { rewrites, ..SchemeOptions::default() });
        bench
    }

    fn free(&self) -> Vec<u32> {
        self.store.spaces.iter().map(|space| space.free_count()).collect()
    }

    fn log_is_empty(&self) -> bool {
        self.scheme.log_tail(&self.store) == self.store.log.head()
    }

    fn is_dirty(&self, stripe: u64) -> bool {
        self.scheme.is_dirty(StripeId::new(stripe))
    }

    /// Plans one batch of writes of whole chunks; how many were refused.
    fn plan(&mut self, lcns: &[u64]) -> (Plan, usize) {
        let mut writes = Vec::new();
        for (&lcn, request) in lcns.iter().zip(0..) {
            let origin = Origin::Request(request);
            let slot = self.pool.alloc().expect("enough slots");
            writes.push(ChunkWrite {
                origin,
                lcn: Lcn::new(lcn),
                slot,
                from: 0,
                to: CHUNK,
                class: 0,
                order: 0,
            });
        }
        let slots: Vec<_> = writes.iter().map(|write| write.slot).collect();
        // What the engine does where there is much in memory.
        self.scheme.prefetch_writes(&self.store, &mut lcns.iter().copied().map(Lcn::new));
        let (mut plan, mut refused) = (Plan::default(), Vec::new());
        let pool = &mut self.pool;
        self.scheme.plan_writes(&mut self.store, &self.health, pool, &mut writes, &mut refused, &mut plan);
        slots.into_iter().for_each(|slot| self.pool.free(slot));
        (plan, refused.len())
    }

    /// Plans and carries out; the plan's text.
    fn write(&mut self, lcns: &[u64]) -> String {
        let (plan, refused) = self.plan(lcns);
        assert_eq!(refused, 0);
        self.carry_out(plan)
    }

    fn discard(&mut self, first: u64, count: u64) {
        let mut records = RecordBuf::default();
        Zero::push(&mut records, Lcn::new(first), count);
        self.seq = self.seq.next();
        self.scheme.apply(&mut self.store, self.seq, records.get(0)).expect("fits");
    }

    fn plan_commit(&mut self, stripe: u64) -> (Plan, CommitOutcome) {
        let mut plan = Plan::default();
        let stripe = StripeId::new(stripe);
        self.scheme.foresee_commits(&self.store, &[stripe]);
        let outcome =
            self.scheme.plan_commit(&mut self.store, &self.health, &mut self.pool, stripe, &mut plan);
        (plan, outcome)
    }

    fn commit(&mut self, stripe: u64) -> String {
        let (plan, outcome) = self.plan_commit(stripe);
        assert_eq!(outcome, CommitOutcome::Planned);
        self.carry_out(plan)
    }

    fn carry_out(&mut self, mut plan: Plan) -> String {
        let text = plan.text(self.store.main_count());
        plan.records.iter().for_each(|record| self.scheme.prefetch(&self.store, record));
        plan.records.iter().for_each(|record| self.scheme.foresee(&self.store, record));
        for index in 0..plan.records.len() {
            self.seq = self.seq.next();
            self.scheme.apply(&mut self.store, self.seq, plan.records.get(index)).expect("fits");
        }
        plan.leases.keep();
        plan.release_slots(&mut self.pool);
        // As after a flush: what was freed may be used again.
        for run in std::mem::take(&mut self.store.freed) {
            self.store.release_run(run);
        }
        text
    }
}

#[track_caller]
fn same(found: &str, expected: &str) {
    let expected: String =
        expected.lines().map(str::trim).filter(|l| !l.is_empty()).map(|l| format!("{l}\n")).collect();
    assert_eq!(found, expected);
}

#[test]
fn a_whole_stripe_never_written_goes_to_the_main_array_with_its_parity() {
    same(
        &Bench::new(4, 2, 1).write(&[4, 5, 6, 7]),
        "encode columns [0, 1, 2, 3] into 2
         write data ssd1:2
         write data ssd2:2
         write data ssd3:2
         write data ssd4:2
         write parity ssd5:2
         write parity ssd0:2
         record full stripe 1",
    );
}

#[test]
fn an_update_goes_out_of_place_with_a_chunk_on_each_log_device_and_reads_nothing() {
    same(
        &Bench::new(4, 2, 4).write(&[5]),
        "encode columns [0] into 2
         write data ssd2:5
         write log log0:1
         write log log1:1
         record log stripe of chunks [5]",
    );
}

#[test]
fn updates_of_distinct_ssds_share_a_log_stripe_and_those_of_one_ssd_do_not() {
    // Chunks 0 and 5 are on ssd0 and ssd2, chunk 19 is column 3 of stripe 4: again on ssd2.
    same(
        &Bench::new(4, 1, 5).write(&[0, 5, 19]),
        "encode columns [0, 1] into 1
         encode columns [0] into 1
         write data ssd0:6
         write data ssd2:6
         write log log0:1
         write data ssd2:7
         write log log0:2
         record log stripe of chunks [0, 5]
         record log stripe of chunks [19]",
    );
}

#[test]
fn a_whole_stripe_written_again_is_a_log_stripe_if_rewrites_are_logged() {
    same(
        &Bench::with(Rewrites::Log, 4, 1, 2).write(&[4, 5, 6, 7]),
        "encode columns [0, 1, 2, 3] into 1
         write data ssd1:3
         write data ssd2:3
         write data ssd3:3
         write data ssd4:3
         write log log0:1
         record log stripe of chunks [4, 5, 6, 7]",
    );
}

#[test]
fn a_dirty_stripe_rewritten_by_itself_is_logged_and_the_next_ones_in_the_row_are_replaced() {
    let mut bench = Bench::with(Rewrites::Auto, 4, 1, 4);
    for stripe in 0..4 {
        bench.write(&[4 * stripe]);
    }
    let logged = |text: &str| text.contains("record log stripe");
    for stripe in 1..4 {
        let text = bench.write(&[4 * stripe, 4 * stripe + 1, 4 * stripe + 2, 4 * stripe + 3]);
        assert_eq!((logged(&text), bench.is_dirty(stripe)), (stripe == 1, stripe == 1), "{text}");
    }
}

#[test]
fn a_clean_stripe_rewritten_again_soon_is_logged() {
    let mut bench = Bench::with(Rewrites::Auto, 4, 1, 2);
    for round in 0..4 {
        assert_eq!(bench.write(&[4, 5, 6, 7]).contains("record log stripe"), round > 0, "{round}");
    }
}

#[test]
fn a_part_of_a_stripe_never_written_is_a_log_stripe_and_leaves_it_without_parity() {
    let mut bench = Bench::new(4, 1, 0);
    same(
        &bench.write(&[1, 2]),
        "encode columns [0, 1] into 1
         write data ssd1:1
         write data ssd2:1
         write log log0:1
         record log stripe of chunks [1, 2]",
    );
    // Only what was written is encoded.
    same(
        &bench.commit(0),
        "read data ssd1:1
         read data ssd2:1
         encode columns [1, 2] into 1
         write parity ssd4:1
         record commit of stripe 0",
    );
}

#[test]
fn a_commit_folds_one_change_of_six_columns_into_the_old_parity() {
    let mut bench = Bench::new(6, 1, 2);
    bench.write(&[8]);
    same(
        &bench.commit(1),
        "read parity ssd0:2
         read data ssd3:2
         read data ssd3:3
         fold the change of column 2 into 1
         write parity ssd0:3
         record commit of stripe 1",
    );
}

#[test]
fn a_commit_encodes_anew_when_most_columns_changed() {
    let mut bench = Bench::new(4, 2, 2);
    bench.write(&[4, 5, 6]);
    same(
        &bench.commit(1),
        "read data ssd1:3
         read data ssd2:3
         read data ssd3:3
         read data ssd4:2
         encode columns [0, 1, 2, 3] into 2
         write parity ssd5:3
         write parity ssd0:3
         record commit of stripe 1",
    );
}

#[test]
fn a_commit_of_what_was_written_twice_passes_over_the_version_between() {
    let mut bench = Bench::new(6, 1, 1);
    bench.write(&[2]);
    bench.write(&[2]);
    same(
        &bench.commit(0),
        "read parity ssd6:1
         read data ssd2:1
         read data ssd2:3
         fold the change of column 2 into 1
         write parity ssd6:2
         record commit of stripe 0",
    );
}

#[test]
fn a_commit_after_a_discard_folds_the_old_version_out() {
    let mut bench = Bench::new(6, 1, 1);
    bench.discard(2, 1);
    same(
        &bench.commit(0),
        "read parity ssd6:1
         read data ssd2:1
         fold the change of column 2 into 1
         write parity ssd6:2
         record commit of stripe 0",
    );
}

#[test]
fn a_stripe_without_data_needs_no_commit() {
    let mut bench = Bench::new(4, 1, 1);
    bench.write(&[1]);
    bench.discard(0, 4);
    assert_eq!(bench.plan_commit(0).1, CommitOutcome::Clean);
    assert!(!bench.scheme.is_in_use(&bench.store, StripeId::new(0)));
}

#[test]
fn what_a_commit_freed_is_free_and_the_log_is_empty_after_it() {
    let mut bench = Bench::new(4, 1, 2);
    let before = bench.free();
    bench.write(&[4]);
    bench.write(&[4]);
    assert!(!bench.log_is_empty());
    bench.commit(1);
    assert_eq!(bench.free(), before);
    assert!(bench.log_is_empty());
}

#[test]
fn writes_without_room_are_refused_together_and_nothing_is_planned_for_them() {
    let mut bench = Bench::new(4, 1, 0);
    let stripes = bench.store.config.stripe_count;
    (0..stripes).for_each(|stripe| drop(bench.write(&[0, 1, 2, 3].map(|column| stripe * 4 + column))));
    // Updates of what is on ssd1, until it has no room: column c of stripe s is on device (s + c) mod 5.
    let mut on_ssd1 =
        (0..stripes).map(|stripe| (stripe, (6 - stripe % 5) % 5)).filter(|(_, column)| *column < 4);
    while bench.store.spaces[1].free_for_users() > 0 {
        let (stripe, column) = on_ssd1.next().expect("more chunks than spare ones");
        bench.write(&[stripe * 4 + column]);
    }
    let (stripe, column) = on_ssd1.next().expect("more chunks than spare ones");
    let other = stripe * 4 + (column + 1) % 4;
    let (plan, refused) = bench.plan(&[stripe * 4 + column, other]);
    assert_eq!((plan.text(bench.store.main_count()).as_str(), refused), ("", 2));
    // What needs no room there is taken.
    assert_eq!(bench.plan(&[other]).1, 0);
}

/// What replacing stripe 1 of (4+1) comes to when the next free chunk of every SSD is `next`.
fn replaced_stripe_1(next: u32) -> String {
    format!(
        "encode columns [0, 1, 2, 3] into 1
         write data ssd1:{next}
         write data ssd2:{next}
         write data ssd3:{next}
         write data ssd4:{next}
         write parity ssd0:{next}
         record full stripe 1"
    )
}

#[test]
fn a_whole_stripe_written_again_takes_new_places_with_its_parity_and_frees_the_old_ones() {
    let mut bench = Bench::new(4, 1, 2);
    let before = bench.free();
    same(&bench.write(&[4, 5, 6, 7]), &replaced_stripe_1(3));
    assert!(!bench.is_dirty(1) && bench.log_is_empty());
    assert_eq!(bench.free(), before);
    assert_eq!(bench.plan_commit(1).1, CommitOutcome::Clean);
}

#[test]
fn replacing_a_stripe_with_updates_drops_what_only_they_needed() {
    let mut bench = Bench::new(4, 1, 2);
    let before = bench.free();
    bench.write(&[5]);
    bench.write(&[5, 6]);
    bench.discard(7, 1);
    assert!(bench.is_dirty(1) && !bench.log_is_empty());
    let text = bench.write(&[4, 5, 6, 7]);
    assert!(text.ends_with("record full stripe 1\n") && !text.contains("log"), "{text}");
    assert!(!bench.is_dirty(1) && bench.log_is_empty());
    assert_eq!(bench.free(), before);
}

#[test]
fn what_a_log_stripe_needs_for_its_other_members_outlives_the_replaced_stripe() {
    let mut bench = Bench::new(4, 1, 2);
    let before = bench.free();
    // One log stripe: chunk 0 is on ssd0, chunk 5 on ssd2.
    bench.write(&[0, 5]);
    bench.write(&[4, 5, 6, 7]);
    assert!(bench.is_dirty(0) && !bench.is_dirty(1) && !bench.log_is_empty());
    let held = |bench: &Bench| -> Vec<u32> { before.iter().zip(bench.free()).map(|(b, f)| b - f).collect() };
    assert_eq!(held(&bench), [1, 0, 1, 0, 0], "the new version of chunk 0, and its peer");
    bench.write(&[0, 1, 2, 3]);
    assert!(!bench.is_dirty(0) && bench.log_is_empty());
    assert_eq!(bench.free(), before);
}

#[test]
fn what_a_commit_left_to_a_log_stripe_is_freed_with_it_and_not_twice() {
    let mut bench = Bench::new(4, 1, 2);
    let before = bench.free();
    bench.write(&[0, 5]);
    // The newest version of chunk 5 is committed now, and the log stripe still needs it for chunk 0.
    bench.commit(1);
    bench.write(&[4, 5, 6, 7]);
    bench.commit(0);
    assert!(bench.log_is_empty());
    assert_eq!(bench.free(), before);
}

#[test]
fn stripes_without_parity_or_some_columns_are_replaced_like_others() {
    let mut bench = Bench::new(4, 1, 1);
    // Half of stripe 1 exists, and no parity.
    bench.write(&[4, 5]);
    let text = bench.write(&[4, 5, 6, 7]);
    assert!(text.ends_with("record full stripe 1\n"), "{text}");
    bench.discard(5, 2);
    bench.commit(1);
    let text = bench.write(&[4, 5, 6, 7]);
    assert!(text.ends_with("record full stripe 1\n"), "{text}");
    assert!(!bench.is_dirty(1) && bench.log_is_empty());
    let used = |free: &u32| bench.store.config.chunks_per_device - free;
    assert_eq!(bench.free().iter().map(used).collect::<Vec<_>>(), [2; 5], "two stripes, nothing else");
}

#[test]
fn writes_of_a_stripe_need_not_come_in_its_order_nor_together() {
    let mut bench = Bench::new(4, 1, 2);
    let mut whole = |lcns: &[u64]| {
        let text = bench.write(lcns);
        text.matches("record full stripe").count()
    };
    assert_eq!(whole(&[7, 5, 4, 6]), 1);
    assert_eq!(whole(&[0, 4, 1, 5, 2, 6, 3, 7]), 2);
    // Two requests that end and begin within stripe 1.
    assert_eq!(whole(&[2, 3, 4, 5, 6, 7, 8]), 1);
    assert_eq!(whole(&[4, 5, 6, 7, 4, 5, 6, 7]), 2, "one after the other");
    assert_eq!(whole(&[4, 5, 6, 6, 5, 4]), 0, "chunk 7 is missing");
    // What is logged is recorded behind full stripes, so nothing older may be.
    assert_eq!(whole(&[5, 4, 5, 6, 7]), 0);
    same(
        &Bench::new(4, 1, 2).write(&[4, 5, 6, 7, 5]),
        &(replaced_stripe_1(3).replace("into 1\n", "into 1\nencode columns [0] into 1\n").replace(
            "record full stripe 1",
            "write data ssd2:4\nwrite log log0:1\nrecord full stripe 1\nrecord log stripe of chunks [5]",
        )),
    );
}

#[test]
fn a_stripe_is_logged_where_there_is_no_room_for_new_parity() {
    let mut bench = Bench::new(4, 1, 2);
    // The parity of stripe 1 is on ssd0, none of its data.
    while bench.store.spaces[0].free_for_users() > 0 {
        let lease =
            bench.store.alloc(block::DevIndex::new(0), crate::space::Demand::User).expect("there is one");
        let mut leases = crate::space::Leases::default();
        leases.hold(block::DevIndex::new(0), lease);
        leases.keep();
    }
    let text = bench.write(&[4, 5, 6, 7]);
    assert!(text.ends_with("record log stripe of chunks [4, 5, 6, 7]\n"), "{text}");
    let (plan, refused) = bench.plan(&[0, 1, 2, 3]);
    assert_eq!((plan.text(bench.store.main_count()).as_str(), refused), ("", 4), "data of stripe 0 is there");
}

/// Members of every fate: chunks 1 and 6 in the first log stripe, 4 and 5 in the second, 4 in the third.
fn fates() -> Bench {
    let mut bench = Bench::new(4, 1, 2);
    bench.write(&[1, 6]);
    bench.commit(1);
    bench.write(&[4, 5]);
    bench.write(&[4]);
    bench
}

/// Where the table of [`fates`] is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Page {
    InMemory,
    Absent,
}

/// The page of all stripes that were written is not in memory any more.
fn absent(store: &mut Store) {
    let config = store.config;
    let pages = store.table.take_snapshot(Extent::Everything);
    assert_eq!(pages[0], 0, "there is one of stripes; the others are of bits");
    let words: Vec<_> = pages.iter().map(|&page| (page, *store.table.page(page))).collect();
    store.table.end_snapshot(1);
    store.table.set_bytes_max(&config, 0);
    store.table.evict_all();
    words[1..].iter().for_each(|(page, words)| store.table.bring(*page, words));
    assert!(store.table.is_absent(0));
}

/// Loads a list of these items.
fn load(scheme: &mut Eplog, store: &mut Store, items: &[ListItem]) -> Result<(), crate::Contradiction> {
    let mut words = Vec::new();
    items.iter().for_each(|item| item.encode(&mut words));
    scheme.load(store, format::List::read(&words).expect("as encoded"))
}

/// Whether a start refuses a list over the table of [`fates`]: at once, or when the page comes and what it
/// names is compared with what is in use.
fn is_refused(items: &[ListItem], page: Page) -> bool {
    let Bench { mut store, .. } = fates();
    let words = *store.table.page(0);
    if page == Page::Absent {
        absent(&mut store);
    }
    let mut scheme = Eplog::new(&store, u64::MAX);
    if load(&mut scheme, &mut store, items).is_err() || scheme.check_page(&store.table, 0, &words).is_err() {
        return true;
    }
    store.table.bring(0, &words);
    let mut claimed = store.nothing_claimed();
    scheme.claim_space(&store, &mut claimed).and_then(|()| store.adopt(claimed)).is_err()
}

#[test]
fn a_list_that_gives_members_other_fates_than_the_table_is_refused() {
    let (bench, mut words) = (fates(), Vec::new());
    bench.scheme.save(&bench.store, &mut words);
    let items = format::decode_list(&words).expect("as encoded");
    let mut forged: Vec<Vec<ListItem>> = Vec::new();
    let mut fates_seen = Vec::new();
    for at in 0..items.len() {
        let ListItem::LogStripe { members, .. } = &items[at] else { continue };
        // A log stripe is missing, or there twice.
        forged.push([&items[..at], &items[at + 1..]].concat());
        forged.push([&items[..], &items[at..=at]].concat());
        for index in 0..members.len() {
            let (member, fate) = members[index];
            fates_seen.push((member.lcn.get(), fate));
            let mut with = |member, fate| {
                let mut items = items.clone();
                let ListItem::LogStripe { members, .. } = &mut items[at] else { return };
                members[index] = (member, fate);
                forged.push(items);
            };
            MemberFate::ALL.iter().filter(|&&other| other != fate).for_each(|&other| with(member, other));
            if fate == MemberFate::Newest {
                with(format::LogMember { chunk: ChunkIndex::new(member.chunk.get() + 50), ..member }, fate);
            }
        }
    }
    use MemberFate::{Covered, Newest, Superseded};
    assert_eq!(fates_seen, [(1, Newest), (6, Covered), (4, Superseded), (5, Newest), (4, Newest)]);
    for page in [Page::InMemory, Page::Absent] {
        assert!(!is_refused(&items, page), "{page:?}: the list as it was saved");
        for items in &forged {
            assert!(is_refused(items, page), "{page:?}: {items:?}");
        }
    }
}

/// What a list says of covered members whose pages are absent is compared with nothing. If it is wrong, the
/// chunks that it names are treated as those whose they are.
#[test]
fn a_chunk_that_a_list_calls_a_covered_version_of_another_is_freed_with_its_own() {
    let mut bench = fates();
    let mut words = Vec::new();
    bench.scheme.save(&bench.store, &mut words);
    let mut items = format::decode_list(&words).expect("as encoded");
    let (page, own) = (*bench.store.table.page(0), bench.store.table.current(Lcn::new(3)).chunk);
    for item in &mut items {
        let ListItem::LogStripe { members, .. } = item else { continue };
        let covered = members.iter_mut().filter(|(_, fate)| *fate == MemberFate::Covered);
        // Chunk 6 of the volume is on the device of chunk 3.
        covered.for_each(|(member, _)| member.chunk = own);
    }
    absent(&mut bench.store);
    bench.scheme = Eplog::new(&bench.store, u64::MAX);
    load(&mut bench.scheme, &mut bench.store, &items).expect("its page is absent");
    bench.scheme.check_page(&bench.store.table, 0, &page).expect("of dirty stripes it fits");
    bench.store.table.bring(0, &page);
    let before = bench.free();
    for lcn in [3, 6, 1] {
        bench.write(&[lcn]);
    }
    (0..2).for_each(|stripe| {
        bench.commit(stripe);
    });
    assert!(bench.log_is_empty());
    assert_eq!(bench.free()[3], before[3], "two versions were superseded, and two are new");
}
