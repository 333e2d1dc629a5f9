//! `create`: a new array on devices or files that carry nothing known.

mod taken;

use super::Exit;
use crate::memory::{MemoryLimit, ceil_size};
use array::{
    CreateError, CreateOptions, EngineOptions, LAYOUT_OF_NEW, MemoryNeed, NewArray, RESERVE_PERMILLE_DEFAULT,
    RESERVE_PERMILLE_ELASTIC, RESERVE_PERMILLE_MAX, plan_shards,
};
use block::{DevIndex, Geometry};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use device::OpenError;
use format::{ArrayConfig, ArrayUuid, CodeKind, Consistency, SHARDS_MAX, SchemeKind};
use lab::failure::Failure;
use lab::options::placement::GcUnit;
use node::create::shards_for;
use node::describe::show_shards;
use node::error::Error;
use node::fresh;
use node::interrupt::Interrupt;
use node::made::{MadeFile, check_place, short_of_room};
use node::memory::{show_need, to_json};
use node::naming::check_name;
use node::open::{is_locked, look_at, member_name};
use node::output;
use node::units::{parse_chunk_size, parse_permille, parse_size, show_size};
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};
use taken::Taken;

/// Chunk sizes that can be chosen.
const CHUNK_BYTES: std::ops::RangeInclusive<u64> = 4 << 10..=1 << 20;

/// Options of `create`.
#[derive(Args, Debug)]
pub struct Arguments {
    /// How parity is kept up to date: `eplog` logs the parity of updates on log devices, `raid` updates it
    /// in place, `parity-log` updates data in place and logs the change of the parity; `elastic` writes
    /// everything in new stripes and collects garbage, `was` does so with chunks that are updated often
    /// apart from the others. By default `eplog` if log devices are named, else `raid`.
    #[arg(long, value_parser = scheme_names())]
    scheme: Option<SchemeKind>,
    /// Devices the array can lose without losing data; also the least number of log devices, where there are
    /// any.
    #[arg(long, value_name = "M")]
    parity: usize,
    /// The devices that hold data and parity: block devices or files.
    #[arg(long, num_args = 1.., required = true, value_name = "PATH")]
    data: Vec<PathBuf>,
    /// The log devices (schemes `eplog` and `parity-log`; `elastic` and `was` can do with and without): hard
    /// disks or small SSDs, one for each parity or more. Those beyond that relieve the data devices of the
    /// journal: with one more, a synchronous write of a chunk is one block on one data device, not two.
    #[arg(long, num_args = 1.., value_name = "PATH")]
    log: Vec<PathBuf>,
    /// Unit of placement on one device; by default 4KiB, on large devices as much more as keeps what the
    /// array takes of memory below half of this machine's.
    #[arg(long, value_parser = parse_chunk_size, value_name = "SIZE")]
    chunk_size: Option<u64>,
    #[command(flatten)]
    memory: MemoryLimit,
    /// Make data paths that do not exist as sparse files of this size.
    #[arg(long, value_parser = parse_size, value_name = "SIZE")]
    file_size: Option<u64>,
    /// The same for log paths; without it they get the size of the data files.
    #[arg(long, value_parser = parse_size, value_name = "SIZE")]
    log_size: Option<u64>,
    /// Give the files that are made all their room at once, so that they cannot lack any later; they are
    /// not sparse then.
    #[arg(long, requires = "file_size")]
    allocate: bool,
    /// Erasure code: `xor` for one parity, `cauchy` (Reed-Solomon) for any number, `rdp` (row-diagonal
    /// parity) for two; `auto` is `xor` or `cauchy`.
    #[arg(long, value_enum, default_value = "auto")]
    code: CodeName,
    /// What `raid` and `parity-log` do about the write hole: write through a journal (default), or
    /// recompute parity after a crash.
    #[arg(long, value_enum)]
    consistency: Option<ConsistencyName>,
    /// Share of each data device kept free for new versions (scheme `eplog`, default 10%), or free of
    /// chunks for garbage to gather (`elastic` and `was`, default 20%).
    #[arg(long, value_parser = parse_reserve, value_name = "SHARE")]
    reserve: Option<u32>,
    #[command(flatten)]
    unit: GcUnit,
    /// Parts of the array that work side by side, each with a slice of every device and an engine of its own;
    /// fixed for the array's life. `auto` is one for each 256 GiB of the smallest data device, for at most
    /// half of this machine's processors; 1 if a log device is a hard disk, to which each shard would write
    /// a stream of its own.
    #[arg(long, default_value = "auto", value_parser = parse_shards, value_name = "N|auto")]
    shards: Shards,
    /// Name of the array.
    #[arg(long, default_value = "")]
    name: String,
    /// Overwrite devices that belong to an array or hold foreign content, and files that hold anything.
    #[arg(long)]
    force: bool,
    /// Say what would be made, or why it would not; nothing is made nor written.
    #[arg(long)]
    dry_run: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// How many shards the array gets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Shards {
    /// As many as suit its size and this machine.
    Auto,
    /// So many.
    Exactly(u16),
}

