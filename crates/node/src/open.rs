//! From paths to members: reads the superblocks, finds out which device is which, opens and locks them.

mod arranged;

pub use arranged::{arrange_any_candidates, arrange_candidates};

use crate::error::{Error, NoMember, Truncation};
use crate::output;
use crate::run_dir::was_killed;
use array::{Arrangement, DirtyDegraded, OlderState, last_served};
use block::{DevIndex, META_BYTES};
use device::{Access, DirectIo, Kind, Members, OpenError, OpenOptions, probe};
use format::{
    ArrayConfig, ArrayUuid, FormatError, MemberState, Role, SUPERBLOCK_OFFSETS, Superblock, looks_like_member,
};
use std::fs::{File, TryLockError};
use std::os::unix::fs::FileExt;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

/// How long the locks of a process that was killed are waited for by who wants them: the kernel takes its
/// rings down in threads of its own, which on a machine that has much else to do takes seconds.
const OPEN_PATIENCE: Duration = Duration::from_secs(4);
/// The same where it is known that the array's server was killed.
const KILLED_PATIENCE: Duration = Duration::from_secs(30);
/// The same for who only looks.
const LOCK_PATIENCE: Duration = Duration::from_secs(1);
/// How often they are tried meanwhile.
const LOCK_RETRY: Duration = Duration::from_millis(10);
/// A device that has not answered for so long is named.
const LATE: Duration = Duration::from_secs(10);
/// After so long it counts as one that cannot be read.
const GIVEN_UP: Duration = Duration::from_secs(30);

/// What is known of one path.
#[derive(Debug)]
pub struct Candidate {
    /// The path as given.
    pub path: PathBuf,
    /// Size of the device.
    pub size_bytes: u64,
    /// What each copy of the superblock decoded to.
    pub copies: [Result<Superblock, FormatError>; 2],
    /// Whether a block begins like a superblock, intact or not.
    pub looks_like_member: bool,
    /// Somebody else's content ("ext4", ...).
    pub signature: Option<&'static str>,
    /// The superblocks of the other shards that it has a slice of, in order, those that can be read.
    pub others: Vec<Superblock>,
}

impl Candidate {
    /// The copy that counts.
    pub fn superblock(&self) -> Option<&Superblock> {
        Superblock::newest(self.copies.iter().flatten())
    }

    /// The copy by which the device was in service last.
    pub fn last_served(&self) -> Option<&Superblock> {
        last_served(self.copies.iter().flatten())
    }

    /// The superblock, or a line that says what is there instead.
    pub fn require_superblock(&self) -> Result<&Superblock, Error> {
        self.superblock().ok_or_else(|| self.why_no_member().into())
    }

    /// Why no copy of the superblock could be read, if one is of a version of the format that there was.
    /// Other numbers are damage.
    pub fn other_version(&self) -> Option<&FormatError> {
        let is_older = |error: &&FormatError| matches!(error, FormatError::Version { found, expected, .. } if (1..*expected).contains(found));
        let errors = self.copies.iter().filter_map(|copy| copy.as_ref().err());
        errors.filter(|_| self.superblock().is_none()).find(is_older)
    }

    fn why_no_member(&self) -> NoMember {
        let (path, found_bytes) = (self.path.clone(), self.size_bytes);
        let least_bytes = SUPERBLOCK_OFFSETS[1] + META_BYTES as u64;
        if found_bytes < least_bytes {
            return NoMember::TooSmall { path, found_bytes, least_bytes };
        }
        if let Some(FormatError::Version { found, expected, .. }) = self.other_version() {
            return NoMember::OtherVersion { path, found: *found, expected: *expected };
        }
        if let (true, Err(source)) = (self.looks_like_member, &self.copies[0]) {
            return NoMember::Damaged { path, source: source.clone() };
        }
        match self.signature {
            Some(found) => NoMember::Foreign { path, found },
            None => NoMember::NoSuperblock { path },
        }
    }
}

