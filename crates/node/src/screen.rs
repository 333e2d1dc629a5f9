//! A status as one screen of text, after `zpool status`: what it is, how it is, what that means, what to do.

use crate::describe::show_shards;
use crate::event::work_name;
use crate::faults::FailedBecause;
use crate::registry::{DISK_AT, KEYS_AT, VIRTIO_AT};
use crate::status::{
    Commit, Condition, DeviceState, DeviceStatus, Replacement, Source, Status, StoreStatus, Work,
};
use crate::units::{show_count, show_rate, show_seconds, show_size, show_time};
use std::fmt::Write;

/// The screen.
pub fn render(status: &Status) -> String {
    let mut text = String::new();
    for (label, value) in rows(status) {
        put(&mut text, format_args!("{label:>10}: {value}"));
    }
    text.push('\n');
    devices(&mut text, status);
    text + &remarks(status)
}

/// The array as a whole: what is said, and under which word.
pub fn rows(status: &Status) -> Vec<(&'static str, String)> {
    let mut rows: Vec<(&str, String)> = Vec::new();
    let name = if status.name.is_empty() { "(no name)" } else { &status.name };
    rows.push(("array", format!("{name}  {}", status.uuid)));
    rows.push(("state", status.state.shown().to_owned()));
    rows.push(("meaning", meaning(status) + &troubles::meaning(status)));
    rows.extend(status.lost_state.as_ref().map(|lost| ("DATA LOST", lost.clone())));
    let less_urgent = || troubles::action(status).or_else(|| wear::action(status));
    rows.extend(action(status).or_else(less_urgent).map(|action| ("action", action)));
    rows.push(("served", served(status)));
    rows.push(("shape", shape(status)));
    rows.push(("volume", volume(status)));
    rows.extend(status.clientele.store.map(|store| ("keys", store_line(&store))));
    rows.extend(status.engine.untorn_bytes.map(|bytes| ("untorn", untorn(bytes))));
    rows.extend(space(status).map(|space| ("space", space)));
    rows.extend(commit(status).map(|commit| ("commit", commit)));
    rows.extend(status.engine.placement.as_ref().map(|placement| ("groups", placement.line())));
    rows.extend(gc(status).map(|gc| ("gc", gc)));
    rows.extend(checkpoint(status).map(|checkpoint| ("checkpoint", checkpoint)));
    rows.extend(memory(status).map(|memory| ("memory", memory)));
    rows.extend(activity(status).map(|activity| ("activity", activity)));
    rows.push(("work", work(status)));
    rows.push(("scrub", troubles::last_scrub(status)));
    rows
}

/// What else is to be known of members, a line each.
pub fn remarks(status: &Status) -> String {
    let mut text = String::new();
    delays::list_old(&mut text, status);
    troubles::list_faults(&mut text, status);
    wear::list_complaints(&mut text, status);
    for path in &status.stale {
        put(
            &mut text,
            format_args!(
                "  {}: not in service; it was replaced, or left and can come back (`elastripe online`)",
                path.display()
            ),
        );
    }
    for why in status.ignored.iter().chain(&status.notes) {
        put(&mut text, format_args!("  {why}"));
    }
    text
}

fn put(text: &mut String, line: std::fmt::Arguments<'_>) {
    text.write_fmt(line).expect("writing to a string cannot fail");
    text.push('\n');
}

/// Names of members in one of some states.
fn named<'a>(status: &'a Status, states: &[DeviceState]) -> Vec<&'a str> {
    let wanted = |device: &&DeviceStatus| states.contains(&device.state);
    status.devices.iter().filter(wanted).map(|device| device.name.as_str()).collect()
}

fn list(names: &[&str]) -> String {
    match names {
        [] => "none".to_owned(),
        [one] => (*one).to_owned(),
        [rest @ .., last] => format!("{} and {last}", rest.join(", ")),
    }
}

fn is_are(names: &[&str]) -> &'static str {
    if names.len() == 1 { "is" } else { "are" }
}