fn parse_shards(text: &str) -> Result<Shards, String> {
    match text.parse() {
        _ if text == "auto" => Ok(Shards::Auto),
        Ok(count) if (1..=SHARDS_MAX).contains(&count) => Ok(Shards::Exactly(count)),
        Ok(_) | Err(_) => Err(format!("found {text:?}, expected auto or a number from 1 to {SHARDS_MAX}")),
    }
}

#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum CodeName {
    Auto,
    Xor,
    Cauchy,
    Rdp,
}

#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum ConsistencyName {
    Resync,
    Journal,
}

/// Runs `create`.
pub fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    // Whatever the chunk size: what is wrong with the other options is said before devices are looked at.
    create_options(arguments, arguments.chunk_size.unwrap_or(*CHUNK_BYTES.start()))?;
    check_name(&arguments.name).map_err(|why| Failure::new(format!("--name: {why}")))?;
    refuse_in_use(arguments)?;
    let taken = look_at_devices(arguments)?;
    let files = missing(arguments)?;
    let notes = notes(arguments, &taken, &files);
    // A dry run first: nothing is made before it is known that the sizes will do.
    let Planned { config, need } = plan(arguments)?;
    if arguments.dry_run {
        report(arguments, &config, (&need, &notes), None);
        return Ok(0);
    }
    let interrupt = Interrupt::watch(true)?;
    let mut made = Vec::new();
    for (path, size_bytes) in files {
        made.push(MadeFile::make(path, size_bytes, arguments.allocate)?);
        interrupt.check_creation()?;
    }
    let array = NewArray {
        uuid: fresh::uuid()?,
        name: arguments.name.clone(),
        nonce: fresh::number()?,
        created_unix_s: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()),
    };
    write(arguments, config, &array, &interrupt)
        .map_err(|failure| name_what_stays(failure, arguments, array.uuid))?;
    made.iter_mut().for_each(MadeFile::keep);
    report(arguments, &config, (&need, &notes), Some(array.uuid));
    Ok(0)
}

/// An array as it will be.
struct Planned {
    config: ArrayConfig,
    need: MemoryNeed,
}

/// A share of a device that can be kept free, in thousandths.
fn parse_reserve(text: &str) -> Result<u32, String> {
    match parse_permille(text)? {
        permille if permille > RESERVE_PERMILLE_MAX => {
            Err(format!("found {text:?}, expected at most {}%", RESERVE_PERMILLE_MAX / 10))
        }
        permille => Ok(permille),
    }
}

