//! The worked example of the EPLOG paper (figure 1; requirement B-05), driven through the seam:
//! `docs/schemes.md` shows the plan texts, this test makes them.
//!
//! Where a text differs, the test prints what the code plans now, to be pasted.

use crate::common::create_options;
use array::{
    ChunkWrite, CollectOutcome, Collects, CommitOutcome, CreateOptions, Health, Origin, Plan, Scheme, Store,
    new_scheme, plan_config,
};
use block::{Lcn, Pool, Seq, StripeId};
use format::{MemberEntry, MemberState, SchemeKind};

/// Three data SSDs and one for parity, as in the figure.
const K: u64 = 3;

struct Bench {
    store: Store,
    scheme: Box<dyn Scheme>,
    health: Health,
    pool: Pool,
    next: Seq,
}

impl Bench {
    /// An array with the stripes of the example written.
    fn new(kind: SchemeKind, stripes: [u64; 2]) -> Self {
        Self::with_units(kind, stripes, 64)
    }

    fn with_units(kind: SchemeKind, stripes: [u64; 2], unit_rows: u32) -> Self {
        Self::with_logs(kind, stripes, unit_rows, usize::from(kind.has_log()))
    }

    fn with_logs(kind: SchemeKind, stripes: [u64; 2], unit_rows: u32, logs: usize) -> Self {
        let options = CreateOptions { unit_rows: Some(unit_rows), ..create_options(kind, K as usize, 1) };
        let config =
            plan_config(&options, if unit_rows < 64 { 3 << 20 } else { 16 << 20 }, 8 << 20, logs).unwrap();
        let store = Store::new(config).unwrap();
        let entries = vec![MemberEntry { serial: 1, state: MemberState::Healthy }; K as usize + 1 + logs];
        let (scheme, health) = (new_scheme(&store, u64::MAX), Health::new(&config, &entries, 1));
        let mut bench = Self { store, scheme, health, pool: Pool::new(4096, 256), next: Seq::new(1) };
        for stripe in stripes {
            bench.write(&[stripe * K, stripe * K + 1, stripe * K + 2]);
        }
        bench
    }

    /// Plans a batch of whole chunks and applies it; its text.
    fn write(&mut self, lcns: &[u64]) -> String {
        self.try_write(lcns).expect("there is space")
    }

    /// `None` if the scheme refuses some of it.
    fn try_write(&mut self, lcns: &[u64]) -> Option<String> {
        let slot = || self.pool.alloc().unwrap();
        let slots: Vec<_> = std::iter::repeat_with(slot).take(lcns.len()).collect();
        let write = |(&lcn, &slot): (&u64, _)| ChunkWrite {
            origin: Origin::Request(0),
            lcn: Lcn::new(lcn),
            slot,
            from: 0,
            to: 4096,
            class: 0,
            order: 0,
        };
        let mut writes: Vec<ChunkWrite> = lcns.iter().zip(&slots).map(write).collect();
        let (mut refused, mut plan) = (Vec::new(), Plan::default());
        self.scheme.plan_writes(
            &mut self.store,
            &self.health,
            &mut self.pool,
            &mut writes,
            &mut refused,
            &mut plan,
        );
        let text = self.apply(&mut plan);
        slots.into_iter().chain(plan.owned).for_each(|slot| self.pool.free(slot));
        refused.is_empty().then_some(text)
    }

    fn commit(&mut self, stripe: u64) -> String {
        let mut plan = Plan::default();
        let commits = self.scheme.commits_mut().expect("schemes with a log do");
        let outcome = commits.plan_commit(
            &mut self.store,
            &self.health,
            &mut self.pool,
            StripeId::new(stripe),
            &mut plan,
        );
        assert_eq!(outcome, CommitOutcome::Planned);
        self.apply(&mut plan)
    }

    fn apply(&mut self, plan: &mut Plan) -> String {
        let text = plan.text(self.store.main_count());
        for append in std::mem::take(&mut plan.appends) {
            let (_, block) = self.store.log.append_reserved();
            plan.records.set_log_block(append.record, block);
        }
        for index in 0..plan.records.len() {
            self.scheme.apply(&mut self.store, self.next, plan.records.get(index)).unwrap();
            self.next = self.next.next();
        }
        text
    }
}

/// The fenced block of `docs/schemes.md` that follows the marker of this name.
fn documented(name: &str) -> String {
    let document = include_str!("../../../../docs/schemes.md");
    let marker = format!("<!-- plan: {name} -->\n```text\n");
    let (_, rest) =
        document.split_once(&marker).unwrap_or_else(|| panic!("docs/schemes.md shows no plan `{name}`"));
    rest.split_once("```").unwrap().0.to_owned()
}

