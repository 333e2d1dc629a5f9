//! Writing a whole record at once.

use block::{ChunkIndex, StripeId};
use format::record::{Commit, CrcOffsets, Delta, Elastic, FullStripe, InPlace, LogStripe, OpenStripe};
use format::{ElasticMember, InPlacePiece, LogMember, RecordBuf, StripeChunk};

fn set_crcs(records: &mut RecordBuf, at: CrcOffsets, crcs: &[u32]) {
    for (row, &crc) in crcs.iter().enumerate() {
        records.set_crc(at.at(row), crc);
    }
}

pub fn log_stripe(records: &mut RecordBuf, block: ChunkIndex, log_crcs: &[u32], members: &[LogMember]) {
    let at = LogStripe::begin(records, block, log_crcs.len());
    for &member in members {
        LogStripe::push(records, member);
    }
    set_crcs(records, at, log_crcs);
}

pub fn full_stripe(records: &mut RecordBuf, stripe: StripeId, chunks: &[StripeChunk]) {
    FullStripe::begin(records, stripe);
    for &chunk in chunks {
        FullStripe::push(records, chunk);
    }
}

pub fn commit(records: &mut RecordBuf, stripe: StripeId, data: &[ChunkIndex], parity: &[StripeChunk]) {
    Commit::begin(records, stripe);
    for &chunk in data {
        Commit::push_data(records, chunk);
    }
    for &chunk in parity {
        Commit::push_parity(records, chunk);
    }
}

pub fn in_place(records: &mut RecordBuf, stripe: StripeId, pieces: &[InPlacePiece]) {
    InPlace::begin(records, stripe);
    for &piece in pieces {
        InPlace::push(records, piece);
    }
}

pub fn delta(
    records: &mut RecordBuf,
    (stripe, whole): (StripeId, bool),
    (block, log_crcs): (ChunkIndex, &[u32]),
    pieces: &[InPlacePiece],
) {
    let at = Delta::begin(records, stripe, whole, log_crcs.len());
    for &piece in pieces {
        Delta::push(records, piece);
    }
    set_crcs(records, at, log_crcs);
    records.set_log_block(records.len() - 1, block);
}

pub fn elastic(
    records: &mut RecordBuf,
    (row, class): (u32, u8),
    members: &[ElasticMember],
    parity_crcs: &[u32],
) {
    Elastic::begin(records, row, class);
    for &member in members {
        Elastic::push(records, member);
    }
    for &crc in parity_crcs {
        let at = Elastic::push_parity(records);
        records.set_crc(at, crc);
    }
}

pub fn open_stripe(
    records: &mut RecordBuf,
    (row, class): (u32, u8),
    (log_block, parity_crcs): (ChunkIndex, &[u32]),
    before_crcs: &[u32],
    members: &[ElasticMember],
) {
    let before = before_crcs.iter().copied();
    let at = OpenStripe::begin(records, (row, class), log_block, before, parity_crcs.len());
    for &member in members {
        OpenStripe::push(records, member);
    }
    set_crcs(records, at, parity_crcs);
}
