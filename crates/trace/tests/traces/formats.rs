//! Every format on a small hand-written file, and what is said of lines that are wrong.

use crate::common::read_text;
use trace::{
    BlkparseAction, Format, LineFault, MAX_LINE_BYTES, Op, ReadOptions, Request, SkipPolicy, TraceError,
    TraceReader, TraceSequence,
};

fn request(time_us: u64, dev: u32, op: Op, offset_bytes: u64, length_bytes: u64) -> Request {
    Request { time_us, dev, op, offset_bytes, length_bytes }
}

#[track_caller]
fn fixture(name: &str, format: Format, expected: &[Request]) {
    let path = format!("{}/tests/fixtures/{name}", env!("CARGO_MANIFEST_DIR"));
    let reader = TraceReader::open(&path, &ReadOptions::default()).unwrap();
    assert_eq!(reader.format(), format);
    let progress = reader.progress();
    assert_eq!(progress.total_bytes(), Some(std::fs::metadata(&path).unwrap().len()));
    let requests: Vec<_> = reader.map(Result::unwrap).collect();
    assert_eq!(requests, expected);
    assert_eq!(Some(progress.consumed_bytes()), progress.total_bytes());
    // The same when the format is given, compressed, and with other line ends.
    let text = std::fs::read(&path).unwrap();
    let given = ReadOptions { format: Some(format), ..ReadOptions::default() };
    let crlf = String::from_utf8(text.clone()).unwrap().replace('\n', "\r\n");
    let crlf = format!("\u{feff}{}", crlf.trim_end());
    let zstd = zstd::encode_all(&text[..], 1).unwrap();
    let mut gzip = flate2::read::GzEncoder::new(&text[..], flate2::Compression::fast());
    let mut gzipped = Vec::new();
    std::io::Read::read_to_end(&mut gzip, &mut gzipped).unwrap();
    for content in [crlf.into_bytes(), zstd, gzipped] {
        assert_eq!(read_text(content.clone(), &given).unwrap(), expected);
        assert_eq!(read_text(content, &ReadOptions::default()).unwrap(), expected);
    }
}

#[test]
fn common_csv() {
    fixture(
        "tiny.csv",
        Format::Common,
        &[
            request(0, 0, Op::Write, 4096, 4096),
            request(1500, 0, Op::Read, 1 << 20, 8192),
            request(1600, 1, Op::Write, 512, 3584),
            request(2000, 1, Op::Flush, 0, 0),
            request(90_000, 0, Op::Trim, 8 << 20, 1 << 20),
        ],
    );
}

/// Neither its offset nor its length counts, so neither can be wrong.
#[test]
fn a_flush_is_a_time_and_a_device() {
    let given = ReadOptions { format: Some(Format::Common), ..ReadOptions::default() };
    let flush = request(7, 1, Op::Flush, 0, 0);
    for line in ["7,1,F,0,0", "7,1,f,512,0", "7,1,F", "7,1,F,", "7,1,F,,", "7,1,F,-1,18446744073709551616"] {
        assert_eq!(read_text(line, &given).unwrap(), [flush], "{line}");
        let behind_a_write = format!("0,0,W,0,512\n{line}\n");
        assert_eq!(read_text(behind_a_write, &ReadOptions::default()).unwrap()[1], flush, "{line}");
    }
    assert!(read_text("7,1,F,0,0,0", &given).is_err());
    assert!(read_text("7,,F,0,0", &given).is_err());
}

#[test]
fn spc() {
    fixture(
        "tiny.spc",
        Format::Spc,
        &[
            request(0, 0, Op::Write, 4096, 4096),
            request(1500, 0, Op::Read, 1 << 20, 8192),
            request(1600, 1, Op::Write, 512, 3584),
            request(12_345_678, 10, Op::Read, 36_028_797_018_963 * 512, 512),
        ],
    );
}

#[test]
fn msr_counts_time_from_the_first_line_and_keeps_hosts_apart() {
    fixture(
        "tiny_msr.csv",
        Format::Msr,
        &[
            request(0, 0, Op::Write, 4096, 4096),
            request(1500, 0, Op::Read, 1 << 20, 8192),
            request(1600, 1, Op::Write, 512, 3584),
            request(1599, 1 << 31, Op::Write, 0, 512),
            request(0, (1 << 31) + 1, Op::Read, 512, 512),
            request(1_000_000, 1 << 31, Op::Read, 0, 512),
        ],
    );
}

#[test]
fn fiu_with_blanks_in_process_names() {
    fixture(
        "tiny.fiu",
        Format::Fiu,
        &[
            request(1, 6 << 20, Op::Write, 4096, 4096),
            request(1501, (8 << 20) | 1, Op::Read, 1 << 20, 8192),
            request(1600, (8 << 20) | 1, Op::Write, 8192, 4096),
        ],
    );
}

