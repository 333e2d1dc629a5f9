//! A listener that whoever can reach it cannot make grow: so many connections at a time, and none of them
//! stays on which nothing moves, or that is asking for long. When all places are taken, whoever was silent
//! for longest makes room for the next one, so that silence keeps nobody out.

use axum::serve::Listener;
use std::collections::BTreeMap;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::time::{Instant, Sleep, sleep, timeout_at};

/// Connections at a time: many times what browsers and Prometheus open.
const CONNECTIONS_MAX: usize = 128;
/// Who was silent for so long makes room when that is needed. Nobody else does: a page that is being watched
/// hears something every second, and whoever has just come is about to ask.
const SILENT_MAX: Duration = Duration::from_secs(5);
/// Longer than the time between two readings of any Prometheus that keeps its connection. A page that is
/// being watched hears something every second.
const IDLE_MAX: Duration = Duration::from_secs(120);
/// When no connection can be accepted (the process has no file descriptor left), it is tried again so soon.
const RETRY: Duration = Duration::from_millis(500);

/// See the module's documentation.
pub struct Guarded {
    listener: TcpListener,
    places: Arc<Places>,
}

impl Guarded {
    /// Guards a listener.
    pub fn new(listener: TcpListener) -> Self {
        Self { listener, places: Arc::new(Places::new(CONNECTIONS_MAX, SILENT_MAX)) }
    }
}

impl Listener for Guarded {
    type Io = Held<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        loop {
            match self.listener.accept().await {
                Ok((stream, address)) => {
                    let place = Places::take(&self.places).await;
                    return (Held::new(stream, IDLE_MAX, place), address);
                }
                Err(_) => sleep(RETRY).await,
            }
        }
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        self.listener.local_addr()
    }
}

/// Who is there.
struct Places {
    places_max: usize,
    silent_max: Duration,
    taken: Mutex<Taken>,
    freed: Notify,
}

/// By number, in the order in which they came. Who is let go is in it no longer.
#[derive(Default)]
struct Taken {
    next: u64,
    by_number: BTreeMap<u64, Occupant>,
}

struct Occupant {
    /// When something was asked or answered last.
    moved: Instant,
    /// Of the task that waits for something to move.
    waker: Option<Waker>,
}

impl Places {
    fn new(places_max: usize, silent_max: Duration) -> Self {
        Self { places_max, silent_max, taken: Mutex::default(), freed: Notify::new() }
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a place.
    async fn take(places: &Arc<Self>) -> Place {
        loop {
            match places.try_take() {
                Ok(number) => return Place { number, places: Arc::clone(places) },
                // Whether it was freed or not, it is looked at again.
                Err(at) => drop(timeout_at(at, places.freed.notified()).await),
            }
        }
    }

    /// The number of a place, or when somebody will have been silent for long enough to make room.
    fn try_take(&self) -> Result<u64, Instant> {
        let now = Instant::now();
        let mut taken = self.taken();
        if taken.by_number.len() >= self.places_max
            && let Some((&number, silent)) = taken.by_number.iter().min_by_key(|(_, who)| who.moved)
        {
            let at = silent.moved + self.silent_max;
            if now < at {
                return Err(at);
            }
            if let Some(waker) = taken.by_number.remove(&number).and_then(|who| who.waker) {
                waker.wake();
            }
        }
        let number = taken.next;
        taken.next += 1;
        taken.by_number.insert(number, Occupant { moved: now, waker: None });
        Ok(number)
    }
}

/// A place that somebody has.
struct Place {
    number: u64,
    places: Arc<Places>,
}

impl Place {
    fn note_moved(&self) {
        if let Some(who) = self.places.taken().by_number.get_mut(&self.number) {
            who.moved = Instant::now();
        }
    }

    /// Has `waker` woken when somebody else needs the place; whether it is still there.
    fn wait(&self, waker: &Waker) -> bool {
        let mut taken = self.places.taken();
        let who = taken.by_number.get_mut(&self.number);
        who.map(|who| who.waker = Some(waker.clone())).is_some()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if self.places.taken().by_number.remove(&self.number).is_some() {
            self.places.freed.notify_one();
        }
    }
}

/// Receiving or sending.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Way {
    In,
    Out,
}

/// A connection that breaks when for long nothing was asked on it, or nothing answered: a request that comes
/// byte by byte has no more time than one that does not come on.
pub struct Held<S> {
    stream: S,
    idle_max: Duration,
    end: Pin<Box<Sleep>>,
    /// What was done last.
    last: Way,
    place: Place,
}

