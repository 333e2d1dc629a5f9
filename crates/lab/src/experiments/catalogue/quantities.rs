//! What is computed of cells beyond their figures.

use super::super::view::{Key, View, percent};

/// Bytes of a chunk.
const CHUNK_BYTES: f64 = 4096.0;
const MIB: f64 = 1_048_576.0;

/// Data and parity chunks that a replay wrote to SSDs.
pub fn ssd_chunks(view: &View, key: &Key) -> Option<f64> {
    Some(view.get(key, "totals.data_chunks_written")? + view.get(key, "totals.parity_chunks_written")?)
}

/// Percent of them that are saved beside `raid`.
pub fn ssd_saved(view: &View, key: &Key) -> Option<f64> {
    let raid = ssd_chunks(view, &key.with(&[("scheme", "raid")]))?;
    percent(raid - ssd_chunks(view, key)?, raid)
}

/// Chunks written to SSDs beyond those under `parity-log`.
pub fn ssd_beyond_parity_log(view: &View, key: &Key) -> Option<f64> {
    Some(ssd_chunks(view, key)? - ssd_chunks(view, &key.with(&[("scheme", "parity-log")]))?)
}

/// Percent of the SSD writes that the paper's own mean request size predicts to be saved: c chunks at random
/// alignment touch s = 1 + (c - 1) / k stripes, and m s / (c + m s) of the writes are parity.
pub fn ssd_saved_by_form(_: &View, key: &Key) -> Option<f64> {
    let kib = match key.label("trace") {
        "fin" => 7.19,
        "web" => 12.50,
        "usr" => 10.05,
        "mds" => 7.22,
        _ => return None,
    };
    let (k, m) = key.label("geometry").split_once('+')?;
    let (k, m): (f64, f64) = (k.parse().ok()?, m.parse().ok()?);
    if key.label("scheme") == "raid" {
        return None;
    }
    let chunks: f64 = kib / 4.0;
    let stripes = 1.0 + (chunks - 1.0) / k;
    percent(m * stripes, chunks + m * stripes)
}

/// Percent of SSD chunks beyond those without commits, which another grid has.
pub fn more_than_never(view: &View, key: &Key) -> Option<f64> {
    let never = view.get(&without_commits(key, "ssd-gc"), "ssd_chunks_written")?;
    percent(view.get(key, "ssd_chunks_written")? - never, never)
}

fn without_commits(key: &Key, grid: &'static str) -> Key {
    key.in_grid(grid, &[("trace", "="), ("geometry", "6+2"), ("scheme", "eplog")])
}

fn raid_beside(key: &Key, grid: &'static str) -> Key {
    key.in_grid(grid, &[("trace", "="), ("geometry", "6+2"), ("scheme", "raid")])
}

/// Percent of SSD chunks less than `raid` writes.
pub fn committed_less_than_raid(view: &View, key: &Key) -> Option<f64> {
    let raid = view.get(&raid_beside(key, "ssd-gc"), "ssd_chunks_written")?;
    percent(raid - view.get(key, "ssd_chunks_written")?, raid)
}

/// Percent of the SSDs' GC operations less than under `raid`.
pub fn committed_gc_less_than_raid(view: &View, key: &Key) -> Option<f64> {
    let figure = "gc_operations_mean_with_fill";
    let raid = view.get(&raid_beside(key, "ssd-gc"), figure)?;
    percent(raid - view.get(key, figure)?, raid)
}

/// Percent by which commits make a run slower.
pub fn slower_than_never(view: &View, key: &Key) -> Option<f64> {
    let never = view.get(&without_commits(key, "throughput"), "requests_per_second")?;
    percent(never - view.get(key, "requests_per_second")?, never)
}

/// Percent by which a run with commits is faster than `raid`.
pub fn committed_faster_than_raid(view: &View, key: &Key) -> Option<f64> {
    let raid = view.get(&raid_beside(key, "throughput"), "requests_per_second")?;
    percent(view.get(key, "requests_per_second")? - raid, raid)
}

/// MB that a rebuild recovers in a second.
pub fn recovered(view: &View, key: &Key) -> Option<f64> {
    Some(view.get(key, "rebuild_bytes_per_s")? / 1e6)
}

/// MiB of data and parity of the fill.
pub fn created_mib(view: &View, key: &Key) -> Option<f64> {
    let chunks = view.get(key, "fill.totals.data_chunks_written")?
        + view.get(key, "fill.totals.parity_chunks_written")?;
    Some(chunks * CHUNK_BYTES / MIB)
}