fn meaning(status: &Status) -> String {
    let gone = named(status, &[DeviceState::Failed, DeviceState::Absent]);
    let missing = named(status, &[DeviceState::Missing]);
    let rebuilding = named(status, &[DeviceState::Rebuilding]);
    let left = status.shape.parity_count.saturating_sub(gone.len() + missing.len() + rebuilding.len());
    match status.state {
        Condition::Healthy => {
            let total = status.shape.data_count + status.shape.parity_count + status.shape.log_count;
            format!(
                "all {total} devices work; any {} of them may fail without loss of data",
                status.shape.parity_count
            )
        }
        Condition::Degraded if gone.is_empty() && missing.is_empty() && rebuilding.is_empty() => format!(
            "all devices work, but the last scrub left {} errors: what they are in lacks redundancy; all data can be read and written",
            show_count(status.errors_left())
        ),
        Condition::Degraded => {
            let mut parts = Vec::new();
            if !gone.is_empty() {
                parts.push(format!("{} {} out of service", list(&gone), is_are(&gone)));
            }
            if !missing.is_empty() {
                parts.push(format!("{} {} not among the named paths", list(&missing), is_are(&missing)));
            }
            if !rebuilding.is_empty() {
                parts.push(format!("{} {} being rebuilt", list(&rebuilding), is_are(&rebuilding)));
            }
            let rest = match left {
                0 => "one more failure loses data".to_owned(),
                1 => "one more device may fail".to_owned(),
                more => format!("{more} more devices may fail"),
            };
            format!("{}; all data can be read and written; {rest}", parts.join(", "))
        }
        Condition::Suspended => delays::meaning(status),
        Condition::Lost => status.lost.as_ref().map_or_else(|| losses::GIVEN_UP.to_owned(), losses::meaning),
        Condition::Failed => failed_meaning(status),
        Condition::Incomplete => format!(
            "{} {} not looked at, as {} not among the named paths; so nobody can tell how the array is",
            list(&missing),
            was_were(&missing),
            if missing.len() == 1 { "it is" } else { "they are" }
        ),
        Condition::Down => "its server is gone without having stopped the array, so nothing serves the volume; the next start recovers".to_owned(),
    }
}

fn was_were(names: &[&str]) -> &'static str {
    if names.len() == 1 { "was" } else { "were" }
}

fn failed_meaning(status: &Status) -> String {
    let bears = status.shape.parity_count;
    let missing = named(status, &[DeviceState::Missing]);
    let out = named(
        status,
        &[DeviceState::Failed, DeviceState::Absent, DeviceState::Missing, DeviceState::Rebuilding],
    );
    if status.ending.needs_force {
        return format!(
            "it writes in place without a journal and was not stopped in order, and {} {} not there or not whole: without them what is on \
             the others may not belong together, and `serve` refuses to start it",
            list(&out),
            is_are(&out)
        );
    }
    if !missing.is_empty() {
        return format!(
            "{} {} not among the named paths; without more than {bears} members the array cannot be started",
            list(&missing),
            is_are(&missing)
        );
    }
    if out.len() <= bears && status.source != Source::Served {
        return "no member has a checkpoint that can be read, so it cannot be started, with --force neither"
            .to_owned();
    }
    if out.len() <= bears {
        return "no copy of a page of its table is good; writes are refused, and so are reads of what it speaks of"
            .to_owned();
    }
    let rest = match status.source {
        Source::Served => "writes are refused; what can be read still is served, the rest is lost",
        Source::Stopped | Source::InUse | Source::Dead => "it cannot be started",
    };
    format!("{} {} out of service, the array bears {bears}: {rest}", list(&out), is_are(&out))
}

