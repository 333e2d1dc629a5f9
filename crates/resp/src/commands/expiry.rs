//! Commands about how long a key lives.

use super::{Call, Plan, Said, Shape, plan};
use kv::ask::{Ask, Condition, Lifetime};

/// How an end of life is given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    /// In so many seconds.
    Seconds,
    /// In so many milliseconds.
    Milliseconds,
    /// At this second since 1970.
    SecondsAt,
    /// At this millisecond since 1970.
    MillisecondsAt,
}

/// An end of life, in milliseconds since 1970; one before that is at its beginning.
pub fn end_of_life(call: &Call<'_, '_>, index: usize, unit: Unit) -> Result<u64, Said> {
    let number = call.number(index)?;
    let now_ms = i64::try_from(call.now_ms).unwrap_or(i64::MAX);
    let end_ms = match unit {
        Unit::Seconds => number.checked_mul(1000).and_then(|ms| ms.checked_add(now_ms)),
        Unit::Milliseconds => number.checked_add(now_ms),
        Unit::SecondsAt => number.checked_mul(1000),
        Unit::MillisecondsAt => Some(number),
    };
    match end_ms {
        Some(end_ms) => Ok(u64::try_from(end_ms).unwrap_or(0)),
        None => Err(Said::of(format!("ERR invalid expire time in '{}' command", call.spec.name))),
    }
}

fn expire_by(call: &Call<'_, '_>, unit: Unit) -> Result<Plan, Said> {
    let key = call.key(1)?;
    let until_ms = end_of_life(call, 2, unit)?;
    let mut conditions = Vec::new();
    for index in 3..call.count() {
        let option = call.option(index)?;
        conditions.push(match &option[..] {
            b"nx" => Condition::IfNone,
            b"xx" => Condition::IfSome,
            b"gt" => Condition::IfLater,
            b"lt" => Condition::IfSooner,
            other => {
                return Err(Said::of(format!("ERR Unsupported option {}", other.escape_ascii())));
            }
        });
    }
    let has = |condition| conditions.contains(&condition);
    let bounded = has(Condition::IfLater) || has(Condition::IfSooner);
    if has(Condition::IfNone) && (bounded || has(Condition::IfSome)) {
        let text = "ERR NX and XX, GT or LT options at the same time are not compatible";
        return Err(Said::of(text));
    }
    if has(Condition::IfLater) && has(Condition::IfSooner) {
        return Err(Said::of("ERR GT and LT options at the same time are not compatible"));
    }
    let now_ms = call.now_ms;
    if conditions.is_empty() {
        return Ok(Plan::One(plan::live(key, until_ms, now_ms), Shape::WasThere));
    }
    Ok(Plan::One(Ask::LiveIf { key, until_ms, conditions }, Shape::WhetherStored))
}

/// `EXPIRE key seconds [NX | XX | GT | LT]`
pub fn expire(call: &mut Call<'_, '_>) -> Result<Plan, Said> {
    expire_by(call, Unit::Seconds)
}

/// `PEXPIRE key milliseconds [NX | XX | GT | LT]`
pub fn pexpire(call: &mut Call<'_, '_>) -> Result<Plan, Said> {
    expire_by(call, Unit::Milliseconds)
}

/// `EXPIREAT key seconds [NX | XX | GT | LT]`
pub fn expireat(call: &mut Call<'_, '_>) -> Result<Plan, Said> {
    expire_by(call, Unit::SecondsAt)
}

/// `PEXPIREAT key milliseconds [NX | XX | GT | LT]`
pub fn pexpireat(call: &mut Call<'_, '_>) -> Result<Plan, Said> {
    expire_by(call, Unit::MillisecondsAt)
}

fn describe(call: &Call<'_, '_>, shape: Shape) -> Result<Plan, Said> {
    Ok(Plan::One(Ask::Describe { key: call.key(1)? }, shape))
}

/// `TTL key`
pub fn ttl(call: &mut Call<'_, '_>) -> Result<Plan, Said> {
    describe(call, Shape::LeftSeconds { now_ms: call.now_ms })
}

/// `PTTL key`
pub fn pttl(call: &mut Call<'_, '_>) -> Result<Plan, Said> {
    describe(call, Shape::LeftMs { now_ms: call.now_ms })
}

/// `EXPIRETIME key`
pub fn expiretime(call: &mut Call<'_, '_>) -> Result<Plan, Said> {
    describe(call, Shape::EndSeconds)
}

/// `PEXPIRETIME key`
pub fn pexpiretime(call: &mut Call<'_, '_>) -> Result<Plan, Said> {
    describe(call, Shape::EndMs)
}

/// `PERSIST key`
pub fn persist(call: &mut Call<'_, '_>) -> Result<Plan, Said> {
    Ok(Plan::One(Ask::Live { key: call.key(1)?, lifetime: Lifetime::Forever }, Shape::WasToEnd))
}