/// Lays the array out with the chunk size asked for, if it can be served with as much memory; or with the
/// smallest chunks with which all of its tables are in memory.
fn plan(arguments: &Arguments) -> Result<Planned, Failure> {
    let sizes = sizes(arguments)?;
    if let Some(chunk_bytes) = arguments.chunk_size {
        let table_bytes = arguments.memory.table_bytes();
        let planned = plan_with(arguments, chunk_bytes, sizes, table_bytes)?;
        let planned = planned.map_err(|error| named(arguments, error))?;
        let (found, limit) = (planned.need.total_bytes(), arguments.memory.bytes());
        if found <= limit {
            return Ok(planned);
        }
        let advice = match first_that_fits(arguments, sizes, limit, table_bytes)? {
            Ok(planned) => {
                format!("use --chunk-size {}KiB", planned.config.geometry.chunk_bytes() >> 10)
            }
            Err(_) => "make several smaller arrays of it".to_owned(),
        };
        return Err(too_much(arguments, &planned, &advice));
    }
    first_that_fits(arguments, sizes, arguments.memory.bytes_if_chosen(), u64::MAX)?
        .map_err(|least| too_much(arguments, &least, "make several smaller arrays of it"))
}

/// The layout with the smallest chunks that takes at most `limit` bytes of memory, at most `table_bytes` of
/// them for its table of chunks; or that which takes least.
fn first_that_fits(
    arguments: &Arguments,
    sizes: Sizes,
    limit: u64,
    table_bytes: u64,
) -> Result<Result<Planned, Planned>, Failure> {
    let mut chunk_bytes = *CHUNK_BYTES.start();
    let mut least = None;
    loop {
        let is_last = chunk_bytes == *CHUNK_BYTES.end();
        match plan_with(arguments, chunk_bytes, sizes, table_bytes)? {
            Ok(planned) if planned.need.total_bytes() <= limit => return Ok(Ok(planned)),
            Ok(planned) if is_last => return Ok(Err(planned)),
            Err(error @ CreateError::TooLarge { .. }) if is_last => return Err(error.into()),
            Ok(planned) => least = Some(planned),
            Err(CreateError::TooLarge { .. }) => {}
            // The devices are too small for larger chunks: what is wrong is the memory.
            Err(error) => return least.map(Err).ok_or_else(|| named(arguments, error)),
        }
        chunk_bytes *= 2;
    }
}

/// The layout with such chunks, and the memory it takes if its table of chunks takes so many bytes at most.
fn plan_with(
    arguments: &Arguments,
    chunk_bytes: u64,
    Sizes { data_bytes, log_bytes, shards }: Sizes,
    table_bytes: u64,
) -> Result<Result<Planned, CreateError>, Failure> {
    let options = create_options(arguments, chunk_bytes)?;
    match plan_shards(&options, data_bytes, log_bytes, arguments.log.len(), shards) {
        Ok(config) => {
            let need_with = |table_bytes| {
                let options = EngineOptions { table_bytes, ..EngineOptions::default() };
                MemoryNeed::of_all_shards(&config, &options)
            };
            // What waits for a commit follows what the table may take where the array is served.
            let uncommitted_bytes = need_with(arguments.memory.table_bytes())?.uncommitted_bytes;
            let need = MemoryNeed { uncommitted_bytes, ..need_with(table_bytes)? };
            Ok(Ok(Planned { config, need }))
        }
        Err(error) => Ok(Err(error)),
    }
}

fn too_much(arguments: &Arguments, planned: &Planned, advice: &str) -> Failure {
    Failure::new(format!(
        "with chunks of {} the array takes {}, {}: {advice}, or give --memory {} if it is to be served where there is \
         as much",
        show_size(planned.config.geometry.chunk_bytes() as u64),
        show_need(&planned.need),
        arguments.memory.show(),
        ceil_size(planned.need.total_bytes()),
    ))
}

