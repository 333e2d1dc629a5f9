//! What exceptions are raised, and for what.

use lab::failure::{EXIT_MISUSED, Failure};
use pyo3::PyErr;
use pyo3::create_exception;
use pyo3::exceptions::PyException;

create_exception!(
    elastripe,
    Error,
    PyException,
    "What elastripe could not do, and why: the product's own words."
);
create_exception!(
    elastripe,
    OptionError,
    Error,
    "An option is unknown, lacks its value, or has one that it cannot have."
);
create_exception!(elastripe, InternalError, Error, "A bug of elastripe; please report it.");

/// The exception for a failure of a command.
pub fn raised(failure: &Failure) -> PyErr {
    let message = failure.to_string();
    if failure.exit() == EXIT_MISUSED { OptionError::new_err(message) } else { Error::new_err(message) }
}
