//! A listener that whoever can reach it cannot make grow: so many connections at a time, and none of them
//! stays on which nothing moves, or that is asking for long.

use axum::serve::Listener;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, Sleep, sleep};

/// Connections at a time: many times what browsers and Prometheus open. More of them wait in the kernel.
const CONNECTIONS_MAX: usize = 128;
/// Longer than the time between two readings of any Prometheus that keeps its connection. A page that is
/// being watched hears something every second.
const IDLE_MAX: Duration = Duration::from_secs(120);
/// When no connection can be accepted (the process has no file descriptor left), it is tried again so soon.
const RETRY: Duration = Duration::from_millis(500);

/// See the module's documentation.
pub struct Guarded {
    listener: TcpListener,
    places: Arc<Semaphore>,
}

impl Guarded {
    /// Guards a listener.
    pub fn new(listener: TcpListener) -> Self {
        Self { listener, places: Arc::new(Semaphore::new(CONNECTIONS_MAX)) }
    }
}

impl Listener for Guarded {
    type Io = Held<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        let place = Arc::clone(&self.places).acquire_owned().await.expect("nobody closes the semaphore");
        loop {
            match self.listener.accept().await {
                Ok((stream, address)) => return (Held::new(stream, IDLE_MAX, place), address),
                Err(_) => sleep(RETRY).await,
            }
        }
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        self.listener.local_addr()
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
    _place: OwnedSemaphorePermit,
}

impl<S> Held<S> {
    fn new(stream: S, idle_max: Duration, place: OwnedSemaphorePermit) -> Self {
        Self { stream, idle_max, end: Box::pin(sleep(idle_max)), last: Way::Out, _place: place }
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
            }
            self.last = way;
            return polled;
        }
        match self.end.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
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
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    fn held(idle_max: Duration) -> (Held<tokio::io::DuplexStream>, tokio::io::DuplexStream, Arc<Semaphore>) {
        let (ours, theirs) = duplex(16);
        let places = Arc::new(Semaphore::new(1));
        let place = Arc::clone(&places).try_acquire_owned().unwrap();
        (Held::new(ours, idle_max, place), theirs, places)
    }

    fn run(test: impl Future<Output = ()>) {
        tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(test);
    }

    #[test]
    fn who_says_nothing_is_cut_off_and_its_place_is_free() {
        run(async {
            let (mut ours, _theirs, places) = held(Duration::from_millis(50));
            let error = ours.read_u8().await.unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::TimedOut);
            assert_eq!(places.available_permits(), 0);
            drop(ours);
            assert_eq!(places.available_permits(), 1);
        });
    }

    #[test]
    fn who_does_not_listen_is_cut_off() {
        run(async {
            let (mut ours, _theirs, _) = held(Duration::from_millis(50));
            let error = ours.write_all(&[7; 64]).await.unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        });
    }

    #[test]
    fn who_asks_byte_by_byte_is_cut_off() {
        run(async {
            let (mut ours, mut theirs, places) = held(Duration::from_millis(300));
            let hear = async move { while ours.read_u8().await.is_ok() {} };
            let say = async {
                while places.available_permits() == 0 && theirs.write_u8(b'x').await.is_ok() {
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
            let (mut ours, mut theirs, _) = held(Duration::from_millis(300));
            for byte in 0..5 {
                sleep(Duration::from_millis(100)).await;
                theirs.write_u8(byte).await.unwrap();
                assert_eq!(ours.read_u8().await.unwrap(), byte);
            }
        });
    }
}
