//! `trace published`: the collections that papers use, where they are, and how to read them; and whether
//! files are what is published.

use super::{Reading, named};
use crate::Exit;
use crate::failure::{EXIT_FAILED, EXIT_MISUSED, Failure};
use clap::Args;
use comfy_table::{CellAlignment, Table, presets};
use node::output;
use serde_json::json;
use std::path::PathBuf;
use trace::{Label, Op, Profile, Request, StatsCollector, StatsOptions, TraceSequence, Verdict, compare};

/// A collection.
struct Collection {
    name: &'static str,
    what: &'static str,
    place: &'static str,
    options: &'static str,
    /// What is printed of it that can be counted, by the papers whose stand-in this is.
    figures: Option<Profile>,
}

const COLLECTIONS: [Collection; 12] = [
    Collection {
        name: "financial1",
        what: "OLTP at a financial institution; EPLOG's FIN, WAS's Financial1",
        place: "UMass Trace Repository, Storage: Financial1.spc",
        options: "--format spc",
        figures: Some(Profile::Fin),
    },
    Collection {
        name: "msr-web_0",
        what: "web server, a week; EPLOG's WEB. D. Narayanan and others, \"Write Off-Loading\", FAST 2008",
        place: "SNIA IOTTA Repository, block I/O traces, MSR Cambridge: web_0.csv.gz",
        options: "--format msr",
        figures: Some(Profile::Web),
    },
    Collection {
        name: "msr-usr_0",
        what: "home directories, a week; EPLOG's USR",
        place: "SNIA IOTTA Repository, block I/O traces, MSR Cambridge: usr_0.csv.gz",
        options: "--format msr",
        figures: Some(Profile::Usr),
    },
    Collection {
        name: "msr-mds_0",
        what: "media server, a week; EPLOG's MDS",
        place: "SNIA IOTTA Repository, block I/O traces, MSR Cambridge: mds_0.csv.gz",
        options: "--format msr",
        figures: Some(Profile::Mds),
    },
    Collection {
        name: "online",
        what: "course management system; WAS's Online. A. Verma and others, \"SRCMap\", FAST 2010",
        place: "SNIA IOTTA Repository, block I/O traces, FIU: online",
        options: "--format fiu",
        figures: Some(Profile::Online),
    },
    Collection {
        name: "webmail",
        what: "mail by web; WAS's Webmail, from the same paper",
        place: "SNIA IOTTA Repository, block I/O traces, FIU: webmail",
        options: "--format fiu",
        figures: Some(Profile::Webmail),
    },
    Collection {
        name: "online-webmail",
        what: "both in one address space; WAS's Online+Webmail: both files, by time",
        place: "as online and webmail",
        options: "--format fiu --dev-mode ignore",
        figures: Some(Profile::OnlineWebmail),
    },
    Collection {
        name: "alibaba-2020",
        what: "1,000 volumes, a month. J. Li and others, \"An In-Depth Analysis of Cloud Block Storage Workloads\", IISWC 2020",
        place: "Alibaba block traces, linked from the paper: io_traces.csv (one file of all volumes)",
        options: "--columns dev,op,offset,len,ts_us",
        figures: None,
    },
    Collection {
        name: "tencent-cbs",
        what: "5,584 volumes, ten days. Y. Zhang and others, \"OSCA\", USENIX ATC 2020",
        place: "SNIA IOTTA Repository, block I/O traces, Tencent: op is 0 and 1, to be written as R and W",
        options: "--columns ts,lba,sectors,op,dev",
        figures: None,
    },
    Collection {
        name: "cloudphysics",
        what: "106 virtual disks, a week. C. Waldspurger and others, \"SHARDS\", FAST 2015",
        place: "with libCacheSim's data, as its own binary form: print it as text first",
        options: "--columns ts,op,lba,len",
        figures: None,
    },
    Collection {
        name: "systor17",
        what: "virtual desktops, a month. C. Lee and others, \"Understanding Storage Traffic Characteristics\", SYSTOR 2017",
        place: "SNIA IOTTA Repository, block I/O traces, SYSTOR '17",
        options: "--columns ts,-,op,dev,offset,len",
        figures: None,
    },
    Collection {
        name: "fiu-homes",
        what: "home directories, three weeks, with hashes of content. R. Koller, R. Rangaswami, \"I/O Deduplication\", FAST 2010",
        place: "SNIA IOTTA Repository, block I/O traces, FIU: homes",
        options: "--format fiu",
        figures: None,
    },
];

