//! Speed of the chunk checksum beside the library alone, GB/s of hot chunks, one thread, in alternating
//! rounds: `cargo bench -p elastripe-checksum`.

use std::hint::black_box;
use std::time::Instant;

const ROUNDS: usize = 301;
/// Work of one measurement: long against the clock's resolution, short against a time slice.
const ROUND_BYTES: usize = 8 << 20;

fn rate(chunk: &[u8], checksum: fn(&[u8]) -> u64) -> f64 {
    let runs = ROUND_BYTES / chunk.len();
    let start = Instant::now();
    for _ in 0..runs {
        black_box(checksum(black_box(chunk)));
    }
    (runs * chunk.len()) as f64 / start.elapsed().as_secs_f64() / 1e9
}

fn median(mut rates: Vec<f64>) -> f64 {
    rates.sort_by(f64::total_cmp);
    rates[rates.len() / 2]
}

fn main() {
    println!("chunk      library GB/s   ours GB/s   ratio");
    for len in [4 << 10, 16 << 10, 64 << 10] {
        let chunk: Vec<u8> = (0..len).map(|i: usize| (i * i / 7) as u8).collect();
        let (mut library, mut ours) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            library.push(rate(&chunk, crc_fast::crc64_nvme));
            ours.push(rate(&chunk, |bytes| checksum::chunk_checksum(bytes).into()));
        }
        let (library, ours) = (median(library), median(ours));
        println!("{:>3} KiB {library:>16.1} {ours:>11.1} {:>7.2}", len >> 10, ours / library);
    }
}
