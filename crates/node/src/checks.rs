//! What must hold before a member is failed, replaced or added: the same checks on a running array and,
//! before a command assembles one for itself, on what its superblocks say, so that a refusal changes
//! nothing.

use crate::error::Error;
use crate::open::{Candidate, Found, array_name, look_at, member_name};
use crate::refusal::Refusal;
use crate::running::Running;
use crate::units::show_size;
use array::went_on_apart;
use block::{DevIndex, Epoch};
use format::{ArrayConfig, ArrayUuid, MemberEntry, MemberState, Role, Superblock};
use std::path::{Path, PathBuf};

/// Whether safety checks may be overridden.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Caution {
    /// Refuse what may lose data.
    Careful,
    /// The operator insists.
    Forced,
}

impl Caution {
    /// From a `--force` flag.
    pub fn of_flag(force: bool) -> Self {
        if force { Self::Forced } else { Self::Careful }
    }

    /// Whether the operator insists.
    pub fn is_forced(self) -> bool {
        self == Self::Forced
    }
}

/// Whether the operator agrees that the array goes without redundancy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Consent {
    /// Not said; it must be asked for.
    Asked,
    /// Yes.
    Given,
}

impl Consent {
    /// From a `--yes` flag.
    pub fn of_flag(yes: bool) -> Self {
        if yes { Self::Given } else { Self::Asked }
    }

    /// Whether the operator agrees.
    pub fn is_given(self) -> bool {
        self == Self::Given
    }
}

/// What becomes of a member that works when another device is to take its place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Manner {
    /// It stays in service until the other one holds the same.
    InService,
    /// It is failed, and the other one rebuilt from the rest.
    FailFirst,
}

impl Manner {
    /// From a `--fail-first` flag.
    pub fn of_flag(fail_first: bool) -> Self {
        if fail_first { Self::FailFirst } else { Self::InService }
    }
}

/// What a spare is too small for.
pub struct Shortage {
    /// For every place.
    pub is_total: bool,
    /// With the sizes.
    pub why: String,
}

/// An array as the checks see it.
pub struct View {
    /// Of the largest shard: some may have grown, and others not yet.
    config: ArrayConfig,
    array: ArrayUuid,
    states: Vec<MemberState>,
    serials: Vec<u32>,
    /// The assembly that the array is in, and who is who to its first shard.
    assembly: (Epoch, u64),
    entries: Vec<MemberEntry>,
    /// In which assembly each member left that is away, as far as that is known.
    left: Vec<Option<(Epoch, u64)>>,
    /// Where the members are.
    paths: Vec<Option<PathBuf>>,
    /// Members in service whose path was not given: the array is started without them.
    unnamed: Vec<DevIndex>,
    accepts_writes: bool,
}

impl View {
    /// A running array whose members are, or were, at `paths`.
    pub fn of_running(running: &Running, paths: &[Option<PathBuf>]) -> Self {
        let engine = running.lead();
        let shapes = running.engines().map(|engine| &engine.store().config);
        Self {
            config: ArrayConfig::largest_of(shapes).unwrap_or(engine.store().config),
            array: engine.journal().array(),
            states: running.members().map(|dev| running.member_state(dev)).collect(),
            serials: engine.health().members().iter().map(|member| member.serial).collect(),
            assembly: (engine.journal().epoch(), engine.journal().nonce()),
            entries: engine.health().entries(),
            left: running.members().map(|dev| engine.left_in(dev)).collect(),
            paths: paths.to_vec(),
            unnamed: Vec::new(),
            accepts_writes: running.accepts_writes(),
        }
    }

    /// An array that is not running.
    pub fn of_found(found: &Found) -> Self {
        let superblock = found.superblock();
        Self {
            config: ArrayConfig::largest_of(found.shapes().iter()).unwrap_or(superblock.config),
            array: superblock.array,
            states: (0..found.paths.len()).map(|index| found.member_state(index)).collect(),
            serials: found.arrangement.members.iter().map(|entry| entry.serial).collect(),
            assembly: (superblock.epoch, superblock.nonce),
            entries: superblock.members.clone(),
            left: vec![None; found.paths.len()],
            paths: found.paths.clone(),
            unnamed: found.unnamed(),
            accepts_writes: true,
        }
    }

    /// A member's name.
    pub fn name_of(&self, dev: DevIndex) -> String {
        member_name(self.config.geometry.device_count(), dev)
    }

    fn is_in_service(&self, dev: DevIndex) -> bool {
        matches!(self.states[dev.index()], MemberState::Healthy | MemberState::Rebuilding)
    }

    fn members(&self) -> impl Iterator<Item = DevIndex> {
        (0u16..).take(self.states.len()).map(DevIndex::new)
    }

