//! Opening a store beside everything else that a server does: reading what is there and making the index of
//! it may take long, so that is done on a thread of its own. What it wants of the volume this thread carries
//! out, which looks after the array meanwhile.

use super::Ferry;
use crate::error::Error;
use crate::running::watch_all;
use front::watching::{Ready, Watch};
use front::{Bell, Flow, Hooks, Listening, Volume};
use kv::blocks::{Ended, Fault, Issued, Medium};
use std::io;
use std::os::fd::AsFd;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread;
use std::time::{Duration, Instant};

/// The volume as the other thread has it: what it asks for is refused when nobody carries that out any more.
struct Remote {
    requests: Option<Sender<Vec<Issued>>>,
    ended: Receiver<Vec<Ended>>,
    bell: Arc<Bell>,
}

impl Medium for Remote {
    fn carry(&mut self, requests: Vec<Issued>) -> Vec<Ended> {
        let tags: Vec<u64> = requests.iter().map(|issued| issued.tag).collect();
        let is_sent = self.requests.as_ref().is_some_and(|sender| sender.send(requests).is_ok());
        self.bell.ring();
        match self.ended.recv() {
            Ok(ended) if is_sent => ended,
            Ok(_) | Err(_) => {
                let refused = |tag| Ended { tag, buffer: None, result: Err(Fault::Shutdown) };
                tags.into_iter().map(refused).collect()
            }
        }
    }
}

impl Drop for Remote {
    /// The other side learns that nothing more comes, before it is woken.
    fn drop(&mut self) {
        self.requests = None;
        self.bell.ring_anyway();
    }
}

/// What the other thread asks for, on this side.
struct Asks {
    requests: Receiver<Vec<Issued>>,
    ends: Sender<Vec<Ended>>,
    /// How many requests it waits for, if it does.
    awaited: Option<usize>,
    ended: Vec<Ended>,
}

impl Asks {
    /// Carries out what is asked for; whether more may come.
    fn carry<V: Volume>(&mut self, ferry: &mut Ferry<V>) -> bool {
        loop {
            ferry.drive(&mut self.ended);
            if self.awaited.is_some_and(|awaited| self.ended.len() < awaited) {
                return true;
            }
            if self.awaited.take().is_some() {
                // Who does not wait any more has ended, as is found next.
                let _ = self.ends.send(std::mem::take(&mut self.ended));
            }
            match self.requests.try_recv() {
                Ok(requests) => {
                    self.awaited = Some(requests.len());
                    requests.into_iter().for_each(|issued| ferry.start(issued));
                }
                Err(TryRecvError::Empty) => return true,
                Err(TryRecvError::Disconnected) => return false,
            }
        }
    }
}

/// Does `work` on a thread of its own, with the volume of `ferry`, while this one serves `hooks`. If they
/// want to stop there is no result, and nothing that it asks for is done any more: what is under way ends
/// before this returns, unless that takes longer than `patience`.
pub(super) fn work_beside<V: Volume, R: Send + 'static>(
    ferry: &mut Ferry<V>,
    hooks: &mut impl Hooks<V>,
    patience: Duration,
    work: impl FnOnce(&mut dyn Medium) -> R + Send + 'static,
) -> Result<Option<R>, Error> {
    let bell = Arc::new(Bell::new()?);
    let (to_here, requests) = channel();
    let (ends, ended) = channel();
    let mut remote = Remote { requests: Some(to_here), ended, bell: bell.clone() };
    let worker = thread::Builder::new().name("opening".into()).spawn(move || work(&mut remote));
    let worker = worker?;
    let mut asks = Asks { requests, ends, awaited: None, ended: Vec::new() };
    if attend(ferry, hooks, &mut asks, &bell)? == Course::Done {
        return worker.join().map(Some).or_else(|panic| resume_unwind(panic));
    }
    drop(asks);
    let (until, mut nobody) = (Instant::now() + patience, Vec::new());
    while ferry.orders_open() > 0 && Instant::now() < until {
        ferry.drive(&mut nobody);
        ferry.sleep();
    }
    Ok(None)
}

/// How it ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Course {
    Done,
    Stopped,
}

fn attend<V: Volume, H: Hooks<V>>(
    ferry: &mut Ferry<V>,
    hooks: &mut H,
    asks: &mut Asks,
    bell: &Bell,
) -> io::Result<Course> {
    let wake = watch_all(ferry.volume().wake_fd().into_iter().chain([bell.as_fd()]))?;
    let mut watch = Watch::<Listening>::new(Vec::new(), Some(wake.as_fd()))?;
    let mut flow = Flow::Rewatch;
    loop {
        if !asks.carry(ferry) {
            return Ok(Course::Done);
        }
        if flow == Flow::Continue {
            flow = hooks.on_turn(ferry.volume_mut());
        }
        match flow {
            Flow::Continue => {}
            Flow::Rewatch => {
                let mut fds = Vec::new();
                hooks.extra_fds(&mut fds);
                watch.watch_caller(fds)?;
                flow = Flow::Continue;
                continue;
            }
            Flow::Stop => return Ok(Course::Stopped),
        }
        bell.doze();
        // What was asked for just before is seen by this look, and what comes after it rings.
        if !asks.carry(ferry) {
            return Ok(Course::Done);
        }
        let due = [watch.until_tick_ns(false), ferry.idle_for(), hooks.idle_for()];
        watch.wait(due.into_iter().flatten().min())?;
        bell.wake();
        flow = heed(&mut watch, hooks, ferry)?;
    }
}

