//! Generated traces: stand-ins at full length against every published figure, shares and counts of shorter
//! ones, labels, same seed same bytes.

use trace::{
    Comparison, Format, GenerateOptions, Generator, Label, Op, OutputFormat, Profile, ProfileError,
    ReadOptions, Request, Source, Statistic, Stats, StatsCollector, StatsOptions, TraceReader, TraceWriter,
    Verdict, compare,
};

fn options(profile: Profile, request_count: Option<u64>, seed: u64) -> GenerateOptions {
    GenerateOptions { profile, request_count, seed, range_bytes: None }
}

/// Generates a profile and compares it.
fn generate(profile: Profile, request_count: Option<u64>, seed: u64) -> (Stats, Vec<Comparison>) {
    let mut generator = Generator::new(&options(profile, request_count, seed)).unwrap();
    let label = *generator.label();
    let mut collector = StatsCollector::new(StatsOptions::default()).unwrap();
    for request in &mut generator {
        collector.add(&request).unwrap();
    }
    let (stats, comparisons) = compare(&label, collector);
    (stats, comparisons.unwrap())
}

/// Every published figure is reached at full length.
#[track_caller]
fn reaches_all(profile: Profile, figures: usize) -> Vec<Comparison> {
    let (_, comparisons) = generate(profile, None, 11);
    assert_eq!(comparisons.len(), figures);
    for comparison in &comparisons {
        assert_eq!(comparison.verdict, Verdict::Reached, "{profile}: {comparison:?}");
    }
    comparisons
}

#[test]
fn fin_reaches_both_papers_at_once() {
    let comparisons = reaches_all(Profile::Fin, 10);
    // The deviation that the papers' own difference causes is the only one named.
    let named: Vec<_> = comparisons.iter().filter(|c| c.target.note.is_some()).collect();
    assert!(matches!(named[..], [c] if c.target.statistic == Statistic::Writes));
}

#[test]
fn web_usr_and_mds_reach_table_2() {
    for profile in [Profile::Web, Profile::Usr, Profile::Mds] {
        reaches_all(profile, 4);
    }
}

#[test]
fn online_and_webmail_reach_table_1() {
    reaches_all(Profile::Online, 6);
    reaches_all(Profile::Webmail, 6);
}

#[test]
fn online_and_webmail_merged_reach_table_1() {
    reaches_all(Profile::OnlineWebmail, 6);
}

#[test]
fn was_synthetic_by_a_hot_fifth_reaches_all_of_table_1() {
    let comparisons = reaches_all(Profile::WasSyntheticFifth, 6);
    assert!(comparisons.iter().all(|comparison| comparison.target.note.is_none()));
}

/// All but the share of the unique chunks' top fifth, whose deviation is named.
#[test]
fn was_synthetic_reaches_table_1_but_for_one_named_figure() {
    let (stats, comparisons) = generate(Profile::WasSynthetic, None, 11);
    assert_eq!(comparisons.len(), 7);
    for comparison in comparisons {
        let target = comparison.target;
        if target.statistic == Statistic::TopFifthPercent {
            assert_eq!((comparison.verdict, target.source), (Verdict::Missed, Source::WasTable1));
            assert!(target.note.unwrap().contains("cannot"), "{target:?}");
        } else {
            assert_eq!(comparison.verdict, Verdict::Reached, "{comparison:?}");
        }
    }
    assert_eq!(stats.write_count, 1_000_000);
}

/// X-15, looked at request by request: 8 KiB, whole sectors, all phases alike, and a normal distribution
/// whose middle fifth of the range gets 80 %.
#[test]
fn was_synthetic_is_as_derived() {
    let generator = Generator::new(&options(Profile::WasSynthetic, Some(400_000), 3)).unwrap();
    let range_chunks: f64 = generator
        .solution()
        .split_ascii_whitespace()
        .find_map(|word| word.parse().ok())
        .expect("the solution names the range");
    let range = range_chunks * 4096.0;
    let (mut phases, mut middle_fifth, mut within_deviation) = ([0u32; 8], 0u32, 0u32);
    for request in generator {
        assert_eq!((request.op, request.length_bytes, request.offset_bytes % 512), (Op::Write, 8192, 0));
        phases[usize::try_from(request.offset_bytes % 4096 / 512).unwrap()] += 1;
        let from_middle = (request.offset_bytes as f64 + 4096.0 - range / 2.0).abs();
        middle_fifth += u32::from(from_middle < 0.1 * range);
        within_deviation += u32::from(from_middle < 0.078 * range);
    }
    let share = |count: u32| f64::from(count) / 400_000.0;
    // Five standard deviations of 400,000 draws are 0.4 % at most.
    assert!(phases.iter().all(|&count| (share(count) - 0.125).abs() < 0.004), "{phases:?}");
    assert!((share(middle_fifth) - 0.8002).abs() < 0.004, "{middle_fifth}");
    assert!((share(within_deviation) - 0.6827).abs() < 0.004, "{within_deviation}");
}

