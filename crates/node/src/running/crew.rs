//! Threads that run shards, all together.
//!
//! Whoever looks after the array has them lend him their shards, all threads at once: then nothing moves, and
//! what he does with them needs no lock. A thread that stands still is waited for a moment, once: then the
//! others get theirs back, and are not asked again before it has lent its own.

use super::hand::{Hand, Loan, Terms, WorkerTask};
use crate::driver::{Devices, Idle};
use crate::error::Error;
use crate::volume::{Clock, ServedShard, Use};
use block::DevIndex;
use device::{DeviceCounters, Members, Membership as _};
use front::{Bell, RemoteVolume};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long the shards of all threads stand still for one that does not lend its own. What a thread does in a
/// turn takes less.
const PATIENCE: Duration = Duration::from_millis(200);
/// The same where it was not enough again and again, as on a machine that has much else to do.
const PATIENCE_MAX: Duration = Duration::from_secs(2);

/// See the module's documentation.
pub struct Crew {
    pub(super) hands: Vec<Hand>,
    /// Which were asked for their shards and have not lent them yet.
    owing: Vec<bool>,
    /// How long they are waited for the next time.
    patience: Duration,
    /// The shards, in order, while they are on loan,
    lent: Vec<ServedShard<()>>,
    /// and what passed to their devices and from them; the members as each has them open at any time.
    counters: Vec<Vec<DeviceCounters>>,
    members: Vec<Members>,
    /// Rung when there is something to see.
    bell: Arc<Bell>,
}

impl Crew {
    /// So many threads, to which the shards go in turn.
    pub fn hire(shards: Vec<Idle>, count: usize, clock: Clock, usage: Use) -> Result<Self, Error> {
        let bell = Arc::new(Bell::new()?);
        let members = shards.iter().map(|shard| shard.members().share()).collect();
        let of_threads = deal(shards, count).into_iter().enumerate();
        let hands = of_threads.map(|(first, shards)| {
            Hand::start(shards, Terms { clock, usage, numbers: (first, count) }, Arc::clone(&bell))
        });
        let hands = hands.collect::<Result<Vec<_>, _>>()?;
        let owing = vec![false; hands.len()];
        Ok(Self { hands, owing, patience: PATIENCE, lent: Vec::new(), counters: Vec::new(), members, bell })
    }

    /// What is rung when there is something to see.
    pub fn bell(&self) -> &Arc<Bell> {
        &self.bell
    }

    /// Whether there is; not before all can be looked at.
    pub fn has_news(&self) -> bool {
        self.stands_still().is_none() && self.hands.iter().any(Hand::has_news)
    }

    /// The number of the first shard of a thread that stands still.
    pub fn stands_still(&self) -> Option<usize> {
        self.owing.iter().position(|owes| *owes)
    }

    /// Has the threads answer what is asked through `remote`.
    pub fn connect(&self, remote: &mut RemoteVolume) -> Result<(), Error> {
        let (count, shards) = (self.hands.len(), self.members.len());
        let connect = |(first, hand): (usize, &Hand)| {
            hand.open(remote.connect((first..shards).step_by(count), hand.bell()))
        };
        self.hands.iter().enumerate().try_for_each(connect)
    }

    /// How many threads there are.
    pub fn count(&self) -> usize {
        self.hands.len()
    }

    /// What wakes one of the threads.
    pub fn bell_of(&self, thread: usize) -> &Arc<Bell> {
        self.hands[thread].bell()
    }

    /// Has a thread do something beside its shards, until that is over.
    pub fn serve(&self, thread: usize, task: WorkerTask) -> Result<(), Error> {
        self.hands[thread].serve(task)
    }

    /// Has the shards lent by all threads, however long it takes.
    pub fn borrow(&mut self) -> Result<(), Error> {
        while !self.borrow_within(None)? {}
        Ok(())
    }

    /// Has the shards lent by all threads, unless one of them stands still; whether they are here.
    pub fn try_borrow(&mut self) -> Result<bool, Error> {
        self.borrow_within(Some(self.patience))
    }

