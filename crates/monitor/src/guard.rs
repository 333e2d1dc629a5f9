//! A listener that whoever can reach it cannot make grow: so many connections at a time, and none of them
//! stays on which nothing moves.

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

/// A connection that breaks when nothing moved on it for long.
pub struct Held<S> {
    stream: S,
    idle_max: Duration,
    end: Pin<Box<Sleep>>,
    _place: OwnedSemaphorePermit,
}

impl<S> Held<S> {
    fn new(stream: S, idle_max: Duration, place: OwnedSemaphorePermit) -> Self {
        Self { stream, idle_max, end: Box::pin(sleep(idle_max)), _place: place }
    }

    /// What came of an attempt to move something.
    fn moved<T>(&mut self, context: &mut Context<'_>, polled: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if polled.is_ready() {
            self.end.as_mut().reset(Instant::now() + self.idle_max);
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
        self.moved(context, polled)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Held<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.moved(context, polled)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_shutdown(context);
        self.moved(context, polled)
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
