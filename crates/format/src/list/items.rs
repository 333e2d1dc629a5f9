//! What the items of a list are, word by word, as the document of the format has it.

use crate::names::CodeTable;

pub(crate) const ITEM_KINDS: CodeTable = CodeTable {
    title: "list item kind",
    rows: &[
        (1, "dirty stripe"),
        (2, "log stripe"),
        (3, "delta"),
        (4, "space"),
        (5, "open stripe"),
        (6, "missed"),
        (7, "dirty stripe, updated columns"),
        (8, "clean stripes"),
        (9, "ended log stripes"),
        (10, "fates of a log stripe"),
        (11, "copied chunks"),
        (12, "updated columns of stripes"),
        (13, "log stripes as bytes"),
        (14, "updated columns as bytes"),
    ],
};

/// Word by word, what the items are.
pub(crate) const ITEM_TABLES: &[(&str, &[(&str, &str)])] = &[
    (
        "list item: dirty stripe",
        &[
            ("0", "1 << 24, plus the number of columns in the low 16 bits"),
            ("1, 2", "data stripe, low word first"),
            (
                "3 ...",
                "two words per column: `0xffffffff` = same as current, 0 = a column of zeros, else the chunk; its checksum",
            ),
        ],
    ),
    (
        "list item: log stripe",
        &[
            ("0", "2 << 24, plus the number of log devices << 16, plus the number of members"),
            ("1, 2", "sequence number of its record, low word first"),
            ("3", "first block of the log chunk, on every log device"),
            ("4 ...", "one word per log device: checksum of its log chunk"),
            (
                "...",
                "four words per member: logical chunk number, low word first, with its fate in the highest byte; chunk index; checksum",
            ),
        ],
    ),
    (
        "list item: delta",
        &[
            ("0", "3 << 24, plus the number of log devices << 16"),
            ("1, 2", "data stripe, low word first"),
            ("3", "first block of the log chunk, on every log device"),
            ("4 ...", "one word per log device: checksum of its log chunk"),
        ],
    ),
    (
        "list item: space",
        &[
            ("0", "4 << 24, plus the main device"),
            ("1", "chunks of it that are in use"),
            ("2", "chunk at which the search for a free one goes on"),
            ("3", "number of chunks that follow"),
            ("4 ...", "one word each: chunks that are free, although their bits in the page area are set"),
        ],
    ),
    (
        "list item: open stripe",
        &[
            ("0", "5 << 24"),
            ("1, 2", "sequence number of its newest record, low word first"),
            ("3", "row"),
            ("4", "first block of the parity so far, on every log device"),
        ],
    ),
    (
        "list item: missed",
        &[
            (
                "0",
                "6 << 24, plus 1 << 16 if it was whole when it left, plus the main device, which is out of service or being rebuilt",
            ),
            ("1", "serial of the member"),
            ("2, 3", "epoch of the assembly in which it left, low word first; 0 = it is being rebuilt"),
            ("4, 5", "nonce of that, or 0"),
            ("6, 7", "update of the superblocks that it had when it left, or 0"),
            ("8", "number of ranges that follow"),
            ("9 ...", "two words each, in order: first chunk, and how many, that it may lack"),
        ],
    ),
    (
        "list item: dirty stripe, updated columns",
        &[
            ("0", "7 << 24, plus the number of words of bits << 16, plus the number of columns"),
            ("1, 2", "data stripe, low word first"),
            (
                "3 ...",
                "a bit for each column that is not the same as current: bit c of word w = column 32 w + c",
            ),
            ("...", "two words for each of those: 0 = a column of zeros, else the chunk; its checksum"),
        ],
    ),
    (
        "list item: clean stripes (changes only)",
        &[
            ("0", "8 << 24"),
            ("1", "number of stripes that follow"),
            ("2 ...", "two words each: data stripe, low word first"),
        ],
    ),
    (
        "list item: ended log stripes (changes only)",
        &[
            ("0", "9 << 24"),
            ("1", "number of log stripes that follow"),
            ("2 ...", "two words each: sequence number of its record, low word first"),
        ],
    ),
    (
        "list item: fates of a log stripe (changes only)",
        &[
            ("0", "10 << 24, plus the number of members"),
            ("1, 2", "sequence number of its record, low word first"),
            ("3 ...", "two bits each, the first in the lowest ones: fate of each member; then zeros"),
        ],
    ),
    (
        "list item: copied chunks (packed log stripes of before)",
        &[
            ("0", "11 << 24, plus the number of log devices << 16, plus the number of entries"),
            ("1, 2", "sequence number of the first one's record, low word first"),
            ("3", "first block of its log chunk, on every log device"),
            (
                "4 ...",
                "four words per entry: bits 0-11 how far its record, 12-23 its log chunk is behind that of \
                 the entry before, 24-31 the highest bits of its logical chunk number; the lowest 32 bits of \
                 that; chunk index; checksum of the chunk, whose fate is newest, and of each log chunk",
            ),
        ],
    ),
    (
        "list item: updated columns of stripes (packed dirty stripes of before)",
        &[
            ("0", "12 << 24, plus the number of columns, at most 16, << 16, plus the number of entries"),
            (
                "1 ...",
                "entries: data stripe, its lowest 32 bits; a bit for each column that is not the same as \
                 current, plus the stripe's highest 16 bits << 16; two words for each of those columns: \
                 0 = a column of zeros, else the chunk; its checksum",
            ),
        ],
    ),
    (
        "list item: log stripes as bytes (packed)",
        &[
            ("0", "13 << 24, plus the number of log devices << 16, plus the number of entries"),
            ("1", "words that the items take unpacked, at most two for each byte"),
            ("2", "bytes"),
            ("3, 4", "sequence number of the first one's record, low word first"),
            (
                "5 ...",
                "bytes of the entries, four a word, the first in the lowest bits; then zeros. An entry: \
                 number, four times how far its record is behind that of the entry before, plus 1 if it has \
                 one member, the newest version, of which each of at most 4 log chunks is a copy, plus 2 if \
                 its log chunk is as far behind that of the entry before; if not, step to that; unless it is \
                 copied, number of members and the checksum of the log chunk on each log device; of each \
                 member: step of the logical chunk number, unless it is copied four times that plus the \
                 fate; step of the chunk index; checksum",
            ),
        ],
    ),
    (
        "list item: updated columns as bytes (packed dirty stripes)",
        &[
            ("0", "14 << 24, plus the number of columns, at most 32, << 16, plus the number of entries"),
            ("1", "words that the items take unpacked, at most two for each byte"),
            ("2", "bytes"),
            (
                "3 ...",
                "bytes of the entries, four a word, the first in the lowest bits; then zeros. An entry: step \
                 of the data stripe; number, a bit for each column that is not the same as current; of each \
                 of those: step of the chunk, of the first from the chunk before plus the step of the \
                 stripe, 0 = a column of zeros; checksum",
            ),
        ],
    ),
];
