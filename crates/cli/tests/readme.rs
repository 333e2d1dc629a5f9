//! The README's commands work as printed: each line of a block marked `<!-- tested -->` is run in a fresh directory.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

use std::path::Path;
use std::process::Command;

/// The commands of the blocks marked as tested.
fn commands(text: &str) -> Vec<String> {
    let blocks = text.split("<!-- tested -->").skip(1);
    let code = blocks.filter_map(|rest| rest.split("```sh\n").nth(1)?.split("```").next());
    code.flat_map(str::lines).filter(|line| !line.trim().is_empty()).map(str::to_owned).collect()
}

#[test]
fn the_quick_start_works_as_printed() {
    let readme =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md")).unwrap();
    let commands = commands(&readme);
    assert!(commands.len() >= 5, "the README lost its quick start");
    let directory = tempfile::tempdir().unwrap();
    let binary = Path::new(env!("CARGO_BIN_EXE_elastripe")).parent().unwrap();
    let path = format!("{}:{}", binary.display(), std::env::var("PATH").unwrap());
    for command in commands {
        let output = Command::new("sh")
            .args(["-c", &command])
            .current_dir(directory.path())
            .env("PATH", &path)
            .env("ELASTRIPE_RUN_DIR", directory.path())
            .output()
            .unwrap();
        // `fail` leaves the array degraded, which its exit code says.
        let code = output.status.code().unwrap();
        let expected = if command.contains(" fail ") { [0, 1].contains(&code) } else { code == 0 };
        let said = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(expected, "`{command}` ended with {code}:\n{}\n{}", said.0, said.1);
    }
}
