//! Messages that the client did not ask for: the configuration has changed, as the volume has grown.
//!
//! The library takes the descriptor that they go to, and has no word for this one (`vhost` 0.18), so both
//! are done here (vhost-user specification, "Backend communication").

use super::wire::narrow;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendFlags, recvmsg, send};
use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};

/// The client says where such messages go.
const SET_BACKEND_REQ_FD: u32 = 21;
/// The configuration is to be read again.
const CONFIG_CHANGE_MSG: u32 = 2;
/// Flags of a message: the version of the protocol, that it is an answer, and that one is wanted.
const VERSION: u32 = 1;
const IS_ANSWER: u32 = 1 << 2;
const WANTS_ANSWER: u32 = 1 << 3;
/// Bytes of the head of a message: what, flags, length of the rest.
pub const HEAD_BYTES: usize = 12;

fn word(head: &[u8; HEAD_BYTES], at: usize) -> u32 {
    let bytes = [head[at], head[at + 1], head[at + 2], head[at + 3]];
    u32::from_le_bytes(bytes)
}

/// Bytes behind the head of a message.
pub fn rest_bytes(head: &[u8; HEAD_BYTES]) -> u64 {
    u64::from(word(head, 8))
}

/// Where the client hears of changes, if it has said so.
#[derive(Default)]
pub struct Channel {
    socket: Option<OwnedFd>,
}

impl Channel {
    /// Whether a message says where changes are told.
    pub fn is_told(head: &[u8; HEAD_BYTES]) -> bool {
        word(head, 0) == SET_BACKEND_REQ_FD
    }

    /// Takes that message, which is there as a whole, and answers if that is wanted: the library offers
    /// `REPLY_ACK`, and QEMU waits for the answer to this one before it goes on.
    pub fn take(&mut self, from: impl AsFd, head: &[u8; HEAD_BYTES]) -> io::Result<()> {
        let mut bytes = vec![0; HEAD_BYTES + narrow(word(head, 8))];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
        let taken = recvmsg(&from, &mut [IoSliceMut::new(&mut bytes)], &mut control, flags)?;
        self.socket = control.drain().find_map(|message| {
            if let RecvAncillaryMessage::ScmRights(mut descriptors) = message {
                descriptors.next()
            } else {
                None
            }
        });
        if taken.bytes != bytes.len() || self.socket.is_none() {
            return Err(io::Error::other("it says where changes are told, without a descriptor"));
        }
        if word(head, 4) & WANTS_ANSWER != 0
            && !send_words(&from, &[word(head, 0), VERSION | IS_ANSWER, 8, 0, 0])
        {
            return Err(io::Error::other("it wants an answer and does not take it"));
        }
        Ok(())
    }

    /// Tells the client that the configuration has changed. One who does not listen finds out by himself.
    pub fn tell_change(&mut self) {
        let Some(socket) = &self.socket else { return };
        if !send_words(socket, &[CONFIG_CHANGE_MSG, VERSION, 0]) {
            self.socket = None;
        }
    }
}

/// Whether all of a message went out at once.
fn send_words(to: impl AsFd, words: &[u32]) -> bool {
    let message: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    send(to, &message, SendFlags::DONTWAIT | SendFlags::NOSIGNAL) == Ok(message.len())
}
