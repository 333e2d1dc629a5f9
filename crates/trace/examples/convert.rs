//! Converts a trace: `cargo run --example convert -- FROM TO csv|spc|msr|fio`. The input's format is
//! detected, the output is compressed as its name says.

use trace::{OutputFormat, ReadOptions, TraceReader, TraceWriter, convert};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let [from, to, format] = arguments.as_slice() else {
        return Err("expected three arguments: FROM TO csv|spc|msr|fio".into());
    };
    let format: OutputFormat = format.parse()?;
    let reader = TraceReader::open(from, &ReadOptions::default())?;
    let summary = convert(reader, TraceWriter::create(to, format)?)?;
    println!("{} requests written, {} left out", summary.written_count, summary.left_out_count);
    Ok(())
}
