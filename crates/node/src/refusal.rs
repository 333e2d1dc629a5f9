//! Why members stay as they are: what a command was asked for is refused before anything is changed.

use crate::units::show_size;
use block::{IoFault, PairFault};
use format::FormatError;
use std::path::PathBuf;

/// Why members stay as they are.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// A device is named wrongly, rather than a file wanted.
    #[error(
        "{}: does not exist, and no file is made there: what is among the device nodes is gone when the machine starts again; is the \
         device's name right?",
        path.display()
    )]
    FileAmongDevices {
        /// Where.
        path: PathBuf,
    },
    /// A device that is a member is to be erased.
    #[error("{}: is {what}; {without}; `wipe --yes` makes it forget", path.display())]
    WipeUnasked {
        /// The device.
        path: PathBuf,
        /// What it is.
        what: String,
        /// What the array is without it.
        without: String,
    },
    /// A device that an array cannot do without is to be erased.
    #[error("{}: is {what}; {without}; `wipe --yes --force` makes it forget all the same", path.display())]
    WipeLoses {
        /// The device.
        path: PathBuf,
        /// What it is.
        what: String,
        /// What the array is without it.
        without: String,
    },
    /// Files may be called as other members are. The wrong one must not be taken out of service.
    #[error(
        "{wanted}: is the name of one member and the path of another one ({other}); for that one write ./{wanted}, for {named} \
         its path"
    )]
    Ambiguous {
        /// What was given.
        wanted: String,
        /// The member of that name.
        named: String,
        /// The member at that path.
        other: String,
    },
    /// No member is called so, and none is there.
    #[error("{wanted}: not a member of this array; expected one of {names} or the path of a member")]
    Unknown {
        /// What was given.
        wanted: String,
        /// The members.
        names: String,
    },
    /// It is out of service.
    #[error("{name}: is out of service already; take it back (`elastripe online`) or replace it")]
    FailedAlready {
        /// The member.
        name: String,
    },
    /// Nothing is written any more.
    #[error(
        "the array has failed, and nothing is written to it any more: stop it, and serve it with every member that is still there"
    )]
    ArrayFailed,
    /// A device has no room for a member.
    #[error(
        "{}: holds {} ({found_bytes} bytes), expected at least {} ({needed_bytes} bytes); use a larger device",
        path.display(), show_size(*found_bytes), show_size(*needed_bytes)
    )]
    TooSmall {
        /// The device.
        path: PathBuf,
        /// Its size.
        found_bytes: u64,
        /// What is needed.
        needed_bytes: u64,
    },
    /// It works, and nothing else may fail without it.
    #[error(
        "{name}: works, and without it one more failure loses data; --yes if it is to go out of service all the same"
    )]
    LastRedundancy {
        /// The member.
        name: String,
    },
    /// The code cannot make up for it.
    #[error(
        "{name}: cannot be spared, {missing} already out of service or being rebuilt and the array bears {tolerated}; replace \
         first what has failed"
    )]
    CannotBeSpared {
        /// The member.
        name: String,
        /// What is missing: `data1 is`.
        missing: String,
        /// Losses that the code makes up for.
        tolerated: usize,
    },
    /// A shard has lost others and needs it.
    #[error(
        "{name}: cannot be spared, shard {shard} of the array lacks {tolerated} other members, as many as it bears; take its device back \
         (`online --full`) if it is there, or replace first what has failed in that shard"
    )]
    NeededByShard {
        /// The member.
        name: String,
        /// The shard.
        shard: usize,
        /// Losses that it bears.
        tolerated: usize,
    },
    /// It is in service here.
    #[error("{}: is {name} of this array, or shares bytes with it; use another device", path.display())]
    OwnMember {
        /// The device.
        path: PathBuf,
        /// As which member.
        name: String,
    },
    /// It is in service elsewhere.
    #[error("{}: is a member of array {array}; use another device, or --force to overwrite it", path.display())]
    OthersMember {
        /// The device.
        path: PathBuf,
        /// The other array.
        array: String,
    },
    /// A member in service has the same place and serial.
    #[error(
        "{}: is a copy of {name}, which is in service, so it may be part of a copy of this array; use another device, or \
         --force to overwrite it",
        path.display()
    )]
    CopyOfMember {
        /// The device.
        path: PathBuf,
        /// The member.
        name: String,
    },
    /// It was in service in another course of the array.
    #[error(
        "{}: went on apart from this array, and may hold what nothing else does (a copy of it was started by itself, or this part \
         of it without the others); use another device, or `replace --force` to overwrite it",
        path.display()
    )]
    Diverged {
        /// The device.
        path: PathBuf,
    },
    /// It holds somebody's content.
    #[error("{}: holds {signature}; use another device, or --force to overwrite it", path.display())]
    Foreign {
        /// The device.
        path: PathBuf,
        /// What.
        signature: &'static str,
    },
    /// It did not leave.
    #[error("{name}: is in service{at}; nothing is to come back")]
    NotAway {
        /// The member.
        name: String,
        /// Where, in words, if that is known.
        at: String,
    },
    /// Nobody knows where it is.
    #[error("{name}: it is not known where its device is; name it with --with")]
    NoPath {
        /// The member.
        name: String,
    },
    /// The device is not that of the member.
    #[error("{}: is not the device of {name}: {found}", path.display())]
    NotItsDevice {
        /// The device.
        path: PathBuf,
        /// The member.
        name: String,
        /// What it is.
        found: String,
    },
    /// It cannot come back by what it missed.
    #[error(
        "{}: {name} cannot come back by what it missed: {why}; `online --full` fills it anew, `replace` puts another device in its place",
        path.display()
    )]
    NotBack {
        /// The device.
        path: PathBuf,
        /// The member.
        name: String,
        /// Why not.
        why: String,
    },
    /// Nothing is written to its members.
    #[error("the array is served read-only (serve --read-only): nothing is written to its members")]
    ServedReadOnly,
    /// Its replacement waits.
    #[error("{name}: is being replaced already")]
    ReplacedAlready {
        /// The member.
        name: String,
    },
    /// Another one is being copied.
    #[error(
        "{name}: not yet: {} becomes what {other} is, and one member that works is replaced at a time; `elastripe wait` stays until that has ended",
        path.display()
    )]
    OneAtATime {
        /// The member.
        name: String,
        /// The one that is being replaced.
        other: String,
        /// What becomes the same.
        path: PathBuf,
    },
    /// Nothing becomes what it is.
    #[error("{name}: no device is becoming what it is; there is nothing to stop")]
    NotBeingReplaced {
        /// The member.
        name: String,
    },
    /// It is too late.
    #[error("{name}: {} takes over at this moment", path.display())]
    TakesOver {
        /// The member.
        name: String,
        /// What becomes the same.
        path: PathBuf,
    },
    /// It waits for a failure.
    #[error("{}: is a spare of this array already", path.display())]
    SpareAlready {
        /// The device.
        path: PathBuf,
    },
    /// No spare is called so, and none is there.
    #[error("{}: not a spare of this array; {known}", wanted.display())]
    NotASpare {
        /// What was given.
        wanted: PathBuf,
        /// The spares, in words.
        known: String,
    },
    /// One at a time.
    #[error("a {kind} is under way; wait for its end (`elastripe wait`), or see `status`")]
    UnderWay {
        /// What.
        kind: &'static str,
    },
    /// The array is growing.
    #[error("the array is growing; wait until it has grown")]
    Growing,
    /// Requests do not end.
    #[error(
        "what clients have asked for did not end within {seconds} s, so the array does not grow now; see `status` for members          that hold it up"
    )]
    ClientsBusy {
        /// How long they were waited for.
        seconds: u64,
    },
    /// A member failed before the array had grown.
    #[error("{names} went out of service, so the array does not grow: `replace` it, and give `grow` again")]
    NotAllInService {
        /// Which, by name.
        names: String,
    },
    /// A member in service holds requests up.
    #[error("a member lacks room or does not answer, so the array does not grow now; see `status`")]
    HeldUp,
    /// Nothing is there to go on.
    #[error("no scrub is paused")]
    NoScrubPaused,
    /// Nothing is there to wait or end.
    #[error("no scrub is under way")]
    NoScrub,
    /// Parity is always up to date.
    #[error("the array's scheme commits no parity: there is nothing to pause")]
    CommitsNothing,
    /// Nothing is there to go on.
    #[error("parity commits are not paused")]
    NoCommitPaused,
    /// Nothing is there to end.
    #[error("no parity commit is under way or paused")]
    NoCommit,
    /// There are four billion.
    #[error("the array has used up its serial numbers")]
    NoSerialsLeft,
    /// Superblocks name each device by a small number.
    #[error("the array has no room for spares")]
    NoRoomForSpares,
    /// A superblock for it cannot be made.
    #[error("{}: {source}", path.display())]
    Superblock {
        /// The device.
        path: PathBuf,
        /// Why.
        source: FormatError,
    },
    /// It does not do what it is told.
    #[error("{}: {fault}", path.display())]
    Fault {
        /// The device.
        path: PathBuf,
        /// How it answers.
        fault: IoFault,
    },
    /// It does not answer.
    #[error(
        "{}: its device does not answer: what has to be written to it before it can be a member was not written within {seconds} s",
        path.display()
    )]
    Silent {
        /// The device.
        path: PathBuf,
        /// How long it had.
        seconds: u64,
    },
    /// It did not become what a member is.
    #[error("{}: {fault}", path.display())]
    Copy {
        /// The device.
        path: PathBuf,
        /// Why.
        fault: PairFault,
    },
}
