//! Policies written in Python, as the policies that stores and engines ask.
//!
//! What Python raises, or an answer that is none, stops the run and is its outcome. Until the run has stopped
//! the policy is not asked any more, and something harmless is answered for it.

use crate::errors::OptionError;
use crate::work::Work;
use block::Lcn;
use placement::{
    Class, GcWrite as Moved, Hotness, Placement, Sequence, Tier, UnitId, Units, UserWrite as Written,
    VictimPolicy,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::sync::Arc;

/// Classes that records of the engine can name; the store without devices takes no more either.
pub const CLASSES_MAX: usize = 8;

/// A user writes a chunk.
#[pyclass(frozen, get_all, module = "elastripe")]
pub struct UserWrite {
    /// Number of the chunk in the volume, from 0.
    chunk: u64,
    /// Chunks that users have written before this one: the time.
    now: u64,
    /// The time at which the version that is replaced was written, as far as that is known.
    previous: Option<u64>,
    /// Whether its request goes on where the write request before it ended.
    continues: bool,
}

/// Garbage collection moves a valid chunk.
#[pyclass(frozen, get_all, module = "elastripe")]
pub struct GcWrite {
    /// Number of the chunk in the volume, from 0.
    chunk: u64,
    /// Class of the unit it is moved out of.
    class_: u8,
    /// The time at which a user wrote this version, as far as that is known.
    written: Option<u64>,
    /// Chunks that users have written so far: the time.
    now: u64,
}

/// A unit is about to be collected.
#[pyclass(frozen, get_all, module = "elastripe")]
pub struct CollectedUnit {
    /// Its class.
    class_: u8,
    /// The time at which its first chunk was placed.
    created: u64,
    /// Chunks that users have written so far: the time.
    now: u64,
}

#[pymethods]
impl UserWrite {
    /// For tests of policies.
    #[new]
    #[pyo3(signature = (chunk, now, previous=None, continues=false))]
    fn new(chunk: u64, now: u64, previous: Option<u64>, continues: bool) -> Self {
        Self { chunk, now, previous, continues }
    }

    fn __repr__(&self) -> String {
        let Self { chunk, now, previous, continues } = self;
        let (previous, continues) = (shown(*previous), if *continues { "True" } else { "False" });
        format!("UserWrite(chunk={chunk}, now={now}, previous={previous}, continues={continues})")
    }
}

#[pymethods]
impl GcWrite {
    /// For tests of policies.
    #[new]
    #[pyo3(signature = (chunk, class_, written, now))]
    fn new(chunk: u64, class_: u8, written: Option<u64>, now: u64) -> Self {
        Self { chunk, class_, written, now }
    }

    fn __repr__(&self) -> String {
        let Self { chunk, class_, written, now } = self;
        format!("GcWrite(chunk={chunk}, class_={class_}, written={}, now={now})", shown(*written))
    }
}

#[pymethods]
impl CollectedUnit {
    /// For tests of policies.
    #[new]
    #[pyo3(signature = (class_, created, now))]
    fn new(class_: u8, created: u64, now: u64) -> Self {
        Self { class_, created, now }
    }

    fn __repr__(&self) -> String {
        let Self { class_, created, now } = self;
        format!("CollectedUnit(class_={class_}, created={created}, now={now})")
    }
}

fn shown(time: Option<u64>) -> String {
    time.map_or_else(|| "None".to_owned(), |time| time.to_string())
}

/// A policy and the work that it takes part in.
struct Asked {
    object: Py<PyAny>,
    work: Arc<Work>,
}

impl Asked {
    /// What Python answers; nothing once something has been raised.
    fn ask<T>(&self, call: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<T>) -> Option<T> {
        if self.work.watch.is_stopped() {
            return None;
        }
        Python::attach(|py| call(self.object.bind(py))).map_err(|raised| self.work.fail(raised)).ok()
    }

    /// A number that Python answers, if it is below a limit.
    fn number(
        &self,
        what: &str,
        limit: usize,
        call: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<Py<PyAny>>,
    ) -> u8 {
        let checked = |object: &Bound<'_, PyAny>| {
            let answer = call(object)?;
            let answer = answer.bind(object.py());
            let number = answer.extract::<u8>().ok().filter(|&number| usize::from(number) < limit);
            number.ok_or_else(|| {
                let found = answer.repr().map_or_else(|_| "something".to_owned(), |text| text.to_string());
                PyValueError::new_err(format!(
                    "{what} answered {found}, expected a number from 0 to {}",
                    limit - 1
                ))
            })
        };
        self.ask(checked).unwrap_or(0)
    }
}

fn count(object: &Bound<'_, PyAny>, name: &str, least: usize, most: usize) -> PyResult<usize> {
    let found = object.getattr(name)?;
    let number = found.extract::<usize>().ok().filter(|number| (least..=most).contains(number));
    number.ok_or_else(|| {
        OptionError::new_err(format!("{name}: found {found}, expected a number from {least} to {most}"))
    })
}

