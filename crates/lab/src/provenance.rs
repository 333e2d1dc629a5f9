//! Where a result comes from: program, commit, machine, time, command line.

use node::units::show_time;
use serde_json::{Value, json};
use std::fs::File;
use std::io::Read as _;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::{SystemTime, UNIX_EPOCH};

/// Version and commit, as `--version` says it.
pub const VERSION: &str = env!("ELASTRIPE_VERSION");
/// The commit's full name; empty if it is not known.
const COMMIT: &str = env!("ELASTRIPE_COMMIT");
/// Whether sources had changed since the commit.
const DIRTY: &str = env!("ELASTRIPE_DIRTY");

/// The commit, if it is known; one whose sources have changed since ends in `+`.
pub fn commit() -> Option<String> {
    let changed = if DIRTY == "true" { "+" } else { "" };
    (!COMMIT.is_empty()).then(|| format!("{COMMIT}{changed}"))
}

/// The file that holds this program, where it is not what the process was started as.
static PROGRAM: OnceLock<PathBuf> = OnceLock::new();

/// Says that this program is a library in that file; to be called first of all.
pub fn set_program(file: PathBuf) {
    // Whoever comes second holds the same library.
    let _ = PROGRAM.set(file);
}

/// What tells this program from every other build: a hash of it. A commit would not do, as sources change
/// between two.
pub fn build() -> &'static str {
    static BUILD: OnceLock<String> = OnceLock::new();
    // A program that cannot be read is told apart by its commit.
    BUILD.get_or_init(|| {
        hash_of_program().map_or_else(|_| format!("unread-{COMMIT}"), |hash| format!("{hash:016x}"))
    })
}

fn hash_of_program() -> std::io::Result<u64> {
    let own = || PathBuf::from("/proc/self/exe");
    let mut program = File::open(PROGRAM.get().cloned().unwrap_or_else(own))?;
    let (mut hash, mut bytes) = (0xcbf2_9ce4_8422_2325_u64, Vec::new());
    let mix = |hash: u64, word: u64| (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    // A piece is shorter than the others at the end only, however the system cuts what it reads.
    while program.by_ref().take(1 << 20).read_to_end(&mut bytes)? > 0 {
        let (words, rest) = bytes.as_chunks::<8>();
        hash = words.iter().fold(hash, |hash, word| mix(hash, u64::from_le_bytes(*word)));
        hash = rest.iter().fold(mix(hash, bytes.len() as u64), |hash, &byte| mix(hash, u64::from(byte)));
        bytes.clear();
    }
    Ok(hash)
}

/// The machine's name.
pub fn host() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    if name.trim().is_empty() { "unknown".to_owned() } else { name.trim().to_owned() }
}

/// Now, in universal time.
pub fn date() -> String {
    show_time(SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()))
}

/// The command line, so that a shell understands it.
pub fn command() -> String {
    let words = std::env::args_os().enumerate().map(|(index, word)| {
        // Where the program lies says nothing.
        if index == 0 { "elastripe".to_owned() } else { quoted(&word.to_string_lossy()) }
    });
    words.collect::<Vec<_>>().join(" ")
}

/// A word so that a shell understands it.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,+%@".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    let word: String = word.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// All of it.
pub fn json() -> Value {
    json!({
        "commit": commit(),
        "build": build(),
        "host": host(),
        "date": date(),
        "command": command(),
    })
}

/// The same below a table.
pub fn text() -> String {
    format!("elastripe {VERSION} on {}, {}: {}", host(), date(), command())
}

/// What made a picture: the same for the same command line, so that pictures can be compared byte by byte.
pub fn of_picture() -> String {
    format!("elastripe {VERSION}: {}", command())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_where_a_shell_would_split_them() {
        assert_eq!(quoted("--sweep=queue-depth=1,8"), "--sweep=queue-depth=1,8");
        assert_eq!(quoted("a b"), "'a b'");
        assert_eq!(quoted("it's"), "'it'\\''s'");
        assert_eq!(quoted(""), "''");
        assert_eq!(quoted("*\n"), "'* '");
    }

    #[test]
    fn the_build_is_a_hash_of_the_program() {
        assert_eq!(build().len(), 16, "{}", build());
        assert_eq!(build(), format!("{:016x}", hash_of_program().unwrap_or_default()));
    }
}
