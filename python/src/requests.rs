//! Requests as bytes: the fields of the NumPy dtype `elastripe.REQUEST`, 32 bytes each, little-endian.
//!
//! | bytes | field |
//! |---|---|
//! | 0..8 | `time_us`: microseconds since the start of the trace |
//! | 8..12 | `device`: number of the device |
//! | 12 | `op`: 0 read, 1 write, 2 flush, 3 trim |
//! | 13..16 | zeros |
//! | 16..24 | `offset_bytes` |
//! | 24..32 | `length_bytes` |

use lab::failure::{EXIT_MISUSED, Failure};
use trace::{Op, Request};

const BYTES: usize = 32;

/// The bytes of requests.
pub fn encode(requests: &[Request]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(requests.len() * BYTES);
    for request in requests {
        let op = match request.op {
            Op::Read => 0,
            Op::Write => 1,
            Op::Flush => 2,
            Op::Trim => 3,
        };
        bytes.extend_from_slice(&request.time_us.to_le_bytes());
        bytes.extend_from_slice(&request.dev.to_le_bytes());
        bytes.extend_from_slice(&[op, 0, 0, 0]);
        bytes.extend_from_slice(&request.offset_bytes.to_le_bytes());
        bytes.extend_from_slice(&request.length_bytes.to_le_bytes());
    }
    bytes
}

/// The requests of bytes; what no reader would give is refused.
pub fn decode(bytes: &[u8]) -> Result<Vec<Request>, Failure> {
    let (records, rest) = bytes.as_chunks::<BYTES>();
    if !rest.is_empty() {
        return Err(wrong(format!("found {} bytes, expected {BYTES} for each request", bytes.len())));
    }
    let at = |(index, record)| {
        request(record).map_err(|error| wrong(format!("request {index} (from 0): {error}")))
    };
    records.iter().enumerate().map(at).collect()
}

fn wrong(message: String) -> Failure {
    Failure::new(message).with_exit(EXIT_MISUSED)
}

fn request(record: &[u8; BYTES]) -> Result<Request, String> {
    let long = |at: usize| {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&record[at..at + 8]);
        u64::from_le_bytes(bytes)
    };
    let mut device = [0; 4];
    device.copy_from_slice(&record[8..12]);
    let op = match record[12] {
        0 => Op::Read,
        1 => Op::Write,
        2 => Op::Flush,
        3 => Op::Trim,
        other => {
            return Err(format!("op is {other}, expected 0 (read), 1 (write), 2 (flush) or 3 (trim)"));
        }
    };
    let request = Request {
        time_us: long(0),
        dev: u32::from_le_bytes(device),
        op,
        offset_bytes: long(16),
        length_bytes: long(24),
    };
    request.checked().map_err(|fault| fault.to_string())
}
