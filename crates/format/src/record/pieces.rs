//! What the records of chunks written in place have in common.

use super::items::{InPlacePiece, List};
use super::kind::{Part, spaced};
use crate::ArrayConfig;
use block::{META_BYTES, StripeId};

/// 4 KiB blocks of a chunk.
pub(super) fn chunk_blocks(config: &ArrayConfig) -> u32 {
    (config.geometry.chunk_bytes() / META_BYTES) as u32
}

/// Whether pieces of a stripe are columns below `columns`, each once and in order, with copies
/// inside the payload ring.
pub(super) fn are_pieces(
    config: &ArrayConfig,
    stripe: StripeId,
    pieces: List<'_, InPlacePiece>,
    columns: usize,
) -> bool {
    let last_block = config.payload_blocks.saturating_sub(chunk_blocks(config) - 1);
    let mut below = pieces.iter();
    stripe.get() < config.stripe_count
        && pieces.iter().skip(1).all(|piece| below.next().is_some_and(|other| other.column < piece.column))
        && pieces.iter().all(|piece| usize::from(piece.column) < columns && piece.payload_block <= last_block)
}

/// The columns of pieces as text.
pub(super) fn columns(pieces: List<'_, InPlacePiece>) -> String {
    spaced(pieces.iter().map(|piece| piece.column))
}

/// All of some pieces.
pub(super) fn pieces_part(pieces: List<'_, InPlacePiece>) -> Part {
    let part = |piece: InPlacePiece| {
        vec![
            ("column", piece.column.into()),
            ("crc", piece.crc.into()),
            ("payload_block", piece.payload_block.into()),
        ]
    };
    Part::Items(pieces.iter().map(part).collect())
}
