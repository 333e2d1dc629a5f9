//! Options that would change nothing are refused with a line that says why; messages name what is wrong and
//! what to do.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use crate::common::{MEMBERS, Rig};
use serde_json::Value;
use std::fmt::Write as _;
use std::fs;

const HEADER: &str = "ts_us,dev,op,offset,len";

fn rig() -> Rig {
    let rig = Rig::new();
    fs::write(rig.path("t.csv"), format!("{HEADER}\n0,0,W,0,4096\n10,0,W,8192,4096\n")).unwrap();
    rig
}

#[test]
fn an_address_of_the_page_that_is_none_is_refused_with_what_is_expected() {
    let rig = Rig::with_array();
    for bad in ["", "9880", "off", "127.0.0.1:99999", "localhost"] {
        rig.serve_run(&MEMBERS, "true", &["--metrics", bad]).refused(&[
            "--metrics",
            &format!("{bad:?}"),
            "HOST:PORT",
        ]);
    }
}

#[test]
fn an_array_is_not_made_with_options_it_would_not_heed() {
    let rig = Rig::new();
    let create = |scheme: &str, more: &[&str]| {
        let words =
            ["create", "--scheme", scheme, "--parity=1", "--file-size=32MiB", "--data", "a", "b", "c"];
        let logs: &[&str] = if ["eplog", "parity-log"].contains(&scheme) { &["--log", "l"] } else { &[] };
        rig.run(&[&words[..], logs, more].concat())
    };
    for scheme in ["eplog", "elastic", "was"] {
        create(scheme, &["--consistency", "journal"]).refused(&["--consistency", scheme, "no write hole"]);
    }
    for scheme in ["raid", "parity-log"] {
        create(scheme, &["--reserve", "10%"]).refused(&["--reserve", scheme, "in place"]);
    }
    for scheme in ["raid", "elastic", "was"] {
        create(scheme, &["--log-size", "32MiB"]).refused(&["--log-size", scheme, "no log devices"]);
    }
    assert_eq!(fs::read_dir(rig.dir.path()).unwrap().count(), 0, "nothing is made");
    create("raid", &["--consistency", "resync"]).ok();
    let served = ["a", "b", "c"];
    rig.serve_run(&served, "true", &["--commit-every", "100"])
        .refused(&["--commit-every 100", "nothing to commit"]);
    rig.serve_run(&served, "true", &[]).ok();
}

#[test]
fn nothing_is_committed_where_parity_is_up_to_date() {
    let rig = rig();
    for scheme in ["raid", "elastic", "was"] {
        for every in ["100", "end"] {
            for command in
                ["replay --device=null", "simulate --ssd=was-ssd", "simulate --ssd=was-ssd --compare"]
            {
                let mut words: Vec<&str> = command.split(' ').collect();
                if !command.contains("--compare") {
                    words.push("--scheme");
                }
                words.extend([scheme, "--trace=t.csv", "--commit-every", every]);
                rig.run(&words).refused(&["--commit-every", every, "nothing to commit"]);
            }
        }
    }
    // Beside one that commits it is left out where it means nothing.
    rig.run(&["simulate", "--ssd=was-ssd", "--trace=t.csv", "--compare=raid,eplog", "--commit-every=end"])
        .ok();
}

#[test]
fn only_eplog_has_two_ways_to_write_a_stripe_again() {
    let rig = rig();
    for scheme in ["raid", "parity-log", "elastic", "was"] {
        for command in ["replay --device=null --scheme", "simulate --ssd=was-ssd --scheme", "bench --schemes"]
        {
            let mut words: Vec<&str> = command.split(' ').collect();
            words.extend([scheme, "--rewrites=log"]);
            if words[0] != "bench" {
                words.push("--trace=t.csv");
            }
            rig.run(&words).refused(&["--rewrites log", scheme, "only eplog"]);
        }
    }
    let simulate = ["simulate", "--ssd=was-ssd", "--trace=t.csv"];
    rig.run(&[&simulate[..], &["--rewrites=never"]].concat()).refused(&["never", "auto, replace or log"]);
    let ran = |more: &[&str]| rig.run(&[&simulate[..], &["--json"], more].concat()).ok().json();
    assert_eq!(ran(&[])["config"]["rewrites"], "auto");
    assert_eq!(ran(&["--rewrites=log"])["config"]["rewrites"], "log");
    assert_eq!(ran(&["--scheme=raid"])["config"]["rewrites"], Value::Null);
    // Beside one that logs it is left out where it means nothing.
    rig.run(&[&simulate[..], &["--compare=raid,eplog", "--rewrites=log"]].concat()).ok();
}

