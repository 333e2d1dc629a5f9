//! The directory of the servers of this machine, and what each array has in it: a control socket, and the
//! record of its server ([`crate::registry`]).

use crate::error::Error;
use format::ArrayUuid;
use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

/// The directory of the control sockets: `$ELASTRIPE_RUN_DIR`, else `/run/elastripe` for root, else
/// `$XDG_RUNTIME_DIR/elastripe`, else `/tmp/elastripe-UID`.
pub fn run_dir() -> PathBuf {
    if let Some(dir) = std::env::var_os("ELASTRIPE_RUN_DIR").filter(|dir| !dir.is_empty()) {
        return PathBuf::from(dir);
    }
    let uid = rustix::process::geteuid();
    if uid.is_root() && Path::new("/run").is_dir() {
        return PathBuf::from("/run/elastripe");
    }
    match std::env::var_os("XDG_RUNTIME_DIR").filter(|dir| !dir.is_empty()) {
        Some(dir) => PathBuf::from(dir).join("elastripe"),
        None => PathBuf::from(format!("/tmp/elastripe-{}", uid.as_raw())),
    }
}

/// Makes the directory, for this user alone, unless it is there. Somebody else's is refused: whoever owns
/// it could answer in the array's name.
pub fn make_run_dir() -> Result<PathBuf, Error> {
    let dir = run_dir();
    let at = |source| Error::RunDir { path: dir.clone(), source };
    if !dir.is_dir() {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&dir).map_err(at)?;
    }
    let owner = fs::metadata(&dir).map_err(at)?.uid();
    let own = rustix::process::geteuid().as_raw();
    if owner != own && owner != 0 {
        return Err(Error::RunDirOwner { path: dir, owner, expected: own });
    }
    Ok(dir)
}

/// The control socket of an array.
pub fn socket_path(array: ArrayUuid) -> PathBuf {
    run_dir().join(format!("{array}.sock"))
}

/// The record of an array's server.
pub(crate) fn record_path(array: ArrayUuid) -> PathBuf {
    run_dir().join(format!("{array}.server"))
}

/// Whether the array's last server here is gone and has left its record: it was killed. Its devices may be in
/// use for a moment still.
pub fn was_killed(array: ArrayUuid) -> bool {
    open_record(array).is_ok_and(|(_, is_locked)| !is_locked)
}

/// The record of an array's server, and whether that server is there: it has it locked.
pub(crate) fn open_record(array: ArrayUuid) -> io::Result<(File, bool)> {
    let record = File::open(record_path(array))?;
    let is_locked = matches!(record.try_lock_shared(), Err(TryLockError::WouldBlock));
    Ok((record, is_locked))
}
