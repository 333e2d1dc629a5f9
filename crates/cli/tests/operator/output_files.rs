//! Files that commands write: regular ones are replaced whole, links stay links, devices and FIFOs are
//! written through, and nothing else is touched.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use crate::common::{Ran, Rig};
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{FileTypeExt as _, symlink};
use std::process::{Command, Stdio};

const TRACE: &str = "ts_us,dev,op,offset,len\n0,0,W,0,4096\n10,0,W,8192,4096\n";
const TABLE: &str = "scheme,y_us\nraid,1\neplog,2\n";

/// A command for each way to write a file, without the file.
const WRITERS: [(&[&str], &str); 5] = [
    (
        &["trace", "generate", "--profile=uniform", "--seed=1", "--requests=1000", "--range=1MiB", "--force"],
        "",
    ),
    (&["trace", "convert", "--force", "trace.csv"], ""),
    (&["plot", "t.csv", "--x=scheme", "--y=y_us"], "--out="),
    (&["simulate", "--trace=trace.csv", "--compare=raid,eplog", "--ssd=was-ssd"], "--plot="),
    (&["replay", "--trace=trace.csv", "--device=null", "--geometry=2+1"], "--json="),
];

fn rig() -> Rig {
    let rig = Rig::new();
    fs::write(rig.path("trace.csv"), TRACE).unwrap();
    fs::write(rig.path("t.csv"), TABLE).unwrap();
    rig
}

fn run(rig: &Rig, (words, option): (&[&str], &str), out: &str) -> Ran {
    rig.run(&[words, &[&format!("{option}{out}")]].concat())
}

/// Names that plots accept too.
fn name(option: &str, stem: &str) -> String {
    if ["--out=", "--plot="].contains(&option) { format!("{stem}.svg") } else { stem.to_owned() }
}

#[test]
fn a_device_behind_a_name_stays_a_device() {
    let rig = rig();
    for (words, option) in WRITERS {
        // Through links, so that a mistake costs nobody a device of the machine.
        let (null, full) = (name(option, "null"), name(option, "full"));
        symlink("/dev/null", rig.path(&null)).unwrap();
        symlink("/dev/full", rig.path(&full)).unwrap();
        run(&rig, (words, option), &null).ok();
        let ran = run(&rig, (words, option), &full).code(1);
        let said = ran.err.lines().last().unwrap_or_default();
        assert!(said.starts_with("elastripe: ") && said.contains("No space left on device"), "{ran:?}");
        for link in [null, full] {
            assert!(fs::symlink_metadata(rig.path(&link)).unwrap().is_symlink(), "{words:?} {link}");
            assert!(fs::metadata(rig.path(&link)).unwrap().file_type().is_char_device(), "{words:?} {link}");
            fs::remove_file(rig.path(&link)).unwrap();
        }
    }
}

#[test]
fn a_fifo_gets_what_a_file_would() {
    let rig = rig();
    for (words, option) in WRITERS {
        let (fifo, file) = (name(option, "fifo"), name(option, "file"));
        assert!(Command::new("mkfifo").arg(rig.path(&fifo)).status().unwrap().success());
        let reader = Command::new("cat").arg(rig.path(&fifo)).stdout(Stdio::piped()).spawn().unwrap();
        run(&rig, (words, option), &fifo).ok();
        let read = reader.wait_with_output().unwrap().stdout;
        assert!(fs::metadata(rig.path(&fifo)).unwrap().file_type().is_fifo(), "{words:?}");
        run(&rig, (words, option), &file).ok();
        let written = fs::read(rig.path(&file)).unwrap();
        assert!(!written.is_empty());
        if !words.contains(&"replay") && option.is_empty() {
            // Reports and pictures say when or by which command they were made.
            assert_eq!(read, written, "{words:?}");
        }
        assert!(read.len().abs_diff(written.len()) < 100, "{words:?}: {} {}", read.len(), written.len());
        fs::remove_file(rig.path(&fifo)).unwrap();
        fs::remove_file(rig.path(&file)).unwrap();
    }
}

