//! Policies that are no part of this product.

use format::{ArrayConfig, CLASSES_MAX};
use placement::{OptionError, Placement, VictimPolicy};
use std::fmt;

/// Policies of somebody else, in place of those that [`SchemeOptions`](crate::SchemeOptions) names: they are
/// handed over when the array is assembled, as the buffers depend on the number of classes. Schemes without
/// classes have no use for them and drop them.
///
/// A placement must answer with classes below its [`Placement::classes`], a victim policy with a unit that
/// [`placement::Units::state`] knows and that is not full of valid chunks.
#[derive(Default)]
pub struct Policies {
    /// Which chunks are written together.
    pub placement: Option<Box<dyn Placement>>,
    /// Which unit is collected.
    pub victims: Option<Box<dyn VictimPolicy>>,
}

impl Policies {
    /// Whether a scheme of an array of that configuration can run with them.
    pub(crate) fn check(&self, config: &ArrayConfig) -> Result<(), OptionError> {
        let Some(policy) = self.placement.as_ref().filter(|_| config.scheme.is_elastic()) else {
            return Ok(());
        };
        if (1..=CLASSES_MAX).contains(&policy.classes()) {
            return Ok(());
        }
        let number = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
        Err(OptionError::Range {
            option: "classes of the placement",
            found: number(policy.classes()),
            min: 1,
            max: number(CLASSES_MAX),
        })
    }
}

impl fmt::Debug for Policies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { placement, victims } = self;
        let given = (placement.is_some(), victims.is_some());
        f.debug_struct("Policies").field("placement", &given.0).field("victims", &given.1).finish()
    }
}