impl Candidate {
    /// The name of the member that it is, and the size that its layout needs.
    fn layout(&self) -> Option<(String, u64)> {
        let superblock = self.require_superblock().ok()?;
        // Some shards may have grown, and others not yet.
        let shapes = std::iter::once(superblock).chain(&self.others).map(|shard| &shard.config);
        let config = ArrayConfig::largest_of(shapes)?;
        let needed = match superblock.role {
            Role::Main => config.whole_main_bytes(),
            Role::Log => config.whole_log_bytes(),
            Role::Spare => return None,
        };
        Some((member_name(config.geometry.device_count(), superblock.dev), needed))
    }

    /// What is wrong with a member that lost its end.
    pub fn truncation(&self) -> Option<Truncation> {
        let (name, needed_bytes) = self.layout()?;
        let found_bytes = self.size_bytes;
        let truncation = || Truncation { path: self.path.clone(), name, found_bytes, needed_bytes };
        (found_bytes < needed_bytes).then(truncation)
    }
}

/// Reads what a path holds, without a lock and without changing it. A device that hangs is named, and waited
/// for no longer than a request to a member would be.
pub fn look_at(path: &Path) -> Result<Candidate, Error> {
    let (tell, told) = mpsc::channel();
    let own = path.to_owned();
    let looker = thread::Builder::new().name("look".into()).spawn(move || {
        // Nobody may be left to be told.
        let _ = tell.send(look(&own));
    });
    // Without a thread it is waited for as long as it takes.
    let Ok(looker) = looker else { return look(path) };
    let mut found = told.recv_timeout(LATE);
    if matches!(found, Err(RecvTimeoutError::Timeout)) {
        let (path, seconds) = (path.display(), LATE.as_secs());
        output::warn(format_args!(
            "elastripe: {path}: has not answered for {seconds} s, and is waited for still"
        ));
        found = told.recv_timeout(GIVEN_UP - LATE);
    }
    match found {
        Ok(found) => found,
        Err(RecvTimeoutError::Timeout) => {
            Err(Error::Silent { path: path.to_owned(), seconds: GIVEN_UP.as_secs() })
        }
        Err(RecvTimeoutError::Disconnected) => {
            resume_unwind(looker.join().expect_err("whoever does not tell what he found has panicked"))
        }
    }
}

fn look(path: &Path) -> Result<Candidate, Error> {
    let probe = probe(path)?;
    let file = File::open(path).map_err(|source| Error::At { path: path.to_owned(), source })?;
    let (copies, looks_like) = read_copies(&file, 0, 0);
    let newest = Superblock::newest(copies.iter().flatten());
    let others = newest.map_or_else(Vec::new, |superblock| other_shards(&file, superblock));
    Ok(Candidate {
        path: path.to_owned(),
        size_bytes: probe.size_bytes,
        copies,
        looks_like_member: looks_like,
        signature: probe.signature,
        others,
    })
}

/// The same of the slice that another shard of the array has of a member.
pub fn look_at_slice(path: &Path, index: u16) -> Result<Candidate, Error> {
    let whole = look_at(path)?;
    let first = whole.require_superblock()?;
    let count = first.config.shard.count;
    if index >= count {
        return Err(Error::NoSuchShard { path: path.to_owned(), index, count });
    }
    let file = File::open(path).map_err(|source| Error::At { path: path.to_owned(), source })?;
    let origin = first.config.sibling(index).slice_origin(first.dev);
    let (copies, looks_like_member) = read_copies(&file, origin, index);
    Ok(Candidate { copies, looks_like_member, others: Vec::new(), ..whole })
}

/// Both copies of a superblock of a shard, and whether anything there looks like one. What a device led
/// astray from another shard's slice is none.
fn read_copies(file: &File, origin: u64, shard: u16) -> ([Result<Superblock, FormatError>; 2], bool) {
    let mut looks_like = false;
    let copies = [0, 1].map(|slot| {
        let mut bytes = [0u8; META_BYTES];
        // What cannot be read stays zero, which no decoder accepts.
        if file.read_exact_at(&mut bytes, origin + SUPERBLOCK_OFFSETS[slot]).is_err() {
            bytes.fill(0);
        }
        looks_like |= looks_like_member(&bytes);
        let superblock = Superblock::decode(&bytes, slot)?;
        let (found, expected) = (superblock.config.shard.index.into(), shard.into());
        if found == expected {
            return Ok(superblock);
        }
        Err(FormatError::Misplaced { what: "shard of the superblock", found, expected })
    });
    (copies, looks_like)
}