fn create_options(arguments: &Arguments, chunk_bytes: u64) -> Result<CreateOptions, Failure> {
    let (total, parity) = (arguments.data.len(), arguments.parity);
    if parity == 0 || total <= parity {
        return Err(Failure::new(format!(
            "--data names {total} devices, --parity {parity}: expected at least 1 parity and more devices than parities"
        )));
    }
    let geometry = Geometry::new(total - parity, parity, chunk_bytes)?;
    let scheme = scheme_of(arguments);
    arguments.unit.check(scheme)?;
    refuse_meaningless(arguments, scheme)?;
    let reserve = if scheme.is_elastic() { RESERVE_PERMILLE_ELASTIC } else { RESERVE_PERMILLE_DEFAULT };
    Ok(CreateOptions {
        scheme,
        code: match arguments.code {
            CodeName::Xor => CodeKind::Xor,
            CodeName::Auto if parity == 1 => CodeKind::Xor,
            CodeName::Rdp => CodeKind::Rdp,
            CodeName::Auto | CodeName::Cauchy => CodeKind::Cauchy,
        },
        layout: LAYOUT_OF_NEW,
        consistency: match arguments.consistency {
            Some(ConsistencyName::Resync) => Consistency::Resync,
            Some(ConsistencyName::Journal) | None => Consistency::Journal,
        },
        geometry,
        reserve_permille: arguments.reserve.unwrap_or(reserve),
        unit_rows: arguments.unit.rows(),
    })
}

/// Options that the array would not heed.
fn refuse_meaningless(arguments: &Arguments, scheme: SchemeKind) -> Result<(), Failure> {
    let in_place = scheme.is_in_place();
    let why = [
        (!in_place && arguments.consistency.is_some()).then_some((
            "--consistency",
            "never writes over what a stripe needs and has no write hole to choose about",
        )),
        (in_place && arguments.reserve.is_some())
            .then_some(("--reserve", "updates data in place and keeps no space for new versions")),
        (!scheme.has_log() && arguments.log.is_empty() && arguments.log_size.is_some())
            .then_some(("--log-size", "has no log devices")),
    ];
    match why.into_iter().flatten().next() {
        Some((option, why)) => Err(Failure::new(format!("{option}: scheme {scheme} {why}; leave it out"))),
        None => Ok(()),
    }
}

/// The scheme asked for, or the one that the devices suggest.
fn scheme_of(arguments: &Arguments) -> SchemeKind {
    arguments.scheme.unwrap_or(match arguments.log.is_empty() {
        true => SchemeKind::Raid,
        false => SchemeKind::Eplog,
    })
}

/// The names of the schemes, as they are offered.
fn scheme_names() -> impl TypedValueParser<Value = SchemeKind> {
    PossibleValuesParser::new(SchemeKind::OFFERED.iter().map(|scheme| scheme.name()))
        .map(|name| name.parse().expect("only names of schemes are possible"))
}

/// What would be overwritten; refused if it must not be.
fn look_at_devices(arguments: &Arguments) -> Result<Vec<Taken>, Failure> {
    let paths: Vec<&PathBuf> = arguments.data.iter().chain(&arguments.log).collect();
    taken::look(&paths, arguments.force)
}

/// Files that are to be made, with their sizes; refused where none can be.
fn missing(arguments: &Arguments) -> Result<Vec<(&Path, u64)>, Failure> {
    let log_size = arguments.log_size.or(arguments.file_size);
    let data = arguments.data.iter().map(|path| (path.as_path(), arguments.file_size));
    let log = arguments.log.iter().map(|path| (path.as_path(), log_size));
    let mut files = Vec::new();
    for (path, size) in data.chain(log) {
        if let Some(size) = size.filter(|_| is_missing(path)) {
            check_place(path)?;
            files.push((path, size));
        }
    }
    Ok(files)
}

/// What the members would be opened for is possible only while nobody else has them.
fn refuse_in_use(arguments: &Arguments) -> Result<(), Failure> {
    for path in arguments.data.iter().chain(&arguments.log).filter(|path| path.exists()) {
        if is_locked(&look_at(path)?) {
            return Err(Error::Device(OpenError::InUse { path: path.clone() }).into());
        }
    }
    Ok(())
}

/// A device that is too small is named.
fn named(arguments: &Arguments, error: CreateError) -> Failure {
    let CreateError::TooSmall { found_bytes, .. } = error else { return error.into() };
    let paths = arguments.data.iter().chain(&arguments.log);
    let mut small = paths.filter(|path| look_at(path).is_ok_and(|found| found.size_bytes == found_bytes));
    match small.next() {
        Some(path) => Failure::new(format!("{}: {error}", path.display())),
        None => error.into(),
    }
}

