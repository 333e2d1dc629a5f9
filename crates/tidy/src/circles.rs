//! Modules that need one another in a circle.
//!
//! A module and its own children may name each other: they are one room. Among the children of one module the
//! paths written down (`crate::`, `super::`, `self::`) must lead one way; a name that a parent imports counts
//! as the child's that it comes from. What methods of one type call in different files is not seen.

use crate::mask::product_code;
use std::collections::{BTreeMap, BTreeSet};

/// A module by the names on its path from the crate's root, which is empty.
pub type Module = Vec<String>;

/// The sources of one crate by module.
pub struct Crate {
    modules: BTreeMap<Module, Paths>,
}

/// What one module names.
struct Paths {
    /// All paths from the root.
    all: Vec<Module>,
    /// The imported names and their paths from the root.
    imported: BTreeMap<String, Module>,
}

impl Crate {
    /// A crate of these modules and their sources.
    pub fn new<'a>(sources: impl IntoIterator<Item = (Module, &'a str)>) -> Self {
        let texts: Vec<(Module, String)> =
            sources.into_iter().map(|(module, source)| (module, product_code(source))).collect();
        let known: BTreeSet<Module> = texts.iter().map(|(module, _)| module.clone()).collect();
        let paths = |(module, text): &(Module, String)| (module.clone(), Paths::of(module, text, &known));
        Self { modules: texts.iter().map(paths).collect() }
    }

    /// The modules that can reach themselves through their siblings, sorted.
    pub fn in_circles(&self) -> Vec<Module> {
        let next = self.needed();
        next.keys().filter(|module| reaches(&next, module, module)).cloned().collect()
    }

    /// The siblings that a module needs and that need it, by whatever way.
    pub fn around(&self, module: &Module) -> Vec<Module> {
        let next = self.needed();
        let needed = next.get(module).into_iter().flatten();
        needed.filter(|other| reaches(&next, other, module)).cloned().collect()
    }

    /// Which siblings each module needs.
    fn needed(&self) -> BTreeMap<Module, BTreeSet<Module>> {
        let mut next: BTreeMap<Module, BTreeSet<Module>> = BTreeMap::new();
        for (module, paths) in &self.modules {
            for path in &paths.all {
                if let Some((from, to)) = siblings(module, &self.resolve(path)) {
                    next.entry(from).or_default().insert(to);
                }
            }
        }
        next
    }

    /// The module that a path ends in: through imported names to where they come from.
    fn resolve(&self, path: &Module) -> Module {
        let mut path = path.clone();
        for _ in 0..8 {
            let depth = (0..=path.len()).rev().find(|n| self.modules.contains_key(&path[..*n])).unwrap_or(0);
            let module = path[..depth].to_vec();
            let name = path.get(depth);
            let Some(target) = name.and_then(|name| self.modules.get(&module)?.imported.get(name)) else {
                return module;
            };
            path = target.iter().chain(&path[depth + 1..]).cloned().collect();
        }
        Vec::new()
    }
}

impl Paths {
    fn of(module: &Module, text: &str, known: &BTreeSet<Module>) -> Self {
        let mut all = Vec::new();
        let mut imported = BTreeMap::new();
        for (at, word) in words(text) {
            let is_use = word == "use";
            let starts_path =
                ["crate", "super", "self"].contains(&word) && text[at + word.len()..].starts_with("::");
            if !is_use && (!starts_path || text[..at].ends_with("::")) {
                continue;
            }
            let begin = if is_use { at + word.len() } else { at };
            let mut leaves = Vec::new();
            tree(text[begin..].trim_start(), &mut Vec::new(), &mut leaves);
            for (path, name) in leaves {
                let Some(path) = from_root(module, &path, known) else { continue };
                if is_use {
                    imported.insert(name, path.clone());
                }
                all.push(path);
            }
        }
        Self { all, imported }
    }
}

/// The path from the crate's root; none if it leads to another crate.
fn from_root(module: &Module, path: &[String], known: &BTreeSet<Module>) -> Option<Module> {
    let mut base = module.clone();
    let mut rest = path;
    match rest.first()?.as_str() {
        "crate" => {
            base.clear();
            rest = &rest[1..];
        }
        "self" => rest = &rest[1..],
        "super" => {}
        child => {
            base.push(child.to_owned());
            if !known.contains(&base) {
                return None;
            }
            base.pop();
        }
    }
    while rest.first().is_some_and(|first| first == "super") {
        base.pop();
        rest = &rest[1..];
    }
    Some(base.into_iter().chain(rest.iter().cloned()).collect())
}

/// The two siblings, one holding `from` and the other `to`, if neither holds the other.
fn siblings(from: &Module, to: &Module) -> Option<(Module, Module)> {
    let shared = from.iter().zip(to).take_while(|(a, b)| a == b).count();
    (shared < from.len() && shared < to.len()).then(|| (from[..=shared].to_vec(), to[..=shared].to_vec()))
}