/// Of short traces counts are exact parts, means and shares hold, and what needs the full length is marked.
#[test]
fn short_traces_have_the_shares_and_say_what_cannot_be_compared() {
    for name in Profile::NAMES.iter().filter(|name| !name.contains("zipf") && **name != "uniform") {
        let profile: Profile = name.parse().unwrap();
        for seed in [1, 2, u64::MAX] {
            let (stats, comparisons) = generate(profile, Some(200_000), seed);
            assert_eq!(stats.request_count, 200_000, "{name}");
            for comparison in comparisons {
                match comparison.target.statistic {
                    Statistic::WorkingSetGib
                    | Statistic::UniqueChunks
                    | Statistic::TopFifthPercent
                    | Statistic::RangeFifthPercent => {
                        assert_eq!(comparison.verdict, Verdict::OtherLength, "{name}: {comparison:?}");
                    }
                    Statistic::Requests
                    | Statistic::Writes
                    | Statistic::RequestBytesMean
                    | Statistic::WritePercent
                    | Statistic::WriteKibMean
                    | Statistic::RandomPercent
                    | Statistic::ChunkWrites => {
                        assert_eq!(comparison.verdict, Verdict::Reached, "{name} {seed}: {comparison:?}");
                    }
                }
            }
        }
    }
}

/// One request, odd numbers: no share can be met, nothing breaks.
#[test]
fn the_shortest_traces_are_whole() {
    for name in Profile::NAMES {
        let profile: Profile = name.replace("THETA", "1.1").parse().unwrap();
        for count in [1, 2, 3, 7] {
            let requests: Vec<_> = Generator::new(&options(profile, Some(count), 9)).unwrap().collect();
            assert_eq!(requests.len() as u64, count, "{name}");
            assert_eq!(requests[0].time_us, 0);
            assert!(requests.is_sorted_by_key(|request| request.time_us), "{name}");
        }
    }
}

#[test]
fn zipf_and_uniform_follow_their_laws() {
    let run = |profile| {
        let range_bytes = Some(10_000 * 4096);
        let options = GenerateOptions { profile, request_count: Some(200_000), seed: 4, range_bytes };
        let mut counts = vec![0u64; 10_000];
        for Request { op, offset_bytes, length_bytes, .. } in Generator::new(&options).unwrap() {
            assert_eq!((op, length_bytes, offset_bytes % 4096), (Op::Write, 4096, 0));
            counts[usize::try_from(offset_bytes / 4096).unwrap()] += 1;
        }
        counts.sort_unstable_by_key(|&count| std::cmp::Reverse(count));
        counts
    };
    let uniform = run(Profile::Uniform);
    // Mean 20, deviation 4.5: nothing beyond six of them.
    assert!(uniform[0] < 48 && uniform[9_999] > 0, "{} to {}", uniform[0], uniform[9_999]);
    let zipf = run(Profile::Zipf { exponent: 0.99 });
    let norm: f64 = (1..=10_000).map(|rank| f64::from(rank).powf(-0.99)).sum();
    let expected = 200_000.0 / norm;
    assert!((zipf[0] as f64 - expected).abs() < 5.0 * expected.sqrt(), "{} for {expected}", zipf[0]);
}

#[test]
fn same_seed_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = |profile: Profile, seed, name: &str| {
        let path = folder.path().join(name);
        let mut generator = Generator::new(&options(profile, Some(20_000), seed)).unwrap();
        let mut writer = TraceWriter::create(&path, OutputFormat::Common).unwrap();
        let (label, solution) = (*generator.label(), generator.solution());
        assert!(writer.label(&label, &solution));
        generator.try_for_each(|request| writer.write(&request)).unwrap();
        writer.finish().unwrap();
        std::fs::read(&path).unwrap()
    };
    for name in Profile::NAMES {
        let profile: Profile = name.replace("THETA", "0.9").parse().unwrap();
        for file in ["t.csv", "t.csv.zst"] {
            let first = bytes(profile, 5, file);
            assert!(first == bytes(profile, 5, file), "{name}: not the same again");
            assert!(first != bytes(profile, 6, file), "{name}: the seed has no effect");
        }
    }
}

