//! The commands as a table: what they are called, take, touch and do. COMMAND answers from it.

use super::spec::{Flag, Keys, Order, Run, Spec, place_in};
use super::{Call, Plan, Said, connection, expiry, info, keys, server, strings};

const NONE: Keys = Keys(0, 0, 0);
const ONE: Keys = Keys(1, 1, 1);
const ALL: Keys = Keys(1, -1, 1);
const PAIRS: Keys = Keys(1, -1, 2);

const READ: &[Flag] = &[Flag::Readonly, Flag::Fast];
const SLOW_READ: &[Flag] = &[Flag::Readonly];
const WRITE: &[Flag] = &[Flag::Write];
const FAST_WRITE: &[Flag] = &[Flag::Write, Flag::Fast];
const GROW: &[Flag] = &[Flag::Write, Flag::Denyoom];
const FAST_GROW: &[Flag] = &[Flag::Write, Flag::Denyoom, Flag::Fast];
const HERE: &[Flag] = &[Flag::Fast];
const ADMIN: &[Flag] = &[Flag::Admin];
const STRANGER: &[Flag] = &[Flag::Fast, Flag::NoAuth];

const CONNECTION: &str = "connection";
const GENERIC: &str = "generic";
const SERVER: &str = "server";
const STRING: &str = "string";

