//! Bounds on what clients can make the server hold. Each has its reason.

/// The bounds. The defaults suit one host with a few dozen clients.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Open connections; further ones are accepted and closed at once. nbdcopy and qemu open up to 16 each.
    pub connections_max: usize,
    /// Requests of one connection that are being carried out; more stay in its socket. Clients use up to
    /// 128 or so.
    pub requests_in_flight_max: usize,
    /// Time from connecting to the transmission phase.
    pub handshake_timeout_ns: u64,
    /// How long a connection may hold slots without moving a byte while another one waits for slots.
    pub stall_timeout_ns: u64,
    /// How long requests in flight and unsent replies are waited for after a stop.
    pub stop_timeout_ns: u64,
    /// Share of the pool's slots that the front end takes at most; the rest is the engine's.
    pub pool_share_percent: usize,
    /// Largest part of a request handed to the volume at once; more is cut into pieces. Large enough for
    /// full stripes.
    pub piece_bytes_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        const SECOND_NS: u64 = 1_000_000_000;
        Self {
            connections_max: 128,
            requests_in_flight_max: 1024,
            handshake_timeout_ns: 10 * SECOND_NS,
            stall_timeout_ns: 30 * SECOND_NS,
            stop_timeout_ns: 10 * SECOND_NS,
            pool_share_percent: 50,
            piece_bytes_max: 1 << 20,
        }
    }
}

impl Limits {
    /// Slots that all connections together may hold, of a pool of `slot_count`.
    pub(crate) fn slot_budget(&self, slot_count: usize) -> usize {
        (slot_count * self.pool_share_percent.min(100) / 100).max(1)
    }

    /// Slots of one piece: a quarter of the budget at most, so that several connections find room side by
    /// side.
    pub(crate) fn piece_slots_max(&self, budget: usize, chunk_bytes: usize) -> usize {
        (self.piece_bytes_max / chunk_bytes.max(1)).min(budget / 4).max(1)
    }
}
