//! What the server says of itself and of its commands.

use super::spec::{Here, Spec, find_in};
use super::{REDIS_VERSION, Said};
use std::fmt::Write;

/// `INFO [section...]`
pub fn info(here: &mut Here<'_, '_>) -> Result<(), Said> {
    let wanted = (1..here.count()).map(|index| here.option(index));
    let wanted: Vec<String> = wanted.collect::<Result<_, _>>()?;
    let all = wanted.is_empty()
        || ["all", "default", "everything"].iter().any(|word| wanted.contains(&(*word).into()));
    let mut text = String::new();
    for (name, section) in SECTIONS {
        // What is long is said to those who ask for it.
        let long = name == "commandstats" && !wanted.iter().any(|word| word == "all" || word == "everything");
        if (all && !long) || wanted.iter().any(|word| word == name) {
            if !text.is_empty() {
                text.push_str("\r\n");
            }
            let mut title = name.to_owned();
            title[..1].make_ascii_uppercase();
            line(&mut text, format_args!("# {title}"));
            section(here, &mut text);
        }
    }
    here.reply().text(&text);
    Ok(())
}

type Section = fn(&Here<'_, '_>, &mut String);

const SECTIONS: [(&str, Section); 7] = [
    ("server", server),
    ("clients", clients),
    ("memory", memory),
    ("persistence", persistence),
    ("stats", stats),
    ("commandstats", command_stats),
    ("keyspace", keyspace),
];

fn line(text: &mut String, what: std::fmt::Arguments<'_>) {
    write!(text, "{what}\r\n").expect("text takes what is written to it");
}

fn lines<const N: usize>(text: &mut String, fields: [(&str, u64); N]) {
    for (name, value) in fields {
        line(text, format_args!("{name}:{value}"));
    }
}

fn wide(value: usize) -> u64 {
    u64::try_from(value).unwrap_or(u64::MAX)
}

fn server(here: &Here<'_, '_>, text: &mut String) {
    let desk = &here.desk;
    line(text, format_args!("redis_version:{REDIS_VERSION}"));
    line(text, format_args!("redis_mode:standalone"));
    line(text, format_args!("elastripe_version:{}", env!("CARGO_PKG_VERSION")));
    line(text, format_args!("elastripe_array:{}", desk.settings.name.escape_default()));
    line(text, format_args!("os:{}", std::env::consts::OS));
    let up = desk.now_ms.saturating_sub(desk.started_ms) / 1000;
    lines(
        text,
        [
            ("arch_bits", u64::from(usize::BITS)),
            ("process_id", u64::from(std::process::id())),
            ("uptime_in_seconds", up),
            ("uptime_in_days", up / 86400),
        ],
    );
}

fn clients(here: &Here<'_, '_>, text: &mut String) {
    lines(
        text,
        [
            ("connected_clients", wide(here.desk.client_count())),
            ("maxclients", wide(here.desk.limits.clients_max)),
            ("blocked_clients", 0),
        ],
    );
}

fn memory(here: &Here<'_, '_>, text: &mut String) {
    let figures = here.keys.figures();
    lines(
        text,
        [
            ("elastripe_index_bytes", figures.index_bytes),
            ("elastripe_cache_bytes", figures.cache_bytes),
            ("elastripe_clients_bytes", wide(here.desk.budget.used_bytes())),
            ("maxmemory", 0),
        ],
    );
    line(text, format_args!("maxmemory_policy:noeviction"));
}

fn persistence(here: &Here<'_, '_>, text: &mut String) {
    let figures = here.keys.figures();
    lines(
        text,
        [
            ("loading", 0),
            ("aof_enabled", 1),
            ("rdb_last_save_time", here.desk.saved_ms / 1000),
            ("elastripe_capacity_bytes", figures.capacity_bytes),
            ("elastripe_live_bytes", figures.live_bytes),
            ("elastripe_given_bytes", figures.given_bytes),
            ("elastripe_written_bytes", figures.written_bytes),
            ("elastripe_read_bytes", figures.read_bytes),
            ("elastripe_moved_bytes", figures.moved_bytes),
            ("elastripe_flushes", figures.flush_count),
            ("elastripe_damaged_records", figures.damaged_count),
        ],
    );
    line(text, format_args!("elastripe_sync:{}", here.desk.settings.durable.name()));
}

fn stats(here: &Here<'_, '_>, text: &mut String) {
    let (figures, statistics) = (here.keys.figures(), &here.desk.statistics);
    lines(
        text,
        [
            ("total_connections_received", statistics.connections),
            ("total_commands_processed", statistics.commands()),
            ("total_error_replies", statistics.errors()),
            ("total_net_input_bytes", statistics.received_bytes),
            ("total_net_output_bytes", statistics.sent_bytes),
            ("rejected_connections", statistics.faults),
            ("keyspace_hits", statistics.hits),
            ("keyspace_misses", statistics.misses),
            ("elastripe_cache_hits", figures.cache_hit_count),
            ("elastripe_cache_misses", figures.cache_miss_count),
            ("elastripe_commands_without_room", statistics.without_room),
        ],
    );
}

