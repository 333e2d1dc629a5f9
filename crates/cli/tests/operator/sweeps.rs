//! Grids of `simulate`: what results.csv holds, parts of a grid, several processes, and whether what stands
//! side by side came about on equal terms.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use crate::common::Rig;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::Stdio;

/// Skewed writes, so that something can be absorbed.
fn rig() -> Rig {
    let rig = Rig::new();
    for seed in ["1", "2", "3"] {
        generate(&rig, seed);
    }
    rig
}

fn generate(rig: &Rig, seed: &str) {
    let out = format!("zipf-{seed}.csv");
    let words =
        ["trace", "generate", "--profile=zipf:0.99", "--range=4MiB", "--requests=2000", "--seed", seed, &out];
    rig.run(&words).ok();
}

const SIMULATE: [&str; 4] = ["simulate", "--ssd=was-ssd", "--out=out", "--trace=zipf-1.csv"];

/// The lines of a table by the names of its columns. Only the last cell, the command, is in quotation marks.
fn lines(rig: &Rig, name: &str) -> Vec<BTreeMap<String, String>> {
    let text = fs::read_to_string(rig.path(name)).unwrap();
    let mut lines = text.lines();
    let header: Vec<&str> = lines.next().unwrap().split(',').collect();
    assert_eq!(header.len(), header.iter().collect::<BTreeSet<_>>().len(), "each column once: {header:?}");
    let cells = |line: &str| line.splitn(header.len(), ',').map(str::to_owned).collect::<Vec<_>>();
    lines.map(|line| header.iter().map(|name| (*name).to_owned()).zip(cells(line)).collect()).collect()
}

#[test]
fn the_table_says_what_each_cell_is() {
    let rig = rig();
    rig.run(&[&SIMULATE[..], &["--sweep=seed=1,2", "--compare=raid,eplog", "--geometry=4+1"]].concat()).ok();
    let lines = lines(&rig, "out/results.csv");
    assert_eq!(lines.len(), 4);
    for line in &lines {
        assert_eq!(line["trace"], "zipf-1.csv");
        assert_eq!((line["geometry"].as_str(), line["ssd"].as_str()), ("4+1", "was-ssd"));
        assert!(["raid", "eplog"].contains(&line["scheme"].as_str()));
        assert!(line["lifespan"].parse::<f64>().unwrap() >= 1.0, "{line:?}");
        assert!(line["command"].contains("elastripe simulate --ssd=was-ssd"), "{line:?}");
        assert!(!line["host"].is_empty() && line["date"].ends_with("UTC") && line["build"].len() == 16);
    }
    let raid: Vec<f64> = lines
        .iter()
        .filter(|line| line["scheme"] == "raid")
        .map(|line| line["lifespan"].parse().unwrap())
        .collect();
    assert_eq!(raid, [1.0, 1.0]);
    rig.run(&["plot", "out/results.csv", "--x=scheme", "--y=lifespan", "--over=seed", "--out=p.svg"]).ok();
}

#[test]
fn two_processes_do_not_mix_their_rows() {
    let rig = rig();
    let words =
        [&SIMULATE[..], &["--sweep=queue-depth=1,2,4,8", "--compare=raid,eplog,was", "--jobs=1"]].concat();
    let start = || rig.command(&words).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let ended = [start(), start()].map(|child| child.wait_with_output().unwrap());
    let failed: Vec<_> = ended.iter().filter(|output| !output.status.success()).collect();
    for output in &failed {
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(
            errors.contains("another run writes its results.csv") && errors.contains("--shard"),
            "{errors}"
        );
    }
    // The second may have come when the first was done.
    assert!(failed.len() < 2);
    rig.run(&words).ok();
    let lines = lines(&rig, "out/results.csv");
    let cells: BTreeSet<&String> = lines.iter().map(|line| &line["cell"]).collect();
    assert_eq!((lines.len(), cells.len()), (12, 12), "every cell once");
}

