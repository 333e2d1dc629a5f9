//! Makes a synthetic trace: `cargo run --example synthesize -- OUT [REQUESTS [VOLUME_MIB [SEED]]]`, in the
//! common CSV form, compressed as the name of `OUT` says; the rest is [`SyntheticOptions::default`]. Results
//! on it must be labelled as synthetic.

use trace::{OutputFormat, Synthetic, SyntheticOptions, TraceWriter};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let out = arguments.next().ok_or("expected: OUT [REQUESTS [VOLUME_MIB [SEED]]]")?;
    let mut options = SyntheticOptions::default();
    if let Some(count) = arguments.next() {
        options.request_count = count.parse()?;
    }
    if let Some(mebibytes) = arguments.next() {
        options.volume_bytes = mebibytes.parse::<u64>()? << 20;
    }
    if let Some(seed) = arguments.next() {
        options.seed = seed.parse()?;
    }
    let mut writer = TraceWriter::create(&out, OutputFormat::Common)?;
    for request in Synthetic::new(options)? {
        writer.write(&request)?;
    }
    println!("{out}: {} requests", writer.finish()?.written_count);
    Ok(())
}