/// The superblocks of the shards but the first on a member. What is not of this array, this member and the
/// slice where it lies is none.
fn other_shards(file: &File, first: &Superblock) -> Vec<Superblock> {
    let read = |index: u16| {
        let config = first.config.sibling(index);
        let found = Superblock::read_newest_of(first.array.of_shard(index), |offset| {
            let mut bytes = [0u8; META_BYTES];
            let at = config.slice_origin(first.dev) + offset;
            file.read_exact_at(&mut bytes, at).ok().map(|()| bytes)
        })?;
        let fits = found.config.shard == config.shard && found.dev == first.dev;
        fits.then_some(found)
    };
    match first.role {
        Role::Main | Role::Log => (1..first.config.shard.count).filter_map(read).collect(),
        Role::Spare => Vec::new(),
    }
}

/// A device that waits to take a failed member's place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Spare {
    /// Where it is.
    pub path: PathBuf,
    /// Its size.
    pub size_bytes: u64,
}

/// The given paths as members of one array.
#[derive(Debug)]
pub struct Found {
    /// Which device is which, to the first shard, by which arrays are known.
    pub arrangement: Arrangement,
    /// The same to the other shards, in order. A shard may have another opinion of who is in service: power
    /// may have failed before all of them knew, or they cannot do without what others gave up.
    pub others: Vec<Arrangement>,
    /// The members' paths, in order, of devices that any shard has in service; `None` is absent.
    pub paths: Vec<Option<PathBuf>>,
    /// Devices that are members no more to any shard: replaced, or failed while the array went on.
    pub stale: Vec<PathBuf>,
    /// Devices that were in service in another course of the array.
    pub diverged: Vec<PathBuf>,
    /// Spares of the array among the given paths.
    pub spares: Vec<Spare>,
}

impl Found {
    /// The newest superblock.
    pub fn superblock(&self) -> &Superblock {
        &self.arrangement.newest
    }

    /// Whether the device of a superblock is a member's that is out of service, and no other device has taken
    /// its place meanwhile: it may come back.
    pub fn is_away(&self, superblock: &Superblock) -> bool {
        let index = superblock.dev.index();
        let has_place =
            self.arrangement.members.get(index).map(|place| place.serial) == Some(superblock.serial);
        let is_nowhere = self.paths.get(index).is_some_and(Option::is_none);
        superblock.role != Role::Spare && has_place && is_nowhere
    }

    /// How each shard sees its members.
    pub fn arrangements(&self) -> impl Iterator<Item = &Arrangement> {
        std::iter::once(&self.arrangement).chain(&self.others)
    }

    /// These devices lost their ends. If members are away on them, nobody knows any more what those lack.
    fn note_maimed(&mut self, truncated: &[Candidate]) {
        let superblocks = truncated.iter().filter_map(Candidate::superblock);
        let own = superblocks.filter(|found| found.array == self.superblock().array && self.is_away(found));
        let maimed: Vec<DevIndex> = own.map(|superblock| superblock.dev).collect();
        self.arrangements_mut().for_each(|arrangement| arrangement.maimed.clone_from(&maimed));
    }

    /// The shapes of its shards, in order.
    pub fn shapes(&self) -> Vec<ArrayConfig> {
        self.arrangements().map(|shard| shard.newest.config).collect()
    }

    fn arrangements_mut(&mut self) -> impl Iterator<Item = &mut Arrangement> {
        std::iter::once(&mut self.arrangement).chain(&mut self.others)
    }

    /// How a member is: out of service if any shard does without it, being rebuilt if any does that.
    pub fn member_state(&self, index: usize) -> MemberState {
        worst(self.arrangements().map(|arrangement| arrangement.members[index].state))
    }

    /// Every path in use: members, then spares.
    pub fn all_paths(&self) -> Vec<&Path> {
        let members = self.paths.iter().flatten();
        members.chain(self.spares.iter().map(|spare| &spare.path)).map(PathBuf::as_path).collect()
    }

