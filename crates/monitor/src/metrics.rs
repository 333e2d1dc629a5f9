//! An array's status as metrics in the text format of OpenMetrics. Names and units follow Prometheus: base
//! units, counters end in `_total`, a state is one series per state with 1 for the one that is.

use node::drives::Warning;
use node::status::{Condition, DeviceRole, DeviceState, DeviceStatus, Kind, Status, Wear};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Registry, Unit};
use std::collections::HashMap;
use std::fmt;

/// The content type of [`text`].
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

const CONDITIONS: [Condition; 7] = [
    Condition::Healthy,
    Condition::Degraded,
    Condition::Suspended,
    Condition::Lost,
    Condition::Failed,
    Condition::Incomplete,
    Condition::Down,
];
const STATES: [DeviceState; 8] = [
    DeviceState::Healthy,
    DeviceState::Rebuilding,
    DeviceState::Failed,
    DeviceState::Absent,
    DeviceState::Missing,
    DeviceState::Spare,
    DeviceState::Taken,
    DeviceState::Unfit,
];

/// The metrics of an array.
pub fn text(status: Status) -> Result<String, fmt::Error> {
    let mut registry = Registry::with_prefix("elastripe");
    registry.register_collector(Box::new(Source(status)));
    let mut text = String::new();
    encode(&mut text, &registry)?;
    Ok(text)
}

type Labels<'a> = Vec<(&'static str, &'a str)>;
/// Of one metric, each series' labels and value.
type Series<'a, T> = Vec<(Labels<'a>, T)>;

/// A metric that was not measured has no series, and is left out.
struct Page<'a>(DescriptorEncoder<'a>);

impl Page<'_> {
    fn put<T>(
        &mut self,
        (name, help, unit): (&str, &str, Option<Unit>),
        kind: MetricType,
        series: &Series<'_, T>,
        put: impl Fn(&mut MetricEncoder<'_>, &T) -> fmt::Result,
    ) -> fmt::Result {
        if series.is_empty() {
            return Ok(());
        }
        let mut encoder = self.0.encode_descriptor(name, help, unit.as_ref(), kind)?;
        for (labels, value) in series {
            if labels.is_empty() {
                put(&mut encoder, value)?;
            } else {
                put(&mut encoder.encode_family(labels)?, value)?;
            }
        }
        Ok(())
    }

    fn gauges(
        &mut self,
        name: &str,
        help: &str,
        unit: Option<Unit>,
        series: &Series<'_, f64>,
    ) -> fmt::Result {
        self.put((name, help, unit), MetricType::Gauge, series, |encoder, value| encoder.encode_gauge(value))
    }

    fn gauge(&mut self, name: &str, help: &str, unit: Option<Unit>, value: Option<f64>) -> fmt::Result {
        self.gauges(name, help, unit, &value.map(|value| (Vec::new(), value)).into_iter().collect())
    }

    fn counters(
        &mut self,
        name: &str,
        help: &str,
        unit: Option<Unit>,
        series: &Series<'_, u64>,
    ) -> fmt::Result {
        self.put((name, help, unit), MetricType::Counter, series, |encoder, value| {
            encoder.encode_counter::<NoLabelSet, u64, u64>(value, None)
        })
    }

    fn counter(&mut self, name: &str, help: &str, unit: Option<Unit>, value: Option<u64>) -> fmt::Result {
        self.counters(name, help, unit, &value.map(|value| (Vec::new(), value)).into_iter().collect())
    }
}

#[derive(Debug)]
struct Source(Status);

impl Collector for Source {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut page = Page(encoder);
        let status = &self.0;
        whole(&mut page, status)?;
        devices(&mut page, &status.devices)?;
        clients(&mut page, status)?;
        store(&mut page, status)?;
        space(&mut page, status)?;
        work(&mut page, status)
    }
}

/// For a metric a figure below 2^53 is exact; above, nobody will miss the last digits.
#[allow(clippy::cast_precision_loss, reason = "metrics are doubles")]
fn figure(value: u64) -> f64 {
    value as f64
}

fn share(percent: u8) -> f64 {
    f64::from(percent) / 100.0
}

fn flag(is: bool) -> f64 {
    f64::from(u8::from(is))
}

