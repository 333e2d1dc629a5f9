//! The array as a disk of this machine's kernel: found again or added, started, and left behind or removed.
//!
//! A device is known by a number that is kept with it, which is made of the array's UUID. Whoever serves an
//! array has its members locked, so a device with its number that nobody serves is the array's own, left by a
//! server that ended.
//!
//! What may take long, or needs the server to answer meanwhile, happens on a thread of its own
//! ([`Attendant`]).

mod attendant;
mod users;

pub use attendant::{Attendant, News};

use crate::disk_error::{CLEARING, DiskError};
use crate::disk_wish::{DiskCache, DiskWish};
use crate::error::Error;
use crate::logbook::{Level, log, log_as};
use crate::running::Plant;
use crate::units::show_size;
use device::ublk::{
    Control, Error as DriverError, Info, Node, Parameters, Plan, Recovery, SECTOR_BYTES, State,
};
use format::ArrayUuid;
use front::ublk::{Cache, Served};
use front::{Limits, Server, Volume as _};
use std::time::{Duration, Instant};

/// Requests under way in a queue at most.
const DEPTH: u16 = 128;
/// Longest discard or run of zeros: whole chunks of any size.
const DISCARD_BYTES_MAX: u32 = 1 << 31;
/// File systems take no larger blocks than a page for their sectors.
const PHYSICAL_BYTES_MAX: u64 = 4096;
/// How often the kernel is asked whether it is through with that.
const CLEARING_LOOK: Duration = Duration::from_millis(20);

/// Where a device comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Origin {
    /// It was added for this server.
    New,
    /// A server before has left it; it may be in use.
    Left,
}

/// A device that is set aside for this array.
pub struct Disk {
    /// Taken by who looks after it from then on.
    control: Option<Control>,
    info: Info,
    origin: Origin,
    cache: Cache,
}

impl Disk {
    /// The device that a server of this array has left, or a new one. The array's members are locked.
    pub fn reserve(array: ArrayUuid, wish: DiskWish) -> Result<Self, Error> {
        let disk = Self::find_or_add(mark_of(array), wish)?;
        // When memory is short the kernel writes what is dirty to this disk, and that must not wait for
        // memory. Threads that are made from here on inherit it.
        if let Err(error) = rustix::process::configure_io_flusher_behavior(true) {
            log_as(Level::Warning, &format!("{}: may hang when memory is short: {error}", disk.path()));
        }
        Ok(disk)
    }

    fn find_or_add(mark: u64, wish: DiskWish) -> Result<Self, DiskError> {
        let mut control = Control::open()?;
        let devices = control.devices()?;
        if let Some(own) = devices.iter().find(|device| device.mark == mark && device.copies_by_node()) {
            let own = settled(&mut control, *own)?;
            match (own.state, wish.number) {
                (State::Dead, _) => control.delete(own.number)?,
                (State::Live, _) => {
                    return Err(DiskError::StillServed { number: own.number, process: own.process });
                }
                (_, Some(wanted)) if wanted != own.number => {
                    return Err(DiskError::Elsewhere { number: own.number, wanted });
                }
                (State::Quiesced, _) if own.recovery() == Recovery::Reissue => {
                    if wish.cache == DiskCache::Volatile {
                        log(&format!(
                            "/dev/ublkb{}: it was made without a volatile cache, and stays so",
                            own.number
                        ));
                    }
                    let (origin, cache) = (Origin::Left, Cache::None);
                    return Ok(Self { control: Some(control), info: own, origin, cache });
                }
                (state @ (State::Quiesced | State::Failing | State::Unknown(_)), _) => {
                    return Err(DiskError::Lost { number: own.number, state });
                }
            }
        }
        let taken = devices.iter().find(|device| Some(device.number) == wish.number && device.mark != mark);
        if let Some(taken) = taken {
            let whose = whose(taken);
            return Err(DriverError::Taken { number: taken.number, whose }.into());
        }
        let (cache, recovery) = match wish.cache {
            DiskCache::None => (Cache::None, Recovery::Reissue),
            DiskCache::Volatile => (Cache::Volatile, Recovery::None),
        };
        let info = control.add(&Plan {
            number: wish.number,
            queues: wish.queues,
            depth: DEPTH,
            transfer_bytes_max: transfer_bytes_max(),
            recovery,
            mark,
        })?;
        Ok(Self { control: Some(control), info, origin: Origin::New, cache })
    }