    /// Members that are there, but whose slices of a shard, which should have them in service, are not.
    fn lacking_slices(&self) -> impl Iterator<Item = Lack> {
        self.arrangements().flat_map(|shard| {
            let entries = shard.newest.members.iter().zip(&shard.places).zip(&self.paths);
            let lacks = (0u16..).zip(entries).filter(|(_, ((entry, place), path))| {
                in_service(entry.state) && place.is_none() && path.is_some()
            });
            lacks.map(|(dev, ((entry, _), _))| {
                let device = self.arrangements().find_map(|shard| *shard.places.get(usize::from(dev))?);
                let is_stale = device.is_some_and(|device| shard.stale.contains(&device));
                let was_coming_back = is_stale && entry.state == MemberState::Rebuilding;
                let shard = shard.newest.config.shard.index;
                Lack { dev: DevIndex::new(dev), shard, was_coming_back }
            })
        })
    }

    /// Members that were in service when the array was last heard of, but are not among the given paths.
    pub fn unnamed(&self) -> Vec<DevIndex> {
        let expected = self.superblock().members.iter().zip(&self.paths);
        let missing =
            (0u16..).zip(expected).filter(|(_, (entry, path))| path.is_none() && in_service(entry.state));
        missing.map(|(index, _)| DevIndex::new(index)).collect()
    }
}

/// A member that is there lacks its slice of a shard, which should have it in service.
struct Lack {
    dev: DevIndex,
    shard: u16,
    /// It is there in an older state: the others were told that it is back, and power failed before it was.
    /// Else its superblocks are damaged.
    was_coming_back: bool,
}

/// Looks at every path and finds out which member it is.
pub fn discover(paths: &[PathBuf]) -> Result<Found, Error> {
    let candidates = paths.iter().map(|path| look_at(path)).collect::<Result<Vec<_>, _>>()?;
    arrange_candidates(&candidates)
}

/// The same, insisting on every member in service but `dispensable`.
fn discover_all(paths: &[PathBuf], dispensable: Option<&str>) -> Result<Found, Error> {
    let mut candidates = paths.iter().map(|path| look_at(path)).collect::<Result<Vec<_>, _>>()?;
    let is_left_out = |candidate: &mut Candidate| {
        let name = candidate.layout().map(|(name, _)| name);
        candidate.truncation().is_some() && dispensable.is_some() && name.as_deref() == dispensable
    };
    let truncated: Vec<Candidate> = candidates.extract_if(.., is_left_out).collect();
    // What was a member once may be damaged as it likes if nobody misses it.
    let (candidates, damaged): (Vec<_>, Vec<_>) =
        candidates.into_iter().partition(|candidate| candidate.superblock().is_some());
    let why = damaged.iter().map(Candidate::why_no_member).next();
    let mut found = match (arrange_candidates(&candidates), why) {
        (Ok(found), None) => found,
        (Ok(found), Some(why))
            if found.unnamed().is_empty() && damaged.iter().all(|one| one.looks_like_member) =>
        {
            output::warn(format_args!("elastripe: left out: {why}"));
            found
        }
        (Ok(_) | Err(_), Some(why)) => return Err(why.into()),
        (Err(failure), None) => return Err(failure),
    };
    found.note_maimed(&truncated);
    let main_count = found.superblock().config.geometry.device_count();
    for Lack { dev, shard, was_coming_back } in found.lacking_slices() {
        let name = member_name(main_count, dev);
        if was_coming_back {
            output::warn(format_args!(
                "elastripe: {name} was about to come back to shard {shard} when the array was last in service; it \
                 is out of service there (`online --full`)"
            ));
        } else if dispensable != Some(name.as_str()) {
            return Err(Error::NoSlice { name, index: shard });
        }
    }
    let mut missing = found.unnamed().into_iter().map(|dev| (dev, member_name(main_count, dev)));
    let Some((dev, name)) = missing.find(|(_, name)| Some(name.as_str()) != dispensable) else {
        return Ok(found);
    };
    let is_older = |candidate: &&Candidate| {
        candidate.superblock().is_some_and(|superblock| superblock.dev == dev && found.is_away(superblock))
    };
    match candidates.iter().find(is_older) {
        Some(older) => Err(Error::OlderState { name, path: older.path.clone() }),
        None => Err(Error::Unnamed { name }),
    }
}

