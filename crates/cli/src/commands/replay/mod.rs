//! `replay`: a trace through an array, measured and verified.

pub mod build;