    /// Where users find it.
    pub fn path(&self) -> String {
        format!("/dev/ublkb{}", self.info.number)
    }

    /// Has a server serve it. The disk appears, or goes on, when that runs.
    pub fn equip(mut self, server: &mut Server, plant: &mut Plant) -> Result<Attendant, Error> {
        let queues = self.queues(plant)?;
        server.serve_disks(queues);
        Attendant::start(self)
    }

    fn queues(&mut self, plant: &mut Plant) -> Result<Vec<Served>, DiskError> {
        let number = self.info.number;
        let wanted = parameters_of(plant, self.cache);
        let control = self.control.as_mut().expect("it is taken with the disk");
        match self.origin {
            Origin::New => control.set_parameters(number, &wanted)?,
            Origin::Left => {
                fits(number, &control.parameters(number)?, &wanted)?;
                begin_recovery(control, number)?;
            }
        }
        let queues = Node::open(&self.info)?.queues()?;
        Ok(queues.into_iter().map(|queue| Served { queue, cache: self.cache }).collect())
    }

    /// The driver, for who looks after the disk from now on.
    fn into_control(mut self) -> Control {
        self.control.take().expect("it is taken with the disk")
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let Some(control) = &mut self.control else { return };
        if self.origin == Origin::New && control.delete(self.info.number).is_err() {
            log_as(Level::Warning, &format!("{} cannot be removed", self.path()));
        }
    }
}

