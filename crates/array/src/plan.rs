//! Plans: what to read, compute, write and record for one piece of work, as data.
//!
//! A scheme fills a plan, the engine executes it, in this order: reads, computations, checksums,
//! (for a scheme that writes in place with a journal: payload copies and a flush), writes and
//! records, then the records are applied and the work is acknowledged. Plans are recycled: their
//! vectors keep their capacity, so the hot path does not allocate.

use crate::space::Leases;
use crate::store::{LogLease, Store};
use block::{ChunkAddr, ChunkIndex, DevIndex, Pool, Slot, Stream, StripeId};
use format::RecordBuf;
use format::record::{CrcOffset, CrcOffsets, PieceOffset};
use std::fmt::Write as _;
use std::ops::Range;

/// A code word: one data stripe, or one log stripe.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub enum Word {
    /// The committed versions of a data stripe's columns, and its parity.
    Stripe(StripeId),
    /// A live log stripe, by its place in the scheme's table.
    Log(u32),
    /// An elastic stripe, by its row: it lies on chunk row + 1 of every main device.
    Row(u32),
}

/// One chunk of a code word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Piece {
    /// Index in the code: data columns 0.., parity rows from `width_max`.
    pub index: usize,
    /// Where it is; on a log device the index counts 4 KiB blocks.
    pub addr: ChunkAddr,
    /// Its checksum.
    pub crc: u32,
}

/// The non-zero chunks of a code word. Columns that are not listed are zeros.
///
/// Several pieces with one index, one after another, are a *sum*: what the code has there is their
/// exclusive or, and it is at hand only if all of them are. Parities may be sums, data not.
#[derive(Clone, Debug, Default)]
pub struct Codeword {
    /// Data chunks first, then parity or log chunks, those of one index together.
    pub pieces: Vec<Piece>,
    /// How many of them are data.
    pub data_count: usize,
}

impl Codeword {
    /// Forgets all pieces.
    pub fn clear(&mut self) {
        self.pieces.clear();
        self.data_count = 0;
    }

    /// For each index of the code that the word has something of, which pieces make it up.
    pub fn parts(&self) -> impl Iterator<Item = Range<usize>> {
        let mut at = 0;
        self.pieces.chunk_by(|one, other| one.index == other.index).map(move |part| {
            at += part.len();
            at - part.len()..at
        })
    }

    /// Whether some piece is but one of a sum.
    pub fn has_sums(&self) -> bool {
        self.pieces.windows(2).any(|pair| pair[0].index == pair[1].index)
    }

    /// Whether what the word has at an index is a sum: its pieces cannot be told from the rest of
    /// the word one by one.
    pub fn is_sum(&self, index: usize) -> bool {
        self.pieces.iter().filter(|piece| piece.index == index).nth(1).is_some()
    }
}

/// A read of a plan: a chunk that belongs to a code word, so that a failed read can be replaced by its cover.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PlanRead {
    /// Where.
    pub addr: ChunkAddr,
    /// What it must hash to.
    pub crc: u32,
    /// The code word that covers it.
    pub word: Word,
    /// Its index in that word.
    pub index: usize,
    /// Where to put it.
    pub slot: Slot,
    /// What it is.
    pub stream: Stream,
}

impl PlanRead {
    /// A piece of a code word, into a slot.
    pub fn new(store: &Store, word: Word, piece: &Piece, slot: Slot) -> Self {
        let &Piece { index, addr, crc } = piece;
        Self { addr, crc, word, index, slot, stream: store.stream_of(index, addr.dev) }
    }
}

/// Where in a plan's records the checksum of a written chunk belongs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CrcAt {
    /// Nowhere.
    Nowhere,
    /// There.
    Record(CrcOffset),
    /// In this piece, which also says where the copy in the payload ring is.
    Piece(PieceOffset),
    /// Nowhere: it is known, and a chunk that does not match is not written.
    Known(u32),
    /// There; but the slot has only by how much the chunk changes, and the chunk is not written: its device
    /// is out of service.
    Change {
        /// Where the checksum of the changed chunk goes.
        at: CrcOffset,
        /// The checksum that the chunk had.
        old: u32,
    },
}

