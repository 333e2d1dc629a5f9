//! What a command is: its row in the table, and what it works with.

use super::{Call, Plan, SYNTAX, Said};
use crate::desk::{ClientId, Desk, Who};
use crate::wire::{Arguments, Reply};
use kv::ask::Keys as Store;

/// What is said of a command to clients that ask.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Flag {
    /// It changes keys.
    Write,
    /// It reads keys.
    Readonly,
    /// It may need more room.
    Denyoom,
    /// It takes a short time, whatever there is.
    Fast,
    /// It is for administrators.
    Admin,
    /// Who has not given a password may use it.
    NoAuth,
}

impl Flag {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Write => "write",
            Self::Readonly => "readonly",
            Self::Denyoom => "denyoom",
            Self::Fast => "fast",
            Self::Admin => "admin",
            Self::NoAuth => "no_auth",
        }
    }
}

/// Which arguments are keys: the first, the last (negative: counted from the end), and how far apart they
/// are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Keys(pub i64, pub i64, pub i64);

/// In what order a command takes effect with others of its connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// The store keeps it for each key.
    ByKey,
    /// All before it have ended, and all behind it wait: it concerns all keys.
    Alone,
}

/// What a command does.
#[derive(Clone, Copy, Debug)]
pub enum Run {
    /// It asks the store.
    Store(fn(&mut Call<'_, '_>) -> Result<Plan, Said>, Order),
    /// It is about the connection or the server, and answered at once.
    Here(fn(&mut Here<'_, '_>) -> Result<(), Said>),
}

/// A command.
#[derive(Debug)]
pub struct Spec {
    /// Its name, in small letters.
    pub name: &'static str,
    /// Arguments it takes, its name among them; negative: at least so many.
    pub arity: i64,
    /// What is said of it.
    pub flags: &'static [Flag],
    /// Which arguments are keys.
    pub keys: Keys,
    /// The group it is in.
    pub group: &'static str,
    /// The version of Redis that brought it.
    pub since: &'static str,
    /// What it does, for people.
    pub summary: &'static str,
    /// What it does.
    pub run: Run,
}

impl Spec {
    /// Whether it takes so many arguments, its name among them.
    pub fn takes(&self, count: usize) -> bool {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        if self.arity >= 0 { count == self.arity } else { count >= -self.arity }
    }

    /// Whether it is said of it.
    pub fn has(&self, flag: Flag) -> bool {
        self.flags.contains(&flag)
    }
}

/// A command got another number of arguments than it takes.
pub(super) fn arity(spec: &Spec) -> Said {
    Said::of(format!("ERR wrong number of arguments for '{}' command", spec.name))
}

/// The command of this name, in whatever letters, in a table that is in order.
pub fn find_in(table: &'static [Spec], name: &[u8]) -> Option<&'static Spec> {
    place_in(table, name).map(|place| &table[place])
}

/// Where in a table that is in order the command of this name is, in whatever letters.
pub fn place_in(table: &'static [Spec], name: &[u8]) -> Option<usize> {
    let mut small = [0_u8; 16];
    let small = small.get_mut(..name.len())?;
    small.copy_from_slice(name);
    small.make_ascii_lowercase();
    table.binary_search_by(|spec| spec.name.as_bytes().cmp(small)).ok()
}

/// A command that is answered at once.
pub struct Here<'a, 'i> {
    /// Its arguments, name first.
    pub arguments: Arguments<'i>,
    /// What it is.
    pub spec: &'a Spec,
    /// All commands that there are.
    pub table: &'static [Spec],
    /// Whose.
    pub client: ClientId,
    /// What all share.
    pub desk: &'a mut Desk,
    /// The store, for what it says of itself.
    pub keys: &'a dyn Store,
    /// Where the answer goes.
    pub out: &'a mut Vec<u8>,
    /// Whether the connection ends with the answer.
    pub ends: bool,
}

impl<'i> Here<'_, 'i> {
    /// How many arguments, name included.
    pub fn count(&self) -> usize {
        self.arguments.count()
    }

    /// One of them.
    pub fn word(&self, index: usize) -> Result<&'i [u8], Said> {
        self.arguments.get(index).ok_or(SYNTAX)
    }

    /// The name of an option or part of a command, in small letters.
    pub fn option(&self, index: usize) -> Result<String, Said> {
        let word = self.word(index)?;
        let word = word.get(..word.len().min(32)).unwrap_or(word);
        Ok(word.escape_ascii().to_string().to_ascii_lowercase())
    }

    /// Who asks.
    pub fn who(&mut self) -> &mut Who {
        self.desk.who(self.client)
    }

    /// The answer, in what the client understands.
    pub fn reply(&mut self) -> Reply<'_> {
        let version = self.who().version;
        Reply::new(self.out, version)
    }

    /// Says that it is done.
    pub fn ok(&mut self) -> Result<(), Said> {
        self.reply().simple("OK");
        Ok(())
    }

    /// A part of a command that there is not, or with other arguments.
    pub fn no_such_part(&self, part: &str) -> Said {
        let name = self.spec.name.to_uppercase();
        Said::of(format!(
            "ERR unknown subcommand or wrong number of arguments for '{part}'. What {name} can do is in COMMAND DOCS"
        ))
    }
}