fn reaches(next: &BTreeMap<Module, BTreeSet<Module>>, from: &Module, goal: &Module) -> bool {
    let mut seen = BTreeSet::new();
    let mut open: Vec<&Module> = next.get(from).into_iter().flatten().collect();
    while let Some(module) = open.pop() {
        if module == goal {
            return true;
        }
        if seen.insert(module) {
            open.extend(next.get(module).into_iter().flatten());
        }
    }
    false
}

/// The words of a text with their places.
fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let inside = |c: char| c.is_alphanumeric() || c == '_';
    text.split(move |c| !inside(c))
        .filter(|word| !word.is_empty())
        .map(move |word| (word.as_ptr().addr() - text.as_ptr().addr(), word))
}

/// The leaves of the path or use tree at the beginning of `text`, each with the name it is known by; returns
/// what follows.
fn tree<'a>(text: &'a str, path: &mut Vec<String>, leaves: &mut Vec<(Vec<String>, String)>) -> &'a str {
    let depth = path.len();
    let mut rest = text;
    loop {
        let length = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        if length > 0 {
            path.push(rest[..length].to_owned());
            rest = &rest[length..];
            if let Some(after) = rest.strip_prefix("::") {
                rest = after.trim_start();
                continue;
            }
            rest = leaf(rest, path, leaves);
        } else if let Some(mut inside) = rest.strip_prefix('{') {
            loop {
                inside = inside.trim_start().trim_start_matches(',').trim_start();
                if inside.is_empty() || inside.starts_with('}') {
                    break;
                }
                let after = tree(inside, path, leaves);
                if after.len() == inside.len() {
                    break;
                }
                inside = after;
            }
            rest = inside.strip_prefix('}').unwrap_or(inside);
        } else {
            leaves.push((path.clone(), String::new()));
            rest = rest.strip_prefix('*').unwrap_or(rest);
        }
        path.truncate(depth);
        return rest;
    }
}

/// Ends a path: under its last name, or the one after `as`; `self` is the module itself.
fn leaf<'a>(rest: &'a str, path: &[String], leaves: &mut Vec<(Vec<String>, String)>) -> &'a str {
    let mut path = path.to_vec();
    if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
        path.pop();
    }
    let Some(alias) = rest.trim_start().strip_prefix("as ") else {
        let name = path.last().cloned().unwrap_or_default();
        leaves.push((path, name));
        return rest;
    };
    let length = alias.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(alias.len());
    leaves.push((path, alias[..length].to_owned()));
    &alias[length..]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn circles(sources: &[(&str, &str)]) -> Vec<String> {
        let module =
            |path: &str| path.split("::").filter(|name| !name.is_empty()).map(str::to_owned).collect();
        Crate::new(sources.iter().map(|(path, source)| (module(path), *source)))
            .in_circles()
            .into_iter()
            .map(|module| module.join("::"))
            .collect()
    }

    #[test]
    fn siblings_that_name_each_other_are_found() {
        assert_eq!(
            circles(&[("", ""), ("a", "use crate::b::B;"), ("b", "fn f() { super::a::g() }")]),
            ["a", "b"]
        );
    }

    #[test]
    fn one_way_is_fine_and_so_are_parent_and_child() {
        let sources = [
            ("", "use a::A;"),
            ("a", "use crate::b::{self, C};"),
            ("a::x", "use super::A; use crate::b;"),
            ("b", ""),
        ];
        assert_eq!(circles(&sources), [""; 0]);
    }

    #[test]
    fn names_that_a_parent_imports_count_as_the_childs() {
        let sources = [("", "pub use b::{c::D, E as F};"), ("a", ""), ("b", "use crate::a;"), ("b::c", "")];
        assert_eq!(circles(&sources), [""; 0]);
        let sources = [
            ("", "pub use b::{c::D, E as F};"),
            ("a", "use crate::F;"),
            ("b", "use crate::a;"),
            ("b::c", ""),
        ];
        assert_eq!(circles(&sources), ["a", "b"]);
    }

    #[test]
    fn circles_of_three_below_a_module_are_found() {
        let sources = [
            ("", ""),
            ("m", ""),
            ("m::a", "use super::{b::B, d};"),
            ("m::b", "use crate::m::{c};"),
            ("m::c", "impl super::a::T for X {}"),
            ("m::d", ""),
        ];
        assert_eq!(circles(&sources), ["m::a", "m::b", "m::c"]);
    }

    #[test]
    fn tests_and_comments_make_no_circle() {
        let sources = [
            ("", ""),
            ("a", "use crate::b::B;"),
            ("b", "// crate::a\n#[cfg(test)]\nmod t { use crate::a; }"),
        ];
        assert_eq!(circles(&sources), [""; 0]);
    }
}
