//! A server whose log is read by nobody but the test, line by line, each with the time at which it came.

use super::Rig;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

/// See the module's documentation; killed when dropped.
pub struct Watched {
    child: Option<Child>,
    lines: Receiver<(Instant, String)>,
}

fn forward(source: impl Read + Send + 'static, to: Sender<(Instant, String)>) {
    std::thread::spawn(move || {
        for line in BufReader::new(source).lines().map_while(Result::ok) {
            if to.send((Instant::now(), line)).is_err() {
                return;
            }
        }
    });
}

impl Watched {
    /// Serves members at the socket `nbd`.
    pub fn serve(rig: &Rig, members: &[&str], options: &[&str]) -> Self {
        let args = [&["serve"], members, &["--nbd", "unix:nbd"], options].concat();
        let mut child = rig.command(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (sender, lines) = channel();
        forward(child.stdout.take().unwrap(), sender.clone());
        forward(child.stderr.take().unwrap(), sender);
        let server = Self { child: Some(child), lines };
        server.await_line(&["serving at"], Duration::from_secs(20));
        server
    }

    /// Waits for a line of the log that contains these words, and for nothing else: the server is left alone.
    /// When it came.
    #[track_caller]
    pub fn await_line(&self, words: &[&str], within: Duration) -> Instant {
        let by = Instant::now() + within;
        let mut seen = Vec::new();
        loop {
            let left = by.saturating_duration_since(Instant::now());
            let Ok((at, line)) = self.lines.recv_timeout(left) else {
                panic!("within {within:?} the log did not say {words:?}, but {seen:#?}")
            };
            if words.iter().all(|word| line.contains(word)) {
                return at;
            }
            seen.push(line);
        }
    }

    /// Stops it by SIGTERM; it must end in order.
    pub fn stop(mut self) {
        let mut child = self.child.take().unwrap();
        assert!(Command::new("kill").arg(child.id().to_string()).status().unwrap().success());
        assert!(child.wait().unwrap().success());
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
