//! The side of the sockets.

use super::lane::Lane;
use super::{Answer, Ask, BUFFER_BYTES, Bell, Landing, Shape, Size, buffer_bytes_beside_shards};
use crate::extents::weave_extents;
use crate::{Done, Volume, VolumeError, VolumeRequest};
use block::slab::{Key, Slab};
use block::{Buffer, Fan, Interleave, Place, Pool, Share, Slot};
use std::cell::Cell;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

/// A request under way.
#[derive(Default)]
struct Flight {
    tag: u64,
    /// Their memory is with the request.
    slots: Vec<Slot>,
    /// Reused.
    buffers: Vec<Buffer>,
}

/// A volume whose shards other threads run; see the module's documentation.
pub struct RemoteVolume {
    shape: Shape,
    size: Arc<Size>,
    pool: Pool,
    lanes: Vec<Lane>,
    /// Of each shard, the lane to the thread that runs it.
    lane_of: Vec<usize>,
    flights: Slab<Flight>,
    /// What several shards do together.
    fan: Fan<VolumeError>,
    /// What was over at once.
    early: Vec<Done>,
    own: Arc<Bell>,
    dozed: Cell<bool>,
}

impl RemoteVolume {
    /// A volume, of that size at any time, whose shards are nowhere yet: each is to be on a thread that
    /// [`RemoteVolume::connect`] is told of before there are requests.
    pub fn new(shape: Shape, size: Arc<Size>) -> io::Result<Self> {
        Ok(Self::with(shape, size, BUFFER_BYTES, Arc::new(Bell::new()?)))
    }

    /// The same for one of so many threads that run the shards themselves, which is woken by `own`: the
    /// buffers are shared out among them.
    pub fn beside_shards(shape: Shape, size: Arc<Size>, threads: usize, own: Arc<Bell>) -> Self {
        Self::with(shape, size, buffer_bytes_beside_shards(threads), own)
    }

    fn with(shape: Shape, size: Arc<Size>, buffer_bytes: usize, own: Arc<Bell>) -> Self {
        Self {
            shape,
            size,
            pool: Pool::in_pieces(shape.chunk_bytes, buffer_bytes / shape.chunk_bytes),
            lanes: Vec::new(),
            lane_of: vec![usize::MAX; shape.map.count().into()],
            flights: Slab::default(),
            fan: Fan::default(),
            early: Vec::new(),
            own,
            dozed: Cell::new(false),
        }
    }

    /// A thread that wakes up when `bell` rings runs `shards`; what is asked of them arrives there.
    pub fn connect(&mut self, shards: impl IntoIterator<Item = usize>, bell: &Arc<Bell>) -> Landing {
        let (lane, landing) = Lane::new(Arc::clone(bell), Arc::clone(&self.own));
        shards.into_iter().for_each(|shard| self.lane_of[shard] = self.lanes.len());
        self.lanes.push(lane);
        landing
    }

    /// The bell that wakes this side.
    pub fn bell(&self) -> Arc<Bell> {
        Arc::clone(&self.own)
    }

    /// What lies behind a share of a range; data, if its shard does not say in time, or `goes_on`, which is
    /// asked again and again meanwhile, says that there is no time.
    pub fn extents(&self, share: Share, goes_on: impl Fn() -> bool) -> Vec<(u64, bool)> {
        self.lanes[self.lane_of[usize::from(share.shard)]].extents(share, goes_on)
    }

    /// How addresses go to the shards now.
    pub fn map(&self) -> Interleave {
        self.shape.map.grown_to(self.size.bytes())
    }

    fn lane(&mut self, shard: u16) -> &mut Lane {
        &mut self.lanes[self.lane_of[usize::from(shard)]]
    }

    /// Asks one shard for all of a read or write.
    fn transfer(&mut self, tag: u64, place: Place, request: VolumeRequest, slots: &[Slot]) {
        let key = self.flights.reuse(Flight::default);
        let flight = &mut self.flights[key];
        flight.tag = tag;
        flight.slots.clear();
        flight.slots.extend_from_slice(slots);
        let mut buffers = std::mem::take(&mut flight.buffers);
        buffers.extend(slots.iter().map(|&slot| self.pool.lend(slot)));
        self.lane(place.shard).push(Ask { tag: key.index().into(), shard: place.shard, request, buffers });
    }

