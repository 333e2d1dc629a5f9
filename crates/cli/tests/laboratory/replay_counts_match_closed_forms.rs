//! Write counts on null devices against closed forms computed from the traces
//! (`docs/requirements.md`, "Closed forms"), and against the counts of the authors' prototype. The
//! forms here know nothing of the engine.
#![allow(clippy::unwrap_used, reason = "tests")]

use crate::replay_common::{bundled_trace, number, replay, traces};
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use trace::{OutputFormat, PrepareOptions, ReadOptions, TraceReader, TraceWriter, convert, prepare};

/// Requests taken of each trace, unless ELASTRIPE_WHOLE_TRACES is set: keeps the test within a minute.
const HEAD: usize = 12_000;
const SHAPES: [(u64, u64); 4] = [(4, 1), (6, 1), (4, 2), (6, 2)];

/// What the writes of a trace must come to.
#[derive(Debug, Default, PartialEq, Eq)]
struct Expected {
    requests: u64,
    chunks: u64,
    /// Best packing per request: as many log stripes as the device that gets most chunks of the request.
    log_stripes: u64,
    /// Stripes touched, counted again for each request.
    stripes_touched: u64,
    /// Different stripes touched.
    stripes_dirty: u64,
    /// Chunks that committing those reads, each the cheaper way all k data chunks, or the m old parities and
    /// both versions of each updated chunk.
    commit_reads: u64,
}

/// EPLOG's placement: chunk i of stripe s goes to entry s mod (n - i) of the devices that s does not use yet.
fn device_of(chunk: u64, k: u64, m: u64) -> usize {
    let stripe = chunk / k;
    let mut unused: Vec<usize> = (0..usize::try_from(k + m).unwrap()).collect();
    let mut device = 0;
    for i in 0..=chunk % k {
        device = unused.remove(usize::try_from(stripe % (k + m - i)).unwrap());
    }
    device
}

fn expected(path: &Path, head: Option<u64>, k: u64, m: u64) -> Expected {
    let options = PrepareOptions { write_limit: head, ..PrepareOptions::default() };
    let prepared = prepare(|| TraceReader::open(path, &ReadOptions::default()), &options).unwrap();
    let mut expected = Expected::default();
    let mut dirty: HashMap<u64, HashSet<u64>> = HashMap::new();
    for request in prepared {
        let chunks = request.unwrap().chunks(4096);
        let mut per_device = vec![0; usize::try_from(k + m).unwrap()];
        for chunk in chunks.clone() {
            per_device[device_of(chunk, k, m)] += 1;
            dirty.entry(chunk / k).or_default().insert(chunk);
        }
        expected.requests += 1;
        expected.chunks += chunks.end - chunks.start;
        expected.log_stripes += per_device.into_iter().max().unwrap();
        let stripes = chunks.start / k..=(chunks.end - 1) / k;
        expected.stripes_touched += stripes.end() - stripes.start() + 1;
    }
    expected.stripes_dirty = dirty.len() as u64;
    expected.commit_reads = dirty.values().map(|updated| k.min(m + 2 * updated.len() as u64)).sum();
    expected
}

