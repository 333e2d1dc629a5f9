//! The simulator: an array on devices that fail in every way the array promises to survive, and an oracle
//! that knows what each sector may hold. One seed is one world; the same seed is the same world.
//!
//! # Fault model
//!
//! What may happen to a device of the simulated machine, in one world, in any combination:
//!
//! | fault | what it does |
//! |---|---|
//! | volatile cache | a write that completed is visible, but durable only when a flush that was submitted later completes |
//! | reordering | operations under way end in any order; a device may be slower than the others |
//! | power cut | at the start or end of any operation, also during assembly: of every write that no flush covers, completed or not, each 512-byte sector arrives or not, in any order among overlapping writes; some worlds cut rebuilds again and again |
//! | discard | what was discarded reads as something else from then on; volatile and reordered like a write |
//! | EIO | a read, write or flush fails, and does nothing |
//! | no room | some writes to any device find no room and do nothing, for a while, also during assembly |
//! | hang | a device does not answer (all, or some kinds of requests), for a while or for ever; what was given up meanwhile takes effect later or never, also on a disk that was taken out, or after a power cut |
//! | late | a device answers late, but in time: no fault |
//! | shelf | more devices than the code tolerates do not answer for a while |
//! | stop | the process does not run for a while, and devices do not wait for it |
//! | loss | at any operation, or with a power cut, a device is gone for good |
//! | misdirected write | a write of user content lands at another place of the same device; of several shards any write, also at the same place of another shard's slice |
//! | bit rot | bits of what is stored flip, anywhere on the device, metadata included, or in every block of an area of metadata |
//! | stale device | a device that left the array is plugged in again, alone or beside its replacement |
//! | return | a device that left is taken back with what is on it, and must be whole when it has what it missed |
//! | cut short | while power is off a device loses its end; a start that sees it leaves it out; it has its length again later, zeros where its end was, and then it is as good as a new one, not what it was |
//!
//! **The promise.** A device that hangs, fails an operation, is lost, writes elsewhere, rots or comes back
//! stale is *suspect* from then on, until it has been replaced and rebuilt, or, if it was hurt but stayed in
//! service, until a scrub that began later has come to its end, or a round of the patrol if only metadata was
//! hurt; one that lacks room is not. There are never more suspects than the code tolerates (m, log devices
//! counted); a power cut may come together with the loss of as many devices as that leaves. This is how "at
//! most m damaged pieces in every code word" is kept. Inside the promise no request may fail (but a write or
//! flush for want of room) nor wait longer than devices may take to answer, no durable content may be lost,
//! and every invariant of [`check`](self) holds.
//!
//! **The driver** pumps the engine exactly as the server does: once, again only if the engine asks for it,
//! and otherwise not before an operation ends or a deadline comes. A request or work that is left when
//! neither will happen is a violation at once, and so is an engine that asks to be pumped for ever. And so is
//! a place of a log device that is written for the first time after a later one. In pauses nobody asks for
//! anything: everything must be answered, and committed if idle time says so.
//!
//! **Shards.** Half of the worlds have an array of two to four shards, each with an engine of its own on a
//! slice of every device, driven at random times of its own: a turn goes to any of the shards that an end, a
//! deadline or a request would wake. What one gives up the others are told at any later time, or never, if
//! power fails first; devices are replaced step by step. The oracle knows the volume alone; whom a shard has
//! lost, and what it bears, is counted for each. If more devices than the code tolerates stop answering,
//! shards may give up different ones, together more than one of them bears: then nothing more is damaged in
//! that world.
//!
//! **Beyond the promise.** A fair share of the worlds end with damage that nothing could survive for certain
//! (`ruin`): bits flip in checkpoints, superblocks, frames and chunks of any number of members, members are
//! lost, power fails during recovery, and more is damaged then. What may come of it: a refusal, an error of a
//! read, or content that is allowed; and a scrub that finds nothing lost must be right. Allowed is here what
//! no *confirmed* version has replaced, one that was durable when a later flush began; and of the frame that
//! says so a copy is left. With `--force` anything older is allowed, too, but nothing that was not written
//! there.
//!
//! What is not modelled: a device that lies about flushes, and one that returns wrong bytes which happen to
//! match their checksum.
//!
//! # Where things are
//!
//! `disk` a device's cache and what survives; `world` operations, delays, faults, devices that do not answer;
//! `trap` faults that wait;
//! `port` the devices as a shard has them; `attach` which of them are there at a start; `oracle` what a
//! sector may hold; `rot` damage to what is stored, and when it counts as made good; `maim` devices that are
//! cut short; `ruin` damage beyond the promise; `swarm` what is drawn from the seed; `machine` power on and
//! off; `life` one world from its seed to its end; `fleet` the shards side by side; `session` requests;
//! `check` invariants at rest;
//! `base` an array for the tests of what stands on arrays;
//! `explore` many worlds; `script` power cuts at every operation of a small plan; `course` which parts of a
//! world happen, `simpler` what can be made simpler about one, `shrink` the smallest world that still
//! fails.
#![forbid(unsafe_code)]

mod attach;
mod base;
mod check;
mod course;
mod disk;
mod explore;
mod fleet;
mod growth;
mod life;
mod machine;
mod maim;
mod oracle;
mod parts;
mod port;
mod rot;
mod ruin;
mod script;
mod session;
mod shrink;
mod simpler;
mod swarm;
mod trap;
mod violation;
mod world;

pub use base::{Base, Toll};
pub use course::{Item, Part, Reduction};
pub use disk::Tear;
pub use explore::{Exploration, Failure, Until, explore, replay_command, run_caught};
pub use life::run;
pub use machine::Outcome;
pub use rot::Area;
pub use script::{Cut, Script};
pub use session::Step;
pub use shrink::{Shrunk, Size, run_reduced, shrink};
pub use simpler::Setting;
pub use swarm::{Pinned, Scarce, Swarm};
pub use violation::Violation;

/// What everything in a world is drawn from.
pub type Rng = block::XoshiroStarStar;