    /// Asks each of several shards for its share.
    fn share_out(
        &mut self,
        tag: u64,
        shares: impl Iterator<Item = Share> + Clone,
        part: impl Fn(Share) -> VolumeRequest,
    ) {
        let count = shares.clone().count();
        if count == 0 {
            return self.early.push(Done { tag, result: Ok(()) });
        }
        let tag = self.fan.begin(tag, count);
        for share in shares {
            let request = part(share);
            self.lane(share.shard).push(Ask { tag, shard: share.shard, request, buffers: Vec::new() });
        }
    }

    /// A shard has answered; the request that is over with that, if one is.
    fn land(&mut self, answer: Answer) -> Option<Done> {
        let Answer { tag, result, mut buffers } = answer;
        if Fan::<VolumeError>::is_part(tag) {
            return self.fan.end(tag, result).map(|(tag, result)| Done { tag, result });
        }
        let key = Key::from_index(u32::try_from(tag).expect("tags of transfers are made here"));
        let flight = &mut self.flights[key];
        debug_assert_eq!(flight.slots.len(), buffers.len(), "what was lent comes back");
        for (&slot, buffer) in flight.slots.iter().zip(buffers.drain(..)) {
            self.pool.give_back(slot, buffer);
        }
        flight.buffers = buffers;
        let tag = flight.tag;
        self.flights.release(key);
        Some(Done { tag, result })
    }
}

impl Volume for RemoteVolume {
    fn size_bytes(&self) -> u64 {
        self.size.bytes()
    }

    fn chunk_bytes(&self) -> usize {
        self.shape.chunk_bytes
    }

    fn untorn_bytes(&self) -> u64 {
        self.shape.untorn_bytes
    }

    fn unit_bytes(&self) -> Option<u64> {
        (self.shape.map.count() > 1).then(|| self.shape.map.run_bytes(0))
    }

    fn read_only(&self) -> bool {
        self.shape.read_only
    }

    fn pool(&mut self) -> &mut Pool {
        &mut self.pool
    }

    fn start(&mut self, tag: u64, request: VolumeRequest, slots: &[Slot]) {
        let map = self.map();
        match request {
            VolumeRequest::Read { offset_bytes, length_bytes } => {
                let place = map.place(offset_bytes);
                let what = VolumeRequest::Read { offset_bytes: place.offset_bytes, length_bytes };
                self.transfer(tag, place, what, slots);
            }
            VolumeRequest::Write { offset_bytes, length_bytes, durability } => {
                let place = map.place(offset_bytes);
                let what =
                    VolumeRequest::Write { offset_bytes: place.offset_bytes, length_bytes, durability };
                self.transfer(tag, place, what, slots);
            }
            VolumeRequest::Flush => {
                let all = (0..map.count()).map(|shard| Share { shard, offset_bytes: 0, length_bytes: 0 });
                self.share_out(tag, all, |_| VolumeRequest::Flush);
            }
            VolumeRequest::Cache { .. } => self.early.push(Done { tag, result: Ok(()) }),
            VolumeRequest::Discard { offset_bytes, length_bytes, durability } => {
                self.share_out(tag, map.shares(offset_bytes, length_bytes), |share| {
                    let Share { offset_bytes, length_bytes, .. } = share;
                    VolumeRequest::Discard { offset_bytes, length_bytes, durability }
                });
            }
            VolumeRequest::WriteZeroes { offset_bytes, length_bytes, punch, durability } => {
                self.share_out(tag, map.shares(offset_bytes, length_bytes), |share| {
                    let Share { offset_bytes, length_bytes, .. } = share;
                    VolumeRequest::WriteZeroes { offset_bytes, length_bytes, punch, durability }
                });
            }
        }
    }

    fn drive(&mut self, done: &mut Vec<Done>) {
        if self.dozed.replace(false) {
            self.own.wake();
        }
        done.append(&mut self.early);
        for index in 0..self.lanes.len() {
            while let Some(answer) = self.lanes[index].next_answer() {
                done.extend(self.land(answer));
            }
            self.lanes[index].tell();
        }
    }

    fn idle_for(&self) -> Option<u64> {
        if !self.early.is_empty() || self.lanes.iter().any(Lane::has_news_for_other_side) {
            return Some(0);
        }
        self.dozed.set(true);
        self.own.doze();
        // Asks that found no room go on when answers come.
        self.lanes.iter().any(Lane::has_answers).then_some(0)
    }

    fn wake_fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.own.as_fd())
    }

    fn allocated(&self, offset_bytes: u64, length_bytes: u64, out: &mut Vec<(u64, bool)>) {
        weave_extents(self.map(), offset_bytes, length_bytes, |share| self.extents(share, || true), out);
    }
}
