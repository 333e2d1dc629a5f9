//! The commands: a table of what each is, and what each asks of the store.
//!
//! A command is carried out in one of two ways. One about the connection or the server is answered at once
//! ([`Run::Here`]). One about keys becomes a [`Plan`]: data that says what is asked of the store and how
//! the answers become one; it does nothing itself.

mod connection;
mod expiry;
mod info;
mod keys;
mod others;
mod plan;
mod server;
mod spec;
mod strings;
mod table;

pub(crate) use others::{is_known_to_redis, why_not};
pub use plan::{Gather, Outcome, Plan, Shape, Steps, Turn};
pub(crate) use server::bound;
pub use spec::{Flag, Here, Keys, Order, Run, Spec};
pub use table::{COMMANDS, find};

use crate::wire::{Arguments, number};
use kv::ask::Value;
use std::borrow::Cow;

/// What a client is told when a command is not carried out: a word for machines, then words for people.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Said(pub Cow<'static, str>);

impl Said {
    /// In our words.
    pub fn of(text: impl Into<String>) -> Self {
        Self(Cow::Owned(text.into()))
    }
}

/// The version of Redis whose commands these are; clients decide by it what they use.
pub const REDIS_VERSION: &str = "7.0.0";
/// The options make no sense together.
pub const SYNTAX: Said = Said(Cow::Borrowed("ERR syntax error"));
/// A number that is none.
pub const NOT_AN_INTEGER: Said = Said(Cow::Borrowed("ERR value is not an integer or out of range"));

/// A command with its arguments, on its way to become a plan.
#[derive(Debug)]
pub struct Call<'a, 'i> {
    /// Its arguments, name first.
    pub arguments: Arguments<'i>,
    /// What it is.
    pub spec: &'a Spec,
    /// The time, in milliseconds since 1970.
    pub now_ms: u64,
}

impl<'i> Call<'_, 'i> {
    /// How many arguments, name included.
    pub fn count(&self) -> usize {
        self.arguments.count()
    }

    /// A key, which has 1 to 255 bytes.
    pub fn key(&self, index: usize) -> Result<Box<[u8]>, Said> {
        match self.arguments.get(index) {
            Some(key) if (1..=kv::ask::KEY_BYTES_MAX).contains(&key.len()) => Ok(Box::from(key)),
            Some(_) | None => Err(Said::of(format!(
                "ERR found a key of {} bytes, expected 1 to {}",
                self.arguments.length(index),
                kv::ask::KEY_BYTES_MAX
            ))),
        }
    }

    /// The keys from `first` on, every `step`th.
    pub fn keys(&self, first: usize, step: usize) -> Result<Vec<Box<[u8]>>, Said> {
        (first..self.count()).step_by(step).map(|index| self.key(index)).collect()
    }

    /// A value, which is taken out of the command.
    pub fn value(&mut self, index: usize) -> Value {
        Value::from_parts(self.arguments.take(index))
    }

    /// A short argument: a number, an option, a pattern.
    pub fn word(&self, index: usize) -> Result<&'i [u8], Said> {
        self.arguments.get(index).ok_or(SYNTAX)
    }

    /// An option's name in small letters; what is longer than all options is none.
    pub fn option(&self, index: usize) -> Result<Vec<u8>, Said> {
        self.word(index).map(|word| word.get(..word.len().min(32)).unwrap_or(word).to_ascii_lowercase())
    }

    /// A whole number.
    pub fn number(&self, index: usize) -> Result<i64, Said> {
        number(self.word(index)?).ok_or(NOT_AN_INTEGER)
    }
}
