//! What is measured: arrays made for a run, sized to fit it, or somebody else's volume.

pub mod array;
pub mod build;
pub mod choices;
pub mod fit;
pub mod gc;
pub mod nbd;
pub mod snapshot;
pub mod target;
