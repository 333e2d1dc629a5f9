//! A writer that remembers what it may rely on: the proof of "a completed fsync survives the death
//! of the server".
//!
//! ```text
//! ledger write DIRECTORY LEDGER SEED SECONDS    writes until an error or for so long; exit code 0 either way
//! ledger check DIRECTORY LEDGER SEED            exit code 1 and one line per damage
//! ```
//!
//! `write` overwrites random 4 KiB blocks of `DIRECTORY/blocks` and makes small files, in batches that end
//! with fsync. Before a batch it notes in `LEDGER` (kept on a disk that does not die) what it is about to
//! write, after the fsync that the batch is safe. `check` demands of every block a whole version: the last
//! one known to be safe, or one that was under way after it; and of every safe file its content. What it saw
//! counts as safe from then on, so after an error `check` comes before the next `write`.
//!
//! Lines of the ledger: `i BLOCK VERSION` is about to be written, `s` all before is safe, `o BLOCK VERSION`
//! was seen by a check, `f NUMBER BYTES` file is about to be made, `g NUMBER BYTES` file is safe.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

const BLOCK_BYTES: usize = 4096;
const BLOCK_COUNT: u64 = 4096;
const BATCH_MAX: u64 = 48;
const FILE_BYTES_MAX: u64 = 40_000;

type Fallible<T> = Result<T, Box<dyn Error>>;

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }
}

/// Bytes that say what they are in their first 24: seed, number, version; the rest follows from these.
fn content(seed: u64, number: u64, version: u64, bytes: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes + 8);
    for word in [seed, number, version] {
        out.extend_from_slice(&word.to_le_bytes());
    }
    let mut random = Random(seed ^ number.rotate_left(20) ^ version.rotate_left(40));
    while out.len() < bytes {
        out.extend_from_slice(&random.next().to_le_bytes());
    }
    out.truncate(bytes);
    out
}

fn word(bytes: &[u8], index: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[8 * index..8 * index + 8]);
    u64::from_le_bytes(word)
}

/// What the ledger promises.
#[derive(Default)]
struct Promises {
    /// Versions each block may have, oldest first; the first one is the last known to be safe.
    blocks: BTreeMap<u64, Vec<u64>>,
    files: BTreeMap<u64, u64>,
    version_max: u64,
    file_max: u64,
}

impl Promises {
    fn read(path: &Path) -> Fallible<Self> {
        let mut text = String::new();
        if path.exists() {
            File::open(path)?.read_to_string(&mut text)?;
        }
        let mut promises = Self::default();
        if !text.is_empty() && !text.ends_with('\n') {
            // The writer was killed in this line.
            text.truncate(text.rfind('\n').map_or(0, |end| end + 1));
            OpenOptions::new().write(true).open(path)?.set_len(text.len() as u64)?;
        }
        for line in text.lines() {
            promises
                .apply(line)
                .ok_or_else(|| format!("{}: not a line of a ledger: {line:?}", path.display()))?;
        }
        Ok(promises)
    }

    fn apply(&mut self, line: &str) -> Option<()> {
        let mut fields = line.split(' ');
        let kind = fields.next()?;
        let mut number = || fields.next()?.parse::<u64>().ok();
        match kind {
            "i" => {
                let (block, version) = (number()?, number()?);
                self.blocks.entry(block).or_default().push(version);
                self.version_max = self.version_max.max(version);
            }
            "s" => self.blocks.values_mut().for_each(|versions| drop(versions.drain(..versions.len() - 1))),
            "o" => drop(self.blocks.insert(number()?, vec![number()?])),
            "f" => self.file_max = self.file_max.max(number()?),
            "g" => drop(self.files.insert(number()?, number()?)),
            _ => return None,
        }
        Some(())
    }
}

struct Writer<'a> {
    directory: &'a Path,
    seed: u64,
    ledger: File,
    blocks: File,
    version: u64,
    file: u64,
    random: Random,
}

