//! Commands about the server.

use super::spec::Here;
use super::{NOT_AN_INTEGER, SYNTAX, Said, Steps};
use crate::desk::Statistics;
use crate::glob;
use crate::wire::decimal;

/// `TIME`
pub fn time(here: &mut Here<'_, '_>) -> Result<(), Said> {
    let now_ms = here.desk.now_ms;
    let mut reply = here.reply();
    reply.array(2);
    reply.bulk((now_ms / 1000).to_string().as_bytes());
    reply.bulk((now_ms % 1000 * 1000).to_string().as_bytes());
    Ok(())
}

/// `LASTSAVE`
pub fn lastsave(here: &mut Here<'_, '_>) -> Result<(), Said> {
    let seconds = here.desk.saved_ms / 1000;
    here.reply().integer(i64::try_from(seconds).unwrap_or(i64::MAX));
    Ok(())
}

/// `READONLY`, `READWRITE`: of a cluster there is none of.
pub fn ok(here: &mut Here<'_, '_>) -> Result<(), Said> {
    here.ok()
}

/// `ROLE`
pub fn role(here: &mut Here<'_, '_>) -> Result<(), Said> {
    let mut reply = here.reply();
    reply.array(3);
    reply.bulk(b"master");
    reply.integer(0);
    reply.array(0);
    Ok(())
}

/// `SHUTDOWN [NOSAVE | SAVE]`
pub fn shutdown(here: &mut Here<'_, '_>) -> Result<(), Said> {
    if !here.desk.settings.may_shut_down {
        return Err(Said::of(
            "ERR command 'shutdown' is not allowed here: stop the server by `elastripe stop`",
        ));
    }
    if here.count() > 2 || (here.count() == 2 && !["nosave", "save"].contains(&here.option(1)?.as_str())) {
        return Err(SYNTAX);
    }
    // Either way everything acknowledged is kept: stopping in order costs less than what it would save.
    (here.desk.stop_asked, here.ends) = (true, true);
    // As with Redis: clients take the end of the connection for the answer, and any other for a failure.
    Ok(())
}

/// What can be read of the settings, by name.
fn settings(here: &Here<'_, '_>) -> Vec<(&'static str, String)> {
    let limits = &here.desk.limits;
    let timeout = limits.idle_timeout_ns.map_or(0, |ns| ns.div_ceil(1_000_000_000)); // 0 is none
    vec![
        ("appendfsync", here.desk.settings.durable.name().to_owned()),
        ("appendonly", "yes".to_owned()),
        ("client-query-buffer-limit", limits.client_bytes_max.to_string()),
        ("databases", "1".to_owned()),
        ("maxclients", limits.clients_max.to_string()),
        ("maxmemory", "0".to_owned()),
        ("maxmemory-policy", "noeviction".to_owned()),
        ("proto-max-bulk-len", limits.bulk_bytes_max.to_string()),
        ("save", String::new()),
        ("timeout", timeout.to_string()),
    ]
}

/// `CONFIG GET pattern... | SET name value... | RESETSTAT`
pub fn config(here: &mut Here<'_, '_>) -> Result<(), Said> {
    let part = here.option(1)?;
    match (part.as_str(), here.count()) {
        ("get", 3..) => {
            let patterns = (2..here.count()).map(|index| Ok(here.word(index)?.to_ascii_lowercase()));
            let patterns: Vec<Vec<u8>> = patterns.collect::<Result<_, Said>>()?;
            let mut found = settings(here);
            found.retain(|(name, _)| patterns.iter().any(|pattern| glob::matches(pattern, name.as_bytes())));
            let mut reply = here.reply();
            reply.map(found.len());
            for (name, value) in found {
                reply.bulk(name.as_bytes());
                reply.bulk(value.as_bytes());
            }
            Ok(())
        }
        ("set", 4..) if here.count().is_multiple_of(2) => {
            let mut limits = here.desk.limits;
            for index in (2..here.count()).step_by(2) {
                let value = decimal(here.word(index + 1)?);
                match here.option(index)?.as_str() {
                    // Nothing else can have been before it.
                    "timeout" if index > 2 => {
                        return Err(Said::of("ERR CONFIG SET failed: 'timeout' is there twice"));
                    }
                    "timeout" => {
                        let ns = value.ok_or(NOT_AN_INTEGER)?.checked_mul(1_000_000_000);
                        limits.idle_timeout_ns = Some(ns.ok_or(NOT_AN_INTEGER)?).filter(|&ns| ns > 0);
                    }
                    other => {
                        return Err(Said::of(format!(
                            "ERR CONFIG SET failed: '{other}' cannot be set; 'timeout' can"
                        )));
                    }
                }
            }
            here.desk.limits = limits;
            here.ok()
        }
        ("resetstat", 2) => {
            here.desk.statistics = Statistics::default();
            here.ok()
        }
        _ => Err(here.no_such_part(&part)),
    }
}

/// How much one answer of names may hold is a bound of the server's.
pub fn bound(steps: &mut Steps, bytes: usize) {
    let Steps::Names { bytes_max, .. } = steps;
    *bytes_max = bytes;
}
