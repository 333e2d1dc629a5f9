//! Where a plot goes: found out before the run that it shows.

use super::Figure;
use crate::failure::Failure;
use crate::outfile::OutFile;
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
    option: String,
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
        OutFile::new(option, path)?;
        Ok(Self { option: option.to_owned(), path: path.to_path_buf(), format })
    }

    /// Draws a figure into it.
    pub fn write(&self, figure: &Figure) -> Result<(), Failure> {
        let svg = figure.svg()?;
        let bytes = match self.format {
            Format::Svg => svg.into_bytes(),
            #[cfg(feature = "png")]
            Format::Png => super::png::from_svg(&svg, figure.width.points(), &figure.about)?,
        };
        OutFile::new(&self.option, &self.path)?.write_bytes(&bytes)
    }
}
