//! Members in service that hold up requests: they lack room, or do not answer. What the log says of them.

use crate::logbook::log;
use crate::open::member_name;
use crate::volume::Running;
use block::DevIndex;

/// How long a device may take to answer, unless told otherwise.
pub const DEVICE_TIMEOUT_NS: u64 = 30_000_000_000;
/// How often the log looks.
const LOOK_NS: u64 = 1_000_000_000;

/// Says in the log when trouble begins and ends.
#[derive(Default)]
pub struct TroubleLog {
    known: Vec<(bool, bool)>,
    next_ns: u64,
}

impl TroubleLog {
    /// Whether something was said that has not ended: look again soon.
    pub fn is_waiting(&self) -> bool {
        self.known.iter().any(|&(lacks, silent)| lacks || silent)
    }

    /// Compares with the last look, at most once a second.
    pub fn look(&mut self, running: &Running) {
        let engine = running.engine_ref();
        let now_ns = running.now_ns();
        if !engine.is_held_up() && !self.is_waiting() || now_ns < self.next_ns {
            return;
        }
        self.next_ns = now_ns.saturating_add(LOOK_NS);
        let (count, main_count) = (engine.health().members().len(), engine.store().main_count());
        self.known.resize(count, (false, false));
        for (index, known) in (0u16..).zip(&mut self.known) {
            let dev = DevIndex::new(index);
            let (name, trouble) = (member_name(main_count, dev), engine.member_trouble(dev));
            let now = (trouble.lacks_room_since_ns.is_some(), trouble.not_answering);
            match (known.0, now.0) {
                (false, true) => log(&format!(
                    "{name}: there is no room where it lies; writes wait, and are refused when they have waited for long"
                )),
                (true, false) => {
                    log(&format!("{name}: there is room again, or it is out of service; writes go on"))
                }
                (true, true) | (false, false) => {}
            }
            match (known.1, now.1) {
                (false, true) => {
                    log(&format!(
                        "{name} does not answer, and the array cannot do without it: requests wait"
                    ));
                }
                (true, false) => log(&format!("{name} answers again, or is out of service")),
                (true, true) | (false, false) => {}
            }
            *known = now;
        }
    }
}
