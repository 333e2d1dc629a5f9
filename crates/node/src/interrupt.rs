//! SIGINT and SIGTERM while this command runs an array: the work is given up and the array stopped in order.

use crate::error::Error;
use signal_hook::consts::{SIGINT, SIGTERM};
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
        for (number, name) in [(SIGINT, 2), (SIGTERM, 15)] {
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

    /// An error if a signal came.
    pub fn check(&self) -> Result<(), Error> {
        let signal = match self.signal.load(Ordering::SeqCst) {
            0 => return Ok(()),
            number => u8::try_from(number).unwrap_or(0),
        };
        Err(Error::Interrupted { signal })
    }
}
