//! The laboratory: traces replayed through arrays, schemes measured side by side, SSDs simulated, results
//! drawn.
#![forbid(unsafe_code)]
#![deny(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "they panic when nobody reads: see `node::output`"
)]

pub mod bench;
mod drive;
pub mod embed;
pub mod experiments;
pub mod failure;
pub mod flash;
pub mod given;
pub mod keys;
pub mod misuse;
mod number;
pub mod options;
mod outfile;
mod placing;
pub mod plot;
pub mod provenance;
pub mod reliability;
pub mod replay;
pub mod simulate;
pub mod simulated;
mod subject;
mod terms;
pub mod trace;
pub mod watch;

/// How a command ended: the process's exit code.
pub type Exit = u8;
