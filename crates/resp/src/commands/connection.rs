//! Commands about a client's own connection.

use super::spec::{Here, Spec, arity};
use super::{REDIS_VERSION, SYNTAX, Said};
use crate::desk::Who;
use crate::wire::{Trust, Version, number};

const WRONG: Said =
    Said(std::borrow::Cow::Borrowed("WRONGPASS invalid username-password pair or user is disabled."));

/// Believes a client that knows the password; there is one user.
fn believe(here: &mut Here<'_, '_>, user: Option<usize>, password: usize) -> Result<(), Said> {
    let is_default = user.is_none_or(|user| here.arguments.get(user) == Some(b"default"));
    match &here.desk.settings.password {
        None if user.is_none() => Err(Said::of(
            "ERR AUTH <password> called without any password configured for the default user. Are you sure your \
             configuration is correct?",
        )),
        None if is_default => Ok(()), // as with Redis, whose user may have no password
        Some(own) if is_default && here.arguments.get(password).is_some_and(|said| own.is(said)) => {
            here.who().trust = Trust::Known;
            Ok(())
        }
        Some(_) | None => Err(WRONG),
    }
}

/// `AUTH [user] password`
pub fn auth(here: &mut Here<'_, '_>) -> Result<(), Said> {
    match here.count() {
        2 => believe(here, None, 1)?,
        3 => believe(here, Some(1), 2)?,
        _ => return Err(SYNTAX),
    }
    here.ok()
}

/// Bytes of what a client calls itself.
const NAME_BYTES_MAX: usize = 256;

/// A name has no blanks, since lists of clients have them between.
fn name_of(word: &[u8]) -> Result<String, Said> {
    if word.len() > NAME_BYTES_MAX {
        return Err(Said::of(format!(
            "ERR found a name of {} bytes, expected at most {NAME_BYTES_MAX}",
            word.len()
        )));
    }
    if word.iter().all(u8::is_ascii_graphic) {
        return Ok(String::from_utf8_lossy(word).into_owned());
    }
    Err(Said::of("ERR Client names cannot contain spaces, newlines or special characters."))
}

/// `HELLO [version [AUTH user password] [SETNAME name]]`
pub fn hello(here: &mut Here<'_, '_>) -> Result<(), Said> {
    let mut version = here.who().version;
    if here.count() > 1 {
        version = match number(here.word(1)?) {
            Some(2) => Version::Two,
            Some(3) => Version::Three,
            Some(_) => return Err(Said::of("NOPROTO unsupported protocol version")),
            None => return Err(Said::of("ERR Protocol version is not an integer or out of range")),
        };
    }
    let (mut index, mut name, mut user) = (2, None, None);
    while index < here.count() {
        let option = here.option(index)?;
        let left = here.count() - index - 1;
        index += match (option.as_str(), left) {
            ("auth", 2..) => {
                user = Some(index + 1);
                3
            }
            ("setname", 1..) => {
                name = Some(name_of(here.word(index + 1)?)?);
                2
            }
            _ => return Err(Said::of(format!("ERR Syntax error in HELLO option '{option}'"))),
        };
    }
    if let Some(user) = user {
        believe(here, Some(user), user + 1)?;
    }
    if here.who().trust == Trust::Stranger {
        return Err(Said::of(
            "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> \
             <pass> option can be used to authenticate the client and select the RESP protocol version at the same time",
        ));
    }
    let who = here.who();
    who.version = version;
    if let Some(name) = name {
        who.name = name;
    }
    let number = who.id.number;
    let mut reply = here.reply();
    reply.map(7);
    for (name, value) in [("server", "redis"), ("version", REDIS_VERSION)] {
        reply.bulk(name.as_bytes());
        reply.bulk(value.as_bytes());
    }
    reply.bulk(b"proto");
    reply.integer(if version == Version::Two { 2 } else { 3 });
    reply.bulk(b"id");
    reply.integer(i64::try_from(number).unwrap_or(i64::MAX));
    for (name, value) in [("mode", "standalone"), ("role", "master")] {
        reply.bulk(name.as_bytes());
        reply.bulk(value.as_bytes());
    }
    reply.bulk(b"modules");
    reply.array(0);
    Ok(())
}

/// `PING [message]`
pub fn ping(here: &mut Here<'_, '_>) -> Result<(), Said> {
    match here.count() {
        1 => here.reply().simple("PONG"),
        2 => return echo(here),
        _ => return Err(arity(here.spec)),
    }
    Ok(())
}

