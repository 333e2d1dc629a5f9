//! `--discard`: what of the space that an array has freed is given back to its members.

use array::EngineOptions;
use clap::ValueEnum;

/// What is discarded on the members (requirement L-05).
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Discards {
    /// Nothing.
    None,
    /// What clients discarded, and units that garbage collection freed.
    Large,
    /// The same, and stretches of old versions and dead log space, which the array will write again.
    #[default]
    All,
}

impl Discards {
    /// The same options with this.
    pub fn apply(self, options: EngineOptions) -> EngineOptions {
        let EngineOptions { discard_run_chunks, discard_unit_bytes, .. } = options;
        let EngineOptions { discard_old_bytes, discard_log_bytes, .. } = options;
        let (large, all) = (self != Self::None, self == Self::All);
        EngineOptions {
            discard_run_chunks: discard_run_chunks.filter(|_| large),
            discard_unit_bytes: discard_unit_bytes.filter(|_| large),
            discard_old_bytes: discard_old_bytes.filter(|_| all),
            discard_log_bytes: discard_log_bytes.filter(|_| all),
            ..options
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_choice_leaves_out_what_it_says() {
        let of = |choice: Discards| {
            let options = choice.apply(EngineOptions::default());
            let large = options.discard_run_chunks.is_some() && options.discard_unit_bytes.is_some();
            let freed = options.discard_old_bytes.is_some() && options.discard_log_bytes.is_some();
            (large, freed)
        };
        assert_eq!(
            [Discards::None, Discards::Large, Discards::All].map(of),
            [(false, false), (true, false), (true, true)]
        );
    }
}
