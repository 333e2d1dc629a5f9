//! Why something could not be done with an array. Commands print an error as it is, so whoever reads the
//! line must learn from it which file or device is meant, what was found, what was expected and what to do.

use crate::driver::DriverError;
use array::{AssembleError, CreateError, EngineError};
use block::{DevIndex, IoFault};
use device::OpenError;
use format::{ArrayUuid, FormatError};
use front::ServerError;
use std::fmt;
use std::io;
use std::path::PathBuf;

/// See the module's documentation.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The system refuses something about a file.
    #[error("{}: {source}", path.display())]
    At {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The system refuses something.
    #[error(transparent)]
    System(#[from] io::Error),
    /// A device cannot be opened or made.
    #[error(transparent)]
    Device(#[from] OpenError),
    /// A member is held by somebody else.
    #[error("{0}; is the array being served? see `elastripe status`")]
    InUse(OpenError),
    /// The driver cannot be started.
    #[error(transparent)]
    Driver(#[from] DriverError),
    /// The operating system has no random numbers.
    #[error("no random numbers from the operating system: {0}")]
    Random(getrandom::Error),
    /// Signals cannot be received.
    #[error("signals: {0}")]
    Signals(io::Error),
    /// No layout, or nothing to write it on.
    #[error(transparent)]
    Create(#[from] CreateError),
    /// The engine could not do what it was asked for.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// What was asked for needs room on a member.
    #[error(
        "there is no room where {name} lies (a full file system, quota or pool): writes wait; make room, or take it out of service"
    )]
    MemberFull {
        /// The member.
        name: String,
    },
    /// The front end ended.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// A path holds no member.
    #[error(transparent)]
    NoMember(#[from] NoMember),
    /// No path was given.
    #[error("no member was named")]
    NoneNamed,
    /// A member lost its end, and its name has to be known.
    #[error("{0}")]
    Truncated(Truncation),
    /// A member that is to be started with lost its end.
    #[error("{0}; `serve --degraded` does without it, `replace` it then")]
    TruncatedMember(Truncation),
    /// A member in service is not among the paths.
    #[error(
        "{name}: not among the named paths, although it was in service; name it, or `replace` it, or start without it with \
         `serve --degraded`"
    )]
    Unnamed {
        /// The member.
        name: String,
    },
    /// Paths belong to different arrays.
    #[error("{}: belongs to array {found}, {} to {expected}; name the members of one array", path.display(), first.display())]
    OtherArray {
        /// One of them.
        path: PathBuf,
        /// Its array.
        found: ArrayUuid,
        /// The first one.
        first: PathBuf,
        /// Its array.
        expected: ArrayUuid,
    },
    /// A spare belongs to another array.
    #[error("{}: spare of array {found}, the others belong to {expected}; leave it out", path.display())]
    OthersSpare {
        /// The spare.
        path: PathBuf,
        /// Its array.
        found: ArrayUuid,
        /// The others'.
        expected: ArrayUuid,
    },
    /// Two paths hold the same member.
    #[error(
        "{} and {}: both are device {dev} of the array, one is a copy of the other; leave one out",
        first.display(),
        second.display()
    )]
    Copies {
        /// One.
        first: PathBuf,
        /// The other.
        second: PathBuf,
        /// The member.
        dev: DevIndex,
    },
    /// More members are needed.
    #[error("{0}; name the paths of more members")]
    TooManyMissing(AssembleError),
    /// The superblocks do not make an array.
    #[error(transparent)]
    Arrange(AssembleError),
    /// There are fewer shards.
    #[error("{}: shard {index}: the array has {count}, numbered from 0", path.display())]
    NoSuchShard {
        /// A member.
        path: PathBuf,
        /// What was asked for.
        index: u16,
        /// How many there are.
        count: u16,
    },
    /// A member lacks its part of a shard.
    #[error(
        "{name} has no intact superblock of shard {index}, which counts it as a member in service; `serve --degraded` starts without it"
    )]
    NoSlice {
        /// The member.
        name: String,
        /// The shard.
        index: u16,
    },
    /// A thread that served clients ended in a bug.
    #[error("a thread that served clients failed; the array was stopped in order")]
    SocketThread,
    /// A thread that ran shards ended in a bug.
    #[error(
        "a thread that ran shards of the array failed; what clients were told is durable is, and the next start recovers the rest"
    )]
    ShardThread,
    /// The superblocks of a shard do not make one.
    #[error("shard {index} of the array: {source}")]
    Shard {
        /// Which.
        index: u16,
        /// Why.
        source: AssembleError,
    },
    /// The array cannot be assembled.
    #[error("array {array}: {source}")]
    Assemble {
        /// Its name.
        array: String,
        /// Why.
        source: AssembleError,
    },
    /// Recovery has to write, and cannot.
    #[error(
        "array {array}: {name}: there is no room where {} lies (a full file system, quota or pool), and recovery has to write; \
         nothing is lost, no member is out of service: make room and start again",
        path.display()
    )]
    NoRoom {
        /// The array's name.
        array: String,
        /// The member.
        name: String,
        /// Where it is.
        path: PathBuf,
    },
    /// Somebody else was quicker.
    #[error(
        "{}: its superblock changed while it was being opened; another process works on the array, try again",
        path.display()
    )]
    Changed {
        /// Where.
        path: PathBuf,
    },
    /// The directory of the control sockets cannot be used.
    #[error("{}: {source}; set ELASTRIPE_RUN_DIR to a directory of yours", path.display())]
    RunDir {
        /// It, or a file in it.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The directory of the control sockets is somebody else's.
    #[error("{}: belongs to user {owner}, expected {expected}; set ELASTRIPE_RUN_DIR to a directory of yours", path.display())]
    RunDirOwner {
        /// The directory.
        path: PathBuf,
        /// Whose it is.
        owner: u32,
        /// Whose it should be.
        expected: u32,
    },
    /// Another process serves an array with this UUID.
    #[error(
        "array {array} is being served by {who}, so the members named here are a copy of it, with its UUID; stop that server \
         first, or serve the copy from a run directory of its own (ELASTRIPE_RUN_DIR)"
    )]
    ServedAlready {
        /// The array.
        array: ArrayUuid,
        /// The other.
        who: String,
    },
    /// A server was asked, and no answer came: what it was asked for may have been done.
    #[error("{}: {silence}; did the server stop?", path.display())]
    Unanswered {
        /// Its control socket.
        path: PathBuf,
        /// What came instead.
        silence: Silence,
    },
    /// A server says no, in its own words.
    #[error("{0}")]
    ServerRefuses(String),
    /// A server answered without saying how the array is.
    #[error("{}: an answer without a status", path.display())]
    NoStatus {
        /// Its control socket.
        path: PathBuf,
    },
    /// A line on the control socket is none of its requests.
    #[error("not a request: {0}")]
    NotARequest(serde_json::Error),
    /// A request cannot be written down.
    #[error(transparent)]
    Unwritable(serde_json::Error),
    /// The command to be run while serving cannot be started.
    #[error("--run: sh: {0}")]
    Child(io::Error),
    /// The array was not stopped in order.
    #[error("stopping the array: {0}; the next start recovers")]
    Stopping(Box<Error>),
    /// A search came to no array, or to too many.
    #[error(transparent)]
    Search(#[from] Search),
    /// Rebuild or scrub ended early.
    #[error("the {kind} was given up before its end; see `status`")]
    GivenUp {
        /// Which.
        kind: &'static str,
    },
    /// Not everything can be rebuilt.
    #[error("{lost} code words cannot be rebuilt, too much of them is lost; see `status`")]
    NotRebuilt {
        /// How much.
        lost: u64,
    },
    /// A replacement could not take its place.
    #[error("{0}")]
    NotReplaced(String),
    /// A signal that would have ended this process came while it ran the array.
    #[error(
        "interrupted: the work is given up, and the array stopped in order (a rebuild goes on with the next start)"
    )]
    Interrupted {
        /// Its number.
        signal: u8,
    },
    /// The same before an array was made.
    #[error("interrupted: there is no array, and what was made for it is taken away")]
    CreationInterrupted {
        /// Its number.
        signal: u8,
    },
    /// A server's control socket was removed.
    #[error(
        "{}: was removed, so the server of the array ({server}) cannot be asked; `kill {pid}` stops it in order, and the next \
         start makes the socket anew",
        socket.display()
    )]
    CutOff {
        /// Where it was.
        socket: PathBuf,
        /// The server, described.
        server: String,
        /// Its process.
        pid: u32,
    },
    /// A check stands in the way.
    #[error(transparent)]
    Refused(#[from] Refusal),
}

