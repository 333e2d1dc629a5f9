//! Shards that have given up different members, together more than one of them bears: the array starts again,
//! and each of its members comes back or is replaced.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use array::{CreateOptions, EngineOptions, NewArray, RESERVE_PERMILLE_DEFAULT, plan_shards};
use block::{DevIndex, Durability, Geometry};
use device::{Existing, create_file};
use format::{CodeKind, Consistency, LayoutKind, MemberState, SUPERBLOCK_OFFSETS, SchemeKind};
use front::{Volume, VolumeRequest};
use node::assemble::Assembled;
use node::checks::{Caution, Consent, Manner};
use node::driver::DriverOptions;
use node::error::Error;
use node::event::Event;
use node::open::{Force, Incomplete, lock};
use node::operate::{Operator, Steering};
use node::running::{Clients, Plant, Running};
use node::status::{Source, of_superblocks};
use node::volume::Use;
use node::watch::Watch;
use node::{create, fresh};
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

const CHUNK: usize = 4096;
const FILE_BYTES: u64 = 48 << 20;
const A: DevIndex = DevIndex::new(0);
const B: DevIndex = DevIndex::new(1);

/// An array of two shards that each bear the loss of one of three members.
struct Rig {
    directory: TempDir,
}

/// The array runs, and is looked after.
struct Served {
    running: Running,
    operator: Operator,
    events: Vec<Event>,
}

impl Rig {
    fn new() -> Self {
        let rig = Self { directory: tempfile::tempdir().unwrap() };
        let paths = rig.paths();
        paths.iter().for_each(|path| create_file(path, FILE_BYTES, Existing::Refuse).unwrap());
        let options = CreateOptions {
            scheme: SchemeKind::Raid,
            code: CodeKind::Xor,
            layout: LayoutKind::Spread,
            consistency: Consistency::Journal,
            geometry: Geometry::new(2, 1, CHUNK as u64).unwrap(),
            reserve_permille: RESERVE_PERMILLE_DEFAULT,
            unit_rows: None,
        };
        let config = plan_shards(&options, FILE_BYTES, 0, 0, 2).unwrap();
        let (uuid, nonce) = (fresh::uuid().unwrap(), fresh::number().unwrap());
        let new = NewArray { uuid, name: String::new(), nonce, created_unix_s: 0 };
        create::create(&paths, config, &new, || Ok::<_, Error>(())).unwrap();
        rig.each_unit(true);
        rig
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn paths(&self) -> Vec<PathBuf> {
        ["a", "b", "c"].map(|name| self.path(name)).into()
    }

    fn assemble(&self) -> Result<Assembled, Error> {
        let locked = lock(&self.paths(), Force::Never, Incomplete::Refuse)?;
        locked.assemble(EngineOptions::default(), DriverOptions::default())
    }

    fn serve(&self) -> Served {
        let Assembled { shards, found, .. } = self.assemble().unwrap();
        let mut running = Running::here(shards, Use::ReadWrite).unwrap();
        let mut operator = Operator::new(found.paths.clone(), found.unnamed());
        operator.resume(&mut running);
        Served { running, operator, events: Vec::new() }
    }

    /// Writes a chunk of each of the first units, or finds it there.
    fn each_unit(&self, write: bool) {
        let shards = self.assemble().unwrap().shards;
        let manner = node::running::Manner { usage: Use::ReadWrite, clients: Clients::Here, threads: 1 };
        let mut plant = Plant::new(shards, manner).unwrap();
        let unit_bytes = plant.unit_bytes().unwrap();
        for unit in 0..8u8 {
            let slot = plant.pool().alloc().unwrap();
            plant.pool().bytes_mut(slot).fill(if write { unit + 1 } else { 0 });
            let (offset_bytes, length_bytes) = (u64::from(unit) * unit_bytes, CHUNK as u64);
            let request = match write {
                true => VolumeRequest::Write { offset_bytes, length_bytes, durability: Durability::Durable },
                false => VolumeRequest::Read { offset_bytes, length_bytes },
            };
            plant.start(1, request, &[slot]);
            let mut done = Vec::new();
            while done.is_empty() {
                plant.drive(&mut done);
                std::thread::yield_now();
            }
            assert_eq!(done[0].result, Ok(()));
            let is_there = plant.pool().bytes(slot).iter().all(|&byte| byte == unit + 1);
            assert!(write || is_there, "unit {unit}");
            plant.pool().free(slot);
        }
        plant.stop().unwrap();
    }

    /// The first shard gives B up and the second one A, and the array stops before either is told of it.
    fn split(&self) {
        let Served { mut running, .. } = self.serve();
        running.engine_mut(0).fail_device(B);
        running.engine_mut(1).fail_device(A);
        while running.engines().any(|engine| engine.is_publishing()) {
            running.drive();
        }
        running.stop().unwrap();
    }
}

impl Served {
    /// Takes turns until that is so.
    fn until(&mut self, what: &str, is: impl Fn(&Running, &[Event]) -> bool) {
        for _ in 0..20_000 {
            self.running.drive();
            self.running.take_control_answers();
            self.operator.step(&mut self.running, &mut self.events);
            if is(&self.running, &self.events) {
                return;
            }
            self.running.sleep(1_000_000).unwrap();
        }
        let works: Vec<_> = self.running.engines().map(array::Engine::maintenance).collect();
        panic!("not so: {what}: {:?}, {works:?}, {:?}", self.states(), self.events);
    }

