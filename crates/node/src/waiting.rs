//! Staying until what a server does has ended.

use crate::control::Client;
use crate::error::Error;
use crate::event::work_name;
use crate::status::{Commit, DeviceState, DeviceStatus, EngineStatus, LastWork, Replacement, Status, Work};
use array::WorkKind;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

/// How often progress is asked for.
const POLL: Duration = Duration::from_millis(200);
/// What begins when something else has ended is there after so many looks.
const LOOKS: usize = 5;

/// How far it is.
#[derive(Clone, Copy, Debug)]
pub enum Step<'a> {
    /// Rebuild or scrub.
    Work(&'a Work),
    /// A device that becomes what this member is.
    Copy(&'a str, &'a Replacement),
    /// Parity commit.
    Commit(&'a Commit),
}

/// Who is told, now and then, how far it is.
pub type Show<'a> = &'a mut dyn FnMut(Step<'_>);

/// A device that was to take the place of a member that works.
pub struct Successor {
    /// The member.
    pub name: String,
    /// The device.
    pub path: PathBuf,
    /// Whether it is the member now.
    pub has_succeeded: bool,
}

/// Follows rebuild or scrub on a server to its end.
pub fn wait_for_work(client: &mut Client, kind: WorkKind, show: Show<'_>) -> Result<LastWork, Error> {
    loop {
        let status = client.status()?;
        match status.engine.work {
            Some(work) if work.kind == kind => show(Step::Work(&work)),
            Some(_) | None => {
                let last = status.engine.last_work.unwrap_or_default();
                if !last.completed {
                    return Err(Error::GivenUp { kind: work_name(kind) });
                }
                if kind == WorkKind::Rebuild && last.lost > 0 {
                    return Err(Error::NotRebuilt { lost: last.lost });
                }
                return Ok(last);
            }
        }
        sleep(POLL);
    }
}

/// Stays until no parity commit is left that somebody asked for.
pub fn wait_for_commits(client: &mut Client, show: Show<'_>) -> Result<(), Error> {
    loop {
        let EngineStatus { commit, last_commit_failed, .. } = client.status()?.engine;
        match commit.filter(|commit| commit.asked) {
            Some(commit) => show(Step::Commit(&commit)),
            None => return last_commit_failed.map_or(Ok(()), |why| Err(Error::NotCommitted(why))),
        }
        sleep(POLL);
    }
}

/// Stays until a rebuild has ended; the member that it was for must be whole then.
pub fn wait_for_member(client: &mut Client, device: &str, show: Show<'_>) -> Result<(), Error> {
    wait_for_work(client, WorkKind::Rebuild, show)?;
    let status = client.status()?;
    let is_it = |one: &&DeviceStatus| one.name == device || one.path.as_deref() == Some(Path::new(device));
    match status.devices.iter().find(is_it) {
        Some(one) if one.state != DeviceState::Healthy => {
            Err(Error::GivenUp { kind: work_name(WorkKind::Rebuild) })
        }
        Some(_) | None => Ok(()),
    }
}

/// Stays until no device is to take the place of a member that works; what became of the one that was.
pub fn wait_for_successor(client: &mut Client, show: Show<'_>) -> Result<Option<Successor>, Error> {
    let mut last: Option<(String, PathBuf)> = None;
    loop {
        let status = client.status()?;
        let Some((device, replacement)) = successor(&status) else {
            let has_succeeded = |path: &Path| status.devices.iter().any(|device| is_whole(device, path));
            return Ok(last.map(|(name, path)| {
                let has_succeeded = has_succeeded(&path);
                Successor { name, path, has_succeeded }
            }));
        };
        show(Step::Copy(&device.name, replacement));
        last = Some((device.name.clone(), replacement.path.clone()));
        sleep(POLL);
    }
}

/// Stays until the device at `path` has taken a member's place and holds what belongs there, whether the
/// member stays in service meanwhile or not.
pub fn wait_for_place(client: &mut Client, path: &Path, show: Show<'_>) -> Result<(), Error> {
    for _ in 0..LOOKS {
        wait_for_successor(client, show)?;
        let status = client.status()?;
        if status.devices.iter().any(|device| is_whole(device, path)) {
            return Ok(());
        }
        let has_place = status.devices.iter().any(|device| device.path.as_deref() == Some(path));
        if has_place {
            // It has been put there to be rebuilt.
            return wait_for_work(client, WorkKind::Rebuild, show).map(|_| ());
        }
        sleep(POLL);
    }
    Err(Error::NotReplaced(format!(
        "{}: did not take the place; the server's log says why, and `status` how the array is",
        path.display()
    )))
}

fn successor(status: &Status) -> Option<(&DeviceStatus, &Replacement)> {
    status.devices.iter().find_map(|device| Some((device, device.replacement.as_ref()?)))
}

/// Whether the device at `path` is a member that holds what it has to.
pub fn is_whole(device: &DeviceStatus, path: &Path) -> bool {
    device.path.as_deref() == Some(path) && device.state == DeviceState::Healthy
}
