//! The line that labels a generated trace as synthetic: a comment at its beginning that the reader of the
//! common form passes over, and from which everything can be generated again.

use super::{Profile, RANGE_BYTES_MAX};
use std::fmt;

const BEGIN: &str = "# elastripe synthetic:";

/// What a synthetic trace says of itself.
///
/// `# elastripe synthetic: profile=zipf:0.99 requests=1000000 seed=7 range=1073741824`; `range` with `zipf`
/// and `uniform` only.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Label {
    /// The kind of trace.
    pub profile: Profile,
    /// Requests generated.
    pub request_count: u64,
    /// Seed it was generated from.
    pub seed: u64,
    /// Bytes of the range of `zipf` and `uniform`.
    pub range_bytes: Option<u64>,
}

impl Label {
    /// Reads a label; `None` if the line is none.
    pub fn parse(line: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(line).ok()?.trim_end().strip_prefix(BEGIN)?;
        let (mut profile, mut request_count, mut seed, mut range_bytes) = (None, None, None, None);
        for word in text.split_ascii_whitespace() {
            let (key, value) = word.split_once('=')?;
            match key {
                "profile" => profile = Some(value.parse().ok()?),
                "requests" => request_count = Some(value.parse().ok().filter(|&count| count > 0)?),
                "seed" => seed = Some(value.parse().ok()?),
                "range" => range_bytes = Some(value.parse().ok().filter(|&bytes| bytes <= RANGE_BYTES_MAX)?),
                // Of a later version.
                _ => {}
            }
        }
        Some(Self { profile: profile?, request_count: request_count?, seed: seed?, range_bytes })
    }

    /// Whether it has as many requests as published; true where nothing is.
    pub fn is_full_length(&self) -> bool {
        self.profile.published_request_count().is_none_or(|full| full == self.request_count)
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { profile, request_count, seed, range_bytes } = self;
        write!(f, "{BEGIN} profile={profile} requests={request_count} seed={seed}")?;
        range_bytes.map_or(Ok(()), |bytes| write!(f, " range={bytes}"))
    }
}
