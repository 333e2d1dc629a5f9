//! Which arrays are served from this run directory: for each a control socket, and a *record* that its
//! server keeps locked and that says who it is. The record outlives a server that was killed, and the
//! socket does, too: a socket whose record nobody has locked is news, not rubbish.

use crate::checks::same_file;
use crate::control::Client;
use crate::error::Error;
use crate::open::look_at;
use crate::run_dir::{make_run_dir, open_record, record_path, run_dir, socket_path, was_killed};
use format::{ArrayUuid, Role};
use serde::{Deserialize, Serialize};
use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Whoever looks at a record holds it for a moment.
const LOCK_PATIENCE: Duration = Duration::from_millis(500);
/// How often it is tried meanwhile.
const LOCK_RETRY: Duration = Duration::from_millis(10);

/// Before the address of clients of keys.
pub(crate) const KEYS_AT: &str = "resp:";
/// Before the path of a virtio disk.
pub(crate) const VIRTIO_AT: &str = "vhost-user-blk:";
/// Before the number of a disk of this machine.
pub(crate) const DISK_AT: &str = "/dev/ublkb";

/// What a server says of itself to those who find only its traces.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Debug, Default)]
pub struct Record {
    /// The array.
    pub uuid: String,
    /// Its name, may be empty.
    pub name: String,
    /// The server's process.
    pub pid: u32,
    /// Where the members and spares are.
    pub paths: Vec<PathBuf>,
    /// Where clients connect, as `serve --nbd` takes it, or behind `resp:` as `kv serve --resp` does; or
    /// `vhost-user-blk:` and a path; or a block device, `/dev/ublkb` and its number.
    pub addresses: Vec<String>,
}

impl Record {
    /// The server in words: `process 4711 with /dev/sda, /dev/sdb, /dev/sdc and 4 more`.
    pub fn describe(&self) -> String {
        const SHOWN: usize = 3;
        let mut text = format!("process {}", self.pid);
        let paths: Vec<String> =
            self.paths.iter().take(SHOWN).map(|path| path.display().to_string()).collect();
        if !paths.is_empty() {
            text.push_str(&format!(" with {}", paths.join(", ")));
        }
        if self.paths.len() > SHOWN {
            text.push_str(&format!(" and {} more", self.paths.len() - SHOWN));
        }
        text
    }

    /// Whether its server was killed.
    pub fn was_killed(&self) -> bool {
        self.uuid.parse().is_ok_and(was_killed)
    }
}

/// A server's traces, as a client finds them.
pub enum Trace {
    /// It answers.
    Live(Client),
    /// It is gone, and was not stopped in order.
    Dead(Record),
    /// It begins or ends just now.
    Passing,
    /// It cannot be asked.
    Unreachable(Error),
}

/// Arrays that have a control socket here, with what is known of their servers.
pub fn traces() -> Vec<(ArrayUuid, Trace)> {
    let entries = fs::read_dir(run_dir()).into_iter().flatten().flatten();
    let mut arrays: Vec<ArrayUuid> = entries
        .filter_map(|entry| entry.file_name().into_string().ok()?.rsplit_once('.')?.0.parse().ok())
        .collect();
    arrays.sort();
    arrays.dedup();
    arrays.into_iter().map(|array| (array, trace_of(array))).collect()
}

/// What the servers of this run directory say of themselves, and those that were killed.
pub fn records() -> Vec<Record> {
    let entries = fs::read_dir(run_dir()).into_iter().flatten().flatten();
    let arrays = entries.filter_map(|entry| {
        entry.file_name().into_string().ok()?.strip_suffix(".server")?.parse::<ArrayUuid>().ok()
    });
    arrays.filter_map(|array| Some(read_record(File::open(record_path(array)).ok()?, array))).collect()
}