/// What a plan was to read of one code word and cannot, decoded at once from one set of pieces.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Decoding {
    /// All data columns of the code word, in [`Plan::columns`].
    pub columns: Range<usize>,
    /// Code indices of what is read for it, in [`Plan::columns`].
    pub indices: Range<usize>,
    /// Its slots, in [`Plan::slots`].
    pub slots: Range<usize>,
    /// What is decoded, in [`Plan::missing`].
    pub wanted: Range<usize>,
}

/// Log chunks of a plan that have room in the log, but get their place in it only when their record
/// gets its place in the journal: between planning and then the plan may have to read, and others
/// may overtake it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Append {
    /// The record that describes them.
    pub record: usize,
    /// The writes of the log chunk to each log device.
    pub writes: Range<usize>,
}

/// A write of a plan.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PlanWrite {
    /// Where; on a log device the index counts 4 KiB blocks.
    pub addr: ChunkAddr,
    /// From where.
    pub slot: Slot,
    /// What it is.
    pub stream: Stream,
    /// Where its checksum goes.
    pub crc_at: CrcAt,
}

/// A computation of a plan. Ranges point into [`Plan::columns`] and [`Plan::slots`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Compute {
    /// Complete a chunk that a request covers in part: what is outside of `from..to` comes from the
    /// old version.
    Fill {
        /// Its old content; `None` stands for zeros.
        old: Option<Slot>,
        /// Its new content.
        new: Slot,
        /// First byte that the request covers.
        from: u32,
        /// End of those bytes.
        to: u32,
    },
    /// All parities of the given data columns.
    Encode {
        /// Code columns of the inputs.
        columns: Range<usize>,
        /// Their slots.
        inputs: Range<usize>,
        /// One slot per parity row.
        outputs: Range<usize>,
    },
    /// Fold the change of one column into all parities; `None` stands for zeros.
    Delta {
        /// Code column.
        column: usize,
        /// Its old content.
        old: Option<Slot>,
        /// Its new content.
        new: Option<Slot>,
        /// One slot per parity row, updated.
        parities: Range<usize>,
    },
    /// The exclusive or of some chunks.
    Sum {
        /// Their slots.
        parts: Range<usize>,
        /// Where it goes.
        total: Slot,
    },
    /// Fill a chunk with zeros.
    Clear(Slot),
    /// Produce missing pieces from others. Columns: all data columns of the word.
    Rebuild {
        /// Data columns of the code word.
        columns: Range<usize>,
        /// Code index and slot of what is at hand.
        present: Range<usize>,
        /// Code index and slot of what to produce.
        wanted: Range<usize>,
    },
}

/// What a plan has of the scheme's cache ([`Caches`](crate::scheme::Caches)).
#[derive(Default)]
pub struct Held {
    /// Chunks that the cache has and that are therefore not read; but each is compared with its checksum, and
    /// read into the same slot if it differs.
    pub reads: Vec<PlanRead>,
    /// Entries that the plan has taken.
    pub entries: Vec<usize>,
    /// How many of them the cache had already.
    pub found: u64,
    /// What goes into the cache when the plan's records are applied: from, to.
    pub copies: Vec<(Slot, Slot)>,
}

impl Held {
    fn clear(&mut self) {
        assert!(self.entries.is_empty(), "a plan ended without a word about its entries of the cache");
        self.reads.clear();
        self.copies.clear();
        self.found = 0;
    }
}

