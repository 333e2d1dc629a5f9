//! What is kept of an array in a file, so that its name is enough to serve it: `NAME.toml` in
//! `/etc/elastripe`.
//!
//! ```toml
//! uuid = "00112233-4455-6677-8899-aabbccddeeff"
//! places = ["/srv/tank"]       # where its members are looked for; without it, among all block devices
//!
//! [serve]                      # options of `serve`, without the hyphens before them
//! metrics = "127.0.0.1:9880"
//! ```

use crate::error::Error;
use format::ArrayUuid;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use toml::{Table, Value};

/// Options that say what the file says already, or make no sense in it.
const NOT_HERE: [&str; 5] = ["array", "scan", "run", "help", "force"];
/// More than this is no such file.
const BYTES_MAX: u64 = 1 << 20;

/// What a file says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Settings {
    /// The file.
    pub path: PathBuf,
    /// The array.
    pub array: ArrayUuid,
    /// Devices, files and directories to look at; none = all block devices.
    pub places: Vec<PathBuf>,
    /// Options of `serve` as on a command line, each with its name.
    pub options: Vec<(String, String)>,
}

/// The directory of the files: `$ELASTRIPE_CONFIG_DIR`, else `/etc/elastripe`.
pub fn directory() -> PathBuf {
    let told = std::env::var_os("ELASTRIPE_CONFIG_DIR").filter(|told| !told.is_empty());
    told.map_or_else(|| PathBuf::from("/etc/elastripe"), PathBuf::from)
}

/// The file of an array by its name (that of the file) or UUID. Of two files of one array the first counts.
pub fn find(wanted: &str) -> Result<Option<Settings>, Error> {
    let named = directory().join(format!("{wanted}.toml"));
    if !wanted.contains('/') && named.exists() {
        return Settings::read(&named).map(Some);
    }
    let Ok(array) = wanted.parse::<ArrayUuid>() else { return Ok(None) };
    Ok(of_array(array))
}

/// The file of this array; others may be what they like.
fn of_array(array: ArrayUuid) -> Option<Settings> {
    let files = fs::read_dir(directory()).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut files: Vec<PathBuf> =
        files.filter(|path| path.extension().is_some_and(|ext| ext == "toml")).collect();
    files.sort();
    files.iter().filter_map(|path| Settings::read(path).ok()).find(|settings| settings.array == array)
}

impl Settings {
    /// Reads a file.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let at = |source| Error::At { path: path.to_owned(), source };
        let wrong = |why: String| Error::Settings { path: path.to_owned(), why };
        let length = fs::metadata(path).map_err(at)?.len();
        if length > BYTES_MAX {
            return Err(wrong(format!("found {length} bytes, expected at most {BYTES_MAX}")));
        }
        let text = fs::read_to_string(path).map_err(at)?;
        let table: Table =
            text.parse().map_err(|error: toml::de::Error| wrong(in_a_line(&error.to_string())))?;
        let (mut array, mut places, mut options) = (None, Vec::new(), Vec::new());
        for (key, value) in table {
            match (key.as_str(), value) {
                ("uuid", Value::String(text)) => {
                    array = Some(
                        text.parse().map_err(|_| wrong(format!("uuid: found {text:?}, expected a UUID")))?,
                    )
                }
                ("places", value) => {
                    places = texts(&value).map_err(|why| wrong(format!("places: {why}")))?;
                }
                ("serve", Value::Table(table)) => {
                    for (name, value) in table {
                        let values =
                            of_option(&name, &value).map_err(|why| wrong(format!("serve.{name}: {why}")))?;
                        options.extend(values.into_iter().map(|value| (name.clone(), value)));
                    }
                }
                (key, value) => {
                    return Err(wrong(format!(
                        "found {key} ({}), expected uuid (a text), places (texts) and [serve]",
                        value.type_str()
                    )));
                }
            }
        }
        let array = array.ok_or_else(|| wrong("expected uuid = \"...\", which says the array".to_owned()))?;
        let places = places.into_iter().map(PathBuf::from).collect();
        Ok(Self { path: path.to_owned(), array, places, options })
    }

    /// The options as words of a command line, but for those named.
    pub fn words(&self, but: &[&str]) -> Vec<String> {
        let kept = self.options.iter().filter(|(name, _)| !but.contains(&name.as_str()));
        kept.map(|(name, value)| match value.as_str() {
            "" => format!("--{name}"),
            value => format!("--{name}={value}"),
        })
        .collect()
    }
}

/// The first line of what is wrong, and what it is.
fn in_a_line(error: &str) -> String {
    error
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with('|'))
        .collect::<Vec<_>>()
        .join(" ")
}

fn texts(value: &Value) -> Result<Vec<String>, String> {
    let one = |value: &Value| {
        let text = value.as_str().map(str::to_owned);
        text.ok_or_else(|| format!("found {}, expected texts", value.type_str()))
    };
    value
        .as_array()
        .map_or_else(|| one(value).map(|text| vec![text]), |values| values.iter().map(one).collect())
}

/// The values of an option; a flag that is set has an empty one.
fn of_option(name: &str, value: &Value) -> Result<Vec<String>, String> {
    let is_name =
        !name.is_empty() && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
    if !is_name || name.starts_with('-') || NOT_HERE.contains(&name) {
        return Err("expected an option of `serve` that can be kept".to_owned());
    }
    if let Some(is) = value.as_bool() {
        return Ok(if is { vec![String::new()] } else { Vec::new() });
    }
    let values = value.as_integer().map_or_else(|| texts(value), |number| Ok(vec![number.to_string()]))?;
    if values.iter().any(String::is_empty) {
        return Err("found an empty text".to_owned());
    }
    Ok(values)
}

