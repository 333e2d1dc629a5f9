//! Commands about whole devices, over `/dev/ublk-control`.
#![allow(unsafe_code, reason = "the kernel reads and writes memory that it is given by address")]

use super::wire::{self, FEATURES_BYTES, INFO_BYTES, control, flag};
use super::{Error, Info, Parameters, Plan};
use crate::uring::is_transient;
use io_uring::{IoUring, cqueue, opcode, squeue, types};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd as _;
use std::path::Path;
use std::time::Duration;

const CONTROL_PATH: &str = "/dev/ublk-control";
/// Where the system lists the nodes of all devices.
const CLASS_PATH: &str = "/sys/class/ublk-char";
/// How long a ring that takes nothing in is left alone.
const PAUSE: Duration = Duration::from_millis(1);

/// See the module's documentation. Every command waits for its end.
pub struct Control {
    file: File,
    ring: IoUring<squeue::Entry128, cqueue::Entry>,
}

impl Control {
    /// Opens the driver, and sees that it can do what is needed here.
    pub fn open() -> Result<Self, Error> {
        let file = OpenOptions::new().read(true).write(true).open(CONTROL_PATH);
        let file = file.map_err(|source| match source.raw_os_error() {
            Some(libc::ENOENT | libc::ENXIO | libc::ENODEV) => Error::NoDriver,
            Some(_) | None => Error::NoPermission { what: CONTROL_PATH, source },
        })?;
        let ring = IoUring::builder().build(2).map_err(Error::Ring)?;
        let mut control = Self { file, ring };
        let features = control.features()?;
        let needed = [
            (flag::CODES, "commands by code (UBLK_F_CMD_IOCTL_ENCODE)"),
            (flag::USER_COPY, "copies by its node (UBLK_F_USER_COPY)"),
            (flag::RECOVERY | flag::RECOVERY_REISSUE, "recovery (UBLK_F_USER_RECOVERY_REISSUE)"),
        ];
        match needed.iter().find(|(flags, _)| features & flags != *flags) {
            None => Ok(control),
            Some((_, lacks)) => Err(Error::TooOld { lacks }),
        }
    }

    fn features(&mut self) -> Result<u64, Error> {
        let mut bytes = [0; FEATURES_BYTES];
        match self.command(control::GET_FEATURES, wire::ANY_NUMBER, 0, &mut bytes) {
            Ok(()) => Ok(u64::from_ne_bytes(bytes)),
            Err(source) if source.raw_os_error() == Some(libc::EPERM) => {
                Err(Error::NoPermission { what: CONTROL_PATH, source })
            }
            Err(_) => Err(Error::TooOld {
                lacks: "the command that tells what it can do (UBLK_U_CMD_GET_FEATURES)",
            }),
        }
    }

    /// What there is, in the order of their numbers.
    pub fn devices(&mut self) -> Result<Vec<Info>, Error> {
        let mut numbers: Vec<u32> = match std::fs::read_dir(Path::new(CLASS_PATH)) {
            Ok(entries) => entries
                .flatten()
                .filter_map(|entry| entry.file_name().to_str()?.strip_prefix("ublkc")?.parse().ok())
                .collect(),
            // Without the class there is no device.
            Err(_) => Vec::new(),
        };
        numbers.sort_unstable();
        let infos = numbers.into_iter().map(|number| self.info(number));
        infos.filter_map(Result::transpose).collect()
    }

    /// What the driver tells of a device, if there is one with this number.
    pub fn info(&mut self, number: u32) -> Result<Option<Info>, Error> {
        let mut bytes = [0; INFO_BYTES];
        match self.command(control::GET_INFO, number, 0, &mut bytes) {
            Ok(()) => Ok(Some(Info::decoded(&bytes))),
            Err(error) if error.raw_os_error() == Some(libc::ENODEV) => Ok(None),
            Err(source) => Err(Error::Command { number, what: "it cannot be looked at", source }),
        }
    }

    /// Adds a device. What there is of it then is its node; it is to be [started](Self::start).
    pub fn add(&mut self, plan: &Plan) -> Result<Info, Error> {
        let mut bytes = plan.encoded();
        let number = plan.number.unwrap_or(wire::ANY_NUMBER);
        match self.command(control::ADD, number, 0, &mut bytes) {
            Ok(()) => Ok(Info::decoded(&bytes)),
            Err(error) if error.raw_os_error() == Some(libc::EEXIST) => {
                Err(Error::Taken { number, whose: "added by somebody else a moment ago".to_owned() })
            }
            Err(source) if source.raw_os_error() == Some(libc::EPERM) => {
                Err(Error::NoPermission { what: "a block device cannot be added", source })
            }
            Err(source) => Err(Error::Add(source)),
        }
    }

