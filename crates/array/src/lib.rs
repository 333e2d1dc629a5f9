//! The array: schemes, engine, journal, recovery. Sans-I/O; drivers run it through [`block::DeviceSet`].
//!
//! | look for | in |
//! |---|---|
//! | how a write is laid out | `scheme/` (plans), `plan.rs` |
//! | how plans are carried out | `engine/job.rs`, in place with a journal: `engine/payload.rs` |
//! | reads, degraded reads, healing | `engine/read.rs`, `engine/cover.rs` |
//! | what makes an acknowledgement durable | `engine/flush.rs`, `journal.rs` |
//! | parity commit | `engine/background.rs`, `scheme/eplog/commit.rs` |
//! | checkpoints | `image.rs`, `engine/checkpoint.rs` |
//! | start-up after a crash | `recovery/` |
//! | the write cache | `engine/cache.rs` |
//! | garbage collection of elastic stripes | `engine/collect.rs`, `scheme/elastic/` |
//! | discards and zeros | `engine/zero.rs`, `engine/trim.rs` |
//! | rebuild, scrub, device failure | `engine/maintain.rs`, `health.rs` |
//! | metadata that nobody asks for | `engine/patrol.rs` |
//! | how to change the engine | `docs/engine.md` |
//!
//! # Glossary
//! Words of this crate; those that other crates use too are in [`block`].
//!
//! | word | meaning |
//! |---|---|
//! | *request* | what a caller asked for; it is cut into *chunk writes* and chunk reads |
//! | *batch* | chunk writes that are planned together |
//! | *job* | a plan and its progress |
//! | *retire* | of a job whose writes have ended, in the order of its records: they are applied, and the job ends |
//! | *durable* | up to which record a power cut changes nothing any more |
//! | *persisted* | what frames that are durable themselves say is durable |
//! | *quarantine* | what a record freed, until the record is persisted and all reads that began before have ended |
//! | *ticket* | the number under which a read began, for the quarantine |
//! | *code word* | the pieces that one code protects together: a data stripe, a log stripe, an elastic stripe |
//! | *piece* | a chunk as a member of a code word |
//! | *heal* | to write a bad chunk anew where it was bad |
//! | *dirty* | of a data stripe: its parity is not that of its newest chunks; a parity commit makes it clean |
//! | *payload ring* | where schemes that write in place copy what they are about to overwrite a chunk with |
//! | *staged* | of a job: its copies and records are on their way to being durable, nothing is overwritten yet |
//! | *unit* | rows of an elastic array that are collected together |
//! | *class* | chunks of an elastic array that are expected to live equally long; each has a *group* that waits |
//! | *room* | free chunks, log, journal and buffers: what a write may lack |
//! | *publish* | to write superblocks that say who is in service; answers wait behind this *fence* |
//! | *frozen* | more members are lost than the code tolerates: nothing is written or promised any more |
//! | *assembly* | the time from one start of the array to the next, with an *epoch* of its own |
#![forbid(unsafe_code)]

mod checksum;
mod create;
mod engine;
mod fault;
mod hash;
mod health;
mod image;
mod journal;
mod layout;
mod lost;
mod memory;
mod older;
mod plan;
mod planted;
mod recovery;
mod restart;
mod runner;
mod scheme;
mod space;
mod store;
mod table;

pub use checksum::chunk_checksum;
pub use create::{
    CreateError, CreateOptions, NewArray, RESERVE_PERMILLE_DEFAULT, RESERVE_PERMILLE_ELASTIC, create,
    plan_config, unit_rows_for,
};
pub use engine::{
    CommitPolicy, Content, Done, Durability, Engine, EngineError, EngineOptions, EngineStats, Event, Finding,
    HoldUp, Losses, MaintenanceReport, MemberTrouble, PatrolPolicy, Progress, SyncPolicy, WorkKind,
    WorkOrigin,
};
pub use fault::{AssemblyFaults, FailCause, OpFault};
pub use health::{ArrayState, Health, Member, MemberErrors};
pub use image::CheckpointPlace;
pub use layout::Layout;
pub use lost::LostChunks;
pub use memory::MemoryNeed;
pub use older::{Inconsistency, Misfit, Missing, OlderState, StateLost};
pub use plan::{Codeword, Piece, Plan, Word};
#[cfg(feature = "planted-bugs")]
pub use planted::{Planted, plant};
pub use recovery::{Arrangement, arrange, arrange_any};
pub use restart::{AssembleError, DirtyDegraded, RecoveryReport};
pub use runner::Array;
pub use scheme::{
    ChunkWrite, Classes, CollectOutcome, Collects, CommitOutcome, Commits, Contradiction, GROUP_BYTES_MAX,
    GcStats, InPlace, Located, Origin, P_WAIT_NS_DEFAULT, Pressure, Scheme, SchemeMemory, SchemeOptions,
    full_blocks_min, new as new_scheme,
};
pub use store::Store;
