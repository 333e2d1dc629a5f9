//! Whether a client goes on with the command that it has begun to send.

/// So much of a command, or what is left of it, must come in the time that there is for it: one byte now and
/// then would hold what has come for ever.
pub const PROGRESS_BYTES: usize = 1 << 20;

/// See the module's documentation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Progress {
    /// Which command, counted over the connection's life.
    command: u64,
    /// What came since `since_ns`.
    bytes: usize,
    since_ns: u64,
}

impl Progress {
    /// Of a client that has just come.
    pub(super) fn new(now_ns: u64) -> Self {
        Self { command: 0, bytes: 0, since_ns: now_ns }
    }

    /// So much came, and `command` is the one that has not come as a whole.
    pub(super) fn came(&mut self, bytes: usize, command: u64, now_ns: u64) {
        self.bytes += bytes;
        if self.command != command || self.bytes >= PROGRESS_BYTES {
            *self = Self { command, bytes: 0, since_ns: now_ns };
        }
    }

    /// It is not the client who has to go on.
    pub(super) fn waits(&mut self, now_ns: u64) {
        (self.bytes, self.since_ns) = (0, now_ns);
    }

    /// For how long it has not come on.
    pub(super) fn still_ns(&self, now_ns: u64) -> u64 {
        now_ns.saturating_sub(self.since_ns)
    }
}