fn check(path: &Path, head: Option<u64>, (k, m): (u64, u64)) -> Expected {
    let expected = expected(path, head, k, m);
    let (geometry, limit) = (format!("{k}+{m}"), head.unwrap_or(u64::MAX).to_string());
    let name = format!("{} {geometry}", path.display());
    let common = [
        "--trace",
        path.to_str().unwrap(),
        "--device",
        "null",
        "--geometry",
        &geometry,
        "--compact",
        "--fill",
        "--writes-only",
        "--queue-depth",
        "1",
        "--head",
        &limit,
    ];
    let run = |more: &[&str]| replay(&[&common, more].concat());
    let total = |value: &serde_json::Value, key: &str| number(value, &format!("/totals/{key}"));
    // The forms are the paper's: every update is logged.
    let eplog = run(&["--scheme", "eplog", "--rewrites", "log", "--commit-every", "end"]);
    let in_commit = |key: &str| number(&eplog, &format!("/commit_at_end/{key}"));
    let before_commit = |key: &str| total(&eplog, key) - in_commit(key);
    assert_eq!(total(&eplog, "requests"), expected.requests, "{name}");
    assert_eq!(total(&eplog, "user_chunks_written"), expected.chunks, "{name}");
    // One SSD chunk per updated chunk before commit, and nothing is read.
    assert_eq!(before_commit("data_chunks_written"), expected.chunks, "{name}");
    assert_eq!(before_commit("parity_chunks_written"), 0, "{name}");
    assert_eq!(before_commit("data_chunks_read") + before_commit("parity_chunks_read"), 0, "{name}");
    assert_eq!(before_commit("log_chunks_written"), m * expected.log_stripes, "{name}");
    assert_eq!(number(&eplog, "/commit/count"), 1, "{name}: only the one at the end");
    // Full stripes are not logged.
    assert_eq!(number(&eplog, "/fill/totals/log_chunks_written"), 0, "{name}");
    let fill = |key: &str| number(&eplog, &format!("/fill/totals/{key}"));
    assert_eq!(fill("data_chunks_written"), fill("user_chunks_written"), "{name}");
    assert_eq!(fill("parity_chunks_written") * k, fill("data_chunks_written") * m, "{name}");
    // Commit: the parities of each dirty stripe once, nothing else.
    assert_eq!(in_commit("parity_chunks_written"), m * expected.stripes_dirty, "{name}");
    assert_eq!(in_commit("data_chunks_written") + in_commit("log_chunks_written"), 0, "{name}");
    let reads = in_commit("data_chunks_read") + in_commit("parity_chunks_read");
    assert_eq!(reads, expected.commit_reads, "{name}");
    // Less than k per stripe on average, wherever the update of one chunk can be folded in with less
    // than k reads.
    assert!(reads < k * expected.stripes_dirty || m + 2 >= k, "{name}: {reads} reads");
    assert_eq!(total(&eplog, "log_chunks_read"), 0, "{name}: a healthy array reads no log chunk (C-08)");

    let raid = run(&["--scheme", "raid"]);
    assert_eq!(total(&raid, "data_chunks_written"), expected.chunks, "{name}");
    assert_eq!(total(&raid, "parity_chunks_written"), m * expected.stripes_touched, "{name}");
    assert_eq!(total(&raid, "log_chunks_written"), 0, "{name}");
    expected
}

/// Runs a check for each of the items, on as many threads as there are processors.
fn on_all<T: Sync>(items: &[T], check: impl Fn(&T) + Sync) {
    let next = std::sync::atomic::AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(2, usize::from) {
            scope.spawn(|| {
                while let Some(item) = items.get(next.fetch_add(1, std::sync::atomic::Ordering::Relaxed)) {
                    check(item);
                }
            });
        }
    });
}

#[test]
fn every_trace_in_every_shape() {
    let is_trace = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        name.ends_with(".csv.zst") && !name.contains("stats")
    };
    let mut paths: Vec<PathBuf> = traces().map_or_else(Vec::new, |root| {
        std::fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path()).filter(is_trace).collect()
    });
    paths.push(bundled_trace());
    paths.sort();
    let whole = std::env::var_os("ELASTRIPE_WHOLE_TRACES").is_some();
    let scratch = tempfile::tempdir().unwrap();
    if !whole {
        paths.iter_mut().for_each(|path| *path = beginning(path, scratch.path()));
    }
    let cases: Vec<_> = paths.iter().flat_map(|path| SHAPES.map(|shape| (path, shape))).collect();
    on_all(&cases, |&(path, shape)| {
        check(path, None, shape);
    });
}

/// A trace of the first requests of another.
fn beginning(path: &Path, folder: &Path) -> PathBuf {
    let out = folder.join(path.file_stem().unwrap());
    let requests = TraceReader::open(path, &ReadOptions::default()).unwrap().take(HEAD);
    let writer = TraceWriter::create(&out, OutputFormat::Common).unwrap();
    convert(requests, writer).unwrap();
    out
}

