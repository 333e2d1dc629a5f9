//! Files that are written under another name until they are whole, so that an error leaves nothing behind and destroys nothing.

use std::path::{Path, PathBuf};

/// The other name: beside the file, of this process.
pub fn name_of(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(format!(".{}.partial", std::process::id()));
    PathBuf::from(name)
}
