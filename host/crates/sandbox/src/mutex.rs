//! Locks a mutex, also after a panic.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex of this crate. Each change under its locks is complete by itself, so that a
/// poisoned one is safe to use.
pub(crate) fn lock_mutex<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
