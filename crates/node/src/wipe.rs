//! Makes a device forget that it is a member or a spare.

use crate::checks::Consent;
use crate::describe::role_of;
use crate::error::Error;
use crate::open::{array_name, look_at, open_options};
use crate::refusal::Refusal;
use block::{DevIndex, META_BYTES};
use device::{Access, Members};
use format::{SUPERBLOCK_OFFSETS, Superblock};
use std::path::{Path, PathBuf};

/// A device that is to forget what it was, open and locked.
pub struct Wiping {
    path: PathBuf,
    member: Members,
    superblock: Option<Superblock>,
    /// What it was.
    what: String,
}

impl Wiping {
    /// Looks what a device is, and keeps others from it; nothing is written yet.
    pub fn begin(path: &Path, consent: Consent) -> Result<Self, Error> {
        let candidate = look_at(path)?;
        let superblock = candidate.superblock();
        if superblock.is_none() && !candidate.looks_like_member {
            candidate.require_superblock()?; // says what is there instead
        }
        let what = superblock.map_or_else(
            || "a member whose superblock is damaged".to_owned(),
            |superblock| format!("{} of array {}", role_of(superblock), array_name(superblock)),
        );
        if !consent.is_given() {
            return Err(Refusal::WipeUnasked { path: path.to_owned(), what }.into());
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
