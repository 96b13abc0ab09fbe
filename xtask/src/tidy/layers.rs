//! The rule that the modules of a crate form layers: those at its top import each other in no
//! circle, so each can be read after the ones below it.
//!
//! What counts is what the sources say: paths that begin with `crate`, or with as many `super` as
//! lead to the top. A name that the top re-exports counts as the module that it is from. Tests do
//! not count.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    path::Path,
};

use super::rust_tokens::{is_word, production_tokens};

/// The folder of the crates, and how paths to their modules begin.
const CRATES: (&str, &[&str]) = ("host/crates/", &["crate"]);

/// The same of the command line, which is one module of the program.
const COMMAND_LINE: (&str, &[&str]) = ("host/src/cli/", &["crate", "cli"]);

/// The files at the top of a crate, which have no module of their own.
const TOP_FILES: [&str; 3] = ["lib.rs", "main.rs", "mod.rs"];

/// The words that declare something with a name.
const DECLARING_WORDS: [&str; 8] =
    ["const", "enum", "fn", "static", "struct", "trait", "type", "union"];

/// The crates with their modules.
#[derive(Default)]
pub(super) struct ModuleLayers(BTreeMap<String, CrateModules>);

/// The modules at the top of a crate.
#[derive(Default)]
struct CrateModules {
    /// Each with the names that it declares.
    declared: BTreeMap<String, BTreeSet<String>>,
    /// The names that the top has from a module.
    reexported: BTreeMap<String, String>,
    /// The modules whose names the top has all.
    reexported_whole: Vec<String>,
    /// Each module with a name that it has from the top.
    imports: Vec<(String, String)>,
}

impl ModuleLayers {
    /// Adds a file of the repository. One of no crate, or of tests, says nothing.
    pub(super) fn add_file(&mut self, path: &Path, text: &str) {
        let Some((name, file, top)) = place_in_crate(path.to_str().unwrap_or_default()) else {
            return;
        };
        let parts: Vec<&str> = file.split('/').collect();
        if parts.iter().any(|part| is_test_place(part)) {
            return;
        }
        let modules = self.0.entry(name.to_owned()).or_default();
        let tokens = production_tokens(text);
        match parts.as_slice() {
            [file] if TOP_FILES.contains(file) => modules.add_top(&tokens, top),
            parts => modules.add_module_file(parts, &tokens, top),
        }
    }

    /// Lists the circles.
    pub(super) fn breaches(&self) -> Vec<String> {
        let circles = |(name, modules): (&String, &CrateModules)| {
            let told = modules.circles().into_iter().map(|circle| {
                let circle = circle.join(" → ");
                format!("{name}: these modules import each other in a circle: {circle}")
            });
            told.collect::<Vec<_>>()
        };
        self.0.iter().flat_map(circles).collect()
    }
}

/// The crate of a file, the path of the file in it, and how paths to its modules begin.
fn place_in_crate(path: &str) -> Option<(&str, &str, &'static [&'static str])> {
    if let Some(file) = path.strip_prefix(COMMAND_LINE.0) {
        return Some(("cli", file, COMMAND_LINE.1));
    }
    let (name, file) = path.strip_prefix(CRATES.0)?.split_once("/src/")?;
    (!name.contains('/')).then_some((name, file, CRATES.1))
}

fn is_test_place(part: &str) -> bool {
    matches!(part, "tests" | "tests.rs") || part.ends_with("_tests.rs")
}

impl CrateModules {
    /// Notes what the top of the crate has from its modules.
    fn add_top(&mut self, tokens: &[&str], top: &[&str]) {
        for at in (0..tokens.len()).filter(|at| tokens[*at] == "use") {
            for path in read_paths(tokens, at + 1) {
                let path = match path.as_slice() {
                    ["self", rest @ ..] => rest,
                    path => path.strip_prefix(top).unwrap_or(path),
                };
                let [module, .., name] = path else { continue };
                if *name == "*" {
                    self.reexported_whole.push((*module).to_owned());
                } else {
                    self.reexported.insert((*name).to_owned(), (*module).to_owned());
                }
            }
        }
    }

