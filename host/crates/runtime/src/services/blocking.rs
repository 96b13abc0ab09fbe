//! Blocking work, away from the threads that run futures.

/// Runs blocking work and returns its result. Returns `None` if it panicked or the program is
/// ending.
pub(crate) async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    tokio::task::spawn_blocking(work).await.ok()
}
