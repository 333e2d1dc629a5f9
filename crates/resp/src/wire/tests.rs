//! Requests in every cut, compared with somebody else's reading; answers, too.

use super::*;
use crate::Limits;
use proptest::prelude::*;

const KNOWN: Trust = Trust::Known;

/// A client's input as a server keeps it: what was not consumed stays, more is appended.
struct Reader {
    parser: Parser,
    limits: Limits,
    budget: Budget,
    waiting: Vec<u8>,
    commands: Vec<Vec<Vec<u8>>>,
    refused: usize,
    waiting_max: usize,
}

impl Reader {
    fn new(limits: Limits) -> Self {
        let budget = Budget::new(limits.all_bytes_max);
        let (parser, waiting, commands) = (Parser::default(), Vec::new(), Vec::new());
        Self { parser, limits, budget, waiting, commands, refused: 0, waiting_max: 0 }
    }

    fn feed(&mut self, bytes: &[u8]) -> Result<(), Violation> {
        self.waiting.extend_from_slice(bytes);
        loop {
            let step = self.parser.step(&self.waiting, &self.limits, KNOWN, &mut self.budget)?;
            if step.complete {
                let mut arguments = self.parser.arguments(&self.waiting);
                if arguments.is_refused() {
                    self.refused += 1;
                } else {
                    let count = arguments.count();
                    let whole = |index| {
                        let parts = arguments.take(index);
                        assert!(parts.iter().all(|part| part.len() <= PART_BYTES));
                        parts.concat()
                    };
                    self.commands.push((0..count).map(whole).collect());
                }
                self.budget.give(self.parser.reset());
            }
            self.waiting.drain(..step.consumed);
            if !step.complete {
                self.waiting_max = self.waiting_max.max(self.waiting.len());
                return Ok(());
            }
        }
    }
}

fn bulk(arguments: &[&[u8]]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", arguments.len()).into_bytes();
    for argument in arguments {
        bytes.extend_from_slice(format!("${}\r\n", argument.len()).as_bytes());
        bytes.extend_from_slice(argument);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}

fn read(input: &[u8]) -> Result<Vec<Vec<Vec<u8>>>, Violation> {
    let mut reader = Reader::new(Limits::default());
    reader.feed(input).map(|()| reader.commands)
}

#[test]
fn arrays_lines_and_nothing_are_read() {
    let input = b"*2\r\n$3\r\nGET\r\n$1\r\na\r\n*0\r\n\r\nPING\r\nset 'a b' c\n*-1\r\n*1\r\n$0\r\n\r\n";
    let words = |words: &[&str]| words.iter().map(|word| word.as_bytes().to_vec()).collect::<Vec<_>>();
    let expected = [words(&["GET", "a"]), words(&["PING"]), words(&["set", "a b", "c"]), words(&[""])];
    assert_eq!(read(input).unwrap(), expected);
}

#[test]
fn breaches_are_named_as_redis_names_them() {
    for (input, violation) in [
        ("*x\r\n", Violation::ArgumentCount),
        ("*1048577\r\n", Violation::ArgumentCount),
        ("*99999999999999999999\r\n", Violation::ArgumentCount),
        ("*1\r\n:1\r\n", Violation::NoBulk { found: b':' }),
        ("*1\r\n$-1\r\n", Violation::BulkLength),
        ("*1\r\n$536870913\r\n", Violation::BulkLength),
        ("*1\r\n$01\r\n", Violation::BulkLength),
        ("*1\r\n$1\r\nabc", Violation::NoLineEnd),
        ("*1\rx", Violation::NoLineEnd),
        ("*11111111111111111111111111111111111", Violation::EndlessCount),
        ("echo 'a\r\n", Violation::Quotes),
    ] {
        assert_eq!(read(input.as_bytes()), Err(violation), "{input:?}");
    }
    assert_eq!(read(&vec![b'a'; 64 << 10]), Err(Violation::EndlessLine));
    let text = Violation::NoBulk { found: b'\n' }.to_string();
    assert_eq!(text, "Protocol error: expected '$', got '\\n'");
}

#[test]
fn strangers_may_say_little() {
    let limits = Limits::default();
    let mut budget = Budget::new(1 << 20);
    let mut says = |input: &[u8]| Parser::default().step(input, &limits, Trust::Stranger, &mut budget);
    assert_eq!(says(b"*11\r\n"), Err(Violation::StrangersArgumentCount));
    assert_eq!(says(b"*1\r\n$16385\r\n"), Err(Violation::StrangersBulkLength));
    assert!(says(b"*10\r\n$16384\r\n").is_ok());
}

#[test]
fn large_values_come_in_parts_and_stay_in_no_buffer() {
    let value: Vec<u8> = (0..3_500_000_u32).map(|at| at.to_le_bytes()[0]).collect();
    let input = [bulk(&[b"SET", b"key", &value, b"NX"]), bulk(&[b"PING"])].concat();
    for cut in [1000, 65_537, 1 << 20, input.len()] {
        let mut reader = Reader::new(Limits::default());
        for part in input.chunks(cut) {
            reader.feed(part).unwrap();
        }
        assert_eq!(reader.commands.len(), 2, "{cut}");
        assert!(reader.commands[0] == [b"SET".to_vec(), b"key".to_vec(), value.clone(), b"NX".to_vec()]);
        assert!(reader.waiting_max <= LARGE_BYTES + 100, "{} waited", reader.waiting_max);
        assert_eq!(reader.budget.used_bytes(), 0);
    }
}

#[test]
fn many_small_arguments_leave_the_input_too() {
    let arguments: Vec<Vec<u8>> = (0..100_000).map(|at| format!("key{at}").into_bytes()).collect();
    let borrowed: Vec<&[u8]> = arguments.iter().map(Vec::as_slice).collect();
    let mut reader = Reader::new(Limits::default());
    for part in bulk(&borrowed).chunks(10_000) {
        reader.feed(part).unwrap();
    }
    assert!(reader.commands == [arguments]);
    assert!(reader.waiting_max <= (64 << 10) + 10_000);
}

#[test]
fn what_finds_no_room_is_read_past_and_the_next_command_counts() {
    let limits = Limits { all_bytes_max: 1 << 20, ..Limits::default() };
    let mut reader = Reader::new(limits);
    let large = vec![7; 3 << 20];
    let input = [bulk(&[b"SET", b"a", &large]), bulk(&[b"SET", b"b", b"c"])].concat();
    for part in input.chunks(70_000) {
        reader.feed(part).unwrap();
    }
    assert_eq!((reader.refused, reader.commands.len(), reader.budget.used_bytes()), (1, 1, 0));
    let limits = Limits { client_bytes_max: 1 << 20, ..Limits::default() };
    let error = Reader::new(limits).feed(&input).unwrap_err();
    assert_eq!(error, Violation::TooLarge { max_bytes: 1 << 20 });
}

/// What `redis-protocol` makes of it: commands, until it has an error or wants more.
fn oracle(mut input: &[u8]) -> Vec<Vec<Vec<u8>>> {
    use redis_protocol::resp2::{decode::decode, types::OwnedFrame};
    let mut commands = Vec::new();
    while let Ok(Some((frame, used))) = decode(input) {
        input = &input[used..];
        let OwnedFrame::Array(frames) = frame else { break };
        let bytes = frames
            .into_iter()
            .map(|frame| if let OwnedFrame::BulkString(bytes) = frame { Some(bytes) } else { None });
        let Some(command) = bytes.collect::<Option<Vec<_>>>() else { break };
        if !command.is_empty() {
            commands.push(command);
        }
    }
    commands
}

fn argument() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        9 => proptest::collection::vec(any::<u8>(), 0..40),
        1 => (65_000..66_000_usize, any::<u8>()).prop_map(|(length, byte)| vec![byte; length]),
    ]
}

