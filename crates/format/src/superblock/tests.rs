//! Tests of `superblock`.
