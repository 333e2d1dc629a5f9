//! The closed sets of the format: codes, states, and in `scheme.rs` the schemes. Each has a byte on
//! disk (never 0) and a name in text.

use crate::{FormatError, ParseError};
use std::fmt;
use std::str::FromStr;

/// One row of a code table in `docs/format.md`.
pub(crate) struct CodeTable {
    pub(crate) title: &'static str,
    /// Byte on disk and name.
    pub(crate) rows: &'static [(u8, &'static str)],
}

macro_rules! codes {
    ($(#[$doc:meta])* $name:ident, $title:literal {
        $($(#[$vdoc:meta])* $variant:ident = $code:literal, $text:literal;)+
    }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum $name {
            $($(#[$vdoc])* $variant,)+
        }

        impl $name {
            /// Every value, in the order of the bytes that stand for them on disk.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            pub(crate) const TABLE: $crate::names::CodeTable =
                $crate::names::CodeTable { title: $title, rows: &[$(($code, $text),)+] };

            /// The byte on disk.
            pub(crate) const fn code(self) -> u8 {
                match self {
                    $(Self::$variant => $code,)+
                }
            }

            /// What a byte on disk stands for.
            pub(crate) fn from_code(code: u8) -> Result<Self, FormatError> {
                match code {
                    $($code => Ok(Self::$variant),)+
                    found => Err(FormatError::Malformed {
                        what: $title,
                        found: u64::from(found),
                        expected: concat!("one of", $(" ", $code, "=", $text,)+),
                    }),
                }
            }

            /// The name, as accepted by `FromStr`.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)+
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.name())
            }
        }

        impl FromStr for $name {
            type Err = ParseError;

            fn from_str(text: &str) -> Result<Self, ParseError> {
                match text {
                    $($text => Ok(Self::$variant),)+
                    found => Err(ParseError::Name {
                        what: $title,
                        found: found.to_owned(),
                        expected: concat!("one of", $(" ", $text,)+),
                    }),
                }
            }
        }
    };
}

pub(crate) use codes;

codes!(
    /// The erasure code.
    CodeKind, "code" {
        /// Plain exclusive or: one parity column.
        Xor = 1, "xor";
        /// Cauchy Reed-Solomon: any number of parity columns.
        Cauchy = 2, "cauchy";
        /// Row-diagonal parity: two parity columns.
        Rdp = 3, "rdp";
    }
);

codes!(
    /// How the columns of a stripe map to devices.
    LayoutKind, "layout" {
        /// Column c of stripe s is on entry s mod (n - c) of the devices that the stripe does not use yet:
        /// the EPLOG prototype's. Up to 10 devices, which mostly do not get the same shares of parity; wider
        /// arrays rotate.
        Spread = 1, "spread";
        /// Column c of stripe s is on device (s + c) mod n.
        Rotate = 2, "rotate";
        /// Column c of every stripe is on device c: the last m devices hold parity alone (RAID-4).
        Fixed = 3, "fixed";
        /// Parity row j of stripe s is on device (p + j) mod n with p = n - 1 - s mod n, data column c on
        /// device (p + m + c) mod n, as Linux md has RAID-5 and RAID-6 by default.
        LeftSymmetric = 4, "left-symmetric";
    }
);

codes!(
    /// What a scheme that writes in place does about the write hole.
    Consistency, "consistency" {
        /// Recompute the parity of stripes in flight after a crash, as Linux md does.
        Resync = 1, "resync";
        /// Write data and parity to the payload ring first.
        Journal = 2, "journal";
    }
);

codes!(
    /// The state of a member of the array.
    MemberState, "member state" {
        /// In use, everything on it current.
        Healthy = 1, "healthy";
        /// Failed: its content no longer counts.
        Failed = 2, "failed";
        /// Being filled with what its predecessor held.
        Rebuilding = 3, "rebuilding";
        /// Never configured, or removed.
        Absent = 4, "absent";
    }
);

codes!(
    /// What a device is for.
    Role, "role" {
        /// Carries data and parity.
        Main = 1, "main";
        /// Carries log chunks.
        Log = 2, "log";
        /// Waits to replace a failed device.
        Spare = 3, "spare";
    }
);

codes!(
    /// What a member of a log stripe is to its data stripe.
    MemberFate, "member fate" {
        /// The newest version of its chunk, which no parity covers: its log stripe lives because of it.
        Newest = 1, "newest";
        /// The version that the data stripe's parity covers.
        Covered = 2, "covered";
        /// Needed by its log stripe alone, with which its chunk becomes free.
        Superseded = 3, "superseded";
    }
);

codes!(
    /// How much a checkpoint contains (EPLOG, section 3.5).
    CheckpointKind, "checkpoint kind" {
        /// All metadata.
        Full = 1, "full";
        /// What changed since the checkpoint before it.
        Incremental = 2, "incremental";
    }
);

codes!(
    /// What the words of a checkpoint page are.
    PageKind, "page kind" {
        /// A part of the flat per-chunk table.
        Table = 1, "table";
        /// A part of the list of dirty stripes and log stripes.
        List = 2, "list";
        /// Patches of pages of the table, in an incremental checkpoint.
        Patches = 3, "patches";
        /// Which slot of each page of the table counts.
        Directory = 4, "directory";
        /// Which slot of each directory page counts.
        Root = 5, "root";
        /// What changed of the list since the checkpoint before, in an incremental checkpoint.
        Changes = 6, "changes of the list";
        /// Patches, the groups of all before the words of all.
        PackedPatches = 7, "packed patches";
    }
);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SchemeKind;

    #[test]
    fn names_and_codes_round_trip() {
        for &scheme in SchemeKind::ALL {
            assert_eq!(scheme.to_string().parse(), Ok(scheme));
            assert_eq!(SchemeKind::from_code(scheme.code()), Ok(scheme));
        }
        for &state in MemberState::ALL {
            assert_eq!(state.name().parse(), Ok(state));
            assert_eq!(MemberState::from_code(state.code()), Ok(state));
        }
        for &code in CodeKind::ALL {
            assert_eq!(code.to_string().parse(), Ok(code));
            assert_eq!(CodeKind::from_code(code.code()), Ok(code));
        }
        assert_eq!(CodeKind::Cauchy.to_string(), "cauchy");
        assert_eq!(LayoutKind::ALL.len(), LayoutKind::TABLE.rows.len());
    }

    #[test]
    fn unknown_names_and_codes_say_what_was_expected() {
        assert_eq!(
            "raid7".parse::<SchemeKind>().unwrap_err().to_string(),
            "scheme: found \"raid7\", expected one of raid eplog parity-log elastic was"
        );
        assert_eq!(
            Role::from_code(0).unwrap_err().to_string(),
            "role: found 0, expected one of 1=main 2=log 3=spare"
        );
    }
}