/// MiB of data of the updates.
pub fn updated_mib(view: &View, key: &Key) -> Option<f64> {
    Some(ssd_chunks(view, key)? * CHUNK_BYTES / MIB)
}

/// Metadata that the fill wrote to SSDs, with the checkpoint behind it, in percent of its chunks.
pub fn created_metadata(view: &View, key: &Key) -> Option<f64> {
    let user = view.get(key, "fill.totals.user_chunks_written")? * CHUNK_BYTES;
    let bytes = view.get(key, "fill.metadata_write_amplification")? * user
        + view.get(key, "fill.checkpoint_at_end.main_bytes_written").unwrap_or(0.0);
    percent(bytes / MIB, created_mib(view, key)?)
}

/// Metadata that the updates wrote to SSDs, with the checkpoint behind them, in percent of their chunks.
pub fn updated_metadata(view: &View, key: &Key) -> Option<f64> {
    let user = view.get(key, "totals.user_chunks_written")? * CHUNK_BYTES;
    let bytes = view.get(key, "metadata_write_amplification")? * user
        + view.get(key, "checkpoint_at_end.main_bytes_written").unwrap_or(0.0);
    percent(bytes / MIB, updated_mib(view, key)?)
}

/// Chunks that garbage collection rewrites less than under the plain placement, in percent. Rows with
/// cost-benefit are compared with their own.
pub fn rewritten_less(view: &View, key: &Key) -> Option<f64> {
    let base = if key.label("row").ends_with("-cb") { "elastic-cb" } else { "elastic" };
    less(view, key, "gc.chunks_rewritten", &[("row", base)])
}

/// The same beside full stripes.
pub fn rewritten_less_than_full(view: &View, key: &Key) -> Option<f64> {
    less(view, key, "gc.chunks_rewritten", &[("row", "elastic-full")])
}

fn less(view: &View, key: &Key, figure: &str, than: &[super::super::view::Label]) -> Option<f64> {
    let other = view.get(&key.with(than), figure)?;
    percent(other - view.get(key, figure)?, other)
}

/// Data chunks written to SSDs per chunk of users.
pub fn data_amplification(view: &View, key: &Key) -> Option<f64> {
    let user = view.get(key, "totals.user_chunks_written").filter(|user| *user > 0.0)?;
    Some(view.get(key, "totals.data_chunks_written")? / user)
}

/// Data and parity chunks per chunk of users.
pub fn whole_amplification(view: &View, key: &Key) -> Option<f64> {
    let user = view.get(key, "totals.user_chunks_written").filter(|user| *user > 0.0)?;
    Some(ssd_chunks(view, key)? / user)
}

/// How many times the response time of the slowest other load Synthetic has.
pub fn slower_than_all_others(view: &View, key: &Key) -> Option<f64> {
    let figure = "latency_us_mean";
    let others = ["fin", "online", "webmail", "online-webmail"];
    let others = others.iter().map(|&other| view.get(&key.with(&[("trace", other)]), figure));
    let slowest = others.collect::<Option<Vec<f64>>>()?.into_iter().fold(0.0, f64::max);
    (slowest > 0.0).then_some(view.get(key, figure)? / slowest)
}

/// Most less least erases of an SSD, in percent of the mean.
pub fn spread(view: &View, key: &Key) -> Option<f64> {
    let most = view.get(key, "erases_max")?;
    percent(most - view.get(key, "erases_min")?, view.get(key, "erases_mean")?)
}

/// What parity logging writes and reads beyond the users' chunks (W-41): log chunks, old chunks read, parity.
pub fn logging_overhead(view: &View, key: &Key) -> Option<f64> {
    Some(
        view.get(key, "totals.log_chunks_written")?
            + view.get(key, "totals.data_chunks_read")?
            + view.get(key, "totals.parity_chunks_written")?,
    )
}

/// What elastic stripes write beyond them (W-42): chunks moved, and parity.
pub fn elastic_overhead(view: &View, key: &Key) -> Option<f64> {
    Some(view.get(key, "gc.chunks_rewritten")? + view.get(key, "totals.parity_chunks_written")?)
}

/// Percent of that less than under parity logging.
pub fn elastic_below_logging(view: &View, key: &Key) -> Option<f64> {
    let logging = key.in_grid("logging-overhead", &[("trace", "="), ("geometry", "=")]);
    let logging = logging_overhead(view, &logging)?;
    percent(logging - elastic_overhead(view, key)?, logging)
}

/// A figure of the part that counts: of all less what came before it.
fn counted(view: &View, key: &Key, figure: &str) -> Option<f64> {
    if key.label("part") == "before" {
        return None;
    }
    Some(view.get(key, figure)? - view.get(&key.with(&[("part", "before")]), figure)?)
}