#[test]
fn slc_mode_without_parity_streams_is_refused() {
    let rig = rig();
    let simulate = ["simulate", "--trace=t.csv", "--ssd=was-ssd", "--slc-cap=0.5"];
    rig.run(&simulate).refused(&["--slc-cap: found --streams none", "add --streams parity"]);
    rig.run(&[&simulate[..], &["--streams=parity"]].concat()).ok();
}

/// What has no effect on a run, or on any of several.
#[test]
fn options_without_effect_are_refused() {
    let rig = rig();
    let refuse = |words: &str, said: &[&str]| {
        rig.run(&words.split(' ').collect::<Vec<_>>()).refused(said);
    };
    let simulate = |more: &str, said: &[&str]| {
        refuse(&format!("simulate --ssd=was-ssd --trace=t.csv {more}"), said);
    };
    simulate("--baseline=raid", &["--baseline raid: found one run alone", "--compare"]);
    simulate("--own-terms", &["--own-terms: found one run alone"]);
    simulate("--jobs=2", &["--jobs 2: found one run alone"]);
    simulate("--compare=raid,eplog --baseline=was", &["--baseline was: found no run of that scheme"]);
    simulate("--scheme=raid --log-device=plextor-m5pro", &["--log-device plextor-m5pro: scheme raid"]);
    simulate("--compare=raid,was --log-device=plextor-m5pro", &["--log-device plextor-m5pro: scheme raid"]);
    simulate("--scheme=raid --batch=9", &["--batch 9, --prefetch 2: found no rebuild", "scheme raid"]);
    simulate("--compare=raid,was --prefetch=3", &["--batch 100, --prefetch 3: found no rebuild"]);
    simulate("--compare=elastic,was --layout=fixed", &["--layout fixed: scheme elastic always rotates"]);
    simulate("--stream-limit=4", &["--stream-limit 4: found --streams none"]);
    for inside in ["--stream-limit=4", "--parity-classes=2", "--stress-ratio=3"] {
        refuse(
            &format!("simulate --ssd=plextor-m5pro --trace=t.csv {inside}"),
            &["only bandwidths are known"],
        );
    }
    for sound in [
        "--compare=raid,eplog --log-device=plextor-m5pro --batch=9 --jobs=1 --baseline=eplog",
        "--scheme=raid --rebuild=1 --batch=9",
        "--compare=raid,was --layout=fixed",
        "--streams=all --stream-limit=4",
    ] {
        let words = format!("simulate --ssd=was-ssd --trace=t.csv {sound}");
        rig.run(&words.split(' ').collect::<Vec<_>>()).ok();
    }
    let bench = |more: &str, said: &[&str]| {
        refuse(&format!("bench --device=null --requests=10 --volume-size=1MiB {more}"), said);
    };
    bench("--schemes=raid,parity-log --cache-slots=4", &["--cache-slots 4: scheme raid"]);
    bench("--schemes=eplog --stripe-cache=4", &["--stripe-cache 4: scheme eplog"]);
    bench("--schemes=raid,was --workload=commit", &["--workload commit: scheme raid", "nothing to commit"]);
    bench("--schemes=raid --workload=burst --batch=9", &["--batch 9, --prefetch 2: found no rebuild"]);
    bench("--working-set=2MiB", &["--working-set 2 MiB: expected at most the 1 MiB"]);
    bench("--schemes=was --table-memory=1MiB", &["--table-memory 1 MiB: scheme was"]);
}

