//! Arrays for a store: sized for its keys, on devices that need no hardware.

use super::carrier::{Carrier, Shadow};
use super::in_place::InPlace;
use super::logged::Logged;
use super::{Arguments, Devices, Layout, Subject};
use crate::failure::Failure;
use crate::options::discards::Discards;
use crate::simulated::SimulatedSet;
use crate::subject::array::{ArrayTarget, Payload};
use crate::subject::build::{
    DeviceKind, Kind, LocalArray, LocalSet, Room, Sized, build, build_on, code_or_default, log_count, size,
};
use crate::subject::fit;
use crate::subject::nbd::NbdTarget;
use crate::subject::target::Target;
use array::{Content, EngineOptions};
use block::{DevIndex, Geometry};
use flash::{Device, presets};
use format::{Consistency, LayoutKind, SchemeKind};
use kv::Options;

/// Bytes of a chunk: those of the paper.
const CHUNK_BYTES: u64 = 4096;
/// Buffers for requests on simulated devices, whose content nobody touches, so that they take no memory.
const POOL_BYTES: u64 = 1 << 30;
/// Elastic schemes answer from buffers, so that their size counts.
const ELASTIC_POOL_BYTES: u64 = 64 << 20;
/// What a record of the log takes beside its pair, its line in the summary included, at most.
const RECORD_BYTES: u64 = 64;
/// Room of the log that no key counts in: tables, summaries, slots to work with.
const SLACK_BYTES: u64 = 48 << 20;

/// A store on an array of this scheme, or on an export.
pub fn subject(arguments: &Arguments, scheme: SchemeKind) -> Result<Box<dyn Subject>, Failure> {
    if let Some(uri) = &arguments.nbd {
        let target = NbdTarget::connect(uri)?;
        let (found, needed) = (target.volume_bytes(), with_summaries(keys_bytes(arguments)));
        if found < needed {
            let text =
                format!("--keys: their pairs need {needed} bytes at least, and the export has {found}");
            return Err(Failure::new(text));
        }
        return logged(arguments, Carrier::new(Box::new(target), None));
    }
    let columns = arguments.geometry;
    let geometry = Geometry::new(columns.data_count, columns.parity_count, CHUNK_BYTES)?;
    let kind = Kind {
        scheme,
        code: code_or_default(arguments.code, columns.parity_count),
        consistency: arguments.consistency.or(match arguments.device {
            Devices::Simulated => Consistency::Resync,
            Devices::Memory | Devices::Null => Consistency::Journal,
        }),
        layout: LayoutKind::Spread,
        geometry,
        log_count: log_count(scheme, columns.parity_count),
        unit_rows: None,
    };
    let volume_bytes = volume_bytes(arguments);
    let sized = size(&kind, &room(arguments, geometry, volume_bytes))?;
    let target = target(arguments, scheme, &sized)?;
    let places = arguments.places();
    match arguments.layout {
        Layout::InPlace => {
            let stripe_bytes = super::wide(columns.data_count) * CHUNK_BYTES;
            let pairs = (arguments.load.pair_size, arguments.cache_keys());
            let has_content = arguments.device == Devices::Memory;
            Ok(Box::new(InPlace::new(target, pairs, stripe_bytes, has_content, places)))
        }
        Layout::Log => {
            let shadow = (arguments.device != Devices::Memory).then(|| Shadow::new(target.volume_bytes()));
            logged(arguments, Carrier::new(target, shadow))
        }
    }
}

fn logged(arguments: &Arguments, carrier: Carrier) -> Result<Box<dyn Subject>, Failure> {
    let options = Options {
        sync: arguments.load.sync.of_store(),
        cache_keys: arguments.cache_keys(),
        kept_bytes: usize::try_from(arguments.load.cache_records).unwrap_or(usize::MAX),
        ..Options::default()
    };
    Ok(Box::new(Logged::new(carrier, options, arguments.value_bytes(), arguments.places())?))
}

/// Bytes of the records of all keys.
fn keys_bytes(arguments: &Arguments) -> u64 {
    let keys = arguments.load.keys.saturating_add(arguments.inserted_keys());
    keys.saturating_mul(super::wide(arguments.load.pair_size) + RECORD_BYTES)
}

/// Records with what belongs to them: summaries and what is left of segments take a sixteenth.
fn with_summaries(bytes: u64) -> u64 {
    bytes / 15 * 16
}

