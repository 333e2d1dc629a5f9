//! Where a plot goes: found out before the run that it shows, written whole or not at all.

use super::Figure;
use crate::failure::Failure;
use crate::partial;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// The formats, by the file's ending.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Format {
    Svg,
    #[cfg(feature = "png")]
    Png,
}

/// A file that a plot can be written to.
#[derive(Debug)]
pub struct Target {
    path: PathBuf,
    format: Format,
}

impl Target {
    /// Checks ending and folder; `option` is what named the file.
    pub fn new(option: &str, path: &Path) -> Result<Self, Failure> {
        let named = |what: &str| Failure::new(format!("{option} {}: {what}", path.display()));
        let ending = path.extension().unwrap_or_default().to_ascii_lowercase();
        let format = match ending.to_str() {
            Some("svg") => Format::Svg,
            #[cfg(feature = "png")]
            Some("png") => Format::Png,
            #[cfg(not(feature = "png"))]
            Some("png") => return Err(named("this build draws no PNG; expected a name that ends in .svg")),
            Some(_) | None => return Err(named("expected a name that ends in .svg or .png")),
        };
        if path.is_dir() {
            return Err(named("found a folder, expected a file"));
        }
        let target = Self { path: path.to_path_buf(), format };
        // Whoever may make the file now may do so when the run has ended.
        target.through(|_| Ok(())).map_err(|error| named(&format!("cannot write there: {error}")))?;
        Ok(target)
    }

    /// Draws a figure into it.
    pub fn write(&self, figure: &Figure) -> Result<(), Failure> {
        let svg = figure.svg()?;
        let bytes = match self.format {
            Format::Svg => svg.into_bytes(),
            #[cfg(feature = "png")]
            Format::Png => super::png::from_svg(&svg, figure.width.points())?,
        };
        self.through(|partial| {
            OpenOptions::new().write(true).open(partial)?.write_all(&bytes)?;
            fs::rename(partial, &self.path)
        })
        .map_err(|error| Failure::new(format!("{}: cannot write: {error}", self.path.display())))
    }

    /// Makes a file of another name beside it, lets it be used, and takes it away if it is still there.
    fn through(&self, mut with: impl FnMut(&Path) -> std::io::Result<()>) -> std::io::Result<()> {
        let other = partial::name_of(&self.path);
        OpenOptions::new().write(true).create_new(true).open(&other)?;
        let done = with(&other);
        // After a rename it is gone, and the first error is the one to report.
        let _ = fs::remove_file(&other);
        done
    }
}
