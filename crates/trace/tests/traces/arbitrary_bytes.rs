//! Whatever bytes a file holds: no reader panics, every reader ends, and what it yields is within bounds.

use proptest::prelude::*;
use trace::{
    BlkparseAction, DevMode, Format, MAX_END_BYTES, MAX_TRANSFER_BYTES, PrepareOptions, ReadOptions, Request,
    SkipPolicy, StatsCollector, StatsOptions, TraceReader, prepare_slice,
};

/// Reads everything in every way; checks bounds; returns the requests that skipping bad lines
/// gives, per format.
fn read_all_ways(content: &[u8]) -> Vec<Vec<Request>> {
    let mut all = Vec::new();
    let formats = Format::ALL.into_iter().map(Some).chain([None]);
    for format in formats {
        for blkparse_action in [BlkparseAction::Auto, BlkparseAction::Queue, BlkparseAction::Issue] {
            for skip_bad_lines in [SkipPolicy::Fail, SkipPolicy::Skip { limit: u64::MAX }] {
                let options = ReadOptions { format, skip_bad_lines, blkparse_action, columns: None };
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

/// Numbers at the edges of what fits somewhere, and ordinary ones.
fn number() -> impl Strategy<Value = String> {
    let edges = prop::sample::select(vec![
        "0",
        "1",
        "7",
        "512",
        "2047",
        "4096",
        "1048576",
        "1073741824",
        "1073741825",
        "2147483648",
        "4294967295",
        "4294967296",
        "18014398509481983",
        "36028797018963967",
        "9223372036854775807",
        "9223372036854775808",
        "18446744073709551104",
        "18446744073709551615",
        "18446744073709551616",
        "-1",
        "",
        "0.5",
        "1e9",
        "\0",
    ]);
    prop_oneof![3 => edges.prop_map(str::to_owned), 1 => any::<u64>().prop_map(|number| number.to_string())]
}

/// A line of a real shape with numbers of our own, `#` marking their places.
fn line() -> impl Strategy<Value = Vec<u8>> {
    let shape = prop::sample::select(vec![
        "#,0,W,#,#\n",
        "0,#,R,#,#\n",
        "#,#,T,#,#\n",
        "0,#,#,W,0.5\n",
        "#,#,#,r,#.#\n",
        "#,h,0,Write,#,#,1\n",
        "1,i,#,Read,#,512,#\n",
        "# 2 p # # W 8 0 ab\n",
        "1 2 p 8 # R # # ab\n",
        "8,0 0 1 0.0 1 Q W # + # [a]\n",
        "#,# 0 1 # 1 D R 8 + # [a]\n",
        "8,0 0 1 0.0 1 Q D # + # [a]\n",
        "dev0 write # #\n",
        "dev# read # #\n",
        "dev1 wait # 0\n",
        "dev1 sync # #\n",
        "# dev0 trim # #\n",
        "# x write # #\n",
    ]);
    (shape, prop::collection::vec(number(), 5)).prop_map(|(shape, numbers)| {
        let filled = numbers.iter().fold(shape.to_owned(), |line, number| line.replacen('#', number, 1));
        filled.into_bytes()
    })
}

/// Lines, pieces of lines and noise.
fn pieces() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop::sample::select(vec![
        ",",
        " ",
        "\n",
        "\t",
        "R",
        "Read",
        "Q",
        "+",
        "8,0",
        "0",
        "-1",
        "\r\n",
        "\u{feff}",
        "dev0",
        "add",
        "CPU0 (8,0):\n",
        "FWS",
        "N",
        "ts_us,dev,op,offset,len\n",
        "0,0,W,0,512\n",
    ]);
    let part = prop_oneof![
        8 => line(),
        1 => piece.prop_map(|piece| piece.as_bytes().to_vec()),
        1 => any::<[u8; 3]>().prop_map(|bytes| bytes.to_vec()),
    ];
    let header = prop::sample::select(vec!["", "", "fio version 2 iolog\n", "fio version 3 iolog\n"]);
    (header, prop::collection::vec(part, 0..60)).prop_map(|(header, parts)| {
        let mut content = header.as_bytes().to_vec();
        content.extend(parts.concat());
        content
    })
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