    /// Adds a file below the top, by the parts of its path from there.
    fn add_module_file(&mut self, parts: &[&str], tokens: &[&str], top: &[&str]) {
        let module = parts[0].trim_end_matches(".rs");
        let depth = parts.len() - usize::from(parts.last() == Some(&"mod.rs"));
        let declared = self.declared.entry(module.to_owned()).or_default();
        let pairs = tokens.windows(2).filter(|pair| DECLARING_WORDS.contains(&pair[0]));
        declared.extend(pairs.map(|pair| pair[1].to_owned()));
        let imported = imported_names(tokens, top, depth);
        self.imports.extend(imported.into_iter().map(|name| (module.to_owned(), name)));
    }

    /// The module that a name at the top is from. `None` if the top itself declares it.
    fn module_of(&self, name: &str) -> Option<&str> {
        if let Some((module, _)) = self.declared.get_key_value(name) {
            return Some(module.as_str());
        }
        if let Some(module) = self.reexported.get(name) {
            return self.declared.get_key_value(module).map(|(module, _)| module.as_str());
        }
        let mut whole = self.reexported_whole.iter();
        let declares = |module: &&String| {
            self.declared.get(*module).is_some_and(|declared| declared.contains(name))
        };
        whole.find(declares).map(String::as_str)
    }

    /// The shortest circle through the first module of each group that hangs together.
    fn circles(&self) -> Vec<Vec<&str>> {
        let mut below: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for (module, name) in &self.imports {
            let module = module.as_str();
            if let Some(imported) = self.module_of(name).filter(|imported| *imported != module) {
                below.entry(module).or_default().insert(imported);
            }
        }
        let (mut circles, mut seen) = (Vec::new(), BTreeSet::new());
        for module in below.keys().copied() {
            if seen.contains(module) {
                continue;
            }
            let Some(circle) = shortest_way(&below, module, module) else { continue };
            seen.extend(below.keys().copied().filter(|&other| {
                shortest_way(&below, module, other).is_some()
                    && shortest_way(&below, other, module).is_some()
            }));
            circles.push(circle);
        }
        circles
    }
}

/// The shortest way of imports from a module to another, with both.
fn shortest_way<'m>(
    below: &BTreeMap<&'m str, BTreeSet<&'m str>>,
    from: &'m str,
    to: &str,
) -> Option<Vec<&'m str>> {
    let (mut ways, mut seen) = (VecDeque::from([vec![from]]), BTreeSet::new());
    while let Some(way) = ways.pop_front() {
        let last = way.last().copied().unwrap_or(from);
        for next in below.get(last).into_iter().flatten().copied() {
            let longer: Vec<&str> = way.iter().copied().chain([next]).collect();
            if next == to {
                return Some(longer);
            }
            if seen.insert(next) {
                ways.push_back(longer);
            }
        }
    }
    None
}

/// The names that a file has from the top of its crate. `depth` is how far below the top it is.
fn imported_names(tokens: &[&str], top: &[&str], depth: usize) -> Vec<String> {
    let mut names = Vec::new();
    // How many braces are open, and how many were when each inner module began.
    let (mut braces, mut inner_modules) = (0_usize, Vec::new());
    for (at, token) in tokens.iter().enumerate() {
        match *token {
            "mod" if tokens.get(at + 2) == Some(&"{") => inner_modules.push(braces),
            "{" => braces += 1,
            "}" => {
                braces = braces.saturating_sub(1);
                if inner_modules.last() == Some(&braces) {
                    inner_modules.pop();
                }
            }
            "crate" | "super" if at == 0 || tokens[at - 1] != "::" => {
                let supers = vec!["super"; depth + inner_modules.len()];
                for path in read_paths(tokens, at) {
                    let below =
                        path.strip_prefix(top).or_else(|| path.strip_prefix(supers.as_slice()));
                    names.extend(below.and_then(|below| below.first()).map(ToString::to_string));
                }
            }
            _ => {}
        }
    }
    names
}

/// The paths of an import, or the one path, that begins at a token. The name after `as` is the last
/// part of its path, as is the name before `self`.
fn read_paths<'t>(tokens: &[&'t str], at: usize) -> Vec<Vec<&'t str>> {
    let (mut at, mut found) = (at, Vec::new());
    read_tree(tokens, &mut at, &mut Vec::new(), &mut found);
    found
}

