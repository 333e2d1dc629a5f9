//! What the drive below a member or spare tells of its own age.

use device::wear::{Drive, NotOffered};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// With so much of its endurance used up, in per cent, a drive is worth a word.
pub const WORN_PERCENT: u8 = 90;

/// What a drive says; what it does not say is `None`.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Debug)]
pub struct Wear {
    /// The drive that was asked.
    pub drive: PathBuf,
    /// When it was asked, in seconds since 1970.
    pub asked_unix_s: u64,
    /// Share of the endurance that its maker expects which is used up; may be more than 100.
    pub used_percent: Option<u8>,
    /// Bytes that hosts have written in all its life.
    pub written_bytes: Option<u64>,
    /// Bytes that hosts have read.
    pub read_bytes: Option<u64>,
    /// What it could not read back, or not verify.
    pub media_errors: Option<u64>,
    /// Spare blocks left.
    pub spare_percent: Option<u8>,
    /// With less it warns.
    pub spare_percent_min: Option<u8>,
    /// Degrees Celsius.
    pub temperature_c: Option<i16>,
    /// How long it was powered.
    pub power_on_hours: Option<u64>,
    /// How often it lost power without having been told.
    pub unsafe_shutdowns: Option<u64>,
    /// What it warns of, in words of [`device::wear::Warning`].
    pub warnings: Vec<String>,
}

impl Wear {
    /// What a drive answered then.
    pub fn of(drive: Drive, asked_unix_s: u64) -> Self {
        let Drive { path, wear } = drive;
        Self {
            drive: path,
            asked_unix_s,
            used_percent: wear.used_percent,
            written_bytes: wear.written_bytes,
            read_bytes: wear.read_bytes,
            media_errors: wear.media_errors,
            spare_percent: wear.spare_percent,
            spare_percent_min: wear.spare_percent_min,
            temperature_c: wear.temperature_c,
            power_on_hours: wear.power_on_hours,
            unsafe_shutdowns: wear.unsafe_shutdowns,
            warnings: wear.warnings.iter().map(|warning| warning.word().to_owned()).collect(),
        }
    }

    /// Whether it is nearly used up.
    pub fn is_worn(&self) -> bool {
        self.used_percent.is_some_and(|used| used >= WORN_PERCENT)
    }

    /// What is to be said of it unasked, if anything: `warns of spare-low; 97 % of its endurance is used up`.
    pub fn complaint(&self) -> Option<String> {
        let mut parts = Vec::new();
        if !self.warnings.is_empty() {
            parts.push(format!("warns of {}", self.warnings.join(" and ")));
        }
        if let Some(used) = self.used_percent.filter(|_| self.is_worn()) {
            parts.push(format!("{used} % of its endurance is used up"));
        }
        (!parts.is_empty()).then(|| parts.join("; "))
    }
}

/// What came of asking.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Debug)]
pub enum Asked {
    /// It has answered.
    Told(Box<Wear>),
    /// It has not; why.
    NotOffered(String),
}

impl Asked {
    /// What a drive answered then.
    pub fn of(answer: Result<Drive, NotOffered>, asked_unix_s: u64) -> Self {
        match answer {
            Ok(drive) => Self::Told(Box::new(Wear::of(drive, asked_unix_s))),
            Err(why) => Self::NotOffered(why.to_string()),
        }
    }
}