fn action(status: &Status) -> Option<String> {
    let missing = named(status, &[DeviceState::Missing]);
    let gone = named(status, &[DeviceState::Failed, DeviceState::Absent]);
    if status.state == Condition::Suspended {
        return delays::action(status);
    }
    if let (Condition::Lost, Some(lost)) = (status.state, &status.lost) {
        return Some(losses::action(lost));
    }
    if status.state == Condition::Down {
        return Some(serve_again(status));
    }
    if status.ending.needs_force {
        return Some(
            "serve it with all its members; if they are lost, `serve --degraded --force` starts it, and data may be silently wrong: compare it with a \
             backup"
                .to_owned(),
        );
    }
    if let Some(stuck) = status.engine.commit.filter(|commit| commit.stuck_stripes > 0) {
        return Some(format!(
            "{} stripes hold chunks that are lost; rewrite or discard them",
            stuck.stuck_stripes
        ));
    }
    match (missing.first(), gone.first()) {
        (Some(_), _) => Some(format!(
            "name the {} of {}, too; a device that is lost can be replaced later",
            plural(&missing, "path"),
            list(&missing)
        )),
        (None, Some(name)) if status.state != Condition::Failed => {
            let is_whole =
                |device: &&DeviceStatus| device.state == DeviceState::Spare && device.lacks.is_none();
            match status.devices.iter().find(is_whole) {
                Some(spare) if status.source == Source::Stopped => Some(format!(
                    "serve the array with {} among the members: it takes the place of {name}",
                    spare.name
                )),
                Some(_) | None => {
                    let each = gone.iter().map(|name| bring_back_or_replace(status, name));
                    Some(each.collect::<Vec<_>>().join("; "))
                }
            }
        }
        (None, None) if is_half_rebuilt(status) => {
            Some("serve the array: the rebuild goes on where it was".to_owned())
        }
        (None, None) if status.state == Condition::Degraded && status.errors_left() > 0 => Some(format!(
            "scrub again, with room on every device (elastripe scrub {} --wait); replace a device whose errors stay",
            whom(status)
        )),
        (None, None) if status.state == Condition::Lost => Some(losses::take_note(&whom(status))),
        (None, None) if status.state == Condition::Failed => {
            Some("restore from a backup; `elastripe inspect` shows what is left on a member".to_owned())
        }
        (None, Some(_)) => Some(after_failure(status)),
        (None, None) => None,
    }
}

/// A member was being rebuilt when the array was last served, and nobody serves it now.
fn is_half_rebuilt(status: &Status) -> bool {
    matches!(status.source, Source::Stopped | Source::Dead)
        && !named(status, &[DeviceState::Rebuilding]).is_empty()
}

/// More members are gone than the code can make up for.
fn after_failure(status: &Status) -> String {
    let again = match status.source {
        Source::Served => format!("stop the array (elastripe stop {}) and serve it", whom(status)),
        Source::Stopped | Source::InUse | Source::Dead => "serve the array".to_owned(),
    };
    format!(
        "bring back members that were only disconnected: {again} with all that are still there; or restore from a backup"
    )
}

/// How commands are told which array is meant: by its name, by one of its members, or by all of them.
fn whom(status: &Status) -> String {
    let in_service = |device: &&DeviceStatus| device.state == DeviceState::Healthy;
    let paths = status.devices.iter().filter(in_service).filter_map(|device| device.path.as_ref());
    let is_word =
        !status.name.is_empty() && status.name.chars().all(|c| c.is_alphanumeric() || "-_.".contains(c));
    match (status.source, paths.into_iter().next()) {
        (Source::Served, _) if is_word => status.name.clone(),
        (Source::Served, Some(path)) => path.display().to_string(),
        (_, _) => "MEMBERS".to_owned(),
    }
}

/// What to do about a member that is out of service: a device that did nothing wrong comes back.
fn bring_back_or_replace(status: &Status, name: &str) -> String {
    let whom = whom(status);
    let replace = format!("elastripe replace {whom} --device {name} --with NEWPATH");
    let device = status.devices.iter().find(|device| device.name == name);
    // Looking for the device of a silent one may take for ever.
    let path = device.and_then(|device| device.path.as_ref());
    let is_there = || path.is_none_or(|path| path.exists());
    if path.is_none() {
        return format!(
            "{replace}; or, if its device is found and well, elastripe online {whom} --device {name} --with PATH"
        );
    }
    match device.and_then(|device| device.failed_because) {
        Some(
            FailedBecause::Fault | FailedBecause::Truncated | FailedBecause::Foreign | FailedBecause::Lost,
        ) => replace,
        Some(FailedBecause::Asked) if !is_there() => replace,
        Some(FailedBecause::Asked | FailedBecause::Silent) | None => {
            format!("elastripe online {whom} --device {name}, if its device is well; else {replace}")
        }
    }
}

