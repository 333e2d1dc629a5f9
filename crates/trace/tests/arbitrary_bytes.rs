//! Whatever bytes a file holds: no reader panics, every reader ends, and what it yields is within bounds.
#![allow(clippy::unwrap_used, reason = "tests")]

use proptest::prelude::*;
use trace::{
    BlkparseAction, DevMode, Format, MAX_END_BYTES, MAX_TRANSFER_BYTES, PrepareOptions, ReadOptions, Request,
    SkipPolicy, StatsCollector, StatsOptions, TraceReader, prepare_slice,
};

/// Reads everything in every way; checks bounds; returns the requests that skipping bad lines gives, per format.
fn read_all_ways(content: &[u8]) -> Vec<Vec<Request>> {
    let mut all = Vec::new();
    let formats = Format::ALL.into_iter().map(Some).chain([None]);
    for format in formats {
        for blkparse_action in [BlkparseAction::Auto, BlkparseAction::Queue, BlkparseAction::Issue] {
            for skip_bad_lines in [SkipPolicy::Fail, SkipPolicy::Skip { limit: u64::MAX }] {
                let options = ReadOptions { format, skip_bad_lines, blkparse_action };
                let source = Box::new(std::io::Cursor::new(content.to_vec()));
                let Ok(mut reader) = TraceReader::from_reader("t", source, &options) else { continue };
                let mut requests = Vec::new();
                for item in reader.by_ref() {
                    let Ok(request) = item else { continue };
                    assert!(request.end_bytes() <= MAX_END_BYTES);
                    assert!(!request.is_transfer() || request.length_bytes <= MAX_TRANSFER_BYTES);
                    requests.push(request);
                }
                assert!(reader.next().is_none());
                assert!(requests.len() as u64 <= reader.line_count());
                if skip_bad_lines != SkipPolicy::Fail {
                    all.push(requests);
                }
            }
        }
    }
    all
}

/// Statistics and preparation of whatever was read; long transfers are left out to keep the test small.
fn use_requests(requests: &[Request]) {
    let short: Vec<_> = requests.iter().copied().filter(|request| request.length_bytes < 1 << 24).collect();
    for dev_mode in [DevMode::Concatenate, DevMode::Ignore] {
        let mut collector = StatsCollector::new(StatsOptions { chunk_bytes: 4096, dev_mode }).unwrap();
        for request in &short {
            collector.add(request).unwrap();
        }
        let stats = collector.finish();
        assert!(stats.unique_chunk_count <= stats.chunk_write_count);
        assert!(stats.top_fifth_write_count <= stats.chunk_write_count);
        assert!(!stats.to_string().is_empty());
        for compact in [false, true] {
            let options =
                PrepareOptions { compact, dev_mode, writes_only: false, ..PrepareOptions::default() };
            // Devices laid end to end may be too large without compaction; that is an error.
            let Ok(prepared) = prepare_slice(&short, &options) else {
                assert!(!compact);
                continue;
            };
            let footprint = prepared.footprint_bytes();
            for request in prepared {
                assert!(request.unwrap().end_bytes() <= footprint);
            }
        }
    }
}

/// Pieces of real lines and extremes, so that arbitrary files get past the first field.
fn pieces() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        8 => prop::sample::select(vec![
            ",", " ", "\n", "\n", "\t", "R", "W", "F", "T", "Read", "Write", "Q", "D", "+", "[a]", "8,0", "0", "1",
            "512", "4096", "0.5", "18446744073709551615", "9223372036854775807", "18446744073709551616",
            "36028797018963967", "4294967295", "-1", "\0", "\r\n", "\u{feff}", "dev0", "dev1", "add", "open", "wait",
            "read", "write", "sync", "trim", "fio version 2 iolog\n", "fio version 3 iolog\n",
            "ts_us,dev,op,offset,len\n", "0,0,W,0,512\n", "0,8,4096,W,0.0\n", "1,h,0,Write,0,512,1\n",
            "1 2 p 8 8 W 8 0 ab\n", "8,0 0 1 0.0 1 Q W 8 + 8 [a]\n", "CPU0 (8,0):\n", "FWS", "RA", "N",
        ]).prop_map(|piece| piece.as_bytes().to_vec()),
        1 => any::<[u8; 3]>().prop_map(|bytes| bytes.to_vec()),
        1 => any::<u64>().prop_map(|number| number.to_string().into_bytes()),
    ];
    prop::collection::vec(piece, 0..120).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

    #[test]
    fn arbitrary(content in prop::collection::vec(any::<u8>(), 0..2000)) {
        read_all_ways(&content);
    }

    #[test]
    fn nearly_traces(content in pieces()) {
        for requests in read_all_ways(&content) {
            use_requests(&requests);
        }
    }

    #[test]
    fn damaged_compressed_traces(
        content in pieces(),
        zstd in any::<bool>(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut packed = if zstd {
            zstd::encode_all(&content[..], 1).unwrap()
        } else {
            let mut packed = Vec::new();
            let mut encoder = flate2::read::GzEncoder::new(&content[..], flate2::Compression::fast());
            std::io::Read::read_to_end(&mut encoder, &mut packed).unwrap();
            packed
        };
        for (at, byte) in damage {
            let at = at.index(packed.len());
            packed[at] = byte;
        }
        packed.truncate(cut.index(packed.len() + 1));
        read_all_ways(&packed);
    }
}
