//! Bounds on what clients can make the server hold. Each has its reason.

/// The bounds. The defaults suit a host with some hundred clients.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Open connections; further ones are told so and closed. Redis has 10,000.
    pub clients_max: usize,
    /// Arguments of a command, as Redis has it.
    pub arguments_max: usize,
    /// Length of an argument, and so of a value, as Redis has it.
    pub bulk_bytes_max: usize,
    /// Length of a command that is a line of words, as Redis has it.
    pub line_bytes_max: usize,
    /// Arguments of a client that has not said who it is, as Redis has it.
    pub strangers_arguments_max: usize,
    /// Length of an argument of such a one, as Redis has it.
    pub strangers_bulk_bytes_max: usize,
    /// What one client may have sent that is not carried out. Redis has the same.
    pub client_bytes_max: usize,
    /// The same, with answers that were not taken, of all clients together.
    pub all_bytes_max: usize,
    /// Commands of one client that are being carried out; more stay in its socket. `redis-benchmark` and
    /// client libraries pipeline up to a few hundred.
    pub commands_in_flight_max: usize,
    /// Questions to the store of one client that wait for their answers: a command with many keys asks for
    /// one after the other.
    pub asks_in_flight_max: usize,
    /// While a client has not taken so much of its answers, nothing new is begun for it.
    pub output_pause_bytes: usize,
    /// A client that has so much to take is closed: it asked for more than it reads. More than one answer
    /// of the largest size.
    pub output_bytes_max: usize,
    /// How long a client may have answers waiting without taking a byte of them.
    pub stall_timeout_ns: u64,
    /// How long a client may take for [`PROGRESS_BYTES`](crate::PROGRESS_BYTES) of a command that it has
    /// begun, or for what is left of it: what has come of it takes room from others. `None`: for ever.
    pub command_timeout_ns: Option<u64>,
    /// A client that has said nothing for so long is closed; `None`: it may stay.
    pub idle_timeout_ns: Option<u64>,
    /// How long commands in flight and unsent answers are waited for after a stop.
    pub stop_timeout_ns: u64,
    /// Names that KEYS gathers for one answer, in bytes; more are asked for by SCAN.
    pub keys_answer_bytes_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        const SECOND_NS: u64 = 1_000_000_000;
        const MIB: usize = 1 << 20;
        Self {
            clients_max: 1000,
            arguments_max: 1 << 20,
            bulk_bytes_max: 512 * MIB,
            line_bytes_max: 64 << 10,
            strangers_arguments_max: 10,
            strangers_bulk_bytes_max: 16 << 10,
            client_bytes_max: 1024 * MIB,
            all_bytes_max: 4096 * MIB,
            commands_in_flight_max: 1024,
            asks_in_flight_max: 256,
            output_pause_bytes: MIB,
            output_bytes_max: 1024 * MIB,
            stall_timeout_ns: 60 * SECOND_NS,
            command_timeout_ns: Some(60 * SECOND_NS),
            idle_timeout_ns: None,
            stop_timeout_ns: 10 * SECOND_NS,
            keys_answer_bytes_max: 64 * MIB,
        }
    }
}
