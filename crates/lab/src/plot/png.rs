//! From SVG to PNG, with the bundled font and no other: the same pixels on every machine.

use crate::failure::Failure;
use resvg::{tiny_skia, usvg};
use std::sync::Arc;

/// Roboto Regular; see `fonts/README.md`.
const FONT: &[u8] = include_bytes!("../../fonts/Roboto-Regular.ttf");
/// As journals ask for.
const DOTS_PER_INCH: f64 = 300.0;
/// The same per meter, as PNG says it.
const DOTS_PER_METER: u32 = 11_811;
const POINTS_PER_INCH: f64 = 72.0;

/// Draws an SVG that is so many points wide; `about` says in the file what made it.
pub fn from_svg(svg: &str, width_points: f64, about: &str) -> Result<Vec<u8>, Failure> {
    let failed = |what: &dyn std::fmt::Display| Failure::new(format!("plot: cannot draw it as PNG: {what}"));
    let mut options = usvg::Options { font_family: "Roboto".to_owned(), ..usvg::Options::default() };
    let fonts = Arc::make_mut(&mut options.fontdb);
    fonts.load_font_data(FONT.to_vec());
    fonts.set_sans_serif_family("Roboto");
    let tree = usvg::Tree::from_str(svg, &options).map_err(|error| failed(&error))?;
    let scale = width_points / POINTS_PER_INCH * DOTS_PER_INCH / f64::from(tree.size().width());
    let pixels = |length: f32| (f64::from(length) * scale).round() as u32;
    let (width, height) = (pixels(tree.size().width()), pixels(tree.size().height()));
    let mut pixmap = tiny_skia::Pixmap::new(width, height)
        .ok_or_else(|| failed(&format!("found {width} x {height} pixels, expected some, and less")))?;
    // The last row may be covered in part only.
    pixmap.fill(tiny_skia::Color::WHITE);
    let transform = tiny_skia::Transform::from_scale(scale as f32, scale as f32);
    resvg::render(&tree, transform, &mut pixmap.as_mut());
    // Nothing is transparent.
    let colours: Vec<u8> =
        pixmap.pixels().iter().flat_map(|pixel| [pixel.red(), pixel.green(), pixel.blue()]).collect();
    let mut out = Vec::new();
    let mut encoder = png::Encoder::new(&mut out, width, height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.set_pixel_dims(Some(png::PixelDimensions {
        xppu: DOTS_PER_METER,
        yppu: DOTS_PER_METER,
        unit: png::Unit::Meter,
    }));
    encoder.add_itxt_chunk("Description".to_owned(), about.to_owned()).map_err(|error| failed(&error))?;
    let mut writer = encoder.write_header().map_err(|error| failed(&error))?;
    writer.write_image_data(&colours).map_err(|error| failed(&error))?;
    writer.finish().map_err(|error| failed(&error))?;
    Ok(out)
}