    /// Says what a device is like, before it is started.
    pub fn set_parameters(&mut self, number: u32, parameters: &Parameters) -> Result<(), Error> {
        let mut bytes = parameters.encoded();
        let outcome = self.command(control::SET_PARAMETERS, number, 0, &mut bytes);
        outcome.map_err(|source| Error::Command { number, what: "its limits are refused", source })
    }

    /// What a device is like.
    pub fn parameters(&mut self, number: u32) -> Result<Parameters, Error> {
        let mut bytes = wire::empty_parameters();
        let outcome = self.command(control::GET_PARAMETERS, number, 0, &mut bytes);
        outcome.map_err(|source| Error::Command { number, what: "its limits cannot be read", source })?;
        Ok(Parameters::decoded(&bytes))
    }

    /// Makes the disk appear. Waits until all queues have fetched, and carries out requests: partitions are
    /// looked for.
    pub fn start(&mut self, number: u32) -> Result<(), Error> {
        self.simple(control::START, number, "it cannot be started")
    }

    /// Makes the disk disappear. Waits for requests under way; what is asked for after that fails.
    pub fn stop(&mut self, number: u32) -> Result<(), Error> {
        self.simple(control::STOP, number, "it cannot be stopped")
    }

    /// Removes a device; it is gone when nobody has its node open. Kernels before 6.7 wait for that.
    pub fn delete(&mut self, number: u32) -> Result<(), Error> {
        match self.command(control::DELETE_SOON, number, 0, &mut []) {
            Ok(()) => Ok(()),
            Err(error) if error.raw_os_error() == Some(libc::ENODEV) => Ok(()), // it is gone
            Err(_) => self.simple(control::DELETE, number, "it cannot be removed"),
        }
    }

    /// Begins to take over a device whose server is gone. Not yet possible ([`io::ErrorKind::ResourceBusy`])
    /// while the kernel is clearing up after that.
    pub fn start_recovery(&mut self, number: u32) -> Result<(), Error> {
        self.simple(control::START_RECOVERY, number, "it cannot be taken over")
    }

    /// Takes it over. Waits until all queues have fetched.
    pub fn end_recovery(&mut self, number: u32) -> Result<(), Error> {
        self.simple(control::END_RECOVERY, number, "it cannot be taken over")
    }

    /// A command without a buffer, with this process as its number: some want it, none minds.
    fn simple(&mut self, code: u32, number: u32, what: &'static str) -> Result<(), Error> {
        let outcome = self.command(code, number, u64::from(std::process::id()), &mut []);
        outcome.map_err(|source| Error::Command { number, what, source })
    }

    /// Gives a command and waits for its end.
    fn command(&mut self, code: u32, number: u32, data: u64, bytes: &mut [u8]) -> io::Result<()> {
        let mut buffer: Box<[u8]> = Box::from(&*bytes);
        let length = u16::try_from(buffer.len()).expect("buffers of commands are short");
        let address = if length == 0 { 0 } else { buffer.as_mut_ptr().expose_provenance() };
        let address = u64::try_from(address).expect("an address has 64 bits at most");
        let command = wire::control_command(number, (address, length), data);
        let entry = opcode::UringCmd80::new(types::Fd(self.file.as_raw_fd()), code).cmd(command).build();
        // SAFETY: the kernel reads and writes `buffer` until the command's end, and this function does not
        // return before that; only the ring's loss makes it do so, and then the buffer is left to the kernel.
        // JUSTIFICATION: a ring takes addresses, and no type says how long they are good for.
        let pushed = unsafe { self.ring.submission().push(&entry) };
        pushed.map_err(|_| io::Error::from(io::ErrorKind::WouldBlock))?;
        let result = loop {
            match self.ring.submit_and_wait(1) {
                Ok(_) => {}
                Err(error) if is_transient(&error) => std::thread::sleep(PAUSE),
                Err(error) => {
                    std::mem::forget(buffer);
                    return Err(error);
                }
            }
            if let Some(done) = self.ring.completion().next() {
                break done.result();
            }
        };
        bytes.copy_from_slice(&buffer);
        if result < 0 { Err(io::Error::from_raw_os_error(-result)) } else { Ok(()) }
    }
}