fn whole(page: &mut Page<'_>, status: &Status) -> fmt::Result {
    let shape = &status.shape;
    let labels = vec![
        ("uuid", status.uuid.as_str()),
        ("name", status.name.as_str()),
        ("scheme", shape.scheme.as_str()),
        ("version", env!("CARGO_PKG_VERSION")),
    ];
    page.gauges("array_info", "The array that is served", None, &vec![(labels, 1.0)])?;
    let states = CONDITIONS.map(|one| (one.shown().to_lowercase(), flag(one == status.state)));
    let states = states.iter().map(|(name, is)| (vec![("state", name.as_str())], *is)).collect();
    page.gauges("state", "What the array can do: 1 for the state that it is in", None, &states)?;
    let out =
        |device: &&DeviceStatus| device.role != DeviceRole::Spare && device.state != DeviceState::Healthy;
    let missing = status.devices.iter().filter(out).count() as u64;
    let required = shape.data_count + shape.parity_count + shape.log_count;
    page.gauge("devices_required", "Members of a whole array", None, Some(figure(required as u64)))?;
    page.gauge(
        "failures_tolerated",
        "Further members that may fail without loss of data",
        None,
        Some(figure((shape.parity_count as u64).saturating_sub(missing))),
    )?;
    page.gauge("volume", "Size of the volume", Some(Unit::Bytes), Some(figure(shape.volume_bytes)))?;
    page.gauge("shards", "Shards, each with an engine of its own", None, Some(shape.shard_count.into()))?;
    let lost = status.lost.as_ref().map_or(0, |lost| lost.bytes);
    page.gauge("lost", "Data that cannot be read nor rebuilt", Some(Unit::Bytes), Some(figure(lost)))
}

fn devices(page: &mut Page<'_>, devices: &[DeviceStatus]) -> fmt::Result {
    let names: Vec<String> = STATES.map(|state| state.to_string()).into();
    let mut counts = Vec::new();
    for (role, is) in [("main", DeviceRole::Main), ("log", DeviceRole::Log), ("spare", DeviceRole::Spare)] {
        for (state, name) in STATES.iter().zip(&names) {
            let count = devices.iter().filter(|device| device.role == is && device.state == *state).count();
            counts.push((vec![("role", role), ("state", name.as_str())], figure(count as u64)));
        }
    }
    page.gauges("devices", "Devices by what they are for and how they are", None, &counts)?;
    let each = |value: fn(&DeviceStatus) -> Option<f64>| -> Series<'_, f64> {
        let one = |device| value(device).map(|value| (vec![("device", device_name(device))], value));
        devices.iter().filter_map(one).collect()
    };
    let ages = each(|device| device.oldest_request_ms.map(|ms| figure(ms) / 1e3));
    page.gauges(
        "device_oldest_request",
        "Age of the oldest request that the device has not answered",
        Some(Unit::Seconds),
        &ages,
    )?;
    let lacks_room = each(|device| device.errors.map(|_| flag(device.lacks_room)));
    page.gauges("device_lacks_room", "Writes wait for room where the device lies", None, &lacks_room)?;
    let errors = devices.iter().filter_map(|device| Some((device_name(device), device.errors?)));
    let errors = errors.flat_map(|(name, errors)| {
        [("read", errors.read), ("write", errors.write), ("checksum", errors.checksum)]
            .map(|(kind, count)| (vec![("device", name), ("kind", kind)], count))
    });
    let help = "What the device did wrong, by kind: requests to read and to write that it failed, chunks and metadata blocks of a wrong checksum";
    page.counters("device_errors", help, None, &errors.collect())?;
    let healed = devices.iter().filter_map(|device| {
        device.errors.map(|errors| (vec![("device", device_name(device))], errors.healed))
    });
    let help = "Chunks and metadata blocks that were written anew because they were wrong";
    page.counters("device_healed", help, None, &healed.collect())?;
    wear(page, devices)?;
    traffic(page, devices)
}

