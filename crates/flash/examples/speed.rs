//! Flash page writes per processor second of counting alone: `speed [logical GiB] [spare]`.
use flash::{Queue, Run, RunOptions, Ssd, SsdConfig};
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let gib: f64 = args.next().map_or(Ok(4.0), |text| text.parse())?;
    let spare: f64 = args.next().map_or(Ok(1.07), |text| text.parse())?;
    let config = SsdConfig::counting((gib * 262_144.0) as u64, spare, 64, 4096)?;
    let mut ssd = Ssd::new(config)?;
    let mut run = Run::new(&RunOptions::default(), ssd.logical_pages())?;
    let mut queue = Queue::new(1);
    while !run.is_counting() {
        run.step(&mut ssd, u64::MAX, &mut queue, |_| ())?;
    }
    let start = std::time::Instant::now();
    while run.step(&mut ssd, u64::MAX, &mut queue, |_| ())? {}
    let rate = ssd.counters().flash_pages_written() as f64 / start.elapsed().as_secs_f64() / 1e6;
    println!("wa {:.4} {rate:.1} M/s", ssd.counters().write_amplification());
    Ok(())
}
