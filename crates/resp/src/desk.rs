//! What all clients share: who they are, what was asked of the store for them, how much may be held, and what
//! they asked for so far.

use crate::wire::{Budget, Trust, Version};
use crate::{Limits, Settings};
use block::slab::{Key, Slab};
use front::{Command, Meter};
use std::sync::Arc;

/// Names a connection; never used again while the server runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, Default)]
pub struct ClientId {
    /// Where its owner keeps it.
    pub index: u32,
    /// What clients are told, from 1.
    pub number: u64,
}

/// Who a client is.
#[derive(Clone, Debug)]
pub struct Who {
    /// Its number and place.
    pub id: ClientId,
    /// Where it comes from.
    pub peer: String,
    /// What it calls itself.
    pub name: String,
    /// The library it uses, and the version of that.
    pub library: [String; 2],
    /// What it understands.
    pub version: Version,
    /// Whether it has said who it is.
    pub trust: Trust,
    /// When it came, in milliseconds since 1970.
    pub since_ms: u64,
    /// When it last said something.
    pub heard_ms: u64,
    /// The last command, as its place in the table.
    pub command: Option<usize>,
}

/// What was asked of the store, and for whom.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Asked {
    /// The client; none for what nobody waits for.
    pub client: Option<ClientId>,
    /// The command, counted over the connection's life.
    pub sequence: u64,
    /// Which of its questions.
    pub part: usize,
    /// What the store was given as its name.
    pub tag: u64,
}

/// What one command was used for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Calls {
    /// How often.
    pub count: u64,
    /// How often it ended with an error.
    pub failed: u64,
    /// Time from its arrival to its answer, all together.
    pub waited_ns: u64,
}

/// What clients did so far.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Statistics {
    /// By place in the table of commands.
    pub calls: Vec<Calls>,
    /// Commands that there are not.
    pub unknown: u64,
    /// Connections taken.
    pub connections: u64,
    /// Connections refused or closed for a fault.
    pub faults: u64,
    /// Bytes received.
    pub received_bytes: u64,
    /// Bytes sent.
    pub sent_bytes: u64,
    /// Values that were asked for and there.
    pub hits: u64,
    /// Values that were asked for and not there.
    pub misses: u64,
    /// Commands refused since nothing more could be held for clients.
    pub without_room: u64,
}

impl Statistics {
    /// Commands carried out.
    pub fn commands(&self) -> u64 {
        self.calls.iter().map(|calls| calls.count).sum()
    }

    /// Of those, with an error.
    pub fn errors(&self) -> u64 {
        self.calls.iter().map(|calls| calls.failed).sum::<u64>() + self.unknown
    }
}

/// See the module's documentation.
pub struct Desk {
    /// Bounds.
    pub limits: Limits,
    /// What the server is set to.
    pub settings: Settings,
    /// How much all clients hold.
    pub budget: Budget,
    /// What they did.
    pub statistics: Statistics,
    /// The same as others read it at any time: what reads, writes, and makes durable.
    pub meter: Arc<Meter>,
    /// The time in milliseconds since 1970.
    pub now_ms: u64,
    /// The time since the server's start.
    pub now_ns: u64,
    /// When the server started, in milliseconds since 1970.
    pub started_ms: u64,
    /// When everything acknowledged was last made durable by a command.
    pub saved_ms: u64,
    /// Whether a client has asked the server to stop.
    pub stop_asked: bool,
    /// Whether something was asked of the store since it was driven last.
    pub(crate) started: bool,
    clients: Vec<Option<Who>>,
    client_count: usize,
    numbers: u64,
    asked: Slab<Asked>,
    asked_count: usize,
}

