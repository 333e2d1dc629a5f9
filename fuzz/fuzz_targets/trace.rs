//! Any bytes as a trace, in each format or detected: the reader ends, within bounds. The first byte
//! names the format, or has the line in front of the others name the columns.
#![no_main]

use trace::{
    BlkparseAction, Format, MAX_END_BYTES, MAX_TRANSFER_BYTES, ReadOptions, SkipPolicy, StatsCollector,
    StatsOptions, TraceReader,
};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let Some((&which, content)) = data.split_first() else { return };
    let blkparse_action = match which >> 4 & 3 {
        0 => BlkparseAction::Queue,
        1 => BlkparseAction::Issue,
        _ => BlkparseAction::Auto,
    };
    let first_line = content.split(|&byte| byte == b'\n').next().and_then(|line| str::from_utf8(line).ok());
    let columns = first_line.filter(|_| which & 0x40 != 0).and_then(|line| line.parse().ok());
    let options = ReadOptions {
        format: Format::ALL.get(usize::from(which & 7)).copied(),
        skip_bad_lines: if which & 0x80 == 0 {
            SkipPolicy::Skip { limit: u64::MAX }
        } else {
            SkipPolicy::Fail
        },
        blkparse_action,
        columns,
    };
    let source = Box::new(std::io::Cursor::new(content.to_vec()));
    let Ok(mut reader) = TraceReader::from_reader("fuzzed", source, &options) else { return };
    let mut stats = StatsCollector::new(StatsOptions::default()).expect("good options");
    let mut count = 0u64;
    for request in reader.by_ref().flatten() {
        count += 1;
        assert!(request.end_bytes() <= MAX_END_BYTES);
        assert!(!request.is_transfer() || request.length_bytes <= MAX_TRANSFER_BYTES);
        // Statistics walk every chunk of a request: long ones would only take time.
        if request.length_bytes < 1 << 20 {
            let _ = stats.add(&request);
        }
    }
    assert!(reader.next().is_none());
    assert!(count <= reader.line_count());
    assert!(!stats.finish().to_string().is_empty());
});
