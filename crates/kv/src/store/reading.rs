//! Reading while a store is opened: many places at a time, and what cannot be read is nothing.

use crate::blocks::{Buffer, Issued, Medium, Request};
use crate::numbers::{narrow, wide};

/// Reads at a time while a store is opened.
pub(super) const READS_AT_A_TIME: usize = 64;

fn read(tag: usize, offset_bytes: u64, length: u64) -> Issued {
    Issued { tag: wide(tag), request: Request::Read { offset_bytes, buffer: Buffer::new(narrow(length)) } }
}

/// Reads places of the volume; what cannot be read is nothing.
pub(super) fn read_all(medium: &mut dyn Medium, places: &[(u64, u64)]) -> Vec<Option<Buffer>> {
    let mut found = Vec::with_capacity(places.len());
    for some in places.chunks(READS_AT_A_TIME) {
        let first = found.len();
        found.resize_with(first + some.len(), || None);
        let requests = some.iter().enumerate().map(|(tag, (offset, length))| read(tag, *offset, *length));
        for ended in medium.carry(requests.collect()) {
            if let (Ok(()), Some(buffer)) = (ended.result, ended.buffer) {
                found[first + narrow(ended.tag)] = Some(buffer);
            }
        }
    }
    found
}