/// Tells the hooks of what is ready of theirs.
fn heed<V: Volume>(
    watch: &mut Watch<Listening>,
    hooks: &mut impl Hooks<V>,
    ferry: &mut Ferry<V>,
) -> io::Result<Flow> {
    let mut flow = Flow::Continue;
    while let Some(ready) = watch.next_ready() {
        if ready == Ready::Caller {
            for fd in watch.caller_ready()? {
                flow = hooks.on_ready(fd, ferry.volume_mut());
                if flow != Flow::Continue {
                    break; // what else was ready is reported again
                }
            }
        }
    }
    if flow == Flow::Continue && watch.is_tick_due() && watch.tick()? {
        flow = Flow::Rewatch;
    }
    Ok(flow)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use super::*;
    use front::Interest;
    use front::memory::MemoryVolume;
    use kv::blocks::{Buffer, Request};
    use std::io::{Read, Write};
    use std::os::fd::{BorrowedFd, RawFd};
    use std::os::unix::net::UnixStream;

    const PATIENCE: Duration = Duration::from_secs(60);

    /// Says what it hears, and wants to stop when it hears an end.
    struct Listener {
        ears: UnixStream,
        heard: Sender<u8>,
    }

    impl Hooks<MemoryVolume> for Listener {
        fn extra_fds<'a>(&'a self, out: &mut Vec<(BorrowedFd<'a>, Interest)>) {
            out.push((self.ears.as_fd(), Interest::Read));
        }

        fn on_ready(&mut self, _: RawFd, _: &mut MemoryVolume) -> Flow {
            let mut byte = [0];
            self.ears.read_exact(&mut byte).unwrap();
            self.heard.send(byte[0]).unwrap();
            if byte == *b"s" { Flow::Stop } else { Flow::Continue }
        }
    }

    fn listener() -> (Listener, UnixStream, Receiver<u8>) {
        let ((ears, mouth), (heard, hears)) = (UnixStream::pair().unwrap(), channel());
        (Listener { ears, heard }, mouth, hears)
    }

    fn ferry() -> Ferry<MemoryVolume> {
        Ferry::new(MemoryVolume::new(1 << 20, 4096, 8))
    }

    fn write_and_read(medium: &mut dyn Medium, byte: u8) -> Result<u8, Fault> {
        assert!(medium.carry(Vec::new()).is_empty());
        let mut buffer = Buffer::new(8192);
        buffer.fill(byte);
        let (buffer, durability) = (Arc::new(buffer), block::Durability::Volatile);
        let write = Request::Write { offset_bytes: 8192, buffer, durability };
        medium.carry(vec![Issued { tag: 3, request: write }]).remove(0).result?;
        let read = Request::Read { offset_bytes: 8192, buffer: Buffer::new(8192) };
        let ended = medium.carry(vec![Issued { tag: 4, request: read }]).remove(0);
        assert_eq!(ended.tag, 4);
        ended.result.map(|()| ended.buffer.unwrap()[8191])
    }

    #[test]
    fn whoever_asks_is_heard_while_the_work_goes_on() {
        let (mut hooks, mut mouth, hears) = listener();
        let heard = work_beside(&mut ferry(), &mut hooks, PATIENCE, move |medium| {
            let mut ask = |byte| {
                mouth.write_all(&[byte]).unwrap();
                // It goes on only when it was heard.
                (hears.recv().unwrap(), write_and_read(medium, byte).unwrap())
            };
            let heard: Vec<_> = (b'a'..=b'e').map(&mut ask).collect();
            (heard, mouth)
        });
        let (heard, _mouth) = heard.unwrap().unwrap();
        assert_eq!(heard, (b'a'..=b'e').map(|byte| (byte, byte)).collect::<Vec<_>>());
    }

    #[test]
    fn a_stop_ends_the_work_which_finds_the_volume_gone() {
        let (mut hooks, mut mouth, hears) = listener();
        let (tell, told) = channel();
        let ended = work_beside(&mut ferry(), &mut hooks, PATIENCE, move |medium| {
            mouth.write_all(b"s").unwrap();
            hears.recv().unwrap();
            while write_and_read(medium, 7).is_ok() {}
            tell.send(write_and_read(medium, 8)).unwrap();
        });
        assert!(ended.unwrap().is_none());
        assert_eq!(told.recv().unwrap(), Err(Fault::Shutdown));
    }

    #[test]
    #[should_panic(expected = "a mistake in the work")]
    fn a_mistake_in_the_work_is_not_waited_for() {
        let (mut hooks, _mouth, _hears) = listener();
        let _ = work_beside(&mut ferry(), &mut hooks, PATIENCE, |_| panic!("a mistake in the work"));
    }
}