/// `ECHO message`
pub fn echo(here: &mut Here<'_, '_>) -> Result<(), Said> {
    let message = here.arguments.take(1).concat();
    here.reply().bulk(&message);
    Ok(())
}

/// `QUIT`
pub fn quit(here: &mut Here<'_, '_>) -> Result<(), Said> {
    here.ends = true;
    here.ok()
}

/// `RESET`
pub fn reset(here: &mut Here<'_, '_>) -> Result<(), Said> {
    let trust = here.desk.first_trust();
    let who = here.who();
    who.trust = trust;
    who.version = Version::Two;
    who.name.clear();
    here.reply().simple("RESET");
    Ok(())
}

/// `SELECT 0`
pub fn select(here: &mut Here<'_, '_>) -> Result<(), Said> {
    match number(here.word(1)?) {
        Some(0) => here.ok(),
        Some(_) => Err(Said::of("ERR DB index is out of range: elastripe has database 0")),
        None => Err(super::NOT_AN_INTEGER),
    }
}

/// A line of `CLIENT LIST`.
fn line_of(who: &Who, table: &[Spec], now_ms: u64) -> String {
    let command = who.command.and_then(|index| table.get(index)).map_or("NULL", |spec| spec.name);
    let seconds = |since_ms: u64| now_ms.saturating_sub(since_ms) / 1000;
    format!(
        "id={} addr={} name={} age={} idle={} flags=N db=0 cmd={command} user=default resp={} lib-name={} lib-ver={}\n",
        who.id.number,
        who.peer,
        who.name,
        seconds(who.since_ms),
        seconds(who.heard_ms),
        if who.version == Version::Two { 2 } else { 3 },
        who.library[0],
        who.library[1],
    )
}

/// `CLIENT ID | INFO | LIST | GETNAME | SETNAME name | SETINFO what value | NO-EVICT on | NO-TOUCH on |
/// GETREDIR`
pub fn client(here: &mut Here<'_, '_>) -> Result<(), Said> {
    let part = here.option(1)?;
    let (now_ms, table) = (here.desk.now_ms, here.table);
    match (part.as_str(), here.count()) {
        ("id", 2) => {
            let number = here.client.number;
            here.reply().integer(i64::try_from(number).unwrap_or(i64::MAX));
        }
        ("getname", 2) => {
            let name = here.who().name.clone();
            let mut reply = here.reply();
            if name.is_empty() { reply.null() } else { reply.bulk(name.as_bytes()) }
        }
        ("setname", 3) => {
            here.who().name = name_of(here.word(2)?)?;
            return here.ok();
        }
        ("setinfo", 4) => {
            let index = match here.option(2)?.as_str() {
                "lib-name" => 0,
                "lib-ver" => 1,
                other => return Err(Said::of(format!("ERR Unrecognized option '{other}'"))),
            };
            here.who().library[index] = name_of(here.word(3)?)?;
            return here.ok();
        }
        ("info", 2) => {
            let line = line_of(here.who(), table, now_ms);
            here.reply().text(&line);
        }
        ("list", 2..) => {
            let wanted = listed(here)?;
            let lines: String = here
                .desk
                .clients()
                .filter(|who| wanted.as_ref().is_none_or(|wanted| wanted.contains(&who.id.number)))
                .map(|who| line_of(who, table, now_ms))
                .collect();
            here.reply().text(&lines);
        }
        ("getredir", 2) => here.reply().integer(-1),
        // Nothing is evicted, and nothing remembers when a key was touched.
        ("no-evict" | "no-touch", 3) => match here.option(2)?.as_str() {
            "on" | "off" => return here.ok(),
            _ => return Err(SYNTAX),
        },
        _ => return Err(here.no_such_part(&part)),
    }
    Ok(())
}

/// The numbers of clients that a list is to have; `None`: all.
fn listed(here: &Here<'_, '_>) -> Result<Option<Vec<u64>>, Said> {
    if here.count() == 2 {
        return Ok(None);
    }
    match here.option(2)?.as_str() {
        "id" if here.count() > 3 => {
            let numbers = (3..here.count()).map(|index| {
                let number = crate::wire::decimal(here.word(index)?);
                number.ok_or(Said::of("ERR Invalid client ID"))
            });
            numbers.collect::<Result<_, _>>().map(Some)
        }
        "type" if here.count() == 4 => match here.option(3)?.as_str() {
            "normal" => Ok(None),
            "master" | "replica" | "pubsub" => Ok(Some(Vec::new())),
            other => Err(Said::of(format!("ERR Unknown client type '{other}'"))),
        },
        _ => Err(SYNTAX),
    }
}