fn command_stats(here: &Here<'_, '_>, text: &mut String) {
    for (spec, calls) in here.table.iter().zip(&here.desk.statistics.calls) {
        if calls.count > 0 {
            let us = calls.waited_ns / 1000;
            line(
                text,
                format_args!(
                    "cmdstat_{}:calls={},usec={us},usec_per_call={}.00,rejected_calls=0,failed_calls={}",
                    spec.name,
                    calls.count,
                    us / calls.count,
                    calls.failed
                ),
            );
        }
    }
}

fn keyspace(here: &Here<'_, '_>, text: &mut String) {
    let keys = here.keys.figures().key_count;
    if keys > 0 {
        line(text, format_args!("db0:keys={keys},expires=0,avg_ttl=0"));
    }
}

/// `COMMAND [COUNT | LIST | INFO name... | DOCS name... | GETKEYS command...]`
pub fn command(here: &mut Here<'_, '_>) -> Result<(), Said> {
    let table = here.table;
    let named = (2..here.count()).map(|index| here.word(index).map(|name| find_in(table, name)));
    let named: Vec<Option<&Spec>> = named.collect::<Result<_, _>>()?;
    let part = if here.count() == 1 { "info".to_owned() } else { here.option(1)? };
    let every = || table.iter().map(Some).collect::<Vec<_>>();
    match (part.as_str(), here.count()) {
        ("count", 2) => here.reply().count(table.len()),
        ("list", 2) => {
            let mut reply = here.reply();
            reply.array(table.len());
            table.iter().for_each(|spec| reply.bulk(spec.name.as_bytes()));
        }
        ("info", 1 | 2) => described(here, &every()),
        ("info", _) => described(here, &named),
        ("docs", 2) => documented(here, &every()),
        ("docs", _) => documented(here, &named),
        ("getkeys", 3..) => return keys_of(here),
        _ => return Err(here.no_such_part(&part)),
    }
    Ok(())
}

fn described(here: &mut Here<'_, '_>, specs: &[Option<&Spec>]) {
    let mut reply = here.reply();
    reply.array(specs.len());
    for spec in specs {
        let Some(spec) = spec else {
            reply.null_array();
            continue;
        };
        reply.array(10);
        reply.bulk(spec.name.as_bytes());
        reply.integer(spec.arity);
        reply.set(spec.flags.len());
        spec.flags.iter().for_each(|flag| reply.simple(flag.name()));
        [spec.keys.0, spec.keys.1, spec.keys.2].iter().for_each(|&at| reply.integer(at));
        reply.set(0); // categories of access lists, tips, specifications of keys, parts
        (0..3).for_each(|_| reply.array(0));
    }
}

fn documented(here: &mut Here<'_, '_>, specs: &[Option<&Spec>]) {
    let mut reply = here.reply();
    let known: Vec<&Spec> = specs.iter().copied().flatten().collect();
    reply.map(known.len());
    for spec in known {
        reply.bulk(spec.name.as_bytes());
        reply.map(3);
        for (name, value) in [("summary", spec.summary), ("since", spec.since), ("group", spec.group)] {
            reply.bulk(name.as_bytes());
            reply.bulk(value.as_bytes());
        }
    }
}

/// `COMMAND GETKEYS command argument...`
fn keys_of(here: &mut Here<'_, '_>) -> Result<(), Said> {
    let spec = find_in(here.table, here.word(2)?).ok_or(Said::of("ERR Invalid command specified"))?;
    let count = here.count() - 2;
    if !spec.takes(count) {
        return Err(Said::of("ERR Invalid number of arguments specified for command"));
    }
    let at = |place: i64| usize::try_from(place).ok();
    let last = if spec.keys.1 < 0 {
        at(-spec.keys.1).and_then(|back| count.checked_sub(back))
    } else {
        at(spec.keys.1)
    };
    let (Some(first @ 1..), Some(last), Some(step @ 1..)) = (at(spec.keys.0), last, at(spec.keys.2)) else {
        return Err(Said::of("ERR The command has no key arguments"));
    };
    let found = (first..=last).step_by(step).map(|index| here.word(index + 2));
    let found: Vec<&[u8]> = found.collect::<Result<_, _>>()?;
    let mut reply = here.reply();
    reply.array(found.len());
    found.iter().for_each(|key| reply.bulk(key));
    Ok(())
}