impl Error {
    /// Whether what was asked for may have been done all the same.
    pub fn may_have_been_done(&self) -> bool {
        matches!(self, Self::Unanswered { .. })
    }
}

/// What came instead of an answer.
#[derive(Debug)]
pub enum Silence {
    /// The connection broke.
    Broken(io::Error),
    /// The server closed it.
    Closed,
    /// Something else.
    Nonsense {
        /// What.
        found: String,
        /// Why it is no answer.
        source: serde_json::Error,
    },
}

impl fmt::Display for Silence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Broken(error) => error.fmt(f),
            Self::Closed => f.write_str("the server closed the connection"),
            Self::Nonsense { found, source } => write!(f, "found {found:?}: {source}"),
        }
    }
}

/// A member that lost its end.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Truncation {
    /// Where it is.
    pub path: PathBuf,
    /// The member.
    pub name: String,
    /// What is left of it.
    pub found_bytes: u64,
    /// What its layout needs.
    pub needed_bytes: u64,
}

impl fmt::Display for Truncation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, name, found_bytes, needed_bytes } = self;
        let path = path.display();
        write!(
            f,
            "{path}: {name} holds {found_bytes} bytes, the array's layout needs {needed_bytes}: it was truncated"
        )
    }
}

/// Why a path is no member of an array.
#[derive(Debug, thiserror::Error)]
pub enum NoMember {
    /// It has no room for superblocks.
    #[error(
        "{}: holds {found_bytes} bytes, no member of an array has less than {least_bytes}; name another path",
        path.display()
    )]
    TooSmall {
        /// Where.
        path: PathBuf,
        /// Its size.
        found_bytes: u64,
        /// The smallest there can be.
        least_bytes: u64,
    },
    /// It was one.
    #[error(
        "{}: both superblocks are damaged ({source}); leave this device out, the array may do without it",
        path.display()
    )]
    Damaged {
        /// Where.
        path: PathBuf,
        /// What is wrong with the first.
        source: FormatError,
    },
    /// It is one of another version of the format.
    #[error(
        "{}: is a member of an array of format version {found}, expected version {expected}: nothing was changed; copy its \
         content with the program that made it",
        path.display()
    )]
    OtherVersion {
        /// Where.
        path: PathBuf,
        /// Its version.
        found: u16,
        /// The version that this program reads.
        expected: u16,
    },
    /// It holds somebody's content.
    #[error("{}: holds {found}, expected a member of an array; name another path", path.display())]
    Foreign {
        /// Where.
        path: PathBuf,
        /// What.
        found: &'static str,
    },
    /// It holds nothing known.
    #[error("{}: not a member of an array (no superblock); name another path, or see `create`", path.display())]
    NoSuperblock {
        /// Where.
        path: PathBuf,
    },
}

