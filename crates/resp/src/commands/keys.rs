//! Commands about keys, of whatever value.

use super::{Call, Gather, NOT_AN_INTEGER, Outcome, Plan, SYNTAX, Said, Shape, Steps};
use crate::wire::{decimal, number};
use kv::ask::{Ask, Old};
use std::collections::BTreeSet;

/// `DEL key...`, `UNLINK key...`
pub fn del(call: &mut Call<'_, '_>) -> Result<Plan, Said> {
    let ask = |key| Ask::Delete { key, old: Old::Ignored };
    if call.count() == 2 {
        return Ok(Plan::One(ask(call.key(1)?), Shape::WasThere));
    }
    Ok(Plan::Each(call.keys(1, 1)?.into_iter().map(ask).collect(), Gather::Sum(0)))
}

/// `EXISTS key...`, `TOUCH key...`
pub fn exists(call: &mut Call<'_, '_>) -> Result<Plan, Said> {
    let ask = |key| Ask::Describe { key };
    if call.count() == 2 {
        return Ok(Plan::One(ask(call.key(1)?), Shape::WasThere));
    }
    Ok(Plan::Each(call.keys(1, 1)?.into_iter().map(ask).collect(), Gather::Sum(0)))
}

/// `TYPE key`
pub fn kind(call: &mut Call<'_, '_>) -> Result<Plan, Said> {
    Ok(Plan::One(Ask::Describe { key: call.key(1)? }, Shape::Type))
}

/// Names asked for where the client does not say how many; Redis's default.
const SCAN_COUNT: u32 = 10;
/// Names that one step of a scan looks at, however many are asked for, so that others get their turn.
const SCAN_COUNT_MAX: i64 = 1000;
/// Bytes of a pattern: matching takes its length times that of the name, for each name.
const PATTERN_BYTES_MAX: usize = 1024;

fn pattern_of(call: &Call<'_, '_>, index: usize) -> Result<Box<[u8]>, Said> {
    let length = call.arguments.length(index);
    if length > PATTERN_BYTES_MAX {
        return Err(Said::of(format!(
            "ERR found a pattern of {length} bytes, expected at most {PATTERN_BYTES_MAX}"
        )));
    }
    call.word(index).map(Box::from)
}

/// `SCAN cursor [MATCH pattern] [COUNT count] [TYPE type]`
pub fn scan(call: &mut Call<'_, '_>) -> Result<Plan, Said> {
    let cursor = decimal(call.word(1)?).ok_or(Said::of("ERR invalid cursor"))?;
    let (mut pattern, mut count, mut none) = (None, SCAN_COUNT, false);
    for index in (2..call.count()).step_by(2) {
        let option = call.option(index)?;
        if index + 1 >= call.count() {
            return Err(SYNTAX);
        }
        match &option[..] {
            b"match" => {
                let wanted = pattern_of(call, index + 1)?;
                pattern = (*wanted != *b"*").then_some(wanted);
            }
            b"count" => {
                let wanted = call.number(index + 1)?;
                if wanted < 1 {
                    return Err(SYNTAX);
                }
                count = u32::try_from(wanted.min(SCAN_COUNT_MAX)).map_err(|_| NOT_AN_INTEGER)?;
            }
            b"type" => none = call.option(index + 1)? != b"string",
            _ => return Err(SYNTAX),
        }
    }
    Ok(Plan::One(Ask::Scan { cursor, count }, Shape::Scan { pattern, none }))
}

/// `KEYS pattern`; the session knows how much may be gathered.
pub fn names(call: &mut Call<'_, '_>) -> Result<Plan, Said> {
    let pattern = pattern_of(call, 1)?;
    let bytes_max = usize::MAX;
    Ok(Plan::Steps(Steps::Names { pattern, found: BTreeSet::new(), found_bytes: 0, bytes_max }))
}

/// `DBSIZE`
pub fn dbsize(_: &mut Call<'_, '_>) -> Result<Plan, Said> {
    Ok(Plan::One(Ask::Count, Shape::Count))
}

/// `FLUSHALL [ASYNC | SYNC]`, `FLUSHDB [ASYNC | SYNC]`
pub fn clear(call: &mut Call<'_, '_>) -> Result<Plan, Said> {
    if call.count() > 2 || (call.count() == 2 && ![&b"async"[..], b"sync"].contains(&&call.option(1)?[..])) {
        return Err(SYNTAX);
    }
    Ok(Plan::One(Ask::Clear, Shape::Done))
}

/// `SAVE`: what was acknowledged is made durable.
pub fn save(_: &mut Call<'_, '_>) -> Result<Plan, Said> {
    Ok(Plan::One(Ask::Flush, Shape::Saved))
}

/// `BGSAVE [SCHEDULE]`: the same, without waiting for it.
pub fn bgsave(call: &mut Call<'_, '_>) -> Result<Plan, Said> {
    if call.count() > 2 || (call.count() == 2 && call.option(1)? != b"schedule") {
        return Err(SYNTAX);
    }
    Ok(Plan::Now(Outcome::Word("Background saving started"), Some(Ask::Flush)))
}

/// A timeout is checked, and never comes to its end.
fn timeout(call: &Call<'_, '_>, index: usize) -> Result<(), Said> {
    match number(call.word(index)?) {
        Some(0..) => Ok(()),
        Some(_) => Err(Said::of("ERR timeout is negative")),
        None => Err(Said::of("ERR timeout is not an integer or out of range")),
    }
}

/// `WAITAOF numlocal numreplicas timeout`: durable here when it is answered, on no replica.
pub fn waitaof(call: &mut Call<'_, '_>) -> Result<Plan, Said> {
    if !(0..=1).contains(&call.number(1)?) {
        return Err(Said::of("ERR value is out of range, value must between 0 and 1"));
    }
    if call.number(2)? < 0 {
        return Err(Said::of("ERR value is out of range, must be positive"));
    }
    timeout(call, 3)?;
    Ok(Plan::One(Ask::Flush, Shape::DurableHere))
}

/// `WAIT numreplicas timeout`: there are no replicas.
pub fn wait(call: &mut Call<'_, '_>) -> Result<Plan, Said> {
    call.number(1)?;
    timeout(call, 2)?;
    Ok(Plan::Now(Outcome::Integer(0), None))
}