#[test]
fn a_cell_whose_file_is_gone_is_run_again() {
    let rig = rig();
    let grid = [&SIMULATE[..], &["--sweep=queue-depth=1,4", "--compare=raid,eplog"]].concat();
    rig.run(&grid).ok();
    let before = lines(&rig, "out/results.csv");
    let file = rig.path(&format!("out/{}.json", before[1]["cell"]));
    fs::remove_file(&file).unwrap();
    let again = rig.run(&grid).ok();
    assert_eq!(again.err.lines().count(), 1, "one of four is run: {again:?}");
    assert!(file.exists());
    let cells = |lines: &[BTreeMap<String, String>]| -> Vec<_> {
        lines.iter().map(|line| (line["cell"].clone(), line["write_amplification"].clone())).collect()
    };
    assert_eq!(cells(&lines(&rig, "out/results.csv")), cells(&before));
    // What an interruption of that run leaves: the line is there twice.
    let table = fs::read_to_string(rig.path("out/results.csv")).unwrap();
    let line = table.lines().nth(2).unwrap();
    fs::write(rig.path("out/results.csv"), format!("{table}{line}\n")).unwrap();
    assert_eq!(rig.run(&grid).ok().err, "");
    assert_eq!(cells(&lines(&rig, "out/results.csv")), cells(&before));
}

/// Of a head, the volume is that of the whole trace: two traces that begin alike are two.
#[test]
fn a_cell_of_another_volume_is_not_taken() {
    let rig = rig();
    let text = |far: u64| format!("0,0,W,0,4096\n1,0,W,8192,4096\n2,0,W,{},4096\n", far << 20);
    fs::write(rig.path("near.csv"), text(1)).unwrap();
    fs::write(rig.path("far.csv"), text(64)).unwrap();
    let run = |trace: &str| {
        let grid = ["simulate", "--ssd=was-ssd", "--out=out", "--head=2", "--fill", "--compare=raid,eplog"];
        rig.run(&[&grid[..], &["--trace", trace]].concat()).ok().err.lines().count()
    };
    assert_eq!([run("near.csv"), run("far.csv"), run("near.csv"), run("far.csv")], [2, 2, 0, 0]);
    assert_eq!(lines(&rig, "out/results.csv").len(), 4);
}

/// A file that is not of this build, cut short, or says something else than the table, is made again.
#[test]
fn a_cell_whose_file_is_another_is_run_again() {
    let rig = rig();
    let grid = [&SIMULATE[..], &["--compare=raid,eplog"]].concat();
    rig.run(&grid).ok();
    let file = rig.path(&format!("out/{}.json", lines(&rig, "out/results.csv")[0]["cell"]));
    let whole = fs::read_to_string(&file).unwrap();
    let changed = |key: &str, to: serde_json::Value| {
        let mut json: serde_json::Value = serde_json::from_str(&whole).unwrap();
        *json.pointer_mut(key).unwrap() = to;
        json.to_string()
    };
    let others = [
        changed("/provenance/build", "0123456789abcdef".into()),
        changed("/requests", 1.into()),
        whole[..whole.len() / 2].to_owned(),
        String::new(),
    ];
    for other in others {
        fs::write(&file, &other).unwrap();
        assert_eq!(rig.run(&grid).ok().err.lines().count(), 1, "{other}");
        assert_eq!(rig.run(&grid).ok().err, "", "it is there again");
    }
}

/// Whatever the line says beside it.
#[test]
fn a_flag_that_is_swept_is_on_and_off() {
    let rig = rig();
    let seconds = |more: &[&str]| {
        let simulate = ["simulate", "--ssd=was-ssd", "--scheme=raid", "--trace=zipf-1.csv", "--json"];
        let json = rig.run(&[&simulate[..], more].concat()).ok().json();
        [0, 1].map(|index: usize| json["cells"][index]["virtual_seconds"].as_f64().unwrap())
    };
    let alone = seconds(&["--sweep=untimed=on,off"]);
    assert!(alone[0] == 0.0 && alone[1] > 0.0, "{alone:?}");
    assert_eq!(seconds(&["--untimed", "--sweep=untimed=on,off"]), alone);
    let simulate = ["simulate", "--ssd=was-ssd", "--trace=zipf-1.csv"];
    for (axis, said) in [
        ("--sweep=untimely=off", "found --untimely, expected an option of simulate"),
        ("--sweep=untimed=yes,no", "found untimed=yes, expected on or off"),
        ("--sweep=queue-depth=off", "off"),
        ("--sweep=own-terms=on,off", "own-terms, which is the same for all cells"),
    ] {
        let ran = rig.run(&[&simulate[..], &[axis]].concat());
        assert!(ran.code > 0 && ran.err.contains(said), "{axis}: {ran:?}");
    }
}