/// See the module's documentation.
#[derive(Default)]
pub struct Plan {
    /// First stage.
    pub reads: Vec<PlanRead>,
    /// Reads that cannot be carried out, in the order of their code words: their chunks are decoded.
    pub missing: Vec<PlanRead>,
    /// How, before the second stage.
    pub decodings: Vec<Decoding>,
    /// Second stage, in order.
    pub computes: Vec<Compute>,
    /// Third stage.
    pub writes: Vec<PlanWrite>,
    /// What the writes mean; applied when all of them have completed.
    pub records: RecordBuf,
    /// Its writes are planned all or none, and its records are there after a crash all or none.
    pub untorn: bool,
    /// Log chunks that have no place yet, in the order in which they get one; room for them is
    /// reserved in the log.
    pub appends: Vec<Append>,
    /// Code columns or indices, for the computations.
    pub columns: Vec<usize>,
    /// Slots, for the computations.
    pub slots: Vec<Slot>,
    /// What the plan has taken of the array's space.
    pub leases: Leases,
    /// Slots that belong to the plan and go back to the pool at its end.
    pub owned: Vec<Slot>,
    /// The same, but only computed with: they go back as soon as that has been done.
    pub inputs: Vec<Slot>,
    /// Pairs of slots that must be equal after the computations (scrub).
    pub compares: Vec<(Slot, Slot)>,
    /// Stripes held exclusively while the plan runs.
    pub stripes: Vec<StripeId>,
    /// Log stripes and elastic stripes as they were when the plan was made. Nobody holds them
    /// still: one may end while the plan runs, and its name pass to another; its chunks stay where
    /// they are until the plan has ended.
    pub log_words: Vec<(Word, Codeword)>,
    /// What it has of the cache.
    pub held: Held,
}

impl Plan {
    /// Forgets everything but the capacity.
    pub fn clear(&mut self) {
        self.reads.clear();
        self.missing.clear();
        self.decodings.clear();
        self.computes.clear();
        self.writes.clear();
        self.records.clear();
        self.untorn = false;
        self.appends.clear();
        assert!(self.leases.is_empty(), "a plan ended without a word about what it had taken");
        self.columns.clear();
        self.slots.clear();
        self.owned.clear();
        self.inputs.clear();
        self.compares.clear();
        self.stripes.clear();
        self.log_words.clear();
        self.held.clear();
    }

    /// Takes a slot that the plan owns. Callers check [`Pool::free_count`] first.
    pub fn own_slot(&mut self, pool: &mut Pool) -> Slot {
        let slot = pool.alloc().expect("the planner checked that the pool has room for the plan");
        self.owned.push(slot);
        slot
    }

    /// Reads a piece into a slot that the plan owns.
    pub fn read_piece(&mut self, store: &Store, pool: &mut Pool, word: Word, piece: &Piece) -> Slot {
        let slot = self.own_slot(pool);
        self.reads.push(PlanRead::new(store, word, piece, slot));
        slot
    }

    /// Reads a piece that is only computed with.
    pub fn read_input(&mut self, store: &Store, pool: &mut Pool, word: Word, piece: &Piece) -> Slot {
        let slot = self.read_piece(store, pool, word, piece);
        self.inputs.extend(self.owned.pop());
        slot
    }

    /// Gives back the slots of what was only computed with.
    pub fn release_inputs(&mut self, pool: &mut Pool) {
        let is_input = |slot: &Slot| self.inputs.contains(slot);
        debug_assert!(
            !self.writes.iter().any(|write| is_input(&write.slot))
                && !self.held.copies.iter().any(|(from, to)| is_input(from) || is_input(to))
                && !self.compares.iter().any(|(one, other)| is_input(one) || is_input(other)),
            "what is needed later is no input"
        );
        self.inputs.drain(..).for_each(|slot| pool.free(slot));
    }

    /// Gives back all slots.
    pub fn release_slots(&mut self, pool: &mut Pool) {
        self.release_inputs(pool);
        self.owned.drain(..).for_each(|slot| pool.free(slot));
    }

    /// Whether something is decoded from what a read gives.
    pub fn is_decoded_from(&self, read: &PlanRead) -> bool {
        self.decodings.iter().any(|decoding| self.slots[decoding.slots.clone()].contains(&read.slot))
    }

    /// Appends the parities that `slots` has from `from` on to the log devices, one log chunk on
    /// each, for the newest record, whose checksums are at `crcs`.
    pub fn append_log_chunks(&mut self, store: &Store, from: usize, crcs: CrcOffsets, _room: LogLease) {
        let first = self.writes.len();
        for row in 0..store.config.geometry.parity_count() {
            let (addr, slot) =
                (ChunkAddr::new(store.log_device(row), ChunkIndex::NONE), self.slots[from + row]);
            self.writes.push(PlanWrite {
                addr,
                slot,
                stream: Stream::Log,
                crc_at: CrcAt::Record(crcs.at(row)),
            });
        }
        self.appends.push(Append { record: self.records.len() - 1, writes: first..self.writes.len() });
    }

