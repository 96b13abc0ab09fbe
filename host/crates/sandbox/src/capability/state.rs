//! `state`: keys and values that a plugin stores, separately for each user.

use std::{sync::Arc, time::Duration};

use sallyport_contract::{
    DataOwner,
    services::{StateStore, StateStoreError, StateWrite, StoredValue, WriteCondition},
};
use sallyport_policy::{ByteSize, Capability, Grant, StateGrant};

use super::{HostCall, HostCallError, STORE_CALLS, STORE_UNREACHABLE, error_outcome};
use crate::bindings::v0_1::sallyport::plugin::state::{Entry, Error, Expected, Host, Page};

/// Longest key in bytes. A key is a name, not a place for data.
const KEY_BYTES_MAX: usize = 512;

/// Most keys on one page of a listing.
const PAGE_KEYS_MAX: u32 = 1000;

/// Longest time to expiry. A longer one means that the value never expires. Every store can
/// represent the dates within this limit.
const EXPIRY_MAX: Duration = Duration::from_secs(100 * 366 * 24 * 60 * 60);

impl Host for HostCall<'_> {
    async fn get(&mut self, key: String) -> Result<Option<Entry>, Error> {
        self.require_state("read what it keeps").await?;
        check_key(&key)?;
        let what = format!("get {}", self.quote_for_record(&key));
        let get = |store: Arc<dyn StateStore>, owner| async move { store.get(&owner, &key).await };
        let stored = self.with_state_store(what, get).await?;
        Ok(stored.map(|StoredValue { value, version }| Entry { value, version, extra: None }))
    }

    async fn set(
        &mut self,
        key: String,
        value: Vec<u8>,
        expires_in_ms: Option<u64>,
    ) -> Result<u64, Error> {
        self.set_state(key, value, WriteCondition::Anything, expires_in_ms).await
    }

    async fn compare_and_set(
        &mut self,
        key: String,
        expected: Expected,
        value: Vec<u8>,
        expires_in_ms: Option<u64>,
    ) -> Result<u64, Error> {
        let expected = match expected {
            Expected::Nothing => WriteCondition::Nothing,
            Expected::Version(version) => WriteCondition::Version(version),
            Expected::Other(_) => {
                return Err(Error::Invalid("what is expected is not known here".to_owned()));
            }
        };
        self.set_state(key, value, expected, expires_in_ms).await
    }

    async fn remove(&mut self, key: String) -> Result<bool, Error> {
        self.require_state("forget what it keeps").await?;
        check_key(&key)?;
        let what = format!("delete {}", self.quote_for_record(&key));
        let delete =
            |store: Arc<dyn StateStore>, owner| async move { store.delete(&owner, &key).await };
        self.with_state_store(what, delete).await
    }

    async fn list_keys(
        &mut self,
        prefix: String,
        after: Option<String>,
        limit: u32,
    ) -> Result<Page, Error> {
        self.require_state("read what it keeps").await?;
        check_key_length(&prefix)?;
        after.as_deref().map_or(Ok(()), check_key_length)?;
        if limit == 0 {
            return Err(Error::Invalid("a page of no keys never ends".to_owned()));
        }
        let keys_max = limit.min(PAGE_KEYS_MAX) as usize;
        let what = format!("list {}", self.quote_for_record(&prefix));
        // One key more than the page holds shows whether there is another page.
        let list = |store: Arc<dyn StateStore>, owner| async move {
            store.list_keys(&owner, &prefix, after.as_deref(), keys_max + 1).await
        };
        let mut keys = self.with_state_store(what, list).await?;
        let is_last = keys.len() <= keys_max;
        keys.truncate(keys_max);
        let next = if is_last { None } else { keys.last().cloned() };
        Ok(Page { keys, next, extra: None })
    }
}

impl HostCall<'_> {
    async fn set_state(
        &mut self,
        key: String,
        value: Vec<u8>,
        expected: WriteCondition,
        expires_in_ms: Option<u64>,
    ) -> Result<u64, Error> {
        let StateGrant { quota_bytes, value_bytes_max, .. } =
            self.require_state("keep something").await?;
        check_key(&key)?;
        check_value(&value, value_bytes_max)?;
        let expires_in = parse_expiry(expires_in_ms)?;
        let what = format!("set {} ({} bytes)", self.quote_for_record(&key), value.len());
        let write = StateWrite { value, expected, expires_in, quota_bytes };
        let set =
            |store: Arc<dyn StateStore>, owner| async move { store.set(&owner, &key, write).await };
        self.with_state_store(what, set).await
    }

    /// Makes sure that the plugin may use its store, and counts the call.
    async fn require_state(&mut self, what: &str) -> Result<StateGrant, HostCallError> {
        let granted = |grant: &Grant| grant.state().copied();
        let state = self.require_grant(Capability::State, what, granted).await?;
        self.count_call(&STORE_CALLS)?;
        Ok(state)
    }

    async fn with_state_store<R, F: Future<Output = Result<R, StateStoreError>>>(
        &self,
        what: String,
        work: impl FnOnce(Arc<dyn StateStore>, DataOwner) -> F,
    ) -> Result<R, Error> {
        let store = self.require_service(|services| services.state, "nothing can be kept here")?;
        let owner = self.run_context.data_owner();
        let work = work(store, owner);
        let done = self.record_use(Capability::State, what, work, error_outcome).await;
        done.map_err(|error| match error {
            StateStoreError::Conflict { current_version } => Error::Conflict(current_version),
            StateStoreError::QuotaReached { quota, .. } => {
                self.reach_limit(format!("{} of state (quota)", ByteSize(quota)));
                Error::QuotaReached(error.to_string())
            }
            StateStoreError::Unavailable(_) => HostCallError::Unavailable(STORE_UNREACHABLE).into(),
        })
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

super::impl_not_granted_error!(Error, limit: Unavailable, unavailable: Unavailable);
