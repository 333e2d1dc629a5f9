//! What clients are told, as text: ends of lines are `|`.

use super::harness::{Unordered, World, bulk};
use crate::{Fault, Limits, Password, Settings};

/// Whoever names a part that there is not is sent to COMMAND DOCS.
#[test]
fn the_parts_of_commands_are_in_what_is_said_of_them() {
    let mut world = World::plain();
    for (name, parts) in [
        ("client", "ID INFO LIST GETNAME SETNAME SETINFO NO-EVICT NO-TOUCH GETREDIR"),
        ("command", "COUNT DOCS GETKEYS INFO LIST"),
        ("config", "GET SET RESETSTAT"),
    ] {
        let said = world.says(&format!("command docs {name}"));
        let words: Vec<&str> = said.split([' ', ',', '.', '|']).collect();
        for part in parts.split(' ') {
            assert!(words.contains(&part), "{part} in {said}");
        }
        let said = world.says(&format!("{name} nothing"));
        assert!(said.starts_with("-ERR unknown subcommand or") && said.ends_with("COMMAND DOCS"), "{said}");
    }
}

/// Each line is a command, then what it is answered with.
fn transcript(lines: &[(&str, &str)]) {
    let mut world = World::plain();
    for (line, expected) in lines {
        assert_eq!(world.says(line), *expected, "{line}");
    }
}

#[test]
fn values_are_set_and_got_as_with_redis() {
    transcript(&[
        ("get a", "$-1"),
        ("set a 1", "+OK"),
        ("GET a", "$1|1"),
        ("set a 2 nx", "$-1"),
        ("set b 2 NX", "+OK"),
        ("set c 2 xx", "$-1"),
        ("set a 3 xx get", "$1|1"),
        ("set z 3 get", "$-1"),
        ("set a 4 nx xx", "-ERR syntax error"),
        ("set a 4 ex", "-ERR syntax error"),
        ("set a 4 ex 0", "-ERR invalid expire time in 'set' command"),
        ("set a 4 ex x", "-ERR value is not an integer or out of range"),
        ("set a 4 ex 9223372036854775807", "-ERR invalid expire time in 'set' command"),
        ("set a 4 ex 1 px 1", "-ERR syntax error"),
        ("set a 4 keepttl ex 1", "-ERR syntax error"),
        ("set a 4 ex 1 keepttl", "-ERR syntax error"),
        ("set a 3 keepttl nx keepttl nx", "$-1"),
        ("setnx a 5", ":0"),
        ("setnx d 5", ":1"),
        ("getset a hello", "$1|3"),
        ("getrange a 1 3", "$3|ell"),
        ("substr a -3 -1", "$3|llo"),
        ("getrange none 0 -1", "$0"),
        ("strlen a", ":5"),
        ("strlen none", ":0"),
        ("append a ' you'", ":9"),
        ("get a", "$9|hello you"),
        ("getdel a", "$9|hello you"),
        ("getdel a", "$-1"),
        ("mset a 1 b 2 c 3", "+OK"),
        ("mset a 1 b", "-ERR wrong number of arguments for 'mset' command"),
        ("mget a none c", "*3|$1|1|$-1|$1|3"),
        ("exists a a none", ":2"),
        ("touch a", ":1"),
        ("del a b none", ":2"),
        ("unlink c", ":1"),
        ("type d", "+string"),
        ("type a", "+none"),
        ("incr n", ":1"),
        ("incrby n 41", ":42"),
        ("decrby n 2", ":40"),
        ("decr n", ":39"),
        ("set n 9223372036854775807", "+OK"),
        ("incr n", "-ERR increment or decrement would overflow"),
        ("decrby n -9223372036854775808", "-ERR decrement would overflow"),
        ("set n x", "+OK"),
        ("incr n", "-ERR value is not an integer or out of range"),
        ("set '' x", "-ERR found a key of 0 bytes, expected 1 to 255"),
    ]);
}