/// What became of an array's file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Kept {
    /// It was written.
    Written(PathBuf),
    /// There was one.
    There(PathBuf),
    /// There was one by the array's former name, which has the present one now.
    Moved {
        /// Its former place.
        from: PathBuf,
        /// Its present one.
        to: PathBuf,
    },
}

/// Keeps a file of an array of this name, unless there is one; options that are in it stay.
pub fn keep(array: ArrayUuid, name: &str, places: &[PathBuf]) -> Result<Kept, Error> {
    let directory = directory();
    let at = |path: &Path| {
        let path = path.to_owned();
        move |source| Error::At { path, source }
    };
    fs::create_dir_all(&directory).map_err(at(&directory))?;
    let is_usable = !name.is_empty() && crate::naming::check_name(name).is_ok();
    let stem = if is_usable { name.to_owned() } else { array.to_string() };
    let path = directory.join(format!("{stem}.toml"));
    if path.exists() {
        let other = Settings::read(&path)?;
        if other.array == array {
            return Ok(Kept::There(path));
        }
        let why = format!("is of array {}; give one of them another name (`rename`)", other.array);
        return Err(Error::Settings { path, why });
    }
    if let Some(old) = of_array(array) {
        fs::rename(&old.path, &path).map_err(at(&old.path))?;
        return Ok(Kept::Moved { from: old.path, to: path });
    }
    let beside = directory.join(format!(".{stem}.{}", std::process::id()));
    let written =
        write_new(&beside, &text_of(array, &stem, places)).and_then(|()| fs::rename(&beside, &path));
    if written.is_err() {
        let _ = fs::remove_file(&beside); // it may not be there
    }
    written.map_err(at(&path))?;
    Ok(Kept::Written(path))
}

fn write_new(path: &Path, text: &str) -> io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

fn text_of(array: ArrayUuid, stem: &str, places: &[PathBuf]) -> String {
    let quoted = |text: String| Value::String(text).to_string();
    let list: Vec<String> = places.iter().map(|place| quoted(place.to_string_lossy().into_owned())).collect();
    let places = match list.as_slice() {
        [] => "# Its members are looked for among all block devices.\n".to_owned(),
        list => format!("places = [\n    {},\n]\n", list.join(",\n    ")),
    };
    format!(
        "# `elastripe serve {stem}` goes by this file, and the service elastripe@{stem} does.\nuuid = {}\n{places}\n\
         # Options of `elastripe serve`, without the hyphens before them. Those on the command line count more.\n\
         [serve]\n# nbd = [\"unix:/run/elastripe/{stem}.nbd\"]\n# metrics = \"127.0.0.1:9880\"\n# rebuild-rate = \"200MiB/s\"\n",
        quoted(array.to_string())
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
    use super::*;

    fn read(text: &str) -> Result<Settings, String> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.toml");
        fs::write(&path, text).unwrap();
        Settings::read(&path).map_err(|error| error.to_string())
    }

    const UUID: &str = "uuid = \"00112233-4455-6677-8899-aabbccddeeff\"\n";

    #[test]
    fn options_become_words_of_a_command_line() {
        let text = "places = [\"/a\", \"/b c\"]\n[serve]\nnbd = [\"unix:x\", \"tcp:y:1\"]\nthreads = 2\ndegraded = true\nread-only = false\n";
        let settings = read(&format!("{UUID}{text}")).unwrap();
        assert_eq!(settings.places, [PathBuf::from("/a"), PathBuf::from("/b c")]);
        let mut words = settings.words(&[]);
        words.sort();
        assert_eq!(words, ["--degraded", "--nbd=tcp:y:1", "--nbd=unix:x", "--threads=2"]);
        assert_eq!(settings.words(&["nbd"]).len(), 2);
    }

    #[test]
    fn what_makes_no_sense_is_named() {
        for (text, word) in [
            ("", "uuid"),
            ("uuid = 7", "uuid"),
            ("uuid = \"x\"", "expected a UUID"),
            ("uuid = ", "line 1"),
            (&format!("{UUID}colour = 1"), "colour"),
            (&format!("{UUID}places = 7"), "places"),
            (&format!("{UUID}[serve]\nrun = \"rm\""), "serve.run"),
            (&format!("{UUID}[serve]\nnbd = [1]"), "serve.nbd"),
            (&format!("{UUID}[serve]\n\"-x y\" = 1"), "serve.-x y"),
            (&format!("{UUID}[serve]\nmetrics = \"\""), "empty"),
        ] {
            let said = read(text).unwrap_err();
            assert!(said.contains(word) && said.contains("a.toml") && !said.contains('\n'), "{text}: {said}");
        }
    }

    #[test]
    fn what_is_written_can_be_read() {
        let array = "00112233-4455-6677-8899-aabbccddeeff".parse().unwrap();
        let places = [PathBuf::from("/srv/a \"b\""), PathBuf::from("/srv/c\\d")];
        let settings = read(&text_of(array, "tank", &places)).unwrap();
        assert_eq!((settings.array, settings.places.as_slice()), (array, &places[..]));
        assert_eq!(read(&text_of(array, "tank", &[])).unwrap().places, Vec::<PathBuf>::new());
    }
}
