//! The vault: the one place that holds the values of secrets.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use sallyport_contract::{Redactor, Secret};
use sallyport_policy::SecretSource;

use super::{Act, Problem, VaultError, file, keyring, value_of};
use crate::config::Env;

/// Fetches the values of secrets, each once, and knows every value that it has fetched.
///
/// Where a value lies is said at each call, by the policy of that moment.
#[derive(Debug)]
pub struct Vault {
    env: Env,
    fetched: Mutex<Fetched>,
}

/// The values at hand, and what takes them out of a text.
#[derive(Debug)]
struct Fetched {
    present: BTreeMap<String, Value>,
    /// Values that were replaced: they may still be on their way through this process.
    earlier: Vec<(String, Secret)>,
    redactor: Arc<Redactor>,
}

/// A value, and where it was fetched from.
#[derive(Debug)]
struct Value {
    source: SecretSource,
    secret: Secret,
}

impl Vault {
    /// A vault in which nothing is yet. `env` is where variables are looked up.
    pub fn new(env: Env) -> Self {
        let redactor = Arc::new(Redactor::none());
        let fetched = Fetched { present: BTreeMap::new(), earlier: Vec::new(), redactor };
        Self { env, fetched: Mutex::new(fetched) }
    }

    /// Returns the value of a secret. It is fetched when it is first asked for, and again when the
    /// policy has come to name another source. Whoever asks for the redactor afterwards gets one
    /// that knows the value.
    ///
    /// # Errors
    ///
    /// There is no value, or none that is fit to be one. The next call tries again.
    pub fn get(&self, name: &str, source: &SecretSource) -> Result<Secret, VaultError> {
        let mut fetched = self.fetched();
        match fetched.present.get(name) {
            Some(value) if value.source == *source => return Ok(value.secret.clone()),
            _ => {}
        }
        let secret = self.fetch(source).map_err(failed(name, Act::Read, source))?;
        fetched.keep(name, Value { source: source.clone(), secret: secret.clone() });
        Ok(secret)
    }

    /// Returns what takes every value out of a text that was fetched up to now. It stays as it is
    /// when further values are fetched.
    pub fn redactor(&self) -> Arc<Redactor> {
        Arc::clone(&self.fetched().redactor)
    }

    /// Puts a value to where the policy says that it is.
    ///
    /// # Errors
    ///
    /// The place cannot be written to.
    pub fn set(&self, name: &str, source: &SecretSource, value: &Secret) -> Result<(), VaultError> {
        let done = match source {
            SecretSource::Env(_) => Err(Problem::ReadOnly),
            SecretSource::File(path) => file::write(path, value),
            SecretSource::Keyring { service, account } => keyring::write(service, account, value),
        };
        self.fetched().forget(name);
        done.map_err(failed(name, Act::Write, source))
    }

    /// Removes a value from where the policy says that it is.
    ///
    /// # Errors
    ///
    /// There is no value, or it cannot be removed.
    pub fn remove(&self, name: &str, source: &SecretSource) -> Result<(), VaultError> {
        let done = match source {
            SecretSource::Env(_) => Err(Problem::ReadOnly),
            SecretSource::File(path) => file::remove(path),
            SecretSource::Keyring { service, account } => keyring::remove(service, account),
        };
        self.fetched().forget(name);
        done.map_err(failed(name, Act::Remove, source))
    }

    fn fetch(&self, source: &SecretSource) -> Result<Secret, Problem> {
        match source {
            SecretSource::Env(variable) => {
                value_of(self.env.get(variable).ok_or(Problem::Missing)?.as_bytes())
            }
            SecretSource::File(path) => file::read(path),
            SecretSource::Keyring { service, account } => keyring::read(service, account),
        }
    }

