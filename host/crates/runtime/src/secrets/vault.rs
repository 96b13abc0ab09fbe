//! The vault: the one place that stores the values of secrets.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    fmt, mem,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        mpsc::{Receiver, Sender, channel},
    },
    time::{Duration, Instant},
};

use sallyport_contract::{Redactor, Secret, redact::REDACTED_BYTES_MIN};
use sallyport_policy::SecretSource;

use super::{
    SecretAction, SecretProblem, VaultError,
    fetch::{
        self, SecretFetchRequest, SecretFetchResult, SecretFileStamp, SecretReader,
        secret_file_stamp,
    },
    file, keyring, parse_secret_value,
};
use crate::environment::Env;

/// Timeout of fetching values, all of them together. The caller is blocked meanwhile, and a source
/// that takes longer is asking the user or is broken.
pub const FETCH_TIME_MAX: Duration = Duration::from_secs(5);

/// How long a keyring read stays valid. Files are checked every time, because that costs less.
const KEYRING_CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Most replaced values that are still redacted. Older ones no longer pass through the process.
const REPLACED_VALUES_MAX: usize = 256;

/// Fetches the values of secrets and knows every value that it has fetched.
///
/// Each call passes the source of a value, from the current policy.
pub struct Vault {
    reader: SecretReader,
    time_max: Duration,
    state: Mutex<VaultState>,
}

/// The fetched values, and the redactor that removes them from texts.
struct VaultState {
    /// The edition of the policy whose secrets have all been tried.
    policy_revision: Option<u64>,
    /// The secrets that the policy names, with the stamp of the file when it was read.
    policy_secrets: BTreeMap<String, (SecretSource, Option<SecretFileStamp>)>,
    current_values: BTreeMap<String, StoredSecret>,
    /// Fetches that are still running although their caller has given up.
    pending: Vec<SecretFetchRequest>,
    /// The channel of fetched values.
    results: (Sender<SecretFetchResult>, Receiver<SecretFetchResult>),
    /// Replaced values, which may still pass through this process.
    replaced_values: VecDeque<(String, Secret)>,
    /// The keys that the program itself sends to servers. For a value with several names, the
    /// redactor shows the first one.
    host_keys: Vec<(String, Secret)>,
    /// The current token of each account, with its name in texts.
    account_tokens: BTreeMap<String, (String, Secret)>,
    /// Remarks that were already reported, with the secret whose next value makes them void.
    reported: BTreeSet<(Option<String>, String)>,
    keyrings_checked_at: Instant,
    redactor: Arc<Redactor>,
}

/// A value and its source.
struct StoredSecret {
    source: SecretSource,
    secret: Secret,
}

/// A remark about a secret for the operator.
#[derive(Debug)]
pub enum SecretRemark {
    /// Its value cannot be fetched, so the secret is neither used nor redacted.
    Unavailable(VaultError),
    /// Its value is too short to be redacted.
    TooShort(String),
}

impl Vault {
    /// An empty vault. Variables are looked up in `env`.
    pub fn new(env: Env) -> Self {
        let read = move |source: &SecretSource| match source {
            SecretSource::Env(variable) => {
                parse_secret_value(env.get(variable).ok_or(SecretProblem::Missing)?.as_bytes())
            }
            SecretSource::File(path) => file::read(path),
            SecretSource::Keyring { service, account } => keyring::read(service, account),
        };
        Self::with_reader(Arc::new(read), FETCH_TIME_MAX)
    }

    fn with_reader(reader: SecretReader, time_max: Duration) -> Self {
        let state = VaultState {
            policy_revision: None,
            policy_secrets: BTreeMap::new(),
            current_values: BTreeMap::new(),
            pending: Vec::new(),
            results: channel(),
            replaced_values: VecDeque::new(),
            host_keys: Vec::new(),
            account_tokens: BTreeMap::new(),
            reported: BTreeSet::new(),
            keyrings_checked_at: Instant::now(),
            redactor: Arc::new(Redactor::empty()),
        };
        Self { reader, time_max, state: Mutex::new(state) }
    }

    /// Adds the keys that the program itself sends to servers to the redactor.
    pub fn add_redacted_keys(&self, own: impl IntoIterator<Item = (String, Secret)>) {
        let mut state = self.lock_state();
        let known = state.host_keys.len();
        for (name, key) in own {
            if state.host_keys.iter().all(|(_, known)| *known != key) {
                state.host_keys.push((name, key));
            }
        }
        if state.host_keys.len() > known {
            state.rebuild_redactor();
        }
    }

