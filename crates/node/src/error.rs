//! Why something could not be done with an array. Commands print an error as it is, so whoever reads the
//! line must learn from it which file or device is meant, what was found, what was expected and what to do.

use crate::disk_error::DiskError;
use crate::driver::DriverError;
use crate::not_grown::NotGrown;
use crate::read_back::NotKept;
use crate::recovering::Recovering;
use crate::refusal::Refusal;
use crate::search::Search;
use crate::units::show_size;
use array::{AssembleError, CreateError, EngineError};
use block::DevIndex;
use device::OpenError;
use format::{ArrayUuid, FormatError};
use front::ServerError;
use std::fmt;
use std::io;
use std::path::PathBuf;

/// Why there is no store on a volume.
#[derive(Debug, thiserror::Error)]
pub enum NoStore {
    /// What holds one is to be served as a disk.
    #[error(
        "the volume holds a store of keys, which the first write of a client of the disk may destroy: `elastripe kv serve` serves it; \
         --read-only lets clients look, and --store-as-disk write"
    )]
    WouldBeOverwritten,
    /// There is none.
    #[error("{0} (`--create` makes a store on a volume that holds nothing)")]
    NotThere(kv::OpenError),
    /// It cannot be opened.
    #[error("{0}")]
    NotOpened(kv::OpenError),
    /// None can be made.
    #[error("no store can be made: {0}")]
    NotMade(kv::OpenError),
    /// The volume holds something.
    #[error(
        "the volume holds no store, and is not empty: byte {offset_bytes} is {found:#04x}, expected zeros in its first {looked_bytes} \
         bytes; --overwrite makes a store in place of what is there, which is lost then"
    )]
    NotEmpty {
        /// Where.
        offset_bytes: usize,
        /// What is there.
        found: u8,
        /// How much was looked at.
        looked_bytes: usize,
    },
    /// The store did not come to its end.
    #[error("the store did not stop within {seconds} seconds; what was acknowledged as durable is")]
    NotStopped {
        /// How long it had.
        seconds: u64,
    },
}

