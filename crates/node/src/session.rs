//! A command's way to an array: through the server's control socket if it is being served, else by running
//! it itself.

use crate::called::Called;
use crate::checks::{Caution, Consent, Manner, View};
use crate::control::{Client, Request};
use crate::describe::describe;
use crate::error::Error;
use crate::event::Event;
use crate::offline::Offline;
use crate::open::{Candidate, Force, Incomplete, look_at};
use crate::operate::Operator;
use crate::output;
use crate::registry::{correct_dead, cut_off, forget_dead};
use crate::run_dir::socket_path;
use crate::status::{DeviceStatus, LastWork, Status, of_running};
use crate::waiting::{Show, is_whole, wait_for_member, wait_for_place, wait_for_work};
use array::WorkKind;
use block::DevIndex;
use format::{CheckpointKind, Superblock};
use std::path::Path;

/// See the module's documentation.
pub enum Session {
    /// A server runs the array.
    Live(Client),
    /// This command does.
    Offline(Box<Offline>),
}

/// Whether a command stays until the work it started has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Patience {
    /// Until the end.
    Wait,
    /// Until the work has begun; for an array that nobody serves there is no difference.
    Start,
}

/// What is to take whose place.
#[derive(Clone, Copy, Debug)]
pub struct Replacement<'a> {
    /// Name or path of the member.
    pub device: &'a str,
    /// Absolute path of the new device.
    pub path: &'a Path,
    /// Whether what is on it may be overwritten.
    pub caution: Caution,
    /// Whether a member that works may go although nothing else may fail then.
    pub consent: Consent,
    /// Limit of the rebuild, in bytes per second; `None` leaves it as it is.
    pub rate: Option<u64>,
    /// What becomes of a member that works.
    pub manner: Manner,
}

/// How the array that some paths belong to can be reached.
pub enum Reach {
    /// Through the server that has its members.
    Server(Client),
    /// A server has its original: these are copies. Why, in a line.
    Copy(String),
    /// Nobody serves it.
    Nobody,
}

/// The server of the array that a member belongs to.
pub fn reach(candidate: &Candidate) -> Result<Reach, Error> {
    let superblock = candidate.require_superblock()?;
    let Some(mut client) = Client::of_server(&socket_path(superblock.array))? else {
        return cut_off(superblock.array).map_or(Ok(Reach::Nobody), Err);
    };
    let identity = device::identity(&candidate.path)?.numbers();
    let (dev, serial) = (superblock.dev.get(), superblock.serial);
    match client.ask(&Request::Belongs { identity, dev, serial })?.error {
        None => Ok(Reach::Server(client)),
        Some(original) => Ok(Reach::Copy(format!(
            "{}: is a copy of {original}, which is being served, with the same UUID; name that to reach its server",
            candidate.path.display()
        ))),
    }
}

/// The server of an array that was called by its name or UUID, or of the one that the first readable one of
/// the paths belongs to.
pub fn server_of(called: &Called) -> Result<Reach, Error> {
    if let Some(client) = called.server()? {
        return Ok(Reach::Server(client));
    }
    let mut unreadable = Vec::new();
    for path in &called.paths {
        match called.member_at(path) {
            Ok(candidate) => return reach(&candidate),
            Err(failure) => unreadable.push(failure),
        }
    }
    Err(called.unknown(unreadable))
}

impl Session {
    /// Finds the array's server, or assembles the array if `check` has nothing against it.
    pub fn open(
        called: &Called,
        force: Force,
        incomplete: Incomplete<'_>,
        rebuild_bytes_per_s: Option<u64>,
        check: impl FnOnce(&View) -> Result<(), Error>,
    ) -> Result<Self, Error> {
        if let Reach::Server(client) = server_of(called)? {
            return Ok(Self::Live(client));
        }
        let offline = Offline::start(&called.paths, force, incomplete, rebuild_bytes_per_s, check)?;
        output::warn(format_args!("{}; not served, so this command runs it", describe(offline.superblock())));
        Ok(Self::Offline(Box::new(offline)))
    }

    /// How the array is.
    pub fn status(&mut self) -> Result<Status, Error> {
        match self {
            Self::Live(client) => client.status(),
            Self::Offline(offline) => Ok(of_running(&offline.running, &offline.operator, &[])),
        }
    }

    /// Takes a member out of service; returns when the other members know.
    pub fn fail(&mut self, device: &str, caution: Caution, consent: Consent) -> Result<(), Error> {
        match self {
            Self::Live(client) => {
                let (force, yes) = (caution.is_forced(), consent.is_given());
                client.order(&Request::Fail { device: for_server(device), force, yes })
            }
            Self::Offline(offline) => {
                let dev = offline.find(device)?;
                if offline.operator.was_left_out(dev) {
                    return Ok(()); // it is out of service since the array was assembled without it
                }
                offline.operator.fail(&mut offline.running, dev, caution, consent)?;
                if offline.running.accepts_writes() {
                    return offline.request(|engine, tag| engine.announce(tag));
                }
                Ok(()) // it was one too many, and nothing is written any more
            }
        }
    }