/// What drives tell of their own age; those that do not have no series.
fn wear(page: &mut Page<'_>, devices: &[DeviceStatus]) -> fmt::Result {
    let told = || devices.iter().filter_map(|device| Some((device_name(device), device.wear.as_deref()?)));
    let gauges = |value: fn(&Wear) -> Option<f64>| -> Series<'_, f64> {
        told().filter_map(|(name, wear)| Some((vec![("device", name)], value(wear)?))).collect()
    };
    let counters = |value: fn(&Wear) -> Option<u64>| -> Series<'_, u64> {
        told().filter_map(|(name, wear)| Some((vec![("device", name)], value(wear)?))).collect()
    };
    let used = gauges(|wear| wear.used_percent.map(share));
    let ratio = Some(Unit::Ratios);
    page.gauges("device_wear", "Endurance of the drive that is used up, by its own account", ratio, &used)?;
    let spare = told().flat_map(|(name, wear)| {
        [("left", wear.spare_percent), ("minimum", wear.spare_percent_min)]
            .map(|(what, percent)| Some((vec![("device", name), ("what", what)], share(percent?))))
    });
    let help = "Spare blocks of the drive: what is left of them, and below which share it warns";
    page.gauges("device_spare", help, Some(Unit::Ratios), &spare.flatten().collect())?;
    let celsius = gauges(|wear| wear.temperature_c.map(f64::from));
    page.gauges("device_temperature", "Temperature of the drive", Some(Unit::Celsius), &celsius)?;
    let warnings = told().flat_map(|(name, wear)| {
        Warning::ALL.map(|warning| {
            let is = wear.warnings.iter().any(|word| word == warning.word());
            (vec![("device", name), ("kind", warning.word())], flag(is))
        })
    });
    page.gauges("device_warning", "What the drive warns of, by kind", None, &warnings.collect())?;
    let bytes = Some(Unit::Bytes);
    let written = counters(|wear| wear.written_bytes);
    page.counters("device_lifetime_written", "Written to the drive in all its life", bytes, &written)?;
    let help = "What the drive could not read back, in all its life";
    page.counters("device_media_errors", help, None, &counters(|wear| wear.media_errors))
}

fn device_name(device: &DeviceStatus) -> &str {
    &device.name
}

fn traffic(page: &mut Page<'_>, devices: &[DeviceStatus]) -> fmt::Result {
    let moving = || devices.iter().filter_map(|device| Some((device_name(device), device.traffic.as_ref()?)));
    let read = moving().map(|(name, traffic)| (vec![("device", name)], traffic.read_bytes)).collect();
    page.counters("device_read", "Read from the device", Some(Unit::Bytes), &read)?;
    let written = moving().filter_map(|(name, traffic)| Some((name, traffic.written_by_kind?)));
    let written = written.flat_map(|(name, written)| {
        [
            ("data", written.data_bytes),
            ("parity", written.parity_bytes),
            ("log", written.log_bytes),
            ("metadata", written.metadata_bytes),
        ]
        .map(|(content, bytes)| (vec![("device", name), ("content", content)], bytes))
    });
    page.counters(
        "device_written",
        "Written to the device, by content",
        Some(Unit::Bytes),
        &written.collect(),
    )?;
    let discarded =
        moving().map(|(name, traffic)| (vec![("device", name)], traffic.discarded_bytes)).collect();
    page.counters("device_discarded", "Discarded on the device", Some(Unit::Bytes), &discarded)
}

fn clients(page: &mut Page<'_>, status: &Status) -> fmt::Result {
    let connected = status.clientele.clients.map(|count| figure(count as u64));
    page.gauge("clients", "Clients connected to the volume", None, connected)?;
    let Some(requests) = &status.clientele.requests else { return Ok(()) };
    let kinds = [
        ("read", &requests.read),
        ("write", &requests.write),
        ("flush", &requests.flush),
        ("discard", &requests.discard),
    ];
    let of = |value: fn(&Kind) -> u64| -> Series<'_, u64> {
        kinds.map(|(name, kind)| (vec![("kind", name)], value(kind))).into()
    };
    page.counters("requests", "Requests of clients that were answered", None, &of(|kind| kind.requests))?;
    page.counters("request_errors", "Those that were answered with an error", None, &of(|kind| kind.errors))?;
    page.counters("request", "Bytes of those that were not", Some(Unit::Bytes), &of(|kind| kind.bytes))?;
    let waits: Series<'_, &Kind> = kinds.map(|(name, kind)| (vec![("kind", name)], kind)).into();
    let about = ("request_duration", "From a request to its answer", Some(Unit::Seconds));
    page.put(about, MetricType::Histogram, &waits, |encoder, kind| {
        let classes: Vec<(f64, u64)> = kind.classes().collect();
        let none = None::<&HashMap<usize, _>>;
        encoder.encode_histogram::<NoLabelSet>(figure(kind.waited_ns) / 1e9, kind.requests, &classes, none)
    })?;
    let written: u64 = status.devices.iter().filter_map(|device| Some(device.traffic?.written_bytes)).sum();
    let ratio = (requests.write.bytes > 0).then(|| figure(written) / figure(requests.write.bytes));
    page.gauge(
        "write_amplification",
        "Bytes written to all members, metadata included, per byte that clients wrote, since serving began",
        Some(Unit::Ratios),
        ratio,
    )
}

