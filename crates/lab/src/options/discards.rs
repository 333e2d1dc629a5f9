//! `--discard`: what of the space that an array has freed is given back to its members.

use array::{DiscardPolicy, EngineOptions};
use clap::ValueEnum;

/// What is discarded on the members (requirement L-05).
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Discards {
    /// Nothing.
    None,
    /// What clients discarded, and units that garbage collection freed.
    Large,
    /// The same, and stretches of old versions and dead log space, which the array will write again.
    All,
    /// `all` where every member is a block device; else `large`: a file system takes longer to give room
    /// back and forth than the array to write it again.
    #[default]
    Auto,
}

impl Discards {
    /// What it comes to, by whether members are files.
    pub fn settled(self, on_files: bool) -> Self {
        match (self, on_files) {
            (Self::Auto, true) => Self::Large,
            (Self::Auto, false) => Self::All,
            (Self::None | Self::Large | Self::All, _) => self,
        }
    }

    /// The same options with this; what is not settled counts as of block devices.
    pub fn apply(self, options: EngineOptions) -> EngineOptions {
        let DiscardPolicy { run_chunks, unit_bytes, old_bytes, log_bytes } = options.discard;
        let (large, all) = (self != Self::None, self.settled(false) == Self::All);
        let discard = DiscardPolicy {
            run_chunks: run_chunks.filter(|_| large),
            unit_bytes: unit_bytes.filter(|_| large),
            old_bytes: old_bytes.filter(|_| all),
            log_bytes: log_bytes.filter(|_| all),
        };
        EngineOptions { discard, ..options }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_choice_leaves_out_what_it_says() {
        let of = |choice: Discards| {
            let DiscardPolicy { run_chunks, unit_bytes, old_bytes, log_bytes } =
                choice.apply(EngineOptions::default()).discard;
            let large = run_chunks.is_some() && unit_bytes.is_some();
            let freed = old_bytes.is_some() && log_bytes.is_some();
            (large, freed)
        };
        assert_eq!(
            [Discards::None, Discards::Large, Discards::All].map(of),
            [(false, false), (true, false), (true, true)]
        );
        assert_eq!(
            [true, false].map(|on_files| of(Discards::Auto.settled(on_files))),
            [(true, false), (true, true)]
        );
    }
}
