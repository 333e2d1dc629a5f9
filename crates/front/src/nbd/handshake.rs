//! The haggling before transmission (`doc/proto.md`, "Newstyle negotiation" and "Option types").

use super::connection::{Connection, Encryption, Phase, Step, Violation};
use super::wire::{self, ContextQuery, InfoQuery, handshake_flag, info, option, reply};
use crate::desk::Desk;
use crate::export::Export;
use crate::session::Wants;

impl Connection {
    pub(super) fn step_client_flags(&mut self, input: &[u8]) -> Result<Step, Violation> {
        let Some(flags) = wire::client_flags(input) else { return Ok(Step::Stop(Wants::Bytes)) };
        if flags & !(handshake_flag::FIXED_NEWSTYLE | handshake_flag::NO_ZEROES) != 0 {
            return Err(Violation::ClientFlags { found: flags });
        }
        self.no_zeroes = flags & handshake_flag::NO_ZEROES != 0;
        self.phase = Phase::Options;
        Ok(Step::Used(wire::CLIENT_FLAGS_BYTES))
    }

    pub(super) fn step_option(&mut self, input: &[u8], desk: &Desk) -> Result<Step, Violation> {
        let Some(header) = wire::option_header(input)? else { return Ok(Step::Stop(Wants::Bytes)) };
        if header.length_bytes > wire::OPTION_BYTES_MAX {
            return Err(Violation::OptionTooLong {
                option: header.option,
                length_bytes: header.length_bytes,
            });
        }
        let end = wire::OPTION_HEADER_BYTES + header.length_bytes as usize;
        let Some(data) = input.get(wire::OPTION_HEADER_BYTES..end) else {
            return Ok(Step::Stop(Wants::Bytes));
        };
        self.option_count += 1;
        if self.option_count > wire::OPTION_COUNT_MAX {
            return Err(Violation::TooManyOptions);
        }
        self.haggle(header.option, data, &desk.export)?;
        Ok(Step::Used(end))
    }

    fn haggle(&mut self, option: u32, data: &[u8], export: &Export) -> Result<(), Violation> {
        if self.encryption == Encryption::Required && option != option::ABORT {
            return self.encrypt_first(option, data);
        }
        match option {
            option::EXPORT_NAME => return self.export_name(data, export),
            option::ABORT => {
                self.answer(option, reply::ACK, &[]);
                self.phase = Phase::Finishing;
            }
            option::LIST if data.is_empty() => {
                let name = cut(&export.name).as_bytes();
                let length = u32::try_from(name.len()).expect("names are short").to_be_bytes();
                self.answer(option, reply::SERVER, &[&length, name]);
                self.answer(option, reply::ACK, &[]);
            }
            option::STRUCTURED_REPLY if data.is_empty() => {
                self.structured_replies = true;
                self.answer(option, reply::ACK, &[]);
            }
            option::LIST | option::STRUCTURED_REPLY => self.answer(option, reply::ERR_INVALID, &[]),
            option::INFO | option::GO => self.information(option, data, export),
            option::LIST_META_CONTEXT | option::SET_META_CONTEXT => self.contexts(option, data, export),
            option::STARTTLS if self.encryption == Encryption::Established => {
                self.answer(option, reply::ERR_INVALID, &[b"the connection is encrypted"]);
            }
            option::STARTTLS => {
                self.answer(
                    option,
                    reply::ERR_POLICY,
                    &[b"this server has no TLS; use a unix socket or a tunnel"],
                );
            }
            _ => self.answer(option, reply::ERR_UNSUP, &[]),
        }
        Ok(())
    }

    /// What is said before the connection is encrypted (`doc/proto.md`, "FORCEDTLS mode").
    fn encrypt_first(&mut self, option: u32, data: &[u8]) -> Result<(), Violation> {
        match option {
            option::STARTTLS if data.is_empty() => {
                self.answer(option, reply::ACK, &[]);
                self.phase = Phase::Encrypting;
            }
            option::STARTTLS => self.answer(option, reply::ERR_INVALID, &[]),
            option::EXPORT_NAME => return Err(Violation::NotEncrypted),
            _ => self.answer(option, reply::ERR_TLS_REQD, &[b"the connection must be encrypted first"]),
        }
        Ok(())
    }