/// The store of keys that clients use, if they use one.
fn store(page: &mut Page<'_>, status: &Status) -> fmt::Result {
    let Some(store) = &status.clientele.store else { return Ok(()) };
    let bytes = Some(Unit::Bytes);
    page.gauge("keys", "Keys in the store", None, Some(figure(store.keys)))?;
    page.gauge("keys_capacity", "What records may take", bytes.clone(), Some(figure(store.capacity_bytes)))?;
    page.gauge("keys_live", "What records take that count", bytes.clone(), Some(figure(store.live_bytes)))?;
    page.gauge("keys_index", "Memory that the index takes", bytes.clone(), Some(figure(store.index_bytes)))?;
    page.gauge(
        "keys_cache",
        "Memory that the cache of places takes",
        bytes.clone(),
        Some(figure(store.cache_bytes)),
    )?;
    let lookups =
        vec![(vec![("answer", "hit")], store.cache_hits), (vec![("answer", "miss")], store.cache_misses)];
    page.counters("keys_cache_lookups", "Lookups in the cache of places", None, &lookups)?;
    let moved = [
        ("given", store.given_bytes),
        ("written", store.store_written_bytes),
        ("read", store.store_read_bytes),
        ("moved", store.moved_bytes),
    ];
    let moved = moved.map(|(what, bytes)| (vec![("what", what)], bytes)).into();
    page.counters(
        "keys_traffic",
        "What clients gave, what went to the volume and from it, what compaction copied",
        bytes,
        &moved,
    )?;
    page.counters(
        "keys_flushes",
        "Flushes that the store asked for",
        None,
        &vec![(vec![], store.store_flushes)],
    )?;
    page.counters(
        "keys_damaged",
        "Records that could not be read",
        None,
        &vec![(vec![], store.damaged_records)],
    )
}

fn space(page: &mut Page<'_>, status: &Status) -> fmt::Result {
    let engine = &status.engine;
    let chunk = figure(status.shape.chunk_bytes);
    let space = engine.space;
    page.gauge(
        "free",
        "Chunks of all main devices that are free",
        Some(Unit::Bytes),
        space.map(|space| figure(space.chunks_free) * chunk),
    )?;
    let fill = space.filter(|space| space.log_blocks > 0);
    page.gauge(
        "log_fill",
        "Share of the log region that is in use",
        Some(Unit::Ratios),
        fill.map(|space| figure(space.log_blocks_used) / figure(space.log_blocks)),
    )?;
    let commit = engine.commit;
    page.gauge(
        "uncommitted_stripes",
        "Stripes whose parity is older than their data, covered by the log devices",
        None,
        commit.map(|commit| figure(commit.dirty_stripes)),
    )?;
    page.gauge(
        "commit_debt",
        "Parity that commits have still to write to the main devices",
        Some(Unit::Bytes),
        commit.map(|commit| {
            figure(commit.dirty_stripes)
                * figure(status.shape.parity_count.try_into().unwrap_or(u64::MAX))
                * chunk
        }),
    )?;
    page.gauge(
        "commits_paused",
        "1 while parity commits wait for somebody to let them go on",
        None,
        commit.map(|commit| figure(commit.paused.into())),
    )?;
    page.gauge(
        "stuck_stripes",
        "Stripes that cannot be committed because what they need is lost",
        None,
        commit.map(|commit| figure(commit.stuck_stripes)),
    )?;
    page.counter("commits", "Parity commits", None, commit.map(|commit| commit.commits))?;
    let committed = commit.map(|commit| commit.stripes_committed);
    page.counter("stripes_committed", "Stripes committed", None, committed)?;
    let rewritten = engine.gc.map(|gc| gc.chunks_rewritten);
    page.counter("gc_chunks_rewritten", "Chunks moved by garbage collection", None, rewritten)?;
    let memory = engine.memory.map(|memory| {
        vec![
            (vec![("kind", "fixed")], figure(memory.fixed_bytes)),
            (vec![("kind", "dynamic")], figure(memory.dynamic_bytes)),
            (vec![("kind", "placement")], figure(memory.placement_bytes)),
        ]
    });
    let help = "Memory of the array's maps, by whether it grows with uncommitted work";
    page.gauges("maps_memory", help, Some(Unit::Bytes), &memory.unwrap_or_default())?;
    let pages = engine.memory.map(|memory| memory.pages_read);
    page.counter("table_pages_read", "Pages of the table read because they were not in memory", None, pages)
}

