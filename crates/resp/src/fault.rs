//! Why connections end that should not.

use crate::wire::Violation;

/// Why a connection was closed.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// The client broke the protocol.
    #[error("{0}")]
    Protocol(#[from] Violation),
    /// It speaks HTTP: somebody tries to have a browser send commands.
    #[error("it speaks HTTP")]
    Http,
    /// It asks for more than it reads.
    #[error("it has not taken {waiting_bytes} bytes of answers, at most {max_bytes} may wait")]
    NotTaken {
        /// How much waits.
        waiting_bytes: usize,
        /// How much may.
        max_bytes: usize,
    },
    /// All clients together hold too much, and this one much of it.
    #[error("{waiting_bytes} bytes of its answers wait, and there is no more room for all clients")]
    NoRoom {
        /// How much waits for this one.
        waiting_bytes: usize,
    },
    /// It takes no answers.
    #[error("it took none of its answers for {seconds} seconds")]
    Stalled {
        /// For how long.
        seconds: u64,
    },
    /// It does not go on with a command that it has begun.
    #[error("a command that it has begun came on by less than 1 MiB in {seconds} seconds")]
    HalfSaid {
        /// In which time.
        seconds: u64,
    },
    /// It said nothing for too long.
    #[error("it said nothing for {seconds} seconds")]
    Idle {
        /// For how long.
        seconds: u64,
    },
    /// Too many clients.
    #[error("more than {max} clients")]
    TooManyClients {
        /// How many there may be.
        max: usize,
    },
    /// Its address is on no list.
    #[error("its address is in none of the networks that may connect")]
    NotAllowed,
    /// The socket failed.
    #[error("socket: {0}")]
    Socket(#[from] std::io::Error),
    /// The encryption failed.
    #[error("{0}")]
    Tls(#[source] front::Fault),
}
