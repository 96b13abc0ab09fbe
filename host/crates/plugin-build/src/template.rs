//! New projects, from the templates of the SDKs.

use std::{
    fs,
    path::{Path, PathBuf},
};

use sallyport_contract::PluginName;

use crate::{
    cargo,
    error::{PluginBuildError, ProjectNameError},
    language::SourceLanguage,
    sdk::{SdkFolder, template_files, write_file},
};

/// Names that mean something else to a compiler, a package registry or the program. A project of
/// such a name does not build, or its plugin is not loaded.
const TAKEN_NAMES: [&str; 14] = [
    "alloc",
    "core",
    "internal",
    "node",
    "plugin",
    "proc-macro",
    "python",
    "reminder",
    "sallyport",
    "sallyport-sdk",
    "schemars",
    "serde",
    "std",
    "test",
];

/// Words that at least one of the languages reserves. The identifier of a project would be one.
const KEYWORDS: &str = "abstract and as assert async await become bool box break case catch char \
     class const continue crate debugger def default defer del delete do double elif else enum \
     except export extends extern fallthrough false finally float fn for from func function \
     global go goto if impl import in instanceof int interface is lambda let long loop macro map \
     match mod move mut namespace new none nonlocal not null or override package pass priv private \
     protected public pub raise range ref register return select self short signed sizeof static \
     string struct super switch template this throw trait true try type typedef typeof union \
     unsafe unsigned use using var virtual void volatile where while with yield";

/// Writes the template of a language into a new folder below `parent`, and returns the folder.
///
/// # Errors
///
/// The name is bad, the folder exists, the program has no SDK of the language, or the folder cannot
/// be written. Then nothing is left behind.
pub fn create_project(
    name: &str,
    language: SourceLanguage,
    parent: &Path,
    sdk: &SdkFolder,
) -> Result<PathBuf, PluginBuildError> {
    check_name(name)?;
    if template_files(language).next().is_none() {
        return Err(PluginBuildError::NoSdk { language });
    }
    let folder = parent.join(name);
    if folder.symlink_metadata().is_ok() {
        return Err(PluginBuildError::FolderExists { folder });
    }
    let created = fs::create_dir_all(parent).and_then(|()| fs::create_dir(&folder));
    created.map_err(PluginBuildError::file("create the folder", &folder))?;
    let written = write_template(name, language, &folder, sdk);
    if written.is_err() {
        // Half a project is worse than none. The first error is the one to report.
        let _ = fs::remove_dir_all(&folder);
    }
    written.map(|()| folder)
}

fn write_template(
    name: &str,
    language: SourceLanguage,
    folder: &Path,
    sdk: &SdkFolder,
) -> Result<(), PluginBuildError> {
    for (file, bytes) in template_files(language) {
        let bytes = match std::str::from_utf8(bytes) {
            Ok(text) => fill_in(text, name).into_bytes(),
            Err(_) => bytes.to_vec(),
        };
        write_file(&folder.join(fill_in(file, name)), &bytes)?;
    }
    match language {
        SourceLanguage::Rust => cargo::write_sdk_patch(folder, sdk),
        _ => Ok(()),
    }
}

/// Replaces the two placeholders of templates.
fn fill_in(text: &str, name: &str) -> String {
    text.replace("{{name}}", name).replace("{{ident}}", &name.replace('-', "_"))
}

/// Checks that a name is good in every language: as a package, an identifier and a folder.
fn check_name(name: &str) -> Result<(), ProjectNameError> {
    let is_form = name.parse::<PluginName>().is_ok()
        && !name.contains('_')
        && !name.contains("--")
        && !name.ends_with('-');
    if !is_form {
        return Err(ProjectNameError::Form(name.chars().take(80).collect()));
    }
    let is_taken = TAKEN_NAMES.contains(&name) || KEYWORDS.split_whitespace().any(|k| k == name);
    if is_taken { Err(ProjectNameError::Taken(name.to_owned())) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sdk() -> (tempfile::TempDir, SdkFolder) {
        let cache = tempfile::tempdir().unwrap();
        let sdk = SdkFolder::unpack(cache.path()).unwrap();
        (cache, sdk)
    }

    #[test]
    fn names_are_good_in_every_language() {
        for good in ["a", "word-count", "x2", "b-2-c"] {
            assert_eq!(check_name(good), Ok(()), "{good}");
        }
        let long = "a".repeat(65);
        for bad in ["", "A", "2x", "-a", "a-", "a--b", "a_b", "a b", "../a", "ä", "a.b", &long] {
            assert!(matches!(check_name(bad), Err(ProjectNameError::Form(_))), "{bad}");
        }
        for taken in ["serde", "std", "class", "type", "func", "reminder", "test"] {
            assert!(matches!(check_name(taken), Err(ProjectNameError::Taken(_))), "{taken}");
        }
    }

    #[test]
    fn a_template_has_everything_and_no_placeholder_is_left() {
        let ((_cache, sdk), parent) = (sdk(), tempfile::tempdir().unwrap());
        for language in SourceLanguage::ALL {
            if template_files(language).next().is_none() {
                continue;
            }
            let name = format!("my-{}", language.word());
            let folder = create_project(&name, language, parent.path(), &sdk).unwrap();
            for file in ["plugin.toml", "cases.json", "README.md", ".gitignore"] {
                let text = fs::read_to_string(folder.join(file)).unwrap();
                assert!(!text.contains("{{"), "{language}: {file}: {text}");
            }
            assert_eq!(SourceLanguage::detect(&folder), Some(language));
        }
    }

    #[test]
    fn a_folder_that_exists_is_left_as_it_is() {
        let ((_cache, sdk), parent) = (sdk(), tempfile::tempdir().unwrap());
        let create = |name: &str, parent: &Path| {
            create_project(name, SourceLanguage::Rust, parent, &sdk).unwrap_err()
        };
        fs::create_dir(parent.path().join("mine")).unwrap();
        std::os::unix::fs::symlink("/nowhere", parent.path().join("link")).unwrap();
        fs::write(parent.path().join("file"), "kept").unwrap();
        for name in ["mine", "link", "file"] {
            let error = create(name, parent.path());
            assert!(matches!(error, PluginBuildError::FolderExists { .. }), "{error}");
        }
        let error = create("x", &parent.path().join("file"));
        assert!(error.to_string().starts_with("cannot create the folder"), "{error}");
        assert_eq!(fs::read(parent.path().join("file")).unwrap(), b"kept");
    }
}