/// A label is read back, the requests behind it too, and other comments are passed over.
#[test]
fn labels_are_read_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.csv.gz");
    let given = GenerateOptions {
        profile: Profile::Zipf { exponent: 0.25 },
        request_count: Some(50),
        seed: u64::MAX,
        range_bytes: Some(1 << 20),
    };
    let generator = Generator::new(&given).unwrap();
    let label = *generator.label();
    assert_eq!(Label::parse(label.to_string().as_bytes()), Some(label));
    let mut writer = TraceWriter::create(&path, OutputFormat::Common).unwrap();
    assert!(writer.label(&label, "two\nlines"));
    let requests: Vec<_> = generator.collect();
    for request in &requests {
        writer.write(request).unwrap();
    }
    assert!(!writer.label(&label, ""), "a label in the middle");
    writer.finish().unwrap();
    let reader = TraceReader::open(&path, &ReadOptions::default()).unwrap();
    assert_eq!((reader.format(), reader.labels()), (Format::Common, &[label][..]));
    assert_eq!(reader.collect::<Result<Vec<_>, _>>().unwrap(), requests);
    for format in [OutputFormat::Spc, OutputFormat::Msr, OutputFormat::Fio] {
        let mut writer = TraceWriter::create(folder.path().join("other"), format).unwrap();
        assert!(!writer.label(&label, ""), "{format:?} has no comments");
    }
}

#[test]
fn what_is_no_label_is_a_comment_and_comments_come_first_only() {
    for text in [
        "# elastripe synthetic: profile=nonsense requests=1 seed=1",
        "# elastripe synthetic: profile=fin requests=0 seed=1",
        "# elastripe synthetic: profile=fin requests=-1 seed=1",
        "# elastripe synthetic: profile=fin seed=1",
        "# elastripe synthetic: profile=zipf:inf requests=1 seed=1",
        "# elastripe synthetic: profile=uniform requests=1 seed=1 range=99999999999999999999",
        "# elastripe synthetic:",
        "# something else",
    ] {
        assert_eq!(Label::parse(text.as_bytes()), None, "{text}");
        let content = format!("{text}\nts_us,dev,op,offset,len\n0,0,W,0,512\n");
        let reader =
            TraceReader::from_reader("t", Box::new(std::io::Cursor::new(content)), &ReadOptions::default());
        let reader = reader.unwrap();
        assert!(reader.labels().is_empty());
        assert_eq!(reader.collect::<Result<Vec<_>, _>>().unwrap().len(), 1);
    }
    let late = "0,0,W,0,512\n# too late\n";
    let reader =
        TraceReader::from_reader("t", Box::new(std::io::Cursor::new(late)), &ReadOptions::default()).unwrap();
    assert!(reader.collect::<Result<Vec<_>, _>>().unwrap_err().to_string().starts_with("t:2:"));
}

#[test]
fn figures_are_not_compared_with_other_chunks() {
    let mut generator = Generator::new(&options(Profile::Mds, Some(100), 1)).unwrap();
    let label = *generator.label();
    let chunks = StatsOptions { chunk_bytes: 8192, ..StatsOptions::default() };
    let mut collector = StatsCollector::new(chunks).unwrap();
    generator.try_for_each(|request| collector.add(&request)).unwrap();
    assert!(compare(&label, collector).1.is_none());
}

#[test]
fn options_out_of_range_are_named() {
    assert!(matches!("finn".parse::<Profile>(), Err(ProfileError::Unknown { found }) if found == "finn"));
    for number in ["-0.1", "5.1", "nan", "inf", "", "x"] {
        let error = format!("zipf:{number}").parse::<Profile>().unwrap_err();
        assert_eq!(error, ProfileError::ZipfExponent { found: number.to_owned() });
    }
    let refused = |options: GenerateOptions| Generator::new(&options).err();
    assert_eq!(refused(options(Profile::Fin, Some(0), 1)), Some(ProfileError::NoRequests));
    for bytes in [0, 4096, 12_289, (1 << 50) + 4096, u64::MAX] {
        let ranged = |profile| GenerateOptions { range_bytes: Some(bytes), ..options(profile, Some(1), 1) };
        assert_eq!(refused(ranged(Profile::Uniform)), Some(ProfileError::Range { bytes }));
        let profile = Profile::Online;
        assert_eq!(refused(ranged(profile)), Some(ProfileError::RangeIsSolved { profile }));
    }
}
