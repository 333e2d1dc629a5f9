//! Makes a device forget that it is a member or a spare.

use crate::checks::{Caution, Consent, same_file};
use crate::describe::role_of;
use crate::error::Error;
use crate::made::directory_of;
use crate::open::{Candidate, Found, arrange_any_candidates, array_name, look_at, open_options};
use crate::refusal::Refusal;
use crate::registry::records;
use crate::scan::look_around;
use block::{DevIndex, META_BYTES};
use device::{Access, Members};
use format::{MemberState, SUPERBLOCK_OFFSETS, Superblock};
use std::path::{Path, PathBuf};

/// What an array is without some devices, as far as those of this machine tell.
struct Without {
    words: String,
    /// It has its data still.
    is_bearable: bool,
}

impl Without {
    fn bearable(words: impl Into<String>) -> Self {
        Self { words: words.into(), is_bearable: true }
    }

    fn risky(words: impl Into<String>) -> Self {
        Self { words: words.into(), is_bearable: false }
    }
}

/// What the array of `superblock`, found at `path`, is without the devices at `wiped`, that one among them.
fn without(path: &Path, superblock: &Superblock, wiped: &[PathBuf]) -> Without {
    let arranged = match arrange_any_candidates(&devices_of(superblock, wiped)) {
        Ok(arranged) => arranged,
        Err(error) => return Without::risky(format!("what its array is without it cannot be told: {error}")),
    };
    if arranged.spares.iter().any(|spare| same_file(&spare.path, path)) {
        return Without::bearable("its array has a spare less then");
    }
    if !arranged.paths.iter().flatten().any(|own| same_file(own, path)) {
        return Without::bearable(if arranged.is_away(superblock) {
            "it is out of service, and what it holds could spare the array a whole rebuild (`online`)"
        } else {
            "another device has its place, so nothing is lost"
        });
    }
    without_members(&arranged, wiped)
}

fn without_members(arranged: &Found, wiped: &[PathBuf]) -> Without {
    let is_wiped = |own: &PathBuf| wiped.iter().any(|path| same_file(own, path));
    let all = 0..arranged.paths.len();
    let stays = |index: &usize| arranged.paths[*index].as_ref().is_some_and(|own| !is_wiped(own));
    let is = |index: &usize, state| arranged.member_state(*index) == state;
    // One that is being rebuilt holds too little to count.
    let whole = all.clone().filter(|index| stays(index) && is(index, MemberState::Healthy)).count();
    let half = all.filter(|index| stays(index) && is(index, MemberState::Rebuilding)).count();
    let (bears, unseen) = (arranged.superblock().config.geometry.parity_count(), arranged.unnamed().len());
    let missing = arranged.paths.len() - whole;
    if missing <= bears {
        let left = bears - missing;
        return Without::bearable(format!(
            "it is in service; the array would bear the loss of {left} more after that"
        ));
    }
    match (whole + half, unseen) {
        (0, 0) => Without::bearable("so are all others that its array has left"),
        (_, 0) => Without::risky(format!(
            "it is in service, and without it {missing} members are missing of an array that bears {bears}: ITS DATA IS LOST"
        )),
        (_, unseen) => Without::risky(format!(
            "it is in service, and {unseen} other members are not found here, so whether the array can do without it is not known"
        )),
    }
}

/// The devices of an array, those at `wiped` among them: beside files, or among all block devices, and where
/// its server, or the last one, says that they are.
fn devices_of(superblock: &Superblock, wiped: &[PathBuf]) -> Vec<Candidate> {
    let mut places: Vec<Vec<PathBuf>> = vec![wiped.to_vec()];
    let files = wiped.iter().filter(|path| path.is_file());
    places.extend(files.map(|path| vec![directory_of(path).to_owned()]));
    let array = superblock.array.to_string();
    places.extend(records().into_iter().filter(|record| record.uuid == array).map(|record| record.paths));
    if wiped.iter().any(|path| !path.is_file()) {
        // Without a place it is all block devices that are looked at.
        places.push(Vec::new());
    }
    let mut found: Vec<Candidate> = Vec::new();
    for sight in places.iter().filter_map(|places| look_around(places).ok()) {
        let own = sight.arrays.into_iter().filter(|sighted| sighted.array == superblock.array);
        for candidate in own.flat_map(|sighted| sighted.candidates) {
            if !found.iter().any(|known| same_file(&known.path, &candidate.path)) {
                found.push(candidate);
            }
        }
    }
    found
}

/// A device that is to forget what it was, open and locked.
pub struct Wiping {
    path: PathBuf,
    member: Members,
    superblock: Option<Superblock>,
    /// What it was.
    what: String,
}

impl Wiping {
    /// Looks what a device is, one of those at `all` that are to be wiped, and keeps others from it; nothing
    /// is written yet.
    pub fn begin(path: &Path, all: &[PathBuf], consent: Consent, caution: Caution) -> Result<Self, Error> {
        let candidate = look_at(path)?;
        let superblock = candidate.superblock();
        if superblock.is_none() && !candidate.looks_like_member {
            candidate.require_superblock()?; // says what is there instead
        }
        let what = superblock.map_or_else(
            || "a member whose superblock is damaged".to_owned(),
            |superblock| format!("{} of array {}", role_of(superblock), array_name(superblock)),
        );
        // Whoever insists is not kept waiting by other devices.
        let asks = !(consent.is_given() && caution.is_forced());
        let array = superblock.filter(|_| asks).map(|superblock| without(path, superblock, all));
        if array.as_ref().is_some_and(|array| !array.is_bearable) && !caution.is_forced() {
            let without = array.map(|array| array.words).unwrap_or_default();
            return Err(Refusal::WipeLoses { path: path.to_owned(), what, without }.into());
        }
        if !consent.is_given() {
            let without = array.map_or_else(|| "its array cannot be told".to_owned(), |array| array.words);
            return Err(Refusal::WipeUnasked { path: path.to_owned(), what, without }.into());
        }
        // Refused while a server has it.
        let member = Members::open(&[Some(path.to_owned())], open_options(Access::Exclusive))?;
        Ok(Self { path: path.to_owned(), member, superblock: superblock.cloned(), what })
    }

    /// Erases the superblocks; what it was.
    pub fn finish(mut self) -> Result<String, Error> {
        let own = DevIndex::new(0);
        let at = |fault| Refusal::Fault { path: self.path.clone(), fault };
        for origin in self.superblock.as_ref().map_or_else(|| vec![0], origins) {
            for offset in SUPERBLOCK_OFFSETS {
                self.member.write_now(own, origin + offset, &[0; META_BYTES]).map_err(at)?;
            }
        }
        self.member.flush_now(own).map_err(at)?;
        Ok(self.what)
    }
}

/// Where the slices of a member begin; that by which it is known as one comes last, so that what was begun
/// can be done again.
fn origins(superblock: &Superblock) -> Vec<u64> {
    let shards = (0..superblock.config.shard.count.max(1)).rev();
    let is_member = superblock.role != format::Role::Spare;
    let shards = shards.filter(|&shard| shard == 0 || is_member);
    shards.map(|shard| superblock.config.sibling(shard).slice_origin(superblock.dev)).collect()
}
