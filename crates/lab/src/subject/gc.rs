//! Garbage collection in results.

use array::GcStats;
use serde_json::{Value, json};

/// Garbage collection as JSON.
pub fn gc_json(gc: &GcStats) -> Value {
    json!({
        "units_collected": gc.units_collected,
        "chunks_rewritten": gc.chunks_rewritten,
        "chunks_read": gc.chunks_read,
    })
}

/// What garbage collection did between two moments.
pub fn gc_since(now: GcStats, then: GcStats) -> GcStats {
    GcStats {
        units_collected: now.units_collected - then.units_collected,
        chunks_rewritten: now.chunks_rewritten - then.chunks_rewritten,
        chunks_read: now.chunks_read - then.chunks_read,
    }
}
