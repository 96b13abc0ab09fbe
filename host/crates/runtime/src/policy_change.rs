//! Changes of what a plugin may do, recorded before they are made.

use std::{fmt, time::Duration};

use sallyport_store::{AuditError, AuditKind, AuditRecord, StoreError, audit::Who};

use crate::{config::Settings, gate::now_ms, host::open_store};

/// Longest wait for the record of a change.
const RECORD_TIME_MAX: Duration = Duration::from_secs(5);

/// Why nothing was changed.
#[derive(Debug)]
pub enum ChangeError<E> {
    /// The store cannot be used.
    Store(StoreError),
    /// The audit cannot be written.
    Unrecorded(AuditError),
    /// The change itself failed.
    Failed(E),
}

/// Changes what a plugin may do once the record of it is on the disk, and adds another record when
/// the change fails.
///
/// # Errors
///
/// Nothing is changed: the audit cannot be written, or the change fails.
pub fn record_change<E: fmt::Display>(
    settings: &Settings,
    plugin: &str,
    what: &str,
    change: impl FnOnce() -> Result<(), E>,
) -> Result<(), ChangeError<E>> {
    let log = open_store(settings).map_err(ChangeError::Store)?.audit_log();
    let who = Who::of_process(settings.env.get("USER").unwrap_or_default());
    let record = |message: String| AuditRecord {
        plugin: Some(plugin.to_owned()),
        message: Some(message),
        ..AuditRecord::new(AuditKind::Policy, now_ms(), who.clone())
    };
    let written = log.append(record(what.to_owned())).and_then(|()| log.flush(RECORD_TIME_MAX));
    written.map_err(ChangeError::Unrecorded)?;
    change().map_err(|error| {
        log.append_done(record(format!("{what}: that failed, nothing is changed: {error}")));
        ChangeError::Failed(error)
    })
}