/// A placement with the methods `place_user`, `place_gc` and `note_collected`, and the attributes `classes`
/// and `needs_times`.
pub struct PyPlacement {
    asked: Asked,
    classes: usize,
    needs_times: bool,
}

impl PyPlacement {
    /// Asks once for the attributes.
    pub fn new(object: &Bound<'_, PyAny>, work: &Arc<Work>) -> PyResult<Self> {
        Ok(Self {
            classes: count(object, "classes", 1, CLASSES_MAX)?,
            needs_times: object.getattr("needs_times")?.is_truthy()?,
            asked: Asked { object: object.clone().unbind(), work: Arc::clone(work) },
        })
    }
}

impl Placement for PyPlacement {
    fn classes(&self) -> usize {
        self.classes
    }

    fn needs_times(&self) -> bool {
        self.needs_times
    }

    fn place_user(&mut self, write: Written) -> Class {
        let Written { lcn, sequence, now, previous } = write;
        let write = UserWrite { chunk: lcn.get(), now, previous, continues: sequence == Sequence::Continues };
        Class::new(self.asked.number("place_user", self.classes, |policy| {
            policy.call_method1("place_user", (write,)).map(Bound::unbind)
        }))
    }

    fn place_gc(&mut self, write: Moved) -> Class {
        let Moved { lcn, class, written, now } = write;
        let write = GcWrite { chunk: lcn.get(), class_: class.get(), written, now };
        Class::new(self.asked.number("place_gc", self.classes, |policy| {
            policy.call_method1("place_gc", (write,)).map(Bound::unbind)
        }))
    }

    fn note_collected(&mut self, unit: placement::CollectedUnit) {
        let placement::CollectedUnit { class, created, now } = unit;
        let unit = CollectedUnit { class_: class.get(), created, now };
        self.asked.ask(|policy| policy.call_method1("note_collected", (unit,)).map(drop));
    }

    fn memory_bytes(&self) -> usize {
        // What the object holds, only Python knows.
        size_of::<Self>()
    }
}

/// An identifier of hot data with the method `identify` and the attribute `tiers`.
pub struct PyHotness {
    asked: Asked,
    tiers: u8,
}

impl PyHotness {
    /// Asks once for the attribute.
    pub fn new(object: &Bound<'_, PyAny>, work: &Arc<Work>) -> PyResult<Self> {
        let tiers = count(object, "tiers", 2, CLASSES_MAX - 1)?;
        Ok(Self {
            tiers: u8::try_from(tiers).expect("below the number of classes"),
            asked: Asked { object: object.clone().unbind(), work: Arc::clone(work) },
        })
    }
}

impl Hotness for PyHotness {
    fn tiers(&self) -> u8 {
        self.tiers
    }

    fn identify(&mut self, lcn: Lcn, now: u64) -> Tier {
        Tier::new(self.asked.number("identify", self.tiers.into(), |policy| {
            policy.call_method1("identify", (lcn.get(), now)).map(Bound::unbind)
        }))
    }

    fn memory_bytes(&self) -> usize {
        size_of::<Self>()
    }
}

/// A victim policy: a function of units, as bytes of the NumPy dtype `elastripe.UNIT`, of the chunks of a
/// full unit, and of the time. It answers with a row, or with nothing.
pub struct PyVictims {
    asked: Asked,
    rows: Vec<u8>,
    ids: Vec<UnitId>,
}

impl PyVictims {
    /// Asks this function.
    pub fn new(object: &Bound<'_, PyAny>, work: &Arc<Work>) -> Self {
        let asked = Asked { object: object.clone().unbind(), work: Arc::clone(work) };
        Self { asked, rows: Vec::new(), ids: Vec::new() }
    }
}

impl VictimPolicy for PyVictims {
    fn pick(&mut self, units: &dyn Units, now: u64) -> Option<UnitId> {
        let (rows, ids, capacity) = (&mut self.rows, &mut self.ids, units.capacity());
        rows.clear();
        ids.clear();
        for id in (0..units.count()).map(UnitId::new) {
            let Some(state) = units.state(id).filter(|state| state.valid < capacity) else { continue };
            for number in [id.get(), state.valid, state.written, state.class.get().into()] {
                rows.extend_from_slice(&number.to_le_bytes());
            }
            rows.extend_from_slice(&state.closed.to_le_bytes());
            ids.push(id);
        }
        if ids.is_empty() {
            return None;
        }
        let row = self.asked.ask(|policy| {
            let answer = policy.call1((PyBytes::new(policy.py(), rows), capacity, now))?;
            if answer.is_none() {
                return Ok(None);
            }
            let row = answer.extract::<usize>().ok().filter(|&row| row < ids.len());
            row.map(Some).ok_or_else(|| {
                PyValueError::new_err(format!(
                    "choose_victim answered {answer}, expected None or a row from 0 to {}",
                    ids.len() - 1
                ))
            })
        })??;
        ids.get(row).copied()
    }
}
