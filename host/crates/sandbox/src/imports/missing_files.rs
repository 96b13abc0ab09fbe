//! Files that a guest looks for and has no grant for: the user is asked, and the guest waits.
//!
//! A guest without any folder learns so from the list of its folders, which the standard libraries
//! fetch when a path is first used. So this is the moment to ask.

use std::{path::Path, sync::Arc};

use sallyport_contract::LogLevel;
use wasmtime::{StoreContextMut, component::Linker};
use wasmtime_wasi::p2::bindings::filesystem::preopens::Host;

use crate::{files::run_blocking, grant::open_granted_files, guest::Guest};

/// The interface, in the version that wasmtime links.
const PREOPENS_INTERFACE: &str = "wasi:filesystem/preopens@0.2.12";

/// Links the function that lists the folders. The linker has to allow shadowing.
pub(super) fn add_to_linker(linker: &mut Linker<Guest>) -> wasmtime::Result<()> {
    let mut preopens = linker.instance(PREOPENS_INTERFACE)?;
    preopens.func_wrap_async("get-directories", |mut store: StoreContextMut<'_, Guest>, (): ()| {
        Box::new(async move {
            let guest = store.data_mut();
            guest.request_missing_files().await;
            Ok((guest.file_calls().get_directories()?,))
        })
    })
}

impl Guest {
    /// Asks the user for the files that the manifest requests, if the guest has none at all, and
    /// opens what the user grants. If nobody can answer, the guest goes on without files.
    async fn request_missing_files(&mut self) {
        if !self.files.mounts.is_empty() {
            return;
        }
        let run_context = Arc::clone(&self.run_context);
        let Some(call) = run_context.call() else { return };
        let path = find_path_argument(call.arguments());
        let missing = run_context.current_grant().deny_missing_files(path);
        let Some(denial) = missing else { return };
        let reason = denial.reason.clone();
        match run_context.request_grant(denial).await {
            Ok(()) => self.open_new_files().await,
            Err(denial) if denial.reason != reason => {
                run_context.effect_log.record_refusal(denial);
            }
            Err(_) => {}
        }
    }

    /// Opens the files that were granted while the guest runs.
    async fn open_new_files(&mut self) {
        let (current_run, disk) = (Arc::clone(&self.current_run), Arc::clone(&self.disk));
        let grant = self.run_context.current_grant();
        let opened = run_blocking(move || open_granted_files(&current_run, &grant, &disk)).await;
        match opened {
            Ok((files, copies)) => (self.files, self.file_copies) = (files, copies),
            Err(error) => self.run_context.effect_log.log_line(LogLevel::Warn, &error.to_string()),
        }
    }
}

/// The argument that looks like a path, for the question and for advice. A path outside every folder
/// that the guest holds never reaches the host, so this argument is the best guess.
pub fn find_path_argument(arguments: &serde_json::Value) -> Option<&str> {
    let texts = arguments.as_object()?.values().filter_map(serde_json::Value::as_str);
    texts.into_iter().find(|text| Path::new(text).is_absolute())
}
