//! `--consistency` of commands that make an array for themselves.

use crate::failure::Failure;
use clap::Args;
use format::{Consistency, SchemeKind};

/// What the operator chose, if anything.
#[derive(Args, Clone, Copy, Debug, Default)]
pub struct ConsistencyChoice {
    /// What the schemes raid and parity-log do about the write hole: resync or journal.
    #[arg(long)]
    consistency: Option<Consistency>,
}

impl ConsistencyChoice {
    /// That, or what the command takes by default.
    pub fn or(self, default: Consistency) -> Consistency {
        self.consistency.unwrap_or(default)
    }

    /// Refuses what means nothing to any of some schemes.
    pub fn check_any(self, schemes: &[SchemeKind]) -> Result<(), Failure> {
        match (self.consistency, schemes) {
            (Some(given), [first, ..]) if !schemes.iter().any(|scheme| scheme.is_in_place()) => {
                Err(Failure::new(format!(
                    "--consistency {given}: scheme {first} never writes over what a stripe needs and has no write hole to \
                     choose about"
                )))
            }
            (Some(_) | None, _) => Ok(()),
        }
    }
}
