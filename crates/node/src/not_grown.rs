//! Why an array does not grow, in words for operators.

use crate::units::show_size;
use array::GrowError;
use std::fmt;
use std::path::PathBuf;

/// Why an array does not grow, with the member as operators know it.
#[derive(Debug)]
pub struct NotGrown {
    /// What the array is called.
    pub array: String,
    /// The member that it is about.
    pub member: Option<(String, Option<PathBuf>)>,
    /// Why.
    pub source: GrowError,
}

impl std::error::Error for NotGrown {}

impl fmt::Display for NotGrown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let who = match &self.member {
            Some((name, Some(path))) => format!("{name} ({})", path.display()),
            Some((name, None)) => name.clone(),
            None => String::new(),
        };
        write!(f, "array {}: ", self.array)?;
        match &self.source {
            GrowError::TooSmall { found_bytes, used_bytes, needed_bytes, .. } => write!(
                f,
                "{who} is the smallest data device with {}, of which {} are used: {} ({needed_bytes} bytes) are needed to grow \
                 at all, {} more; make it larger, or `replace` it by a larger one",
                show_size(*found_bytes),
                show_size(*used_bytes),
                show_size(*needed_bytes),
                show_size(needed_bytes.saturating_sub(*found_bytes))
            ),
            GrowError::Shrunk { found_bytes, used_bytes, .. } => write!(
                f,
                "{who} has {found_bytes} bytes, the array uses {used_bytes} of it: it has shrunk, and is no whole member"
            ),
            GrowError::NotWhole { what, .. } => write!(
                f,
                "{who} is {what}: every member must be in service and whole before the array grows (`replace` it, or take it back \
                 with `online`)"
            ),
            GrowError::MemberFailed { .. } => write!(
                f,
                "{who} failed while the array was growing: the array is as large as it was, and degraded; `replace` it, and give \
                 `grow` again"
            ),
            source @ (GrowError::Shapes { .. }
            | GrowError::Resync
            | GrowError::Full { .. }
            | GrowError::Assemble(_)) => source.fmt(f),
        }
    }
}