    /// Puts another device in a member's place; [`Session::await_rebuild`] sees to it that it is filled.
    pub fn replace(&mut self, replacement: &Replacement<'_>) -> Result<(), Error> {
        let Replacement { device, path, caution, consent, rate, manner } = *replacement;
        match self {
            Self::Live(client) => {
                if rate.is_some() {
                    client.order(&Request::Rate { bytes_per_s: rate })?;
                }
                client.order(&Request::Replace {
                    device: for_server(device),
                    path: path.to_owned(),
                    force: caution.is_forced(),
                    yes: consent.is_given(),
                    fail_first: manner == Manner::FailFirst,
                })
            }
            Self::Offline(offline) => {
                let dev = offline.find(device)?;
                let Offline { operator, running, .. } = offline.as_mut();
                operator.replace(running, dev, path, caution, (consent, manner)).map(|_| ())
            }
        }
    }

    /// The device that becomes what a member that works is does not take its place.
    pub fn call_off(client: &mut Client, device: &str) -> Result<(), Error> {
        client.order(&Request::CallOff { device: for_server(device) })
    }

    /// Takes the device of a member that left back, by default from where it was;
    /// [`Session::await_rebuild`] sees to it that it gets what it missed, or with `full` everything.
    pub fn online(&mut self, device: &str, path: Option<&Path>, full: bool) -> Result<(), Error> {
        match self {
            Self::Live(client) => {
                let path = path.map(Path::to_owned);
                client.order(&Request::Online { device: for_server(device), path, full })
            }
            Self::Offline(offline) => {
                let dev = offline.find(device)?;
                let Offline { operator, running, .. } = offline.as_mut();
                operator.online(running, dev, path.map(Path::to_owned), full)
            }
        }
    }

    /// Whether the device at `path` is to succeed, or has succeeded, a member that stays in service
    /// meanwhile.
    pub fn is_successor(&mut self, path: &Path) -> Result<bool, Error> {
        match self {
            Self::Live(client) => {
                let status = client.status()?;
                let succeeds = |device: &DeviceStatus| {
                    device.replacement.as_ref().is_some_and(|replacement| replacement.path == path)
                };
                Ok(status.devices.iter().any(|device| succeeds(device) || is_whole(device, path)))
            }
            Self::Offline(offline) => Ok(offline.operator.is_successor(path)),
        }
    }

    /// Stays until what took the place of `device` is filled.
    pub fn await_rebuild(
        &mut self,
        (device, path): (&str, Option<&Path>),
        patience: Patience,
        show: Show<'_>,
    ) -> Result<(), Error> {
        match (self, patience) {
            (Self::Live(_), Patience::Start) => Ok(()),
            (Self::Live(client), Patience::Wait) => match path {
                Some(path) => wait_for_place(client, path, show),
                None => wait_for_member(client, device, show),
            },
            (Self::Offline(offline), Patience::Start | Patience::Wait) => {
                let dev = offline.find(device)?;
                offline.rebuild(dev, show)
            }
        }
    }

    /// Keeps a device at hand for the next failure.
    pub fn add_spare(&mut self, path: &Path, caution: Caution) -> Result<(), Error> {
        match self {
            Self::Live(client) => {
                client.order(&Request::AddSpare { path: path.to_owned(), force: caution.is_forced() })
            }
            Self::Offline(offline) => offline.operator.add_spare(&mut offline.running, path, caution),
        }
    }

    /// Checks everything; what was found, if it was waited for.
    pub fn scrub(
        &mut self,
        rate: Option<u64>,
        patience: Patience,
        show: Show<'_>,
    ) -> Result<Option<LastWork>, Error> {
        match self {
            Self::Live(client) => {
                if rate.is_some() {
                    client.order(&Request::Rate { bytes_per_s: rate })?;
                }
                client.order(&Request::Scrub)?;
                match patience {
                    Patience::Wait => wait_for_work(client, WorkKind::Scrub, show).map(Some),
                    Patience::Start => Ok(None),
                }
            }
            Self::Offline(offline) => offline.scrub(show).map(Some),
        }
    }

    /// Counts the errors of one member, or of every one, anew.
    pub fn clear(&mut self, device: Option<&str>) -> Result<(), Error> {
        match self {
            Self::Live(client) => client.order(&Request::Clear { device: device.map(for_server) }),
            Self::Offline(offline) => {
                let dev = device.map(|device| offline.find(device)).transpose()?;
                offline.request(|engine, tag| engine.clear_errors(tag, dev))
            }
        }
    }