/// Why a search did not end with one array.
#[derive(Debug)]
pub struct Search {
    /// The name or UUID that was looked for.
    pub wanted: Option<String>,
    /// The arrays that were found, by name and UUID.
    pub found: Vec<String>,
    /// How many of them fit.
    pub fitting: usize,
}

impl fmt::Display for Search {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(wanted) = &self.wanted {
            write!(f, "{wanted}: ")?;
        }
        let names = self.found.join(", ");
        match (self.found.is_empty(), self.fitting) {
            (true, _) => f.write_str("no member of an array was found"),
            (false, 0) => write!(f, "not found; found {names}"),
            (false, _) => write!(f, "several arrays were found: {names}; choose with --array UUID"),
        }
    }
}

impl std::error::Error for Search {}

/// Why members stay as they are.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// A device that is a member is to be erased.
    #[error("{}: is {what}; `wipe --yes` makes it forget that, and the array has to do without it", path.display())]
    WipeUnasked {
        /// The device.
        path: PathBuf,
        /// What it is.
        what: String,
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
    #[error("{name}: has failed already; replace it")]
    FailedAlready {
        /// The member.
        name: String,
    },
    /// Nothing is written any more.
    #[error("the array has failed: a replacement cannot be filled any more")]
    ArrayFailed,
    /// A device has no room for a member.
    #[error("{}: holds {found_bytes} bytes, expected at least {needed_bytes}; use a larger device", path.display())]
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
        "{name}: cannot be spared, shard {shard} of the array lacks {tolerated} other members, as many as it bears; replace first \
         what has failed there"
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
    #[error("{}: is {name} of this array; use another device", path.display())]
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
    /// It holds somebody's content.
    #[error("{}: holds {signature}; use another device, or --force to overwrite it", path.display())]
    Foreign {
        /// The device.
        path: PathBuf,
        /// What.
        signature: &'static str,
    },
    /// It did not leave.
    #[error("{name}: is in service; nothing is to come back")]
    NotAway {
        /// The member.
        name: String,
    },
    /// Nobody knows where it is.
    #[error("{name}: where its device is is not known; name it with --with")]
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
    /// Its replacement waits.
    #[error("{name}: is being replaced already")]
    ReplacedAlready {
        /// The member.
        name: String,
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
    /// Nothing is there to go on.
    #[error("no scrub is paused")]
    NoScrubPaused,
    /// Nothing is there to wait or end.
    #[error("no scrub is under way")]
    NoScrub,
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
}