impl Desk {
    /// A desk without clients; the time is `now_ms` milliseconds since 1970.
    pub fn new(limits: Limits, settings: Settings, now_ms: u64) -> Self {
        Self {
            budget: Budget::new(limits.all_bytes_max),
            limits,
            settings,
            statistics: Statistics::default(),
            meter: Arc::default(),
            now_ms,
            now_ns: 0,
            started_ms: now_ms,
            saved_ms: now_ms,
            stop_asked: false,
            started: false,
            clients: Vec::new(),
            client_count: 0,
            numbers: 0,
            asked: Slab::default(),
            asked_count: 0,
        }
    }

    /// A client has come, from `peer`, and sits at place `index`, which is free.
    pub fn welcome(&mut self, index: u32, peer: String) -> ClientId {
        self.numbers += 1;
        let id = ClientId { index, number: self.numbers };
        let at = place(index);
        if self.clients.len() <= at {
            self.clients.resize(at + 1, None);
        }
        debug_assert!(self.clients[at].is_none(), "a place has one client");
        self.clients[at] = Some(Who {
            id,
            peer,
            name: String::new(),
            library: Default::default(),
            version: Version::Two,
            trust: self.first_trust(),
            since_ms: self.now_ms,
            heard_ms: self.now_ms,
            command: None,
        });
        self.client_count += 1;
        self.statistics.connections += 1;
        id
    }

    /// What is thought of a client that has said nothing yet.
    pub(crate) fn first_trust(&self) -> Trust {
        if self.settings.password.is_some() { Trust::Stranger } else { Trust::Known }
    }

    /// A client has left.
    pub(crate) fn farewell(&mut self, id: ClientId) {
        if let Some(seat) = self.clients.get_mut(place(id.index))
            && seat.as_ref().is_some_and(|who| who.id == id)
        {
            *seat = None;
            self.client_count -= 1;
        }
    }

    /// A client that is there.
    pub fn who(&mut self, id: ClientId) -> &mut Who {
        let who = self.clients[place(id.index)].as_mut().expect("a client is there while its session is");
        debug_assert_eq!(who.id, id);
        who
    }

    /// All clients.
    pub fn clients(&self) -> impl Iterator<Item = &Who> {
        self.clients.iter().flatten()
    }

    /// How many there are.
    pub fn client_count(&self) -> usize {
        self.client_count
    }

    /// A tag for a question to the store.
    pub(crate) fn ask(&mut self, asked: Asked) -> u64 {
        self.started = true;
        self.asked_count += 1;
        let named = |key: Key<Asked>| Asked { tag: u64::from(key.index()), ..asked };
        u64::from(self.asked.insert_with(named).index())
    }

    /// What was asked for a client and is not answered.
    pub(crate) fn tags_of(&self, id: ClientId) -> Vec<u64> {
        self.asked.iter().filter(|asked| asked.client == Some(id)).map(|asked| asked.tag).collect()
    }

    /// What the store has answered.
    pub(crate) fn told(&mut self, tag: u64) -> Asked {
        let index = u32::try_from(tag).expect("tags are given by us");
        let key = Key::from_index(index);
        let asked = self.asked[key];
        self.asked.release(key);
        self.asked_count -= 1;
        asked
    }

    /// Questions that the store has not answered.
    pub fn asked_count(&self) -> usize {
        self.asked_count
    }

    /// A command has ended.
    pub(crate) fn count(
        &mut self,
        place: usize,
        kind: Option<Command>,
        bytes: usize,
        failed: bool,
        waited_ns: u64,
    ) {
        let all = &mut self.statistics.calls;
        if all.len() <= place {
            all.resize(place + 1, Calls::default());
        }
        let calls = &mut all[place];
        calls.count += 1;
        calls.failed += u64::from(failed);
        calls.waited_ns = calls.waited_ns.saturating_add(waited_ns);
        let Some(kind) = kind else { return };
        self.meter.count(kind, u64::try_from(bytes).unwrap_or(u64::MAX), failed, waited_ns);
    }
}

fn place(index: u32) -> usize {
    usize::try_from(index).expect("places fit memory")
}