/// Bytes of the volume that the pairs need.
fn volume_bytes(arguments: &Arguments) -> u64 {
    let pair_bytes = super::wide(arguments.load.pair_size);
    match arguments.layout {
        // Beyond the last pair the load writes a stripe to its end.
        Layout::InPlace => (arguments.load.keys + 256).saturating_mul(pair_bytes),
        Layout::Log => with_summaries(keys_bytes(arguments) / arguments.fill * 100) + SLACK_BYTES,
    }
}

fn room(arguments: &Arguments, geometry: Geometry, volume_bytes: u64) -> Room {
    let devices = super::wide(geometry.device_count());
    let stripes = volume_bytes.div_ceil(super::wide(geometry.data_count()) * CHUNK_BYTES);
    let chunks_of_pair = super::wide(arguments.load.pair_size).div_ceil(CHUNK_BYTES);
    let (spare_chunks, updates) = if arguments.no_commits {
        let chunks =
            arguments.load.requests.saturating_mul(super::wide(arguments.workload.len())) * chunks_of_pair;
        // Updates stay on their device, and the most popular key is on one.
        (chunks * 2 / devices + 4096, chunks)
    } else {
        let spare = stripes * arguments.spare / 100;
        (spare, spare * devices)
    };
    Room {
        volume_bytes,
        spare_chunks,
        log_blocks: updates.max(1024) * 5 / 4 + 1,
        sized_by: "--keys or --pair-size",
    }
}

fn engine_options(arguments: &Arguments, scheme: SchemeKind) -> EngineOptions {
    let mut options = Discards::Large.apply(EngineOptions::default());
    options.commit.idle_ns = None;
    if arguments.device == Devices::Simulated {
        options.content = Content::Meaningless;
        options.scheme.untorn_bytes = 0;
        options.pool_bytes = if scheme.is_elastic() { ELASTIC_POOL_BYTES } else { POOL_BYTES };
        if !scheme.is_elastic() {
            options.batch_max = 1 << 14;
        }
    }
    options = arguments.stripes.apply(arguments.rewrites.apply(options), scheme);
    options.scheme.tuning.seed = arguments.seed;
    options
}

fn target(arguments: &Arguments, scheme: SchemeKind, sized: &Sized) -> Result<Box<dyn Target>, Failure> {
    let options = engine_options(arguments, scheme);
    let local = |kind: DeviceKind, payload: Payload| -> Result<Box<dyn Target>, Failure> {
        let device_bytes = match kind {
            DeviceKind::Memory => sized.sizes_bytes().into_iter().fold(0, u64::saturating_add),
            DeviceKind::Null => 0,
        };
        let less = "--keys or --pair-size, or --device null";
        fit::check_made(&sized.config, &options, device_bytes, 1, less)?;
        let mut array = build(kind, sized, options)?;
        touch(&mut array, sized);
        Ok(Box::new(ArrayTarget::new(array, payload)))
    };
    match arguments.device {
        Devices::Memory => local(DeviceKind::Memory, Payload::Any),
        Devices::Null => local(DeviceKind::Null, Payload::Zeros),
        Devices::Simulated => {
            let array = build_on(simulated(arguments, sized)?, sized, "simulated".to_owned(), options)?;
            Ok(Box::new(ArrayTarget::simulated(array, SimulatedSet::now_ns, SimulatedSet::counters)))
        }
    }
}

/// Makes memory devices resident.
fn touch(array: &mut LocalArray, sized: &Sized) {
    if let LocalSet::Memory(set) = array.devices().inner_mut() {
        let devices = (0..u16::MAX).take(sized.sizes_bytes().len());
        devices.for_each(|dev| set.make_resident(DevIndex::new(dev)));
    }
}

fn simulated(arguments: &Arguments, sized: &Sized) -> Result<SimulatedSet, Failure> {
    let device = |option: &str, name: &str| -> Result<Device, Failure> {
        let config = presets::by_name(name).ok_or_else(|| {
            Failure::new(format!("{option}: found {name:?}, expected one of {}", presets::NAMES.join(", ")))
        })?;
        Ok(Device::new(config)?)
    };
    let ssd = device("--ssd", &arguments.ssd)?;
    let page_bytes = u64::from(ssd.page_bytes());
    let ssd_bytes = ssd.pages().saturating_mul(page_bytes);
    let main_bytes = sized.main_bytes.next_multiple_of(page_bytes).min(ssd_bytes.max(sized.main_bytes));
    let mut members = vec![(main_bytes, ssd); sized.config.geometry.device_count()];
    if sized.config.log_count > 0 {
        let log = device("--log-device", &arguments.log_device)?;
        members.extend(vec![(sized.log_bytes, log); usize::from(sized.config.log_count)]);
    }
    Ok(SimulatedSet::new(members, 0)?)
}
