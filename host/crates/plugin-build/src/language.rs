//! The languages in which plugins are written, and how a project's language is recognised.

use std::{fmt, fs, path::Path};

/// A language with an SDK.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceLanguage {
    /// Rust, built by cargo.
    Rust,
    /// Python, built by componentize-py.
    Python,
    /// JavaScript, built with an engine inside of the component.
    JavaScript,
    /// TypeScript, built as JavaScript.
    TypeScript,
    /// C, built by Zig.
    C,
    /// C++, built by Zig.
    Cpp,
    /// Go, built by its own compiler.
    Go,
}

impl SourceLanguage {
    /// All languages, in the order in which they are listed.
    pub const ALL: [Self; 7] = [
        Self::Rust,
        Self::Python,
        Self::JavaScript,
        Self::TypeScript,
        Self::C,
        Self::Cpp,
        Self::Go,
    ];

    /// The word for it on the command line.
    pub fn word(self) -> &'static str {
        match self {
            Self::Rust => "rust",
            Self::Python => "python",
            Self::JavaScript => "js",
            Self::TypeScript => "ts",
            Self::C => "c",
            Self::Cpp => "cpp",
            Self::Go => "go",
        }
    }

    /// The folder of its SDK, below `sdk`.
    pub(crate) fn sdk_name(self) -> &'static str {
        match self {
            Self::Rust => "rust",
            Self::Python => "python",
            Self::JavaScript | Self::TypeScript => "js",
            Self::C | Self::Cpp => "c",
            Self::Go => "go",
        }
    }

    /// The folder of its template in its SDK.
    pub(crate) fn template_name(self) -> &'static str {
        match self {
            Self::TypeScript => "template-ts",
            Self::Cpp => "template-cpp",
            _ => "template",
        }
    }

    /// Recognises the language of a project by the file that every project of it has.
    pub fn detect(folder: &Path) -> Option<Self> {
        let has = |name: &str| folder.join(name).is_file();
        let known = [
            ("Cargo.toml", Self::Rust),
            ("go.mod", Self::Go),
            ("package.json", Self::JavaScript),
            ("pyproject.toml", Self::Python),
            ("plugin.cpp", Self::Cpp),
            ("plugin.c", Self::C),
        ];
        match known.into_iter().find(|(name, _)| has(name))?.1 {
            Self::JavaScript if has_typescript_main(folder) => Some(Self::TypeScript),
            language => Some(language),
        }
    }
}

/// Whether `main` in `package.json` names a TypeScript file.
fn has_typescript_main(folder: &Path) -> bool {
    let text = fs::read_to_string(folder.join("package.json")).unwrap_or_default();
    let package: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
    package["main"].as_str().is_some_and(|main| main.ends_with(".ts"))
}

impl fmt::Display for SourceLanguage {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Rust => "Rust",
            Self::Python => "Python",
            Self::JavaScript => "JavaScript",
            Self::TypeScript => "TypeScript",
            Self::C => "C",
            Self::Cpp => "C++",
            Self::Go => "Go",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_language_is_recognised_by_the_file_that_its_projects_have() {
        let check = |files: &[(&str, &str)], language| {
            let folder = tempfile::tempdir().unwrap();
            for (name, text) in files {
                fs::write(folder.path().join(name), text).unwrap();
            }
            assert_eq!(SourceLanguage::detect(folder.path()), language, "{files:?}");
        };
        check(&[("Cargo.toml", ""), ("package.json", "{}")], Some(SourceLanguage::Rust));
        check(&[("go.mod", "")], Some(SourceLanguage::Go));
        check(&[("pyproject.toml", "")], Some(SourceLanguage::Python));
        check(&[("plugin.c", "")], Some(SourceLanguage::C));
        check(&[("plugin.cpp", "")], Some(SourceLanguage::Cpp));
        check(&[("package.json", r#"{"main": "src/a.js"}"#)], Some(SourceLanguage::JavaScript));
        check(&[("package.json", r#"{"main": "src/a.ts"}"#)], Some(SourceLanguage::TypeScript));
        check(&[("package.json", "not JSON")], Some(SourceLanguage::JavaScript));
        check(&[("plugin.toml", ""), ("README.md", "")], None);
    }
}