/// The same, leaving out paths that are no members.
fn discover_some(paths: &[PathBuf]) -> Result<Found, Error> {
    let (mut candidates, mut truncated, mut skipped) = (Vec::new(), Vec::new(), Vec::new());
    for path in paths {
        match look_at(path)
            .and_then(|candidate| candidate.require_superblock().map(|_| ()).map(|()| candidate))
        {
            Ok(candidate) => match candidate.truncation() {
                Some(why) => {
                    skipped.push(Error::Truncated(why));
                    truncated.push(candidate);
                }
                None => candidates.push(candidate),
            },
            Err(failure) => skipped.push(failure),
        }
    }
    if candidates.is_empty() {
        return Err(skipped.pop().unwrap_or(Error::NoneNamed));
    }
    skipped.iter().for_each(|failure| output::warn(format_args!("elastripe: left out: {failure}")));
    let mut found = arrange_candidates(&candidates)?;
    found.note_maimed(&truncated);
    Ok(found)
}

/// What a member is called: `data0`.., `log0`..
pub fn member_name(main_count: usize, dev: DevIndex) -> String {
    if dev.index() < main_count { format!("data{dev}") } else { format!("log{}", dev.index() - main_count) }
}

/// Whether an array is assembled that may hold silently wrong data, or of which newer state is missing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Force {
    /// No.
    Never,
    /// The operator insists.
    Accept,
}

impl Force {
    /// From a `--force` flag.
    pub fn of_flag(force: bool) -> Self {
        if force { Self::Accept } else { Self::Never }
    }
}

/// The members of an array, open and locked; nothing was written to them.
pub struct Locked {
    /// Who is who.
    pub found: Found,
    pub(crate) members: Members,
}

/// What becomes of paths that are no members, and of members in service that are not named. Whatever is
/// left out misses what is written, and must be rebuilt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Incomplete<'a> {
    /// The command ends there.
    Refuse,
    /// The command ends there, unless it is about this member, by name.
    RefuseBut(&'a str),
    /// It is reported, and the array does without it if it can.
    Accept,
}

/// Opens and locks the members at `paths`.
pub fn lock(paths: &[PathBuf], force: Force, incomplete: Incomplete<'_>) -> Result<Locked, Error> {
    lock_as(paths, force, incomplete, Access::Exclusive)
}

/// The same to read alone: whatever is done to the array, not a byte of the members changes.
pub fn lock_to_read(paths: &[PathBuf], force: Force, incomplete: Incomplete<'_>) -> Result<Locked, Error> {
    lock_as(paths, force, incomplete, Access::Sheltered)
}

fn lock_as(
    paths: &[PathBuf],
    force: Force,
    incomplete: Incomplete<'_>,
    access: Access,
) -> Result<Locked, Error> {
    let mut found = discover_for(paths, incomplete)?;
    for arrangement in found.arrangements_mut() {
        (arrangement.dirty_degraded, arrangement.older_state) = match force {
            Force::Never => (DirtyDegraded::Refuse, OlderState::Refuse),
            Force::Accept => (DirtyDegraded::Accept, OlderState::Accept),
        };
    }
    let patience = if was_killed(found.superblock().array) { KILLED_PATIENCE } else { OPEN_PATIENCE };
    let mut members = open_patiently(&found.paths, access, patience).map_err(in_use)?;
    confirm(&mut members, &found)?;
    Ok(Locked { found, members })
}

fn discover_for(paths: &[PathBuf], incomplete: Incomplete<'_>) -> Result<Found, Error> {
    match incomplete {
        Incomplete::Refuse => discover_all(paths, None),
        Incomplete::RefuseBut(name) => discover_all(paths, Some(name)),
        Incomplete::Accept => discover_some(paths),
    }
}

/// Looks anew who is who among members that this process has open, and which are at `paths`.
pub fn look_again(
    paths: &[PathBuf],
    mut members: Members,
    incomplete: Incomplete<'_>,
) -> Result<Locked, Error> {
    let found = discover_for(paths, incomplete)?;
    let open = members.identities();
    for path in found.paths.iter().flatten() {
        if !open.contains(&device::identity(path)?) {
            return Err(Error::LeadsElsewhere { path: path.clone() });
        }
    }
    members.measure();
    confirm(&mut members, &found)?;
    Ok(Locked { found, members })
}