    fn fetched(&self) -> MutexGuard<'_, Fetched> {
        self.fetched.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Fetched {
    fn keep(&mut self, name: &str, value: Value) {
        self.forget(name);
        self.present.insert(name.to_owned(), value);
        let present = self.present.iter().map(|(name, value)| (name.as_str(), &value.secret));
        let earlier = self.earlier.iter().map(|(name, secret)| (name.as_str(), secret));
        self.redactor = Arc::new(Redactor::new(present.chain(earlier)));
    }

    /// Lets the next call fetch a value again. What was fetched is still taken out of texts.
    fn forget(&mut self, name: &str) {
        if let Some((name, value)) = self.present.remove_entry(name) {
            let pair = (name, value.secret);
            if !self.earlier.contains(&pair) {
                self.earlier.push(pair);
            }
        }
    }
}

/// Whether the place is one that values can be put to, as far as that can be known beforehand.
///
/// # Errors
///
/// The place is a variable of the environment.
pub fn writable(name: &str, source: &SecretSource) -> Result<(), VaultError> {
    match source {
        SecretSource::Env(_) => Err(failed(name, Act::Write, source)(Problem::ReadOnly)),
        SecretSource::File(_) | SecretSource::Keyring { .. } => Ok(()),
    }
}

fn failed(name: &str, act: Act, place: &SecretSource) -> impl FnOnce(Problem) -> VaultError {
    move |problem| VaultError { name: name.to_owned(), act, place: place.clone(), problem }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    const TOKEN: &str = "s3cr3t-Tok3n_9";

    fn vault() -> Vault {
        Vault::new(Env::of([("TOKEN", TOKEN), ("EMPTY", ""), ("PIN", "1234")]))
    }

    fn env(variable: &str) -> SecretSource {
        SecretSource::Env(variable.into())
    }

    /// A folder of its own, and a place for a value in it.
    fn file() -> (tempfile::TempDir, SecretSource) {
        let folder = tempfile::tempdir().unwrap();
        let source = SecretSource::File(folder.path().join("value"));
        (folder, source)
    }

    fn redacted(vault: &Vault, text: &str) -> String {
        vault.redactor().text(text).into_owned()
    }

    #[test]
    fn a_value_is_fetched_once_and_then_known() {
        let ((folder, file), vault) = (file(), vault());
        assert!(vault.redactor().is_empty());
        assert_eq!(vault.get("token", &env("TOKEN")).unwrap(), Secret::new(TOKEN));
        vault.set("file", &file, &Secret::new("first-value")).unwrap();
        let before = vault.redactor();
        assert_eq!(vault.get("file", &file).unwrap(), Secret::new("first-value"));
        assert_eq!(before.text("first-value"), "first-value");
        std::fs::remove_file(folder.path().join("value")).unwrap();
        assert_eq!(vault.get("file", &file).unwrap(), Secret::new("first-value"));
        let text = format!("first-value {TOKEN}");
        assert_eq!(redacted(&vault, &text), "[secret file] [secret token]");
    }

    #[test]
    fn what_was_fetched_before_a_change_is_still_taken_out() {
        let ((_folder, file), vault) = (file(), vault());
        for value in ["first-value", "other-value", "first-value"] {
            vault.set("key", &file, &Secret::new(value)).unwrap();
            assert_eq!(vault.get("key", &file).unwrap(), Secret::new(value));
        }
        assert_eq!(vault.get("key", &env("TOKEN")).unwrap(), Secret::new(TOKEN));
        let text = format!("first-value other-value {TOKEN}");
        assert_eq!(redacted(&vault, &text), "[secret key] [secret key] [secret key]");
        assert_eq!(vault.fetched().earlier.len(), 2);
    }

    #[track_caller]
    fn check_missing(error: &VaultError, message: &str, hint: &str) {
        assert_eq!(error.to_string(), message);
        assert!(error.hint().unwrap().contains(hint), "{:?}", error.hint());
        assert_eq!(error.for_model(), "the secret x is not available");
    }

    #[test]
    fn a_secret_without_a_value_is_told_with_a_way_out() {
        let ((_folder, file), vault) = (file(), vault());
        for variable in ["EMPTY", "UNSET"] {
            let error = vault.get("x", &env(variable)).unwrap_err();
            let place = format!("the environment variable {variable}");
            let message = format!("the secret x cannot be read from {place}: it is not there");
            check_missing(&error, &message, &format!("set {variable} before"));
        }
        let error = vault.get("x", &file).unwrap_err();
        let SecretSource::File(path) = &file else { unreachable!() };
        let place = format!("the file {}", path.display());
        let message = format!("the secret x cannot be read from {place}: it is not there");
        check_missing(&error, &message, "sallyport secret set x");
        assert!(vault.remove("x", &file).unwrap_err().hint().is_none());
        // A later try finds what was put there in the meantime.
        vault.set("x", &file, &Secret::new("late-value")).unwrap();
        assert_eq!(vault.get("x", &file).unwrap(), Secret::new("late-value"));
    }

    #[test]
    fn every_problem_that_can_be_mended_says_how() {
        let folder = SecretSource::File("/".into());
        let link = SecretSource::File("/proc/self/exe".into());
        for (source, message, hint) in [
            (folder, "the file /: it is not a regular file", "a file of your own"),
            (link, "the file /proc/self/exe: it is a symbolic link", "the file itself"),
        ] {
            let error = vault().get("x", &source).unwrap_err();
            assert!(error.to_string().ends_with(message), "{error}");
            assert!(error.hint().unwrap().contains(hint), "{:?}", error.hint());
        }
        let exposed = VaultError {
            name: "x".into(),
            act: Act::Read,
            place: SecretSource::File(Path::new("/a").into()),
            problem: Problem::Exposed { mode: 0o640 },
        };
        assert!(exposed.to_string().ends_with("others may open it (mode 640)"), "{exposed}");
        assert!(exposed.hint().unwrap().starts_with("run chmod 600 /a"), "{:?}", exposed.hint());
    }

    #[test]
    fn the_environment_is_not_written_to() {
        let (vault, place) = (vault(), env("TOKEN"));
        let tried = [
            writable("token", &place),
            vault.set("token", &place, &Secret::new("x")),
            vault.remove("token", &place),
        ];
        for error in tried.map(Result::unwrap_err) {
            assert!(error.to_string().contains("not this program's to change"), "{error}");
            assert!(error.hint().unwrap().contains("set TOKEN before"), "{:?}", error.hint());
        }
    }

    #[test]
    fn nothing_that_is_printed_holds_a_value() {
        let vault = vault();
        vault.get("token", &env("TOKEN")).unwrap();
        vault.get("pin", &env("PIN")).unwrap();
        assert_eq!(vault.redactor().too_short(), ["pin"]);
        let shown = format!("{vault:?}");
        assert!(!shown.contains(TOKEN) && !shown.contains("1234"), "{shown}");
    }

    /// The entry is this process's own by its name, and removed at the end.
    #[test]
    #[cfg(target_os = "linux")]
    fn the_keyring_keeps_a_value_where_the_system_has_one() {
        let service = format!("test-{}", std::process::id());
        let place = SecretSource::Keyring { service, account: "me/too".into() };
        let vault = vault();
        let long = Secret::new("x".repeat(40_000));
        let error = vault.set("key", &place, &long).unwrap_err().to_string();
        assert!(error.ends_with("it is longer than 32767 bytes"), "{error}");
        match vault.set("key", &place, &Secret::new(TOKEN)) {
            // A container may have no keyring; then that is what is said.
            Err(error) => assert!(error.to_string().contains("keyring cannot be used"), "{error}"),
            Ok(()) => check_keyring(&vault, &place),
        }
    }

    #[cfg(target_os = "linux")]
    fn check_keyring(vault: &Vault, place: &SecretSource) {
        assert_eq!(vault.get("key", place).unwrap(), Secret::new(TOKEN));
        vault.set("key", place, &Secret::new("other-value")).unwrap();
        // Another thread has rings of its own, as another process has.
        let there = || vault.get("key", place);
        let there = std::thread::scope(|scope| scope.spawn(there).join().unwrap());
        assert_eq!(there.unwrap(), Secret::new("other-value"));
        vault.remove("key", place).unwrap();
        let missing = vault.get("key", place).unwrap_err();
        assert!(missing.to_string().ends_with("it is not there"), "{missing}");
        assert!(missing.hint().unwrap().contains("forgets"), "{:?}", missing.hint());
    }
}