#[test]
fn a_link_to_a_file_stays_a_link() {
    let rig = rig();
    fs::create_dir(rig.path("there")).unwrap();
    for (words, option) in WRITERS {
        let link = name(option, "link");
        // The second time there is a file to replace.
        symlink("there/new", rig.path(&link)).unwrap();
        for _ in 0..2 {
            run(&rig, (words, option), &link).ok();
            assert!(fs::symlink_metadata(rig.path(&link)).unwrap().is_symlink(), "{words:?}");
            assert!(fs::metadata(rig.path("there/new")).unwrap().len() > 0, "{words:?}");
        }
        let left: Vec<_> =
            fs::read_dir(rig.path("there")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, ["new"], "{words:?}");
        fs::remove_file(rig.path("there/new")).unwrap();
        fs::remove_file(rig.path(&link)).unwrap();
    }
}

#[test]
fn folders_and_loops_of_links_are_refused_before_the_work() {
    let rig = rig();
    for (words, option) in WRITERS {
        let (folder, link) = (name(option, "folder"), name(option, "loop"));
        fs::create_dir(rig.path(&folder)).unwrap();
        symlink(&link, rig.path(&link)).unwrap();
        run(&rig, (words, option), &folder).refused(&["found a folder, expected a file"]);
        run(&rig, (words, option), &link).refused(&["loop"]);
        fs::remove_dir(rig.path(&folder)).unwrap();
        fs::remove_file(rig.path(&link)).unwrap();
    }
}

/// A trace that goes to standard output is alone there.
#[test]
fn standard_output_gets_the_trace_and_nothing_else() {
    let rig = rig();
    let (words, _) = WRITERS[0];
    run(&rig, WRITERS[0], "plain.csv").ok();
    for out in ["/dev/stdout", "-"] {
        let piped = run(&rig, WRITERS[0], out).ok();
        assert_eq!(piped.out.as_bytes(), fs::read(rig.path("plain.csv")).unwrap());
        assert!(piped.err.contains("1000 synthetic requests written"), "{piped:?}");
    }
    let piped = run(&rig, WRITERS[1], "-").ok();
    assert_eq!(piped.out, TRACE);
    assert!(piped.err.contains("2 requests written") && !rig.path("-").exists(), "{piped:?}");
    // One after the other into one file.
    let both = fs::File::create(rig.path("both.csv")).unwrap();
    for _ in 0..2 {
        let mut command = rig.command(&["trace", "convert", "trace.csv", "-"]);
        assert!(command.stdout(both.try_clone().unwrap()).stderr(Stdio::null()).status().unwrap().success());
    }
    drop(both);
    assert_eq!(fs::read_to_string(rig.path("both.csv")).unwrap(), format!("{TRACE}{TRACE}"));
    let file = fs::File::create(rig.path("redirected.csv")).unwrap();
    let mut command = rig.command(&[words, &["/dev/stdout"]].concat());
    assert!(command.stdout(file).stderr(Stdio::null()).status().unwrap().success());
    assert_eq!(fs::read(rig.path("redirected.csv")).unwrap(), fs::read(rig.path("plain.csv")).unwrap());
}

#[test]
fn permissions_of_a_replaced_file_stay() {
    use std::os::unix::fs::PermissionsExt as _;
    let rig = rig();
    run(&rig, WRITERS[1], "private.csv").ok();
    fs::set_permissions(rig.path("private.csv"), fs::Permissions::from_mode(0o600)).unwrap();
    run(&rig, WRITERS[1], "private.csv").ok();
    assert_eq!(fs::metadata(rig.path("private.csv")).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn what_is_interrupted_leaves_nothing() {
    let rig = rig();
    // Its input stays open, so that it waits in the middle of its output.
    let args = ["trace", "convert", "-", "out.csv"];
    let mut command = rig.command(&args);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let rows: String = (0..200_000).map(|row| format!("{row},0,W,{},4096\n", row % 1000 * 4096)).collect();
    input.write_all(TRACE.lines().next().unwrap().as_bytes()).unwrap();
    input.write_all(format!("\n{rows}").as_bytes()).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    let names = fs::read_dir(rig.dir.path()).unwrap().map(|entry| entry.unwrap().file_name());
    let left: Vec<_> = names.filter(|name| name.to_string_lossy().starts_with("out.csv")).collect();
    assert!(left.is_empty(), "{left:?}");
}