    /// Adds the current token of an account to the redactor. The one before it counts as replaced,
    /// because a token that is refreshed each hour would otherwise add up.
    pub fn set_account_token(&self, account: String, name: String, token: Secret) {
        let mut state = self.lock_state();
        let is_known = |(_, known): &(String, Secret)| *known == token;
        if state.account_tokens.get(&account).is_some_and(is_known) {
            return;
        }
        if let Some(replaced) = state.account_tokens.insert(account, (name, token)) {
            state.add_replaced_value(replaced);
        }
        state.rebuild_redactor();
    }

    /// Fetches every secret that an edition of the policy names: new ones immediately, and the
    /// others again after their source changed. Returns the remarks that were not reported before.
    /// The redactor is locked meanwhile, so it always contains every value that could be fetched.
    pub fn fetch_named_secrets<'p>(
        &self,
        policy_revision: u64,
        named: impl FnOnce() -> Vec<(&'p str, &'p SecretSource)>,
    ) -> Vec<SecretRemark> {
        let mut state = self.lock_state();
        let wanted = match state.policy_revision == Some(policy_revision) {
            true => state.changed_secrets(),
            false => {
                state.policy_revision = Some(policy_revision);
                state.update_named_secrets(named())
            }
        };
        if wanted.is_empty() && state.pending.is_empty() {
            return Vec::new();
        }
        self.fetch_with_remarks(&mut state, &wanted)
    }

    /// Returns the value of a secret, and fetches it if necessary. A redactor obtained afterwards
    /// knows the value.
    ///
    /// # Errors
    ///
    /// The value is missing or invalid, or does not arrive in time. The next call tries again.
    pub fn get(&self, name: &str, source: &SecretSource) -> Result<Secret, VaultError> {
        let mut state = self.lock_state();
        let wanted = SecretFetchRequest { name: name.to_owned(), source: source.clone() };
        if let Some(secret) = state.cached_secret(&wanted) {
            return Ok(secret);
        }
        let fetched = self.fetch_values(&mut state, std::slice::from_ref(&wanted));
        let own = fetched.into_iter().filter(|result| result.request == wanted);
        let problem = own.filter_map(|result| result.value.err()).last();
        state.cached_secret(&wanted).ok_or_else(|| {
            let late = SecretProblem::Late { time: self.time_max };
            vault_error(name, SecretAction::Read, source)(problem.unwrap_or(late))
        })
    }

    /// Returns a redactor for every value fetched so far. Later values do not change it.
    pub fn redactor(&self) -> Arc<Redactor> {
        Arc::clone(&self.lock_state().redactor)
    }

    /// Writes a value to its source.
    ///
    /// # Errors
    ///
    /// The source cannot be written to.
    pub fn set(&self, name: &str, source: &SecretSource, value: &Secret) -> Result<(), VaultError> {
        let done = match source {
            SecretSource::Env(_) => Err(SecretProblem::ReadOnly),
            SecretSource::File(path) => file::write(path, value),
            SecretSource::Keyring { service, account } => keyring::write(service, account, value),
        };
        self.lock_state().forget_value(name);
        done.map_err(vault_error(name, SecretAction::Write, source))
    }

    /// Removes a value from its source.
    ///
    /// # Errors
    ///
    /// The value does not exist, or cannot be removed.
    pub fn remove(&self, name: &str, source: &SecretSource) -> Result<(), VaultError> {
        let done = match source {
            SecretSource::Env(_) => Err(SecretProblem::ReadOnly),
            SecretSource::File(path) => file::remove(path),
            SecretSource::Keyring { service, account } => keyring::remove(service, account),
        };
        self.lock_state().forget_value(name);
        done.map_err(vault_error(name, SecretAction::Remove, source))
    }

    /// Fetches values and returns the remarks that are new.
    fn fetch_with_remarks(
        &self,
        state: &mut VaultState,
        wanted: &[SecretFetchRequest],
    ) -> Vec<SecretRemark> {
        let fetched = self.fetch_values(state, wanted);
        let mut remarks = Vec::new();
        for SecretFetchResult { request, value, .. } in fetched {
            // A known value stays in use if its source has only not answered.
            if let Err(problem) = value
                && !state.current_values.contains_key(&request.name)
            {
                let error = vault_error(&request.name, SecretAction::Read, &request.source);
                remarks.push(SecretRemark::Unavailable(error(problem)));
            }
        }
        let short = state
            .redactor
            .too_short_names()
            .iter()
            .filter(|name| state.policy_secrets.contains_key(*name));
        remarks.extend(short.cloned().map(SecretRemark::TooShort));
        remarks.retain(|remark| {
            let unavailable = remark.unavailable_secret().map(str::to_owned);
            state.reported.insert((unavailable, remark.to_string()))
        });
        remarks
    }

    /// Fetches values within the time limit, and stores all that arrive, including late ones.
    fn fetch_values(
        &self,
        state: &mut VaultState,
        wanted: &[SecretFetchRequest],
    ) -> Vec<SecretFetchResult> {
        let mut fetched = state.receive_arrived(Instant::now(), &[]);
        let is_new = |one: &&SecretFetchRequest| !state.pending.contains(one);
        let new: Vec<SecretFetchRequest> = wanted.iter().filter(is_new).cloned().collect();
        let started = fetch::start_fetching(&self.reader, &new, &state.results.0);
        if started.is_ok() {
            state.pending.extend(new.iter().cloned());
            fetched.extend(state.receive_arrived(Instant::now() + self.time_max, &new));
        }
        state.store_results(&fetched);
        let problem = || match &started {
            Ok(()) => SecretProblem::Late { time: self.time_max },
            Err(error) => SecretProblem::Io(error.kind().into()),
        };
        for request in wanted {
            if fetched.iter().all(|result| result.request != *request) {
                let (request, value) = (request.clone(), Err(problem()));
                fetched.push(SecretFetchResult { request, stamp: None, value });
            }
        }
        fetched
    }

    fn lock_state(&self) -> MutexGuard<'_, VaultState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl VaultState {
    fn cached_secret(&self, wanted: &SecretFetchRequest) -> Option<Secret> {
        let value = self.current_values.get(&wanted.name)?;
        (value.source == wanted.source).then(|| value.secret.clone())
    }

    /// Records the secrets that the policy names, and returns those without a value.
    fn update_named_secrets(
        &mut self,
        named: Vec<(&str, &SecretSource)>,
    ) -> Vec<SecretFetchRequest> {
        let mut before = mem::take(&mut self.policy_secrets);
        for (name, source) in named {
            let known = before.remove(name).filter(|(own, _)| own == source);
            let stamp = known.and_then(|(_, stamp)| stamp);
            self.policy_secrets.insert(name.to_owned(), (source.clone(), stamp));
        }
        let all = self.policy_requests().map(|(wanted, _)| wanted);
        all.filter(|wanted| self.cached_secret(wanted).is_none()).collect()
    }

    /// A request for each secret that the policy names, with the stamp of the file when it was
    /// read.
    fn policy_requests(
        &self,
    ) -> impl Iterator<Item = (SecretFetchRequest, Option<SecretFileStamp>)> {
        self.policy_secrets.iter().map(|(name, (source, stamp))| {
            (SecretFetchRequest { name: name.clone(), source: source.clone() }, *stamp)
        })
    }

    /// The secrets that may have changed since the last check: files with a new stamp, and keyrings
    /// after a while. A source that has not answered yet is skipped, because it might hang again.
    fn changed_secrets(&mut self) -> Vec<SecretFetchRequest> {
        let is_time = self.keyrings_checked_at.elapsed() >= KEYRING_CHECK_INTERVAL;
        if is_time {
            self.keyrings_checked_at = Instant::now();
        }
        let responsive =
            self.policy_requests().filter(|(wanted, _)| !self.pending.contains(wanted));
        let changed = responsive.filter(|(wanted, old_stamp)| match wanted.source {
            SecretSource::Env(_) => false,
            SecretSource::File(_) => secret_file_stamp(&wanted.source) != *old_stamp,
            SecretSource::Keyring { .. } => is_time,
        });
        changed.map(|(wanted, _)| wanted).collect()
    }

    /// Values that have arrived, waiting until `end` for those in `awaited`.
    fn receive_arrived(
        &mut self,
        end: Instant,
        awaited: &[SecretFetchRequest],
    ) -> Vec<SecretFetchResult> {
        let mut all = Vec::new();
        loop {
            let is_awaited = self.pending.iter().any(|one| awaited.contains(one));
            let end = if is_awaited { end } else { Instant::now() };
            let left = end.saturating_duration_since(Instant::now());
            let Ok(fetched) = self.results.1.recv_timeout(left) else { return all };
            self.pending.retain(|one| *one != fetched.request);
            all.push(fetched);
        }
    }

    fn store_results(&mut self, fetched: &[SecretFetchResult]) {
        let mut has_changed = false;
        for SecretFetchResult { request: wanted, stamp, value } in fetched {
            if let Some((source, at)) = self.policy_secrets.get_mut(&wanted.name)
                && *source == wanted.source
            {
                *at = *stamp;
            }
            let cached = self.cached_secret(wanted);
            match value {
                Ok(secret) if cached.as_ref() != Some(secret) => {
                    self.forget_value(&wanted.name);
                    let source = wanted.source.clone();
                    let value = StoredSecret { source, secret: secret.clone() };
                    self.current_values.insert(wanted.name.clone(), value);
                    // The next loss is reported again.
                    self.reported.retain(|(secret, _)| secret.as_ref() != Some(&wanted.name));
                    has_changed = true;
                }
                // The user may have removed the value, or others may know it.
                Err(problem) if cached.is_some() && !problem.is_temporary() => {
                    self.forget_value(&wanted.name);
                }
                Ok(_) | Err(_) => {}
            }
        }
        if has_changed {
            self.rebuild_redactor();
        }
    }

    /// Makes the next call fetch a value again. The old value is still redacted.
    fn forget_value(&mut self, name: &str) {
        if let Some((name, value)) = self.current_values.remove_entry(name) {
            self.add_replaced_value((name, value.secret));
        }
    }

    fn add_replaced_value(&mut self, pair: (String, Secret)) {
        if !self.replaced_values.contains(&pair) {
            self.replaced_values.push_back(pair);
        }
        if self.replaced_values.len() > REPLACED_VALUES_MAX {
            self.replaced_values.pop_front();
        }
    }

    /// Rebuilds the redactor. For a value with several names, the policy's name is shown.
    fn rebuild_redactor(&mut self) {
        let current_values =
            self.current_values.iter().map(|(name, value)| (name.as_str(), &value.secret));
        let replaced_values =
            self.replaced_values.iter().map(|(name, secret)| (name.as_str(), secret));
        let own = self.host_keys.iter().chain(self.account_tokens.values());
        let own = own.map(|(name, secret)| (name.as_str(), secret));
        self.redactor = Arc::new(Redactor::new(current_values.chain(replaced_values).chain(own)));
    }
}

