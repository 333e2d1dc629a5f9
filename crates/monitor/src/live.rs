//! What the page is told, once a second, by server-sent events.
//!
//! One task asks the server of the array, for everybody who watches; while nobody does, it sleeps. A watcher
//! who is slow gets the newest state when it can take one, and never those before it, so nothing piles up.

use axum::http::StatusCode;
use axum::http::header::RETRY_AFTER;
use axum::response::sse::{Event, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream::unfold;
use node::control::Client;
use node::screen;
use serde_json::{Value, json};
use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::watch::{Receiver, Sender};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::{MissedTickBehavior, interval};

/// Pages that are watched at a time.
pub const WATCHERS_MAX: usize = 32;
/// How often they are told.
const EVERY: Duration = Duration::from_secs(1);
/// Ranges of lost data that are told; `status --verbose` has more.
const RANGES_MAX: usize = 50;

/// What all watchers share.
pub struct Live {
    seats: Arc<Semaphore>,
    newest: Sender<Arc<str>>,
    wanted: Notify,
}

impl Live {
    /// Nobody watches yet.
    pub fn new() -> Self {
        let seats = Arc::new(Semaphore::new(WATCHERS_MAX));
        Self { seats, newest: Sender::new(Arc::from("")), wanted: Notify::new() }
    }

    /// Asks the server behind `socket` while somebody watches; never ends.
    pub async fn keep_asking(self: Arc<Self>, socket: Arc<PathBuf>) {
        let mut pace = interval(EVERY);
        pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            while self.newest.receiver_count() == 0 {
                self.wanted.notified().await;
            }
            pace.tick().await;
            let socket = Arc::clone(&socket);
            let told = tokio::task::spawn_blocking(move || tell(&socket)).await;
            let told = told.unwrap_or_else(|_| trouble("the thread that asks for it is gone"));
            self.newest.send_replace(Arc::from(told.to_string()));
        }
    }

    /// Somebody wants to watch.
    pub fn watch(&self) -> Response {
        let Ok(seat) = Arc::clone(&self.seats).try_acquire_owned() else {
            let why = format!("{WATCHERS_MAX} pages are watching already\n");
            return (StatusCode::SERVICE_UNAVAILABLE, [(RETRY_AFTER, "5")], why).into_response();
        };
        let watcher = Watcher { news: self.newest.subscribe(), _seat: seat };
        self.wanted.notify_one();
        Sse::new(unfold(watcher, Watcher::next)).into_response()
    }
}

/// One who watches. The seat is free again when the connection is gone.
struct Watcher {
    news: Receiver<Arc<str>>,
    _seat: OwnedSemaphorePermit,
}

impl Watcher {
    /// The next thing to be told.
    async fn next(mut self) -> Option<(Result<Event, Infallible>, Self)> {
        self.news.changed().await.ok()?;
        let told = Arc::clone(&self.news.borrow_and_update());
        Some((Ok(Event::default().data(&*told)), self))
    }
}

/// All that the page shows, or why that is not known.
fn tell(socket: &Path) -> Value {
    match look(socket) {
        Ok(told) => told,
        Err(error) => trouble(&error.to_string()),
    }
}

fn trouble(why: &str) -> Value {
    json!({ "unix_ms": now_ms(), "trouble": why })
}

fn now_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}

fn look(socket: &Path) -> Result<Value, Box<dyn std::error::Error>> {
    let mut client = Client::connect_to(socket)?;
    let (mut status, lately) = client.watch()?;
    if let Some(lost) = &mut status.lost {
        let omitted = lost.ranges.len().saturating_sub(RANGES_MAX);
        lost.ranges.truncate(RANGES_MAX);
        lost.ranges_omitted += omitted as u64;
    }
    Ok(json!({
        "unix_ms": now_ms(),
        "version": env!("CARGO_PKG_VERSION"),
        "rows": screen::rows(&status),
        "remarks": screen::remarks(&status).lines().map(str::trim).collect::<Vec<_>>(),
        "lately": lately,
        "status": status,
    }))
}