#[test]
fn blkparse_takes_queue_events() {
    fixture(
        "tiny.blkparse",
        Format::Blkparse,
        &[
            request(2, 8 << 20, Op::Write, 1 << 20, 4096),
            request(150, 8 << 20, Op::Read, 2 << 20, 16384),
            request(170, (8 << 20) | 16, Op::Flush, 0, 0),
            request(180, (8 << 20) | 16, Op::Write, 32 << 20, 4096),
            request(190, (8 << 20) | 16, Op::Trim, 64 << 20, 1 << 20),
        ],
    );
}

#[test]
fn blkparse_takes_issue_events_if_asked_or_if_nothing_was_queued() {
    let issue = "8,0 0 1 0.000010150 697 D W 2048 + 8 [a]\n";
    let expected = vec![request(10, 8 << 20, Op::Write, 1 << 20, 4096)];
    assert_eq!(read_text(issue, &ReadOptions::default()), Ok(expected.clone()));

    let both = format!("{issue}8,0 0 2 0.1 697 Q W 4096 + 8 [a]\n");
    let asked = ReadOptions { blkparse_action: BlkparseAction::Issue, ..ReadOptions::default() };
    assert_eq!(read_text(both.clone(), &asked), Ok(expected));
    assert_eq!(read_text(both, &ReadOptions::default()).unwrap()[0].time_us, 100_000);

    // The first queue event lies beyond what is looked at in advance.
    let late = format!("{}8,0 0 2 0.1 697 Q W 4096 + 8 [a]\n", issue.repeat(10_000));
    let error = read_text(late, &ReadOptions::default()).unwrap_err();
    assert_eq!(error, format!("t:10001: {}", LineFault::QueueAfterIssue));
}

#[test]
fn fio_versions_2_and_3() {
    let expected = |times: [u64; 4]| {
        [
            request(times[0], 0, Op::Write, 4096, 4096),
            request(times[1], 7, Op::Read, 1 << 20, 8192),
            request(times[2], 0, Op::Flush, 0, 0),
            request(times[3], 0, Op::Trim, 8 << 20, 1 << 20),
        ]
    };
    fixture("tiny.v2.iolog", Format::Fio, &expected([0, 1500, 1500, 2000]));
    fixture("tiny.v3.iolog", Format::Fio, &expected([872, 1500, 1501, 2000]));
}

#[test]
fn fio_names_that_share_a_number_are_refused() {
    let text = "fio version 2 iolog\n/dev/sdb add\ndev0 add\n";
    let error = read_text(text, &ReadOptions::default()).unwrap_err();
    assert_eq!(error, "t:3: device name \"dev0\" stands for number 0, which another name has already");
}

#[test]
fn bad_lines_are_named() {
    let given = |format| ReadOptions { format: Some(format), ..ReadOptions::default() };
    for (format, line, expected) in [
        (Format::Common, "1,2,W,3", "found \"1,2,W,3\", expected five fields: ts_us,dev,op,offset,len"),
        (
            Format::Common,
            "1,2,W,3,4,5",
            "found \"1,2,W,3,4,5\", expected five fields: ts_us,dev,op,offset,len",
        ),
        (Format::Common, "1,2,X,3,4", "operation is \"X\", expected R, W, F or T"),
        (Format::Common, "1,2,W,-3,4", "offset is \"-3\", expected a decimal number below 2^64"),
        (Format::Common, "1,4294967296,W,3,4", "dev is \"4294967296\", expected a number below 2^32"),
        (
            Format::Common,
            "1,2,W,18446744073709551615,1",
            "offset 18446744073709551615 and length 1 end beyond byte 9223372036854775807",
        ),
        (Format::Common, "1,2,W,0,9000000000", "transfer of 9000000000 bytes, expected at most 1073741824"),
        (
            Format::Spc,
            "0,36028797018963968,1,r,0.0",
            "LBA is \"36028797018963968\", expected a sector below 2^55",
        ),
        (Format::Spc, "0,1,1,r,-1.0", "time is \"-1.0\", expected seconds, such as 12.345678"),
        (Format::Msr, "1,h,0,Verify,0,512,1", "operation is \"Verify\", expected Read or Write"),
        (
            Format::Fiu,
            "1 2 p 3 4 W 6",
            "found \"1 2 p 3 4 W 6\", expected ns pid process lba sectors R-or-W major minor md5",
        ),
        (
            Format::Fio,
            "dev0 read 0 1",
            "found \"dev0 read 0 1\", expected first line \"fio version 2 iolog\" or \"fio version 3 iolog\"",
        ),
        (
            Format::Blkparse,
            "8,0 0 1 0.0 697 Q W 2048 x 8 [a]",
            "found \"8,0 0 1 0.0 697 Q W 2048 x 8 [a]\", expected maj,min cpu sequence seconds pid action rwbs sector + sectors [process]",
        ),
    ] {
        assert_eq!(read_text(line, &given(format)), Err(format!("t:1: {expected}")), "{line}");
    }
}

#[test]
fn an_error_ends_the_trace() {
    let text = "0,0,W,0,512\nnonsense\n0,0,W,0,512\n";
    let mut reader =
        TraceReader::from_reader("t", Box::new(text.as_bytes()), &ReadOptions::default()).unwrap();
    assert!(reader.next().unwrap().is_ok());
    assert!(matches!(reader.next(), Some(Err(TraceError::Line { line: 2, .. }))));
    assert!(reader.next().is_none());
}