/// Opens and locks members. When a server is killed, the kernel takes a moment to take its ring down, which
/// keeps the locks meanwhile.
fn open_patiently(
    paths: &[Option<PathBuf>],
    access: Access,
    patience: Duration,
) -> Result<Members, OpenError> {
    let started = Instant::now();
    loop {
        match Members::open(paths, open_options(access)) {
            Err(OpenError::InUse { .. }) if started.elapsed() < patience => thread::sleep(LOCK_RETRY),
            result => return result,
        }
    }
}

/// Whether another process has the device open as a member, and keeps it.
pub fn is_locked(candidate: &Candidate) -> bool {
    let Ok(file) = File::open(&candidate.path) else { return false };
    let started = Instant::now();
    while matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)) {
        if started.elapsed() >= LOCK_PATIENCE {
            return true;
        }
        thread::sleep(LOCK_RETRY);
    }
    false
}

fn in_use(error: OpenError) -> Error {
    match error {
        OpenError::InUse { .. } => Error::InUse(error),
        OpenError::Io { .. }
        | OpenError::Duplicate { .. }
        | OpenError::WrongKind { .. }
        | OpenError::LogicalBlock { .. }
        | OpenError::Exists { .. } => Error::Device(error),
    }
}

impl Locked {
    /// The superblock that counts.
    pub fn superblock(&self) -> &Superblock {
        self.found.superblock()
    }

    /// Whether members are files.
    pub fn has_files(&self) -> bool {
        let devs = (0..self.members.count()).filter_map(|index| u16::try_from(index).ok()).map(DevIndex::new);
        devs.filter_map(|dev| self.members.get(dev)).any(|member| member.kind() == Kind::File)
    }
}

/// How members are opened.
pub fn open_options(access: Access) -> OpenOptions {
    OpenOptions { access, direct_io: DirectIo::Prefer }
}

/// An array by name and UUID: `tank (37bb923f-...)`.
pub fn array_name(superblock: &Superblock) -> String {
    match superblock.name.as_str() {
        "" => superblock.array.to_string(),
        name => format!("{name} ({})", superblock.array),
    }
}

/// What an array is called: its name, or its UUID.
pub fn name_of(superblock: &Superblock) -> String {
    if superblock.name.is_empty() { superblock.array.to_string() } else { superblock.name.clone() }
}

/// Under the lock, the superblocks must be those that were looked at before it.
fn confirm(members: &mut Members, found: &Found) -> Result<(), Error> {
    for (index, path) in found.paths.iter().enumerate() {
        let (Some(path), dev) = (path, DevIndex::new(index as u16)) else { continue };
        let expected = &found.arrangement.newest;
        let newest = read_superblock(members, expected.array, dev);
        let is_as_old = |superblock: &Superblock| superblock.update() <= expected.update();
        let same = newest.is_some_and(|superblock| is_as_old(&superblock) && superblock.dev == dev);
        if !same {
            return Err(Error::Changed { path: path.clone() });
        }
    }
    Ok(())
}

/// The newest superblock of the array on an open member.
pub fn read_superblock(members: &mut Members, array: ArrayUuid, dev: DevIndex) -> Option<Superblock> {
    Superblock::read_newest_of(array, |offset| {
        let mut bytes = [0u8; META_BYTES];
        members.read_now(dev, offset, &mut bytes).ok().map(|()| bytes)
    })
}

/// The state that says most against a member.
pub fn worst(states: impl Iterator<Item = MemberState>) -> MemberState {
    let rank = |state: &MemberState| match state {
        MemberState::Healthy => 0,
        MemberState::Rebuilding => 1,
        MemberState::Absent => 2,
        MemberState::Failed => 3,
    };
    states.max_by_key(rank).expect("an array has a shard")
}

/// Whether the array counts on a member in this state.
pub fn in_service(state: MemberState) -> bool {
    match state {
        MemberState::Healthy | MemberState::Rebuilding => true,
        MemberState::Failed | MemberState::Absent => false,
    }
}

/// What a member's state is called.
pub fn state_name(state: MemberState) -> &'static str {
    match state {
        MemberState::Healthy => "healthy",
        MemberState::Failed => "failed",
        MemberState::Absent => "absent",
        MemberState::Rebuilding => "rebuilding",
    }
}