fn trace_of(array: ArrayUuid) -> Trace {
    let path = socket_path(array);
    match Client::connect_to(&path) {
        Ok(client) => Trace::Live(client),
        Err(error) if error.kind() == io::ErrorKind::NotFound => match cut_off(array) {
            Some(error) => Trace::Unreachable(error),
            None => Trace::Passing,
        },
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            match open_record(array) {
                Ok((_, true)) => Trace::Passing,
                Ok((file, false)) => Trace::Dead(read_record(&file, array)),
                // A server of an older version kept none.
                Err(_) => Trace::Dead(read_record(io::empty(), array)),
            }
        }
        Err(error) => Trace::Unreachable(Error::At { path, source: error }),
    }
}

/// A server runs whose control socket somebody has removed, as programs do that tidy up directories: it
/// cannot be asked.
pub fn cut_off(array: ArrayUuid) -> Option<Error> {
    let socket = socket_path(array);
    let started = Instant::now();
    loop {
        let (file, is_locked) = open_record(array).ok()?;
        if !is_locked || socket.exists() {
            return None;
        }
        // A server that begins or ends has one without the other for a moment.
        if started.elapsed() >= LOCK_PATIENCE {
            let record = read_record(&file, array);
            return Some(Error::CutOff { socket, server: record.describe(), pid: record.pid });
        }
        std::thread::sleep(LOCK_RETRY);
    }
}

fn read_record(mut file: impl Read, array: ArrayUuid) -> Record {
    let mut text = String::new();
    let read = file.read_to_string(&mut text).ok();
    let record: Option<Record> = read.and_then(|_| serde_json::from_str(&text).ok());
    Record { uuid: array.to_string(), ..record.unwrap_or_default() }
}

/// The server that had one of these members and is gone without having stopped the array.
pub fn dead_server_of(array: ArrayUuid, paths: &[&Path]) -> Option<Record> {
    let Trace::Dead(record) = trace_of(array) else { return None };
    let had = |path: &&Path| record.paths.iter().any(|other| same_file(other, path));
    paths.iter().any(had).then_some(record)
}

/// Removes the socket that a server which is gone left behind; its record, if there was something. The record
/// stays: by it the array's name leads to the members until a server ends in order.
pub fn forget_dead(array: ArrayUuid) -> Option<Record> {
    let Trace::Dead(record) = trace_of(array) else { return None };
    let lock = RecordFile::lock(array).ok()?;
    let removed = fs::remove_file(socket_path(array));
    // A server of an older version kept none.
    if record.pid != 0 {
        lock.leave();
    }
    removed.ok().map(|()| record)
}

/// Removes all that a server which is gone left behind, whose members are gone, too, so that its record leads
/// nowhere; that record.
pub fn forget_lost(array: ArrayUuid) -> Option<Record> {
    // A server that runs has it locked.
    let lock = RecordFile::lock(array).ok()?;
    let record = read_record(&lock.file, array);
    let removed = fs::remove_file(socket_path(array));
    (removed.is_ok() || record.pid != 0).then_some(record)
}

/// Keeps the record of a server that is gone true, if there is one: what the array is called, and where its
/// members are. Its spares are where they were.
pub fn correct_dead(array: ArrayUuid, name: &str, members: &[PathBuf]) {
    let kept = || File::open(record_path(array)).map(|file| read_record(file, array));
    if kept().map_or(0, |record| record.pid) == 0 {
        return;
    }
    // A server that has begun meanwhile knows better.
    let Ok(mut lock) = RecordFile::lock(array) else { return };
    let Ok(record) = kept().map(|record| corrected(record, name, members)) else { return };
    // If it cannot be written it says nothing any more, and is removed.
    if lock.write(&record).is_ok() {
        lock.leave();
    }
}

fn corrected(record: Record, name: &str, members: &[PathBuf]) -> Record {
    let is_spare = |path: &&PathBuf| {
        let found = look_at(path).ok();
        let is = found.and_then(|found| Some(found.superblock()?.role == Role::Spare));
        is.unwrap_or(false) && !members.iter().any(|member| same_file(member, path))
    };
    let spares = record.paths.iter().filter(is_spare).cloned();
    let paths = members.iter().cloned().chain(spares).collect();
    Record { name: name.to_owned(), paths, ..record }
}

/// The record of this process, or of one that is gone, locked; removed when dropped.
struct RecordFile {
    file: File,
    path: PathBuf,
}