const fn spec(
    (name, arity): (&'static str, i64),
    flags: &'static [Flag],
    keys: Keys,
    (group, since): (&'static str, &'static str),
    run: Run,
    summary: &'static str,
) -> Spec {
    Spec { name, arity, flags, keys, group, since, summary, run }
}

const fn asks(plan: fn(&mut Call<'_, '_>) -> Result<Plan, Said>) -> Run {
    Run::Store(plan, Order::ByKey)
}

const fn alone(plan: fn(&mut Call<'_, '_>) -> Result<Plan, Said>) -> Run {
    Run::Store(plan, Order::Alone)
}

/// All commands, by name.
#[rustfmt::skip]
pub static COMMANDS: [Spec; 58] = [
    spec(("append", 3), FAST_GROW, ONE, (STRING, "2.0.0"), asks(strings::append), "Puts bytes behind a value."),
    spec(("auth", -2), STRANGER, NONE, (CONNECTION, "1.0.0"), Run::Here(connection::auth), "Says who the client is."),
    spec(("bgsave", -1), ADMIN, NONE, (SERVER, "1.0.0"), alone(keys::bgsave), "Begins to make durable what was acknowledged."),
    spec(("client", -2), HERE, NONE, (CONNECTION, "2.4.0"), Run::Here(connection::client), "ID, INFO, LIST, GETNAME, SETNAME, SETINFO, NO-EVICT, NO-TOUCH, GETREDIR."),
    spec(("command", -1), HERE, NONE, (SERVER, "2.8.13"), Run::Here(info::command), "About commands: COUNT, DOCS, INFO, LIST, GETKEYS."),
    spec(("config", -2), ADMIN, NONE, (SERVER, "2.0.0"), Run::Here(server::config), "Settings: GET, SET, RESETSTAT."),
    spec(("dbsize", 1), READ, NONE, (SERVER, "1.0.0"), alone(keys::dbsize), "How many keys there are."),
    spec(("decr", 2), FAST_GROW, ONE, (STRING, "1.0.0"), asks(strings::decr), "Takes one from a number."),
    spec(("decrby", 3), FAST_GROW, ONE, (STRING, "1.0.0"), asks(strings::decrby), "Takes something from a number."),
    spec(("del", -2), WRITE, ALL, (GENERIC, "1.0.0"), asks(keys::del), "Deletes keys."),
    spec(("echo", 2), HERE, NONE, (CONNECTION, "1.0.0"), Run::Here(connection::echo), "Says what it was told."),
    spec(("exists", -2), READ, ALL, (GENERIC, "1.0.0"), asks(keys::exists), "How many of the keys are there."),
    spec(("expire", -3), FAST_WRITE, ONE, (GENERIC, "1.0.0"), asks(expiry::expire), "Has a key end in some seconds."),
    spec(("expireat", -3), FAST_WRITE, ONE, (GENERIC, "1.2.0"), asks(expiry::expireat), "Has a key end at a second."),
    spec(("expiretime", 2), READ, ONE, (GENERIC, "7.0.0"), asks(expiry::expiretime), "The second at which a key ends."),
    spec(("flushall", -1), WRITE, NONE, (SERVER, "1.0.0"), alone(keys::clear), "Deletes all keys."),
    spec(("flushdb", -1), WRITE, NONE, (SERVER, "1.0.0"), alone(keys::clear), "Deletes all keys."),
    spec(("get", 2), READ, ONE, (STRING, "1.0.0"), asks(strings::get), "The value of a key."),
    spec(("getdel", 2), FAST_WRITE, ONE, (STRING, "6.2.0"), asks(strings::getdel), "The value of a key, which is deleted."),
    spec(("getex", -2), FAST_WRITE, ONE, (STRING, "6.2.0"), asks(strings::getex), "The value of a key, and another end of its life."),
    spec(("getrange", 4), SLOW_READ, ONE, (STRING, "2.4.0"), asks(strings::getrange), "Some bytes of a value."),
    spec(("getset", 3), FAST_GROW, ONE, (STRING, "1.0.0"), asks(strings::getset), "The value of a key, which gets another one."),
    spec(("hello", -1), STRANGER, NONE, (CONNECTION, "6.0.0"), Run::Here(connection::hello), "Says who the client is and what it understands."),
    spec(("incr", 2), FAST_GROW, ONE, (STRING, "1.0.0"), asks(strings::incr), "Adds one to a number."),
    spec(("incrby", 3), FAST_GROW, ONE, (STRING, "1.0.0"), asks(strings::incrby), "Adds something to a number."),
    spec(("info", -1), HERE, NONE, (SERVER, "1.0.0"), Run::Here(info::info), "What the server says of itself."),
    spec(("keys", 2), SLOW_READ, NONE, (GENERIC, "1.0.0"), alone(keys::names), "All names that match a pattern."),
    spec(("lastsave", 1), HERE, NONE, (SERVER, "1.0.0"), Run::Here(server::lastsave), "When everything was durable."),
    spec(("mget", -2), READ, ALL, (STRING, "1.0.0"), asks(strings::mget), "The values of keys."),
    spec(("mset", -3), GROW, PAIRS, (STRING, "1.0.1"), asks(strings::mset), "Gives keys values, one after the other."),
    spec(("persist", 2), FAST_WRITE, ONE, (GENERIC, "2.2.0"), asks(expiry::persist), "Has a key live for ever."),
    spec(("pexpire", -3), FAST_WRITE, ONE, (GENERIC, "2.6.0"), asks(expiry::pexpire), "Has a key end in some milliseconds."),
    spec(("pexpireat", -3), FAST_WRITE, ONE, (GENERIC, "2.6.0"), asks(expiry::pexpireat), "Has a key end at a millisecond."),
    spec(("pexpiretime", 2), READ, ONE, (GENERIC, "7.0.0"), asks(expiry::pexpiretime), "The millisecond at which a key ends."),
    spec(("ping", -1), HERE, NONE, (CONNECTION, "1.0.0"), Run::Here(connection::ping), "Whether the server is there."),
    spec(("psetex", 4), GROW, ONE, (STRING, "2.6.0"), asks(strings::psetex), "Gives a key a value for some milliseconds."),
    spec(("pttl", 2), READ, ONE, (GENERIC, "2.6.0"), asks(expiry::pttl), "Milliseconds that a key has left."),
    spec(("quit", -1), STRANGER, NONE, (CONNECTION, "1.0.0"), Run::Here(connection::quit), "Ends the connection."),
    spec(("readonly", 1), HERE, NONE, ("cluster", "3.0.0"), Run::Here(server::ok), "Nothing: there is no cluster."),
    spec(("readwrite", 1), HERE, NONE, ("cluster", "3.0.0"), Run::Here(server::ok), "Nothing: there is no cluster."),
    spec(("reset", 1), STRANGER, NONE, (CONNECTION, "6.2.0"), Run::Here(connection::reset), "Has the connection be as new."),
    spec(("role", 1), HERE, NONE, (SERVER, "2.8.12"), Run::Here(server::role), "That it is a master without replicas."),
    spec(("save", 1), ADMIN, NONE, (SERVER, "1.0.0"), alone(keys::save), "Makes durable what was acknowledged."),
    spec(("scan", -2), SLOW_READ, NONE, (GENERIC, "2.8.0"), alone(keys::scan), "Some of the names, and where to go on."),
    spec(("select", 2), HERE, NONE, (CONNECTION, "1.0.0"), Run::Here(connection::select), "Chooses a database; there is number 0."),
    spec(("set", -3), GROW, ONE, (STRING, "1.0.0"), asks(strings::set), "Gives a key a value."),
    spec(("setex", 4), GROW, ONE, (STRING, "2.0.0"), asks(strings::setex), "Gives a key a value for some seconds."),
    spec(("setnx", 3), FAST_GROW, ONE, (STRING, "1.0.0"), asks(strings::setnx), "Gives a key a value if it has none."),
    spec(("shutdown", -1), ADMIN, NONE, (SERVER, "1.0.0"), Run::Here(server::shutdown), "Stops the server, if that is allowed."),
    spec(("strlen", 2), READ, ONE, (STRING, "2.2.0"), asks(strings::strlen), "The length of a value."),
    spec(("substr", 4), SLOW_READ, ONE, (STRING, "1.0.0"), asks(strings::getrange), "Some bytes of a value, under an old name."),
    spec(("time", 1), HERE, NONE, (SERVER, "2.6.0"), Run::Here(server::time), "The server's time."),
    spec(("touch", -2), READ, ALL, (GENERIC, "3.2.1"), asks(keys::exists), "How many of the keys are there."),
    spec(("ttl", 2), READ, ONE, (GENERIC, "1.0.0"), asks(expiry::ttl), "Seconds that a key has left."),
    spec(("type", 2), READ, ONE, (GENERIC, "1.0.0"), asks(keys::kind), "What the value of a key is: a string."),
    spec(("unlink", -2), FAST_WRITE, ALL, (GENERIC, "4.0.0"), asks(keys::del), "Deletes keys."),
    spec(("wait", 3), HERE, NONE, (GENERIC, "3.0.0"), alone(keys::wait), "How many replicas have it: none."),
    spec(("waitaof", 4), HERE, NONE, (GENERIC, "7.2.0"), alone(keys::waitaof), "Waits until what was acknowledged is durable."),
];

/// A command by its name, and its place in the table. It is mostly the one that came before, which is at
/// `last`.
pub fn find(name: &[u8], last: Option<usize>) -> Option<(usize, &'static Spec)> {
    let same = |place: &usize| COMMANDS[*place].name.as_bytes().eq_ignore_ascii_case(name);
    let place = last.filter(same).or_else(|| place_in(&COMMANDS, name))?;
    Some((place, &COMMANDS[place]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_in_order_and_found_in_any_letters() {
        assert!(COMMANDS.is_sorted_by(|a, b| a.name < b.name));
        for spec in &COMMANDS {
            let (_, found) = find(spec.name.to_uppercase().as_bytes(), None).expect("it is there");
            assert_eq!(found.name, spec.name);
            assert!(!super::super::is_known_to_redis(spec.name.as_bytes()), "{} is supported", spec.name);
            assert!(spec.arity != 0 && spec.summary.ends_with('.'));
            assert!(spec.summary.is_ascii() && !spec.flags.is_empty());
        }
        assert!(find(b"lpush", Some(0)).is_none());
        assert!(find(b"", Some(0)).is_none());
        assert!(find(&[b'a'; 500], Some(0)).is_none());
    }
}