/// The command that starts the array where it was.
fn serve_again(status: &Status) -> String {
    let paths = status.devices.iter().filter_map(|device| device.path.as_ref());
    let serves_keys = status.uris.iter().any(|address| address.starts_with(KEYS_AT));
    let mut command = vec![if serves_keys { "elastripe kv serve" } else { "elastripe serve" }.to_owned()];
    command.extend(paths.map(|path| path.display().to_string()));
    if status.devices.is_empty() {
        command.push("MEMBERS".to_owned());
    }
    command.extend(status.uris.iter().map(|address| {
        let said = [(KEYS_AT, "--resp "), (VIRTIO_AT, "--vhost-user-blk "), (DISK_AT, "--ublk ")];
        let found = said.iter().find_map(|(at, option)| Some((option, address.strip_prefix(at)?)));
        let (option, address) = found.unwrap_or((&"--nbd ", address));
        format!("{option}{address}")
    }));
    if status.devices.iter().any(|device| device.path.is_none()) {
        command.push("--degraded, if the members without a path cannot be had".to_owned());
    }
    command.join(" ")
}

fn plural(names: &[&str], word: &str) -> String {
    if names.len() == 1 { word.to_owned() } else { format!("{word}s") }
}

fn served(status: &Status) -> String {
    match (status.source, status.ending.clean) {
        (Source::Served, _) => match status.uris.as_slice() {
            [] => "yes".to_owned(),
            uris => format!("{}{}", uris.join(" "), clients(status)),
        },
        (Source::InUse, _) => {
            "another process has the devices open, but its control socket was not found (ELASTRIPE_RUN_DIR?)"
                .to_owned()
        }
        (Source::Dead, _) => {
            "no; its server was killed or crashed, and left its control socket behind".to_owned()
        }
        (Source::Stopped, Some(true)) => "no; stopped in order".to_owned(),
        (Source::Stopped, Some(false) | None) => {
            "no; not stopped in order, the next start recovers".to_owned()
        }
    }
}

fn clients(status: &Status) -> String {
    match status.clientele.clients {
        None => String::new(),
        Some(0) => "; no client is connected".to_owned(),
        Some(1) => "; 1 client is connected".to_owned(),
        Some(count) => format!("; {count} clients are connected"),
    }
}

fn shape(status: &Status) -> String {
    let logs = match status.shape.log_count {
        0 => String::new(),
        1 => " with 1 log device".to_owned(),
        count => format!(" with {count} log devices"),
    };
    let consistency =
        status.shape.consistency.as_ref().map(|mode| format!(", consistency {mode}")).unwrap_or_default();
    let units = if status.shape.unit_rows > 0 {
        format!(", units of {} rows", status.shape.unit_rows)
    } else {
        String::new()
    };
    let shards = show_shards(status.shape.shard_count);
    format!(
        "{} {}+{}{logs}, code {}{consistency}, {} chunks{units}{shards}; made {}",
        status.shape.scheme,
        status.shape.data_count,
        status.shape.parity_count,
        status.shape.code,
        show_size(status.shape.chunk_bytes),
        show_time(status.age.created_unix_s)
    )
}

fn percent(part: u64, whole: u64) -> String {
    let permille = u128::from(part) * 1000 / u128::from(whole.max(1));
    format!("{}.{} %", permille / 10, permille % 10)
}

fn volume(status: &Status) -> String {
    let reserve = match status.shape.reserve_permille {
        0 => String::new(),
        permille => {
            let what = if status.shape.unit_rows > 0 { "left for garbage" } else { "kept for new versions" };
            format!("; {} of each data device {what}", percent(permille, 1000))
        }
    };
    format!("{} ({} bytes){reserve}", show_size(status.shape.volume_bytes), status.shape.volume_bytes)
}

/// Which writes a power cut leaves whole.
fn store_line(store: &StoreStatus) -> String {
    let damaged = match store.damaged_records {
        0 => String::new(),
        count => format!("; {} records could not be read", show_count(count)),
    };
    format!(
        "{} keys; {} of {} in use; index {}, cache of {} with {} hits{damaged}",
        show_count(store.keys),
        show_size(store.live_bytes),
        show_size(store.capacity_bytes),
        show_size(store.index_bytes),
        show_size(store.cache_bytes),
        percent(store.cache_hits, store.cache_hits + store.cache_misses)
    )
}

fn untorn(bytes: u64) -> String {
    match bytes {
        0 => "no: a power cut may tear any write".to_owned(),
        bytes => format!("writes of up to {}, aligned to their size, a power of two", show_size(bytes)),
    }
}