impl Writer<'_> {
    /// One write per line group: the ledger is on a disk that stays, but this process may be killed.
    fn note(&mut self, text: &str) -> io::Result<()> {
        self.ledger.write_all(text.as_bytes())
    }

    /// Gives every block a version that is safe.
    fn fill(&mut self) -> io::Result<()> {
        for block in 0..BLOCK_COUNT {
            let bytes = content(self.seed, block, 0, BLOCK_BYTES);
            self.blocks.write_all_at(&bytes, block * BLOCK_BYTES as u64)?;
        }
        self.blocks.sync_all()?;
        File::open(self.directory)?.sync_all()?;
        self.note(&(0..BLOCK_COUNT).map(|block| format!("o {block} 0\n")).collect::<String>())
    }

    fn batch_of_blocks(&mut self) -> io::Result<()> {
        let mut batch = BTreeMap::new();
        for _ in 0..=self.random.below(BATCH_MAX) {
            self.version += 1;
            batch.insert(self.random.below(BLOCK_COUNT), self.version);
        }
        self.note(
            &batch.iter().map(|(block, version)| format!("i {block} {version}\n")).collect::<String>(),
        )?;
        for (&block, &version) in &batch {
            let bytes = content(self.seed, block, version, BLOCK_BYTES);
            self.blocks.write_all_at(&bytes, block * BLOCK_BYTES as u64)?;
        }
        self.blocks.sync_data()?;
        self.note("s\n")
    }

    /// A new file under its final name only when whole: written, synced, renamed, directory synced.
    fn small_file(&mut self) -> io::Result<()> {
        self.file += 1;
        let number = self.file;
        let bytes = 24 + self.random.below(FILE_BYTES_MAX);
        self.note(&format!("f {number} {bytes}\n"))?;
        let (partial, whole) =
            (self.directory.join("partial"), self.directory.join(format!("file-{number}")));
        let mut file = File::create(&partial)?;
        file.write_all(&content(self.seed, number, bytes, bytes as usize))?;
        file.sync_all()?;
        fs::rename(&partial, &whole)?;
        File::open(self.directory)?.sync_all()?;
        self.note(&format!("g {number} {bytes}\n"))
    }
}

fn write(directory: &Path, ledger: &Path, seed: u64, limit: Duration) -> Fallible<()> {
    let promises = Promises::read(ledger)?;
    let blocks =
        OpenOptions::new().write(true).create(true).truncate(false).open(directory.join("blocks"))?;
    let mut writer = Writer {
        directory,
        seed,
        ledger: OpenOptions::new().append(true).create(true).open(ledger)?,
        blocks,
        version: promises.version_max,
        file: promises.file_max,
        random: Random(seed ^ promises.version_max),
    };
    if promises.blocks.is_empty() {
        writer.fill()?;
    }
    let start = Instant::now();
    let mut batches = 0u64;
    let outcome = loop {
        if start.elapsed() >= limit {
            break "time is up".to_owned();
        }
        let done = if writer.random.below(8) == 0 { writer.small_file() } else { writer.batch_of_blocks() };
        match done {
            Ok(()) => batches += 1,
            Err(error) => break format!("stopped by: {error}"),
        }
    };
    println!("ledger: {batches} batches safe in {} ms, {outcome}", start.elapsed().as_millis());
    Ok(())
}

fn check(directory: &Path, ledger: &Path, seed: u64) -> Fallible<u64> {
    let promises = Promises::read(ledger)?;
    let mut damages = 0;
    let mut damage = |line: String| {
        damages += 1;
        println!("ledger: DAMAGE: {line}");
    };
    let mut seen = String::new();
    let file = File::open(directory.join("blocks"))?;
    let mut newer = 0u64;
    for (&block, allowed) in &promises.blocks {
        let mut bytes = vec![0; BLOCK_BYTES];
        if let Err(error) = file.read_exact_at(&mut bytes, block * BLOCK_BYTES as u64) {
            damage(format!("block {block}: {error}"));
            continue;
        }
        let version = word(&bytes, 2);
        if bytes != content(seed, block, version, BLOCK_BYTES) {
            damage(format!("block {block}: not a whole version; begins {:x?}", &bytes[..24]));
        } else if !allowed.contains(&version) {
            damage(format!("block {block}: version {version}, allowed are {allowed:?}"));
        } else {
            newer += u64::from(version != allowed[0]);
            seen.push_str(&format!("o {block} {version}\n"));
        }
    }
    for (&number, &bytes) in &promises.files {
        let expected = content(seed, number, bytes, bytes as usize);
        match fs::read(directory.join(format!("file-{number}"))) {
            Ok(found) if found == expected => {}
            Ok(found) => {
                damage(format!("file-{number}: {} bytes that differ from the {bytes} written", found.len()))
            }
            Err(error) => damage(format!("file-{number}: {error}")),
        }
    }
    OpenOptions::new().append(true).open(ledger)?.write_all(seen.as_bytes())?;
    let (blocks, files) = (promises.blocks.len(), promises.files.len());
    println!(
        "ledger: {blocks} blocks ({newer} newer than the last fsync) and {files} files checked, {damages} damaged"
    );
    Ok(damages)
}

fn run() -> Fallible<u64> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["write", directory, ledger, seed, seconds] => {
            let limit = Duration::from_secs(seconds.parse()?);
            write(Path::new(directory), Path::new(ledger), seed.parse()?, limit).map(|()| 0)
        }
        ["check", directory, ledger, seed] => check(Path::new(directory), Path::new(ledger), seed.parse()?),
        _ => Err("expected: ledger write DIRECTORY LEDGER SEED SECONDS | ledger check DIRECTORY LEDGER SEED"
            .into()),
    }
}

fn main() -> ExitCode {
    match run() {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::from(1),
        Err(error) => {
            eprintln!("ledger: {error}");
            ExitCode::from(2)
        }
    }
}
