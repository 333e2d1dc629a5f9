//! The commands of the laboratory.

use crate::errors::{OptionError, raised};
use crate::policies::{PyHotness, PyPlacement, PyVictims};
use crate::requests::decode;
use crate::work::Work;
use lab::embed::{self, Command, Memory};
use lab::given::{Given, PolicyNames};
use lab::provenance;
use lab::watch::Shown;
use placement::{GcApart, Placement, Was};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

fn named(command: &str) -> PyResult<Command> {
    Command::named(command).ok_or_else(|| OptionError::new_err(format!("there is no command {command:?}")))
}

/// Says which file this library is, for provenance.
#[pyfunction]
pub fn set_program(file: PathBuf) {
    provenance::set_program(file);
}

/// Version and commit.
#[pyfunction]
pub fn version() -> &'static str {
    provenance::VERSION
}

/// The presets of devices, as JSON.
#[pyfunction]
pub fn presets() -> String {
    lab::flash::presets_json()
}

/// A size with its unit, in bytes.
#[pyfunction]
pub fn parse_size(text: &str) -> PyResult<u64> {
    embed::parse_size(text).map_err(OptionError::new_err)
}

/// The options of a command.
#[pyfunction]
pub fn options<'py>(py: Python<'py>, command: &str) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for option in embed::options(named(command)?) {
        let known = PyDict::new(py);
        known.set_item("name", option.name)?;
        known.set_item("value", option.value)?;
        known.set_item("takes_several", option.takes_several)?;
        known.set_item("joined", option.joined)?;
        known.set_item("default", option.default)?;
        known.set_item("values", option.values)?;
        known.set_item("help", option.help)?;
        list.append(known)?;
    }
    Ok(list)
}

/// A trace in memory.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct Trace<'py> {
    requests: Bound<'py, pyo3::types::PyBytes>,
    name: String,
    synthetic: Option<String>,
}

/// Policies in Python, with what they are called.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct Policies<'py> {
    placement: Option<Bound<'py, PyAny>>,
    hotness: Option<Bound<'py, PyAny>>,
    victims: Option<Bound<'py, PyAny>>,
    /// Whether chunks that garbage collection moves have a group of their own, with `hotness`.
    gc_apart: bool,
    placement_name: Option<String>,
    victims_name: Option<String>,
}

impl Policies<'_> {
    fn build(&self, work: &Arc<Work>) -> PyResult<lab::given::Policies> {
        let placement: Option<Box<dyn Placement>> = match (&self.placement, &self.hotness) {
            (Some(placement), _) => Some(Box::new(PyPlacement::new(placement, work)?)),
            (None, Some(hotness)) => {
                let was = Was::new(PyHotness::new(hotness, work)?);
                Some(if self.gc_apart { Box::new(GcApart(was)) } else { Box::new(was) })
            }
            (None, None) => None,
        };
        let victims = self.victims.as_ref().map(|victims| PyVictims::new(victims, work));
        Ok(lab::given::Policies { placement, victims: victims.map(|victims| Box::new(victims) as _) })
    }

    fn names(&self) -> PolicyNames {
        PolicyNames { placement: self.placement_name.clone(), gc: self.victims_name.clone() }
    }
}

/// Runs a command; its result as JSON.
#[pyfunction]
pub fn run(
    py: Python<'_>,
    command: &str,
    words: Vec<OsString>,
    trace: Option<Trace<'_>>,
    policies: Option<Policies<'_>>,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let command = named(command)?;
    let work = Arc::new(Work::default());
    let (names, policies) = match &policies {
        Some(policies) => (policies.names(), policies.build(&work)?),
        None => Default::default(),
    };
    let memory = match trace {
        Some(Trace { requests, name, synthetic }) => {
            let requests = decode(requests.as_bytes()).map_err(|failure| raised(&failure))?;
            Some(Memory { requests, name, synthetic })
        }
        None => None,
    };
    let found = work.run(py, progress.as_ref(), |watch| {
        let shown = Shown::Watched(watch);
        embed::run(command, &words, Given { memory, policies, names, shown })
    })?;
    Ok(found.to_string())
}
