//! A folder that is granted for reading is asked about again when the guest is about to change
//! something in it. The guest waits.

use wasmtime_wasi::p2::{FsResult, bindings::filesystem::types::ErrorCode};

use super::file_handle::FileHandle;

/// Asks the user to grant changes in a folder that is granted for reading only, before the guest
/// changes something in it. A refusal is recorded.
pub(super) async fn request_write_access(folder: &FileHandle, path: &str) -> FsResult<()> {
    let granted_mount = folder.check_grant()?;
    let path = folder.path().join(path.trim_start_matches('/'));
    let Some((run_context, denial)) = granted_mount.missing_write_access(&path) else {
        return Ok(());
    };
    run_context.request_grant(denial).await.map_err(|denial| {
        run_context.effect_log.record_refusal(denial);
        ErrorCode::NotPermitted.into()
    })
}