#[test]
fn lives_end_as_with_redis() {
    transcript(&[
        ("ttl a", ":-2"),
        ("set a 1", "+OK"),
        ("ttl a", ":-1"),
        ("expire a 100", ":1"),
        ("ttl a", ":100"),
        ("pttl a", ":100000"),
        ("expiretime a", ":1700000100"),
        ("pexpiretime a", ":1700000100000"),
        ("expire a 50 gt", ":0"),
        ("expire a 150 gt", ":1"),
        ("expire a 150 nx", ":0"),
        ("expire a 140 lt", ":1"),
        ("expire a 1 xx gt", ":0"),
        ("expire a 130 xx", ":1"),
        ("expire a 1 nx xx", "-ERR NX and XX, GT or LT options at the same time are not compatible"),
        ("expire a 1 gt lt", "-ERR GT and LT options at the same time are not compatible"),
        ("expire a 1 ab", "-ERR Unsupported option ab"),
        ("set a 2 keepttl", "+OK"),
        ("ttl a", ":130"),
        ("persist a", ":1"),
        ("persist a", ":0"),
        ("expire a 10 gt", ":0"),
        ("expire a 10 lt", ":1"),
        ("getex a persist", "$1|2"),
        ("ttl a", ":-1"),
        ("getex a ex 10", "$1|2"),
        ("ttl a", ":10"),
        ("getex a", "$1|2"),
        ("getex a ex 10 persist", "-ERR syntax error"),
        ("pexpire a 1500", ":1"),
        ("ttl a", ":2"),
        ("expireat a 1700000010", ":1"),
        ("ttl a", ":10"),
        ("pexpireat a 1700000010500", ":1"),
        ("pttl a", ":10500"),
        ("set b 1 ex 5", "+OK"),
        ("setex b 7 1", "+OK"),
        ("ttl b", ":7"),
        ("psetex b 7000 1", "+OK"),
        ("setex b 0 1", "-ERR invalid expire time in 'setex' command"),
        ("ttl b", ":7"),
        ("incr b", ":2"),
        ("ttl b", ":7"),
        ("expire b -1", ":1"),
        ("exists b", ":0"),
        ("expire none 1", ":0"),
        ("expire none 1 lt", ":0"),
        ("set c 1 exat 1", "+OK"),
        ("get c", "$-1"),
        ("expire a 9223372036854775807", "-ERR invalid expire time in 'expire' command"),
    ]);
}

#[test]
fn names_are_scanned_counted_and_cleared() {
    let mut world = World::plain();
    for number in 0..2500 {
        assert_eq!(world.says(&format!("set key{number} x")), "+OK");
    }
    assert_eq!(world.says("dbsize"), ":2500");
    let (mut cursor, mut found) = ("0".to_owned(), Vec::new());
    loop {
        let said = world.says(&format!("scan {cursor} match key1* count 100"));
        let words: Vec<&str> = said.split('|').collect();
        cursor = words[2].to_owned();
        found.extend(words.iter().filter(|word| word.starts_with("key")).map(|word| (*word).to_owned()));
        if cursor == "0" {
            break;
        }
    }
    found.sort();
    found.dedup();
    assert_eq!(found.len(), 1111, "key1, key1x, key1xx, key1xxx");
    assert!(world.says("keys key1*").starts_with("*1111|"));
    assert_eq!(world.says("keys none*"), "*0");
    assert!(world.says("scan 0 type list count 10000").ends_with("|*0"));
    assert_eq!(world.says("scan x"), "-ERR invalid cursor");
    let long = "*".repeat(1025);
    let said = "-ERR found a pattern of 1025 bytes, expected at most 1024";
    assert_eq!(
        (world.says(&format!("keys {long}")), world.says(&format!("scan 0 match {long}"))),
        (said.into(), said.into())
    );
    assert!(
        world.says(&format!("client setname {}", "a".repeat(257))).starts_with("-ERR found a name of 257")
    );
    assert_eq!(world.says("scan 0 count 0"), "-ERR syntax error");
    assert_eq!(world.says("scan 0 count"), "-ERR syntax error");
    world.desk.limits.keys_answer_bytes_max = 1000;
    assert!(world.says("keys *").starts_with("-ERR the names that match take more than 1000 bytes"));
    assert_eq!(world.says("flushdb sync"), "+OK");
    assert_eq!(world.says("flushall now"), "-ERR syntax error");
    assert_eq!(world.says("dbsize"), ":0");
}

#[test]
fn saving_is_a_flush() {
    let mut world = World::plain();
    let before = world.says("lastsave");
    world.desk.now_ms += 5000;
    assert_eq!(world.says("save"), "+OK");
    assert_ne!(world.says("lastsave"), before);
    assert_eq!(world.says("bgsave"), "+Background saving started");
    assert_eq!(world.says("waitaof 1 0 0"), "*2|:1|:0");
    assert_eq!(world.says("wait 0 100"), ":0");
    assert_eq!(world.says("wait 0 -1"), "-ERR timeout is negative");
    assert_eq!(world.says("waitaof 1 0 -1"), "-ERR timeout is negative");
    assert_eq!(world.says("waitaof 2 0 0"), "-ERR value is out of range, value must between 0 and 1");
    assert_eq!(world.says("waitaof 0 -1 0"), "-ERR value is out of range, must be positive");
    assert_eq!(world.keys.asked["flush"], 3);
}