    /// The member that a name (`data3`, `log0`) or a path stands for.
    pub fn find(&self, wanted: &str) -> Result<DevIndex, Refusal> {
        let by_name = self.members().find(|dev| self.name_of(*dev) == wanted);
        let has_path = |dev: &DevIndex| {
            self.paths[dev.index()].as_deref().is_some_and(|path| same_file(path, Path::new(wanted)))
        };
        match (by_name, self.members().find(has_path)) {
            // Files may be called as other members are. The wrong one must not be taken out of service.
            (Some(named), Some(other)) if named != other => Err(Refusal::Ambiguous {
                wanted: wanted.to_owned(),
                named: self.name_of(named),
                other: self.name_of(other),
            }),
            (Some(dev), _) | (None, Some(dev)) => Ok(dev),
            (None, None) => {
                let names = self.members().map(|dev| self.name_of(dev)).collect::<Vec<_>>().join(", ");
                Err(Refusal::Unknown { wanted: wanted.to_owned(), names })
            }
        }
    }

    /// Whether a member may be taken out of service.
    pub fn check_fail(&self, dev: DevIndex, caution: Caution, consent: Consent) -> Result<(), Refusal> {
        if self.unnamed.contains(&dev) {
            return Ok(()); // the array is going to be started without it
        }
        if !self.is_in_service(dev) {
            return Err(Refusal::FailedAlready { name: self.name_of(dev) });
        }
        self.check_tolerated(dev, caution)?;
        if caution == Caution::Forced { Ok(()) } else { self.check_redundancy(dev, consent) }
    }

    /// Whether the device at `path` may take a member's place.
    pub fn check_replace(
        &self,
        dev: DevIndex,
        path: &Path,
        caution: Caution,
        (consent, manner): (Consent, Manner),
    ) -> Result<(), Error> {
        if !self.accepts_writes {
            return Err(Refusal::ArrayFailed.into());
        }
        let candidate = look_at(path)?;
        self.check_unused(&candidate, caution)?;
        let needed = self.place_bytes(dev);
        if candidate.size_bytes < needed {
            return Err(too_small(path, candidate.size_bytes, needed).into());
        }
        if manner == Manner::InService && self.works(dev) {
            return Ok(());
        }
        self.check_tolerated(dev, Caution::Careful)?;
        Ok(self.check_redundancy(dev, consent)?)
    }

    /// Whether a member is whole and in service.
    pub fn works(&self, dev: DevIndex) -> bool {
        self.states[dev.index()] == MemberState::Healthy && !self.unnamed.contains(&dev)
    }

    /// That a member is not in service.
    pub fn check_away(&self, dev: DevIndex) -> Result<(), Refusal> {
        if !self.is_in_service(dev) || self.unnamed.contains(&dev) {
            return Ok(());
        }
        let path = self.paths[dev.index()].as_ref();
        let at = path.map(|path| format!(" at {}", path.display())).unwrap_or_default();
        Err(Refusal::NotAway { name: self.name_of(dev), at })
    }

    /// Whether the device at `path` is that of a member that left; its superblock in each shard's slice,
    /// those that can be read.
    pub fn check_online(&self, dev: DevIndex, path: &Path) -> Result<Vec<Superblock>, Error> {
        if !self.accepts_writes {
            return Err(Refusal::ArrayFailed.into());
        }
        self.check_away(dev)?;
        let name = self.name_of(dev);
        let candidate = look_at(path)?;
        let is_blank = !candidate.looks_like_member && candidate.signature.is_none();
        if candidate.superblock().is_none() && is_blank && candidate.size_bytes >= self.place_bytes(dev) {
            let found =
                "it holds no superblock of any array; `replace` puts it there as a new device".to_owned();
            return Err(Refusal::NotItsDevice { path: path.to_owned(), name, found }.into());
        }
        let superblock = candidate.require_superblock()?;
        let found = match () {
            () if superblock.array != self.array => Some(format!("it belongs to {}", array_name(superblock))),
            () if superblock.role == Role::Spare => Some("it is a spare".to_owned()),
            () if superblock.dev != dev => Some(format!("it is, or was, {}", self.name_of(superblock.dev))),
            () => None,
        };
        if let Some(found) = found {
            return Err(Refusal::NotItsDevice { path: path.to_owned(), name, found }.into());
        }
        let needed = self.place_bytes(dev);
        if candidate.size_bytes < needed {
            return Err(too_small(path, candidate.size_bytes, needed).into());
        }
        let first = superblock.clone();
        Ok([vec![first], candidate.others].concat())
    }

    /// That nobody knows where a member's device is.
    pub fn no_path(&self, name: &str) -> Refusal {
        Refusal::NoPath { name: name.to_owned() }
    }

    /// Whether a device may become a spare; whether it is one already.
    pub fn check_spare(&self, candidate: &Candidate, caution: Caution) -> Result<bool, Refusal> {
        let already = candidate.superblock().is_some_and(|s| s.array == self.array && s.role == Role::Spare);
        if !already {
            self.check_unused(candidate, caution)?;
        }
        let least = self.smallest_place();
        if candidate.size_bytes < least {
            return Err(too_small(&candidate.path, candidate.size_bytes, least));
        }
        Ok(already)
    }

    /// A member that works is not taken out without a question if nothing else may fail then.
    fn check_redundancy(&self, dev: DevIndex, consent: Consent) -> Result<(), Refusal> {
        let works = self.works(dev);
        let left = self.config.geometry.parity_count().saturating_sub(self.missing_beside(dev).len() + 1);
        if !works || left > 0 || consent.is_given() {
            return Ok(());
        }
        Err(Refusal::LastRedundancy { name: self.name_of(dev) })
    }