    fn answer(&mut self, option: u32, kind: u32, data: &[&[u8]]) {
        self.output.put(|out| wire::put_option_reply(out, option, kind, data));
    }

    fn export_name(&mut self, name: &[u8], export: &Export) -> Result<(), Violation> {
        if !export.is_named(name) {
            return Err(Violation::UnknownExport { length_bytes: name.len() });
        }
        let zeroes = if self.no_zeroes { 0 } else { 124 };
        let flags = transmission_flags(export, self.structured_replies);
        self.output.put(|out| {
            out.extend_from_slice(&export.size_bytes.to_be_bytes());
            out.extend_from_slice(&flags.to_be_bytes());
            out.resize(out.len() + zeroes, 0);
        });
        self.phase = Phase::Header;
        Ok(())
    }

    fn information(&mut self, option: u32, data: &[u8], export: &Export) {
        let Some(query) = InfoQuery::parse(data) else {
            return self.answer(option, reply::ERR_INVALID, &[b"malformed request for information"]);
        };
        if !export.is_named(query.name) {
            return self.answer(option, reply::ERR_UNKNOWN, &[b"no such export"]);
        }
        let flags = transmission_flags(export, self.structured_replies);
        let (size, flags) = (export.size_bytes.to_be_bytes(), flags.to_be_bytes());
        self.answer(option, reply::INFO, &[&info::EXPORT.to_be_bytes(), &size, &flags]);
        // Sent also when not asked for: requests that are not whole sectors are refused, so clients should
        // know.
        let preferred = u32::try_from(export.preferred_bytes).unwrap_or(wire::REQUEST_BYTES_MAX);
        let preferred = preferred.clamp(wire::BLOCK_BYTES_MIN, wire::REQUEST_BYTES_MAX);
        let sizes = [wire::BLOCK_BYTES_MIN, preferred, wire::REQUEST_BYTES_MAX];
        let [min, preferred, max] = sizes.map(u32::to_be_bytes);
        self.answer(option, reply::INFO, &[&info::BLOCK_SIZE.to_be_bytes(), &min, &preferred, &max]);
        for (fact, text) in [(info::NAME, &export.name), (info::DESCRIPTION, &export.description)] {
            if query.asks_for(fact) {
                self.answer(option, reply::INFO, &[&fact.to_be_bytes(), cut(text).as_bytes()]);
            }
        }
        self.answer(option, reply::ACK, &[]);
        if option == option::GO {
            self.phase = Phase::Header;
        }
    }

    fn contexts(&mut self, option: u32, data: &[u8], export: &Export) {
        let set = option == option::SET_META_CONTEXT;
        if set {
            self.block_status = false;
        }
        let Some(query) = ContextQuery::parse(data).filter(|_| self.structured_replies) else {
            return self.answer(option, reply::ERR_INVALID, &[b"malformed, or before structured replies"]);
        };
        if !export.is_named(query.name) {
            return self.answer(option, reply::ERR_UNKNOWN, &[b"no such export"]);
        }
        let named = query.any(|text| text == wire::CONTEXT_NAME || !set && text == b"base:");
        if named || !set && query.count == 0 {
            let id = if set { wire::CONTEXT_ID } else { 0 };
            self.answer(option, reply::META_CONTEXT, &[&id.to_be_bytes(), wire::CONTEXT_NAME]);
            self.block_status |= set;
        }
        self.answer(option, reply::ACK, &[]);
    }
}

/// The transmission flags. Several connections may be opened: a flush on one covers all.
fn transmission_flags(export: &Export, structured_replies: bool) -> u16 {
    use wire::transmission_flag as flag;
    let mut flags = flag::HAS_FLAGS | flag::SEND_FLUSH | flag::SEND_FUA | flag::SEND_TRIM;
    flags |= flag::SEND_WRITE_ZEROES | flag::CAN_MULTI_CONN | flag::SEND_CACHE;
    if export.read_only {
        flags |= flag::READ_ONLY;
    }
    if structured_replies {
        flags |= flag::SEND_DF;
    }
    flags
}

/// As much of a name or description as the protocol takes.
fn cut(text: &str) -> &str {
    let longest = wire::NAME_BYTES_MAX.min(text.len());
    let end = (0..=longest).rev().find(|&i| text.is_char_boundary(i)).unwrap_or(0);
    &text[..end]
}
