//! `state`: keys and values that a plugin stores, separately for each user.

use std::time::Duration;

use sallyport_contract::{
    DataOwner,
    services::{self, StateStore, StateStoreError, StateWrite, StoredValue},
};
use sallyport_policy::{ByteSize, Capability, StateGrant};

use super::{quote_for_record, run_blocking, unavailable_message};
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
struct StateWriteRequest {
    key: String,
    value: Vec<u8>,
    expected: services::WriteCondition,
    expires_in_ms: Option<u64>,
}

impl Host for Guest {
    async fn get(&mut self, key: String) -> wasmtime::Result<Result<Option<Entry>, Error>> {
        Ok(self.get_state(key).await)
    }

    async fn set(
        &mut self,
        key: String,
        value: Vec<u8>,
        expires_in_ms: Option<u64>,
    ) -> wasmtime::Result<Result<u64, Error>> {
        let expected = services::WriteCondition::Anything;
        Ok(self.set_state(StateWriteRequest { key, value, expected, expires_in_ms }).await)
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
        Ok(self.set_state(StateWriteRequest { key, value, expected, expires_in_ms }).await)
    }

    async fn remove(&mut self, key: String) -> wasmtime::Result<Result<bool, Error>> {
        Ok(self.remove_state(key).await)
    }

    async fn list_keys(
        &mut self,
        prefix: String,
        after: Option<String>,
        limit: u32,
    ) -> wasmtime::Result<Result<Page, Error>> {
        Ok(self.list_state_keys(prefix, after, limit).await)
    }
}

impl Guest {
    async fn get_state(&mut self, key: String) -> Result<Option<Entry>, Error> {
        self.require_state_grant("read what it keeps")?;
        check_key(&key)?;
        let what = format!("get {}", quote_for_record(&self.run_context, &key));
        let stored =
            self.with_state_store(what, move |store, owner| store.get(owner, &key)).await?;
        Ok(stored.map(|StoredValue { value, version }| Entry { value, version, extra: None }))
    }

    async fn set_state(&mut self, request: StateWriteRequest) -> Result<u64, Error> {
        let StateGrant { quota_bytes, value_bytes_max, .. } =
            self.require_state_grant("keep something")?;
        check_key(&request.key)?;
        check_value(&request.value, value_bytes_max)?;
        let expires_in = parse_expiry(request.expires_in_ms)?;
        let what = format!(
            "set {} ({} bytes)",
            quote_for_record(&self.run_context, &request.key),
            request.value.len()
        );
        let set = move |store: &dyn StateStore, owner: &DataOwner| {
            let StateWriteRequest { key, value, expected, .. } = &request;
            let write = StateWrite { value, expected: *expected, expires_in, quota_bytes };
            store.set(owner, key, write)
        };
        self.with_state_store(what, set).await
    }

    async fn remove_state(&mut self, key: String) -> Result<bool, Error> {
        self.require_state_grant("forget what it keeps")?;
        check_key(&key)?;
        let what = format!("delete {}", quote_for_record(&self.run_context, &key));
        self.with_state_store(what, move |store, owner| store.delete(owner, &key)).await
    }

    async fn list_state_keys(
        &mut self,
        prefix: String,
        after: Option<String>,
        limit: u32,
    ) -> Result<Page, Error> {
        self.require_state_grant("read what it keeps")?;
        check_key_length(&prefix)?;
        after.as_deref().map_or(Ok(()), check_key_length)?;
        if limit == 0 {
            return Err(Error::Invalid("a page of no keys never ends".to_owned()));
        }
        let keys_max = limit.min(PAGE_KEYS_MAX) as usize;
        let what = format!("list {}", quote_for_record(&self.run_context, &prefix));
        // One key more than the page holds shows whether there is another page.
        let list = move |store: &dyn StateStore, owner: &DataOwner| {
            store.list_keys(owner, &prefix, after.as_deref(), keys_max + 1)
        };
        let mut keys = self.with_state_store(what, list).await?;
        let is_last = keys.len() <= keys_max;
        keys.truncate(keys_max);
        let next = if is_last { None } else { keys.last().cloned() };
        Ok(Page { keys, next, extra: None })
    }

    /// Makes sure that the plugin may use its store, and counts the call.
    fn require_state_grant(&mut self, what: &str) -> Result<StateGrant, Error> {
        let grant = self.run_context.current_grant();
        let Some(state) = grant.state() else {
            self.run_context
                .effect_log
                .record_refusal(grant.deny_capability(Capability::State, what));
            return Err(Error::NotGranted);
        };
        if self.counters.store.try_count() {
            return Ok(*state);
        }
        let limit = self.counters.store.limit_text("questions to the store");
        self.run_context.effect_log.record_limit(limit.clone());
        Err(Error::Unavailable(format!("the limit of {limit} is reached")))
    }

    async fn with_state_store<R: Send + 'static>(
        &mut self,
        what: String,
        work: impl FnOnce(&dyn StateStore, &DataOwner) -> Result<R, StateStoreError> + Send + 'static,
    ) -> Result<R, Error> {
        let Some(store) = self.run_context.authorizer().services().state else {
            return Err(Error::Unavailable("nothing can be kept here".to_owned()));
        };
        let owner = self.run_context.data_owner();
        let capability_use = self.run_context.effect_log.begin_use(Capability::State, what);
        let done = run_blocking(move || work(&*store, &owner)).await;
        done.map_err(|error| {
            capability_use.record_outcome(&format!(": {error}"));
            self.convert_state_error(error)
        })
    }

    fn convert_state_error(&self, error: StateStoreError) -> Error {
        match error {
            StateStoreError::Conflict { current_version: present } => Error::Conflict(present),
            StateStoreError::QuotaReached { quota, .. } => {
                let limit = format!("{} of state (quota)", ByteSize(quota));
                self.run_context.effect_log.record_limit(limit);
                Error::QuotaReached(error.to_string())
            }
            StateStoreError::Unavailable(_) => Error::Unavailable(unavailable_message("store")),
        }
    }
}

fn check_key(key: &str) -> Result<(), Error> {
    if key.is_empty() {
        return Err(Error::Invalid("the key is empty".to_owned()));
    }
    check_key_length(key)
}

fn check_key_length(key: &str) -> Result<(), Error> {
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

fn parse_expiry(ms: Option<u64>) -> Result<Option<Duration>, Error> {
    match ms {
        Some(0) => Err(Error::Invalid("it would expire at once".to_owned())),
        ms => Ok(ms.map(Duration::from_millis).filter(|time| *time <= EXPIRY_MAX)),
    }
}
