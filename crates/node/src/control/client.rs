//! A command's end of a control socket. Whoever listens there answers within a time, or it is an error: the
//! server may be suspended, or somebody else's program.

use super::{Reply, Request};
use crate::error::{Error, Silence};
use crate::grow::Growth;
use crate::happened::Happened;
use crate::status::Status;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use serde::Deserialize;
use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long a server may take for an answer that it gives at once. An array that grows, or whose device is
/// slow, keeps it from answering for seconds.
const PATIENCE: Duration = Duration::from_secs(30);
/// Bytes in an answer at most: a status that lists very much that is lost has some MiB.
const ANSWER_BYTES_MAX: usize = 64 << 20;
/// As much is shown of an answer that is none.
const SHOWN_CHARS_MAX: usize = 200;

/// A connection to the server of an array.
pub struct Client {
    path: PathBuf,
    stream: BufReader<UnixStream>,
    patience: Duration,
    /// Whether anything was answered.
    was_heard: bool,
}

impl Client {
    /// Connects to a control socket.
    pub fn connect_to(path: &Path) -> io::Result<Self> {
        Self::connect_within(path, PATIENCE)
    }

    /// The server at a control socket, if there is one.
    pub fn of_server(path: &Path) -> Result<Option<Self>, Error> {
        match Self::connect_to(path) {
            Ok(client) => Ok(Some(client)),
            Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                let silence = Silence::Nothing { seconds: PATIENCE.as_secs() };
                Err(Error::Unanswered { path: path.to_owned(), silence })
            }
            Err(_) => Ok(None),
        }
    }

    fn connect_within(path: &Path, patience: Duration) -> io::Result<Self> {
        let flags = SocketFlags::CLOEXEC;
        let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        // That limits how long it is waited for a place in a full queue, too.
        set_socket_timeout(&socket, Timeout::Send, Some(patience))?;
        connect(&socket, &SocketAddrUnix::new(path)?).map_err(|error| match io::Error::from(error) {
            error if error.kind() == io::ErrorKind::WouldBlock => io::ErrorKind::TimedOut.into(),
            error => error,
        })?;
        let stream = BufReader::new(UnixStream::from(socket));
        Ok(Self { path: path.to_owned(), stream, patience, was_heard: false })
    }

    /// Asks, and waits for the answer: for one that is given at once not for long. Whoever has to do
    /// something first may take hours, but is there meanwhile.
    pub fn ask(&mut self, request: &Request) -> Result<Reply, Error> {
        if !self.was_heard && !request.is_answered_at_once() {
            match self.ask(&Request::Status) {
                Ok(first) if first.error.is_some() => return Ok(first), // it takes no more clients
                // That can be stopped, too.
                Err(Error::Recovering { .. }) if matches!(request, Request::Stop { .. }) => {}
                first => _ = first?,
            }
        }
        let mut line = serde_json::to_vec(request).map_err(Error::Unwritable)?;
        line.push(b'\n');
        let sent = self.stream.get_mut().write_all(&line);
        // A server that takes no more clients says so before it closes the connection.
        let mut answer = Vec::new();
        let received = loop {
            match (self.receive(&mut answer), &sent) {
                (Err(Silence::Nothing { seconds }), Ok(())) => {
                    if let Some(pid) = suspended_server(&self.path) {
                        break Err(Silence::Suspended { seconds, pid });
                    }
                    if !self.may_take_longer(request) {
                        break Err(Silence::Nothing { seconds });
                    }
                }
                (Err(Silence::Broken(_) | Silence::Closed), Err(_)) => break sent.map_err(Silence::Broken),
                (received, _) => break received,
            }
        };
        received.map_err(|silence| self.unanswered(silence))?;
        self.was_heard = true;
        let reply = serde_json::from_slice::<Reply>(&answer).map_err(|source| {
            let found = String::from_utf8_lossy(&answer).chars().take(SHOWN_CHARS_MAX).collect();
            self.unanswered(Silence::Nonsense { found, source })
        })?;
        match reply.recovering {
            Some(how) => Err(Error::Recovering { path: self.path.clone(), how }),
            None => Ok(reply),
        }
    }

    fn unanswered(&self, silence: Silence) -> Error {
        Error::Unanswered { path: self.path.clone(), silence }
    }

    /// Whether a server that runs may still be at what it was asked for: others are answered meanwhile. Not
    /// while it stops, however long that takes.
    fn may_take_longer(&self, request: &Request) -> bool {
        if request.is_answered_at_once() {
            return false;
        }
        let asks_others = || Self::connect_within(&self.path, self.patience)?.hears_at_all();
        matches!(request, Request::Stop { .. }) || asks_others().unwrap_or(false)
    }

    /// Whether anything is answered: that too many ask is an answer, too.
    fn hears_at_all(mut self) -> io::Result<bool> {
        let answered = self.ask(&Request::Status);
        Ok(!matches!(answered, Err(Error::Unanswered { .. })))
    }

    /// Receives a line, or more of one.
    fn receive(&mut self, line: &mut Vec<u8>) -> Result<(), Silence> {
        let by = Instant::now() + self.patience;
        loop {
            let left = by.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(Silence::Nothing { seconds: self.patience.as_secs() });
            }
            self.stream.get_ref().set_read_timeout(Some(left)).map_err(Silence::Broken)?;
            let bytes = match self.stream.fill_buf() {
                Ok([]) => return Err(Silence::Closed),
                Ok(bytes) => bytes,
                Err(error)
                    if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) =>
                {
                    continue;
                }
                Err(error) => return Err(Silence::Broken(error)),
            };
            let end = bytes.iter().position(|&byte| byte == b'\n');
            let taken = end.map_or(bytes.len(), |end| end + 1);
            line.extend_from_slice(&bytes[..taken]);
            self.stream.consume(taken);
            if line.len() > ANSWER_BYTES_MAX {
                return Err(Silence::TooMuch { bytes: ANSWER_BYTES_MAX });
            }
            if end.is_some() {
                return Ok(());
            }
        }
    }

    /// Asks for something to be done.
    pub fn order(&mut self, request: &Request) -> Result<(), Error> {
        match self.ask(request)?.error {
            Some(why) => Err(Error::ServerRefuses(why)),
            None => Ok(()),
        }
    }

    /// Has it grow; what it has become.
    pub fn grow(&mut self) -> Result<Growth, Error> {
        let reply = self.ask(&Request::Grow)?;
        match (reply.grown, reply.error) {
            (Some(growth), _) => Ok(*growth),
            (None, Some(why)) => Err(Error::ServerRefuses(why)),
            (None, None) => Err(Error::NoStatus { path: self.path.clone() }),
        }
    }

    /// Asks how the array is.
    pub fn status(&mut self) -> Result<Status, Error> {
        Ok(self.look(&Request::Status)?.0)
    }

    /// Asks how the array is and what happened to it lately, at once: for that the array is disturbed once.
    pub fn watch(&mut self) -> Result<(Status, Vec<Happened>), Error> {
        self.look(&Request::Watch)
    }

    fn look(&mut self, request: &Request) -> Result<(Status, Vec<Happened>), Error> {
        let reply = self.ask(request)?;
        match (reply.status, reply.error) {
            (Some(status), _) => Ok((*status, reply.lately.unwrap_or_default())),
            (None, Some(why)) => Err(Error::ServerRefuses(why)),
            (None, None) => Err(Error::NoStatus { path: self.path.clone() }),
        }
    }
}