#[test]
fn what_is_not_supported_is_refused_by_name() {
    transcript(&[
        ("LPUSH a b", "-ERR command 'lpush' is not supported by elastripe, which stores strings"),
        (
            "msetnx a 1",
            "-ERR command 'msetnx' is not supported by elastripe, which would have to do all of it or nothing, also after a \
             power cut",
        ),
        (
            "setrange a 0 b",
            "-ERR command 'setrange' is not supported by elastripe; COMMAND LIST says what is",
        ),
        ("rename a b", RENAME),
        ("subscribe a", "-ERR command 'subscribe' is not supported by elastripe, which carries no messages"),
        ("eval_ro a 0", "-ERR command 'eval_ro' is not supported by elastripe, which has no scripts"),
        ("nonsense a b", "-ERR unknown command 'nonsense', with args beginning with: 'a' 'b' "),
        ("shutdown", "-ERR command 'shutdown' is not allowed here: stop the server by `elastripe stop`"),
        ("get", "-ERR wrong number of arguments for 'get' command"),
        ("select 1", "-ERR DB index is out of range: elastripe has database 0"),
        ("select 0", "+OK"),
        ("config set maxmemory 1", "-ERR CONFIG SET failed: 'maxmemory' cannot be set; 'timeout' can"),
        ("hello 4", "-NOPROTO unsupported protocol version"),
        ("auth x", AUTH_WITHOUT),
    ]);
}

const RENAME: &str = "-ERR command 'rename' is not supported by elastripe, which would have to do all of it or nothing, \
                      also after a power cut";
const AUTH_WITHOUT: &str = "-ERR AUTH <password> called without any password configured for the default user. Are you sure \
                            your configuration is correct?";

#[test]
fn connections_say_who_they_are() {
    transcript(&[
        ("ping", "+PONG"),
        ("ping a", "$1|a"),
        ("echo 'a b'", "$3|a b"),
        ("client id", ":1"),
        ("client getname", "$-1"),
        ("client setname me", "+OK"),
        ("client getname", "$2|me"),
        ("client setinfo lib-name test", "+OK"),
        ("client no-evict on", "+OK"),
        ("config get maxmem*", "*4|$9|maxmemory|$1|0|$16|maxmemory-policy|$10|noeviction"),
        ("config set timeout 7", "+OK"),
        ("config get timeout", "*2|$7|timeout|$1|7"),
        ("command getkeys mset a 1 b 2", "*2|$1|a|$1|b"),
        ("command getkeys get a", "*1|$1|a"),
        ("command info get none", COMMAND_INFO),
        ("command docs get", COMMAND_DOCS),
        ("role", "*3|$6|master|:0|*0"),
        ("hello 3", HELLO),
        ("get none", "_"),
        ("mget none", "*1|_"),
        ("config get timeout", "%1|$7|timeout|$1|7"),
        ("reset", "+RESET"),
        ("client getname", "$-1"),
        ("time", "*2|$10|1700000000|$1|0"),
    ]);
    let mut world = World::plain();
    assert!(
        world.says("client list").contains("id=1 addr=test:0 name= age=0 idle=0 flags=N db=0 cmd=client")
    );
    assert_eq!(world.says("client list id 7"), "$0");
    let info = world.says("info");
    for word in ["# Server", "redis_version:7.0.0", "connected_clients:1", "total_commands_processed:2"] {
        assert!(info.contains(word), "{word} in {info}");
    }
    assert!(world.says("info commandstats").contains("cmdstat_client:calls=2"));
    assert_eq!(world.says("command count"), format!(":{}", crate::commands::COMMANDS.len()));
    assert_eq!(world.says("client list id"), "-ERR syntax error");
    let twice = "-ERR CONFIG SET failed: 'timeout' is there twice";
    assert_eq!(world.says("config set timeout 1 timeout 2"), twice);
    world.desk.limits.idle_timeout_ns = Some(1_500_000_000);
    assert_eq!(world.says("config get timeout"), "*2|$7|timeout|$1|2", "0 would be none");
    assert_eq!(world.says("quit"), "+OK");
    assert!(world.clients[0].session.is_finished());
}

const COMMAND_INFO: &str = "*2|*10|$3|get|:2|*2|+readonly|+fast|:1|:1|:1|*0|*0|*0|*0|*-1";
const COMMAND_DOCS: &str =
    "*2|$3|get|*6|$7|summary|$19|The value of a key.|$5|since|$5|1.0.0|$5|group|$6|string";
const HELLO: &str = "%7|$6|server|$5|redis|$7|version|$5|7.0.0|$5|proto|:3|$2|id|:1|$4|mode|$10|standalone|$4|role|$6|master|\
                     $7|modules|*0";

