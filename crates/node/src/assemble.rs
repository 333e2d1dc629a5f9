//! From members that are open to an array that can be run: its shards are recovered, all at once.

use crate::consent::{Consent, Vote};
use crate::driver::{DriverOptions, Idle, Parked};
use crate::error::Error;
use crate::fresh;
use crate::open::{Force, Found, Incomplete, Locked, lock, member_name, name_of};
use array::{Arrangement, Array, AssembleError, EngineOptions, RecoveryReport};
use block::DevIndex;
use device::{Members, Note, SHELTER_BYTES_MAX, Shelter};
use std::panic::resume_unwind;
use std::path::PathBuf;
use std::thread;

/// An array that can be run.
pub struct Assembled {
    /// Its shards, in order.
    pub shards: Vec<Idle>,
    /// What recovery did.
    pub report: RecoveryReport,
    /// Who is who.
    pub found: Found,
    /// What the operator should know.
    pub notes: Vec<Note>,
}

impl Locked {
    /// Assembles the array.
    pub fn assemble(self, options: EngineOptions, driver: DriverOptions) -> Result<Assembled, Error> {
        let options = options.of_shard(&self.found.superblock().config);
        self.assemble_each(&|_| options, driver)
    }

    /// The same with options for each shard.
    pub fn assemble_each(
        self,
        options_of: &(dyn Fn(u16) -> EngineOptions + Sync),
        driver: DriverOptions,
    ) -> Result<Assembled, Error> {
        let Self { found, members } = self;
        let shelter = members.shelter().cloned();
        let has_overflowed = || shelter.as_ref().is_some_and(Shelter::has_overflowed);
        let chunk_bytes = found.superblock().config.geometry.chunk_bytes();
        let jobs: Vec<_> = found.arrangements().map(|one| (one, shown_to(one, &members))).collect();
        let consent = Consent::new(jobs.len());
        let recover = |(arrangement, members): (&Arrangement, Members)| -> Result<_, Failure> {
            let vote = Vote::new(&consent);
            let config = &arrangement.newest.config;
            let (slices, options) = (config.slice_extents(), options_of(config.shard.index));
            let devices = Parked::new(members, slices.clone(), chunk_bytes, driver).start()?;
            let nonce = fresh::number()?;
            let mut may_write = || vote.agree();
            let (array, report) = Array::assemble_if(devices, arrangement, nonce, options, &mut may_write)
                .map_err(Failure::Recovery)?;
            Ok((Idle::new(array, slices, chunk_bytes, driver), report))
        };
        // Each shard on a thread of its own: they have nothing to do with each other, but that nothing is
        // written unless all of them can be assembled.
        let recovered: Vec<_> = thread::scope(|scope| {
            let recover = &recover;
            let shards: Vec<_> = jobs.into_iter().map(|job| scope.spawn(move || recover(job))).collect();
            shards
                .into_iter()
                .map(|shard| shard.join().unwrap_or_else(|panic| resume_unwind(panic)))
                .collect()
        });
        let (mut shards, mut whole, mut other) = (Vec::new(), None::<RecoveryReport>, None);
        for shard in recovered {
            match shard {
                Ok((idle, report)) => {
                    whole = Some(match whole {
                        Some(whole) => whole.and(report),
                        None => report,
                    });
                    shards.push(idle);
                }
                // Not the reason, which another of them knows.
                Err(Failure::Recovery(AssembleError::OtherShard)) => other = Some(AssembleError::OtherShard),
                Err(Failure::Recovery(AssembleError::MemberFull { .. })) if has_overflowed() => {
                    let array = name_of(found.superblock());
                    return Err(Error::NotWithoutWriting { array, bytes: SHELTER_BYTES_MAX });
                }
                Err(Failure::Recovery(error)) => return Err(not_assembled(&found, error)),
                Err(Failure::Other(error)) => return Err(error),
            }
        }
        if let Some(error) = other {
            return Err(not_assembled(&found, error));
        }
        let notes = shards.last().map(|idle: &Idle| idle.notes().to_vec()).unwrap_or_default();
        Ok(Assembled { shards, report: whole.unwrap_or_default(), found, notes })
    }
}

/// The members as a shard sees them: a slice that it has refused is not shown to it.
fn shown_to(arrangement: &Arrangement, members: &Members) -> Members {
    let mut members = members.share();
    for (dev, place) in (0u16..).map(DevIndex::new).zip(&arrangement.places) {
        if place.is_none() {
            members.remove(dev);
        }
    }
    members
}

/// Why a shard cannot be assembled.
enum Failure {
    Recovery(AssembleError),
    Other(Error),
}

impl<E: Into<Error>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::Other(error.into())
    }
}

fn not_assembled(found: &Found, error: AssembleError) -> Error {
    let array = name_of(found.superblock());
    if let AssembleError::MemberFull { dev } = error
        && let Some(Some(path)) = found.paths.get(dev.index())
    {
        let name = member_name(found.superblock().config.geometry.device_count(), dev);
        return Error::NoRoom { array, name, path: path.clone() };
    }
    Error::Assemble { array, source: error }
}

/// Opens and locks the members at `paths` and assembles the array.
pub fn assemble(paths: &[PathBuf], options: EngineOptions) -> Result<Assembled, Error> {
    lock(paths, Force::Never, Incomplete::Refuse)?.assemble(options, DriverOptions::default())
}
