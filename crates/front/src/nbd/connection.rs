//! NBD's [`Session`]: bytes in, volume requests and an output queue out.
//!
//! ```text
//!   client flags -> options -> header -> read pieces ---------> header
//!                      |         |  ^--- payload pieces <-+       ^
//!                    abort       |  |        |  ^---------+       |
//!                      v         v  +--------+                    |
//!                  finishing <- disconnect      drain ------------+
//! ```

use super::wire::{self, Errno, WrongMagic};
use crate::desk::{ConnectionId, Context, Desk, Piece, Request};
use crate::output::OutputQueue;
use crate::session::{Fault, PayloadTarget, Session, Wants};
use crate::{Command, VolumeError};
use block::slab::Key;

/// Why this protocol closes a connection: a breach by the client, or an error that no reply can say.
#[derive(Debug, thiserror::Error)]
pub enum Violation {
    /// The client's flags ask for what we did not offer.
    #[error("client flags {found:#x}, expected a subset of 0x3")]
    ClientFlags {
        /// The flags.
        found: u32,
    },
    /// The stream lost its framing, or the peer speaks something else.
    #[error(transparent)]
    Magic(#[from] WrongMagic),
    /// An option's data is too long.
    #[error("option {option} with {length_bytes} bytes of data, expected at most {}", wire::OPTION_BYTES_MAX)]
    OptionTooLong {
        /// The option.
        option: u32,
        /// The length its header announced.
        length_bytes: u32,
    },
    /// The client haggles without end.
    #[error("more than {} options", wire::OPTION_COUNT_MAX)]
    TooManyOptions,
    /// `NBD_OPT_EXPORT_NAME` on a connection that must be encrypted first, to which there is no answer.
    #[error("an export was asked for before the connection was encrypted; the client must use TLS")]
    NotEncrypted,
    /// `NBD_OPT_EXPORT_NAME` has no other way to say no.
    #[error("unknown export name of {length_bytes} bytes")]
    UnknownExport {
        /// Length of the name.
        length_bytes: usize,
    },
    /// Reading failed after the reply's head, which announced success, was sent.
    #[error("read failed at {offset_bytes} after part of the reply was sent")]
    ReadFailedMidway {
        /// Where on the volume.
        offset_bytes: u64,
    },
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Phase {
    /// Waits for the client flags.
    ClientFlags,
    /// Haggles.
    Options,
    /// TLS was asked for, and begins when the answer is sent.
    Encrypting,
    /// Between requests.
    Header,
    /// A read: pieces from `next_bytes` on are to be started, all side by side.
    Read { request: Key<Request>, next_bytes: u64, left_bytes: u32 },
    /// A read whose parts must be sent in order: one piece after the other, with no other request beside it.
    SerialRead { request: Key<Request>, next_bytes: u64, left_bytes: u32 },
    /// A write: slots for the next piece are needed.
    NextPayload { request: Key<Request>, next_bytes: u64, left_bytes: u32 },
    /// A write: the payload of a piece is on its way; `left_bytes` follow after it.
    Payload { request: Key<Request>, piece: Key<Piece>, received_bytes: u32, left_bytes: u32 },
    /// The payload of a write that failed is thrown away.
    Drain { left_bytes: u32, then: AfterDrain },
    /// No more requests; open ones are answered.
    Finishing,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum AfterDrain {
    Reject { cookie: u64, error: Errno },
    Finish { request: Key<Request> },
}

pub(super) enum Step {
    Used(usize),
    Stop(Wants),
}

/// Whether a connection is encrypted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Encryption {
    /// There is none here.
    Unavailable,
    /// Nothing is said before it is.
    Required,
    /// It is.
    Established,
}

/// A client's session.
pub struct Connection {
    pub(super) id: ConnectionId,
    pub(super) phase: Phase,
    pub(super) output: OutputQueue,
    pub(super) encryption: Encryption,
    pub(super) option_count: u32,
    pub(super) no_zeroes: bool,
    pub(super) structured_replies: bool,
    pub(super) block_status: bool,
    pub(super) requests_open: usize,
    pub(super) slots_held: usize,
    /// The turn in which it last looked what lies behind a range: it may once in each.
    pub(super) looked_in: Option<u64>,
    pub(super) stopping: bool,
    pub(super) violation: Option<Violation>,
}

/// Protocol bytes that may wait for a client that does not read its replies.
const OUTPUT_BYTES_MAX: usize = 256 << 10;

impl Connection {
    /// A new session; the greeting is in the output queue.
    pub fn new(id: ConnectionId, encryption: Encryption) -> Self {
        let mut output = OutputQueue::default();
        output.put(wire::put_greeting);
        Self {
            id,
            phase: Phase::ClientFlags,
            output,
            encryption,
            option_count: 0,
            no_zeroes: false,
            structured_replies: false,
            block_status: false,
            requests_open: 0,
            slots_held: 0,
            looked_in: None,
            stopping: false,
            violation: None,
        }
    }

    fn step(&mut self, input: &[u8], cx: &mut Context<'_>) -> Result<Step, Violation> {
        match self.phase {
            Phase::ClientFlags | Phase::Options | Phase::Header
                if self.output.protocol_bytes() > OUTPUT_BYTES_MAX =>
            {
                Ok(Step::Stop(Wants::Room))
            }
            Phase::ClientFlags => self.step_client_flags(input),
            Phase::Options => self.step_option(input, cx.desk),
            Phase::Header => self.step_header(input, cx),
            Phase::Read { request, next_bytes, left_bytes } => {
                Ok(self.step_read(request, (next_bytes, left_bytes), cx))
            }
            Phase::SerialRead { request, next_bytes, left_bytes } => {
                Ok(self.step_serial_read(request, (next_bytes, left_bytes), cx))
            }
            Phase::NextPayload { request, next_bytes, left_bytes } => {
                Ok(self.step_next_payload(request, (next_bytes, left_bytes), cx))
            }
            Phase::Payload { .. } => Ok(self.step_payload(input, cx)),
            Phase::Drain { left_bytes, then } => Ok(self.step_drain(input.len(), left_bytes, then, cx)),
            Phase::Encrypting => Ok(Step::Stop(Wants::Encryption)),
            Phase::Finishing => Ok(Step::Stop(Wants::Nothing)),
        }
    }

    /// Forgets the part of the current request that has not gone to the volume. What has gone there is
    /// answered still, if the request was whole.
    fn drop_unstarted(&mut self, cx: &mut Context<'_>) {
        cx.desk.leave_queue(self.id);
        let request = match self.phase {
            Phase::Payload { request, piece, .. } => {
                cx.desk.drop_piece(cx.volume, piece, &mut self.slots_held);
                request
            }
            Phase::NextPayload { request, .. }
            | Phase::Read { request, .. }
            | Phase::SerialRead { request, .. }
            | Phase::Drain { then: AfterDrain::Finish { request }, .. } => request,
            Phase::Drain { then: AfterDrain::Reject { .. }, .. }
            | Phase::ClientFlags
            | Phase::Options
            | Phase::Encrypting
            | Phase::Header
            | Phase::Finishing => return,
        };
        // Its pieces come back after the request is cut short; the answer would have nobody to read it.
        cx.desk.requests[request].error = Some(VolumeError::Shutdown);
        cx.desk.requests[request].all_started = true;
        if cx.desk.requests[request].pieces_open == 0 {
            cx.desk.close_request(request);
            self.requests_open -= 1;
        }
    }
}

impl Session for Connection {
    fn receive(&mut self, input: &[u8], cx: &mut Context<'_>) -> Result<(usize, Wants), Fault> {
        let mut used = 0;
        loop {
            if let Some(violation) = self.violation.take() {
                return Err(Fault::of_protocol(violation));
            }
            match self.step(&input[used..], cx).map_err(Fault::of_protocol)? {
                Step::Used(count) => used += count,
                Step::Stop(wants) => {
                    if wants != Wants::Slots {
                        // It may have queued for a piece that it no longer needs, as its request failed
                        // meanwhile.
                        cx.desk.leave_queue(self.id);
                    }
                    return Ok((used, wants));
                }
            }
        }
    }

    fn piece_done(&mut self, tag: u64, result: Result<(), VolumeError>, cx: &mut Context<'_>) {
        let piece = cx.desk.arrived(tag, result.err());
        let index = cx.desk.pieces[piece].request;
        let request = cx.desk.requests[index];
        let is_read = request.command == Some(Command::Read);
        if is_read && result.is_ok() && self.send_data(piece, index, cx) {
            cx.desk.close_piece(piece);
        } else {
            cx.desk.drop_piece(cx.volume, piece, &mut self.slots_held);
        }
        match self.phase {
            Phase::SerialRead { request: current, left_bytes, .. } if current == index => {
                if result.is_err() && request.head_sent {
                    self.violation = Some(Violation::ReadFailedMidway { offset_bytes: request.offset_bytes });
                }
                if left_bytes == 0 || result.is_err() {
                    cx.desk.requests[index].all_started = true;
                    self.phase = Phase::Header;
                }
            }
            Phase::SerialRead { .. }
            | Phase::ClientFlags
            | Phase::Options
            | Phase::Encrypting
            | Phase::Header
            | Phase::Read { .. }
            | Phase::NextPayload { .. }
            | Phase::Payload { .. }
            | Phase::Drain { .. }
            | Phase::Finishing => {}
        }
        self.finish_if_complete(index, cx);
    }

    fn encrypted(&mut self) {
        self.encryption = Encryption::Established;
        self.phase = Phase::Options;
    }

    fn in_handshake(&self) -> bool {
        matches!(self.phase, Phase::ClientFlags | Phase::Options | Phase::Encrypting)
    }

    fn is_finished(&self) -> bool {
        self.phase == Phase::Finishing && self.requests_open == 0 && self.output.is_empty()
    }

    fn input_ended(&mut self, cx: &mut Context<'_>) {
        self.drop_unstarted(cx);
        self.phase = Phase::Finishing;
    }

    fn stop(&mut self, cx: &mut Context<'_>) {
        self.stopping = true;
        match self.phase {
            Phase::Read { .. } | Phase::SerialRead { .. } | Phase::Finishing => {}
            Phase::ClientFlags
            | Phase::Options
            | Phase::Encrypting
            | Phase::Header
            | Phase::NextPayload { .. }
            | Phase::Payload { .. }
            | Phase::Drain { .. } => self.input_ended(cx),
        }
    }

    fn abandon(&mut self, cx: &mut Context<'_>) {
        self.drop_unstarted(cx);
        self.phase = Phase::Finishing;
        let Context { volume, desk } = cx;
        self.output.clear(|slot| desk.free_slot(*volume, slot));
    }

    fn output(&self) -> &OutputQueue {
        &self.output
    }

    fn sent(&mut self, count_bytes: usize, cx: &mut Context<'_>) {
        let Context { volume, desk } = cx;
        let held = &mut self.slots_held;
        self.output.sent(count_bytes, |slot| {
            desk.free_slot(*volume, slot);
            *held -= 1;
        });
    }

    fn slots_held(&self) -> usize {
        self.slots_held
    }

    fn payload_target<'d>(&self, desk: &'d Desk) -> Option<PayloadTarget<'d>> {
        let Phase::Payload { piece, received_bytes, .. } = self.phase else { return None };
        let piece = &desk.pieces[piece];
        Some(PayloadTarget {
            slots: &piece.slots,
            start_bytes: desk.within_chunk(piece.offset_bytes) + received_bytes as usize,
            length_bytes: (piece.length_bytes - received_bytes) as usize,
        })
    }

    fn payload_received(&mut self, count_bytes: usize, cx: &mut Context<'_>) {
        let count = u32::try_from(count_bytes).expect("a piece is shorter than 4 GiB");
        self.advance_payload(count, cx);
    }
}

/// The error a client sees.
pub(super) fn errno_of(error: VolumeError) -> Errno {
    match error {
        VolumeError::Io => Errno::Io,
        VolumeError::NoSpace => Errno::NoSpc,
        VolumeError::ReadOnly => Errno::Perm,
        VolumeError::Shutdown => Errno::Shutdown,
    }
}
