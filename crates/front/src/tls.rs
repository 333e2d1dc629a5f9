//! Encryption of connections: rustls beside the socket, which stays non-blocking.
//!
//! What comes in is decrypted into the buffer from which the session is fed; what goes out is encrypted from
//! the session's queue, a bounded amount at a time. A connection without TLS passes none of this.

use crate::session::Fault;
use rustix::net::{RecvFlags, SendFlags};
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{VerifierBuilderError, WebPkiClientVerifier};
use rustls::{RootCertStore, ServerConfig, ServerConnection};
use std::fmt;
use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Why there is no encryption.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file does not have what it should.
    #[error("{}: {what} cannot be read: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What was looked for.
        what: &'static str,
        /// Why.
        source: pem::Error,
    },
    /// A file of certificates has none.
    #[error("{}: no certificate in it", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// They do not fit each other, or are of a kind that is not supported.
    #[error("certificate, key and authority: {0}")]
    Config(#[from] rustls::Error),
    /// Nobody could prove to have a certificate of that authority.
    #[error("the authority of clients: {0}")]
    Authority(#[from] VerifierBuilderError),
}

/// What a client did wrong.
#[derive(Debug, thiserror::Error)]
enum Violation {
    #[error("TLS: {0}")]
    Tls(#[from] rustls::Error),
    #[error("bytes between the request for TLS and its answer")]
    TooSoon,
}

/// Who the server is, and how its clients prove who they are.
#[derive(Clone)]
pub struct Tls {
    config: Arc<ServerConfig>,
    knows_clients: bool,
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").field("knows_clients", &self.knows_clients).finish_non_exhaustive()
    }
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let failed = |source| TlsError::File { path: path.to_owned(), what: "a certificate", source };
    let found = CertificateDer::pem_file_iter(path).map_err(failed)?;
    let found: Vec<_> = found.collect::<Result<_, _>>().map_err(failed)?;
    if found.is_empty() {
        return Err(TlsError::Empty { path: path.to_owned() });
    }
    Ok(found)
}

impl Tls {
    /// By files in PEM: a chain of certificates, its key, and the authority whose certificates clients must
    /// have, if they must.
    pub fn of_files(
        certificate: &Path,
        key: &Path,
        client_authority: Option<&Path>,
    ) -> Result<Self, TlsError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let chain = certificates(certificate)?;
        let key = PrivateKeyDer::from_pem_file(key).map_err(|source| TlsError::File {
            path: key.to_owned(),
            what: "a key",
            source,
        })?;
        let config = ServerConfig::builder_with_provider(Arc::clone(&provider));
        let config = config.with_safe_default_protocol_versions()?;
        let config = match client_authority {
            None => config.with_no_client_auth(),
            Some(path) => {
                let mut roots = RootCertStore::empty();
                certificates(path)?.into_iter().try_for_each(|root| roots.add(root))?;
                let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
                config.with_client_cert_verifier(verifier.build()?)
            }
        };
        let config = Arc::new(config.with_single_cert(chain, key)?);
        Ok(Self { config, knows_clients: client_authority.is_some() })
    }

    /// Whether clients need a certificate.
    pub fn knows_clients(&self) -> bool {
        self.knows_clients
    }
}

/// An encrypted connection.
pub struct Secured {
    connection: ServerConnection,
    said_goodbye: bool,
}

/// Reads from the socket in one turn, of 4 KiB and more each, so that one client does not keep the others
/// waiting.
const RECEIVES_PER_TURN: usize = 32;

struct Wire<'a>(&'a OwnedFd);

impl Read for Wire<'_> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        Ok(rustix::net::recv(self.0, to, RecvFlags::empty())?.1)
    }
}

impl Write for Wire<'_> {
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        Ok(rustix::net::send(self.0, from, SendFlags::NOSIGNAL)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn must_wait(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

impl Secured {
    /// Begins; what was received so far was not encrypted, and must have been looked at.
    pub fn begin(tls: &Tls, left_over: &[u8]) -> Result<Self, Fault> {
        // Somebody on the way could have put it there.
        if !left_over.is_empty() {
            return Err(Fault::of_protocol(Violation::TooSoon));
        }
        let connection = ServerConnection::new(Arc::clone(&tls.config));
        let connection = connection.map_err(|error| Fault::of_protocol(Violation::from(error)))?;
        Ok(Self { connection, said_goodbye: false })
    }

    /// Receives into `room`: how much there is now, and whether that was the last.
    pub fn receive(&mut self, socket: &OwnedFd, room: &mut [u8]) -> Result<(usize, bool), Fault> {
        let mut used = 0;
        for _ in 0..RECEIVES_PER_TURN {
            let (count, ended) = self.take(&mut room[used..])?;
            used += count;
            if ended || used == room.len() {
                return Ok((used, ended));
            }
            match self.connection.read_tls(&mut Wire(socket)) {
                Ok(0) => return Ok((used, true)),
                Ok(_) => {}
                Err(error) if must_wait(&error) => return Ok((used, false)),
                Err(error) => return Err(Fault::Socket(error)),
            }
            if let Err(error) = self.connection.process_new_packets() {
                // The client is told why, if it still listens.
                let _ = self.connection.write_tls(&mut Wire(socket));
                return Err(Fault::of_protocol(Violation::from(error)));
            }
        }
        let (count, ended) = self.take(&mut room[used..])?;
        Ok((used + count, ended))
    }

    /// What was decrypted already, as far as there is room: how much, and whether that was the last.
    pub fn take(&mut self, room: &mut [u8]) -> Result<(usize, bool), Fault> {
        let mut used = 0;
        while used < room.len() {
            match self.connection.reader().read(&mut room[used..]) {
                Ok(0) => return Ok((used, true)),
                Ok(count) => used += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                // It left without a goodbye.
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok((used, true)),
                Err(error) => return Err(Fault::Socket(error)),
            }
        }
        Ok((used, false))
    }

    /// Encrypts as much of this as there is room for; how much.
    pub fn put(&mut self, slices: &[IoSlice<'_>]) -> Result<usize, Fault> {
        self.connection.writer().write_vectored(slices).map_err(Fault::Socket)
    }

    /// Nothing more comes.
    pub fn say_goodbye(&mut self) {
        if !std::mem::replace(&mut self.said_goodbye, true) {
            self.connection.send_close_notify();
        }
    }

    /// Sends what was encrypted; how much the socket took.
    pub fn send(&mut self, socket: &OwnedFd) -> Result<usize, Fault> {
        let mut total = 0;
        while self.connection.wants_write() {
            match self.connection.write_tls(&mut Wire(socket)) {
                Ok(count) => total += count,
                Err(error) if must_wait(&error) => break,
                Err(error) => return Err(Fault::Socket(error)),
            }
        }
        Ok(total)
    }

    /// Whether it was said that nothing more comes.
    pub fn has_said_goodbye(&self) -> bool {
        self.said_goodbye
    }

    /// Whether the two sides have not agreed yet.
    pub fn is_handshaking(&self) -> bool {
        self.connection.is_handshaking()
    }

    /// Whether there is something to send.
    pub fn wants_to_send(&self) -> bool {
        self.connection.wants_write()
    }
}