/// What is read of the record that a server keeps beside its socket.
#[derive(Deserialize)]
struct Recorded {
    pid: u32,
}

/// The process of the server at a control socket, if somebody has suspended it.
fn suspended_server(socket: &Path) -> Option<u32> {
    let record = fs::read_to_string(socket.with_extension("server")).ok()?;
    let Recorded { pid } = serde_json::from_str(&record).ok()?;
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name before it may hold whatever it likes.
    let (_, fields) = stat.rsplit_once(')')?;
    matches!(fields.split_whitespace().next(), Some("T" | "t")).then_some(pid)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use super::{ANSWER_BYTES_MAX, Client, suspended_server};
    use crate::control::Request;
    use std::io::{BufRead, BufReader, Write};
    use std::os::unix::net::{UnixListener, UnixStream};
    use std::process::Command;
    use std::thread::{sleep, spawn};
    use std::time::Duration;
    use tempfile::TempDir;

    const COMMIT: Request = Request::Commit { at_once: false };
    const STOP: Request = Request::Stop { force: false };

    fn listen() -> (TempDir, UnixListener) {
        let dir = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(dir.path().join("sock")).unwrap();
        (dir, listener)
    }

    fn client(dir: &TempDir, patience_ms: u64) -> Client {
        Client::connect_within(&dir.path().join("sock"), Duration::from_millis(patience_ms)).unwrap()
    }

    /// The next request, if the client is still there.
    fn hear(stream: &mut BufReader<UnixStream>) -> Option<String> {
        let mut line = String::new();
        (stream.read_line(&mut line).unwrap() > 0).then_some(line)
    }

    fn answer(stream: &mut BufReader<UnixStream>) {
        stream.get_mut().write_all(b"{}\n").unwrap();
    }

    #[test]
    fn who_answers_nothing_is_not_waited_for() {
        let (dir, _listener) = listen();
        for request in [Request::Status, COMMIT, STOP] {
            let error = client(&dir, 50).ask(&request).unwrap_err().to_string();
            assert!(error.contains("/sock: no answer within"), "{error}");
        }
    }

    #[test]
    fn nobody_is_waited_for_where_too_many_wait_already() {
        let (dir, listener) = listen();
        rustix::net::listen(&listener, 0).unwrap();
        let path = dir.path().join("sock");
        let mut waiting = Vec::new();
        let error = loop {
            match Client::connect_within(&path, Duration::from_millis(50)) {
                Ok(client) => waiting.push(client),
                Err(error) => break error,
            }
        };
        assert_eq!(error.kind(), std::io::ErrorKind::TimedOut, "after {}", waiting.len());
    }

    #[test]
    fn bytes_without_an_end_are_no_answer() {
        let (dir, listener) = listen();
        let talker = spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let chunk = vec![b'x'; 1 << 20];
            // It ends when nobody listens any more.
            let mut sent = 0;
            while stream.write_all(&chunk).is_ok() {
                sent += chunk.len();
            }
            sent
        });
        let error = client(&dir, 60_000).ask(&Request::Status).unwrap_err().to_string();
        assert!(error.contains("without the end of a line"), "{error}");
        assert!(talker.join().unwrap() <= ANSWER_BYTES_MAX + (4 << 20));
    }

    #[test]
    fn a_server_that_is_suspended_while_it_stops_is_not_waited_for() {
        let (dir, listener) = listen();
        let mut suspended = Command::new("sh").args(["-c", "kill -STOP $$"]).spawn().unwrap();
        let pid = suspended.id();
        std::fs::write(dir.path().join("sock.server"), format!("{{\"pid\": {pid}}}")).unwrap();
        while suspended_server(&dir.path().join("sock")).is_none() {
            sleep(Duration::from_millis(1));
        }
        let server = spawn(move || {
            let mut asker = BufReader::new(listener.accept().unwrap().0);
            hear(&mut asker).unwrap();
            answer(&mut asker);
            assert!(hear(&mut asker).unwrap().contains("stop"));
            // A client that waited for ever would find itself alone.
            asker.get_ref().set_read_timeout(Some(Duration::from_secs(10))).unwrap();
            asker.read_line(&mut String::new()).ok()
        });
        let error = client(&dir, 2000).order(&STOP).unwrap_err().to_string();
        suspended.kill().unwrap();
        suspended.wait().unwrap();
        assert!(error.contains("/sock: no answer within 2 s"), "{error}");
        assert!(error.contains(&format!("process {pid}, is suspended (state T)")), "{error}");
        assert_eq!(server.join().unwrap(), Some(0));
        assert_eq!(suspended_server(&dir.path().join("sock")), None, "it is gone");
    }

    #[test]
    fn a_server_that_hears_others_may_take_longer() {
        let (dir, listener) = listen();
        let server = spawn(move || {
            let mut asker = BufReader::new(listener.accept().unwrap().0);
            assert!(hear(&mut asker).unwrap().contains("status"), "whoever wants much asks for little first");
            answer(&mut asker);
            assert!(hear(&mut asker).unwrap().contains("commit"));
            let mut look = BufReader::new(listener.accept().unwrap().0);
            hear(&mut look).unwrap();
            answer(&mut look);
            answer(&mut asker);
            // From here on nobody is heard.
            assert!(hear(&mut asker).unwrap().contains("checkpoint"));
            hear(&mut asker)
        });
        let mut client = client(&dir, 2000);
        client.order(&COMMIT).unwrap();
        let error = client.order(&Request::Checkpoint { full: true }).unwrap_err().to_string();
        assert!(error.contains("/sock: no answer within 2 s"), "{error}");
        drop(client);
        assert_eq!(server.join().unwrap(), None);
    }
}