    /// Members but `dev` that are not whole.
    fn missing_beside(&self, dev: DevIndex) -> Vec<String> {
        let others = self.members().filter(|&other| other != dev);
        let missing = others.filter(|other| self.states[other.index()] != MemberState::Healthy);
        missing.map(|other| self.name_of(other)).collect()
    }

    /// Another loss must be within what the code can make up for.
    fn check_tolerated(&self, dev: DevIndex, caution: Caution) -> Result<(), Refusal> {
        let missing = self.missing_beside(dev);
        let tolerated = self.config.geometry.parity_count();
        if missing.len() < tolerated || caution == Caution::Forced || !self.is_in_service(dev) {
            return Ok(());
        }
        let missing = match missing.as_slice() {
            [one] => format!("{one} is"),
            several => format!("{} are", several.join(" and ")),
        };
        Err(Refusal::CannotBeSpared { name: self.name_of(dev), missing, tolerated })
    }

    /// Refuses a device that works for an array or holds somebody's content. A former member of this array
    /// is welcome back.
    fn check_unused(&self, candidate: &Candidate, caution: Caution) -> Result<(), Refusal> {
        let path = candidate.path.clone();
        for dev in self.members().filter(|&dev| self.is_in_service(dev)) {
            if self.paths[dev.index()].as_deref().is_some_and(|own| share_bytes(own, &candidate.path)) {
                return Err(Refusal::OwnMember { path, name: self.name_of(dev) });
            }
        }
        if caution == Caution::Forced {
            return Ok(());
        }
        if let Some(superblock) = candidate.superblock().filter(|superblock| superblock.array != self.array) {
            return Err(Refusal::OthersMember { path, array: array_name(superblock) });
        }
        if let Some(dev) = candidate.superblock().and_then(|superblock| self.copied(superblock)) {
            return Err(Refusal::CopyOfMember { path, name: self.name_of(dev) });
        }
        let is_member = |superblock: &&Superblock| superblock.role != Role::Spare;
        if candidate.last_served().filter(is_member).is_some_and(|superblock| self.is_apart(superblock)) {
            return Err(Refusal::Diverged { path });
        }
        match candidate.signature {
            Some(signature) => Err(Refusal::Foreign { path, signature }),
            None => Ok(()),
        }
    }

    /// The member that another device holds the place of although this superblock says that its own device
    /// does.
    fn copied(&self, superblock: &Superblock) -> Option<DevIndex> {
        let dev = superblock.dev;
        let is_place = superblock.role != Role::Spare && dev.index() < self.states.len();
        let is_held = is_place && self.is_in_service(dev) && !self.unnamed.contains(&dev);
        (is_held && self.serials[dev.index()] == superblock.serial).then_some(dev)
    }

    /// Whether a device was in service in another course of this array.
    fn is_apart(&self, superblock: &Superblock) -> bool {
        let left = self.left.get(superblock.dev.index()).copied().flatten();
        went_on_apart(superblock, self.assembly, &self.entries, left)
    }

    /// Bytes that the holder of a place needs.
    pub fn place_bytes(&self, dev: DevIndex) -> u64 {
        let main = dev.index() < self.config.geometry.device_count();
        if main { self.config.whole_main_bytes() } else { self.config.whole_log_bytes() }
    }

    /// Places for which a device of so many bytes is too small, if there are any.
    pub fn shortage(&self, bytes: u64) -> Option<Shortage> {
        let main = (self.config.whole_main_bytes(), "data");
        let log = (self.config.log_count > 0).then(|| (self.config.whole_log_bytes(), "log"));
        let places = || [main].into_iter().chain(log);
        let lacking = || places().filter(|(needed, _)| bytes < *needed);
        let needs: Vec<String> =
            lacking().map(|(needed, kind)| format!("a {kind} device needs {}", show_size(needed))).collect();
        let why = || format!("it has {}, and {}", show_size(bytes), needs.join(" and "));
        (!needs.is_empty()).then(|| Shortage { is_total: needs.len() == places().count(), why: why() })
    }

    fn smallest_place(&self) -> u64 {
        let main = self.config.whole_main_bytes();
        if self.config.log_count > 0 { main.min(self.config.whole_log_bytes()) } else { main }
    }
}

fn too_small(path: &Path, found_bytes: u64, needed_bytes: u64) -> Refusal {
    Refusal::TooSmall { path: path.to_owned(), found_bytes, needed_bytes }
}

/// Whether two paths lead to one file.
pub fn same_file(one: &Path, other: &Path) -> bool {
    // The second first: what a user names is often no path at all, and looking at the path of a member that
    // does not answer may take for ever.
    one == other || other.canonicalize().is_ok_and(|b| one.canonicalize().is_ok_and(|a| a == b))
}

/// Whether they lead to the same bytes, at least in part: a loop device lies on a file, a partition on a
/// disk.
pub fn share_bytes(one: &Path, other: &Path) -> bool {
    same_file(one, other) || device::share_bytes(other, one).unwrap_or(false)
}
