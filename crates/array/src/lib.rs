//! The array: schemes, engine, journal, recovery. Sans-I/O; drivers run it through [`block::DeviceSet`].
//!
//! | look for | in |
//! |---|---|
//! | how a write is laid out | `scheme/` (plans), `plan.rs` |
//! | how the engine is built, the order of a turn | `engine/mod.rs` |
//! | requests, batches of writes | `engine/request.rs`, `engine/write.rs` |
//! | discards and zeros | `engine/zero.rs`, `engine/trim.rs` |
//! | the write cache | `engine/cache.rs` |
//! | how plans are carried out | `engine/job.rs`, in place with a journal: `engine/payload.rs` |
//! | reads, degraded reads, healing | `engine/read.rs`, `engine/cover.rs` |
//! | what makes an acknowledgement durable | `engine/flush.rs`, `journal.rs` |
//! | parity commit, garbage collection | `engine/commit.rs`, `engine/collect.rs`, `scheme/` |
//! | checkpoints | `image.rs`, `engine/checkpoint.rs` |
//! | start-up after a crash | `recovery/`, in place: `scheme/in_place/` |
//! | rebuild, scrub | `engine/maintain.rs` and its folder |
//! | members: failures, superblocks | `health.rs`, `engine/flights.rs`, `engine/members.rs` |
//! | metadata that nobody asks for | `engine/patrol.rs` |
//! | what is lost | `engine/lost.rs`, `lost.rs` |
//! | what happened, for logs and hooks | `engine/events.rs` |
//! | growing onto larger devices | `grow.rs`, `enlarge.rs`, `recovery/grow.rs` |
//! | several shards: layout, requests to all of them, replacing | `shards.rs` and its folder |
//! | how to change the engine | `docs/engine.md` |
//!
//! # Glossary
//! Words of this crate; those that other crates use too are in [`block`].
//!
//! | word | meaning |
//! |---|---|
//! | *activity* | work that goes on over several turns: an owned struct of the engine |
//! | *board* | what activities want of each other and must know of each other |
//! | *turn* | one `pump`, with what the driver does before and after it |
//! | *request* | what a caller asked for; it is cut into *chunk writes* and chunk reads |
//! | *batch* | chunk writes that are planned together |
//! | *job* | a plan and its progress |
//! | *owner* | who is told when a job has ended |
//! | *key* | the place of an entry in its table |
//! | *ticket* | held by whoever may still read what was freed since |
//! | *quarantine* | where freed space waits until that is durable and no ticket stands against it |
//! | *retire* | of a job whose writes have ended, in the order of its records: they are applied |
//! | *durable* | up to which record a power cut changes nothing any more |
//! | *persisted* | what frames that are durable themselves say is durable |
//! | *entry* | a chunk in the write cache |
//! | *stage* | how far a job, a checkpoint or a round of the patrol is |
//! | *stretch* | a bounded part of a discard, or of the metadata on one member |
//! | *code word* | chunks that the code ties together: a data stripe, a log stripe, a row |
//! | *piece* | a chunk as a member of a code word |
//! | *heal* | to write a bad chunk anew where it was bad |
//! | *dirty* | of a data stripe: its parity is not that of its newest chunks; a parity commit makes it clean |
//! | *class* | elastic chunks that are expected to live equally long; each has a *group* that waits |
//! | *room* | free chunks, log, journal and buffers: what a write may lack |
//! | *unit* | some stripes that commit, rebuild or scrub take at a time; rows of an elastic array |
//! | *run* | of commit: until what was dirty is clean; of maintenance: one rebuild or scrub |
//! | *chunk run* | neighbouring chunks of one device |
//! | *round* | one flush; one pass of the patrol over all metadata; one writing of all superblocks |
//! | *payload ring* | where the content of chunks goes before they are overwritten in place |
//! | *publish* | to write superblocks that say who is in service; answers wait behind this *fence* |
//! | *frozen* | more members are lost than the code tolerates: nothing is written any more |
//! | *stuck* | of a dirty stripe: it cannot be committed, because what that needs is lost |
//! | *assembly* | the time from one start of the array to the next, with an *epoch* of its own |
#![forbid(unsafe_code)]

mod away;
mod bounds;
mod checksum;
mod create;
mod engine;
mod enlarge;
mod fault;
mod forget;
mod grow;
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
mod saved;
mod scheme;
mod serial;
mod shape;
mod shards;
mod slots;
mod space;
mod store;
mod table;
mod written;

pub use away::NotBack;
pub use checksum::chunk_checksum;
pub use create::{CreateError, CreateOptions, LAYOUT_OF_NEW, NewArray, create, plan_config, unit_rows_for};
pub use engine::{
    CacheStats, CommitPolicy, CommitRun, Content, DiscardPolicy, Done, Engine, EngineError, EngineOptions,
    EngineStats, Event, HoldUp, Losses, MaintenanceReport, MemberTrouble, PatrolPolicy, Progress, SyncPolicy,
    WorkKind, WorkOrigin,
};
pub use enlarge::grow;
pub use fault::{AssemblyFaults, FailCause, Finding, OpFault};
pub use forget::forget;
pub use grow::{GrowError, check_whole, grown_config, is_half_grown, plan_growth};
pub use health::{ArrayState, Health, Member, MemberErrors};
pub use image::CheckpointPlace;
pub use layout::Layout;
pub use lost::LostChunks;
pub use memory::MemoryNeed;
pub use older::{Contradiction, Inconsistency, Misfit, Missing, OlderState, StateLost};
pub use plan::{Codeword, Piece, Plan, Word};
#[cfg(feature = "planted-bugs")]
pub use planted::{Planted, plant};
pub use recovery::{Arrangement, arrange, arrange_any, last_served, went_on_apart};
pub use restart::{AssembleError, DirtyDegraded, RecoveryReport};
pub use runner::Array;
pub use scheme::{
    ChunkWrite, Classes, CollectOutcome, Collects, CommitOutcome, Commits, GROUP_BYTES_MAX, GcStats, InPlace,
    Located, Logs, Origin, P_WAIT_NS_DEFAULT, Policies, Pressure, Rewrites, Scheme, SchemeMemory,
    SchemeOptions, UNTORN_BYTES_DEFAULT, UNTORN_BYTES_MAX, full_blocks_min, new as new_scheme,
};
pub use shape::{RESERVE_PERMILLE_DEFAULT, RESERVE_PERMILLE_ELASTIC, RESERVE_PERMILLE_MAX};
pub use shards::{
    GivenUp, PairSeat, ReplaceStep, Replacing, Seat, SucceedStep, Succession, create_shards, members_to_fail,
    plan_shards, shown_to_others, unit_bytes, unit_of,
};
pub use store::Store;