#[track_caller]
fn same(name: &str, found: &str) {
    assert!(found == documented(name), "docs/schemes.md, plan `{name}`: the code plans\n{found}");
}

fn count(text: &str, step: &str) -> usize {
    text.lines().filter(|line| line.starts_with(step)).count()
}

/// B0, C0 and A1 where stripe 1 of the figure is stripe `second` here.
fn update(second: u64) -> [u64; 3] {
    [1, 2, second * K]
}

#[test]
fn figure_1_costs_eplog_no_read_and_four_writes() {
    let mut bench = Bench::new(SchemeKind::Eplog, [0, 4]);
    let text = bench.write(&update(4));
    same("eplog update", &text);
    assert_eq!((count(&text, "read"), count(&text, "write"), count(&text, "write log")), (0, 4, 1));
    let commits = bench.commit(0) + &bench.commit(4);
    same("eplog commit", &commits);
    assert_eq!(count(&commits, "read log"), 0);
}

#[test]
fn chunks_on_one_ssd_take_a_log_stripe_each() {
    let text = Bench::new(SchemeKind::Eplog, [0, 1]).write(&update(1));
    same("eplog conflict", &text);
    assert_eq!((count(&text, "read"), count(&text, "write data"), count(&text, "write log")), (0, 3, 2));
}

#[test]
fn a_new_full_stripe_costs_eplog_no_log_chunk() {
    let text = Bench::new(SchemeKind::Eplog, [0, 4]).write(&[3, 4, 5]);
    same("eplog full stripe", &text);
}

#[test]
fn figure_1_costs_raid_three_reads_and_five_writes() {
    let text = Bench::new(SchemeKind::Raid, [0, 4]).write(&update(4));
    same("raid update", &text);
    assert_eq!((count(&text, "read"), count(&text, "write")), (3, 5));
}

/// WAS, Figure 2: D0 to D5 written, then D1, D2 and D4 updated.
#[test]
fn was_figure_2_costs_one_full_stripe_and_no_reads() {
    for kind in [SchemeKind::Elastic, SchemeKind::Was] {
        let text = Bench::new(kind, [0, 1]).write(&[1, 2, 4]);
        same("elastic update", &text);
        assert_eq!(
            (count(&text, "read"), count(&text, "write data"), count(&text, "write parity")),
            (0, 3, 1)
        );
    }
}

/// L-09, L-11: one chunk after the other of a stripe, each durable before the next one comes.
#[test]
fn synchronous_chunks_fill_an_open_stripe() {
    let mut bench = Bench::with_logs(SchemeKind::Elastic, [0, 1], 64, 1);
    same("elastic open stripe", &[1, 2, 4].map(|lcn| bench.write(&[lcn])).concat());
}

#[test]
fn collection_reads_what_is_valid_and_writes_it_together() {
    let mut bench = Bench::with_units(SchemeKind::Elastic, [2, 3], 2);
    // D6 to D11 fill the first unit, then everything is overwritten but D6 and D9.
    bench.write(&[7, 8, 10, 11]);
    // Each of the other chunks in a stripe of its own, until few units are left.
    for lcn in 12.. {
        if bench.scheme.collects().is_some_and(Collects::wants_collection) {
            break;
        }
        bench.write(&[lcn]);
    }
    let mut plan = Plan::default();
    let collects = bench.scheme.collects_mut().expect("elastic schemes do");
    let outcome = collects.plan_collect(&mut bench.store, &mut bench.pool, &mut plan);
    assert_eq!(outcome, CollectOutcome::Planned);
    same("elastic collection", &bench.apply(&mut plan));
}

#[test]
fn figure_1_costs_parity_log_three_reads_five_writes_and_two_log_chunks() {
    let mut bench = Bench::new(SchemeKind::ParityLog, [0, 4]);
    let text = bench.write(&update(4));
    same("parity-log update", &text);
    assert_eq!((count(&text, "read"), count(&text, "write"), count(&text, "write log")), (3, 5, 2));
    let commits = bench.commit(0) + &bench.commit(4);
    same("parity-log commit", &commits);
}

#[test]
fn a_full_stripe_again_costs_parity_log_a_log_chunk_and_no_read() {
    let text = Bench::new(SchemeKind::ParityLog, [0, 4]).write(&[0, 1, 2]);
    same("parity-log full stripe again", &text);
    assert_eq!((count(&text, "read"), count(&text, "write data"), count(&text, "write log")), (0, 3, 1));
}
