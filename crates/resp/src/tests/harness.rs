//! Sessions before a store in memory, without sockets.

use crate::memory::MemoryKeys;
use crate::{ClientId, Context, Desk, Fault, Limits, Session, Settings, Wants};
use kv::ask::{Answer, Ask, Figures, Keys, Refused, Told};
use std::collections::{BTreeMap, VecDeque};
use std::io::IoSlice;

/// A store that answers in an order of its own: of what is asked for one key the first first, of others
/// anyhow.
pub struct Unordered {
    pub inner: MemoryKeys,
    waiting: VecDeque<Told>,
    /// How many answers are given in one turn; 0: all, in order.
    pub per_turn: usize,
    dice: u64,
    /// What nobody wanted to know any more.
    pub forgotten: Vec<u64>,
    /// What was asked, by kind of question.
    pub asked: BTreeMap<&'static str, usize>,
}

impl Unordered {
    pub fn new(per_turn: usize, seed: u64) -> Self {
        let inner = MemoryKeys::default();
        let (waiting, forgotten) = (VecDeque::new(), Vec::new());
        Self { inner, waiting, per_turn, dice: seed | 1, forgotten, asked: BTreeMap::new() }
    }

    fn throw(&mut self, sides: usize) -> usize {
        self.dice ^= self.dice << 13;
        self.dice ^= self.dice >> 7;
        self.dice ^= self.dice << 17;
        usize::try_from(self.dice % u64::try_from(sides).unwrap()).unwrap()
    }
}

impl Keys for Unordered {
    fn start(&mut self, tag: u64, ask: Ask) {
        let kind = match &ask {
            Ask::Set { .. } => "set",
            Ask::Get { .. } => "get",
            Ask::Describe { .. } => "describe",
            Ask::Delete { .. } => "delete",
            Ask::Add { .. } => "add",
            Ask::Append { .. } => "append",
            Ask::LiveIf { .. } => "live if",
            Ask::Live { .. } => "live",
            Ask::Scan { .. } => "scan",
            Ask::Count => "count",
            Ask::Clear => "clear",
            Ask::Flush => "flush",
        };
        *self.asked.entry(kind).or_default() += 1;
        self.inner.start(tag, ask);
    }

    fn forget(&mut self, tags: &[u64]) {
        self.forgotten.extend(tags);
    }

    fn drive(&mut self, now_ms: u64, told: &mut Vec<Told>) {
        let mut fresh = Vec::new();
        self.inner.drive(now_ms, &mut fresh);
        if self.per_turn == 0 {
            told.append(&mut fresh);
            return;
        }
        // It happens when it is asked, in order; that it is told in another order is nobody's business.
        self.waiting.extend(fresh);
        for _ in 0..self.per_turn.min(self.waiting.len()) {
            let at = self.throw(self.waiting.len());
            told.push(self.waiting.remove(at).unwrap());
        }
    }

    fn figures(&self) -> Figures {
        let under_way = u64::try_from(self.waiting.len()).unwrap();
        Figures { under_way_count: under_way, ..self.inner.figures() }
    }
}

pub struct World {
    pub desk: Desk,
    pub keys: Unordered,
    pub clients: Vec<Client>,
}

pub struct Client {
    pub id: ClientId,
    pub session: Session,
    pub input: Vec<u8>,
    pub said: Vec<u8>,
    pub wants: Wants,
    pub fault: Option<Fault>,
    /// Whether it takes what is sent to it.
    pub reads: bool,
}

impl World {
    pub fn new(limits: Limits, settings: Settings, keys: Unordered, clients: u32) -> Self {
        let mut desk = Desk::new(limits, settings, 1_700_000_000_000);
        let clients = (0..clients).map(|index| {
            let id = desk.welcome(index, format!("test:{index}"));
            let (input, said) = (Vec::new(), Vec::new());
            Client {
                id,
                session: Session::new(id),
                input,
                said,
                wants: Wants::Bytes,
                fault: None,
                reads: true,
            }
        });
        let clients = clients.collect();
        Self { desk, keys, clients }
    }

    pub fn plain() -> Self {
        Self::new(Limits::default(), Settings::default(), Unordered::new(0, 1), 1)
    }

    /// A client sends something.
    pub fn send(&mut self, client: usize, bytes: &[u8]) {
        self.clients[client].input.extend_from_slice(bytes);
        self.feed(client);
    }

    fn feed(&mut self, client: usize) {
        let Self { desk, keys, clients } = self;
        let client = &mut clients[client];
        if client.fault.is_some() {
            return;
        }
        let cx = &mut Context { desk, keys };
        match client.session.receive(&client.input, cx) {
            Ok((used, wants)) => {
                client.input.drain(..used);
                client.wants = wants;
            }
            Err(fault) => {
                client.session.abandon(cx);
                client.fault = Some(fault);
            }
        }
    }

    fn take_output(&mut self, client: usize) {
        let Self { desk, keys, clients } = self;
        let client = &mut clients[client];
        while client.reads && client.fault.is_none() && !client.session.output().is_empty() {
            let mut slices = [IoSlice::new(&[]); 5];
            let count = client.session.output().gather(&mut slices);
            let before = client.said.len();
            slices[..count].iter().for_each(|slice| client.said.extend_from_slice(slice));
            let sent = client.said.len() - before;
            client.session.sent(sent, &mut Context { desk, keys });
        }
    }

    /// One turn of a server.
    pub fn turn(&mut self) {
        let mut told = Vec::new();
        self.keys.drive(self.desk.now_ms, &mut told);
        for Told { tag, answer } in told {
            self.deliver(tag, answer);
        }
        for index in 0..self.clients.len() {
            self.take_output(index);
            if self.clients[index].wants == Wants::Room {
                self.feed(index);
                self.take_output(index);
            }
        }
    }

    fn deliver(&mut self, tag: u64, answer: Result<Answer, Refused>) {
        let asked = self.desk.told(tag);
        let Self { desk, keys, clients } = self;
        let Some(id) = asked.client else { return };
        let found = clients.iter_mut().find(|client| client.id == id && client.fault.is_none());
        let Some(client) = found else { return };
        let cx = &mut Context { desk, keys };
        if let Err(fault) = client.session.told(asked, answer, cx) {
            client.session.abandon(cx);
            client.fault = Some(fault);
        }
    }

    /// Turns until nothing is under way; what each client was told since.
    pub fn settle(&mut self) {
        for _ in 0..1_000_000 {
            self.turn();
            let fed =
                |client: &Client| client.wants != Wants::Room || client.fault.is_some() || !client.reads;
            if self.desk.asked_count() == 0 && self.clients.iter().all(fed) {
                for index in 0..self.clients.len() {
                    self.take_output(index);
                }
                return;
            }
        }
        panic!("something is under way for ever: {} questions", self.desk.asked_count());
    }

    /// What a line of words is answered with, ends of lines as `|`.
    pub fn says(&mut self, line: &str) -> String {
        self.clients[0].said.clear();
        self.send(0, format!("{line}\r\n").as_bytes());
        self.settle();
        let text = String::from_utf8_lossy(&self.clients[0].said).replace("\r\n", "|");
        text.trim_end_matches('|').to_owned()
    }
}

/// A command as clients send it.
pub fn bulk(arguments: &[&[u8]]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", arguments.len()).into_bytes();
    for argument in arguments {
        bytes.extend_from_slice(format!("${}\r\n", argument.len()).as_bytes());
        bytes.extend_from_slice(argument);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}
