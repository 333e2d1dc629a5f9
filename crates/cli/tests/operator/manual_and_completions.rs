//! Pages of the manual and completions of shells, made of the command line as it is.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use crate::common::{Rig, has};
use std::process::Command;

/// The commands that `--help` lists.
fn commands(rig: &Rig) -> Vec<String> {
    let help = rig.run(&["--help"]).ok().out;
    let listed = help.split("Commands:\n").nth(1).unwrap().split("\n\n").next().unwrap();
    let names = listed.lines().filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names = names.map(|line| line.split_whitespace().next().unwrap().to_owned());
    names.filter(|name| name != "help").collect()
}

#[test]
fn every_command_has_a_page_with_its_options() {
    let rig = Rig::new();
    rig.run(&["man", "pages"]).ok();
    let commands = commands(&rig);
    assert!(commands.len() > 25, "{commands:?}");
    for command in &commands {
        let page = std::fs::read_to_string(rig.path("pages").join(format!("elastripe-{command}.1"))).unwrap();
        assert!(page.contains(".SH SYNOPSIS") && page.contains(".TH"), "{command}");
        let help = rig.run(&[command, "--help"]).ok().out;
        let options = help.lines().filter_map(|line| line.trim_start().split("--").nth(1));
        for option in options.map(|rest| rest.split([' ', '[', '=', '<']).next().unwrap()) {
            // In a page a hyphen that is typed is `\-`.
            let typed = format!("\\-\\-{}", option.replace('-', "\\-"));
            assert!(page.contains(&typed) || option.is_empty(), "{command}: {option}");
        }
    }
    let page = std::fs::read_to_string(rig.path("pages/elastripe-scrub.1")).unwrap();
    assert!(
        page.contains(".SH EXAMPLES\n.nf\n  Check ") && page.contains("$ elastripe scrub tank \\-\\-wait"),
        "{page}"
    );
    std::fs::write(rig.path("file"), "").unwrap();
    rig.run(&["man", "file/below"]).refused(&["file/below"]);
}

/// A manual of which pages are missing, or are of another release, is worse than none.
#[test]
fn pages_are_all_written_or_none() {
    let rig = Rig::new();
    std::fs::create_dir_all(rig.path("pages/elastripe-status.1")).unwrap();
    std::fs::write(rig.path("pages/elastripe-create.1"), "of before").unwrap();
    rig.run(&["man", "pages"]).refused(&["pages/elastripe-status.1", "found a folder"]);
    assert_eq!(std::fs::read_dir(rig.path("pages")).unwrap().count(), 2);
    assert_eq!(std::fs::read(rig.path("pages/elastripe-create.1")).unwrap(), b"of before");
    // A limit on the size of files stands for a disk that becomes full.
    if has("bash") {
        let limited = "trap '' XFSZ; ulimit -f 4; exec \"$0\" man new";
        let ran = Command::new("bash")
            .args(["-c", limited, env!("CARGO_BIN_EXE_elastripe")])
            .current_dir(rig.dir.path())
            .output()
            .unwrap();
        let said = String::from_utf8(ran.stderr).unwrap();
        assert!(ran.status.code() == Some(1) && said.starts_with("elastripe: new: "), "{said}");
        assert!(!rig.path("new").exists());
    }
    std::fs::remove_dir(rig.path("pages/elastripe-status.1")).unwrap();
    rig.run(&["man", "pages"]).ok();
    let names = std::fs::read_dir(rig.path("pages")).unwrap().map(|entry| entry.unwrap().file_name());
    assert!(names.into_iter().all(|name| name.to_string_lossy().ends_with(".1")));
    assert!(std::fs::read_to_string(rig.path("pages/elastripe-create.1")).unwrap().contains(".TH"));
}

#[test]
fn a_shell_completes_commands_and_options() {
    let rig = Rig::new();
    for (shell, mark) in
        [("bash", "complete -F"), ("zsh", "#compdef elastripe"), ("fish", "complete -c elastripe")]
    {
        let script = rig.run(&["completions", shell]).ok().out;
        assert!(script.contains(mark) && script.contains("scrub"), "{shell}");
    }
    rig.run(&["completions", "cmd"]).code(2);
    if !has("bash") {
        return;
    }
    let ask = |words: &str, last: usize| {
        let script = format!(
            "eval \"$(\"$0\" completions bash)\"; COMP_WORDS=({words}); COMP_CWORD={last}; \
             _elastripe elastripe \"${{COMP_WORDS[{last}]}}\" \"${{COMP_WORDS[{}]}}\"; echo \"${{COMPREPLY[@]}}\"",
            last - 1
        );
        let ran =
            Command::new("bash").args(["-c", &script, env!("CARGO_BIN_EXE_elastripe")]).output().unwrap();
        String::from_utf8(ran.stdout).unwrap().trim().to_owned()
    };
    assert_eq!(ask("elastripe sta", 1), "status");
    assert_eq!(ask("elastripe serve --metr", 2), "--metrics");
}
