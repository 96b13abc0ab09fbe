//! Compilation ahead of the first use: all components that a start needs, in parallel.

mod queue;

use std::{collections::BTreeSet, path::Path, sync::Arc, time::Duration};

use tokio::{
    sync::mpsc::{UnboundedReceiver, unbounded_channel},
    time::{Instant, timeout_at},
};

use self::queue::QueuedComponent;
pub use self::queue::run_as_queue;
use crate::{ComponentFile, LoadError, Sandbox, compile::Compiler};

/// How often progress is reported while nothing changes.
const PROGRESS_EVERY: Duration = Duration::from_millis(250);

/// The progress of [`Sandbox::compile_ahead`].
#[derive(Debug, Clone, Copy)]
pub struct CompileProgress<'a> {
    /// Components that are done, whether or not they compiled.
    pub done: usize,
    /// All components that need compiling.
    pub total: usize,
    /// The paths of the components that are not done.
    pub waiting: &'a [&'a Path],
}

impl Sandbox {
    /// Whether a component can be obtained without compiling it: its code or its refusal is already
    /// known.
    ///
    /// # Errors
    ///
    /// The engine cannot be set up.
    pub fn is_compiled(&self, file: &ComponentFile) -> Result<bool, LoadError> {
        Ok(self.cache.has_result(&self.get_or_create_engine()?.wasm, file))
    }

    /// Compiles a component unless that was done before, on a thread that may block. Not every
    /// failure is stored: one at the time limit, or of the compiler itself, is found by trying
    /// again.
    ///
    /// # Errors
    ///
    /// The component cannot be compiled, now or at an earlier attempt, or the engine cannot be set
    /// up.
    pub async fn check_compiles(self: &Arc<Self>, file: &ComponentFile) -> Result<(), LoadError> {
        let engine = self.get_or_create_engine()?;
        if self.cache.has_result(&engine.wasm, file) {
            return self.cache.stored_refusal(&engine.wasm, file).map_or(Ok(()), Err);
        }
        let (sandbox, file) = (Arc::clone(self), file.clone());
        let compile = move || sandbox.cache.load_or_compile(&engine.wasm, &file).map(drop);
        tokio::task::spawn_blocking(compile).await.unwrap_or_else(|error| {
            Err(LoadError::Compiler { message: format!("its thread ended early: {error}") })
        })
    }

    /// Compiles components in parallel and waits up to `time_max` for them.
    ///
    /// A process that outlives this one finishes the remaining components in the background; a
    /// later start finds them in the cache. Without a cache folder, this process compiles them
    /// itself.
    ///
    /// Returns the digests of the components that are not done. A component that cannot be compiled
    /// counts as done: a request for it fails immediately.
    pub async fn compile_ahead(
        self: &Arc<Self>,
        files: &[&ComponentFile],
        time_max: Duration,
        progress: &(dyn Fn(CompileProgress<'_>) + Sync),
    ) -> BTreeSet<String> {
        let mut waiting: BTreeSet<String> =
            files.iter().map(|file| file.digest().to_owned()).collect();
        let deadline = Instant::now() + time_max;
        let mut finished = self.start_compiling(files);
        while !waiting.is_empty() && Instant::now() < deadline {
            let paths: Vec<&Path> = files
                .iter()
                .filter(|file| waiting.contains(file.digest()))
                .map(|file| file.path())
                .collect();
            let done = files.len() - paths.len();
            progress(CompileProgress { done, total: files.len(), waiting: &paths });
            let tick = deadline.min(Instant::now() + PROGRESS_EVERY);
            match timeout_at(tick, finished.recv()).await {
                Ok(Some(digest)) => {
                    waiting.remove(&digest);
                    if self.cache.folder().is_some() {
                        self.cache.record_compiled(&digest);
                    }
                }
                // The queue broke, so each component is compiled when it is inspected or checked.
                Ok(None) => return BTreeSet::new(),
                Err(_) => {}
            }
        }
        waiting
    }

    /// Starts compiling. The receiver yields the digest of each component once nothing more is done
    /// for it.
    fn start_compiling(self: &Arc<Self>, files: &[&ComponentFile]) -> UnboundedReceiver<String> {
        let started = match (&self.cache.compiler, self.cache.folder()) {
            (Compiler::Worker { program, limits }, Some(folder)) => {
                queue::start_queue(program, limits, folder, to_queued_components(files)).ok()
            }
            _ => None,
        };
        started.unwrap_or_else(|| self.compile_in_process(files))
    }

    /// Compiles in this process, where nothing can be cached. The work ends with the process.
    fn compile_in_process(self: &Arc<Self>, files: &[&ComponentFile]) -> UnboundedReceiver<String> {
        let (sender, receiver) = unbounded_channel();
        for file in files {
            let file = ComponentFile::clone(file);
            let (sandbox, sender) = (Arc::clone(self), sender.clone());
            tokio::task::spawn_blocking(move || {
                if let Ok(engine) = sandbox.get_or_create_engine() {
                    // An error is reported when the component is requested.
                    let _ = sandbox.cache.load_or_compile(&engine.wasm, &file);
                }
                // The receiver may be gone already.
                let _ = sender.send(file.digest().to_owned());
            });
        }
        receiver
    }
}

fn to_queued_components(files: &[&ComponentFile]) -> Vec<QueuedComponent> {
    let component = |file: &&ComponentFile| {
        // The queue has another working directory, so the path must be absolute.
        let path = std::path::absolute(file.path()).unwrap_or_else(|_| file.path().to_owned());
        QueuedComponent { path, digest: file.digest().to_owned() }
    };
    files.iter().map(component).collect()
}
