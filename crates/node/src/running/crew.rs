//! Threads that run shards, all together.
//!
//! Whoever looks after the array has them lend him their shards, all threads at once: then nothing moves, and
//! what he does with them needs no lock.

use super::hand::{Hand, Loan, Terms};
use crate::driver::{Devices, Idle};
use crate::error::Error;
use crate::volume::{Clock, ServedShard, Use};
use block::DevIndex;
use device::{DeviceCounters, Members, Membership as _};
use front::{Bell, RemoteVolume};
use std::sync::Arc;

/// See the module's documentation.
pub struct Crew {
    hands: Vec<Hand>,
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
        let hands = hands.collect::<Result<_, _>>()?;
        Ok(Self { hands, lent: Vec::new(), counters: Vec::new(), members, bell })
    }

    /// What is rung when there is something to see.
    pub fn bell(&self) -> &Arc<Bell> {
        &self.bell
    }

    /// Whether there is.
    pub fn has_news(&self) -> bool {
        self.hands.iter().any(Hand::has_news)
    }

    /// Has the threads answer what is asked through `remote`.
    pub fn connect(&self, remote: &mut RemoteVolume) -> Result<(), Error> {
        let (count, shards) = (self.hands.len(), self.members.len());
        let connect = |(first, hand): (usize, &Hand)| {
            hand.open(remote.connect((first..shards).step_by(count), hand.bell()))
        };
        self.hands.iter().enumerate().try_for_each(connect)
    }

    /// Has the shards lent by all threads.
    pub fn borrow(&mut self) -> Result<(), Error> {
        // What is to be seen from now on is looked at another time.
        self.hands.iter().for_each(Hand::clear_news);
        // All are asked before one is waited for.
        let asked: Vec<_> = self.hands.iter().map(Hand::ask_loan).collect();
        let loans = self.hands.iter().zip(asked).map(|(hand, asked)| asked.and_then(|()| hand.take_loan()));
        let loans: Vec<_> = loans.collect();
        if loans.iter().any(Result::is_err) {
            return Err(self.call_off(loans));
        }
        let loans = loans.into_iter().flatten();
        let mut of_threads: Vec<_> = loans.map(|loan| loan.shards.into_iter().zip(loan.counters)).collect();
        for number in 0..self.members.len() {
            let (shard, counters) = of_threads[number % self.hands.len()].next().ok_or(Error::ShardThread)?;
            self.lent.push(shard);
            self.counters.push(counters);
        }
        Ok(())
    }

    /// A thread is gone: the others get back what they lent, and go on until they are stopped.
    fn call_off(&self, loans: Vec<Result<Loan, Error>>) -> Error {
        for (hand, loan) in self.hands.iter().zip(loans) {
            // Whoever has gone meanwhile, too, needs nothing back.
            let _ = loan.and_then(|loan| hand.give_back(loan.shards));
        }
        Error::ShardThread
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
    pub fn stop(self) -> Result<(), Error> {
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
