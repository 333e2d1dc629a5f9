//! Who answers at a server's control socket while its array is recovered, which may take long: devices are
//! slow, or one hangs. Whoever asks is told so, and who wants a stop ends the start: the process ends at
//! once, which is as safe as a power cut.

use crate::control::{LINE_BYTES_MAX, Reply, Request};
use crate::error::Error;
use crate::logbook::{self, log};
use crate::notify::notify;
use crate::recovering::Recovering;
use crate::registry::ControlSocket;
use crate::signals::{Signals, Wish};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use signal_hook::consts::{SIGHUP, SIGTERM};
use signal_hook::low_level::{emulate_default_handler, raise};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::thread;
use std::time::{Duration, Instant};

/// Most arrays are recovered by then: whoever asks before waits for the one who looks after them.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long who has come may take to say what he wants.
const ASKING: Duration = Duration::from_secs(1);

/// Does `work`, which gets an array ready, and keeps the door meanwhile.
pub(crate) fn keep_door<R>(signals: &mut Signals, control: &ControlSocket, work: impl FnOnce() -> R) -> R {
    let listener = control.listener();
    keep(signals, listener, PATIENCE, &|why| give_up(why, &control.describe()), work)
}

/// Ends the process, as SIGTERM does with one that does nothing about it.
fn give_up(why: &str, array: &str) {
    log(&format!(
        "{why}: the start is given up while array {array} is recovered; the next start recovers it"
    ));
    notify("STOPPING=1\nSTATUS=the start is given up");
    logbook::finish();
    // It ends this process, or says that there is no such signal.
    let _ = emulate_default_handler(SIGTERM);
}

fn keep<R>(
    signals: &mut Signals,
    listener: &UnixListener,
    patience: Duration,
    give_up: &(dyn Fn(&str) + Sync),
    work: impl FnOnce() -> R,
) -> R {
    // Without any of it the array is got ready all the same, and nobody is answered.
    let Ok((over, ends)) = UnixStream::pair() else { return work() };
    thread::scope(|scope| {
        let door = Door { begun: Instant::now(), signals, listener, ends, give_up };
        let _ = thread::Builder::new().name("door".into()).spawn_scoped(scope, move || door.keep(patience));
        let result = work();
        drop(over);
        result
    })
}

struct Door<'a> {
    begun: Instant,
    signals: &'a mut Signals,
    listener: &'a UnixListener,
    /// It is closed on the other side when the work is done.
    ends: UnixStream,
    give_up: &'a (dyn Fn(&str) + Sync),
}

