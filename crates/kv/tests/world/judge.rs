//! What the oracle says of an answer.

use super::under::Under;
use super::{Asked, Kind, State, World, bytes_of, key_of};
use kv::Store;
use kv::Sync;
use kv::ask::{Answer, Ask, Keys, Refused, Told, Value};

impl<U: Under> World<U> {
    pub(super) fn judge(&mut self, told: Told) {
        let Some(Asked { kind }) = self.asked.remove(&told.tag) else {
            self.fail(&format!("{told:?} was not asked"));
        };
        self.say(|| format!("{}: {:?}", told.tag, told.answer));
        let tag = told.tag;
        match (kind, told.answer) {
            (Kind::Change { key, before, after, wants_old, is_delete, stored, version }, answer) => {
                self.judge_change(key, before, after, (wants_old, is_delete, stored, version), answer);
            }
            (_, Err(Refused::Damaged { .. })) if self.rotten => {}
            (_, Err(Refused::ReadOnly)) if self.writes_fail() => {}
            (Kind::Get { allowed, range, .. }, Ok(Answer::Value(found))) => {
                let fits = |state: &State| match (state, &found) {
                    (None, None) => true,
                    (Some(thing), Some(value)) => {
                        let (first, length) = range.within(u64::try_from(thing.length).expect("small"));
                        let first = usize::try_from(first).expect("small");
                        let length = usize::try_from(length).expect("small");
                        value.to_vec() == bytes_of(*thing)[first..first + length]
                    }
                    (None, Some(_)) | (Some(_), None) => false,
                };
                if !allowed.iter().any(fits) {
                    self.fail(&format!("get {tag} gave {found:?}, may give {allowed:?}"));
                }
            }
            (Kind::Describe { allowed, .. }, Ok(Answer::Described(found))) => {
                let found = found.map(|found| (found.value_bytes, found.until_ms));
                let fits = |state: &State| {
                    found == state.map(|thing| (u64::try_from(thing.length).expect("small"), thing.until))
                };
                if !allowed.iter().any(fits) {
                    self.fail(&format!("{tag} is described as {found:?}, may be {allowed:?}"));
                }
            }
            (Kind::Flush { versions }, Ok(Answer::Done)) => {
                for (model, version) in self.models.iter_mut().zip(versions) {
                    model.may_be.retain(|(may, _)| *may >= version);
                }
            }
            (Kind::Scan, Ok(Answer::Scanned { cursor, keys })) => self.scan_on(cursor, keys),
            (_, answer) => self.fail(&format!("{tag} was told {answer:?}")),
        }
    }

    fn scan_on(&mut self, cursor: u64, keys: Vec<Box<[u8]>>) {
        let Some((seen, _)) = &mut self.scan else { return };
        seen.extend(keys);
        if cursor != 0 {
            return self.start(Ask::Scan { cursor, count: 7 }, Kind::Scan);
        }
        let Some((seen, stays)) = self.scan.take() else { return };
        let missed = stays.iter().find(|number| !seen.contains(&key_of(**number)));
        if let Some(number) = missed.filter(|_| !self.rotten) {
            self.fail(&format!("key {number} was there all the time, and a scan did not find it"));
        }
    }

    fn judge_change(
        &mut self,
        key: usize,
        before: State,
        after: State,
        (wants_old, is_delete, stored, version): (bool, bool, bool, u64),
        answer: Result<Answer, Refused>,
    ) {
        if answer == Err(Refused::ReadOnly) && self.writes_fail() {
            // It may have happened or not, and nothing more will: the key stays as if it were under way.
            return;
        }
        let old_fits = |old: &Option<Value>| match (wants_old, old, before) {
            (false, None, _) | (true, None, None) => true,
            (true, Some(value), Some(thing)) => value.to_vec() == bytes_of(thing),
            (false, Some(_), _) | (true, _, _) => false,
        };
        let good = match &answer {
            Ok(Answer::Set { stored: found, old }) => *found == stored && old_fits(old),
            Ok(Answer::Deleted { was_there, old }) => *was_there == stored && old_fits(old),
            Ok(Answer::Described(found)) => {
                found.is_some() == before.is_some()
                    && found.and_then(|found| found.until_ms) == before.and_then(|b| b.until)
            }
            Err(Refused::NoSpace { .. }) => {
                let figures = self.store.as_ref().map(Store::figures).unwrap_or_default();
                !is_delete && figures.live_bytes + 60_000 + 40 * 10_000 > figures.capacity_bytes / 2
            }
            Err(Refused::Damaged { .. }) => self.rotten,
            Ok(
                Answer::Value(_)
                | Answer::Sum(_)
                | Answer::Length(_)
                | Answer::Scanned { .. }
                | Answer::Count(_)
                | Answer::Done,
            )
            | Err(_) => false,
        };
        if !good {
            self.fail(&format!("change of key {key} from {before:?} to {after:?} was told {answer:?}"));
        }
        let model = &mut self.models[key];
        model.changing = None;
        if answer.is_err() || !stored {
            // It did not happen, and will not; so what was asked behind it finds what was there before.
            model.may_be.retain(|(may, _)| *may != version);
            for Asked { kind } in self.asked.values_mut() {
                if let Kind::Get { allowed, behind, .. } | Kind::Describe { allowed, behind } = kind
                    && *behind == Some(version)
                {
                    *allowed = vec![before];
                }
            }
            return;
        }
        model.now = after;
        model.version = version;
        if self.plan.sync == Sync::Always {
            model.may_be.retain(|(may, _)| *may >= version);
        }
    }
}