/// The four traces on which the prototype was measured, (6+2): its log chunks with the best packing, and its
/// commit. Of the bundled trace: what a script counted that shares nothing with this code.
#[test]
fn no_more_than_the_prototype_wrote() {
    let mut cases = vec![(bundled_trace(), None, 35_564, 2 * 6_657)];
    if let Some(root) = traces() {
        cases.extend([
            (root.join("msr_rsrch_1.csv.zst"), None, 34_510, 10_536),
            (root.join("msr_cut10k_rw_20_80.105.csv.zst"), None, 17_444, 3_058),
            (root.join("arc_P3_all_as_writes.csv.zst"), Some(200_000), 461_056, 38_096),
            (root.join("cloudphysics_114k.csv.zst"), None, 290_964, 72_942),
        ]);
    }
    on_all(&cases, |(path, head, log_chunks, commit_chunks)| {
        let expected = check(path, *head, (6, 2));
        assert_eq!(2 * expected.log_stripes, *log_chunks, "{}", path.display());
        assert_eq!(2 * expected.stripes_dirty, *commit_chunks, "{}", path.display());
    });
}

/// Chunks and log chunks that a replay with so many slots wrote; what is absorbed accounts for the rest.
fn with_slots(path: &Path, slots: u64) -> (u64, u64) {
    let slots = slots.to_string();
    let common = ["--trace", path.to_str().unwrap(), "--device", "null", "--geometry", "6+2", "--compact"];
    let more = ["--fill", "--writes-only", "--queue-depth", "1", "--head", "200000", "--cache-slots", &slots];
    let more = [&more[..], &["--rewrites", "log"]].concat();
    let report = replay(&[&common[..], &more].concat());
    let total = |key: &str| number(&report, &format!("/totals/{key}"));
    let (data, log) = (total("data_chunks_written"), total("log_chunks_written"));
    let absorbed = number(&report, "/cache/absorbed_chunks");
    assert_eq!(data + absorbed, total("user_chunks_written"), "{}, {slots} slots", path.display());
    (data, log)
}

/// The more slots, the less is written; with none, what the closed form says.
#[test]
fn buffers_save_the_more_the_larger_they_are() {
    let counts = [0, 4, 16, 64].map(|slots| with_slots(&bundled_trace(), slots));
    assert_eq!(counts[0], (40_288, 35_564));
    for pair in counts.windows(2) {
        assert!(pair[1].0 < pair[0].0 && pair[1].1 < pair[0].1, "{counts:?}");
    }
}

/// The same traces with device buffers (E-25): SSD and log chunks that the prototype wrote with
/// as many slots.
#[test]
fn buffers_save_no_less_than_in_the_prototype() {
    // Without them the test above has to do.
    let Some(root) = traces() else { return };
    let cases = [
        ("msr_rsrch_1.csv.zst", [(4, 41_707, 12_432), (16, 40_539, 10_990), (64, 38_614, 10_068)]),
        ("msr_cut10k_rw_20_80.105.csv.zst", [(4, 11_667, 3_704), (16, 10_457, 2_840), (64, 7_864, 2_036)]),
        (
            "arc_P3_all_as_writes.csv.zst",
            [(4, 454_209, 139_926), (16, 447_260, 121_452), (64, 442_995, 117_430)],
        ),
        (
            "cloudphysics_114k.csv.zst",
            [(4, 607_085, 170_278), (16, 596_993, 159_980), (64, 585_939, 156_226)],
        ),
    ];
    let cases: Vec<_> =
        cases.iter().flat_map(|(name, rows)| rows.iter().map(move |row| (name, row))).collect();
    on_all(&cases, |&(name, &(slots, ssd_chunks, log_chunks))| {
        let (data, log) = with_slots(&root.join(name), slots);
        assert!(
            data <= ssd_chunks && log <= log_chunks,
            "{name}, {slots} slots: {data} SSD, {log} log chunks"
        );
    });
}