    /// Gives the array another name.
    pub fn rename(&mut self, name: &str) -> Result<(), Error> {
        match self {
            Self::Live(client) => client.order(&Request::Rename { name: name.to_owned() }),
            Self::Offline(offline) => offline.request(|engine, tag| engine.rename(tag, name)),
        }
    }

    /// Parity commit. With [`Patience::Start`] only a server's has begun then.
    pub fn commit(&mut self, patience: Patience) -> Result<(), Error> {
        match self {
            Self::Live(client) => client.order(&Request::Commit { at_once: patience == Patience::Start }),
            Self::Offline(offline) => offline.request(|engine, tag| engine.commit(tag)),
        }
    }

    /// Writes a checkpoint.
    pub fn checkpoint(&mut self, kind: CheckpointKind) -> Result<(), Error> {
        match self {
            Self::Live(client) => client.order(&Request::Checkpoint { full: kind == CheckpointKind::Full }),
            Self::Offline(offline) => offline.request(|engine, tag| engine.write_checkpoint(tag, kind)),
        }
    }

    /// Ends the session; an array that this command runs is stopped in order.
    pub fn close(self) -> Result<(), Error> {
        match self {
            Self::Live(_) => Ok(()),
            Self::Offline(offline) => {
                let array = offline.superblock().array;
                let members = offline.operator.all_paths();
                offline.stop()?;
                // What a server that was killed left behind is news no more, but its record leads to the
                // members.
                forget_dead(array);
                let found: Vec<Candidate> = members.iter().filter_map(|path| look_at(path).ok()).collect();
                if let Some(superblock) = Superblock::newest(found.iter().filter_map(Candidate::superblock)) {
                    correct_dead(array, &superblock.name, &members);
                }
                Ok(())
            }
        }
    }
}

/// A member as the server knows it, which has another working directory: its name, or the whole path of
/// what is here.
fn for_server(device: &str) -> String {
    let numbered = |prefix: &str| device.strip_prefix(prefix).is_some_and(|rest| rest.parse::<u16>().is_ok());
    let path = Path::new(device);
    if numbered("data") || numbered("log") || !path.exists() {
        return device.to_owned();
    }
    std::path::absolute(path).map_or_else(|_| device.to_owned(), |whole| whole.to_string_lossy().into_owned())
}

impl Offline {
    fn find(&self, device: &str) -> Result<DevIndex, Error> {
        self.operator.find(&self.running, device)
    }

    fn rebuild(&mut self, dev: DevIndex, show: Show<'_>) -> Result<(), Error> {
        self.run_until(show, |_, events, _| {
            events.iter().find_map(|event| match event {
                Event::NotReplaced { why, .. } => Some(Err(Error::NotReplaced(why.clone()))),
                Event::CalledOff { .. } => Some(Err(Error::NotReplaced("it was called off".to_owned()))),
                Event::WorkEnded { found, .. } if found.lost > 0 => {
                    Some(Err(Error::NotRebuilt { lost: found.lost }))
                }
                Event::Rebuilt(rebuilt) if *rebuilt == dev => Some(Ok(())),
                Event::Succeeded { dev: succeeded, .. } if *succeeded == dev => Some(Ok(())),
                Event::WorkEnded { .. }
                | Event::WorkBegan { .. }
                | Event::Unfit { .. }
                | Event::Rebuilt(_)
                | Event::Failed { .. }
                | Event::PageLost(_)
                | Event::HeldUp { .. }
                | Event::HoldUpEnded { .. }
                | Event::CameBack { .. }
                | Event::Succeeded { .. }
                | Event::Grown(_)
                | Event::NotGrown { .. }
                | Event::Replaced { .. } => None,
            })
        })?
    }

    fn scrub(&mut self, show: Show<'_>) -> Result<LastWork, Error> {
        Operator::scrub(&mut self.running)?;
        self.run_until(show, |_, events, _| {
            events.iter().find_map(|event| match event {
                Event::WorkEnded { kind: WorkKind::Scrub, found, .. } => Some(LastWork {
                    completed: found.completed || found.errors_left() > 0,
                    ..LastWork::of_report(found)
                }),
                Event::WorkEnded { .. }
                | Event::WorkBegan { .. }
                | Event::Unfit { .. }
                | Event::NotReplaced { .. }
                | Event::CalledOff { .. }
                | Event::Rebuilt(_)
                | Event::Failed { .. }
                | Event::PageLost(_)
                | Event::HeldUp { .. }
                | Event::HoldUpEnded { .. }
                | Event::CameBack { .. }
                | Event::Succeeded { .. }
                | Event::Grown(_)
                | Event::NotGrown { .. }
                | Event::Replaced { .. } => None,
            })
        })
    }
}
