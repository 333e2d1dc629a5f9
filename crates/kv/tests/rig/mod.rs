//! A store on a volume in memory, driven by hand.
#![allow(clippy::unwrap_used, reason = "tests may panic")]
#![allow(dead_code, reason = "other tests use the rest")]

use kv::ask::{Answer, Ask, Keys, Lifetime, Old, Range, Refused, Told, Value, When};
use kv::blocks::{Ended, Fault, Issued, Medium, Request};
use kv::{Create, Options, Secret, Store, VolumeShape, create, open};

/// A volume in memory that can be told to fail.
pub struct Memory {
    pub bytes: Vec<u8>,
    pub writes_fail: bool,
    pub reads_fail: bool,
    /// Reads that touch this byte fail.
    pub unreadable: Option<usize>,
    /// Reads that are done before one fails, once.
    pub reads_before_fault: Option<u64>,
    /// Reads so far.
    pub read_count: u64,
}

impl Memory {
    pub fn new(size_bytes: usize) -> Self {
        Self {
            bytes: vec![0; size_bytes],
            writes_fail: false,
            reads_fail: false,
            unreadable: None,
            reads_before_fault: None,
            read_count: 0,
        }
    }

    fn read_fails(&mut self, at: usize, length: usize) -> bool {
        self.read_count += 1;
        let is_its_turn = self.reads_before_fault == Some(0);
        self.reads_before_fault = self.reads_before_fault.and_then(|left| left.checked_sub(1));
        self.reads_fail || is_its_turn || self.unreadable.is_some_and(|bad| (at..at + length).contains(&bad))
    }
}

pub fn narrow(size: u64) -> usize {
    usize::try_from(size).unwrap()
}

impl Memory {
    pub fn end(&mut self, issued: Issued) -> Ended {
        let (mut back, mut result) = (None, Ok(()));
        match issued.request {
            Request::Read { offset_bytes, mut buffer } => {
                let at = narrow(offset_bytes);
                let length = buffer.len();
                if self.read_fails(at, length) {
                    result = Err(Fault::Io);
                } else {
                    buffer.copy_from_slice(&self.bytes[at..at + length]);
                }
                back = Some(buffer);
            }
            Request::Write { .. } if self.writes_fail => result = Err(Fault::Io),
            Request::Write { offset_bytes, buffer, .. } => {
                let at = narrow(offset_bytes);
                self.bytes[at..at + buffer.len()].copy_from_slice(&buffer);
            }
            Request::Flush | Request::Discard { .. } => {}
        }
        Ended { tag: issued.tag, buffer: back, result }
    }
}

impl Medium for Memory {
    fn carry(&mut self, requests: Vec<Issued>) -> Vec<Ended> {
        requests.into_iter().map(|issued| self.end(issued)).collect()
    }
}

pub struct Rig {
    pub memory: Memory,
    pub store: Store,
    pub options: Options,
    pub now_ms: u64,
    /// Time that passes while requests are carried out.
    pub passes_ms: u64,
}

impl Rig {
    pub fn new(volume: usize, segment_bytes: u64) -> Self {
        let mut memory = Memory::new(volume);
        let volume_bytes = u64::try_from(volume).unwrap();
        let shape = VolumeShape { volume_bytes, segment_bytes: Some(segment_bytes) };
        create(&mut memory, &Create { shape, uuid: [7; 16], secret: Secret([1, 2]) }).unwrap();
        let options = Options { cache_keys: 100, ..Options::default() };
        let store = open(&mut memory, volume_bytes, options).unwrap();
        Self { memory, store, options, now_ms: 1000, passes_ms: 0 }
    }

    pub fn ask_all(&mut self, asks: Vec<Ask>) -> Vec<Result<Answer, Refused>> {
        let count = u64::try_from(asks.len()).unwrap();
        (0..).zip(asks).for_each(|(tag, ask)| self.store.start(tag, ask));
        let mut all = self.all_told(count);
        all.sort_by_key(|told| told.tag);
        all.into_iter().map(|told| told.answer).collect()
    }

    /// Drives the store until so many asks are answered, in the order of the answers.
    pub fn all_told(&mut self, count: u64) -> Vec<Told> {
        let mut all: Vec<Told> = Vec::new();
        for _ in 0..1_000_000 {
            self.store.drive(self.now_ms, &mut all);
            if all.len() == narrow(count) {
                break;
            }
            while let Some(issued) = self.store.next_request() {
                let ended = self.memory.end(issued);
                self.store.ended(ended);
                self.now_ms += self.passes_ms;
            }
        }
        assert_eq!(all.len(), narrow(count), "every ask is answered once");
        all
    }

    pub fn ask(&mut self, ask: Ask) -> Result<Answer, Refused> {
        self.ask_all(vec![ask]).pop().unwrap()
    }

    pub fn set(&mut self, key: &str, value: &[u8]) -> Result<Answer, Refused> {
        self.ask(set(key, value))
    }

    pub fn get(&mut self, key: &str) -> Option<Vec<u8>> {
        match self.ask(Ask::Get { key: bytes(key), range: Range::Whole, lifetime: None }) {
            Ok(Answer::Value(value)) => value.map(|value| value.to_vec()),
            other => panic!("{other:?}"),
        }
    }

    /// Until the store has nothing to do.
    pub fn rest(&mut self) {
        let mut told = Vec::new();
        for _ in 0..10_000 {
            while let Some(issued) = self.store.next_request() {
                let ended = self.memory.end(issued);
                self.store.ended(ended);
            }
            if !self.store.wants_drive() {
                return assert!(told.is_empty(), "every ask is answered once");
            }
            self.store.drive(self.now_ms, &mut told);
        }
        panic!("the store does not come to rest");
    }

    pub fn reopen(&mut self) {
        let volume = u64::try_from(self.memory.bytes.len()).unwrap();
        self.store = open(&mut self.memory, volume, self.options).unwrap();
    }
}

pub fn bytes(key: &str) -> Box<[u8]> {
    Box::from(key.as_bytes())
}

pub fn set(key: &str, value: &[u8]) -> Ask {
    Ask::Set {
        key: bytes(key),
        value: Value::new(value),
        when: When::Always,
        lifetime: Lifetime::Forever,
        old: Old::Ignored,
    }
}

pub const STORED: Result<Answer, Refused> = Ok(Answer::Set { stored: true, old: None });
