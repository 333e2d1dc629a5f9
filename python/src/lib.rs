//! The compiled part of the Python package `elastripe`: traces, commands and policies across the boundary.
//!
//! It is private to the package, whose Python files say what users are told; here are no defaults and no
//! conveniences. What a command has to say crosses as JSON, requests cross as bytes ([`requests`]). Commands
//! run in a thread of their own without the interpreter's lock ([`work`]); whatever goes wrong in it, a panic
//! included, is an exception here.
#![forbid(unsafe_code)]

mod commands;
mod errors;
mod policies;
mod requests;
mod traces;
mod work;

use pyo3::prelude::*;

/// The compiled part of `elastripe`; see the package.
#[pymodule]
mod _native {
    #[pymodule_export]
    use super::commands::{options, parse_size, presets, run, set_program, version};
    #[pymodule_export]
    use super::errors::{Error, InternalError, OptionError};
    #[pymodule_export]
    use super::policies::{CollectedUnit, GcWrite, UserWrite};
    #[pymodule_export]
    use super::traces::{generate, read, statistics, write};
}
