//! Preparation of a trace for replay.
//!
//! The defaults are the compact preparation under which the reference counts of the EPLOG prototype hold to
//! the chunk:
//! 1. The 1 MB segments that *any* read or write of the *whole* trace touches remain; the others are dropped
//!    and the remaining ones shifted together, in order. (Segments touched by writes only, or by the head
//!    that is replayed only, give other counts.)
//! 2. Devices are laid end to end.
//! 3. Only writes are replayed, in the order of the trace, the first `write_limit` of them.
//! 4. Their starts are rounded down and their ends up to chunks, after the shift.
//! 5. The volume is filled sequentially first, so that every traced write is an update.
//!
//! Requests of length 0 touch nothing and are dropped. Trims and, if reads do not keep segments, reads lose
//! the parts that lie in dropped segments.

use crate::layout::{Layout, Survey};
use crate::{Op, PrepareError, PrepareOptions, Request, TraceError};

/// A prepared trace: an iterator over the requests, all within `0..footprint_bytes` of one volume (device 0).
pub struct Prepared<I> {
    requests: I,
    layout: Layout,
    options: PrepareOptions,
    write_count: u64,
    dropped_count: u64,
    failed: bool,
}

/// Prepares a trace in two passes: `source` is called once for each and must yield the same
/// requests both times.
pub fn prepare<I, F>(mut source: F, options: &PrepareOptions) -> Result<Prepared<I>, PrepareError>
where
    F: FnMut() -> Result<I, TraceError>,
    I: Iterator<Item = Result<Request, TraceError>>,
{
    let &PrepareOptions { chunk_bytes, segment_bytes, .. } = options;
    if !chunk_bytes.is_power_of_two() || chunk_bytes < 512 {
        return Err(PrepareError::Chunk { bytes: chunk_bytes });
    }
    if !segment_bytes.is_power_of_two() || !(chunk_bytes..=1 << 40).contains(&segment_bytes) {
        return Err(PrepareError::Segment { bytes: segment_bytes, chunk_bytes });
    }
    let mut survey = Survey::new(options);
    for request in source()? {
        survey.add(&request?)?;
    }
    Ok(Prepared {
        layout: survey.finish()?,
        requests: source()?,
        options: options.clone(),
        write_count: 0,
        dropped_count: 0,
        failed: false,
    })
}

/// Prepares a trace that is in memory.
pub fn prepare_slice<'a>(
    requests: &'a [Request],
    options: &PrepareOptions,
) -> Result<Prepared<impl Iterator<Item = Result<Request, TraceError>> + use<'a>>, PrepareError> {
    prepare(|| Ok(requests.iter().copied().map(Ok)), options)
}

impl<I> Prepared<I> {
    /// Size of the volume in bytes, whole segments.
    pub fn footprint_bytes(&self) -> u64 {
        self.layout.footprint_bytes()
    }

    /// Where everything went.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Writes yielded so far.
    pub fn write_count(&self) -> u64 {
        self.write_count
    }

    /// Requests left out so far because nothing of them remained (not those left out by `writes_only`).
    pub fn dropped_count(&self) -> u64 {
        self.dropped_count
    }

    /// The writes that fill the volume sequentially, `request_bytes` at a time (at least 1), at time 0.
    pub fn fill(&self, request_bytes: u64) -> Fill {
        Fill { next_bytes: 0, end_bytes: self.footprint_bytes(), request_bytes: request_bytes.max(1) }
    }

    fn place(&self, request: Request) -> Option<Request> {
        if request.op == Op::Flush {
            return Some(Request { dev: 0, ..request });
        }
        let (mut start, length) = self.layout.place(request.dev, request.offset_bytes, request.length_bytes);
        if length == 0 {
            return None;
        }
        let mut end = start + length;
        if self.options.round_to_chunk {
            // Segments are whole chunks, so the end stays within the volume.
            let mask = self.options.chunk_bytes - 1;
            start &= !mask;
            end = (end + mask) & !mask;
        }
        Some(Request { dev: 0, offset_bytes: start, length_bytes: end - start, ..request })
    }
}

impl<I: Iterator<Item = Result<Request, TraceError>>> Iterator for Prepared<I> {
    type Item = Result<Request, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if self.failed || self.options.write_limit.is_some_and(|limit| self.write_count >= limit) {
                return None;
            }
            let request = match self.requests.next()? {
                Ok(request) => request,
                Err(error) => {
                    self.failed = true;
                    return Some(Err(error));
                }
            };
            if self.options.writes_only && request.op != Op::Write {
                continue;
            }
            match self.place(request) {
                None => self.dropped_count += 1,
                Some(placed) => {
                    self.write_count += u64::from(placed.op == Op::Write);
                    return Some(Ok(placed));
                }
            }
        }
    }
}

/// The writes that fill a volume from its start to its end.
#[derive(Clone, Debug)]
pub struct Fill {
    next_bytes: u64,
    end_bytes: u64,
    request_bytes: u64,
}

impl Iterator for Fill {
    type Item = Request;

    fn next(&mut self) -> Option<Request> {
        let length_bytes = self.request_bytes.min(self.end_bytes - self.next_bytes);
        if length_bytes == 0 {
            return None;
        }
        let offset_bytes = self.next_bytes;
        self.next_bytes += length_bytes;
        Some(Request { time_us: 0, dev: 0, op: Op::Write, offset_bytes, length_bytes })
    }
}
