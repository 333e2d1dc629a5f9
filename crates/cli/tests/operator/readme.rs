//! The commands of the README and of the pages on plots work as printed: each line of a block marked
//! `<!-- tested -->` is run in a fresh directory. And `docs/cli.md` names every command and every key
//! of the status.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

use std::path::Path;
use std::process::Command;

/// The commands of the blocks marked as tested.
fn commands(text: &str) -> Vec<String> {
    marked(text, "<!-- tested -->")
}

/// The same of the blocks with another mark.
fn marked(text: &str, mark: &str) -> Vec<String> {
    let blocks = text.split(mark).skip(1);
    let code = blocks.filter_map(|rest| rest.split("```sh\n").nth(1)?.split("```").next());
    code.flat_map(str::lines).filter(|line| !line.trim().is_empty()).map(str::to_owned).collect()
}

/// Runs them in a directory.
fn run_as_printed(commands: Vec<String>, directory: &Path) {
    let binary = Path::new(env!("CARGO_BIN_EXE_elastripe")).parent().unwrap();
    let path = format!("{}:{}", binary.display(), std::env::var("PATH").unwrap());
    for command in commands {
        let output = Command::new("sh")
            .args(["-c", &command])
            .current_dir(directory)
            .env("PATH", &path)
            .env("ELASTRIPE_RUN_DIR", directory)
            .output()
            .unwrap();
        // `fail` leaves the array degraded, which its exit code says.
        let code = output.status.code().unwrap();
        let expected = if command.contains(" fail ") { [0, 1].contains(&code) } else { code == 0 };
        let said = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(expected, "`{command}` ended with {code}:\n{}\n{}", said.0, said.1);
    }
}

#[test]
fn the_quick_start_works_as_printed() {
    let commands = commands(&document("README.md"));
    assert!(commands.len() >= 5, "the README lost its quick start");
    let directory = tempfile::tempdir().unwrap();
    run_as_printed(commands, directory.path());
}

#[test]
fn a_file_system_is_made_as_printed() {
    if !["nbdfuse", "mkfs.ext4", "fusermount3"].iter().all(|tool| crate::common::has(tool)) {
        return;
    }
    if std::fs::File::open("/dev/fuse").is_err() {
        eprintln!("SKIPPED: FUSE is not permitted here, so this test has shown nothing");
        return;
    }
    let readme = document("README.md");
    let commands = marked(&readme, "<!-- tested: file system -->");
    assert!(commands.len() >= 3, "the README lost its file system");
    let directory = tempfile::tempdir().unwrap();
    let _leftovers = Leftovers(directory.path(), "fusermount3 -u disk; elastripe stop ssd0");
    // After the quick start, in which a member is replaced.
    let create = marked(&readme, "<!-- tested -->").swap_remove(0).replace("ssd1", "ssd9");
    run_as_printed([&[create][..], &commands].concat(), directory.path());
    let image = std::fs::File::open(directory.path().join("disk/demo.img")).unwrap();
    let mut magic = [0; 2];
    std::os::unix::fs::FileExt::read_exact_at(&image, &mut magic, 1024 + 56).unwrap();
    assert_eq!(magic, [0x53, 0xef], "no ext4");
}

#[test]
fn the_plots_of_the_manual_are_drawn_as_printed() {
    let directory = tempfile::tempdir().unwrap();
    let mut drawn = 0;
    for page in ["docs/simulate.md", "docs/cli.md"] {
        let mut commands = commands(&document(page));
        assert!(commands.len() >= 2, "{page} lost its plots");
        commands.retain(|command| cfg!(feature = "png") || !command.contains(".png"));
        let files = commands.iter().flat_map(|command| command.split_whitespace());
        let files = files.filter(|word| word.ends_with(".svg") || word.ends_with(".png")).map(str::to_owned);
        let files: Vec<String> = files.collect();
        run_as_printed(commands, directory.path());
        for file in files {
            let bytes = std::fs::read(directory.path().join(&file)).unwrap();
            let begin: &[u8] = if file.ends_with("svg") { b"<svg " } else { b"\x89PNG\r\n" };
            assert!(bytes.starts_with(begin) && bytes.len() > 2000, "{file}");
            drawn += 1;
        }
    }
    assert_eq!(drawn, if cfg!(feature = "png") { 7 } else { 5 }, "every command with a plot draws one");
}

#[test]
fn the_page_on_reliability_works_as_printed() {
    let commands = commands(&document("docs/reliability.md"));
    assert!(commands.len() >= 4, "docs/reliability.md lost its commands");
    let directory = tempfile::tempdir().unwrap();
    run_as_printed(commands, directory.path());
}

/// What commands left behind when one of them fails, and the line that takes it away.
struct Leftovers<'a>(&'a Path, &'a str);

impl Drop for Leftovers<'_> {
    fn drop(&mut self) {
        let run = |command: &mut Command| command.current_dir(self.0).output();
        let binary = Path::new(env!("CARGO_BIN_EXE_elastripe")).parent().unwrap();
        let path = format!("{}:{}", binary.display(), std::env::var("PATH").unwrap());
        let mut command = Command::new("sh");
        let _ = run(command.args(["-c", self.1]).env("PATH", path).env("ELASTRIPE_RUN_DIR", self.0));
    }
}

#[test]
fn a_member_on_another_host_is_cut_off_and_comes_back_as_printed() {
    if !["nbdkit", "nbdfuse", "qemu-io", "fusermount3"].iter().all(|tool| crate::common::has(tool)) {
        return;
    }
    if std::fs::File::open("/dev/fuse").is_err() {
        eprintln!("SKIPPED: FUSE is not permitted here, so this test has shown nothing");
        return;
    }
    let commands = commands(&document("docs/operating.md"));
    assert!(commands.len() >= 10, "docs/operating.md lost its commands");
    let directory = tempfile::tempdir().unwrap();
    let line = "elastripe stop ssd1; kill -CONT $(cat far.pid); umount -l near; kill $(cat far.pid)";
    let _leftovers = Leftovers(directory.path(), line);
    run_as_printed(commands, directory.path());
}