/// What the layout depends on beside the options and the chunk size.
#[derive(Clone, Copy)]
struct Sizes {
    /// The smallest data device, as it will be.
    data_bytes: u64,
    /// The smallest log device; 0 without any.
    log_bytes: u64,
    shards: u16,
}

fn sizes(arguments: &Arguments) -> Result<Sizes, Failure> {
    let smallest = |paths: &[PathBuf], made: Option<u64>, option: &str| {
        let mut least = None;
        for path in paths {
            let bytes = match (is_missing(path), made) {
                (false, _) => look_at(path)?.size_bytes,
                (true, Some(bytes)) => bytes,
                (true, None) => {
                    return Err(Failure::new(format!(
                        "{}: does not exist; name an existing device, or give {option} to make files",
                        path.display()
                    )));
                }
            };
            least = Some(least.map_or(bytes, |least: u64| least.min(bytes)));
        }
        Ok(least.unwrap_or(0))
    };
    let data_bytes = smallest(&arguments.data, arguments.file_size, "--file-size")?;
    let log_bytes = smallest(&arguments.log, arguments.log_size.or(arguments.file_size), "--log-size")?;
    let shards = match arguments.shards {
        Shards::Auto => shards_for(data_bytes, &arguments.log),
        Shards::Exactly(count) => count,
    };
    Ok(Sizes { data_bytes, log_bytes, shards })
}

/// Whether a file is to be made here: nothing exists, or an empty file.
fn is_missing(path: &Path) -> bool {
    fs::metadata(path).map_or(true, |metadata| metadata.is_file() && metadata.len() == 0)
}

fn write(
    arguments: &Arguments,
    config: ArrayConfig,
    array: &NewArray,
    interrupt: &Interrupt,
) -> Result<(), Failure> {
    let paths: Vec<PathBuf> = arguments.data.iter().chain(&arguments.log).cloned().collect();
    // Looked at once more under the locks: another command may have been quicker.
    let confirm = || look_at_devices(arguments).map(|_| ());
    node::create::create_unless(interrupt, &paths, config, array, confirm)
}

/// Names the devices on which superblocks of an array are that has not come to be: they could not be erased.
fn name_what_stays(failure: Failure, arguments: &Arguments, array: ArrayUuid) -> Failure {
    let is_its = |path: &&PathBuf| {
        look_at(path).is_ok_and(|found| found.superblock().is_some_and(|found| found.array == array))
    };
    let paths = arguments.data.iter().chain(&arguments.log);
    let stay: Vec<String> = paths.filter(is_its).map(|path| path.display().to_string()).collect();
    if stay.is_empty() {
        return failure;
    }
    let message = format!(
        "{failure}; its superblocks could not be erased on {} (see `elastripe wipe`)",
        stay.join(", ")
    );
    Failure::new(message).with_exit(failure.exit())
}

