//! Commands about values.

use super::expiry::{Unit, end_of_life};
use super::spec::arity;
use super::{Call, Gather, Plan, SYNTAX, Said, Shape};
use kv::ask::{Ask, Lifetime, Old, Range, Value, When};
use std::collections::VecDeque;

fn set_with(key: Box<[u8]>, value: Value, lifetime: Lifetime) -> Ask {
    Ask::Set { key, value, when: When::Always, lifetime, old: Old::Ignored }
}

/// What an option of SET and GETEX says of the lifetime, if it does; those with a number take the next
/// argument.
fn lifetime_option(call: &Call<'_, '_>, option: &[u8], index: usize) -> Result<Option<Lifetime>, Said> {
    let unit = match option {
        b"ex" => Unit::Seconds,
        b"px" => Unit::Milliseconds,
        b"exat" => Unit::SecondsAt,
        b"pxat" => Unit::MillisecondsAt,
        _ => return Ok(None),
    };
    if index + 1 >= call.count() {
        return Err(SYNTAX);
    }
    let end = end_of_life(call, index + 1, unit)?;
    if call.number(index + 1)? <= 0 {
        return Err(Said::of(format!("ERR invalid expire time in '{}' command", call.spec.name)));
    }
    Ok(Some(Lifetime::UntilMs(end)))
}

/// `SET key value [NX | XX] [GET] [EX n | PX n | EXAT n | PXAT n | KEEPTTL]`
pub fn set(call: &mut Call<'_, '_>) -> Result<Plan, Said> {
    let key = call.key(1)?;
    let (mut when, mut lifetime, mut old) = (None, None, Old::Ignored);
    let mut index = 3;
    while index < call.count() {
        let option = call.option(index)?;
        let condition = match &option[..] {
            b"nx" => Some(When::IfAbsent),
            b"xx" => Some(When::IfPresent),
            _ => None,
        };
        if let Some(condition) = condition {
            if when.replace(condition).is_some_and(|before| before != condition) {
                return Err(SYNTAX);
            }
            index += 1;
            continue;
        }
        if option == b"get" {
            old = Old::Wanted;
            index += 1;
            continue;
        }
        let (new, step) = if option == b"keepttl" {
            (Lifetime::AsBefore, 1)
        } else {
            (lifetime_option(call, &option, index)?.ok_or(SYNTAX)?, 2)
        };
        // As with Redis, only what needs no number may be there twice.
        if lifetime.replace(new).is_some_and(|before| before != new || new != Lifetime::AsBefore) {
            return Err(SYNTAX);
        }
        index += step;
    }
    let shape = if old == Old::Wanted { Shape::Before } else { Shape::Stored };
    let (when, lifetime) = (when.unwrap_or_default(), lifetime.unwrap_or_default());
    Ok(Plan::One(Ask::Set { key, value: call.value(2), when, lifetime, old }, shape))
}

/// `SETNX key value`
pub fn setnx(call: &mut Call<'_, '_>) -> Result<Plan, Said> {
    let (key, when, lifetime, old) = (call.key(1)?, When::IfAbsent, Lifetime::Forever, Old::Ignored);
    Ok(Plan::One(Ask::Set { key, value: call.value(2), when, lifetime, old }, Shape::WhetherStored))
}

fn set_for(call: &mut Call<'_, '_>, unit: Unit) -> Result<Plan, Said> {
    let key = call.key(1)?;
    let end = end_of_life(call, 2, unit)?;
    if call.number(2)? <= 0 {
        return Err(Said::of(format!("ERR invalid expire time in '{}' command", call.spec.name)));
    }
    Ok(Plan::One(set_with(key, call.value(3), Lifetime::UntilMs(end)), Shape::Stored))
}

/// `SETEX key seconds value`
pub fn setex(call: &mut Call<'_, '_>) -> Result<Plan, Said> {
    set_for(call, Unit::Seconds)
}

/// `PSETEX key milliseconds value`
pub fn psetex(call: &mut Call<'_, '_>) -> Result<Plan, Said> {
    set_for(call, Unit::Milliseconds)
}

