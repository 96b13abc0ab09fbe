//! Work that may wait for the disk, apart from the threads that everything else runs on.

/// Does something that may block and returns what came of it; `None` when it panicked, or when the
/// program is ending.
pub(crate) async fn apart<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    tokio::task::spawn_blocking(work).await.ok()
}