/// Options that others beside them take the effect of.
#[test]
fn options_that_others_overrule_are_refused() {
    let rig = rig();
    let simulate = "simulate --ssd=was-ssd --trace=t.csv";
    let flash = "flash run --workload=uniform --logical-size=32MiB --spare=1.5 --seed=1";
    let reliability = "reliability --geometry=6+2 --trials=0";
    for (words, said) in [
        (format!("{simulate} --compare=raid,eplog --scheme=was"), "--scheme was: found beside"),
        (format!("{simulate} --sweep=scheme=raid,eplog --scheme=was"), "--scheme was: found beside"),
        (format!("{simulate} --compare=raid,was --own-terms --sync"), "--own-terms: found beside --sync"),
        (format!("{simulate} --compare=was --own-terms --sweep=sync=on,off"), "--own-terms: found beside"),
        (format!("{simulate} --compare=raid,eplog --own-terms"), "--own-terms: found no runs that"),
        (format!("{simulate} --fail=0 --fail-at=1"), "--fail-at 1: found --fail 0"),
        (format!("{simulate} --compare=raid,was --fail=0 --fail-at=1"), "--fail-at 1: found --fail 0"),
        (format!("{simulate} --stress-ratio=3"), "--stress-ratio 3: found no --slc-cap"),
        (format!("{flash} --stress-ratio=3"), "--stress-ratio 3: found no --slc-cap"),
        (format!("{reliability} --seed=3"), "--seed: found --trials 0"),
        (format!("{reliability} --confidence=95%"), "--confidence: found --trials 0"),
        (format!("{reliability} --repair-distribution=fixed"), "--repair-distribution: found --trials 0"),
    ] {
        rig.run(&words.split(' ').collect::<Vec<_>>()).refused(&[said]);
    }
    for sound in [
        format!("{simulate} --compare=raid,was --own-terms"),
        format!("{simulate} --sweep=fail=0,1 --fail=1 --fail-at=1"),
        format!("{simulate} --stress-ratio=3 --slc-cap=0.5 --streams=parity"),
        format!("{reliability} --seed=1 --confidence=99%"),
    ] {
        rig.run(&sound.split(' ').collect::<Vec<_>>()).ok();
    }
    rig.run(&["scrub", "x", "--pause", "--force"]).refused(&["--pause", "cannot be used with '--force'"]);
    let create = ["create", "--scheme=raid", "--parity=1", "--file-size=32MiB", "--data", "a", "b", "c"];
    rig.run(&create).ok();
    rig.serve_run(&["a", "b", "c"], "true", &["--commit-rate=1MiB/s"]).refused(&["--commit-rate 1 MiB"]);
}

/// The writes of a fill bring no commit nearer: the first one comes after so many writes of the trace.
#[test]
fn commits_are_counted_from_the_first_write_of_the_trace() {
    let rig = Rig::new();
    let text = (0..60).fold(format!("{HEADER}\n"), |mut text, i| {
        writeln!(text, "{i},0,W,{},4096", i * 24 * 4096 % (1 << 23)).unwrap();
        text
    });
    fs::write(rig.path("t.csv"), text).unwrap();
    let commits = |command: &[&str], every: &str| {
        let more = ["--trace=t.csv", "--fill", "--queue-depth=1", "--json", "--commit-every", every];
        rig.run(&[command, &more].concat()).ok().json()["commit"]["count"].clone()
    };
    for command in [&["simulate", "--ssd=was-ssd"][..], &["replay", "--device=null"]] {
        for (every, count) in [("100", 0), ("60", 1), ("20", 3)] {
            assert_eq!(commits(command, every), Value::from(count), "{command:?} {every}");
        }
    }
}

#[test]
fn json_has_the_names_that_options_take() {
    let rig = rig();
    let words =
        ["flash", "run", "--workload=uniform", "--logical-size=32MiB", "--spare=1.5", "--seed=1", "--json"];
    let more = ["--gc=d-choices:3", "--gc-frontier=separate", "--streams=all", "--wear-levelling=static"];
    let config = rig.run(&[&words[..], &more].concat()).ok().json()["config"].clone();
    assert_eq!(config["gc"], "d-choices:3");
    assert_eq!(config["gc_frontier"], "separate");
    assert_eq!(config["streams"], "all");
    assert_eq!(config["wear_levelling"], "static");
    let json = rig.run(&["flash", "presets", "--json"]).ok().out;
    let json = json + &rig.run(&["simulate", "--trace=t.csv", "--ssd=was-ssd", "--json"]).ok().out;
    assert!(
        json.contains("\"greedy\"") && !json.contains("Greedy") && !json.contains("WearLevelling"),
        "{json}"
    );
}

#[test]
fn what_does_not_fit_is_refused_before_it_is_made() {
    let rig = rig();
    let bench = ["bench", "--requests=10", "--workload=randread"];
    rig.run(&[&bench[..], &["--device=memory", "--volume-size=1TiB"]].concat()).refused(&[
        "of memory, of what is free",
        "--volume-size",
        "--device null",
    ]);
    rig.run(&[&bench[..], &["--device=memory", "--volume-size=16MiB", "--device-size=1TiB"]].concat())
        .refused(&["of memory, of what is free"]);
    let large = rig.run(&[&bench[..], &["--device=null", "--volume-size=1PiB"]].concat());
    let large = large.refused(&["more than 2147483648 chunks per device", "a smaller --volume-size"]);
    assert!(!large.err.contains("--compact"), "{large:?}");
}

