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
//! | rebuild, scrub, device failure | `engine/maintain.rs`, `health.rs` |
//! | metadata that nobody asks for | `engine/patrol.rs` |
#![forbid(unsafe_code)]

mod checksum;
mod create;
mod engine;
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
    CommitPolicy, Content, Done, Durability, Engine, EngineError, EngineOptions, EngineStats, Finding,
    Losses, MaintenanceReport, MemberTrouble, PatrolNotice, PatrolPolicy, Progress, SyncPolicy,
};
pub use health::{ArrayState, Health, Member, MemberErrors};
pub use image::CheckpointPlace;
pub use layout::Layout;
pub use lost::LostChunks;
pub use memory::MemoryNeed;
pub use older::{Inconsistency, Missing, OlderState, StateLost};
pub use plan::{Codeword, Piece, Plan, Word};
#[cfg(feature = "planted-bugs")]
pub use planted::{Planted, plant};
pub use recovery::{Arrangement, arrange, arrange_any};
pub use restart::{AssembleError, DirtyDegraded, RecoveryReport};
pub use runner::Array;
pub use scheme::{
    ChunkWrite, CollectOutcome, CommitOutcome, Contradiction, GROUP_BYTES_MAX, GcStats, Located, Origin,
    P_WAIT_NS_DEFAULT, Pressure, Scheme, SchemeMemory, SchemeOptions, full_blocks_min, new as new_scheme,
};
pub use store::Store;