#[test]
fn bad_lines_are_skipped_and_counted_up_to_a_limit() {
    let long = "9".repeat(MAX_LINE_BYTES * 6);
    let text = format!("0,0,W,0,512\nnonsense\n{long}\n1,0,W,\0,512\n2,0,W,1,512\n\n");
    let skip = |limit| ReadOptions { skip_bad_lines: SkipPolicy::Skip { limit }, ..ReadOptions::default() };
    let content = std::io::Cursor::new(text.clone());
    let mut reader = TraceReader::from_reader("t", Box::new(content), &skip(3)).unwrap();
    let times: Vec<_> = reader.by_ref().map(|request| request.unwrap().time_us).collect();
    assert_eq!(times, [0, 2]);
    assert_eq!((reader.skipped_count(), reader.line_count()), (3, 6));
    assert!(reader.first_skipped().unwrap().to_string().starts_with("t:2: found \"nonsense\""));

    let error = read_text(text, &skip(2)).unwrap_err();
    assert_eq!(
        error,
        "t:4: more than 2 bad lines; this one: offset is \"\\x00\", expected a decimal number below 2^64"
    );
}

#[test]
fn long_lines_are_cut_off_at_the_limit() {
    for (length, fits) in [(MAX_LINE_BYTES, true), (MAX_LINE_BYTES + 1, false), (1 << 20, false)] {
        let line = format!("{}0,0,W,0,512", " ".repeat(length - 11));
        let given = ReadOptions { format: Some(Format::Common), ..ReadOptions::default() };
        for end in ["", "\n", "\r\n"] {
            let long = if end == "\r\n" { &line[1..] } else { &line };
            let result = read_text(format!("{long}{end}"), &given);
            assert_eq!(result.is_ok(), fits, "{length} {end:?}");
        }
    }
}

#[test]
fn unknown_and_empty_content_is_an_error_only_if_the_format_must_be_found() {
    let error = read_text("hello\nworld\n", &ReadOptions::default()).unwrap_err();
    assert_eq!(
        error,
        "t: unknown trace format; it begins with \"hello\"; name the format, one of csv, spc, msr, fiu, blkparse, fio \
         (csv: lines of ts_us,dev,op,offset,len with op R, W, F or T)"
    );
    assert!(read_text("", &ReadOptions::default()).is_err());
    let given = ReadOptions { format: Some(Format::Spc), ..ReadOptions::default() };
    assert_eq!(read_text("", &given), Ok(vec![]));
}

#[test]
fn damaged_compression_is_an_error_with_the_line() {
    let text = "0,0,W,0,512\n".repeat(200_000);
    let mut zstd = zstd::encode_all(text.as_bytes(), 1).unwrap();
    zstd.truncate(zstd.len() / 2);
    let error = read_text(zstd, &ReadOptions::default()).unwrap_err();
    assert!(error.starts_with("t: cannot read beyond line "), "{error}");
    assert!(read_text(vec![0x1f, 0x8b, 9, 9, 9], &ReadOptions::default()).is_err());
    assert!(read_text(vec![0x28, 0xb5, 0x2f, 0xfd, 0xff], &ReadOptions::default()).is_err());
}

#[test]
fn several_files_are_one_trace_in_time() {
    let folder = tempfile::tempdir().unwrap();
    let paths = [folder.path().join("a"), folder.path().join("b")];
    std::fs::write(&paths[0], "5,0,W,0,512\n100,0,W,0,512\n").unwrap();
    std::fs::write(&paths[1], "0,0,w,0.5\n0,1,512,w,0.5\n").unwrap();
    let options = ReadOptions { skip_bad_lines: SkipPolicy::Skip { limit: 1 }, ..ReadOptions::default() };
    let mut sequence = TraceSequence::open(&paths, &options).unwrap();
    let times: Vec<_> = sequence.by_ref().map(|request| request.unwrap().time_us).collect();
    assert_eq!(times, [0, 95, 499_995], "the second file goes on by the same clock");
    assert_eq!(sequence.skipped_count(), 1);
    let progress = sequence.progress();
    assert_eq!(Some(progress.consumed_bytes()), progress.total_bytes());

    // Dates: the files of one recording, which begins with the first request of the first one.
    let ticks = |us: u64| 128_166_372_003_061_629 + 10 * us;
    let line = |us: u64| format!("{},web,0,Write,0,512,1\n", ticks(us));
    std::fs::write(&paths[0], [line(7), line(0), line(1007)].concat()).unwrap();
    std::fs::write(&paths[1], [line(1500), line(1499)].concat()).unwrap();
    let times: Vec<_> =
        TraceSequence::open(&paths, &options).unwrap().map(|request| request.unwrap().time_us).collect();
    assert_eq!(times, [0, 0, 1000, 1493, 1492]);

    let missing = [paths[0].clone(), folder.path().join("none")];
    assert!(matches!(TraceSequence::open(&missing, &options), Err(TraceError::Open { .. })));
}
