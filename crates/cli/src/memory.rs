//! How much memory the operator lets an array take.

use array::{EngineOptions, MemoryNeed};
use clap::Args;
use format::ArrayConfig;
use lab::failure::Failure;
use node::memory::{machine_bytes, show_need, table_bytes};
use node::units::{parse_size, show_size};

/// An array whose chunk size is chosen takes at most one in so many bytes of the machine's memory: others
/// want some, too.
const SHARE_DIVISOR: u64 = 2;

/// The option by which an operator says what an array may take.
#[derive(Args, Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MemoryLimit {
    /// Memory that the array may take once all of it is written; instead of what this machine has.
    #[arg(long, value_parser = parse_size, value_name = "SIZE")]
    memory: Option<u64>,
}

impl MemoryLimit {
    /// Bytes that an array may take at most.
    pub fn bytes(self) -> u64 {
        self.memory.unwrap_or_else(machine_bytes)
    }

    /// Bytes that an array whose chunk size is chosen may take at most.
    pub fn bytes_if_chosen(self) -> u64 {
        self.memory.unwrap_or_else(|| machine_bytes() / SHARE_DIVISOR)
    }

    /// Bytes that the table of chunks takes at most, unless it is said otherwise: a quarter.
    pub fn table_bytes(self) -> u64 {
        table_bytes(self.bytes())
    }

    /// `--memory 1 GiB`, or `this machine has 23.43 GiB`.
    pub fn show(self) -> String {
        match self.memory {
            Some(bytes) => format!("--memory allows {}", show_size(bytes)),
            None => format!("this machine has {}", show_size(machine_bytes())),
        }
    }

    /// Refuses an array that can never be served with as much memory, of which clients take `clients_bytes`
    /// of buffers beside the array's own.
    pub fn check(
        self,
        config: &ArrayConfig,
        options: &EngineOptions,
        clients_bytes: u64,
    ) -> Result<MemoryNeed, Failure> {
        let mut need = MemoryNeed::of_all_shards(config, options)?;
        need.buffers_bytes = need.buffers_bytes.saturating_add(clients_bytes);
        if need.total_bytes() > self.bytes() {
            return Err(Failure::new(format!(
                "the array takes {}, {}: serve it where there is more, or, if much of it is not written, go on at the \
                 risk of running out of memory with --memory {}",
                show_need(&need),
                self.show(),
                ceil_size(need.total_bytes())
            )));
        }
        Ok(need)
    }
}

/// Refuses an option by which more memory is taken than this machine has: at once, while what --memory speaks
/// of is taken as the array is written.
pub fn check_there_is(option: &str, bytes: u64) -> Result<(), Failure> {
    let there = machine_bytes();
    if bytes > there {
        return Err(Failure::new(format!(
            "{option} {}: this machine has {}, and --memory does not make it more",
            show_size(bytes),
            show_size(there)
        )));
    }
    Ok(())
}

/// As an option takes it, and not less: whole MiB.
pub fn ceil_size(bytes: u64) -> String {
    format!("{}MiB", bytes.div_ceil(1 << 20))
}