fn read_tree<'t>(
    tokens: &[&'t str],
    at: &mut usize,
    path: &mut Vec<&'t str>,
    found: &mut Vec<Vec<&'t str>>,
) {
    let length = path.len();
    while let Some(&token) = tokens.get(*at) {
        *at += 1;
        if token == "{" {
            while let Some(&next) = tokens.get(*at).filter(|next| **next != "}") {
                match next {
                    "," => *at += 1,
                    _ => read_tree(tokens, at, path, found),
                }
            }
            *at += 1;
            break;
        }
        if is_word(token) && token != "self" || token == "*" || path.is_empty() {
            path.push(token);
        }
        match tokens.get(*at) {
            Some(&"::") => *at += 1,
            Some(&"as") => {
                path.extend(tokens.get(*at + 1));
                *at += 2;
                found.push(path.clone());
                break;
            }
            _ => {
                found.push(path.clone());
                break;
            }
        }
    }
    path.truncate(length);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(files: &[(&str, &str)], want: &[&str]) {
        let mut layers = ModuleLayers::default();
        for (file, text) in files {
            layers.add_file(Path::new(&format!("host/{file}")), text);
        }
        assert_eq!(layers.breaches(), want, "{files:?}");
    }

    const CIRCLE: &str = "x: these modules import each other in a circle: a → b → a";

    #[test]
    fn a_circle_is_found_however_its_paths_are_written() {
        let from_b = ("crates/x/src/b.rs", "use crate::a::A;");
        let rows = [
            ("crates/x/src/a.rs", "use crate::b::B;"),
            ("crates/x/src/a.rs", "fn f() -> u8 { crate::b::f::<u8>(1) }"),
            ("crates/x/src/a.rs", "use super::b;"),
            ("crates/x/src/a.rs", "use crate::{c::{self, d::{D, E}}, b as other};"),
            ("crates/x/src/a/mod.rs", "use super::{c, b::{self, B}};"),
            ("crates/x/src/a/deep.rs", "use super::super::b::B;"),
            ("crates/x/src/a/mod.rs", "mod inner { use super::super::b::B; }"),
            ("crates/x/src/a.rs", "#[cfg(test)]\nconst N: [u8; 2] = [1, 2];\nuse crate::b::B;"),
            ("crates/x/src/a.rs", "const OPEN: char = '\"'; use crate::b::B;"),
        ];
        for row in rows {
            check(&[row, from_b, ("crates/x/src/c.rs", "")], &[CIRCLE]);
        }
        let longer = [
            ("src/cli/one.rs", "use crate::cli::two::Two;"),
            ("src/cli/two/mod.rs", "use super::three::{Three};"),
            ("src/cli/three.rs", "use super::one;"),
        ];
        let want = "cli: these modules import each other in a circle: one → two → three → one";
        check(&longer, &[want]);
    }

    #[test]
    fn a_name_of_the_top_counts_as_the_module_that_it_is_from() {
        let files = |top| {
            [
                ("crates/x/src/lib.rs", top),
                ("crates/x/src/a.rs", "use crate::Thing;"),
                ("crates/x/src/b/c.rs", "pub struct Thing(crate::a::A);"),
            ]
        };
        for top in [
            "pub use b::Thing;",
            "pub(crate) use crate::b::{c::Thing, Other};",
            "use {self::b::Other as Thing};",
            "pub use b::*;",
        ] {
            check(&files(top), &[CIRCLE]);
        }
        check(&files("pub struct Thing;"), &[]);
    }

    #[test]
    fn layers_tests_texts_and_comments_are_no_circle() {
        let from_b = ("crates/x/src/b.rs", "use crate::{a::A, b::B};");
        let rows = [
            ("crates/x/src/a.rs", "// use crate::b::B;\n/* /* */ use crate::b; */\n//! crate::b"),
            (
                "crates/x/src/a.rs",
                "const A: &str = \"crate::b\"; const B: &str = r#\"\" crate::b\"#;",
            ),
            ("crates/x/src/a.rs", "#[cfg(test)]\nmod tests {\n use crate::b::B;\n fn f() {}\n}"),
            ("crates/x/src/a.rs", "#[cfg(test)]\n#[path = \"t.rs\"]\nuse crate::b::{B};\n"),
            ("crates/x/src/a.rs", "pub(crate) fn b() { self::b::f(); std::b::f() }"),
            ("crates/x/src/a/mod.rs", "mod b; use b::B; pub(in crate::a) struct C;"),
            ("crates/x/src/a/c.rs", "use super::b::B;"),
            ("crates/x/src/a/tests.rs", "use crate::b::B;"),
            ("crates/y/src/a.rs", "use crate::b::B;"),
            ("crates/x/tests/src/a.rs", "use crate::b::B;"),
        ];
        for row in rows {
            check(&[row, from_b], &[]);
        }
    }
}