fn space(status: &Status) -> Option<String> {
    let space = status.engine.space.filter(|space| space.chunks_reserved > 0)?;
    let log = if space.log_blocks > 0 {
        format!("; log {} full", percent(space.log_blocks_used, space.log_blocks))
    } else {
        String::new()
    };
    let free = show_size(space.chunks_free * status.shape.chunk_bytes);
    let share = percent(space.chunks_free, space.chunk_count);
    Some(format!("{free} free on the data devices ({share}), parity and new versions counted in{log}"))
}

fn commit(status: &Status) -> Option<String> {
    let commit = status.engine.commit?;
    if status.shape.log_count == 0 {
        return None;
    }
    let now = match (commit.dirty_stripes, commit.running) {
        (0, _) => "parity is up to date".to_owned(),
        (dirty, running) => format!(
            "{} stripes wait for parity commit, covered by {} log stripes{}",
            show_count(dirty),
            show_count(commit.log_stripes),
            if running { format!("; {}", describe_commit(&commit)) } else { String::new() }
        ),
    };
    let paused = if commit.paused { "; PAUSED but for what the array needs: `commit --resume`" } else { "" };
    let committed = show_count(commit.stripes_committed);
    Some(format!("{now}{paused}; {committed} stripes committed since the start"))
}

/// How far a commit is that is under way.
pub fn describe_commit(commit: &Commit) -> String {
    let Some(run) = commit.run else {
        let what = if commit.paused {
            "commit waits: commits are PAUSED, `commit --resume`"
        } else {
            "commit under way"
        };
        return what.to_owned();
    };
    let eta = run.eta_s.map(|seconds| format!(", {} left", show_seconds(seconds))).unwrap_or_default();
    let (done, rate) = (percent(run.done, run.total), show_count(run.stripes_per_s));
    format!("commit under way: {done} done, {rate} stripes/s{eta}")
}

fn gc(status: &Status) -> Option<String> {
    let gc = status.engine.gc?;
    let rows = gc.units * u64::from(status.shape.unit_rows);
    Some(format!(
        "{} of the rows of {} units free; since the start {} units collected, {} chunks moved; {} full and {} short stripes written",
        percent(gc.rows_free, rows),
        show_count(gc.units),
        show_count(gc.units_collected),
        show_count(gc.chunks_rewritten),
        show_count(gc.full_stripes),
        show_count(gc.short_stripes)
    ))
}

fn checkpoint(status: &Status) -> Option<String> {
    let place = status.engine.checkpoints?;
    Some(format!(
        "number {} on top of full {}; {} written since the start",
        place.number, place.full_number, place.written
    ))
}

fn memory(status: &Status) -> Option<String> {
    let memory = status.engine.memory?;
    let hundredths = memory.bytes_per_chunk_hundredths;
    // What elastic schemes have instead of uncommitted updates.
    let besides = if status.shape.unit_rows > 0 {
        format!("placement {}", show_size(memory.placement_bytes))
    } else {
        format!("uncommitted updates {}", show_size(memory.dynamic_bytes))
    };
    let again = match memory.pages_read {
        0 => String::new(),
        count => format!(", {count} pages of them read again"),
    };
    Some(format!(
        "maps and checksums {}.{:02} bytes per chunk ({}), {besides}{again}",
        hundredths / 100,
        hundredths % 100,
        show_size(memory.fixed_bytes)
    ))
}

fn activity(status: &Status) -> Option<String> {
    let activity = status.activity?;
    let lost = if activity.lost > 0 {
        format!(", {} times a chunk was asked for that is LOST", show_count(activity.lost))
    } else {
        String::new()
    };
    Some(format!(
        "{} requests in {}: {} chunks read, {} written, {} computed from others{lost}",
        show_count(activity.requests),
        show_seconds(activity.seconds),
        show_count(activity.chunks_read),
        show_count(activity.chunks_written),
        show_count(activity.covered_reads)
    ))
}

fn work(status: &Status) -> String {
    let devices = status.devices.iter();
    let replaced = devices.filter_map(|device| Some((&device.name, device.replacement.as_ref()?)));
    let mut all: Vec<String> = replaced.map(|(name, by)| describe_replacement(name, by)).collect();
    match &status.engine.work {
        Some(work) => all.insert(0, describe_work(work)),
        None if status.scrub_cursor > 0 => {
            all.insert(0, "a scrub was interrupted; it goes on when the array is served".to_owned());
        }
        None if all.is_empty() => all.push("none".to_owned()),
        None => {}
    }
    if let (None, Some(last)) = (&status.engine.work, &status.engine.last_ended) {
        all.push(format!("{}, on {}", last.message, show_time(last.unix_ms / 1000)));
    }
    if let (None, Some(rate)) = (&status.engine.work, status.engine.rate_limit_bytes_per_s) {
        let rate = show_rate(rate);
        all.push(format!("rebuild and scrub are limited to {rate} of each device (`rate --rate off`)"));
    }
    all.join("; ")
}