impl Door<'_> {
    fn keep(mut self, patience: Duration) {
        if self.is_over(patience) {
            return;
        }
        let seconds = patience.as_secs();
        log(&format!("recovery takes longer than {seconds} s; commands are told so, and `stop` gives it up"));
        let mut reload = false;
        while let Some((is_signal, has_come)) = self.wait() {
            if is_signal {
                reload |= self.hear_signals();
            }
            if has_come && let Ok((asker, _)) = self.listener.accept() {
                // Who leaves in the middle has asked for nothing.
                let _ = self.answer(asker);
            }
        }
        if reload {
            // Whoever looks after the array can do it; that the signal exists is certain.
            let _ = raise(SIGHUP);
        }
    }

    /// Whether the work is done, or is before so long.
    fn is_over(&self, within: Duration) -> bool {
        let by = Instant::now() + within;
        loop {
            let left = by.saturating_duration_since(Instant::now());
            let Ok(timeout) = Timespec::try_from(left) else { return false };
            let mut ends = [PollFd::new(&self.ends, PollFlags::IN)];
            match poll(&mut ends, Some(&timeout)) {
                // A signal is not heard before its time.
                Err(Errno::INTR) => {}
                found => return found.is_ok_and(|count| count > 0),
            }
        }
    }

    /// Waits for signals and for who comes; `None` when the work is done.
    fn wait(&self) -> Option<(bool, bool)> {
        let signals = self.signals.as_fd();
        let mut events = [self.ends.as_fd(), signals, self.listener.as_fd()]
            .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
        // An interrupted wait has seen nothing, and is followed by another one.
        let _ = poll(&mut events, None);
        let [over, is_signal, has_come] = events.map(|event| !event.revents().is_empty());
        (!over).then_some((is_signal, has_come))
    }

    /// Whether something is to be read again.
    fn hear_signals(&mut self) -> bool {
        let mut reload = false;
        for wish in self.signals.take() {
            match wish {
                Wish::Stop(name) => (self.give_up)(name),
                Wish::Reload => reload = true,
                Wish::LookAtChild | Wish::Nothing(_) => {}
            }
        }
        reload
    }

    /// Answers one who has come, as often as he asks.
    fn answer(&self, asker: UnixStream) -> io::Result<()> {
        asker.set_nonblocking(false)?;
        asker.set_read_timeout(Some(ASKING))?;
        asker.set_write_timeout(Some(ASKING))?;
        let mut asker = BufReader::new(asker);
        while !self.is_over(Duration::ZERO) {
            let mut line = Vec::new();
            let limit = u64::try_from(LINE_BYTES_MAX).unwrap_or(u64::MAX);
            asker.by_ref().take(limit).read_until(b'\n', &mut line)?;
            if line.last() != Some(&b'\n') {
                break;
            }
            let request = serde_json::from_slice::<Request>(&line);
            let stops = matches!(request, Ok(Request::Stop { .. }));
            let how = Recovering { pid: std::process::id(), seconds: self.begun.elapsed().as_secs() };
            let reply = match request {
                Ok(_) => Reply::recovering(how),
                Err(error) => Reply::refused(Error::NotARequest(error).to_string()),
            };
            let mut text = serde_json::to_vec(&reply)?;
            text.push(b'\n');
            asker.get_mut().write_all(&text)?;
            if stops {
                (self.give_up)("`stop`");
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use super::*;
    use crate::control::Client;
    use std::path::PathBuf;
    use std::sync::{Mutex, mpsc};
    use tempfile::TempDir;

    /// A recovery that takes until it is given up or told to end, beside somebody who asks; why it was given
    /// up, and what he found.
    fn recover<R: Send>(
        patience: Duration,
        ask: impl FnOnce(PathBuf, mpsc::Sender<Option<String>>) -> R + Send,
    ) -> (Option<String>, R) {
        let dir = TempDir::new().unwrap();
        let path = dir.path().join("sock");
        let listener = UnixListener::bind(&path).unwrap();
        listener.set_nonblocking(true).unwrap();
        // A signal comes to all who collect them.
        static ALONE: Mutex<()> = Mutex::new(());
        let _alone = ALONE.lock();
        let mut signals = Signals::collect().unwrap();
        let (end, ended) = mpsc::channel();
        let given_up = end.clone();
        thread::scope(|scope| {
            let asker = scope.spawn(move || ask(path, end));
            let give_up = move |why: &str| given_up.send(Some(why.to_owned())).unwrap();
            let why = keep(&mut signals, &listener, patience, &give_up, || ended.recv().unwrap());
            (why, asker.join().unwrap())
        })
    }

    #[test]
    fn whoever_asks_while_an_array_is_recovered_is_told_so() {
        let (why, said) = recover(Duration::ZERO, |path, end| {
            let mut client = Client::connect_to(&path).unwrap();
            let first = client.status().unwrap_err().to_string();
            let order = client.order(&Request::Grow).unwrap_err().to_string();
            let belongs = Request::Belongs { identity: (0, 0), dev: 0, serial: 0 };
            // Another one, and not before the first has gone.
            drop(client);
            let other = Client::connect_to(&path).unwrap().ask(&belongs).unwrap_err().to_string();
            end.send(None).unwrap();
            [first, order, other]
        });
        let expected = format!(
            "/sock: the server of the array, process {}, has been recovering it for 0 s",
            std::process::id()
        );
        said.iter().for_each(|said| assert!(said.contains(&expected), "{said}"));
        assert_eq!(why, None);
    }

    #[test]
    fn a_stop_gives_the_start_up() {
        let stop = |path: PathBuf, _end| {
            let stopped = Client::connect_to(&path).unwrap().order(&Request::Stop { force: false });
            assert!(matches!(stopped, Err(Error::Recovering { .. })), "{stopped:?}");
        };
        assert_eq!(recover(Duration::ZERO, stop).0.unwrap(), "`stop`");
        let signal = |_path, _end| raise(signal_hook::consts::SIGQUIT).unwrap();
        assert_eq!(recover(Duration::from_millis(50), signal).0.unwrap(), "SIGQUIT");
    }

    #[test]
    fn nobody_is_answered_while_it_takes_no_longer_than_always() {
        let (why, left) = recover(Duration::from_secs(3600), |path, end| {
            let mut asker = UnixStream::connect(&path).unwrap();
            asker.write_all(b"{\"op\":\"status\"}\n").unwrap();
            asker.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
            let answer = asker.read(&mut [0; 1]).unwrap_err();
            end.send(None).unwrap();
            answer.kind()
        });
        assert_eq!((why, left), (None, io::ErrorKind::WouldBlock), "he waits for who looks after the array");
    }
}
