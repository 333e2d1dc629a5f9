//! Speed of the codes: GB/s of data, hot buffers, one thread.
//!
//! `cargo bench -p elastripe-erasure [-- FILTER...]`: rows whose label contains every FILTER. Every
//! measurement is repeated in many interleaved rounds, so that a disturbance of the machine spoils a round
//! and not an operation.
#![allow(clippy::unwrap_used, reason = "a benchmark that cannot go on fails")]

use erasure::{Backend, Code, CodeKind};
use std::hint::black_box;
use std::time::Instant;

const ROUND_COUNT: usize = 300;
/// Work of one measurement: long against the clock's resolution, short against a time slice.
const ROUND_BYTES: usize = 8 << 20;
const CHUNK_SIZES: [usize; 3] = [4 << 10, 16 << 10, 64 << 10];

type Run = Box<dyn FnMut(&mut [u8])>;

struct Operation {
    label: String,
    /// Bytes of data that one run stands for.
    data_bytes: usize,
    run: Run,
    /// GB/s of every round.
    rates: Vec<f64>,
}

/// A page-aligned region, as chunks of a pool are.
struct Region {
    memory: Vec<u8>,
    start: usize,
}

impl Region {
    fn new(size: usize, byte: fn(usize) -> u8) -> Self {
        let mut memory = vec![0; size + 4096];
        let start = memory.as_ptr().align_offset(4096);
        memory.truncate(start + size);
        memory[start..].iter_mut().enumerate().for_each(|(i, place)| *place = byte(i));
        Self { memory, start }
    }

    fn bytes(&self) -> &[u8] {
        &self.memory[self.start..]
    }
}

fn operations(backend: Backend, len: usize) -> Vec<Operation> {
    let mut operations = Vec::new();
    let mut add = |name: &str, chunk_count: usize, run: Run| {
        let label = format!("{name:<28} {:>3} KiB {:<8}", len >> 10, backend.name());
        operations.push(Operation { label, data_bytes: chunk_count * len, run, rates: Vec::new() });
    };
    let at = move |piece: usize| piece * len;
    for (kind, k, m) in [
        (CodeKind::Xor, 6, 1),
        (CodeKind::Cauchy, 4, 1),
        (CodeKind::Cauchy, 6, 2),
        (CodeKind::Rdp, 6, 2),
        (CodeKind::Cauchy, 6, 3),
        (CodeKind::Cauchy, 8, 4),
        (CodeKind::Cauchy, 14, 2),
        (CodeKind::Rdp, 14, 2),
        (CodeKind::Cauchy, 20, 2),
        (CodeKind::Rdp, 20, 2),
    ] {
        let code = Code::new(kind, k, m).unwrap().with_backend(backend).unwrap();
        let columns: Vec<usize> = (0..k).collect();
        let inputs: Vec<usize> = (0..k).map(at).collect();
        let outputs: Vec<usize> = (k..k + m).map(at).collect();
        let (encoder, encoder_outputs, encoder_columns) = (code.clone(), outputs.clone(), columns.clone());
        let run = move |region: &mut [u8]| {
            encoder.encode_in(
                &mut erasure::Region::new(region, len),
                &encoder_columns,
                &inputs,
                &encoder_outputs,
            )
        };
        add(&format!("encode {kind} {k}+{m}"), k, Box::new(run));
        if (k, m) == (6, 1) || (k, m) == (6, 2) || (k, m) == (6, 3) {
            let updater = code.clone();
            let run = move |region: &mut [u8]| {
                updater.update_in(
                    &mut erasure::Region::new(region, len),
                    1,
                    Some(at(1)),
                    Some(at(11)),
                    &outputs,
                )
            };
            add(&format!("update {kind} {k}+{m}"), 1, Box::new(run));
        }
        for lost in 1..=m {
            if k != 6 && m != 2 {
                continue;
            }
            let (decoder, decoder_columns) = (code.clone(), columns.clone());
            let present: Vec<_> = (lost..k + m).map(|piece| (piece, at(piece))).collect();
            let wanted: Vec<_> = (0..lost).map(|piece| (piece, at(piece))).collect();
            let run = move |region: &mut [u8]| {
                decoder
                    .rebuild_in(&mut erasure::Region::new(region, len), &decoder_columns, &present, &wanted)
                    .unwrap();
            };
            add(&format!("rebuild {lost} of {kind} {k}+{m}"), k, Box::new(run));
        }
    }
    let zeros = Region::new(len, |_| 0);
    let run = move |_: &mut [u8]| assert!(erasure::is_zero(black_box(zeros.bytes())));
    add("is_zero", 1, Box::new(run));
    operations
}

fn measure(operation: &mut Operation, region: &mut [u8]) {
    let count = (ROUND_BYTES / operation.data_bytes).clamp(1, 400);
    (operation.run)(region);
    let start = Instant::now();
    for _ in 0..count {
        (operation.run)(black_box(region));
    }
    let seconds = start.elapsed().as_secs_f64();
    operation.rates.push((count * operation.data_bytes) as f64 / seconds / 1e9);
}

fn main() {
    let filters: Vec<String> =
        std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    let mut operations: Vec<Operation> = Vec::new();
    for len in CHUNK_SIZES {
        for &backend in Backend::ALL.iter().filter(|backend| backend.is_available()) {
            operations.extend(self::operations(backend, len));
        }
    }
    operations.retain(|operation| filters.iter().all(|filter| operation.label.contains(filter.as_str())));
    let scalar = |operation: &Operation| operation.label.contains("scalar");
    let mut region = Region::new(32 * CHUNK_SIZES[2], |i| ((i * 31) >> 3) as u8);
    let region = &mut region.memory[region.start..];
    for round in 0..ROUND_COUNT {
        for operation in operations.iter_mut().filter(|operation| round < 3 || !scalar(operation)) {
            measure(operation, region);
        }
    }
    println!("{:<48} {:>8} {:>8}  GB/s of data, {ROUND_COUNT} rounds", "", "best", "median");
    for operation in &mut operations {
        operation.rates.sort_by(f64::total_cmp);
        let (best, median) = (operation.rates.last().unwrap(), operation.rates[operation.rates.len() / 2]);
        println!("{:<48} {best:>8.1} {median:>8.1}", operation.label);
    }
}