    /// How each shard sees its members.
    fn states(&self) -> Vec<Vec<MemberState>> {
        let of = |engine: &array::Engine| engine.health().members().iter().map(|one| one.state).collect();
        self.running.engines().map(of).collect()
    }

    /// A member's device comes back when it has been closed, for which the kernel takes a moment.
    fn take_back(&mut self, dev: DevIndex, path: &Path, full: bool) {
        for _ in 0..1000 {
            match self.operator.online(&mut self.running, dev, Some(path.to_owned()), full) {
                Err(Error::Device(_)) => {}
                result => return result.unwrap(),
            }
            self.running.drive();
            self.running.sleep(10_000_000).unwrap();
        }
        panic!("{} is never closed", path.display());
    }

    fn stop(mut self) {
        self.running.halt_maintenance();
        self.running.stop().unwrap();
    }
}

const WHOLE: MemberState = MemberState::Healthy;
const OUT: MemberState = MemberState::Failed;

fn is_whole(running: &Running, dev: DevIndex) -> bool {
    running.member_state(dev) == WHOLE
}

#[test]
fn an_array_whose_shards_lost_different_members_starts_again_and_again() {
    let rig = Rig::new();
    rig.split();
    for _ in 0..2 {
        // Nobody is told of what would be one member too many.
        let served = rig.serve();
        assert_eq!(served.states(), [[WHOLE, OUT, WHOLE], [OUT, WHOLE, WHOLE]]);
        assert!(served.running.accepts_writes());
        served.stop();
        rig.each_unit(false);
    }
    let found = lock(&rig.paths(), Force::Never, Incomplete::Refuse).unwrap().found;
    assert_eq!(found.stale, Vec::<PathBuf>::new());
    let status = of_superblocks(&found, Source::Stopped, 0);
    assert_eq!(status.state.shown().to_lowercase(), "degraded");
    // One of them more is one too many for a shard, whichever.
    for gone in ["a", "b"] {
        let left: Vec<PathBuf> = rig.paths().into_iter().filter(|path| *path != rig.path(gone)).collect();
        assert!(lock(&left, Force::Never, Incomplete::Accept).is_err());
    }
}

#[test]
fn a_place_has_one_device_and_one_that_was_replaced_is_not_used_by_any_shard() {
    let rig = Rig::new();
    let before = rig.path("before");
    let mut served = rig.serve();
    let manner = (Consent::Given, Manner::FailFirst);
    std::fs::copy(rig.path("b"), &before).unwrap();
    std::fs::File::create(rig.path("new")).unwrap().set_len(FILE_BYTES).unwrap();
    served.operator.replace(&mut served.running, B, &rig.path("new"), Caution::Careful, manner).unwrap();
    served.until("the new one is whole", |running, events| {
        is_whole(running, B) && events.contains(&Event::Rebuilt(B))
    });
    served.stop();
    std::fs::rename(rig.path("new"), rig.path("b")).unwrap();
    // The first shard gives the new one up: the second one has it, and not the one before.
    let Served { mut running, .. } = rig.serve();
    running.engine_mut(0).fail_device(B);
    running.engine_mut(1).fail_device(A);
    while running.engines().any(|engine| engine.is_publishing()) {
        running.drive();
    }
    running.stop().unwrap();
    let all = [rig.paths(), vec![before.clone()]].concat();
    let found = lock(&all, Force::Never, Incomplete::Refuse).unwrap().found;
    assert_eq!(found.stale, [before]);
    assert_eq!(found.paths, rig.paths().into_iter().map(Some).collect::<Vec<_>>());
    rig.each_unit(false);
}

/// One of the members comes back to the shard that gave it up, then the other one to both.
fn comes_back((first, shard, name): (DevIndex, usize, &str), (second, other): (DevIndex, &str)) {
    let rig = Rig::new();
    rig.split();
    let mut served = rig.serve();
    served.until("failed members are let go", |running, _| !running.has_open(shard, first));
    // Another device than the one that is in service is none.
    std::fs::copy(rig.path(name), rig.path("copy")).unwrap();
    let online = |served: &mut Served, dev, name| {
        served.operator.online(&mut served.running, dev, Some(rig.path(name)), false)
    };
    assert!(online(&mut served, first, "copy").is_err());
    online(&mut served, first, name).unwrap();
    served.until("it is whole", |running, _| is_whole(running, first));
    assert!(served.running.has_open(0, first) && served.running.has_open(1, first));
    // The shard bears the loss of another again, and is told of the one that the other shard has lost.
    served.until("the other one is given up by both", |running, _| running.is_failed_everywhere(second));
    assert!(served.running.accepts_writes());
    let is_let_go = |running: &Running| !running.has_open(0, second) && !running.has_open(1, second);
    served.until("it is let go", |running, _| is_let_go(running));
    served.take_back(second, &rig.path(other), false);
    served.until("all is whole", |running, _| running.missing_count() == 0);
    served.stop();
    rig.each_unit(false);
}

#[test]
fn a_member_comes_back_to_one_shard_while_others_work_on_it() {
    comes_back((A, 1, "a"), (B, "b"));
    comes_back((B, 0, "b"), (A, "a"));
}

#[test]
fn a_spare_takes_the_place_of_a_member_that_one_shard_lost_while_another_was_rebuilt() {
    let rig = Rig::new();
    rig.split();
    let mut served = rig.serve();
    create_file(&rig.path("spare"), FILE_BYTES, Existing::Refuse).unwrap();
    served.operator.add_spare(&mut served.running, &rig.path("spare"), Caution::Careful).unwrap();
    served.until("failed members are let go", |running, _| !running.has_open(1, A));
    assert_eq!(served.states(), [[WHOLE, OUT, WHOLE], [OUT, WHOLE, WHOLE]]);
    served.operator.online(&mut served.running, A, Some(rig.path("a")), true).unwrap();
    served.until("the spare is in its place", |running, events| {
        running.missing_count() == 0 && events.contains(&Event::Rebuilt(B))
    });
    assert_eq!(served.operator.paths()[1], Some(rig.path("spare")));
    served.stop();
    std::fs::rename(rig.path("spare"), rig.path("b")).unwrap();
    rig.each_unit(false);
}

#[test]
fn a_scrub_that_is_paused_does_not_hold_up_a_successor() {
    let rig = Rig::new();
    let mut served = rig.serve();
    served.running.set_rebuild_rate(Some(1));
    Operator::scrub(&mut served.running).unwrap();
    Operator::steer(&mut served.running, Steering::Pause).unwrap();
    served.running.set_rebuild_rate(None);
    create_file(&rig.path("new"), FILE_BYTES, Existing::Refuse).unwrap();
    let manner = (Consent::Asked, Manner::InService);
    let succeeds =
        served.operator.replace(&mut served.running, B, &rig.path("new"), Caution::Careful, manner).unwrap();
    assert!(succeeds);
    served.until("it has succeeded", |_, events| {
        events.iter().any(|event| matches!(event, Event::Succeeded { .. }))
    });
    assert!(served.running.engines().all(|engine| engine.is_scrub_paused()));
    served.stop();
    std::fs::rename(rig.path("new"), rig.path("b")).unwrap();
    rig.each_unit(false);
}

/// The place of one that only the second shard has open is watched, too.
#[test]
fn a_member_that_only_another_shard_has_open_is_missed_when_its_path_leads_elsewhere() {
    let rig = Rig::new();
    rig.split();
    let mut served = rig.serve();
    served
        .until("failed members are let go", |running, _| !running.has_open(0, B) && !running.has_open(1, A));
    Operator::scrub(&mut served.running).unwrap();
    served.until("a round over the metadata has begun", |running, _| {
        running.engines().any(|engine| engine.patrol_rounds().0 > 0)
    });
    for (name, dev) in [("a", A), ("b", B)] {
        std::fs::rename(rig.path(name), rig.path("elsewhere")).unwrap();
        File::create(rig.path(name)).unwrap();
        let (mut watch, mut events) = (Watch::default(), Vec::new());
        let begun = std::time::Instant::now();
        // Somebody has to go and see.
        while events.is_empty() && begun.elapsed().as_secs() < 60 {
            // Its shard does not bear to lose another one.
            assert_eq!(watch.look(&mut served.running, &mut events), []);
        }
        let is_of =
            |event: &Event| matches!(event, Event::Unfit { dev: of, failed: false, .. } if *of == dev);
        assert!(events.len() == 1 && is_of(&events[0]), "{name}: {events:?}");
        std::fs::rename(rig.path("elsewhere"), rig.path(name)).unwrap();
    }
    served.stop();
}

/// Both superblocks of B in a slice.
type Superblocks = [[u8; 4096]; 2];

impl Rig {
    /// Members as they are now: what a power cut leaves.
    fn cut(&self) -> Self {
        let directory = tempfile::tempdir().unwrap();
        for path in self.paths() {
            std::fs::copy(&path, directory.path().join(path.file_name().unwrap())).unwrap();
        }
        Self { directory }
    }

