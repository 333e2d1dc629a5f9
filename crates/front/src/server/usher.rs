//! How clients are shared out among the threads of a server, all of which listen at the same sockets.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// How long a thread that has clients leaves a new one to others that have as many: of theirs one may be gone
/// that they have not looked after yet. Twice as long to those that have fewer.
const COURTESY: Duration = Duration::from_millis(2);

/// Clients of each thread, for all to see.
#[derive(Debug)]
pub struct Places(Vec<AtomicUsize>);

impl Places {
    /// Of so many threads, none of which has clients.
    pub fn new(threads: usize) -> Self {
        Self((0..threads).map(|_| AtomicUsize::new(0)).collect())
    }

    /// Clients of all threads together.
    pub fn total(&self) -> usize {
        self.counts().sum()
    }

    fn counts(&self) -> impl Iterator<Item = usize> + '_ {
        self.0.iter().map(|count| count.load(Ordering::Relaxed))
    }
}

/// Says for one of the threads whether it takes a client.
#[derive(Debug)]
pub struct Usher {
    places: Arc<Places>,
    thread: usize,
    /// Since when a new client is left to others.
    polite_since: Option<Instant>,
}

impl Usher {
    /// That of thread `thread` of those of `places`.
    pub fn new(places: Arc<Places>, thread: usize) -> Self {
        Self { places, thread, polite_since: None }
    }

    /// Whether a client that wants in may come in here: [`Hooks::may_accept`](super::Hooks::may_accept).
    pub fn may_accept(&mut self) -> bool {
        let own = self.places.0[self.thread].load(Ordering::Relaxed);
        let fewest = self.places.counts().min().unwrap_or(0);
        if own == 0 || self.places.0.len() == 1 {
            return true;
        }
        let patience = if fewest < own { 2 * COURTESY } else { COURTESY };
        let over = self.polite_since.get_or_insert_with(Instant::now).elapsed() > patience;
        if over {
            self.polite_since = None;
        }
        over
    }

    /// The thread has so many clients now: [`Hooks::on_clients`](super::Hooks::on_clients).
    pub fn note(&mut self, count: usize) {
        self.polite_since = None;
        self.places.0[self.thread].store(count, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ushers(threads: usize) -> Vec<Usher> {
        let places = Arc::new(Places::new(threads));
        (0..threads).map(|thread| Usher::new(Arc::clone(&places), thread)).collect()
    }

    /// Who takes a client that wants in, if all are asked in turn.
    fn taker(ushers: &mut [Usher]) -> usize {
        loop {
            if let Some(taker) = ushers.iter_mut().position(Usher::may_accept) {
                return taker;
            }
        }
    }

    #[test]
    fn whoever_has_fewest_takes_the_next() {
        let mut ushers = ushers(3);
        let mut counts = [0; 3];
        for _ in 0..9 {
            let taker = taker(&mut ushers);
            assert_eq!(Some(&counts[taker]), counts.iter().min(), "{counts:?}, {taker} takes another one");
            counts[taker] += 1;
            ushers[taker].note(counts[taker]);
        }
        assert_eq!((counts, ushers[0].places.total()), ([3; 3], 9));
    }

    #[test]
    fn one_that_sees_a_client_go_takes_the_next() {
        let mut ushers = ushers(2);
        ushers.iter_mut().for_each(|usher| usher.note(1));
        assert!(!ushers[0].may_accept(), "the other one may have none any more");
        ushers[1].note(0);
        assert!(ushers[1].may_accept());
    }

    #[test]
    fn a_thread_alone_takes_all() {
        let mut alone = ushers(1).remove(0);
        for count in 1..9 {
            assert!(alone.may_accept());
            alone.note(count);
        }
    }
}
