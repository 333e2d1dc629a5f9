//! `--rewrites`, the same wherever an array is run.

use crate::failure::Failure;
use array::{EngineOptions, Rewrites, SchemeOptions};
use clap::Args;
use format::SchemeKind;

/// What the operator chose, if anything.
#[derive(Args, Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RewriteChoice {
    /// What becomes of a stripe written before that is written again as a whole: `replace` puts it out of
    /// place on the data devices with its new parity, without log chunks or a later commit; `log` logs it
    /// like every other update, which is how the EPLOG paper counts; `auto` (default) replaces it, or logs it
    /// where that costs the data devices less (scheme eplog).
    #[arg(long, value_parser = parse_rewrites, value_name = "auto|replace|log")]
    rewrites: Option<Rewrites>,
}

fn parse_rewrites(text: &str) -> Result<Rewrites, String> {
    let named = Rewrites::ALL.into_iter().find(|rewrites| rewrites.name() == text);
    named.ok_or_else(|| format!("found {text:?}, expected auto, replace or log"))
}

impl RewriteChoice {
    /// Whether the option was given.
    pub fn is_given(self) -> bool {
        self.rewrites.is_some()
    }

    /// Refuses it for schemes none of which logs updates in stripes of their own.
    pub fn check_any(self, schemes: &[SchemeKind]) -> Result<(), Failure> {
        match (self.rewrites, schemes) {
            (Some(given), [first, ..]) if !schemes.iter().copied().any(SchemeKind::has_log_stripes) => {
                Err(Failure::new(format!(
                    "--rewrites {}: scheme {first} has one way to write a stripe again; only eplog has two",
                    given.name()
                )))
            }
            (Some(_) | None, _) => Ok(()),
        }
    }

    /// The same options with this.
    pub fn apply(self, options: EngineOptions) -> EngineOptions {
        let rewrites = self.rewrites.unwrap_or(options.scheme.rewrites);
        EngineOptions { scheme: SchemeOptions { rewrites, ..options.scheme }, ..options }
    }
}
