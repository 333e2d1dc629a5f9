//! The traces of a folder, as loads of experiments.

use super::declare::{Source, Workload};
use super::recorded::Recorded;
use super::scale::Scale;
use crate::failure::Failure;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A folder has no more.
const TRACES_MAX: usize = 1000;

/// The traces of a folder, and why others are left out.
pub struct Traces {
    /// Those that can be replayed.
    pub loads: Vec<&'static Workload>,
    /// A line per file that is none.
    pub left_out: Vec<String>,
}

impl Traces {
    /// Reads a folder: each file is a trace, and each folder in it one whose files are read in the order of
    /// their names.
    pub fn of(folder: &Path, scale: Scale) -> Result<Self, Failure> {
        let named = |what: &dyn std::fmt::Display| {
            Failure::new(format!("--traces {}: {what}, expected a folder of traces", folder.display()))
        };
        let mut found = BTreeMap::new();
        for path in listed(folder).map_err(|error| named(&error))? {
            let paths = if path.is_dir() {
                listed(&path).map_err(|error| named(&error))?
            } else {
                vec![path.clone()]
            };
            let name = name(&path);
            if let Some(other) = found.insert(name.clone(), paths) {
                let other = other.first().map_or_else(String::new, |path| path.display().to_string());
                return Err(named(&format!("found {} and {other}, both called {name}", path.display())));
            }
        }
        if found.len() > TRACES_MAX {
            return Err(named(&format!("found {} files, more than {TRACES_MAX}", found.len())));
        }
        let (mut recorded, mut left_out) = (Vec::new(), Vec::new());
        for (name, paths) in found {
            match Recorded::read(&name, paths, scale) {
                Ok((trace, _)) => recorded.push(trace),
                Err(failure) => left_out.push(format!("{name}: {failure}")),
            }
        }
        if recorded.is_empty() {
            let reasons =
                if left_out.is_empty() { String::new() } else { format!(" ({})", left_out.join("; ")) };
            return Err(named(&format!("found no trace that can be replayed{reasons}")));
        }
        Ok(Self { loads: loads(recorded), left_out })
    }
}

/// What a folder has that is not hidden, by name.
fn listed(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if !entry.file_name().to_string_lossy().starts_with('.') {
            paths.push(entry.path());
        }
    }
    paths.sort();
    Ok(paths)
}

/// The name without what says format and compression; what filters and tables could not hold is replaced.
fn name(path: &Path) -> String {
    let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let plain = [".zst", ".gz", ".xz"].iter().find_map(|ending| file.strip_suffix(ending)).unwrap_or(&file);
    let stem = if path.is_dir() { plain } else { plain.rsplit_once('.').map_or(plain, |(stem, _)| stem) };
    let keeps = |letter: char| letter.is_ascii_alphanumeric() || "._-+".contains(letter);
    stem.chars().map(|letter| if keeps(letter) { letter } else { '-' }).collect()
}

/// As loads that live as long as the program: their names are labels of cells, which do.
pub fn loads(recorded: Vec<Recorded>) -> Vec<&'static Workload> {
    let load = |trace: Recorded| -> &'static Workload {
        let trace: &'static Recorded = Box::leak(Box::new(trace));
        Box::leak(Box::new(Workload { name: trace.name(), source: Source::Recorded(trace) }))
    };
    recorded.into_iter().map(load).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use super::super::recorded::CHUNK_BYTES;
    use super::*;

    fn full() -> Scale {
        "1".parse().unwrap()
    }

    /// `count` writes of a chunk, each further than the last one, from a microsecond to the next.
    fn text(count: u64) -> String {
        let lines = (0..count).map(|index| format!("{index},0,W,{},4096\n", index * 12_288));
        format!("ts_us,dev,op,offset,len\n{}", lines.collect::<String>())
    }

    #[test]
    fn a_trace_is_numbered_without_gaps_and_repeated_at_later_times() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("long one.csv"), text(4000)).unwrap();
        std::fs::write(folder.path().join("short.csv"), text(10)).unwrap();
        std::fs::write(folder.path().join("README.md"), "no trace\n").unwrap();
        let traces = Traces::of(folder.path(), full()).unwrap();
        let left_out: Vec<&str> = traces.left_out.iter().filter_map(|line| line.split(':').next()).collect();
        assert_eq!(left_out, ["README", "short"]);
        let [load] = traces.loads[..] else { panic!("{}", traces.loads.len()) };
        assert_eq!(load.name, "long-one");
        let (requests, _) = load.requests(full(), 1).unwrap();
        // Each chunk is written once, so it takes four passes.
        assert_eq!(requests.len(), 16_000);
        let at = |index: usize| (requests[index].time_us, requests[index].offset_bytes / CHUNK_BYTES);
        assert_eq!(
            [at(0), at(1), at(3999), at(4000), at(15_999)],
            [(0, 0), (1, 1), (3999, 3999), (4000, 0), (15_999, 3999)]
        );
        let sets = load.sets(full());
        let set = |name: &str| sets.iter().find(|(known, _)| *known == name).unwrap().1.as_str();
        // 4,096 chunks in 949 rows of six, 72 % full; units of eight rows, as 104 of sixteen would be more.
        assert_eq!((set("unit-rows"), set("device-kib"), set("block-pages")), ("8", "3808", "32"));
    }

    #[test]
    fn files_of_a_folder_are_one_trace_and_a_changed_one_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let joined = folder.path().join("joined");
        std::fs::create_dir(&joined).unwrap();
        std::fs::write(joined.join("1.csv"), text(3000)).unwrap();
        std::fs::write(joined.join("2.csv"), text(3700)).unwrap();
        let traces = Traces::of(folder.path(), full()).unwrap();
        let [load] = traces.loads[..] else { panic!("{}", traces.loads.len()) };
        assert!(
            load.inputs().contains(" 6700 writes of 6700 chunks, 3700 different ones"),
            "{}",
            load.inputs()
        );
        std::fs::write(joined.join("2.csv"), text(3701)).unwrap();
        let error = load.requests(full(), 1).unwrap_err().to_string();
        assert!(error.contains("the file was changed meanwhile"), "{error}");
    }

    #[test]
    fn a_folder_without_traces_is_refused_and_names_why() {
        let folder = tempfile::tempdir().unwrap();
        let refused = |path: &Path| Traces::of(path, full()).err().unwrap().to_string();
        assert!(refused(folder.path()).contains("found no trace that can be replayed, expected"));
        std::fs::write(folder.path().join("a.csv"), text(3)).unwrap();
        assert!(refused(folder.path()).contains("(a: found writes to 3 different chunks, expected 3600"));
        std::fs::write(folder.path().join("a.spc"), "0,1,4096,W,0.0\n").unwrap();
        assert!(refused(folder.path()).contains("both called a"));
        assert!(refused(&folder.path().join("none")).starts_with("--traces "));
    }
}