impl<S> Held<S> {
    fn new(stream: S, idle_max: Duration, place: Place) -> Self {
        Self { stream, idle_max, end: Box::pin(sleep(idle_max)), last: Way::Out, place }
    }

    /// What came of an attempt to receive or send something.
    fn moved<T>(
        &mut self,
        context: &mut Context<'_>,
        polled: Poll<io::Result<T>>,
        way: Way,
    ) -> Poll<io::Result<T>> {
        if polled.is_ready() {
            // A request has its time from its first bytes on.
            if (self.last, way) != (Way::In, Way::In) {
                self.end.as_mut().reset(Instant::now() + self.idle_max);
                self.place.note_moved();
            }
            self.last = way;
            return polled;
        }
        if !self.place.wait(context.waker()) || self.end.as_mut().poll(context).is_ready() {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        Poll::Pending
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Held<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_read(context, into);
        self.moved(context, polled, Way::In)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Held<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.moved(context, polled, Way::Out)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_shutdown(context);
        self.moved(context, polled, Way::Out)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

    fn places() -> Arc<Places> {
        Arc::new(Places::new(1, Duration::ZERO))
    }

    async fn hold(places: &Arc<Places>, idle_max: Duration) -> (Held<DuplexStream>, DuplexStream) {
        let (ours, theirs) = duplex(16);
        (Held::new(ours, idle_max, Places::take(places).await), theirs)
    }

    fn is_taken(places: &Places) -> bool {
        !places.taken().by_number.is_empty()
    }

    fn run(test: impl Future<Output = ()>) {
        tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(test);
    }

    #[test]
    fn who_says_nothing_is_cut_off_and_its_place_is_free() {
        run(async {
            let places = places();
            let (mut ours, _theirs) = hold(&places, Duration::from_millis(50)).await;
            let error = ours.read_u8().await.unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::TimedOut);
            assert!(is_taken(&places));
            drop(ours);
            assert!(!is_taken(&places));
        });
    }

    #[test]
    fn who_is_silent_for_longest_makes_room() {
        run(async {
            let places = Arc::new(Places::new(2, Duration::ZERO));
            let (mut asking, mut asker) = hold(&places, IDLE_MAX).await;
            let (mut silent, _theirs) = hold(&places, IDLE_MAX).await;
            asker.write_u8(b'?').await.unwrap();
            assert_eq!(asking.read_u8().await.unwrap(), b'?');
            let let_go = tokio::spawn(async move { silent.read_u8().await.unwrap_err().kind() });
            tokio::task::yield_now().await;
            let _next = hold(&places, IDLE_MAX).await;
            assert_eq!(let_go.await.unwrap(), io::ErrorKind::TimedOut);
            asking.write_u8(b'!').await.unwrap();
            assert_eq!(asker.read_u8().await.unwrap(), b'!');
            assert_eq!(places.taken().by_number.len(), 2);
        });
    }

    #[test]
    fn who_has_just_come_is_not_sent_away_for_the_next_one() {
        run(async {
            let places = Arc::new(Places::new(1, IDLE_MAX));
            let first = Places::take(&places).await;
            assert!(places.try_take().is_err());
            let next = tokio::spawn({
                let places = Arc::clone(&places);
                async move { Places::take(&places).await.number }
            });
            tokio::task::yield_now().await;
            drop(first);
            assert_eq!(next.await.unwrap(), 1);
        });
    }

    #[test]
    fn who_does_not_listen_is_cut_off() {
        run(async {
            let (mut ours, _theirs) = hold(&places(), Duration::from_millis(50)).await;
            let error = ours.write_all(&[7; 64]).await.unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        });
    }

    #[test]
    fn who_asks_byte_by_byte_is_cut_off() {
        run(async {
            let places = places();
            let (mut ours, mut theirs) = hold(&places, Duration::from_millis(300)).await;
            let hear = async move { while ours.read_u8().await.is_ok() {} };
            let say = async {
                while is_taken(&places) && theirs.write_u8(b'x').await.is_ok() {
                    sleep(Duration::from_millis(30)).await;
                }
            };
            let both = async { futures_util::future::join(hear, say).await };
            assert!(tokio::time::timeout(Duration::from_secs(30), both).await.is_ok(), "it is still there");
        });
    }

    #[test]
    fn who_says_something_now_and_then_stays() {
        run(async {
            let (mut ours, mut theirs) = hold(&places(), Duration::from_millis(300)).await;
            for byte in 0..5 {
                sleep(Duration::from_millis(100)).await;
                theirs.write_u8(byte).await.unwrap();
                assert_eq!(ours.read_u8().await.unwrap(), byte);
            }
        });
    }
}
