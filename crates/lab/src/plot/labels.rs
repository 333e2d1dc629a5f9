//! What columns are called on an axis, and their units.

/// Key, label, unit.
const KNOWN: [(&str, &str, &str); 46] = [
    ("absorbed_chunks", "overwritten in memory, never written", "chunks"),
    ("absorbed_share", "overwritten in memory, never written", "share of chunks"),
    ("metadata_write_amplification", "metadata on SSDs", "SSD bytes per user byte"),
    ("log_write_amplification", "writes to log devices", "bytes per user byte"),
    ("speed", "speed", "times as recorded"),
    ("write_amplification", "write amplification of the SSDs", "flash bytes per user byte"),
    ("raid_write_amplification", "RAID write amplification", "SSD bytes per user byte"),
    ("device_write_amplification", "SSD write amplification", "flash bytes per SSD byte"),
    ("user_chunks_written", "writes of users", "chunks"),
    ("ssd_chunks_written", "writes to SSDs", "chunks"),
    ("log_chunks_written", "writes to log devices", "chunks"),
    ("metadata_bytes_written", "metadata written", "bytes"),
    ("ssd_pages_written", "writes to SSDs", "pages"),
    ("flash_pages_written", "flash writes", "pages"),
    ("page_copies", "copied by GC of the SSDs", "pages"),
    ("gc_operations", "GC operations", "blocks, all SSDs"),
    ("gc_operations_mean", "GC operations", "blocks per SSD"),
    ("gc_operations_min", "GC operations, least", "blocks of an SSD"),
    ("gc_operations_max", "GC operations, most", "blocks of an SSD"),
    ("gc_operations_mean_with_fill", "GC operations", "blocks per SSD"),
    ("erases", "erases", "blocks, all SSDs"),
    ("erases_mean", "erases", "blocks per SSD"),
    ("erases_min", "erases, least", "blocks of an SSD"),
    ("erases_max", "erases, most", "blocks of an SSD"),
    ("erases_deviation", "erases, standard deviation", "blocks over SSDs"),
    ("wear", "wear, all SSDs", "SLC programs"),
    ("wear_max", "wear of the most worn SSD", "SLC programs"),
    ("lifespan", "lifespan", "of the baseline's"),
    ("virtual_seconds", "time", "virtual s"),
    ("requests_per_second", "throughput", "requests/s"),
    ("latency_us_mean", "mean response time", "\u{b5}s"),
    ("latency_us_p50", "median response time", "\u{b5}s"),
    ("latency_us_p99", "p99 response time", "\u{b5}s"),
    ("latency_us_p999", "p99.9 response time", "\u{b5}s"),
    ("latency_us_max", "longest response time", "\u{b5}s"),
    ("stripes_committed", "parity commits", "stripes"),
    ("gc_chunks_rewritten", "rewritten by GC of the array", "chunks"),
    ("requests", "requests", "count"),
    ("queue-depth", "queue depth", "requests"),
    ("commit-every", "writes between parity commits", "requests"),
    ("utilization", "utilization", "share of pages"),
    ("slc-cap", "SLC cap", "share of spare space"),
    ("stress-ratio", "stress ratio R", "MLC per SLC program"),
    ("chunk-size", "chunk size", "bytes"),
    ("ssd-size", "SSD size", "bytes"),
    ("spare", "spare factor", "physical per logical page"),
];

/// Words of a key that say the unit.
const UNITS: [(&str, &str); 9] = [
    ("us", "\u{b5}s"),
    ("ms", "ms"),
    ("ns", "ns"),
    ("bytes", "bytes"),
    ("chunks", "chunks"),
    ("pages", "pages"),
    ("stripes", "stripes"),
    ("seconds", "s"),
    ("percent", "%"),
];

/// Label and unit of a column.
pub fn of(key: &str) -> (String, Option<String>) {
    if let Some((_, label, unit)) = KNOWN.iter().find(|(known, ..)| *known == key) {
        return ((*label).to_owned(), Some((*unit).to_owned()));
    }
    let words: Vec<&str> = key.split(['_', '-']).filter(|word| !word.is_empty()).collect();
    if words.contains(&"per") {
        return (words.join(" "), None);
    }
    let unit = UNITS.iter().find(|(word, _)| words.contains(word));
    // What is said as unit is not said again.
    let rest: Vec<&str> =
        words.iter().copied().filter(|word| unit.is_none_or(|(known, _)| known != word)).collect();
    let label = if rest.is_empty() { words.join(" ") } else { rest.join(" ") };
    (label, unit.map(|(_, unit)| (*unit).to_owned()))
}