impl SecretRemark {
    /// The secret that has no value, if the remark says so.
    fn unavailable_secret(&self) -> Option<&str> {
        match self {
            Self::Unavailable(error) => Some(&error.name),
            Self::TooShort(_) => None,
        }
    }
}

impl fmt::Display for SecretRemark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unavailable(error) => {
                write!(f, "{error}; the secret is not used until then")?;
                error.hint().map_or(Ok(()), |hint| write!(f, ". To fix: {hint}"))
            }
            Self::TooShort(name) => write!(
                f,
                "the secret {name} is shorter than {REDACTED_BYTES_MIN} bytes: it is not taken out \
                 of what plugins and servers answer"
            ),
        }
    }
}

impl fmt::Debug for Vault {
    /// Shows names only.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Vault").field(&self.lock_state().current_values.keys()).finish()
    }
}

/// Whether values can be written to the source, as far as is known beforehand.
///
/// # Errors
///
/// The source is an environment variable.
pub fn check_writable(name: &str, source: &SecretSource) -> Result<(), VaultError> {
    match source {
        SecretSource::Env(_) => {
            Err(vault_error(name, SecretAction::Write, source)(SecretProblem::ReadOnly))
        }
        SecretSource::File(_) | SecretSource::Keyring { .. } => Ok(()),
    }
}

fn vault_error(
    name: &str,
    action: SecretAction,
    secret_source: &SecretSource,
) -> impl FnOnce(SecretProblem) -> VaultError {
    move |problem| VaultError {
        name: name.to_owned(),
        action,
        secret_source: secret_source.clone(),
        problem,
    }
}

#[cfg(test)]
#[path = "vault_tests.rs"]
mod tests;
