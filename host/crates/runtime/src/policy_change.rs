//! Changes of the policy, recorded before they are made.

use std::{fmt, time::Duration};

use sallyport_store::{AuditError, AuditKind, AuditLog, AuditRecord, HostStore, audit::HostUser};

use crate::clock::now_ms;

/// Maximum wait for the record of a change.
const RECORD_TIME_MAX: Duration = Duration::from_secs(5);

/// Why a change of the policy was not made.
#[derive(Debug)]
pub enum PolicyChangeError<E> {
    /// The audit cannot be written.
    Audit(AuditError),
    /// The change itself failed.
    Failed(E),
}

/// Records a change of a plugin's policy on disk, and then makes it. A change that was not made is
/// recorded too, because the log may have its record although the wait for it failed.
///
/// # Errors
///
/// The audit cannot be written, and nothing is changed; or the change fails, and its error says what
/// is left of it.
pub fn record_change<E: fmt::Display>(
    store: &HostStore,
    user: &HostUser,
    plugin: &str,
    what: &str,
    change: impl FnOnce() -> Result<(), E>,
) -> Result<(), PolicyChangeError<E>> {
    record_change_in(&store.audit_log(), user, plugin, what, change)
}

/// The same, in a log that is open already.
pub(crate) fn record_change_in<E: fmt::Display>(
    log: &AuditLog,
    user: &HostUser,
    plugin: &str,
    what: &str,
    change: impl FnOnce() -> Result<(), E>,
) -> Result<(), PolicyChangeError<E>> {
    let record = |message: String| AuditRecord {
        plugin: Some(plugin.to_owned()),
        message: Some(message),
        ..AuditRecord::new(AuditKind::Policy, now_ms(), user.clone())
    };
    log.commit_within(record(what.to_owned()), RECORD_TIME_MAX).map_err(|error| {
        if may_be_written(&error) {
            let message = format!("{what}: that failed, nothing is changed: {error}");
            log.append_completed(record(message));
        }
        PolicyChangeError::Audit(error)
    })?;
    change().map_err(|error| {
        // A change of several steps may have been made in part.
        log.append_completed(record(format!("{what}: that failed: {error}")));
        PolicyChangeError::Failed(error)
    })
}

/// Whether a record may be in the log, now or later, although it was given up.
fn may_be_written(error: &AuditError) -> bool {
    match error {
        AuditError::Failed(_) | AuditError::TimedOut { .. } | AuditError::Ended => true,
        AuditError::QueueFull { .. } => false,
    }
}
