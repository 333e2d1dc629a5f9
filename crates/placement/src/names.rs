//! The policies' names on the command line and in reports.

use crate::{Age, CostBenefit, CostBenefitRoot, DChoices, Greedy, VictimPolicy, Windowed};
use std::fmt;
use std::str::FromStr;

/// A name that no policy has.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NameError {
    /// What was to be named.
    pub what: &'static str,
    /// What was given.
    pub found: String,
    /// What is possible.
    pub expected: &'static str,
}

impl fmt::Display for NameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: found `{}`, expected {}", self.what, self.found, self.expected)
    }
}

impl std::error::Error for NameError {}

macro_rules! named {
    ($(#[$doc:meta])* $kind:ident, $what:literal, $expected:literal,
     $($(#[$variant_doc:meta])* $variant:ident = $name:literal),+) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum $kind {
            $($(#[$variant_doc])* $variant,)+
        }

        impl $kind {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// Its name.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }
        }

        impl fmt::Display for $kind {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.name())
            }
        }

        impl FromStr for $kind {
            type Err = NameError;

            fn from_str(text: &str) -> Result<Self, NameError> {
                let known = Self::ALL.iter().copied().find(|kind| kind.name() == text);
                known.ok_or_else(|| NameError { what: $what, found: text.to_owned(), expected: $expected })
            }
        }
    };
}

named!(
    /// A placement policy.
    PlacementKind,
    "placement",
    "single, was, sepbit or midas",
    /// [`crate::SingleGroup`].
    Single = "single",
    /// [`crate::Was`].
    Was = "was",
    /// [`crate::SepBit`].
    SepBit = "sepbit",
    /// [`crate::Midas`].
    Midas = "midas"
);
named!(
    /// An identifier of hot data.
    HotnessKind,
    "hotness",
    "glru or hca",
    /// [`crate::Glru`].
    Glru = "glru",
    /// [`crate::Hca`].
    Hca = "hca"
);
named!(
    /// Where gc writes of `single` and `was` go.
    GcGroup,
    "gc group",
    "coldest or own",
    /// Into the coldest group of user writes.
    Coldest = "coldest",
    /// Into a group of their own ([`crate::GcApart`]).
    Own = "own"
);
named!(
    /// A policy that chooses the unit to collect.
    VictimKind,
    "gc",
    "greedy, cost-benefit, cost-benefit-root, age, windowed or d-choices",
    /// [`Greedy`].
    Greedy = "greedy",
    /// [`CostBenefit`].
    CostBenefit = "cost-benefit",
    /// [`CostBenefitRoot`].
    CostBenefitRoot = "cost-benefit-root",
    /// [`Age`].
    Age = "age",
    /// [`Windowed`].
    Windowed = "windowed",
    /// [`DChoices`].
    DChoices = "d-choices"
);

/// What `d-choices` draws by: counts are to be repeatable.
const DRAWS_SEED: u64 = 1;

impl VictimKind {
    /// The policy of that name.
    pub fn build(self) -> Box<dyn VictimPolicy> {
        match self {
            Self::Greedy => Box::new(Greedy),
            Self::CostBenefit => Box::new(CostBenefit),
            Self::CostBenefitRoot => Box::new(CostBenefitRoot),
            Self::Age => Box::new(Age),
            Self::Windowed => Box::new(Windowed::default()),
            Self::DChoices => Box::new(DChoices::new(DRAWS_SEED)),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests may panic")]

    use super::*;

    #[test]
    fn names_are_read_and_written_alike() {
        for kind in PlacementKind::ALL {
            assert_eq!(kind.to_string().parse::<PlacementKind>().unwrap(), *kind);
        }
        for kind in HotnessKind::ALL {
            assert_eq!(kind.to_string().parse::<HotnessKind>().unwrap(), *kind);
        }
        for kind in GcGroup::ALL {
            assert_eq!(kind.to_string().parse::<GcGroup>().unwrap(), *kind);
        }
        for kind in VictimKind::ALL {
            assert_eq!(kind.to_string().parse::<VictimKind>().unwrap(), *kind);
        }
        assert_eq!("cost-benefit".parse(), Ok(VictimKind::CostBenefit));
        assert_eq!(format!("{:>8}|", PlacementKind::Was), "     was|");
    }

    #[test]
    fn errors_name_what_was_found_and_what_is_possible() {
        // Each expectation lists every name there is.
        let error = "WAS".parse::<PlacementKind>().unwrap_err();
        assert_eq!(error.to_string(), "placement: found `WAS`, expected single, was, sepbit or midas");
        assert!(PlacementKind::ALL.iter().all(|kind| error.expected.contains(kind.name())));
        let error = "".parse::<HotnessKind>().unwrap_err();
        assert_eq!(error.to_string(), "hotness: found ``, expected glru or hca");
        assert!(HotnessKind::ALL.iter().all(|kind| error.expected.contains(kind.name())));
        let error = "hot".parse::<GcGroup>().unwrap_err();
        assert_eq!(error.to_string(), "gc group: found `hot`, expected coldest or own");
        let error = "fifo".parse::<VictimKind>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "gc: found `fifo`, expected greedy, cost-benefit, cost-benefit-root, age, windowed or d-choices"
        );
        assert!(VictimKind::ALL.iter().all(|kind| error.expected.contains(kind.name())));
    }
}
