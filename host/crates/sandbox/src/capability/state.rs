//! `state`: keys and values that a plugin stores, separately for each user.

use std::time::Duration;

use sallyport_contract::{
    DataOwner,
    services::{self, StateStore, StateStoreError, StateWrite, StoredValue},
};
use sallyport_policy::{ByteSize, Capability, StateGrant};

use super::{apart, cannot_be_used, named};
use crate::{
    bindings::v0_1::sallyport::plugin::state::{Entry, Error, Expected, Host, Page},
    guest::Guest,
};

/// Longest key in bytes. A key is a name, not a place for data.
const KEY_BYTES_MAX: usize = 512;

/// Most keys on one page of a listing.
const PAGE_KEYS_MAX: u32 = 1000;

/// Longest time to expiry. A longer one means that the value never expires. Every store can
/// represent the dates within this limit.
const EXPIRY_MAX: Duration = Duration::from_secs(100 * 366 * 24 * 60 * 60);

/// A value that a guest asks to store.
struct Wish {
    key: String,
    value: Vec<u8>,
    expected: services::WriteCondition,
    expires_in_ms: Option<u64>,
}

impl Host for Guest {
    async fn get(&mut self, key: String) -> wasmtime::Result<Result<Option<Entry>, Error>> {
        Ok(self.state_get(key).await)
    }

    async fn set(
        &mut self,
        key: String,
        value: Vec<u8>,
        expires_in_ms: Option<u64>,
    ) -> wasmtime::Result<Result<u64, Error>> {
        let expected = services::WriteCondition::Anything;
        Ok(self.state_set(Wish { key, value, expected, expires_in_ms }).await)
    }

    async fn compare_and_set(
        &mut self,
        key: String,
        expected: Expected,
        value: Vec<u8>,
        expires_in_ms: Option<u64>,
    ) -> wasmtime::Result<Result<u64, Error>> {
        let expected = match expected {
            Expected::Nothing => services::WriteCondition::Nothing,
            Expected::Version(version) => services::WriteCondition::Version(version),
            Expected::Other(_) => {
                return Ok(Err(Error::Invalid("what is expected is not known here".to_owned())));
            }
        };
        Ok(self.state_set(Wish { key, value, expected, expires_in_ms }).await)
    }

    async fn remove(&mut self, key: String) -> wasmtime::Result<Result<bool, Error>> {
        Ok(self.state_remove(key).await)
    }

    async fn list_keys(
        &mut self,
        prefix: String,
        after: Option<String>,
        limit: u32,
    ) -> wasmtime::Result<Result<Page, Error>> {
        Ok(self.state_list(prefix, after, limit).await)
    }
}

impl Guest {
    async fn state_get(&mut self, key: String) -> Result<Option<Entry>, Error> {
        self.may_keep("read what it keeps")?;
        check_key(&key)?;
        let what = format!("get {}", named(&self.case, &key));
        let kept = self.in_store(what, move |store, owner| store.get(owner, &key)).await?;
        Ok(kept.map(|StoredValue { value, version }| Entry { value, version, extra: None }))
    }

    async fn state_set(&mut self, wish: Wish) -> Result<u64, Error> {
        let StateGrant { quota_bytes, value_bytes_max, .. } = self.may_keep("keep something")?;
        check_key(&wish.key)?;
        check_value(&wish.value, value_bytes_max)?;
        let expires_in = expiry(wish.expires_in_ms)?;
        let what = format!("set {} ({} bytes)", named(&self.case, &wish.key), wish.value.len());
        let set = move |store: &dyn StateStore, owner: &DataOwner| {
            let Wish { key, value, expected, .. } = &wish;
            let write = StateWrite { value, expected: *expected, expires_in, quota_bytes };
            store.set(owner, key, write)
        };
        self.in_store(what, set).await
    }

    async fn state_remove(&mut self, key: String) -> Result<bool, Error> {
        self.may_keep("forget what it keeps")?;
        check_key(&key)?;
        let what = format!("delete {}", named(&self.case, &key));
        self.in_store(what, move |store, owner| store.delete(owner, &key)).await
    }

