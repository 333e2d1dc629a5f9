//! What is written is read back: everything in the common form, with the documented losses in the others.

use proptest::prelude::*;
use std::path::Path;
use trace::{
    Format, Op, OutputFormat, ReadOptions, Request, TraceReader, TraceWriter, WriteError, WriteSummary,
    convert,
};

fn write(path: &Path, format: OutputFormat, requests: &[Request]) -> WriteSummary {
    convert(requests.iter().copied().map(Ok), TraceWriter::create(path, format).unwrap()).unwrap()
}

fn read(path: &Path, format: Format) -> Vec<Request> {
    let options = ReadOptions { format: Some(format), ..ReadOptions::default() };
    TraceReader::open(path, &options).unwrap().map(Result::unwrap).collect()
}

/// Writes and reads back under each kind of name.
fn back(output: OutputFormat, input: Format, requests: &[Request]) -> (WriteSummary, Vec<Request>) {
    let folder = tempfile::tempdir().unwrap();
    let mut results = ["t", "t.zst", "t.gz", "t.XZ"].map(|name| {
        let path = folder.path().join(name);
        let summary = write(&path, output, requests);
        let magic: &[u8] = match name {
            "t.zst" => &[0x28, 0xb5, 0x2f, 0xfd],
            "t.gz" => &[0x1f, 0x8b],
            "t.XZ" => b"\xfd7zXZ\0",
            _ => &[],
        };
        assert!(std::fs::read(&path).unwrap().starts_with(magic));
        Some((summary, read(&path, input)))
    });
    assert!(results.iter().all(|result| *result == results[0]));
    results[0].take().unwrap()
}

fn request() -> impl Strategy<Value = Request> {
    let op = prop::sample::select(vec![Op::Read, Op::Write, Op::Write, Op::Flush, Op::Trim]);
    // Sectors, as SPC demands; times below the year 58,000, as file times demand.
    (0u64..1 << 50, 0u32..1 << 31, op, 0u64..1 << 50, 0u64..1 << 20).prop_map(
        |(time_us, dev, op, sector, sectors)| {
            let flush = op == Op::Flush;
            let (offset_bytes, length_bytes) = if flush { (0, 0) } else { (sector * 512, sectors * 512) };
            Request { time_us, dev, op, offset_bytes, length_bytes }
        },
    )
}

fn transfers(requests: &[Request]) -> Vec<Request> {
    requests.iter().copied().filter(Request::is_transfer).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(60) })]

    #[test]
    fn every_format(mut requests in prop::collection::vec(request(), 0..60)) {
        let (summary, found) = back(OutputFormat::Common, Format::Common, &requests);
        prop_assert_eq!(&found, &requests);
        prop_assert_eq!(summary.written_count, requests.len() as u64);

        let kept = transfers(&requests);
        let (summary, found) = back(OutputFormat::Spc, Format::Spc, &requests);
        prop_assert_eq!(&found, &kept);
        prop_assert_eq!(summary.left_out_count, (requests.len() - kept.len()) as u64);

        let (_, found) = back(OutputFormat::Msr, Format::Msr, &requests);
        let first_us = kept.first().map_or(0, |first| first.time_us);
        let shifted: Vec<_> = kept
            .iter()
            .map(|request| Request { time_us: request.time_us.saturating_sub(first_us), ..*request })
            .collect();
        prop_assert_eq!(&found, &shifted);

        requests.sort_by_key(|request| request.time_us);
        let (summary, found) = back(OutputFormat::Fio, Format::Fio, &requests);
        prop_assert_eq!(summary.left_out_count, 0);
        prop_assert_eq!(found.len(), requests.len());
        for (found, request) in found.iter().zip(&requests) {
            prop_assert!(found.time_us <= request.time_us && request.time_us - found.time_us < 100);
            prop_assert_eq!(Request { time_us: request.time_us, ..*found }, *request);
        }
    }
}

/// From the published format through every other and back to the common form.
#[test]
fn a_chain_of_formats_keeps_a_real_trace() {
    let Some(path) = crate::common::shared_trace("fin1_head10k.csv.zst") else { return };
    let original = read(&path, Format::Common);
    let mut requests = original.clone();
    for (output, input) in [
        (OutputFormat::Spc, Format::Spc),
        (OutputFormat::Msr, Format::Msr),
        (OutputFormat::Common, Format::Common),
    ] {
        requests = back(output, input, &requests).1;
    }
    assert_eq!(requests, original);
}

#[test]
fn what_a_format_cannot_say_is_an_error() {
    let request = Request { time_us: 0, dev: 0, op: Op::Write, offset_bytes: 100, length_bytes: 512 };
    let sink = || Box::new(std::io::sink());
    let mut spc = TraceWriter::new("x", sink(), OutputFormat::Spc, trace::Compression::None).unwrap();
    let error = spc.write(&request).unwrap_err();
    assert!(matches!(error, WriteError::NotExpressible { number: 1, .. }));
    assert!(error.to_string().ends_with("its offset is not a multiple of 512 bytes"), "{error}");

    let mut msr = TraceWriter::new("x", sink(), OutputFormat::Msr, trace::Compression::None).unwrap();
    assert!(msr.write(&Request { time_us: u64::MAX, ..request }).is_err());
    assert!(msr.write(&Request { dev: u32::MAX, ..request }).is_err());

    // A flush has no place that could be out of bounds.
    let flush = Request { op: Op::Flush, offset_bytes: u64::MAX, ..request };
    for format in [OutputFormat::Common, OutputFormat::Fio] {
        let mut writer = TraceWriter::new("x", sink(), format, trace::Compression::None).unwrap();
        writer.write(&flush).unwrap();
    }

    let packed = TraceWriter::create("/nonexistent/x.csv.bz2", OutputFormat::Common);
    assert!(matches!(packed, Err(WriteError::Packing { .. })));
    let nowhere = TraceWriter::create("/nonexistent/x.csv", OutputFormat::Common);
    assert!(matches!(nowhere, Err(WriteError::Create { .. })));
}
