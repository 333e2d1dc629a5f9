//! erasure
