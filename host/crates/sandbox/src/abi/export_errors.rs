//! The errors about a component's exports. They are made here and not next to [`LoadError`], because
//! they tell exports of ours from others.

use sallyport_contract::text::escape_excerpt;

use super::PACKAGE_PREFIX;
use crate::{ComponentFile, LoadError, error::NO_EXPORTS};

/// Most exports that an error message names.
const EXPORTS_SHOWN: usize = 20;

/// Longest name of an export in an error message, in characters. A name may have 100 KB.
const EXPORT_CHARS_MAX: usize = 120;

impl LoadError {
    /// The error for a component whose exports lack one that the host needs.
    pub(crate) fn missing_export(
        file: &ComponentFile,
        exports: &[String],
        export: &'static str,
        wanted: &'static str,
    ) -> Self {
        let (path, found) = (file.path().to_owned(), format_exports(exports));
        Self::MissingExport { path, export, found, wanted }
    }

    /// The error for a component that has one of our interfaces with other types.
    pub(crate) fn mismatch(file: &ComponentFile, error: &wasmtime::Error) -> Self {
        Self::InterfaceMismatch { path: file.path().to_owned(), message: format!("{error:#}") }
    }
}

/// Lists exports for an error message: those of our package, or all of them if the component has
/// none of ours.
fn format_exports(all: &[String]) -> String {
    let is_ours = |name: &&String| name.starts_with(PACKAGE_PREFIX);
    let has_ours = all.iter().any(|name| is_ours(&name));
    let names = all.iter().filter(|name| !has_ours || is_ours(name));
    let more = names.clone().count().saturating_sub(EXPORTS_SHOWN);
    let shown = names.take(EXPORTS_SHOWN).map(|name| escape_excerpt(name, EXPORT_CHARS_MAX));
    let shown: Vec<String> = shown.chain((more > 0).then(|| format!("{more} more"))).collect();
    if shown.is_empty() { NO_EXPORTS.to_owned() } else { shown.join(", ") }
}