#[test]
fn parts_of_a_grid_make_the_whole() {
    let rig = rig();
    let grid = [&SIMULATE[..], &["--sweep=queue-depth=1,4,16", "--compare=raid,eplog", "--json"]].concat();
    for (shard, cells) in [("1/4", 2), ("2/4", 2), ("3/4", 1), ("4/4", 1)] {
        let run = rig.run(&[&grid[..], &["--shard", shard]].concat()).ok();
        assert_eq!(run.json()["cells"].as_array().unwrap().len(), cells);
        assert_eq!(run.err.lines().count(), cells, "{run:?}");
    }
    let whole = rig.run(&grid).ok();
    assert_eq!(
        (whole.json()["cells"].as_array().unwrap().len(), whole.err.as_str()),
        (6, ""),
        "nothing is run again"
    );
    let lines = lines(&rig, "out/results.csv");
    assert_eq!(lines.len(), 6);
    assert!(lines.iter().all(|line| !line["lifespan"].is_empty()));
    for bad in ["0/2", "3/2", "1", "a/b"] {
        rig.run(&[&grid[..], &["--shard", bad]].concat()).code(2);
    }
    rig.run(&["simulate", "--trace=zipf-1.csv", "--shard=1/2", "--compare=raid,eplog"]).code(2);
}

#[test]
fn traces_are_swept_and_take_the_seed_into_their_names() {
    let rig = rig();
    let simulate = ["simulate", "--ssd=was-ssd", "--scheme=raid", "--json"];
    let both = rig.run(&[&simulate[..], &["--sweep=trace=zipf-1.csv,zipf-2.csv"]].concat()).ok().json();
    let figure =
        |json: &serde_json::Value, index: usize| json["cells"][index]["latency_us_mean"].as_f64().unwrap();
    assert_eq!(both["cells"][1]["trace"], "zipf-2.csv");
    assert_ne!(figure(&both, 0), figure(&both, 1));
    let seeds =
        rig.run(&[&simulate[..], &["--trace=zipf-{seed}.csv", "--sweep=seed=1,2"]].concat()).ok().json();
    assert_eq!((figure(&seeds, 0), figure(&seeds, 1)), (figure(&both, 0), figure(&both, 1)));
    // Nothing in this scheme is left to chance, and who repeats it under other seeds is told.
    let table = ["simulate", "--ssd=was-ssd", "--compare=raid,was", "--sweep=seed=1,2"];
    let said = rig.run(&[&table[..], &["--trace=zipf-1.csv"]].concat()).ok().out;
    assert!(said.contains("seed: nothing is left to chance under raid, so"), "{said}");
    let said = rig.run(&[&table[..], &["--trace=zipf-{seed}.csv"]].concat()).ok().out;
    assert!(!said.contains("nothing is left to chance"), "{said}");
    rig.run(&["simulate", "--scheme=raid"]).code(2).refused(&["--trace"]);
}

