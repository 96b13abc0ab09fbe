//! How a place where values lie is called, for people and for programs.

use sallyport_policy::SecretSource;

/// What has to be known about the system's keyring.
pub const KEYRING_FORGETS: &str =
    "the keyring forgets when the machine restarts, and after some days unused";

/// Returns the place as part of a sentence.
pub fn phrase(source: &SecretSource) -> String {
    let what = match source {
        SecretSource::Env(_) => "the environment variable",
        SecretSource::File(_) => "the file",
        SecretSource::Keyring { .. } => "the keyring entry",
    };
    format!("{what} {}", text(source))
}

/// Returns the word that policies use for this kind of place.
pub fn word(source: &SecretSource) -> &'static str {
    match source {
        SecretSource::Env(_) => "env",
        SecretSource::File(_) => "file",
        SecretSource::Keyring { .. } => "keyring",
    }
}

/// Returns the place as policies write it behind that word.
pub fn text(source: &SecretSource) -> String {
    match source {
        SecretSource::Env(variable) => variable.clone(),
        SecretSource::File(path) => path.display().to_string(),
        SecretSource::Keyring { service, account } => format!("{service}/{account}"),
    }
}