#[test]
fn a_device_lives_as_printed() {
    let commands = marked(&document("docs/operating.md"), "<!-- tested: life -->");
    assert!(commands.len() >= 14, "docs/operating.md lost its commands");
    let directory = tempfile::tempdir().unwrap();
    run_as_printed(commands, directory.path());
}

#[test]
fn an_array_grows_onto_larger_devices_as_printed() {
    let commands = marked(&document("docs/operating.md"), "<!-- tested: growing -->");
    assert!(commands.len() >= 10, "docs/operating.md lost its commands");
    let directory = tempfile::tempdir().unwrap();
    run_as_printed(commands, directory.path());
}

#[test]
fn an_array_of_several_shards_grows_as_printed() {
    let commands = marked(&document("docs/operating.md"), "<!-- tested: growing-shards -->");
    assert!(commands.len() >= 6, "docs/operating.md lost its commands");
    let directory = tempfile::tempdir().unwrap();
    run_as_printed(commands, directory.path());
}

#[test]
fn the_examples_of_the_manual_work_as_printed() {
    if !["nbdinfo", "redis-cli"].iter().all(|tool| crate::common::has(tool)) {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path().to_str().unwrap();
    let _leftovers = Leftovers(directory.path(), "elastripe stop tank; elastripe stop vault");
    for name in ["dev", "run", "srv", "tmp"] {
        std::fs::create_dir(directory.path().join(name)).unwrap();
    }
    let size = |bytes: u64| {
        for name in 'a'..='i' {
            let device = directory.path().join(format!("dev/sd{name}"));
            std::fs::File::options().create(true).append(true).open(device).unwrap().set_len(bytes).unwrap();
        }
    };
    size(256 << 20);
    let examples = document("crates/cli/src/commands/examples.txt");
    let examples: Vec<&str> = examples.lines().filter_map(|line| line.strip_prefix("$ ")).collect();
    assert!(examples.len() > 35, "{examples:?}");
    for example in examples {
        let words: Vec<&str> = example.split(' ').skip(1).collect();
        let depth = if ["kv", "trace", "flash", "lab"].contains(&words[0]) { 2 } else { 1 };
        let help = elastripe(directory.path(), &[&["help"], &words[..depth]].concat());
        let told = |text: &str| text.split_whitespace().collect::<String>();
        assert!(told(&help).contains(&told(example)), "{example} is not in\n{help}");
        assert!(example.len() <= 94, "help would break this line, and its beginning is a command: {example}");
        if words[0] == "grow" {
            size(320 << 20);
        }
        let here = example.replace(" /", &format!(" {place}/")).replace(":/", &format!(":{place}/"));
        let here = here.replace("127.0.0.1:9180", "127.0.0.1:0");
        let here = match words[0] == "serve" && !example.contains("--run ") {
            true => format!(
                "({here} >serve.log 2>&1 &); timeout 60 sh -c 'until grep -q \"serving at\" serve.log; do sleep 0.1; done'"
            ),
            false => here,
        };
        run_as_printed(vec![here], directory.path());
    }
}

fn document(name: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name)).unwrap()
}

fn elastripe(directory: &Path, arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_elastripe"))
        .args(arguments)
        .current_dir(directory)
        .env("ELASTRIPE_RUN_DIR", directory)
        .output()
        .unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_page_on_the_command_line_names_every_command() {
    let page = document("docs/cli.md");
    let help = elastripe(Path::new("."), &["help"]);
    let commands = help.split("Commands:").nth(1).unwrap().split("\n\n").next().unwrap();
    // Two spaces before a name, more before the second line of a description.
    let names = commands.lines().filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names: Vec<&str> = names.filter_map(|line| line.split_whitespace().next()).collect();
    assert!(names.len() > 10, "{help}");
    for name in names.into_iter().filter(|&name| name != "help") {
        assert!(page.contains(&format!("`{name}")), "docs/cli.md does not name the command {name}");
    }
}

fn keys(value: &serde_json::Value, out: &mut Vec<String>) {
    match value {
        serde_json::Value::Object(map) => map.iter().for_each(|(key, value)| {
            out.push(key.clone());
            keys(value, out);
        }),
        serde_json::Value::Array(values) => values.iter().for_each(|value| keys(value, out)),
        serde_json::Value::Null
        | serde_json::Value::Bool(_)
        | serde_json::Value::Number(_)
        | serde_json::Value::String(_) => {}
    }
}

#[test]
fn the_page_on_the_command_line_names_every_key_of_the_status() {
    let page = document("docs/cli.md");
    let directory = tempfile::tempdir().unwrap();
    let run = |arguments: &str| elastripe(directory.path(), &arguments.split(' ').collect::<Vec<_>>());
    let members = "a b c l";
    let made = run("create --scheme eplog --parity 1 --data a b c --log l --file-size 16MiB --json");
    let binary = env!("CARGO_BIN_EXE_elastripe");
    let command = format!("'{binary}' status a --json");
    let serve = ["serve", "a", "b", "c", "l", "--run", &command];
    let status = elastripe(directory.path(), &serve);
    let stopped = run(&format!("status {members} --json"));
    let mut found = Vec::new();
    for text in [made, status, stopped] {
        keys(&serde_json::from_str(&text).unwrap(), &mut found);
    }
    assert!(found.len() > 50, "{found:?}");
    for key in found {
        assert!(page.contains(&format!("`{key}`")), "docs/cli.md does not name the key {key}");
    }
}