/// `was` answers from memory and writes half of what it is given; that may not look like thrift
/// of its placement. So it does not, beside schemes that cannot, unless that is asked for.
#[test]
fn unequal_terms_are_asked_for_said_and_shown() {
    let rig = rig();
    let plain = ["simulate", "--trace=zipf-1.csv", "--ssd=was-ssd", "--fill", "--compare=raid,eplog,was"];
    let compare = [&plain[..], &["--own-terms"]].concat();
    let table = rig.run(&compare).ok().out;
    for words in [
        "absorbed",
        "of it metadata",
        "NOT ON EQUAL TERMS: acknowledged from memory: was;",
        "when the devices have it: raid, eplog.",
        "metadata (column) included",
    ] {
        assert!(table.contains(words), "{words}: {table}");
    }
    let json = rig.run(&[&compare[..], &["--json", "--plot=p.svg"]].concat()).ok().json();
    let cell = |index: usize, key: &str| json["cells"][index][key].as_f64().unwrap();
    assert_eq!((cell(0, "absorbed_share"), cell(1, "absorbed_share")), (0.0, 0.0));
    assert!(cell(2, "absorbed_share") > 0.2, "{json:#}");
    for index in 0..3 {
        // What is not absorbed is written once at least, and everything the SSDs were given is accounted for.
        assert!(cell(index, "raid_write_amplification") >= 1.0 - cell(index, "absorbed_share") - 1e-9);
        let chunks = cell(index, "ssd_chunks_written") / cell(index, "user_chunks_written");
        let all = chunks + cell(index, "metadata_write_amplification");
        assert!((all - cell(index, "raid_write_amplification")).abs() < 1e-9, "{index}: {json:#}");
    }
    let svg = fs::read_to_string(rig.path("p.svg")).unwrap();
    assert!(svg.contains(">absorbed in memory, not written<"), "{svg}");
    // The value above a bar is what is written.
    let shown = format!("{:.3}", cell(2, "write_amplification"));
    assert!(svg.contains(&format!(">{}", &shown[..3])), "{shown}: {svg}");
    assert!(json["notes"][0].as_str().unwrap().starts_with("NOT ON EQUAL TERMS"));

    let equal = rig.run(&[&plain[..], &["--json"]].concat()).ok().json();
    let note = equal["notes"][0].as_str().unwrap();
    assert!(
        note.starts_with("on equal terms: all acknowledge what the devices have, as raid, eplog do;"),
        "{note}"
    );
    let sync = rig.run(&[&plain[..], &["--sync", "--json"]].concat()).ok().json();
    assert_eq!(sync["notes"].as_array().map(Vec::len), Some(1), "{sync:#}");
    assert_eq!(equal["cells"], sync["cells"]);
    let alike = rig.run(&[&plain[..4], &["--compare=elastic,was"]].concat()).ok().out;
    assert!(!alike.to_lowercase().contains("equal terms"), "{alike}");
    let both = rig.run(&[&plain[..], &["--sweep=sync=on,off", "--json"]].concat()).ok().json();
    assert!(both["notes"][0].as_str().unwrap().starts_with("NOT ON EQUAL TERMS"), "{both:#}");
}

#[test]
fn replay_and_bench_say_it_too() {
    let rig = rig();
    let replay = ["replay", "--trace=zipf-1.csv", "--device=null", "--geometry=3+1", "--scheme=was"];
    let said = rig.run(&replay).ok().out;
    assert!(said.contains("% of those written): overwritten in it, never written"), "{said}");
    assert!(said.contains("terms    acknowledged from memory: was"), "{said}");
    assert!(!rig.run(&[&replay[..], &["--sync"]].concat()).ok().out.contains("terms  "));
    let json = rig.run(&[&replay[..], &["--json"]].concat()).ok().json();
    let share = json["absorbed_share"].as_f64().unwrap();
    assert!((0.2..1.0).contains(&share), "{json:#}");
    assert!(json["metadata_write_amplification"].as_f64().unwrap() > 0.0);

    let bench =
        ["bench", "--device=null", "--schemes=raid,elastic", "--workload=randwrite", "--requests=2000"];
    let bench = [&bench[..], &["--volume-size=4MiB"]].concat();
    let said = rig.run(&bench).ok().out;
    assert!(said.contains("NOT ON EQUAL TERMS: acknowledged from memory: elastic"), "{said}");
    assert!(said.contains("of it metadata) ") || said.contains("of it metadata), "), "{said}");
    let json = rig.run(&[&bench[..], &["--json"]].concat()).ok().json();
    let raid = &json["results"][0];
    assert_eq!((raid["scheme"].as_str(), raid["absorbed_share"].as_f64()), (Some("raid"), Some(0.0)));
    assert!(raid["ssd_bytes_per_user_byte"].as_f64().unwrap() > 2.9, "{raid:#}");
}

/// Rows that differ in several columns are one point.
#[test]
fn points_are_means_over_several_columns() {
    let rig = Rig::new();
    fs::write(rig.path("t.csv"), "scheme,depth,seed,y\nraid,1,1,1\nraid,1,2,2\nraid,2,1,3\nraid,2,2,6\n")
        .unwrap();
    let plot = ["plot", "t.csv", "--x=scheme", "--y=y", "--out=p.svg"];
    rig.run(&[&plot[..], &["--over=seed"]].concat()).refused(&["expected one"]);
    rig.run(&[&plot[..], &["--over=depth,seed"]].concat()).ok();
    assert!(fs::read_to_string(rig.path("p.svg")).unwrap().contains(">3<"));
    rig.run(&[&plot[..], &["--over=depth,nothing"]].concat())
        .refused(&["--over: found no column \"nothing\""]);
}