/// Pages that the SSDs copied per page that they were given.
pub fn copies_per_page(view: &View, key: &Key) -> Option<f64> {
    let pages = counted(view, key, "ssd_pages_written").filter(|pages| *pages > 0.0)?;
    Some(counted(view, key, "page_copies")? / pages)
}

/// Percent of the copies that are saved beside one stream.
pub fn copies_saved(view: &View, key: &Key) -> Option<f64> {
    let base = counted(view, &base_of(key), "page_copies")?;
    percent(base - counted(view, key, "page_copies")?, base)
}

fn base_of(key: &Key) -> Key {
    key.with(&[("streams", "base")])
}

/// Programming stress per request (P-12): a page in SLC mode counts 1, one in MLC mode `ratio`.
fn wear(view: &View, key: &Key, ratio: f64) -> Option<f64> {
    let requests = counted(view, key, "requests").filter(|requests| *requests > 0.0)?;
    let (all, slc) =
        (counted(view, key, "flash_pages_written")?, counted(view, key, "flash_pages_written_slc")?);
    Some((slc + ratio * (all - slc)) / requests)
}

fn lifespan_gain(view: &View, key: &Key, ratio: f64) -> Option<f64> {
    let (base, own) = (wear(view, &base_of(key), ratio)?, wear(view, key, ratio)?);
    percent(base - own, own)
}

/// Percent by which the lifespan is longer than with one stream, by the ratio of stresses.
pub fn lifespan_15(view: &View, key: &Key) -> Option<f64> {
    lifespan_gain(view, key, 1.5)
}

/// The same at 2.5.
pub fn lifespan_25(view: &View, key: &Key) -> Option<f64> {
    lifespan_gain(view, key, 2.5)
}

/// The same at 3.5.
pub fn lifespan_35(view: &View, key: &Key) -> Option<f64> {
    lifespan_gain(view, key, 3.5)
}

/// Writes per virtual second.
pub fn writes_per_second(view: &View, key: &Key) -> Option<f64> {
    let seconds = counted(view, key, "virtual_seconds").filter(|seconds| *seconds > 0.0)?;
    Some(counted(view, key, "requests")? / seconds)
}

/// Percent by which a run is faster than with one stream.
pub fn faster_than_base(view: &View, key: &Key) -> Option<f64> {
    let base = writes_per_second(view, &base_of(key))?;
    percent(writes_per_second(view, key)? - base, base)
}

/// Percent by which it is faster than with ten percent less of the space in use.
pub fn faster_than_emptier(view: &View, key: &Key) -> Option<f64> {
    let emptier = match key.label("trace") {
        "20" => "10",
        "30" => "20",
        "40" => "30",
        "50" => "40",
        "60" => "50",
        "70" => "60",
        "80" => "70",
        "90" => "80",
        "100" => "90",
        _ => return None,
    };
    let before = writes_per_second(view, &key.with(&[("trace", emptier)]))?;
    percent(writes_per_second(view, key)? - before, before)
}

/// Percent by which the lifespan is longer than with the next smaller cap.
pub fn lifespan_beyond_smaller_cap(view: &View, key: &Key) -> Option<f64> {
    let smaller = match key.label("streams") {
        "cap 0.2" => "parity",
        "cap 0.4" => "cap 0.2",
        "cap 0.6" => "cap 0.4",
        "cap 0.8" => "cap 0.6",
        "cap 1" => "cap 0.8",
        _ => return None,
    };
    let (before, own) = (wear(view, &key.with(&[("streams", smaller)]), 2.5)?, wear(view, key, 2.5)?);
    percent(before - own, own)
}

/// Percent of write amplification beyond that of the parity stream without SLC mode, after a long run.
pub fn amplification_beyond_streams(view: &View, key: &Key) -> Option<f64> {
    let of = |key: &Key| -> Option<f64> {
        let requests = counted(view, key, "requests").filter(|requests| *requests > 0.0)?;
        Some(counted(view, key, "flash_pages_written")? / requests)
    };
    let separate = of(&key.with(&[("cap", "0")]))?;
    percent(of(key)? - separate, separate)
}

/// Percent of lifespan beyond that of the parity stream without SLC mode, after a long run.
pub fn lifespan_beyond_streams(view: &View, key: &Key) -> Option<f64> {
    let (separate, own) = (wear(view, &key.with(&[("cap", "0")]), 2.5)?, wear(view, key, 2.5)?);
    percent(separate - own, own)
}

