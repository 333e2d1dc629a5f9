//! Signals that would end this command while it runs an array, a closed terminal's among them: the work is
//! given up and the array stopped in order.

use crate::error::Error;
use crate::signals;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// See the module's documentation.
pub struct Interrupt {
    /// Whether a signal simply ends the process.
    deadly: Arc<AtomicBool>,
    /// The signal that came; 0 = none.
    signal: Arc<AtomicUsize>,
}

impl Interrupt {
    /// Watches for signals. Until [`Interrupt::hold`], one ends the process at once unless the array is
    /// `clean`: it cannot make an array worse that was not stopped in order, and recovery may take long.
    pub fn watch(clean: bool) -> Result<Self, Error> {
        let (deadly, signal) = (Arc::new(AtomicBool::new(!clean)), Arc::new(AtomicUsize::new(0)));
        for number in signals::that_end_a_process() {
            let name = usize::try_from(number).expect("numbers of signals are positive");
            signal_hook::flag::register_conditional_default(number, Arc::clone(&deadly))
                .and_then(|_| signal_hook::flag::register_usize(number, Arc::clone(&signal), name))
                .map_err(Error::Signals)?;
        }
        Ok(Self { deadly, signal })
    }

    /// From now on the process stops in order.
    pub fn hold(&self) {
        self.deadly.store(false, Ordering::SeqCst);
    }

    /// The number of the signal that came, if one did.
    pub(crate) fn signal(&self) -> Option<u8> {
        let number = self.signal.load(Ordering::SeqCst);
        (number != 0).then(|| u8::try_from(number).unwrap_or(0))
    }

    /// An error if a signal came: the work on a running array ends.
    pub fn check(&self) -> Result<(), Error> {
        self.signal().map_or(Ok(()), |signal| Err(Error::Interrupted { signal }))
    }

    /// An error if a signal came: no array is made.
    pub fn check_creation(&self) -> Result<(), Error> {
        self.signal().map_or(Ok(()), |signal| Err(Error::CreationInterrupted { signal }))
    }
}