/// A device that becomes what a member is, in a line.
pub fn describe_replacement(name: &str, replacement: &Replacement) -> String {
    let eta = replacement.eta_s.map(|seconds| format!(", {} left", show_seconds(seconds)));
    let unread = match replacement.unread_bytes {
        0 => String::new(),
        bytes => format!(", {} of it could not be read and will be rebuilt", show_size(bytes)),
    };
    format!(
        "{} becomes what {name} is, which stays in service: {} looked at, {}{}{unread}",
        replacement.path.display(),
        percent(replacement.done_bytes, replacement.total_bytes),
        show_rate(replacement.bytes_per_s),
        eta.unwrap_or_default()
    )
}

/// Rebuild or scrub in a line.
pub fn describe_work(work: &Work) -> String {
    let of = if work.devices.is_empty() {
        String::new()
    } else {
        let names: Vec<&str> = work.devices.iter().map(String::as_str).collect();
        format!(" of {}", list(&names))
    };
    if work.paused {
        return format!(
            "{}{of}: {} done, paused; `scrub --resume` lets it go on",
            work_name(work.kind),
            percent(work.done, work.total)
        );
    }
    let limit =
        work.limit_bytes_per_s.map(|rate| format!(" (limit {})", show_rate(rate))).unwrap_or_default();
    let eta = work.eta_s.map(|seconds| format!(", {} left", show_seconds(seconds))).unwrap_or_default();
    let lost = if work.lost > 0 { format!(", {} code words LOST", work.lost) } else { String::new() };
    let mismatches = if work.mismatches > 0 {
        format!(", {} stripes with wrong parity", work.mismatches)
    } else {
        String::new()
    };
    let held_up = work.held_up_by.as_ref().map(|why| format!("; {why}")).unwrap_or_default();
    format!(
        "{}{of}: {} done, {} of each device{limit}{eta}{lost}{mismatches}{held_up}",
        work_name(work.kind),
        percent(work.done, work.total),
        show_rate(work.device_bytes_per_s)
    )
}

fn devices(text: &mut String, status: &Status) {
    let running = status.devices.iter().any(|device| device.errors.is_some());
    if running {
        put(
            text,
            format_args!(
                "  {:<8} {:<11} {:>6} {:>6} {:>6} {:>6} {:>10} {:>13}  PATH",
                "DEVICE", "STATE", "READ", "WRITE", "CKSUM", "HEALED", "BYTES READ", "BYTES WRITTEN"
            ),
        );
    } else {
        put(text, format_args!("  {:<8} {:<11} PATH", "DEVICE", "STATE"));
    }
    for device in &status.devices {
        let path = device.path.as_ref().map_or_else(|| "-".to_owned(), |path| path.display().to_string());
        match (&device.errors, &device.traffic) {
            (Some(errors), Some(traffic)) => put(
                text,
                format_args!(
                    "  {:<8} {:<11} {:>6} {:>6} {:>6} {:>6} {:>10} {:>13}  {path}",
                    device.name,
                    device.state,
                    errors.read,
                    errors.write,
                    errors.checksum,
                    errors.healed,
                    show_size(traffic.read_bytes),
                    show_size(traffic.written_bytes)
                ),
            ),
            (None, _) | (_, None) if running => put(
                text,
                format_args!(
                    "  {:<8} {:<11} {:>6} {:>6} {:>6} {:>6} {:>10} {:>13}  {path}",
                    device.name, device.state, "-", "-", "-", "-", "-", "-"
                ),
            ),
            (None, _) | (_, None) => {
                put(text, format_args!("  {:<8} {:<11} {path}", device.name, device.state))
            }
        }
    }
}

mod delays;
pub mod legend;
pub mod losses;
mod rates;
pub mod streams;
mod troubles;
pub mod wear;

pub use rates::Rates;

#[cfg(test)]
mod tests;
