//! Names of the sources of values, in human-readable form and as policies write them.

use sallyport_policy::SecretSource;

/// A limitation of the system's keyring, for hints.
pub const KEYRING_FORGETS: &str =
    "the keyring forgets when the machine restarts, and after some days unused";

/// Returns the source as part of a sentence.
pub fn phrase(source: &SecretSource) -> String {
    let what = match source {
        SecretSource::Env(_) => "the environment variable",
        SecretSource::File(_) => "the file",
        SecretSource::Keyring { .. } => "the keyring entry",
    };
    format!("{what} {}", location_text(source))
}

/// Returns the word that policies use for this kind of source.
pub fn kind_name(source: &SecretSource) -> &'static str {
    match source {
        SecretSource::Env(_) => "env",
        SecretSource::File(_) => "file",
        SecretSource::Keyring { .. } => "keyring",
    }
}

/// Returns the source as policies write it after that word.
pub fn location_text(source: &SecretSource) -> String {
    match source {
        SecretSource::Env(variable) => variable.clone(),
        SecretSource::File(path) => path.display().to_string(),
        SecretSource::Keyring { service, account } => format!("{service}/{account}"),
    }
}