/// Options of `trace published`.
#[derive(Args, Debug)]
pub struct Arguments {
    /// A collection's name; without one, all are listed.
    name: Option<String>,
    /// Files that are said to be it, in their order; - is the standard input.
    #[arg(value_name = "TRACE")]
    traces: Vec<PathBuf>,
    #[command(flatten)]
    reading: Reading,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Runs `trace published`; the exit code is 1 if a figure is off.
pub fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let Some(name) = &arguments.name else {
        for collection in &COLLECTIONS {
            describe(collection);
        }
        return Ok(0);
    };
    let collection = COLLECTIONS.iter().find(|collection| collection.name == name).ok_or_else(|| {
        let known: Vec<&str> = COLLECTIONS.iter().map(|collection| collection.name).collect();
        Failure::new(format!("found {name:?}, expected one of {}", known.join(", "))).with_exit(EXIT_MISUSED)
    })?;
    if arguments.traces.is_empty() {
        describe(collection);
        return Ok(0);
    }
    check(collection, arguments)
}

fn describe(collection: &Collection) {
    output::line(format_args!("{:<15} {}", collection.name, collection.what));
    output::line(format_args!("{:<15} {}", "", collection.place));
    let figures = collection.figures.map_or(
        "nothing printed of it is known here",
        |_| "figures of it are printed: give its files behind the name to hold them against these",
    );
    output::line(format_args!("{:<15} {}; {figures}", "", collection.options));
}

/// What the hash of no requests is.
pub const HASH_START: u64 = 0xcbf2_9ce4_8422_2325;

/// FNV-1a of requests, 64 bits, with one more: the same for the same requests in whatever form or
/// compression.
pub fn hash_with(hash: u64, request: &Request) -> u64 {
    let op = match request.op {
        Op::Read => 0,
        Op::Write => 1,
        Op::Flush => 2,
        Op::Trim => 3,
    };
    let words = [request.time_us, u64::from(request.dev), op, request.offset_bytes, request.length_bytes];
    let bytes = words.into_iter().flat_map(u64::to_le_bytes);
    bytes.fold(hash, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

fn check(collection: &Collection, arguments: &Arguments) -> Result<Exit, Failure> {
    let dev_mode = arguments.reading.dev_mode();
    let mut collector = StatsCollector::new(StatsOptions { dev_mode, ..StatsOptions::default() })?;
    let mut hash = HASH_START;
    for request in TraceSequence::open(&named(&arguments.traces), &arguments.reading.options())? {
        let request = request?;
        hash = hash_with(hash, &request);
        collector.add(&request)?;
    }
    let (stats, comparisons) = match collection.figures {
        Some(profile) => {
            let full = profile.published_request_count().unwrap_or(1);
            compare(&Label { profile, request_count: full, seed: 0, range_bytes: None }, collector)
        }
        None => (collector.finish(), None),
    };
    let comparisons = comparisons.unwrap_or_default();
    let off = comparisons.iter().filter(|found| found.verdict == Verdict::Missed).count();
    if arguments.json {
        let figures = comparisons.iter().map(|found| {
            json!({
                "figure": found.target.statistic.name(), "source": found.target.source.name(), "printed": found.target.value,
                "found": found.reached, "deviation_percent": found.deviation_percent,
            })
        });
        output::line(format_args!(
            "{:#}",
            json!({
                "collection": collection.name, "hash": format!("{hash:016x}"), "requests": stats.request_count,
                "writes": stats.write_count, "figures": figures.collect::<Vec<_>>(), "off": off,
            })
        ));
    } else {
        output::line(format_args!("hash of the requests {hash:016x}"));
        output::line(&stats);
        let mut table = Table::new();
        table.load_preset(presets::NOTHING);
        table.set_header(["", "printed by", "printed", "found", "off, %"]);
        for found in &comparisons {
            table.add_row([
                found.target.statistic.name().to_owned(),
                found.target.source.name().to_owned(),
                format!("{:.2}", found.target.value),
                format!("{:.2}", found.reached),
                format!("{:+.2}", found.deviation_percent),
            ]);
        }
        table.column_iter_mut().skip(2).for_each(|column| column.set_cell_alignment(CellAlignment::Right));
        if !comparisons.is_empty() {
            output::line(table.trim_fmt());
        }
        output::line(match (comparisons.len(), off) {
            (0, _) => format!("{}: nothing printed of it is known here", collection.name),
            (all, 0) => format!("{}: all {all} figures within 2 %", collection.name),
            (all, off) => format!("{}: {off} of {all} figures off by more than 2 %", collection.name),
        });
    }
    Ok(if off == 0 { 0 } else { EXIT_FAILED })
}
