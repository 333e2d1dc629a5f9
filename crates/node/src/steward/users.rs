//! Who uses what is served: clients on this thread and on others, and the store of keys that they use.

use crate::sockets::Census;
use crate::status::{Requests, StoreStatus};
use front::Meter;
use std::sync::Arc;

/// See the module's documentation.
#[derive(Default)]
pub(super) struct Users {
    /// Clients of the volume on this thread.
    pub here: usize,
    /// Who knows of those on others.
    pub elsewhere: Option<Arc<Census>>,
    /// What they ask for, of each thread that serves them.
    pub meters: Vec<Arc<Meter>>,
    /// The store of keys, as it was when it was last asked.
    pub store: Option<StoreStatus>,
}

impl Users {
    /// Clients of the volume.
    pub fn count(&self) -> usize {
        self.here + self.elsewhere.as_ref().map_or(0, |census| census.total())
    }

    /// What they have asked for.
    pub fn requests(&self) -> Requests {
        Requests::read(&self.meters)
    }

    /// Whether a thread that served some ended in a bug.
    pub fn has_lost_a_thread(&self) -> bool {
        self.elsewhere.as_ref().is_some_and(|census| census.has_lost_a_thread())
    }
}
