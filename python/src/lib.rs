//! x
#![forbid(unsafe_code)]
use pyo3::prelude::*;
#[pymodule]
mod _native {}
