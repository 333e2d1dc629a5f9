//! A node: what runs an array on this machine. Members are found, opened and locked, the array is
//! assembled, served, looked after and stopped; commands reach it through its server's control socket or
//! run it themselves.
#![forbid(unsafe_code)]
#![deny(clippy::print_stdout, clippy::print_stderr, reason = "they panic when nobody reads: see `output`")]

pub mod activation;
pub mod assemble;
pub mod blank;
pub mod called;
pub mod checks;
mod consent;
pub mod control;
pub mod create;
pub mod describe;
pub mod disk_error;
pub mod disk_wish;
mod doorkeeper;
pub mod driver;
pub mod drives;
pub mod error;
pub mod event;
pub mod faults;
pub mod fresh;
pub mod grow;
pub mod happened;
pub mod inspect;
pub mod interrupt;
mod interruptible;
pub mod keys;
pub mod logbook;
pub mod losses;
pub mod made;
pub mod memory;
pub mod naming;
#[cfg(not(feature = "ublk"))]
pub mod no_ublk;
pub mod not_grown;
pub mod notify;
pub mod offline;
pub mod open;
pub mod open_files;
pub mod operate;
pub mod output;
mod pairing;
pub mod placement;
pub mod reactions;
pub mod read_back;
pub mod recovering;
pub mod refusal;
pub mod registry;
pub mod reloading;
pub mod run_dir;
pub mod running;
pub mod scan;
pub mod screen;
pub mod search;
pub mod serve;
pub mod session;
pub mod settings;
pub mod shell;
pub mod signals;
pub mod sockets;
pub mod status;
pub mod steward;
mod succeed;
pub mod trouble;
#[cfg(feature = "ublk")]
pub mod ublk;
#[cfg(not(feature = "ublk"))]
pub use no_ublk as ublk;
pub mod units;
pub mod volume;
pub mod waiting;
pub mod watch;
pub mod wipe;
