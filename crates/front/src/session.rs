//! What a server asks of a protocol: one client's session, as a state machine without sockets.
//!
//! The owner feeds received bytes to [`Session::receive`], which takes as much as it can use and says what it
//! [`Wants`] before it can go on; tells it of finished pieces ([`Session::piece_done`]); and sends what is in
//! its output queue, reporting progress by [`Session::sent`].

use crate::VolumeError;
use crate::desk::{Context, Desk};
use crate::output::OutputQueue;
use block::Slot;
use std::error::Error;

/// What a session needs before it can go on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wants {
    /// More bytes from the client.
    Bytes,
    /// Slots; it is in the desk's queue. Call [`Session::receive`] again when it is first.
    Slots,
    /// That one of its requests finishes or some output is sent. Call [`Session::receive`] again then.
    Room,
    /// That others have had their turn. Call [`Session::receive`] again in the next one.
    Turn,
    /// That its output is sent and the connection encrypted, then [`Session::encrypted`].
    Encryption,
    /// Nothing: no more input is looked at.
    Nothing,
}

/// Where the next bytes of a write's payload go: `length_bytes` from byte `start_bytes` of a row of slots.
#[derive(Clone, Copy, Debug)]
pub struct PayloadTarget<'a> {
    /// The slots of the piece.
    pub slots: &'a [Slot],
    /// Where the next byte goes, counted from the start of the first slot.
    pub start_bytes: usize,
    /// How much of the piece is missing.
    pub length_bytes: usize,
}

/// Why a connection was closed.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// What the protocol says of it: a breach by the client, or an error that it has no words for.
    #[error(transparent)]
    Protocol(Box<dyn Error + Send + Sync>),
    /// The handshake took too long.
    #[error("handshake not finished in time")]
    HandshakeTimeout,
    /// The client neither sends nor takes bytes while it holds slots that others wait for.
    #[error("no byte moved in time while others waited for the buffers this client holds")]
    Stalled,
    /// Too many clients.
    #[error("more than {max} connections")]
    TooManyConnections {
        /// How many are allowed.
        max: usize,
    },
    /// Its address is on no list.
    #[error("its address is in none of the networks that may connect")]
    NotAllowed,
    /// There is one already, where one at a time is served.
    #[error("another client is being served at this socket")]
    Occupied,
    /// The socket failed.
    #[error("socket: {0}")]
    Socket(#[from] std::io::Error),
}

impl Fault {
    /// A protocol's reason, in its own words.
    pub fn of_protocol(violation: impl Error + Send + Sync + 'static) -> Self {
        Self::Protocol(Box::new(violation))
    }
}

/// A client's session. It holds slots of the volume's pool, all of which it gives back.
pub trait Session {
    /// Takes bytes from the start of `input`, as many as it can use now; says how many, and what it wants
    /// next. After a fault the session must be [abandoned](Session::abandon).
    fn receive(&mut self, input: &[u8], cx: &mut Context<'_>) -> Result<(usize, Wants), Fault>;

    /// The volume has finished a piece of this session.
    fn piece_done(&mut self, tag: u64, result: Result<(), VolumeError>, cx: &mut Context<'_>);

    /// The connection is encrypted from here on.
    fn encrypted(&mut self);

    /// Whether the client is still haggling.
    fn in_handshake(&self) -> bool;

    /// Whether the session is over and everything is answered and sent.
    fn is_finished(&self) -> bool;

    /// The client will send nothing more: whole requests are answered, half ones are forgotten.
    fn input_ended(&mut self, cx: &mut Context<'_>);

    /// No new requests are to be looked at; those in flight are answered.
    fn stop(&mut self, cx: &mut Context<'_>);

    /// Gives everything back. What is with the volume comes back through [`Desk::orphan_done`].
    fn abandon(&mut self, cx: &mut Context<'_>);

    /// What is to be sent.
    fn output(&self) -> &OutputQueue;

    /// The first `count_bytes` of the output were sent.
    fn sent(&mut self, count_bytes: usize, cx: &mut Context<'_>);

    /// Slots this session fills, waits for, or sends.
    fn slots_held(&self) -> usize;

    /// Where payload can be received directly, if that is what comes next.
    fn payload_target<'d>(&self, desk: &'d Desk) -> Option<PayloadTarget<'d>>;

    /// `count_bytes` of payload were received into the [target](Session::payload_target), at most its
    /// length.
    fn payload_received(&mut self, count_bytes: usize, cx: &mut Context<'_>);
}

/// The parts, slot by slot, of `length` bytes that begin at byte `start` of a row of slots: index, start,
/// length.
pub(crate) fn spans(
    start: usize,
    length: usize,
    chunk_bytes: usize,
) -> impl Iterator<Item = (usize, usize, usize)> {
    let end = start + length;
    (start / chunk_bytes..end.div_ceil(chunk_bytes)).map(move |index| {
        let from = start.max(index * chunk_bytes);
        let to = end.min((index + 1) * chunk_bytes);
        (index, from - index * chunk_bytes, to - from)
    })
}