impl RecordFile {
    /// Locks the record, or says who has it.
    fn lock(array: ArrayUuid) -> Result<Self, Error> {
        let path = record_path(array);
        let at = |source| Error::RunDir { path: path.clone(), source };
        let started = Instant::now();
        loop {
            let mut options = File::options();
            let file = options
                .read(true)
                .write(true)
                .create(true)
                .truncate(false)
                .mode(0o600)
                .open(&path)
                .map_err(at)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) if started.elapsed() >= LOCK_PATIENCE => {
                    return Err(served_already(array, &read_record(&file, array)));
                }
                Err(TryLockError::WouldBlock) => {
                    std::thread::sleep(LOCK_RETRY);
                    continue;
                }
                Err(TryLockError::Error(error)) => return Err(at(error)),
            }
            // Its owner removes it at the end: then this one is nobody's any more.
            let named = fs::metadata(&path).ok().map(|named| (named.dev(), named.ino()));
            let locked = file.metadata().map_err(at)?;
            if named == Some((locked.dev(), locked.ino())) {
                return Ok(Self { file, path });
            }
        }
    }

    fn write(&mut self, record: &Record) -> io::Result<()> {
        let text = serde_json::to_string_pretty(record)?;
        self.file.rewind()?;
        self.file.write_all(text.as_bytes())?;
        self.file.set_len(text.len() as u64)
    }

    /// Unlocks the record, and leaves it there.
    fn leave(mut self) {
        self.path.clear();
    }
}

impl Drop for RecordFile {
    fn drop(&mut self) {
        if !self.path.as_os_str().is_empty() {
            let _ = fs::remove_file(&self.path); // a left-over says that the server is gone, which is so
        }
    }
}

/// The listening control socket of this process. Its file and the record go with it.
pub struct ControlSocket {
    listener: UnixListener,
    path: PathBuf,
    file: RecordFile,
    record: Record,
}

impl ControlSocket {
    /// Listens, in the place of a server that is gone. Members with this UUID that another process serves
    /// are others: ours are locked, so one is a copy of the other.
    pub fn listen(array: ArrayUuid, record: Record) -> Result<Self, Error> {
        make_run_dir()?;
        let path = socket_path(array);
        let at = |source| Error::RunDir { path: path.clone(), source };
        let mut file = RecordFile::lock(array)?;
        // Who has no place for one more listens, too.
        let is_taken = Client::connect_to(&path).map_or_else(|error| is_full(&error), |_| true);
        if is_taken {
            let unknown = Record { uuid: array.to_string(), ..Record::default() };
            return Err(served_already(array, &unknown)); // by an older version, which keeps no record
        }
        file.write(&record).map_err(at)?;
        if path.exists() {
            fs::remove_file(&path).map_err(at)?;
        }
        let listener = UnixListener::bind(&path).map_err(at)?;
        let socket = Self { listener, path: path.clone(), file, record };
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).map_err(at)?;
        socket.listener.set_nonblocking(true).map_err(at)?;
        Ok(socket)
    }

    /// What clients connect to.
    pub fn listener(&self) -> &UnixListener {
        &self.listener
    }

    /// The array by its name, or by its UUID if it has none.
    pub fn describe(&self) -> String {
        let Record { uuid, name, .. } = &self.record;
        if name.is_empty() { uuid.clone() } else { name.clone() }
    }

    /// The array has another name.
    pub fn note_name(&mut self, name: String) -> io::Result<()> {
        self.record.name = name;
        self.file.write(&self.record)
    }

    /// Members or spares have come or gone: whoever finds the traces of this server must look for them where
    /// they are.
    pub fn note_paths(&mut self, paths: Vec<PathBuf>) -> io::Result<()> {
        if paths == self.record.paths {
            return Ok(());
        }
        self.record.paths = paths;
        self.file.write(&self.record)
    }
}

impl Drop for ControlSocket {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path); // ours: the record is still locked
    }
}

fn is_full(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::TimedOut
}

fn served_already(array: ArrayUuid, record: &Record) -> Error {
    let who = if record.pid == 0 { "another process".to_owned() } else { record.describe() };
    Error::ServedAlready { array, who }
}