/// Percent of lifespan of one SSD beyond that with one stream.
pub fn ssd_lifespan(view: &View, key: &Key) -> Option<f64> {
    let figure = "wear_per_host_page";
    let (one, own) = (view.get(&key.with(&[("cap", "none")]), figure)?, view.get(key, figure)?);
    percent(one - own, own)
}

/// GC operations per SSD if GC copies nothing: blocks written, fill included, less the 8,192 that the SSDs of
/// X-06 have free above the share that is kept.
pub fn gc_without_copies(view: &View, key: &Key) -> Option<f64> {
    let (k, m) = key.label("geometry").split_once('+')?;
    let ssds = k.parse::<f64>().ok()? + m.parse::<f64>().ok()?;
    let pages = view.get(key, "fill_ssd_pages_mean")? + view.get(key, "ssd_pages_written")? / ssds;
    Some((pages / 64.0 - 8192.0).max(0.0))
}

/// Percent by which a commit's chunks differ from two for each distinct stripe of an interval.
pub fn commits_beyond_stripes(view: &View, key: &Key) -> Option<f64> {
    let of_load = |grid, labels| key.in_grid(grid, labels);
    let committed = of_load("ssd-gc-commits", &[("trace", "="), ("commit", "=")]);
    let more = view.get(&committed, "ssd_chunks_written")?
        - view.get(&without_commits(key, "ssd-gc"), "ssd_chunks_written")?;
    let predicted = 2.0 * view.get(key, "stripes")?;
    percent(more - predicted, predicted)
}

/// Percent of wear beyond the least that a fixed cap has, of those caps that add 5 % of write amplification
/// to that of the parity stream alone at most.
pub fn wear_beyond_best_fixed(view: &View, key: &Key) -> Option<f64> {
    if !key.label("cap").starts_with("dynamic") {
        return None;
    }
    let at = |cap: &'static str, figure: &str| view.get(&key.with(&[("cap", cap)]), figure);
    let most = 1.05 * at("0", "write_amplification")?;
    let caps = ["0", "0.1", "0.2", "0.3", "0.4", "0.5", "0.6", "0.7", "0.8", "0.9", "1"];
    let mut best = f64::INFINITY;
    for cap in caps {
        if at(cap, "write_amplification")? <= most {
            best = best.min(at(cap, "wear_per_host_page")?);
        }
    }
    percent(view.get(key, "wear_per_host_page")? - best, best)
}

/// MB that one of two log devices is given in a second.
pub fn log_rate(view: &View, key: &Key) -> Option<f64> {
    let seconds = view.get(key, "virtual_seconds").filter(|seconds| *seconds > 0.0)?;
    Some(view.get(key, "log_chunks_written")? * CHUNK_BYTES / 2.0 / seconds / 1e6)
}

fn free(view: &View, key: &Key, figure: &str) -> Option<f64> {
    view.get(&key.in_grid("free-placement", &[("trace", "=")]), figure)
}

/// Log chunks of new writes whose chunks may go anywhere; with a buffer of stripes there are none.
pub fn log_chunks_free(view: &View, key: &Key) -> Option<f64> {
    if key.label("buffered stripes") == "0" { free(view, key, "log_chunks") } else { Some(0.0) }
}

/// Parity chunks of them.
pub fn parity_chunks_free(view: &View, key: &Key) -> Option<f64> {
    free(view, key, "parity_chunks")
}

/// Percent of parity and log chunks beyond those.
pub fn beyond_free(view: &View, key: &Key) -> Option<f64> {
    let free = log_chunks_free(view, key)? + parity_chunks_free(view, key)?;
    let own = view.get(key, "totals.log_chunks_written")? + view.get(key, "totals.parity_chunks_written")?;
    percent(own - free, free)
}

/// Percent by which the most worn SSD lives longer than under `raid` with one stream.
pub fn lifespan_beyond_raid(view: &View, key: &Key) -> Option<f64> {
    let raid = view.get(&key.with(&[("row", "raid"), ("streams", "base")]), "wear_max")?;
    let own = view.get(key, "wear_max")?;
    percent(raid - own, own)
}

/// Points of copies saved by a parity stream beyond those of FIO with as much of the space in use.
pub fn copies_saved_beyond_fio(view: &View, key: &Key) -> Option<f64> {
    let used = match key.label("trace") {
        "tpcc 50" => "50",
        "tpcc 70" => "70",
        "tpcc 90" => "90",
        _ => return None,
    };
    let fio = key.in_grid("parity-streams", &[("trace", used), ("streams", "="), ("part", "=")]);
    Some(copies_saved(view, key)? - copies_saved(view, &fio)?)
}
