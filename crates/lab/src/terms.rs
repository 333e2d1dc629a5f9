//! On what terms results came about, in words for below a table: schemes do not answer writes at the same
//! moment, and figures side by side look as if they did.

/// What write amplification counts, wherever it is shown.
pub const ACCOUNTS: &str = "WA: bytes written to the SSDs, metadata (column) included, per byte of users; bytes to log devices \
                            (column) are apart";

/// Schemes by when they acknowledge a write.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Terms {
    from_memory: Vec<String>,
    from_devices: Vec<String>,
}

impl Terms {
    /// Notes a scheme.
    pub fn add(&mut self, scheme: &str, from_memory: bool) {
        let list = if from_memory { &mut self.from_memory } else { &mut self.from_devices };
        if !list.iter().any(|known| known == scheme) {
            list.push(scheme.to_owned());
        }
    }

    /// That all of them are run to acknowledge what is durable, if they would differ otherwise; `own` is what
    /// leaves each as it is.
    pub fn equalized(&self, own: &str) -> Option<String> {
        let differ = !self.from_memory.is_empty() && !self.from_devices.is_empty();
        differ.then(|| {
            format!(
                "on equal terms: all acknowledge what the devices have, as {} do; {} would acknowledge from memory. {own}",
                self.from_devices.join(", "),
                self.from_memory.join(", ")
            )
        })
    }

    /// The line; `equal` is what would make them equal.
    pub fn line(&self, equal: &str) -> Option<String> {
        if self.from_memory.is_empty() {
            return None;
        }
        let memory = format!(
            "acknowledged from memory: {}; what is overwritten there is never written (absorbed)",
            self.from_memory.join(", ")
        );
        if self.from_devices.is_empty() {
            return Some(memory);
        }
        Some(format!(
            "NOT ON EQUAL TERMS: {memory}; acknowledged when the devices have it: {}. {equal}",
            self.from_devices.join(", ")
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_schemes_that_differ_are_said_to_differ() {
        let of = |schemes: &[(&str, bool)]| {
            let mut terms = Terms::default();
            schemes.iter().for_each(|(scheme, from_memory)| terms.add(scheme, *from_memory));
            terms.line("Do something.")
        };
        assert_eq!(of(&[("raid", false), ("eplog", false)]), None);
        let mixed = |own| {
            let mut terms = Terms::default();
            terms.add("raid", false);
            terms.add("was", true);
            terms.equalized(own)
        };
        let equalized = mixed("Do something else.").unwrap_or_default();
        assert!(equalized.starts_with("on equal terms") && equalized.ends_with("Do something else."));
        assert_eq!(Terms::default().equalized(""), None);
        let alike = of(&[("elastic", true), ("was", true), ("was", true)]).unwrap_or_default();
        assert!(alike.starts_with("acknowledged from memory: elastic, was; "), "{alike}");
        let unlike = of(&[("raid", false), ("was", true)]).unwrap_or_default();
        assert!(
            unlike.starts_with("NOT ON EQUAL TERMS") && unlike.ends_with("raid. Do something."),
            "{unlike}"
        );
    }
}
