//! How clients are shared out among the threads of a server, all of which listen at the same sockets.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// How long a thread that has clients leaves a new one to others that have as many: of theirs one may be gone
/// that they have not looked after yet. Twice as long to those that have fewer.
const COURTESY: Duration = Duration::from_millis(2);

/// Clients of each thread, for all to see.
#[derive(Debug)]
pub struct Places {
    counts: Vec<AtomicUsize>,
    /// How many were ever seated.
    seated: AtomicUsize,
}

impl Places {
    /// Of so many threads, none of which has clients.
    pub fn new(threads: usize) -> Self {
        let counts = (0..threads).map(|_| AtomicUsize::new(0)).collect();
        Self { counts, seated: AtomicUsize::new(0) }
    }

    /// Clients of all threads together.
    pub fn total(&self) -> usize {
        self.counts().sum()
    }

    fn counts(&self) -> impl Iterator<Item = usize> + '_ {
        self.counts.iter().map(|count| count.load(Ordering::Relaxed))
    }
}

/// Says for one of the threads whether it takes a client.
#[derive(Debug)]
pub struct Usher {
    places: Arc<Places>,
    thread: usize,
    /// Since when a client is left to others, and how many were seated then: if one was since, that was it.
    polite_since: Option<(Instant, usize)>,
}

impl Usher {
    /// That of thread `thread` of those of `places`.
    pub fn new(places: Arc<Places>, thread: usize) -> Self {
        Self { places, thread, polite_since: None }
    }

    /// Whether a client that wants in may come in here: [`Hooks::may_accept`](super::Hooks::may_accept).
    pub fn may_accept(&mut self) -> bool {
        self.may_accept_at(Instant::now())
    }

    fn may_accept_at(&mut self, now: Instant) -> bool {
        let Places { counts, seated } = &*self.places;
        let own = counts[self.thread].load(Ordering::Relaxed);
        if own == 0 || counts.len() == 1 {
            return true;
        }
        let seated = seated.load(Ordering::Relaxed);
        let since = match self.polite_since {
            Some((since, before)) if before == seated => since,
            Some(_) | None => now,
        };
        self.polite_since = Some((since, seated));
        let has_fewer = self.places.counts().any(|count| count < own);
        now.duration_since(since) > if has_fewer { 2 * COURTESY } else { COURTESY }
    }

    /// The thread has so many clients now: [`Hooks::on_clients`](super::Hooks::on_clients).
    pub fn note(&mut self, count: usize) {
        self.polite_since = None;
        let before = self.places.counts[self.thread].swap(count, Ordering::Relaxed);
        self.places.seated.fetch_add(count.saturating_sub(before), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TURN: Duration = Duration::from_micros(10);

    struct Hall {
        ushers: Vec<Usher>,
        counts: Vec<usize>,
        now: Instant,
    }

    impl Hall {
        fn new(counts: &[usize]) -> Self {
            let places = Arc::new(Places::new(counts.len()));
            let ushers = (0..counts.len()).map(|thread| Usher::new(Arc::clone(&places), thread)).collect();
            let mut hall = Self { ushers, counts: vec![0; counts.len()], now: Instant::now() };
            (0..counts.len()).for_each(|thread| hall.note(thread, counts[thread]));
            hall
        }

        fn note(&mut self, thread: usize, count: usize) {
            self.counts[thread] = count;
            self.ushers[thread].note(count);
        }

        /// A client comes, a minute after the one before; who takes it.
        fn seat(&mut self) -> usize {
            self.now += Duration::from_secs(60);
            loop {
                let now = self.now;
                if let Some(taker) = self.ushers.iter_mut().position(|usher| usher.may_accept_at(now)) {
                    self.note(taker, self.counts[taker] + 1);
                    return taker;
                }
                self.now += TURN;
            }
        }
    }

    #[test]
    fn whoever_has_fewest_takes_the_next() {
        let mut hall = Hall::new(&[0; 3]);
        for _ in 0..9 {
            let before = hall.counts.clone();
            let taker = hall.seat();
            assert_eq!(Some(&before[taker]), before.iter().min(), "{before:?}, {taker} takes another one");
        }
        assert_eq!((&hall.counts[..], hall.ushers[0].places.total()), (&[3; 3][..], 9));
    }

    #[test]
    fn one_that_sees_a_client_go_takes_the_next() {
        let mut hall = Hall::new(&[1, 1]);
        let now = hall.now;
        assert!(!hall.ushers[0].may_accept_at(now), "the other one may have none any more");
        hall.note(1, 0);
        assert!(hall.ushers[1].may_accept_at(now + TURN));
    }

    #[test]
    fn a_client_that_another_took_is_waited_for_no_more() {
        let mut hall = Hall::new(&[1, 1]);
        let now = hall.now;
        assert!(!hall.ushers[0].may_accept_at(now));
        hall.note(1, 2);
        hall.note(1, 0);
        assert!(!hall.ushers[0].may_accept_at(now + 5 * COURTESY), "this is the next one");
        assert!(hall.ushers[0].may_accept_at(now + 8 * COURTESY), "nobody else takes it");
    }

    #[test]
    fn who_is_turned_away_does_not_keep_the_next_waiting() {
        let mut hall = Hall::new(&[2, 1]);
        let now = hall.now;
        assert!(!hall.ushers[0].may_accept_at(now));
        let later = now + 3 * COURTESY;
        assert!(
            hall.ushers[0].may_accept_at(later) && hall.ushers[0].may_accept_at(later),
            "one, and another"
        );
    }

    #[test]
    fn a_thread_alone_takes_all() {
        let mut alone = Hall::new(&[0]);
        (0..9).for_each(|_| assert_eq!(alone.seat(), 0));
    }
}
