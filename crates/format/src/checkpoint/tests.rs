//! Tests of `checkpoint`.