    fn borrow_within(&mut self, patience: Option<Duration>) -> Result<bool, Error> {
        let mut loans: Vec<Option<Loan>> = self.hands.iter().map(|_| None).collect();
        // Others are not disturbed for who was waited for already.
        self.take_loans(&mut loans, patience.map(|_| Instant::now()))?;
        if self.stands_still().is_none() {
            // What is to be seen from now on is looked at another time.
            self.hands.iter().for_each(Hand::clear_news);
            // All are asked before one is waited for.
            let mut asked = Ok(());
            for (owes, (hand, loan)) in self.owing.iter_mut().zip(self.hands.iter().zip(&loans)) {
                let is_asked = if loan.is_none() { hand.ask_loan() } else { Ok(()) };
                *owes = loan.is_none() && is_asked.is_ok();
                asked = asked.and(is_asked);
            }
            self.take_loans(&mut loans, patience.map(|patience| Instant::now() + patience))?;
            let is_late = self.owing.contains(&true);
            self.patience = if is_late { (2 * self.patience).min(PATIENCE_MAX) } else { PATIENCE };
            if asked.is_err() {
                self.call_off(loans);
                return asked.map(|()| false);
            }
        }
        if self.stands_still().is_some() {
            self.call_off(loans);
            return Ok(false);
        }
        let loans = loans.into_iter().flatten();
        let mut of_threads: Vec<_> = loans.map(|loan| loan.shards.into_iter().zip(loan.counters)).collect();
        for number in 0..self.members.len() {
            let of_thread = of_threads.get_mut(number % self.hands.len());
            let (shard, counters) = of_thread.and_then(Iterator::next).ok_or(Error::ShardThread)?;
            self.lent.push(shard);
            self.counters.push(counters);
        }
        Ok(true)
    }

    /// Waits until then for those who owe their shards. If one is gone, the others get theirs back.
    fn take_loans(&mut self, loans: &mut Vec<Option<Loan>>, until: Option<Instant>) -> Result<(), Error> {
        let mut is_gone = false;
        for ((owes, hand), loan) in self.owing.iter_mut().zip(&self.hands).zip(&mut *loans) {
            if *owes {
                let found = hand.take_loan(until);
                is_gone |= found.is_err();
                *loan = found.unwrap_or(None);
                *owes = loan.is_none();
            }
        }
        if is_gone {
            self.call_off(std::mem::take(loans));
            return Err(Error::ShardThread);
        }
        Ok(())
    }

    /// A thread is gone, or stands still: the others get back what they lent, and go on.
    fn call_off(&self, loans: Vec<Option<Loan>>) {
        for (hand, loan) in self.hands.iter().zip(loans) {
            // Whoever has gone meanwhile, too, needs nothing back.
            let _ = loan.map(|loan| hand.give_back(loan.shards));
        }
    }

    /// Gives them back.
    pub fn give_back(&mut self) -> Result<(), Error> {
        let of_threads = deal(self.lent.drain(..), self.hands.len());
        self.counters.clear();
        // All get theirs, also when one of them is not there any more.
        let given = self.hands.iter().zip(of_threads).map(|(hand, shards)| hand.give_back(shards));
        given.collect::<Vec<_>>().into_iter().collect()
    }

    /// The shards, while they are on loan.
    pub fn lent(&self) -> &[ServedShard<()>] {
        &self.lent
    }

    /// The shards, to be changed.
    pub fn lent_mut(&mut self) -> &mut [ServedShard<()>] {
        &mut self.lent
    }

    /// The members that a shard has open.
    pub fn members(&self, shard: usize) -> &Members {
        &self.members[shard]
    }

    /// What passed to a member and from it, of each shard.
    pub fn counters_of(&self, dev: DevIndex) -> impl Iterator<Item = DeviceCounters> {
        self.counters.iter().filter_map(move |counters| counters.get(dev.index()).copied())
    }

    /// Does something with the devices of a shard that is on loan, on their thread.
    pub fn with_devices<R: Send + 'static>(
        &mut self,
        shard: usize,
        work: impl FnOnce(&mut Devices) -> R + Send + 'static,
    ) -> Result<R, Error> {
        let (hand, seat) = (&self.hands[shard % self.hands.len()], shard / self.hands.len());
        let (result, members) = hand.have_done(move |devices| {
            let devices = &mut devices[seat];
            (work(devices), devices.members().share())
        })?;
        self.members[shard] = members;
        Ok(result)
    }

    /// Stops all shards in order, also when some of them could not be.
    pub fn stop(mut self) -> Result<(), Error> {
        let mut loans: Vec<Option<Loan>> = self.hands.iter().map(|_| None).collect();
        if self.take_loans(&mut loans, None).is_ok() {
            self.call_off(loans);
        }
        let asked = self.hands.iter().map(Hand::ask_stop).collect::<Vec<_>>();
        let stopped = self.hands.into_iter().map(Hand::finish).collect::<Vec<_>>();
        // What a thread died of is said before that it is not there to be asked.
        stopped.into_iter().chain(asked).collect()
    }
}

/// Deals things out to so many, in turn.
fn deal<T>(things: impl IntoIterator<Item = T>, count: usize) -> Vec<Vec<T>> {
    let mut dealt: Vec<Vec<T>> = (0..count).map(|_| Vec::new()).collect();
    things.into_iter().enumerate().for_each(|(number, thing)| dealt[number % count].push(thing));
    dealt
}

#[cfg(test)]
pub(super) mod tests;