/// Begins to take a device over; the kernel may not be through with the end of the server before.
fn begin_recovery(control: &mut Control, number: u32) -> Result<(), DiskError> {
    let until = Instant::now() + CLEARING;
    loop {
        match control.start_recovery(number) {
            Ok(()) => return Ok(()),
            Err(DriverError::Command { source, .. })
                if source.kind() == std::io::ErrorKind::ResourceBusy && Instant::now() < until =>
            {
                std::thread::sleep(CLEARING_LOOK);
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// Where the disk is that a server of this array has left, and that waits for the next one. The array is not
/// served.
pub fn left_by(array: ArrayUuid) -> Option<String> {
    // Without the driver, or without being allowed to ask it, there is nothing to be said.
    let mut control = Control::open().ok()?;
    left(&mut control, array).map(|left| format!("/dev/ublkb{}", left.number))
}

/// Removes the disk that a server of this array has left; its users get errors. Where it was, if there was
/// one. The array is not served.
pub fn remove_left(array: ArrayUuid) -> Result<Option<String>, Error> {
    let mut control = match Control::open() {
        Ok(control) => control,
        Err(DriverError::NoDriver) => return Ok(None),
        Err(error) => return Err(DiskError::Driver(error).into()),
    };
    let Some(left) = left(&mut control, array) else { return Ok(None) };
    let removed = control.stop(left.number).and_then(|()| control.delete(left.number));
    removed.map_err(DiskError::Driver)?;
    Ok(Some(format!("/dev/ublkb{}", left.number)))
}

fn left(control: &mut Control, array: ArrayUuid) -> Option<Info> {
    let devices = control.devices().ok()?;
    devices.into_iter().find(|device| device.mark == mark_of(array) && device.state != State::Live)
}

/// What is kept with the devices of an array: half as many digits as its UUID has, and not those of any other
/// program.
fn mark_of(array: ArrayUuid) -> u64 {
    const OURS: u64 = u64::from_be_bytes(*b"elastrip");
    let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = array.bytes();
    u64::from_be_bytes([a, b, c, d, e, f, g, h]) ^ u64::from_be_bytes([i, j, k, l, m, n, o, p]) ^ OURS
}

/// A device when the kernel has noticed that its server is gone, or is through with stopping it.
fn settled(control: &mut Control, own: Info) -> Result<Info, DiskError> {
    let until = Instant::now() + CLEARING;
    let mut own = own;
    while own.state == State::Live && Instant::now() < until {
        std::thread::sleep(CLEARING_LOOK);
        match control.info(own.number)? {
            Some(info) => own = info,
            None => own.state = State::Dead,
        }
    }
    Ok(own)
}

/// Whose device that is, in words.
fn whose(device: &Info) -> String {
    match device.state {
        State::Live => format!("served by process {}", device.process),
        State::Quiesced | State::Failing => format!("left by process {} and waiting for it", device.process),
        State::Dead | State::Unknown(_) => "not started".to_owned(),
    }
}

fn transfer_bytes_max() -> u32 {
    u32::try_from(Limits::default().piece_bytes_max).unwrap_or(1 << 20)
}

/// What the volume is like as a disk.
fn parameters_of(plant: &Plant, cache: Cache) -> Parameters {
    let chunk = u32::try_from(plant.chunk_bytes()).unwrap_or(1 << 31);
    // A file system takes for granted that a block of this size is written as a whole or not at all.
    let untorn = plant.untorn_bytes().clamp(SECTOR_BYTES, PHYSICAL_BYTES_MAX);
    Parameters {
        size_bytes: plant.size_bytes(),
        read_only: plant.read_only(),
        volatile_cache: cache == Cache::Volatile,
        physical_block_bytes: u32::try_from(untorn).expect("at most a page"),
        best_bytes: chunk,
        transfer_bytes_max: transfer_bytes_max(),
        discard_bytes_max: DISCARD_BYTES_MAX,
    }
}

/// Whether the volume can go on as the disk that was found.
fn fits(number: u32, found: &Parameters, wanted: &Parameters) -> Result<(), DiskError> {
    let (disk_bytes, volume_bytes) = (found.size_bytes, wanted.size_bytes);
    if disk_bytes > volume_bytes {
        return Err(DiskError::Shrunk { number, disk_bytes, volume_bytes });
    }
    if wanted.read_only && !found.read_only {
        return Err(DiskError::Writable { number });
    }
    if disk_bytes < volume_bytes {
        log(&format!("/dev/ublkb{number} keeps its {} until it is made anew", show_size(disk_bytes)));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_have_marks_of_their_own() {
        let one = ArrayUuid::new([7; 16]);
        let mut bytes = [7; 16];
        bytes[15] = 8;
        assert_ne!(mark_of(one), mark_of(ArrayUuid::new(bytes)));
        // What other programs keep with their devices are small numbers.
        assert!(mark_of(ArrayUuid::new([0; 16])) > 1 << 32);
    }

    #[test]
    fn a_disk_is_not_taken_over_by_a_volume_that_cannot_be_it() {
        let disk = Parameters {
            size_bytes: 1 << 30,
            read_only: false,
            volatile_cache: false,
            physical_block_bytes: 4096,
            best_bytes: 4096,
            transfer_bytes_max: 1 << 20,
            discard_bytes_max: DISCARD_BYTES_MAX,
        };
        assert!(fits(0, &disk, &disk).is_ok());
        assert!(fits(0, &disk, &Parameters { size_bytes: 2 << 30, ..disk }).is_ok());
        let smaller = fits(3, &disk, &Parameters { size_bytes: 1 << 29, ..disk }).expect_err("it is smaller");
        assert!(smaller.to_string().contains("/dev/ublkb3"), "{smaller}");
        let read_only = Parameters { read_only: true, ..disk };
        assert!(fits(0, &disk, &read_only).is_err() && fits(0, &read_only, &disk).is_ok());
    }
}