fn work(page: &mut Page<'_>, status: &Status) -> fmt::Result {
    let work = status.engine.work.as_ref();
    let kinds = [("rebuild", array::WorkKind::Rebuild), ("scrub", array::WorkKind::Scrub)];
    let mut at_it: Vec<_> = kinds
        .map(|(name, kind)| (vec![("kind", name)], flag(work.is_some_and(|work| work.kind == kind))))
        .into();
    let is_replaced = status.devices.iter().any(|device| device.replacement.is_some());
    at_it.push((vec![("kind", "replacement")], flag(is_replaced)));
    let help = "Whether a rebuild, a scrub or the replacement of a working device is under way";
    page.gauges("work_under_way", help, None, &at_it)?;
    replacements(page, &status.devices)?;
    let done = work.filter(|work| work.total > 0).map(|work| figure(work.done) / figure(work.total));
    page.gauge("work_done", "How much of it is done", Some(Unit::Ratios), done)?;
    let scrub = status.last_scrub;
    page.gauge(
        "last_scrub_end_timestamp",
        "When the last scrub ended",
        Some(Unit::Seconds),
        scrub.map(|scrub| figure(scrub.ended_unix_s)),
    )?;
    page.gauge(
        "last_scrub_errors_left",
        "What the last scrub found wrong and could not mend",
        None,
        scrub.map(|scrub| figure(scrub.errors_left)),
    )
}

fn replacements(page: &mut Page<'_>, devices: &[DeviceStatus]) -> fmt::Result {
    let copied = devices.iter().filter_map(|device| {
        let replacement = device.replacement.as_ref().filter(|replacement| replacement.total_bytes > 0)?;
        let done = figure(replacement.done_bytes) / figure(replacement.total_bytes);
        Some((vec![("device", device.name.as_str())], done))
    });
    let help = "How much of a working device is on the one that is to take its place";
    page.gauges("replacement_done", help, Some(Unit::Ratios), &copied.collect::<Vec<_>>())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn drives_that_tell_of_their_wear_have_series_and_others_none() {
        let wear = json!({
            "drive": "/dev/nvme0n1", "asked_unix_s": 1, "used_percent": 93, "written_bytes": 4096,
            "read_bytes": null, "media_errors": 7, "spare_percent": 98, "spare_percent_min": null,
            "temperature_c": -3, "power_on_hours": null, "unsafe_shutdowns": null, "warnings": ["read-only"],
        });
        let devices: Vec<DeviceStatus> = serde_json::from_value(json!([
            { "name": "data0", "role": "main", "index": 0, "state": "healthy", "wear": wear },
            { "name": "data1", "role": "main", "index": 1, "state": "healthy", "wear_not_offered": "a file" },
        ]))
        .unwrap();
        let mut registry = Registry::with_prefix("elastripe");
        registry.register_collector(Box::new(Drives(devices)));
        let mut text = String::new();
        encode(&mut text, &registry).unwrap();
        let mut lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        lines.retain(|line| !line.ends_with(" 0.0"));
        let expected = [
            "elastripe_device_wear_ratios{device=\"data0\"} 0.93",
            "elastripe_device_spare_ratios{device=\"data0\",what=\"left\"} 0.98",
            "elastripe_device_temperature_celsius{device=\"data0\"} -3.0",
            "elastripe_device_warning{device=\"data0\",kind=\"read-only\"} 1.0",
            "elastripe_device_lifetime_written_bytes_total{device=\"data0\"} 4096",
            "elastripe_device_media_errors_total{device=\"data0\"} 7",
        ];
        assert_eq!(lines, expected);
        assert!(!text.contains("data1"), "{text}");
    }

    #[test]
    fn a_device_that_is_replaced_while_it_works_has_a_series() {
        let replacement = json!({
            "path": "new", "done_bytes": 25, "total_bytes": 100, "written_bytes": 0, "unused_bytes": 0,
            "unread_bytes": 0, "bytes_per_s": 1, "eta_s": null,
        });
        let devices: Vec<DeviceStatus> = serde_json::from_value(json!([
            { "name": "data0", "role": "main", "index": 0, "state": "healthy", "replacement": replacement },
            { "name": "data1", "role": "main", "index": 1, "state": "healthy" },
        ]))
        .unwrap();
        let mut registry = Registry::with_prefix("elastripe");
        registry.register_collector(Box::new(Replaced(devices)));
        let mut text = String::new();
        encode(&mut text, &registry).unwrap();
        let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(lines, ["elastripe_replacement_done_ratios{device=\"data0\"} 0.25"]);
    }

    #[derive(Debug)]
    struct Replaced(Vec<DeviceStatus>);

    impl Collector for Replaced {
        fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
            replacements(&mut Page(encoder), &self.0)
        }
    }

    #[derive(Debug)]
    struct Drives(Vec<DeviceStatus>);

    impl Collector for Drives {
        fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
            wear(&mut Page(encoder), &self.0)
        }
    }
}
