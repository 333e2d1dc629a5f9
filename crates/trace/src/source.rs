//! From a file to lines: decompression by magic, bounded line length, progress.

use crate::MAX_LINE_BYTES;
use std::fs::File;
use std::io::{self, Cursor, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const BUFFER_BYTES: usize = 256 << 10;
/// A file cannot ask for more memory than this; `xz -9` takes a dictionary of 64 MiB.
const XZ_MEMORY_KIB: u32 = 1 << 20;

/// How far a reader has come in its file, as stored (compressed). Clones follow the same reader,
/// from any thread.
#[derive(Clone, Debug)]
pub struct Progress {
    consumed: Arc<AtomicU64>,
    total_bytes: Option<u64>,
}

impl Progress {
    pub(crate) fn new(total_bytes: Option<u64>) -> Self {
        Self { consumed: Arc::new(AtomicU64::new(0)), total_bytes }
    }

    /// The same counter with another total.
    pub(crate) fn with_total(&self, total_bytes: Option<u64>) -> Self {
        Self { consumed: Arc::clone(&self.consumed), total_bytes }
    }

    /// Bytes taken from the file so far.
    pub fn consumed_bytes(&self) -> u64 {
        self.consumed.load(Ordering::Relaxed)
    }

    /// Bytes in the file; `None` for a pipe.
    pub fn total_bytes(&self) -> Option<u64> {
        self.total_bytes
    }
}

struct Counted<R> {
    inner: R,
    progress: Progress,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(into)?;
        // A usize always fits a u64 on the platforms Rust has.
        self.progress.consumed.fetch_add(u64::try_from(count).unwrap_or(0), Ordering::Relaxed);
        Ok(count)
    }
}

/// Size of a regular file; `None` for pipes and the like.
pub(crate) fn file_size(file: &File) -> Option<u64> {
    file.metadata().ok().filter(std::fs::Metadata::is_file).map(|meta| meta.len())
}

fn is_zstd(magic: &[u8]) -> bool {
    // A frame, or a skippable frame before one.
    matches!(magic, [0x28, 0xb5, 0x2f, 0xfd] | [0x50..=0x5f, 0x2a, 0x4d, 0x18])
}

/// Undoes gzip, zstd or xz if the content begins with its magic number.
fn decompressed(raw: Box<dyn Read + Send>) -> io::Result<Box<dyn Read + Send>> {
    let mut raw = raw;
    let mut magic = Vec::with_capacity(6);
    raw.by_ref().take(6).read_to_end(&mut magic)?;
    let zstd = is_zstd(magic.get(..4).unwrap_or_default());
    let xz = magic.starts_with(b"\xfd7zXZ\0");
    let gzip = magic.starts_with(&[0x1f, 0x8b]);
    let whole = Cursor::new(magic).chain(raw);
    Ok(if zstd {
        Box::new(zstd::stream::read::Decoder::new(whole)?)
    } else if gzip {
        Box::new(flate2::read::MultiGzDecoder::new(io::BufReader::with_capacity(64 << 10, whole)))
    } else if xz {
        let whole = io::BufReader::with_capacity(64 << 10, whole);
        Box::new(lzma_rust2::XzReader::new_mem_limit(whole, true, XZ_MEMORY_KIB))
    } else {
        Box::new(whole)
    })
}

/// Where a line lies in the buffer.
pub(crate) enum Span {
    Text(std::ops::Range<usize>),
    TooLong,
}

/// Cuts a stream into lines within a buffer of fixed size.
pub(crate) struct Lines {
    source: Box<dyn Read + Send>,
    buffer: Box<[u8]>,
    start: usize,
    /// No line end lies in `start..scanned`.
    scanned: usize,
    end: usize,
    at_end: bool,
    overlong: bool,
    line_number: u64,
}

impl Lines {
    pub(crate) fn new(raw: Box<dyn Read + Send>, progress: &Progress) -> io::Result<Self> {
        let counted = Counted { inner: raw, progress: progress.clone() };
        Ok(Self {
            source: decompressed(Box::new(counted))?,
            buffer: vec![0; BUFFER_BYTES].into_boxed_slice(),
            start: 0,
            scanned: 0,
            end: 0,
            at_end: false,
            overlong: false,
            line_number: 0,
        })
    }

    /// Number of the line returned last, counted from 1.
    pub(crate) fn line_number(&self) -> u64 {
        self.line_number
    }

    /// The bytes of a span returned by the latest call of [`Lines::next_span`].
    pub(crate) fn text(&self, span: std::ops::Range<usize>) -> &[u8] {
        let line = &self.buffer[span];
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if self.line_number == 1 { line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line) } else { line }
    }

    /// The content from here on as far as the buffer reaches, without taking it, and whether that is
    /// all of it.
    pub(crate) fn peek(&mut self) -> io::Result<(&[u8], bool)> {
        while !self.at_end && self.end - self.start < BUFFER_BYTES {
            self.fill()?;
        }
        Ok((&self.buffer[self.start..self.end], self.at_end))
    }

    /// The next line without its end, `None` after the last one.
    pub(crate) fn next_span(&mut self) -> io::Result<Option<Span>> {
        loop {
            if let Some(at) = memchr::memchr(b'\n', &self.buffer[self.scanned..self.end]) {
                let line_end = self.scanned + at;
                return Ok(Some(self.take(line_end, line_end + 1)));
            }
            self.scanned = self.end;
            if self.at_end {
                if self.start == self.end && !self.overlong {
                    return Ok(None);
                }
                return Ok(Some(self.take(self.end, self.end)));
            }
            if self.end - self.start > MAX_LINE_BYTES {
                self.overlong = true;
                (self.start, self.scanned, self.end) = (0, 0, 0);
            }
            self.fill()?;
        }
    }

    fn take(&mut self, line_end: usize, next: usize) -> Span {
        let span = self.start..line_end;
        self.line_number += 1;
        (self.start, self.scanned) = (next, next);
        let too_long = std::mem::take(&mut self.overlong) || span.len() > MAX_LINE_BYTES;
        if too_long { Span::TooLong } else { Span::Text(span) }
    }

    fn fill(&mut self) -> io::Result<()> {
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            self.scanned -= self.start;
            self.end -= self.start;
            self.start = 0;
        }
        let count = loop {
            match self.source.read(&mut self.buffer[self.end..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => break other?,
            }
        };
        self.end += count;
        self.at_end = count == 0;
        Ok(())
    }
}
