//! Signals that would end this command while it runs an array, a closed terminal's among them: the work is given up and the
//! array stopped in order.

use crate::failure::Failure;
use crate::signals;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// What a shell adds to the number of the signal that ended a process.
const EXIT_SIGNAL: u8 = 128;

/// See the module's documentation.
pub struct Interrupt {
    /// Whether a signal simply ends the process.
    deadly: Arc<AtomicBool>,
    /// The signal that came; 0 = none.
    signal: Arc<AtomicUsize>,
}

impl Interrupt {
    /// Watches for signals. Until [`Interrupt::hold`], one ends the process at once unless the array is `clean`: it cannot
    /// make an array worse that was not stopped in order, and recovery may take long.
    pub fn watch(clean: bool) -> Result<Self, Failure> {
        let (deadly, signal) = (Arc::new(AtomicBool::new(!clean)), Arc::new(AtomicUsize::new(0)));
        for number in signals::that_end_a_process() {
            let name = usize::try_from(number).expect("numbers of signals are positive");
            signal_hook::flag::register_conditional_default(number, Arc::clone(&deadly))
                .and_then(|_| signal_hook::flag::register_usize(number, Arc::clone(&signal), name))
                .map_err(|error| Failure::new(format!("signals: {error}")))?;
        }
        Ok(Self { deadly, signal })
    }

    /// From now on the process stops in order.
    pub fn hold(&self) {
        self.deadly.store(false, Ordering::SeqCst);
    }

    /// Whether a signal came.
    pub fn came(&self) -> bool {
        self.signal.load(Ordering::SeqCst) != 0
    }

    /// An error if a signal came: the work on a running array ends.
    pub fn check(&self) -> Result<(), Failure> {
        self.check_saying(
            "the work is given up, and the array stopped in order (a rebuild goes on with the next start)",
        )
    }

    /// An error if a signal came, that says what comes of it.
    pub fn check_saying(&self, what: &str) -> Result<(), Failure> {
        let number = match self.signal.load(Ordering::SeqCst) {
            0 => return Ok(()),
            number => u8::try_from(number).unwrap_or(0),
        };
        Err(Failure::new(format!("interrupted: {what}")).with_exit(EXIT_SIGNAL + number))
    }
}
