//! The vault: the one place that holds the values of secrets.

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
    Act, Problem, VaultError,
    fetch::{self, Brought, Read, Stamp, Wanted, stamp},
    file, keyring, value_of,
};
use crate::config::Env;

/// Longest wait for values, all of them together. Whoever waits cannot begin yet, and a place that
/// takes longer to answer asks somebody or is broken.
pub const FETCH_TIME_MAX: Duration = Duration::from_secs(5);

/// How long a look at a keyring counts; that at a file costs less and counts for nothing.
const KEYRING_LOOK_TIME: Duration = Duration::from_secs(1);

/// Values that were replaced and are still taken out of texts. More than these are not on their way
/// through a process any more.
const EARLIER_MAX: usize = 256;

/// Fetches the values of secrets and knows every value that it has fetched.
///
/// Where a value lies is said at each call, by the policy of that moment.
pub struct Vault {
    read: Read,
    time_max: Duration,
    kept: Mutex<Kept>,
}

/// The values at hand, and what takes them out of a text.
struct Kept {
    /// The edition of the policy whose secrets are all known, or cannot be.
    edition: Option<u64>,
    /// What the policy names, with the stamp of the file that the value was looked for in.
    named: BTreeMap<String, (SecretSource, Option<Stamp>)>,
    present: BTreeMap<String, Value>,
    /// What is still being fetched although nobody waits for it any more.
    under_way: Vec<Wanted>,
    /// Where what is fetched arrives.
    arrives: (Sender<Brought>, Receiver<Brought>),
    /// Values that were replaced: they may still be on their way through this process.
    earlier: VecDeque<(String, Secret)>,
    /// Values that no policy names: what the program itself sends to servers. Of one value under
    /// several names, the first is shown.
    own: Vec<(String, Secret)>,
    /// What was said of secrets already.
    told: BTreeSet<String>,
    looked_at_keyrings: Instant,
    redactor: Arc<Redactor>,
}

/// A value, and where it was fetched from.
struct Value {
    source: SecretSource,
    secret: Secret,
}

/// What an operator should know of a secret.
#[derive(Debug)]
pub enum Remark {
    /// Its value cannot be had, so it is not used, and nothing is searched for it.
    Unavailable(VaultError),
    /// Its value is too short to be searched for.
    TooShort(String),
}

impl Vault {
    /// A vault in which nothing is yet. `env` is where variables are looked up.
    pub fn new(env: Env) -> Self {
        let read = move |source: &SecretSource| match source {
            SecretSource::Env(variable) => {
                value_of(env.get(variable).ok_or(Problem::Missing)?.as_bytes())
            }
            SecretSource::File(path) => file::read(path),
            SecretSource::Keyring { service, account } => keyring::read(service, account),
        };
        Self::reading(Arc::new(read), FETCH_TIME_MAX)
    }

    fn reading(read: Read, time_max: Duration) -> Self {
        let kept = Kept {
            edition: None,
            named: BTreeMap::new(),
            present: BTreeMap::new(),
            under_way: Vec::new(),
            arrives: channel(),
            earlier: VecDeque::new(),
            own: Vec::new(),
            told: BTreeSet::new(),
            looked_at_keyrings: Instant::now(),
            redactor: Arc::new(Redactor::none()),
        };
        Self { read, time_max, kept: Mutex::new(kept) }
    }

    /// Takes out of texts from now on what the program itself sends to servers: keys of models.
    pub fn know(&self, own: impl IntoIterator<Item = (String, Secret)>) {
        let mut kept = self.kept();
        kept.own.extend(own);
        kept.renew();
    }