impl NoStore {
    /// Why none was opened.
    pub fn of_opening(error: kv::OpenError) -> Self {
        if matches!(error, kv::OpenError::Header(_)) { Self::NotThere(error) } else { Self::NotOpened(error) }
    }
}

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
    /// A store of keys cannot be made or opened.
    #[error(transparent)]
    Store(#[from] NoStore),
    /// The system refuses something.
    #[error(transparent)]
    System(#[from] io::Error),
    /// A device that is looked at does not answer.
    #[error("{}: has not answered for {seconds} s, and is not waited for any longer", path.display())]
    Silent {
        /// Which.
        path: PathBuf,
        /// How long.
        seconds: u64,
    },
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
    /// A device does not hold what was written to it.
    #[error("{}: {why}; there is no array, use another device", path.display())]
    NotKept {
        /// The device.
        path: PathBuf,
        /// What is the matter.
        why: NotKept,
    },
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
    /// There is no such path, and no such array.
    #[error(
        "{name}: there is no such device or file, and no array of this name is served, kept in {} or on a block device; see `elastripe scan`",
        kept.display()
    )]
    NotCalled {
        /// What was given.
        name: String,
        /// Where files of arrays are kept.
        kept: PathBuf,
    },
    /// A path holds no member.
    #[error(transparent)]
    NoMember(#[from] NoMember),
    /// What is kept of an array makes no sense.
    #[error("{}: {why}", path.display())]
    Settings {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The service manager passed something that nobody can connect to.
    #[error("LISTEN_FDS: descriptor {number} is no stream socket that listens")]
    NotAListener {
        /// Which.
        number: usize,
    },
    /// A socket that the service manager passed cannot be used.
    #[error("LISTEN_FDS: {0}")]
    Passed(io::Error),
    /// A name that the array cannot have.
    #[error("{0}")]
    Name(String),
    /// No path was given.
    #[error("no member was named")]
    NoneNamed,
    /// A member lost its end, and its name has to be known.
    #[error("{0}")]
    Truncated(Truncation),
    /// A member that is to be started with lost its end.
    #[error("{0}; `serve --degraded` does without it, `replace` it then")]
    TruncatedMember(Truncation),
    /// What is named in the place of a member is what that was some time ago.
    #[error(
        "{name}: {} holds an older state of it than the other members have (it was put back from a copy, or they went on \
         without it); name the right device, or start without it with `serve --degraded`, and then fill it anew with \
         `online --device {} --full`",
        path.display(),
        path.display()
    )]
    OlderState {
        /// The member.
        name: String,
        /// The device.
        path: PathBuf,
    },
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
    /// Two paths are one device.
    #[error("{}: named twice{also}; name each member once", path.display())]
    NamedTwice {
        /// One.
        path: PathBuf,
        /// The other, if it is another.
        also: String,
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
    /// What recovery would write does not fit into memory.
    #[error(
        "{array}: cannot be served without writing to its members: its recovery writes more than the {} that are kept in memory \
         instead; start it once without --read-only",
        show_size(*bytes)
    )]
    NotWithoutWriting {
        /// The array's name.
        array: String,
        /// What is kept in memory.
        bytes: u64,
    },
    /// An array does not grow.
    #[error(transparent)]
    NotGrown(#[from] Box<NotGrown>),
    /// Somebody else was quicker.
    #[error(
        "{}: its superblock changed while it was being opened; another process works on the array, try again",
        path.display()
    )]
    Changed {
        /// Where.
        path: PathBuf,
    },
    /// Another device is where a member was that is in use.
    #[error("{}: leads to another device than the member that is in use", path.display())]
    LeadsElsewhere {
        /// Where.
        path: PathBuf,
    },
    /// A member of another array is where one of the named array was.
    #[error("{}: is of another array now than when the server of that one looked last", path.display())]
    OfAnother {
        /// Where.
        path: PathBuf,
    },
    /// Nobody knows anything of an array that was called by its name or UUID.
    #[error(
        "array {array}: no server answers, and none of its members is where its server had it: {members}; attach them, or see \
         `elastripe scan`"
    )]
    NothingThere {
        /// The array.
        array: ArrayUuid,
        /// Where each was, and what is there.
        members: String,
    },
    /// A server would lack files that it may open.
    #[error(
        "this process may have {allowed} files open, and serving this array takes up to {needed}, clients not counted; raise the \
         limit (`ulimit -n`, or LimitNOFILE= of a service)"
    )]
    OpenFiles {
        /// What it may.
        allowed: u64,
        /// What it has to.
        needed: u64,
    },
    /// The array was to grow while it was served, and cannot go on.
    #[error("the array, which was to grow, cannot be assembled again: {0}")]
    NotAfterGrowth(Box<Error>),
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
    #[error("{}: {silence}", path.display())]
    Unanswered {
        /// Its control socket.
        path: PathBuf,
        /// What came instead.
        silence: Silence,
    },
    /// A server whose array is recovered still was asked for something.
    #[error("{}: {how}", path.display())]
    Recovering {
        /// Its control socket.
        path: PathBuf,
        /// How it is at it.
        how: Recovering,
    },
    /// A server says no, in its own words.
    #[error("{0}")]
    ServerRefuses(String),
    /// A server cannot tell others where this device is.
    #[error("{}: an array is served only from devices with names in UTF-8; rename it, or make a link to it", path.display())]
    NotUtf8 {
        /// Its name.
        path: PathBuf,
    },
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
    /// The array cannot be a disk of the kernel.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// This build lacks something.
    #[error("{0}")]
    NotBuilt(&'static str),
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
    /// A parity commit that somebody asked for did not come to its end.
    #[error("parity commit: {0}")]
    NotCommitted(String),
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
    /// Nothing came for so long.
    Nothing {
        /// In seconds.
        seconds: u64,
    },
    /// Nothing came for so long, and the server is suspended.
    Suspended {
        /// In seconds.
        seconds: u64,
        /// Its process.
        pid: u32,
    },
    /// More came than any answer has.
    TooMuch {
        /// How much that is.
        bytes: usize,
    },
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
            Self::Broken(error) => write!(f, "{error}; did the server stop?"),
            Self::Closed => f.write_str("the server closed the connection; did the server stop?"),
            Self::Nothing { seconds } => write!(
                f,
                "no answer within {seconds} s: the server of the array is suspended or waits for a device, or another program listens there"
            ),
            Self::Suspended { seconds, pid } => write!(
                f,
                "no answer within {seconds} s: the server of the array, process {pid}, is suspended (state T); `kill -CONT {pid}` \
                 has it go on"
            ),
            Self::TooMuch { bytes } => {
                write!(
                    f,
                    "found more than {bytes} bytes without the end of a line; does another program listen there?"
                )
            }
            Self::Nonsense { found, source } => {
                write!(f, "found {found:?}: {source}; does another program listen there?")
            }
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
