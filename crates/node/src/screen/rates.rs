//! What clients did since the last look.

use crate::status::{Kind, Requests, Status};
use crate::units::{show_count, show_rate};
use std::collections::HashMap;
use std::time::Instant;

/// What was seen of each array at the last look.
#[derive(Default)]
pub struct Rates(HashMap<String, (Instant, Requests)>);

impl Rates {
    /// `clients: 1,200 reads/s (4.69 MiB/s, 99 % within 64 us), ...`; `None` at the first look, and of an
    /// array that is not served.
    pub fn line(&mut self, status: &Status) -> Option<String> {
        let requests = status.clientele.requests.as_ref()?;
        let now = Instant::now();
        let (then, before) = self.0.insert(status.uuid.clone(), (now, requests.clone()))?;
        let ns = now.duration_since(then).as_nanos().max(1);
        let kinds = [
            ("reads", requests.read.since(&before.read)),
            ("writes", requests.write.since(&before.write)),
            ("flushes", requests.flush.since(&before.flush)),
            ("discards", requests.discard.since(&before.discard)),
        ];
        let parts: Vec<String> = kinds.iter().filter_map(|(name, kind)| describe(name, kind, ns)).collect();
        let parts = if parts.is_empty() { "nothing".to_owned() } else { parts.join(", ") };
        Some(format!("\n   clients: {parts}\n"))
    }
}

fn describe(name: &str, kind: &Kind, ns: u128) -> Option<String> {
    let per_s = |count: u64| u64::try_from(u128::from(count) * 1_000_000_000 / ns).unwrap_or(u64::MAX);
    if kind.requests == 0 {
        return None;
    }
    let bytes = if kind.bytes > 0 { format!("{}, ", show_rate(per_s(kind.bytes))) } else { String::new() };
    let wait = match kind.p99_us {
        Some(us) => format!("99 % within {} us", show_count(us)),
        None => "1 % took longer than 8 s".to_owned(),
    };
    let errors =
        if kind.errors > 0 { format!(", {} FAILED", show_count(kind.errors)) } else { String::new() };
    Some(format!("{} {name}/s ({bytes}{wait}{errors})", show_count(per_s(kind.requests))))
}