#[test]
fn without_the_password_little_is_said() {
    let settings = Settings { password: Password::new(b"sesame"), ..Settings::default() };
    let mut world = World::new(Limits::default(), settings, Unordered::new(0, 1), 1);
    for line in ["get a", "ping", "nonsense", "flushall", "info"] {
        assert_eq!(world.says(line), "-NOAUTH Authentication required.", "{line}");
    }
    assert!(world.says("hello 3").starts_with("-NOAUTH HELLO must be called"));
    for line in ["auth wrong", "auth other sesame", "hello 3 auth default wrong", "auth sesam"] {
        assert_eq!(
            world.says(line),
            "-WRONGPASS invalid username-password pair or user is disabled.",
            "{line}"
        );
    }
    assert_eq!(world.says("auth default sesame"), "+OK");
    assert_eq!(world.says("get a"), "$-1");
    assert_eq!(world.says("reset"), "+RESET");
    assert_eq!(world.says("get a"), "-NOAUTH Authentication required.");
    assert!(world.says("hello 3 auth default sesame setname me").starts_with("%7|"));
    assert_eq!(world.says("get a"), "_");
    assert!(world.keys.asked.keys().eq(["get"].iter()), "{:?}", world.keys.asked);
}

#[test]
fn what_the_store_refuses_is_said_in_words_that_clients_know() {
    let mut world = World::plain();
    world.keys.inner.space_bytes = Some(5);
    world.keys.inner.damaged = Some(Box::from(&b"bad"[..]));
    let said = "-OOM command not allowed: The value needs 6 bytes of space, and 0 are left.";
    assert_eq!(world.says("set a 123456"), said);
    assert_eq!(world.says("mset b 1 a 123456 c 2"), said);
    assert_eq!(world.says("get c"), "$1|2", "the others are set");
    let said = "-ERR DAMAGED The store is damaged: a test says so.";
    assert_eq!(world.says("get bad"), said);
    assert_eq!(world.says("mget b bad1 c"), format!("*3|$1|1|{said}|$1|2"));
    assert_eq!(world.says("del b bad1 c"), said);
    assert_eq!(world.says("incr bad"), said);
    assert_eq!(world.says("expire bad 1 nx"), said);
    assert_eq!(world.says("set bad 1"), said, "and the key is free again");
}

#[test]
fn who_breaks_the_protocol_is_told_and_leaves() {
    let mut world = World::plain();
    assert_eq!(world.says("*1\r\n:1"), "-ERR Protocol error: expected '$', got ':'");
    let client = &mut world.clients[0];
    assert!(client.session.is_finished());
    assert!(matches!(client.session.take_fault(), Some(Fault::Protocol(_))));
    let mut world = World::plain();
    world.send(0, b"POST / HTTP/1.1\r\nHost: a\r\n\r\n");
    assert!(matches!(world.clients[0].fault, Some(Fault::Http)));
}

#[test]
fn large_values_go_in_and_out_whole() {
    let mut world = World::plain();
    let value: Vec<u8> = (0..5_000_000_u32).map(|at| at.to_le_bytes()[1]).collect();
    for part in bulk(&[b"SET", b"large", &value]).chunks(123_457) {
        world.send(0, part);
    }
    world.settle();
    assert_eq!(world.clients[0].said, b"+OK\r\n");
    world.clients[0].said.clear();
    world.send(0, &bulk(&[b"GET", b"large"]));
    world.settle();
    let expected = [b"$5000000\r\n", &value[..], b"\r\n"].concat();
    assert!(world.clients[0].said == expected);
    assert_eq!(world.desk.budget.used_bytes(), 0);
    assert_eq!(world.says("getrange large 1 4"), "$4|\0\0\0\0");
    assert_eq!(world.says("strlen large"), ":5000000");
}

#[test]
fn a_value_is_counted_once_and_answers_that_wait_are_counted() {
    // Room for one value and a half: it passes.
    let limits = Limits { all_bytes_max: 3 << 20, ..Limits::default() };
    let mut world = World::new(limits, Settings::default(), Unordered::new(0, 1), 1);
    world.send(0, &bulk(&[b"SET", b"a", &vec![7; 2 << 20]]));
    world.settle();
    assert_eq!(world.clients[0].said, b"+OK\r\n");
    // What is answered at once behind a question is not begun without end.
    let mut world = World::new(Limits::default(), Settings::default(), Unordered::new(1, 1), 1);
    world.send(0, b"GET a\r\n");
    for _ in 0..20 {
        world.send(0, &bulk(&[b"ECHO", &vec![7; 1 << 20]]));
    }
    assert!(world.clients[0].input.len() > 15 << 20, "it stays in the socket");
    world.settle();
    assert_eq!(world.clients[0].said.len(), "$-1\r\n".len() + 20 * ("$1048576\r\n\r\n".len() + (1 << 20)));
    assert_eq!(world.desk.budget.used_bytes(), 0);
}