    /// Gets to know every secret that an edition of the policy names: at once those that are new, and
    /// again those whose place has changed since. Returns what nobody was told of before. Nobody gets
    /// a redactor meanwhile, so none is without a value that could be had.
    pub fn learn<'p>(
        &self,
        edition: u64,
        named: impl FnOnce() -> Vec<(&'p str, &'p SecretSource)>,
    ) -> Vec<Remark> {
        let mut kept = self.kept();
        let wanted = match kept.edition == Some(edition) {
            true => kept.changed(),
            false => {
                kept.edition = Some(edition);
                kept.missing(named())
            }
        };
        if wanted.is_empty() && kept.under_way.is_empty() {
            return Vec::new();
        }
        self.fetch(&mut kept, &wanted)
    }

    /// Returns the value of a secret, which is fetched when it is not at hand. Whoever asks for the
    /// redactor afterwards gets one that knows the value.
    ///
    /// # Errors
    ///
    /// There is no value, or none that is fit to be one, or it does not come in time. The next call
    /// tries again.
    pub fn get(&self, name: &str, source: &SecretSource) -> Result<Secret, VaultError> {
        let mut kept = self.kept();
        let wanted = Wanted { name: name.to_owned(), source: source.clone() };
        if let Some(secret) = kept.at_hand(&wanted) {
            return Ok(secret);
        }
        let mut problem = None;
        for brought in self.bring(&mut kept, std::slice::from_ref(&wanted)) {
            if brought.wanted == wanted {
                problem = brought.value.err();
            }
        }
        kept.at_hand(&wanted).ok_or_else(|| {
            let late = Problem::Late { time: self.time_max };
            failed(name, Act::Read, source)(problem.unwrap_or(late))
        })
    }

    /// Returns what takes every value out of a text that was fetched up to now. It stays as it is
    /// when further values are fetched.
    pub fn redactor(&self) -> Arc<Redactor> {
        Arc::clone(&self.kept().redactor)
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
        self.kept().forget(name);
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
        self.kept().forget(name);
        done.map_err(failed(name, Act::Remove, source))
    }

    /// Fetches values and says what came of it.
    fn fetch(&self, kept: &mut Kept, wanted: &[Wanted]) -> Vec<Remark> {
        let brought = self.bring(kept, wanted);
        let mut remarks = Vec::new();
        for Brought { wanted: Wanted { name, source }, value, .. } in brought {
            // A value that is at hand stays in use when its place cannot be read any more.
            let Err(problem) = value else { continue };
            if !kept.present.contains_key(&name) {
                let error = failed(&name, Act::Read, &source)(problem);
                remarks.push(Remark::Unavailable(error));
            }
        }
        let short = kept.redactor.too_short().iter().filter(|name| kept.named.contains_key(*name));
        remarks.extend(short.cloned().map(Remark::TooShort));
        remarks.retain(|remark| kept.told.insert(remark.to_string()));
        remarks
    }

    /// Fetches values, for as long as anybody waits, and keeps what comes, also what comes late.
    fn bring(&self, kept: &mut Kept, wanted: &[Wanted]) -> Vec<Brought> {
        let mut brought = kept.arrived(Instant::now(), &[]);
        let is_new = |one: &&Wanted| !kept.under_way.contains(one);
        let new: Vec<Wanted> = wanted.iter().filter(is_new).cloned().collect();
        let begun = fetch::begin(&self.read, &new, &kept.arrives.0);
        if begun.is_ok() {
            kept.under_way.extend(new.iter().cloned());
            brought.extend(kept.arrived(Instant::now() + self.time_max, &new));
        }
        kept.keep_all(&brought);
        let problem = || match &begun {
            Ok(()) => Problem::Late { time: self.time_max },
            Err(error) => Problem::Io(error.kind().into()),
        };
        let has_come = |one: &Wanted| brought.iter().any(|brought| brought.wanted == *one);
        let missing: Vec<Wanted> = wanted.iter().filter(|one| !has_come(one)).cloned().collect();
        let missing = missing.into_iter();
        let missing = missing.map(|wanted| Brought { wanted, stamp: None, value: Err(problem()) });
        brought.extend(missing);
        brought
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn at_hand(&self, wanted: &Wanted) -> Option<Secret> {
        let value = self.present.get(&wanted.name)?;
        (value.source == wanted.source).then(|| value.secret.clone())
    }

    /// Takes note of what the policy names, and returns what of it is not at hand.
    fn missing(&mut self, named: Vec<(&str, &SecretSource)>) -> Vec<Wanted> {
        let mut before = mem::take(&mut self.named);
        for (name, source) in named {
            let stamp = before.remove(name).filter(|(own, _)| own == source);
            let stamp = stamp.and_then(|(_, stamp)| stamp);
            self.named.insert(name.to_owned(), (source.clone(), stamp));
        }
        let all = self.named.iter();
        let all =
            all.map(|(name, (source, _))| Wanted { name: name.clone(), source: source.clone() });
        all.filter(|wanted| self.at_hand(wanted).is_none()).collect()
    }

    /// What may have changed since somebody looked: files with another stamp, and keyrings after a
    /// while. A place that did not answer is not looked at, since that might hang as well.
    fn changed(&mut self) -> Vec<Wanted> {
        let is_time = self.looked_at_keyrings.elapsed() >= KEYRING_LOOK_TIME;
        if is_time {
            self.looked_at_keyrings = Instant::now();
        }
        let all = self.named.iter().map(|(name, (source, stamp))| {
            (Wanted { name: name.clone(), source: source.clone() }, *stamp)
        });
        let answer = all.filter(|(wanted, _)| !self.under_way.contains(wanted));
        let changed = answer.filter(|(wanted, then)| match wanted.source {
            SecretSource::Env(_) => false,
            SecretSource::File(_) => stamp(&wanted.source) != *then,
            SecretSource::Keyring { .. } => is_time,
        });
        changed.map(|(wanted, _)| wanted).collect()
    }

    /// What has come, and what comes until a moment, as long as one of these is missing.
    fn arrived(&mut self, end: Instant, awaited: &[Wanted]) -> Vec<Brought> {
        let mut all = Vec::new();
        loop {
            let is_awaited = self.under_way.iter().any(|one| awaited.contains(one));
            let end = if is_awaited { end } else { Instant::now() };
            let left = end.saturating_duration_since(Instant::now());
            let Ok(brought) = self.arrives.1.recv_timeout(left) else { return all };
            self.under_way.retain(|one| *one != brought.wanted);
            all.push(brought);
        }
    }

    fn keep_all(&mut self, brought: &[Brought]) {
        let mut has_changed = false;
        for Brought { wanted, stamp, value } in brought {
            if let Some((source, at)) = self.named.get_mut(&wanted.name)
                && *source == wanted.source
            {
                *at = *stamp;
            }
            if let Ok(secret) = value
                && self.at_hand(wanted).as_ref() != Some(secret)
            {
                self.forget(&wanted.name);
                let value = Value { source: wanted.source.clone(), secret: secret.clone() };
                self.present.insert(wanted.name.clone(), value);
                has_changed = true;
            }
        }
        if has_changed {
            self.renew();
        }
    }

    /// Lets the next call fetch a value again. What was fetched is still taken out of texts.
    fn forget(&mut self, name: &str) {
        if let Some((name, value)) = self.present.remove_entry(name) {
            let pair = (name, value.secret);
            if !self.earlier.contains(&pair) {
                self.earlier.push_back(pair);
            }
            if self.earlier.len() > EARLIER_MAX {
                self.earlier.pop_front();
            }
        }
    }

    /// Of one value under several names, that of the policy is shown.
    fn renew(&mut self) {
        let present = self.present.iter().map(|(name, value)| (name.as_str(), &value.secret));
        let earlier = self.earlier.iter().map(|(name, secret)| (name.as_str(), secret));
        let own = self.own.iter().map(|(name, secret)| (name.as_str(), secret));
        self.redactor = Arc::new(Redactor::new(present.chain(earlier).chain(own)));
    }
}

impl fmt::Display for Remark {
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
    /// Names only.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Vault").field(&self.kept().present.keys()).finish()
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
#[path = "vault_tests.rs"]
mod tests;
