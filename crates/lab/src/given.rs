//! What a program that holds the laboratory hands to a command besides its words: a trace in memory, policies
//! of its own, and where it looks how far the run is.

use crate::drive::load::Memory;
use crate::failure::Failure;
use crate::options::placement::ElasticChoices;
use crate::watch::Shown;
pub use array::Policies;
use format::SchemeKind;
use serde_json::Value;

/// See the module's documentation.
#[derive(Debug)]
pub struct Given<'a> {
    /// The trace, instead of files.
    pub memory: Option<Memory>,
    /// Policies in place of ours.
    pub policies: Policies,
    /// What they are called.
    pub names: PolicyNames,
    /// Where the run says how far it is.
    pub shown: Shown<'a>,
}

/// What policies are called in results.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PolicyNames {
    /// Which chunks are written together.
    pub placement: Option<String>,
    /// Which unit is collected.
    pub gc: Option<String>,
}

impl PolicyNames {
    /// Whether there is a policy.
    pub(crate) fn any(&self) -> bool {
        self.placement.is_some() || self.gc.is_some()
    }

    /// Refuses policies where the scheme has no use for them, or options that are none of theirs.
    pub(crate) fn check(&self, choices: ElasticChoices, scheme: SchemeKind) -> Result<(), Failure> {
        let Some(name) = self.placement.as_ref().or(self.gc.as_ref()) else { return Ok(()) };
        if !scheme.is_elastic() {
            return Err(Failure::new(format!(
                "policy {name}: scheme {scheme} has no groups of chunks and collects no garbage; only elastic and was do"
            )));
        }
        let ElasticChoices { placement, groups, hotness, gc, gc_group, recent_entries, .. } = choices;
        let ours = [
            ("--placement", placement.is_some()),
            ("--groups", groups.is_some()),
            ("--hotness", hotness.is_some()),
            ("--gc-group", gc_group.is_some()),
            ("--recent-entries", recent_entries.is_some()),
        ];
        let meant = ours.into_iter().find(|(_, given)| *given && self.placement.is_some());
        match meant.or((gc.is_some() && self.gc.is_some()).then_some(("--gc", true))) {
            Some((option, _)) => Err(Failure::new(format!(
                "{option}: found beside the policy {name}, to which it means nothing"
            ))),
            None => Ok(()),
        }
    }

    /// Puts the names, and the number of classes, into what a result says of placement.
    pub(crate) fn rename(&self, placement: &mut Value, classes: Option<usize>) {
        let Some(said) = placement.as_object_mut() else { return };
        if let Some(name) = &self.placement {
            said.insert("policy".to_owned(), name.clone().into());
            said.insert("classes".to_owned(), classes.into());
            for key in ["hotness", "groups", "gc_group", "recent_entries"] {
                said.insert(key.to_owned(), Value::Null);
            }
        }
        if let Some(name) = &self.gc {
            said.insert("gc".to_owned(), name.clone().into());
        }
    }
}
