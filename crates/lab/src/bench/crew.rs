//! Threads that each own what they work on.
//!
//! What a thread works on is made by it, stays with it and is dropped by it: its memory comes from that
//! thread's part of the allocator, and no line of it is written by another thread. The threads meet only
//! before a measurement, and results are handed over after it. Each has a processor of its own, if there are
//! as many: left to themselves two of them were seen to share one for tens of milliseconds while the other
//! had nothing to do. A crew of one is no thread at all, but the caller's.

use crate::failure::Failure;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Barrier, OnceLock};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

/// From the moment at which all have met until they begin: all have seen by then when that is.
const LEAD: Duration = Duration::from_micros(200);

type Order<T> = Box<dyn FnOnce(&mut T) + Send>;

/// A thread that waits for orders; what it owns is with it.
struct Hand<T> {
    orders: Sender<Order<T>>,
    thread: JoinHandle<()>,
}

/// See the module's documentation.
pub struct Crew<T> {
    /// What the caller works on, if it is alone.
    own: Option<T>,
    hands: Vec<Hand<T>>,
}

impl<T: 'static> Crew<T> {
    /// So many threads, at least one; each makes what it owns, from its number.
    pub fn new(
        count: u16,
        make: impl Fn(u16) -> Result<T, Failure> + Clone + Send + 'static,
    ) -> Result<Self, Failure> {
        if count <= 1 {
            return Ok(Self { own: Some(make(0)?), hands: Vec::new() });
        }
        let processors = processors(count.into());
        let (mut crew, mut made) = (Self { own: None, hands: Vec::new() }, Vec::new());
        for number in 0..count {
            let processor = processors.get(usize::from(number)).copied();
            let (orders, taken) = channel::<Order<T>>();
            let (tell, told) = channel();
            let make = make.clone();
            let work = move || {
                processor.into_iter().for_each(keep_to);
                match make(number) {
                    Ok(mut own) => {
                        drop(tell.send(Ok(())));
                        taken.iter().for_each(|order| order(&mut own));
                    }
                    Err(failure) => drop(tell.send(Err(failure))),
                }
            };
            let thread = Builder::new().name(format!("bench-{number}")).spawn(work)?;
            crew.hands.push(Hand { orders, thread });
            made.push(told);
        }
        made.iter().map(result_of).collect::<Result<Vec<()>, Failure>>()?;
        Ok(crew)
    }

    /// Has every thread do something to what it owns; the results by number.
    pub fn each<R: Send + 'static>(
        &mut self,
        job: impl Fn(&mut T) -> Result<R, Failure> + Clone + Send + 'static,
    ) -> Result<Vec<R>, Failure> {
        if let Some(own) = &mut self.own {
            return Ok(vec![job(own)?]);
        }
        let mut pending = Vec::new();
        for hand in &self.hands {
            let (tell, told) = channel();
            let job = job.clone();
            let order: Order<T> = Box::new(move |own| drop(tell.send(job(own))));
            hand.orders.send(order).expect("a thread ends before its crew only by a bug of ours");
            pending.push(told);
        }
        // All of them, so that none works on when the first failure is told.
        let results: Vec<Result<R, Failure>> = pending.iter().map(result_of).collect();
        results.into_iter().collect()
    }

    /// The same, begun by all at the same moment, which they are told; one alone begins when it likes.
    pub fn together<R: Send + 'static>(
        &mut self,
        job: impl Fn(&mut T, Option<Instant>) -> Result<R, Failure> + Clone + Send + 'static,
    ) -> Result<Vec<R>, Failure> {
        if self.own.is_some() {
            return self.each(move |own| job(own, None));
        }
        let gate = Arc::new(Gate { barrier: Barrier::new(self.hands.len()), start: OnceLock::new() });
        self.each(move |own| job(own, Some(gate.pass())))
    }
}

impl<T> Drop for Crew<T> {
    fn drop(&mut self) {
        for Hand { orders, thread } in self.hands.drain(..) {
            drop(orders);
            // If it panicked, that was said, and whoever waited for its result has noticed.
            let _ = thread.join();
        }
    }
}

/// As many processors as there are threads, of those that this process may use; none if there are fewer.
fn processors(count: usize) -> Vec<usize> {
    let Ok(set) = sched_getaffinity(None) else {
        return Vec::new();
    };
    let found: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|&at| set.is_set(at)).take(count).collect();
    if found.len() == count { found } else { Vec::new() }
}

/// Has this thread run on one processor alone. Where that is refused it runs anywhere.
fn keep_to(processor: usize) {
    let mut set = CpuSet::new();
    set.set(processor);
    let _ = sched_setaffinity(None, &set);
}

/// What a thread answered.
fn result_of<R>(told: &Receiver<Result<R, Failure>>) -> Result<R, Failure> {
    told.recv().expect("a thread answers every order, but for a bug of ours")
}

/// Where all wait for each other, once.
struct Gate {
    barrier: Barrier,
    start: OnceLock<Instant>,
}

impl Gate {
    /// Waits until all are here, and then for the moment at which they begin.
    fn pass(&self) -> Instant {
        if self.barrier.wait().is_leader() {
            self.start.get_or_init(|| Instant::now() + LEAD);
        }
        self.barrier.wait();
        let start = *self.start.get().expect("the leader said so before it came here again");
        while Instant::now() < start {
            std::hint::spin_loop();
        }
        start
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use super::*;
    use std::thread::{ThreadId, current};

    type Own = (u16, ThreadId, u64);

    fn crew(count: u16) -> Crew<Own> {
        Crew::new(count, |number| Ok((number, current().id(), 0))).unwrap()
    }

    #[test]
    fn each_thread_keeps_what_it_made() {
        for count in [1, 2, 5] {
            let mut crew = crew(count);
            assert_eq!(crew.own.as_ref().map(|own| own.1), (count == 1).then(|| current().id()));
            for round in 1..4 {
                let job = |own: &mut Own| {
                    assert_eq!(own.1, current().id());
                    own.2 += 1;
                    Ok((own.0, own.2))
                };
                assert_eq!(crew.each(job).unwrap(), (0..count).map(|i| (i, round)).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn all_begin_at_the_same_moment() {
        let starts = crew(3).together(|_, start| Ok((start, Instant::now()))).unwrap();
        assert!(starts.iter().all(|&(start, now)| start == starts[0].0 && Some(now) >= start));
        assert_eq!(crew(1).together(|_, start| Ok(start)).unwrap(), [None]);
    }

    #[test]
    fn the_first_failure_is_told_and_nobody_is_left_waiting() {
        let mut crew = crew(4);
        let failing = |own: &mut Own| if own.0 % 2 == 1 { Err(Failure::new(own.0)) } else { Ok(()) };
        assert_eq!(crew.each(failing).unwrap_err().to_string(), "1");
        let late = crew.together(move |own, _| failing(own));
        assert_eq!(late.unwrap_err().to_string(), "1");
        assert_eq!(crew.each(|own| Ok(own.0)).unwrap(), [0, 1, 2, 3]);
        for broken in [0, 2] {
            let made = Crew::new(
                3,
                move |number| {
                    if number == broken { Err(Failure::new("broken")) } else { Ok(number) }
                },
            );
            assert_eq!(made.err().map(|failure| failure.to_string()), Some("broken".to_owned()));
        }
    }
}