fn commands() -> impl Strategy<Value = Vec<Vec<Vec<u8>>>> {
    proptest::collection::vec(proptest::collection::vec(argument(), 1..6), 0..6)
}

proptest! {
    #[test]
    fn every_cut_gives_the_commands_that_were_sent(commands in commands(), cuts in proptest::collection::vec(1..9000_usize, 1..20)) {
        let input: Vec<u8> = commands.iter().flat_map(|command| {
            bulk(&command.iter().map(Vec::as_slice).collect::<Vec<_>>())
        }).collect();
        prop_assert_eq!(&oracle(&input), &commands);
        let mut reader = Reader::new(Limits::default());
        let mut rest = &input[..];
        for cut in cuts.iter().cycle() {
            let (part, after) = rest.split_at((*cut).min(rest.len()));
            reader.feed(part).unwrap();
            rest = after;
            if rest.is_empty() {
                break;
            }
        }
        prop_assert_eq!(reader.commands, commands);
        prop_assert!(!reader.parser.is_within_command());
        prop_assert_eq!(reader.budget.used_bytes(), 0);
    }

    #[test]
    fn nothing_that_a_client_says_panics(input in "[*$0-9a\"'\\\\ \r\n-]{0,60}", cut in 1..20_usize) {
        let mut whole = Reader::new(Limits::default());
        let all = whole.feed(input.as_bytes());
        let mut cut_up = Reader::new(Limits::default());
        let in_parts = input.as_bytes().chunks(cut).try_for_each(|part| cut_up.feed(part));
        prop_assert_eq!(all, in_parts);
        prop_assert_eq!(whole.commands, cut_up.commands);
    }

    #[test]
    fn what_the_oracle_reads_we_read(mut input in commands().prop_map(|commands| {
        commands.iter().flat_map(|command| bulk(&command.iter().map(Vec::as_slice).collect::<Vec<_>>())).collect::<Vec<u8>>()
    }), at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        // One byte changed: as long as the oracle has commands of bulk strings, ours are the same.
        if !input.is_empty() {
            let at = at.index(input.len());
            input[at] = byte;
        }
        let mut reader = Reader::new(Limits::default());
        let ended = reader.feed(&input);
        let theirs = oracle(&input);
        let shared = theirs.len().min(reader.commands.len());
        prop_assert_eq!(&theirs[..shared], &reader.commands[..shared]);
        // It reads lines as something else, and lengths that we do not take: only there are we behind.
        prop_assert!(reader.commands.len() >= theirs.len() || ended.is_err());
    }
}

#[test]
fn answers_are_read_by_somebody_else() {
    use redis_protocol::resp3::{decode::complete::decode, types::OwnedFrame};
    let mut out = Vec::new();
    let mut reply = Reply::new(&mut out, Version::Three);
    reply.map(2);
    reply.bulk(b"a");
    reply.integer(-7);
    reply.simple("OK");
    reply.set(1);
    reply.null();
    reply.error("ERR a\r\nb");
    reply.text("hello");
    let mut rest = &out[..];
    let mut frames = Vec::new();
    while let Some((frame, used)) = decode(rest).unwrap() {
        frames.push(frame);
        rest = &rest[used..];
    }
    assert!(rest.is_empty());
    assert_eq!(frames.len(), 3);
    assert!(matches!(&frames[0], OwnedFrame::Map { data, .. } if data.len() == 2));
    assert!(matches!(&frames[1], OwnedFrame::SimpleError { data, .. } if data.as_str() == "ERR a  b"));
    assert!(matches!(&frames[2], OwnedFrame::VerbatimString { data, .. } if data == b"hello"));
}
