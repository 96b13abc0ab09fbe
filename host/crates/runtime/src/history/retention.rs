//! Removes sessions that have expired.

use sallyport_store::{HostStore, StoreError};

use crate::{clock::now_ms, config::SessionRetention};

/// Removes expired sessions and returns their number.
///
/// # Errors
///
/// The database cannot be written.
pub async fn prune_sessions(
    store: &HostStore,
    limits: SessionRetention,
) -> Result<usize, StoreError> {
    let age_max_ms = limits.keep.0.and_then(|keep| u64::try_from(keep.as_millis()).ok());
    let before_ms = age_max_ms.map_or(0, |age_max_ms| now_ms().saturating_sub(age_max_ms));
    store.sessions.prune(before_ms, limits.keep_max.0 as usize).await
}
