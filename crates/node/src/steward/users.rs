//! Who uses what is served: clients on this thread and on others, and the store of keys that they use.

use crate::sockets::Census;
use crate::status::{Requests, StoreStatus};
use front::Meter;
use std::sync::Arc;

/// What is said of a store of keys that a failed write has ended changes of.
const ONLY_READS: &str = "the store of keys takes no changes since a write failed (no room, or too many members out of service): \
     stop `kv serve` and start it again";

/// What is said while clients wait.
const OPENING: &str = "the store of keys is being opened; its clients are served when that is done";

/// See the module's documentation.
#[derive(Default)]
pub(super) struct Users {
    /// Clients of the volume on this thread.
    pub here: usize,
    /// Who knows of those on others.
    pub elsewhere: Option<Arc<Census>>,
    /// What they ask for, of each thread that serves them.
    pub meters: Vec<Arc<Meter>>,
    /// A store of keys is being opened.
    pub opens_store: bool,
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

    /// How the store of keys is; what there is to say of it that was not so before.
    pub fn note_store(&mut self, store: StoreStatus) -> Option<&'static str> {
        let before = self.trouble_of_store();
        (self.opens_store, self.store) = (false, Some(store));
        self.trouble_of_store().filter(|_| before.is_none())
    }

    /// What is wrong with the store of keys.
    fn trouble_of_store(&self) -> Option<&'static str> {
        self.store.is_some_and(|store| store.only_reads).then_some(ONLY_READS)
    }

    /// What there is to say of the store of keys.
    pub fn notes_of_store(&self) -> impl Iterator<Item = &'static str> {
        let opening = self.opens_store.then_some(OPENING);
        opening.into_iter().chain(self.trouble_of_store())
    }

    /// The volume has another size: those who serve clients on other threads look.
    pub fn look_at_size(&self) {
        if let Some(census) = &self.elsewhere {
            census.wake();
        }
    }

    /// Whether a thread that served some ended in a bug.
    pub fn has_lost_a_thread(&self) -> bool {
        self.elsewhere.as_ref().is_some_and(|census| census.has_lost_a_thread())
    }
}