/// Tells what was made, or, without a UUID, what would be.
fn report(
    arguments: &Arguments,
    config: &ArrayConfig,
    (need, notes): (&MemoryNeed, &[String]),
    uuid: Option<ArrayUuid>,
) {
    let geometry = config.geometry;
    let n = geometry.device_count();
    let paths = arguments.data.iter().chain(&arguments.log);
    let names = (0u16..).map(|index| member_name(n, DevIndex::new(index)));
    if arguments.json {
        let devices: Vec<_> =
            paths.zip(names).map(|(path, name)| json!({ "name": name, "path": path })).collect();
        let report = json!({
            "uuid": uuid.map(|uuid| uuid.to_string()),
            "name": arguments.name,
            "scheme": config.scheme.to_string(),
            "code": config.code.to_string(),
            "consistency": config.scheme.is_in_place().then(|| config.consistency.to_string()),
            "data_count": geometry.data_count(),
            "parity_count": geometry.parity_count(),
            "log_count": config.log_count,
            "chunk_bytes": geometry.chunk_bytes(),
            "unit_rows": config.unit_rows,
            "shard_count": config.shard.count,
            "volume_bytes": config.whole_volume_bytes(),
            "memory": to_json(need),
            "devices": devices,
            "notes": notes,
        });
        return output::line(format_args!("{report:#}"));
    }
    let logs =
        if config.log_count > 0 { format!(" with {} log devices", config.log_count) } else { String::new() };
    let units =
        if config.unit_rows > 0 { format!(", units of {} rows", config.unit_rows) } else { String::new() };
    let name = if arguments.name.is_empty() { "without a name" } else { &arguments.name };
    match uuid {
        Some(uuid) => output::line(format_args!("array {name} ({uuid})")),
        None => output::line(format_args!("array {name}, if it were made; nothing was written")),
    }
    let shards = show_shards(config.shard.count);
    output::line(format_args!(
        "  {} {}+{}{logs}, code {}, chunk {}{units}{shards}",
        config.scheme,
        geometry.data_count(),
        geometry.parity_count(),
        config.code,
        show_size(geometry.chunk_bytes() as u64)
    ));
    output::line(format_args!(
        "  volume {} ({} bytes), survives the loss of any {} of its {} devices",
        show_size(config.whole_volume_bytes()),
        config.whole_volume_bytes(),
        geometry.parity_count(),
        n + usize::from(config.log_count)
    ));
    output::line(format_args!("  takes up to {}", show_need(need)));
    for (path, name) in paths.clone().zip(names) {
        output::line(format_args!("  {name:<7} {}", path.display()));
    }
    for note in notes {
        output::line(format_args!("  note: {note}"));
    }
    if uuid.is_some() {
        output::line(format_args!("next: {}", serve_line(paths)));
    }
}

/// What whoever makes the array should know: what is overwritten, what is not used, where room is short.
fn notes(arguments: &Arguments, taken: &[Taken], files: &[(&Path, u64)]) -> Vec<String> {
    let verb = if arguments.dry_run { "would be" } else { "is" };
    let overwritten =
        taken.iter().map(|one| format!("{verb} overwritten: {} {}", one.path.display(), one.what));
    // With --allocate it is taken now, or refused.
    let short = if arguments.allocate { Vec::new() } else { short_of_room(files) };
    let short = short.into_iter().map(|note| format!("{note}; --allocate takes it now"));
    overwritten.chain(unused(arguments)).chain(short).collect()
}

/// What larger devices have that the smallest one has not.
fn unused(arguments: &Arguments) -> Option<String> {
    let size = |path: &PathBuf| match is_missing(path) {
        true => arguments.file_size,
        false => look_at(path).ok().map(|candidate| candidate.size_bytes),
    };
    let sizes: Vec<(&PathBuf, u64)> =
        arguments.data.iter().filter_map(|path| Some((path, size(path)?))).collect();
    let (smallest, least) = sizes.iter().min_by_key(|(_, bytes)| *bytes)?;
    let unused: u64 = sizes.iter().map(|(_, bytes)| bytes - least).sum();
    let worth_a_word = unused > least / 100;
    worth_a_word.then(|| {
        let (least, unused) = (show_size(*least), show_size(unused));
        format!("{} has only {least}, so {unused} of the others are not used", smallest.display())
    })
}

/// The command that serves it.
fn serve_line<'a>(paths: impl Iterator<Item = &'a PathBuf>) -> String {
    let quoted = |path: &PathBuf| {
        let text = path.display().to_string();
        let is_plain = text.chars().all(|c| c.is_alphanumeric() || "/._-+:@,=".contains(c));
        if is_plain { text } else { format!("'{}'", text.replace('\'', "'\\''")) }
    };
    let words: Vec<String> = paths.map(quoted).collect();
    format!("elastripe serve {} --nbd unix:/PATH/OF/SOCKET", words.join(" "))
}
