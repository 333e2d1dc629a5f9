//! One session of the Redis protocol before a store in memory, without sockets: whatever it is told,
//! nothing panics, the input is used up, and what it held is given back.

use resp::memory::MemoryKeys;
use resp::{Context, Desk, Limits, Password, Session, Settings, Wants};
use std::io::IoSlice;

/// Feeds input; how much of it waits for more, `None` when the session is over.
fn feed(session: &mut Session, mut input: &[u8], desk: &mut Desk, keys: &mut MemoryKeys) -> Option<usize> {
    // Each round uses bytes or makes room: a bound that no session reaches.
    for _ in 0..100_000 {
        let Ok((used, wants)) = session.receive(input, &mut Context { desk, keys }) else { return None };
        input = &input[used..];
        session.work(&mut Context { desk, keys }).ok()?;
        let mut slices = [IoSlice::new(&[]); 7];
        let count = session.output().gather(&mut slices);
        let bytes = slices[..count].iter().map(|slice| slice.len()).sum();
        session.sent(bytes, &mut Context { desk, keys });
        match wants {
            Wants::Bytes => return Some(input.len()),
            Wants::Room => {}
            Wants::Nothing => return None,
        }
    }
    panic!("a session with a store that answers at once is stuck");
}

/// The first byte shapes the session and the cuts of the input; the rest is what the client says.
pub fn run(data: &[u8]) {
    let Some((&shape, said)) = data.split_first() else { return };
    let limits = Limits {
        arguments_max: 1000,
        bulk_bytes_max: 1 << 20,
        all_bytes_max: if shape & 0x20 == 0 { 1 << 20 } else { 5000 },
        asks_in_flight_max: 1 + usize::from(shape & 7),
        output_pause_bytes: if shape & 8 == 0 { 1 << 20 } else { 100 },
        ..Limits::default()
    };
    let password = if shape & 0x10 == 0 { None } else { Password::new(b"a") };
    let mut desk = Desk::new(limits, Settings { password, ..Settings::default() }, 1_700_000_000_000);
    let mut keys = MemoryKeys::default();
    let id = desk.welcome(0, "fuzz".to_owned());
    let mut session = Session::new(id);
    let cut = if shape & 0x80 == 0 { said.len().max(1) } else { 1 + said.len() / 7 };
    let mut waiting: Vec<u8> = Vec::new();
    for part in said.chunks(cut) {
        waiting.extend_from_slice(part);
        let Some(left) = feed(&mut session, &waiting, &mut desk, &mut keys) else { break };
        waiting.drain(..waiting.len() - left);
    }
    session.abandon(&mut Context { desk: &mut desk, keys: &mut keys });
    assert_eq!(desk.budget.used_bytes(), 0, "what was held is given back");
    assert_eq!(desk.client_count(), 0);
}