#[test]
fn traces_that_cannot_be_read_say_what_would_help() {
    let rig = Rig::new();
    let info = |bytes: &[u8]| {
        fs::write(rig.path("t"), bytes).unwrap();
        rig.run(&["trace", "info", "t"])
    };
    // The form is the right one, and the line that is not is named.
    info(format!("{HEADER}\n0,0,W,99999999999999999999,512\n").as_bytes())
        .refused(&["t:2: offset is \"99999999999999999999\""]);
    info(format!("\u{feff}{HEADER}\r\n0,0,W,0,512\r\n").as_bytes()).ok();
    info(format!("\u{feff}# made by hand\n{HEADER}\n0,0,W,0,512\n").as_bytes()).ok();
    assert!(info(format!("{HEADER}\n").as_bytes()).ok().out.contains("requests       0"));
    rig.run(&["replay", "--trace=t", "--device=null"]).refused(&["t: no requests to replay"]);
    info(b"my,own,format\n1,2,3\n").refused(&["ts_us,dev,op,offset,len with op R, W, F or T"]);
    info(b"\xfd7zXZ\0\0\x04rest").refused(&["t: cannot read", "XZ"]);
    info(b"BZh91AY&SY").refused(&["found bzip2", "bzip2 -dc"]);
    info(b"PK\x03\x04rest").refused(&["found a zip archive", "unzip -p"]);
}

#[test]
fn examine_of_a_blank_disk_speaks_words() {
    let rig = Rig::new();
    fs::File::create(rig.path("blank")).unwrap().set_len(32 << 20).unwrap();
    fs::write(rig.path("letters"), "J".repeat(32 << 20)).unwrap();
    let blank = rig.run(&["examine", "blank"]).code(1).out;
    assert!(blank.contains("found zeros, as where nothing was written"), "{blank}");
    let letters = rig.run(&["examine", "letters"]).code(1).out;
    assert!(letters.contains("found something that begins with \"JJJJJJJJ\""), "{letters}");
    for said in [blank, letters] {
        assert!(said.contains("not a member of an array") && !said.contains('['), "{said}");
    }
}

/// pandas.read_csv with comment=\"#\" takes what is generated: five columns in every line that is no comment,
/// whose commas would be columns.
#[test]
fn generated_traces_are_tables() {
    let rig = Rig::new();
    for profile in ["web", "was-synthetic", "zipf:0.9"] {
        let words =
            ["trace", "generate", "--requests=500", "--seed=3", "--force", "--profile", profile, "g.csv"];
        rig.run(&words).ok();
        let text = fs::read_to_string(rig.path("g.csv")).unwrap();
        let (comments, lines): (Vec<&str>, Vec<&str>) = text.lines().partition(|line| line.starts_with('#'));
        assert_eq!((lines[0], lines.len()), (HEADER, 501));
        assert!(!comments.is_empty() && comments.iter().all(|line| !line.contains(',')), "{comments:?}");
        assert!(lines.iter().all(|line| line.split(',').count() == 5));
    }
}

/// What is taken bit by bit may be allowed beyond all measure; what is taken at once is refused.
#[test]
fn more_memory_than_there_is_ends_no_server() {
    let rig = Rig::with_array();
    let all = ["--memory", "1000TiB"];
    rig.serve_run(&MEMBERS, "true", &all).ok();
    rig.serve_run(&MEMBERS, "true", &[&all[..], &["--table-memory", "500TiB"]].concat()).ok();
    rig.serve_run(&MEMBERS, "true", &[&all[..], &["--buffers", "500TiB"]].concat())
        .refused(&["cannot be had"]);
    let keys =
        ["kv", "serve", "--create", "--resp", "unix:k", "--run", "true", "--cache-keys", "1000000000000"];
    rig.run(&[&keys[..], &all, &MEMBERS].concat()).ok();
}

/// A number or size that is none: which option, what was found, what is expected.
#[test]
fn values_that_are_none_say_what_is_expected() {
    let rig = rig();
    for (words, said) in [
        (&["create", "--parity=two"][..], "'two' for '--parity <M>': expected a whole number such as 8"),
        (&["create", "--chunk-size=4096"], "expected a size with its unit, such as 4KiB"),
        (&["serve", "--on-event", "", "d0"], "the word after '--on-event' is empty"),
        (&["serve", "d0", "--run", ""], "the word after '--run' is empty"),
        (
            &["flash", "run", "--spare=much"],
            "'much' for '--spare <FACTOR>': expected a number such as 2 or 0.5",
        ),
        (&["lab", "run", "all", "--jobs=0"], "'0' for '--jobs <N>': expected a whole number from 1 to 1024"),
        (
            &["simulate", "--trace=t.csv", "--sweep=queue-depth=1,many"],
            "'many' for '--queue-depth <N>': expected",
        ),
    ] {
        let ran = rig.run(words).refused(&[said]);
        assert!(!ran.err.contains("invalid digit") && !ran.err.contains("literal"), "{ran:?}");
    }
}
