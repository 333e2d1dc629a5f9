//! The thread that answers over HTTP.

use crate::guard::Guarded;
use crate::live::Live;
use crate::{metrics, page};
use axum::Router;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use node::control::Client;
use node::status::Status;
use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;

/// Why nobody can watch.
#[derive(Debug)]
pub enum MonitorError {
    /// The address cannot be listened at.
    Listen {
        /// As it was given.
        address: String,
        /// Why.
        source: io::Error,
    },
    /// There is no thread for it.
    Thread(io::Error),
}

impl fmt::Display for MonitorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Listen { address, source } if source.kind() == io::ErrorKind::InvalidInput => {
                write!(f, "--metrics: found {address:?}, expected HOST:PORT such as 127.0.0.1:9880")
            }
            Self::Listen { address, source } => write!(f, "--metrics {address}: {source}"),
            Self::Thread(source) => write!(f, "starting the thread of --metrics: {source}"),
        }
    }
}

impl std::error::Error for MonitorError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Listen { source, .. } | Self::Thread(source) => Some(source),
        }
    }
}

/// What is listened at, before there is anything to be watched.
pub struct Monitor {
    listener: TcpListener,
    address: SocketAddr,
}

impl Monitor {
    /// Listens at HOST:PORT; port 0 takes a free one.
    pub fn listen(address: &str) -> Result<Self, MonitorError> {
        let failed = |source| MonitorError::Listen { address: address.to_owned(), source };
        let listener = TcpListener::bind(address).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Self { listener, address })
    }

    /// What was bound.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers from now on, until the process ends, with what the server behind the control socket at
    /// `socket` says.
    pub fn start(self, socket: PathBuf) -> Result<(), MonitorError> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(2)
            .thread_name("metrics, asking")
            .build()
            .map_err(MonitorError::Thread)?;
        let listener = {
            let _in_runtime = runtime.enter();
            tokio::net::TcpListener::from_std(self.listener).map_err(MonitorError::Thread)?
        };
        let socket = Arc::new(socket);
        let live = Arc::new(Live::new());
        runtime.spawn(Arc::clone(&live).keep_asking(Arc::clone(&socket)));
        let pages = Router::new()
            .route("/metrics", get(move || show_metrics(Arc::clone(&socket))))
            .route("/events", get(async move || live.watch()));
        let pages = page::put_into(pages);
        let listener = Guarded::new(listener);
        let serve = move || {
            // It ends with the process only.
            let _ = runtime.block_on(axum::serve(listener, pages).into_future());
        };
        thread::Builder::new().name("metrics".to_owned()).spawn(serve).map_err(MonitorError::Thread)?;
        Ok(())
    }
}

async fn show_metrics(socket: Arc<PathBuf>) -> Response {
    let asked = tokio::task::spawn_blocking(move || ask(&socket)).await;
    match asked {
        Ok(Ok(text)) => ([(header::CONTENT_TYPE, metrics::CONTENT_TYPE)], text).into_response(),
        Ok(Err(why)) => (StatusCode::SERVICE_UNAVAILABLE, format!("{why}\n")).into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

/// Asks the server as a command would.
fn ask(socket: &std::path::Path) -> Result<String, String> {
    let mut client = Client::connect_to(socket).map_err(|error| error.to_string())?;
    let status: Status = client.status().map_err(|error| error.to_string())?;
    metrics::text(status).map_err(|error| error.to_string())
}