    /// Encodes what was pushed to [`Plan::columns`] from place `columns` and to [`Plan::slots`]
    /// from place `inputs` on; returns where in `slots` the parities are.
    pub fn encode(&mut self, pool: &mut Pool, columns: usize, inputs: usize, parity_count: usize) -> usize {
        let outputs = self.slots.len();
        for _ in 0..parity_count {
            let slot = self.own_slot(pool);
            self.slots.push(slot);
        }
        self.encode_into(columns, inputs, outputs)
    }

    /// The same into slots that were pushed to [`Plan::slots`] behind the inputs, from place `outputs` on.
    pub fn encode_into(&mut self, columns: usize, inputs: usize, outputs: usize) -> usize {
        self.computes.push(Compute::Encode {
            columns: columns..self.columns.len(),
            inputs: inputs..outputs,
            outputs: outputs..self.slots.len(),
        });
        outputs
    }

    /// The plan as text, one step a line: what scheme tests compare and `docs/schemes.md` shows.
    pub fn text(&self, main_count: usize) -> String {
        let mut out = String::new();
        let name = |dev: DevIndex| {
            if dev.index() < main_count {
                format!("ssd{dev}")
            } else {
                format!("log{}", dev.index() - main_count)
            }
        };
        for read in &self.reads {
            let _ = writeln!(
                out,
                "read {} {}:{}",
                stream_name(read.stream),
                name(read.addr.dev),
                read.addr.chunk
            );
        }
        for held in &self.held.reads {
            let (stream, addr) = (stream_name(held.stream), held.addr);
            let _ = writeln!(out, "have {stream} {}:{}", name(addr.dev), addr.chunk);
        }
        for Decoding { wanted, .. } in &self.decodings {
            let indices: Vec<usize> = self.missing[wanted.clone()].iter().map(|read| read.index).collect();
            let _ = writeln!(out, "decode pieces {indices:?}");
        }
        for compute in &self.computes {
            let _ = match compute {
                Compute::Fill { old, from, to, .. } => {
                    let old = if old.is_some() { "the old version" } else { "zeros" };
                    writeln!(out, "complete bytes {from}..{to} from {old}")
                }
                // How a sum of changes begins.
                Compute::Encode { columns, .. } if columns.is_empty() => Ok(()),
                Compute::Clear(_) => Ok(()),
                Compute::Sum { parts, .. } => writeln!(out, "add {} chunks", parts.len()),
                Compute::Encode { columns, outputs, .. } => {
                    writeln!(
                        out,
                        "encode columns {:?} into {}",
                        &self.columns[columns.clone()],
                        outputs.len()
                    )
                }
                Compute::Delta { column, parities, .. } => {
                    writeln!(out, "fold the change of column {column} into {}", parities.len())
                }
                Compute::Rebuild { wanted, .. } => {
                    writeln!(out, "rebuild pieces {:?}", &self.columns[wanted.clone()])
                }
            };
        }
        for write in &self.writes {
            if matches!(write.crc_at, CrcAt::Change { .. }) {
                let _ = writeln!(out, "note the change of {}", name(write.addr.dev));
                continue;
            }
            let (stream, addr) = (stream_name(write.stream), write.addr);
            let _ = match addr.chunk {
                ChunkIndex::NONE => writeln!(out, "write {stream} {}, at its end", name(addr.dev)),
                chunk => writeln!(out, "write {stream} {}:{chunk}", name(addr.dev)),
            };
        }
        for record in self.records.iter() {
            let _ = writeln!(out, "record {}", record.summary());
        }
        out
    }
}

fn stream_name(stream: Stream) -> &'static str {
    match stream {
        Stream::Data => "data",
        Stream::Parity => "parity",
        Stream::Log => "log",
        Stream::Metadata => "metadata",
    }
}