    async fn state_list(
        &mut self,
        prefix: String,
        after: Option<String>,
        limit: u32,
    ) -> Result<Page, Error> {
        self.may_keep("read what it keeps")?;
        check_length(&prefix)?;
        after.as_deref().map_or(Ok(()), check_length)?;
        if limit == 0 {
            return Err(Error::Invalid("a page of no keys never ends".to_owned()));
        }
        let keys_max = limit.min(PAGE_KEYS_MAX) as usize;
        let what = format!("list {}", named(&self.case, &prefix));
        // One key more than the page holds shows whether there is another page.
        let list = move |store: &dyn StateStore, owner: &DataOwner| {
            store.list_keys(owner, &prefix, after.as_deref(), keys_max + 1)
        };
        let mut keys = self.in_store(what, list).await?;
        let is_last = keys.len() <= keys_max;
        keys.truncate(keys_max);
        let next = if is_last { None } else { keys.last().cloned() };
        Ok(Page { keys, next, extra: None })
    }

    /// Makes sure that the plugin may use its store, and counts the call.
    fn may_keep(&mut self, what: &str) -> Result<StateGrant, Error> {
        let grant = self.case.grant();
        let Some(state) = grant.state() else {
            self.case.ledger.refused(grant.deny_capability(Capability::State, what));
            return Err(Error::NotGranted);
        };
        if self.uses.store.take() {
            return Ok(*state);
        }
        let limit = self.uses.store.limit("questions to the store");
        self.case.ledger.limit_reached(limit.clone());
        Err(Error::Unavailable(format!("the limit of {limit} is reached")))
    }

    async fn in_store<R: Send + 'static>(
        &mut self,
        what: String,
        work: impl FnOnce(&dyn StateStore, &DataOwner) -> Result<R, StateStoreError> + Send + 'static,
    ) -> Result<R, Error> {
        let Some(store) = self.case.warden().services().state else {
            return Err(Error::Unavailable("nothing can be kept here".to_owned()));
        };
        let owner = self.case.owner();
        let going_on = self.case.ledger.using(Capability::State, what);
        let done = apart(move || work(&*store, &owner)).await;
        done.map_err(|error| {
            going_on.ended(&format!(": {error}"));
            self.state_error(error)
        })
    }

    fn state_error(&self, error: StateStoreError) -> Error {
        match error {
            StateStoreError::Conflict { present } => Error::Conflict(present),
            StateStoreError::QuotaReached { quota, .. } => {
                let limit = format!("{} of state (quota)", ByteSize(quota));
                self.case.ledger.limit_reached(limit);
                Error::QuotaReached(error.to_string())
            }
            StateStoreError::Unavailable(_) => Error::Unavailable(cannot_be_used("store")),
        }
    }
}

fn check_key(key: &str) -> Result<(), Error> {
    if key.is_empty() {
        return Err(Error::Invalid("the key is empty".to_owned()));
    }
    check_length(key)
}

fn check_length(key: &str) -> Result<(), Error> {
    if key.len() <= KEY_BYTES_MAX {
        return Ok(());
    }
    let bytes = key.len();
    Err(Error::Invalid(format!("a key of {bytes} bytes, {KEY_BYTES_MAX} are allowed")))
}

fn check_value(value: &[u8], bytes_max: u64) -> Result<(), Error> {
    if value.len() as u64 <= bytes_max {
        return Ok(());
    }
    let bytes = value.len();
    Err(Error::Invalid(format!("a value of {bytes} bytes, {bytes_max} are allowed")))
}

fn expiry(ms: Option<u64>) -> Result<Option<Duration>, Error> {
    match ms {
        Some(0) => Err(Error::Invalid("it would expire at once".to_owned())),
        ms => Ok(ms.map(Duration::from_millis).filter(|time| *time <= EXPIRY_MAX)),
    }
}
