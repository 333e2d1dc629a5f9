//! How fast a trace file is read, counted and prepared: `cargo run --release --example speed -- FILE...`
//!
//! Prints MB/s of the file as stored (decompress it first to see the rate of text).

use std::time::Instant;
use trace::{PrepareOptions, ReadOptions, StatsCollector, StatsOptions, TraceReader, prepare};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    for path in std::env::args_os().skip(1) {
        let size_mb = std::fs::metadata(&path)?.len() as f64 / 1e6;
        let open = || TraceReader::open(&path, &ReadOptions::default());
        let rate = |start: Instant| size_mb / start.elapsed().as_secs_f64();

        let start = Instant::now();
        let mut end_max = 0;
        let mut reader = open()?;
        for request in reader.by_ref() {
            end_max = end_max.max(request?.end_bytes());
        }
        let read = rate(start);

        let start = Instant::now();
        let mut collector = StatsCollector::new(StatsOptions::default())?;
        for request in open()? {
            collector.add(&request?)?;
        }
        let counted = rate(start);

        let start = Instant::now();
        let mut prepared = prepare(open, &PrepareOptions::default())?;
        for request in prepared.by_ref() {
            end_max = end_max.max(request?.end_bytes());
        }
        println!(
            "{} {} lines, {size_mb:.0} MB: read {read:.0} MB/s, statistics {counted:.0}, preparation (two passes) {:.0}",
            reader.format(),
            reader.line_count(),
            rate(start)
        );
        println!("{}\nlast byte {end_max}\n", collector.finish());
    }
    Ok(())
}