/// `GETSET key value`
pub fn getset(call: &mut Call<'_, '_>) -> Result<Plan, Said> {
    let (key, when, lifetime, old) = (call.key(1)?, When::Always, Lifetime::Forever, Old::Wanted);
    Ok(Plan::One(Ask::Set { key, value: call.value(2), when, lifetime, old }, Shape::Before))
}

/// `GET key`
pub fn get(call: &mut Call<'_, '_>) -> Result<Plan, Said> {
    Ok(Plan::One(Ask::Get { key: call.key(1)?, range: Range::Whole, lifetime: None }, Shape::Value))
}

/// `GETEX key [EX n | PX n | EXAT n | PXAT n | PERSIST]`
pub fn getex(call: &mut Call<'_, '_>) -> Result<Plan, Said> {
    let key = call.key(1)?;
    let mut lifetime = None;
    if call.count() > 2 {
        let option = call.option(2)?;
        let (new, count) = match lifetime_option(call, &option, 2)? {
            Some(new) => (new, 4),
            None if option == b"persist" => (Lifetime::Forever, 3),
            None => return Err(SYNTAX),
        };
        if call.count() != count {
            return Err(SYNTAX);
        }
        lifetime = Some(new);
    }
    Ok(Plan::One(Ask::Get { key, range: Range::Whole, lifetime }, Shape::Value))
}

/// `GETDEL key`
pub fn getdel(call: &mut Call<'_, '_>) -> Result<Plan, Said> {
    Ok(Plan::One(Ask::Delete { key: call.key(1)?, old: Old::Wanted }, Shape::Before))
}

/// `GETRANGE key start end`
pub fn getrange(call: &mut Call<'_, '_>) -> Result<Plan, Said> {
    let (key, first, last) = (call.key(1)?, call.number(2)?, call.number(3)?);
    let range = Range::Between { first, last };
    Ok(Plan::One(Ask::Get { key, range, lifetime: None }, Shape::ValueOrEmpty))
}

/// `STRLEN key`
pub fn strlen(call: &mut Call<'_, '_>) -> Result<Plan, Said> {
    Ok(Plan::One(Ask::Describe { key: call.key(1)? }, Shape::Length))
}

/// `MGET key...`
pub fn mget(call: &mut Call<'_, '_>) -> Result<Plan, Said> {
    let ask = |key| Ask::Get { key, range: Range::Whole, lifetime: None };
    Ok(Plan::Each(call.keys(1, 1)?.into_iter().map(ask).collect(), Gather::List))
}

/// `MSET key value...`
pub fn mset(call: &mut Call<'_, '_>) -> Result<Plan, Said> {
    if call.count().is_multiple_of(2) {
        return Err(arity(call.spec));
    }
    let keys = call.keys(1, 2)?;
    let mut asks = VecDeque::with_capacity(keys.len());
    for (key, index) in keys.into_iter().zip((2..).step_by(2)) {
        asks.push_back(set_with(key, call.value(index), Lifetime::Forever));
    }
    Ok(Plan::Each(asks, Gather::All))
}

fn add(call: &Call<'_, '_>, by: i64) -> Result<Plan, Said> {
    Ok(Plan::One(Ask::Add { key: call.key(1)?, by }, Shape::Count))
}

/// `INCR key`
pub fn incr(call: &mut Call<'_, '_>) -> Result<Plan, Said> {
    add(call, 1)
}

/// `DECR key`
pub fn decr(call: &mut Call<'_, '_>) -> Result<Plan, Said> {
    add(call, -1)
}

/// `INCRBY key increment`
pub fn incrby(call: &mut Call<'_, '_>) -> Result<Plan, Said> {
    add(call, call.number(2)?)
}

/// `DECRBY key decrement`
pub fn decrby(call: &mut Call<'_, '_>) -> Result<Plan, Said> {
    let by = call.number(2)?.checked_neg().ok_or(Said::of("ERR decrement would overflow"))?;
    add(call, by)
}

/// `APPEND key value`
pub fn append(call: &mut Call<'_, '_>) -> Result<Plan, Said> {
    Ok(Plan::One(Ask::Append { key: call.key(1)?, tail: call.value(2) }, Shape::Count))
}
