//! Tests of `list`.