    fn superblocks_of_b(&self, origin: u64) -> Superblocks {
        let file = File::open(self.path("b")).unwrap();
        SUPERBLOCK_OFFSETS.map(|offset| {
            let mut block = [0; 4096];
            file.read_exact_at(&mut block, origin + offset).unwrap();
            block
        })
    }

    fn put_superblocks_of_b(&self, origin: u64, blocks: &Superblocks) {
        let file = File::options().write(true).open(self.path("b")).unwrap();
        for (offset, block) in SUPERBLOCK_OFFSETS.iter().zip(blocks) {
            file.write_all_at(block, origin + offset).unwrap();
        }
    }
}

/// Power fails when the first shard has told the others that a member is back, but not that itself: it is an
/// older state of the member, and no damage.
#[test]
fn a_power_cut_while_a_member_returns_to_the_first_shard_leaves_it_out_there() {
    let rig = Rig::new();
    let mut served = rig.serve();
    served.running.fail_device(B);
    served.until("it is let go", |running, _| !running.has_open(0, B) && !running.has_open(1, B));
    let before = rig.superblocks_of_b(0);
    served.running.set_rebuild_rate(Some(1));
    served.take_back(B, &rig.path("b"), false);
    served.until("all shards have told that it is back", |running, _| {
        let is_back = |engine: &array::Engine| engine.health().is_rebuilding(B) && !engine.is_publishing();
        running.engines().all(is_back)
    });
    let cut = rig.cut();
    served.stop();
    let second = cut.assemble().unwrap().found.shapes()[1].slice_origin(B);
    cut.put_superblocks_of_b(0, &before);
    let mut served = cut.serve();
    assert_eq!(served.running.engine(0).health().state(B), OUT);
    served.until("all shards do without it", |running, _| running.is_failed_everywhere(B));
    served.until("it is let go", |running, _| !running.has_open(0, B) && !running.has_open(1, B));
    served.take_back(B, &cut.path("b"), true);
    served.until("it is whole", |running, _| is_whole(running, B));
    served.stop();
    cut.each_unit(false);
    // Superblocks that are damaged are another thing.
    cut.put_superblocks_of_b(second, &[[0; 4096]; 2]);
    let damaged = lock(&cut.paths(), Force::Never, Incomplete::Refuse).map(drop);
    assert!(matches!(damaged, Err(Error::NoSlice { index: 1, .. })), "{damaged:?}");
}
