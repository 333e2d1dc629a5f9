//! A discard that has to wait for a write to the same stripe is answered, with nothing else to wake the
//! server: every scheme, members in files, one client, no commit when idle. `ELASTRIPE_WAKE_ROUNDS` (200)
//! says how often; 10,000 is the long form.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use crate::common::nbd::{Command, Nbd};
use crate::common::watched::Watched;
use crate::common::{Rig, every_scheme};
use std::time::{Duration, Instant};

/// No answer takes as long on the slowest of machines, unless it never comes.
const LIMIT: Duration = Duration::from_secs(10);
const CHUNK: u32 = 4096;
const DATA_COUNT: u64 = 4;
const STRIPES: u64 = 64;
/// The discard comes up to so much later than the write.
const APART_MAX: Duration = Duration::from_micros(600);
const MEMBERS: [&str; 5] = ["d0", "d1", "d2", "d3", "d4"];

fn serve(rig: &Rig, scheme: &str, logs: bool) -> Watched {
    let mut args = vec!["create", "--scheme", scheme, "--parity", "1", "--file-size", "24MiB", "--data"];
    args.extend(MEMBERS);
    let log: &[&str] = if logs { &["--log", "l0"] } else { &[] };
    args.extend(log);
    rig.run(&args).ok();
    let members: Vec<&str> = MEMBERS.into_iter().chain(logs.then_some("l0")).collect();
    Watched::serve(rig, &members, &["--commit-idle", "off"])
}

/// One round: a write to the first half of a stripe, a discard of the other half soon after.
/// The slower answer.
fn round(client: &mut Nbd, number: u64, rounds: u64) -> Duration {
    let half = CHUNK * 2;
    let at = number % STRIPES * DATA_COUNT * u64::from(CHUNK);
    let byte = number as u8 | 1;
    client.request(Command::Write, at, half * 2, &vec![byte; half as usize * 2]);
    let mut started = [Instant::now(); 2];
    client.send(Command::Write, 0, at, half, &vec![byte ^ 0xf0; half as usize]);
    // Spread over the whole span, in an order that has nothing to do with the stripes.
    let apart = APART_MAX.mul_f64((number * 7919 % rounds) as f64 / rounds as f64);
    while started[0].elapsed() < apart {
        std::hint::spin_loop();
    }
    started[1] = Instant::now();
    let what = if number.is_multiple_of(2) { Command::Trim } else { Command::WriteZeroes };
    client.send(what, 1, at + u64::from(half), half, &[]);
    let answers = [client.answer(), client.answer()];
    answers
        .into_iter()
        .map(|answer| {
            let (which, at) =
                answer.unwrap_or_else(|| panic!("round {number}: {what:?}: no answer in {LIMIT:?}"));
            at - started[which as usize]
        })
        .max()
        .unwrap()
}

#[test]
fn a_discard_right_after_a_write_to_its_stripe() {
    let rounds = std::env::var("ELASTRIPE_WAKE_ROUNDS").ok().map_or(200, |value| value.parse().unwrap());
    for (scheme, logs) in every_scheme() {
        let rig = Rig::new();
        let server = serve(&rig, scheme, logs);
        let mut client = Nbd::connect(&rig.path("nbd"), LIMIT);
        let times: Vec<Duration> = (0..rounds).map(|number| round(&mut client, number, rounds)).collect();
        let late = times.iter().filter(|&&time| time > Duration::from_millis(100)).count();
        println!("{scheme}: {rounds} rounds, slowest answer {:?}, {late} over 100 ms", times.iter().max());
        for number in rounds.saturating_sub(STRIPES)..rounds {
            let half = (CHUNK * 2) as usize;
            let found = client.read(number % STRIPES * DATA_COUNT * u64::from(CHUNK), CHUNK * 4);
            assert!(found[..half].iter().all(|&byte| byte == (number as u8 | 1) ^ 0xf0), "round {number}");
            assert!(found[half..].iter().all(|&byte| byte == 0), "round {number}");
        }
        client.leave();
        server.stop();
    }
}
