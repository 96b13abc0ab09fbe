//! Compiling ahead of the first use: all components that a start needs, side by side.

use std::{collections::BTreeSet, path::Path, sync::Arc, time::Duration};

use tokio::{
    sync::mpsc::{UnboundedReceiver, unbounded_channel},
    time::{Instant, timeout_at},
};

use crate::{
    ComponentFile, LoadError, Sandbox,
    compile::{
        Compiler,
        queue::{self, QueuedComponent},
    },
};

/// How often progress is told while nothing happens.
const PROGRESS_EVERY: Duration = Duration::from_millis(250);

/// How far compiling ahead has come.
#[derive(Debug, Clone, Copy)]
pub struct CompileProgress<'a> {
    /// Components that are done, well or not.
    pub done: usize,
    /// All that had to be compiled.
    pub total: usize,
    /// Where those lie that are still being compiled.
    pub waiting: &'a [&'a Path],
}

impl Sandbox {
    /// Whether asking for a component costs no compilation: its code is kept, or its refusal.
    ///
    /// # Errors
    ///
    /// The engine cannot be set up.
    pub fn is_compiled(&self, file: &ComponentFile) -> Result<bool, LoadError> {
        Ok(self.cache.is_settled(&self.engine()?.wasm, file))
    }

    /// Refuses a component that could not be compiled at an earlier start.
    ///
    /// # Errors
    ///
    /// Why it could not, or the engine cannot be set up.
    pub fn refusal(&self, file: &ComponentFile) -> Result<(), LoadError> {
        self.cache.refusal(&self.engine()?.wasm, file).map_or(Ok(()), Err)
    }

    /// Has components compiled side by side, and waits for them as long as `patience` says. What is
    /// not done by then is finished in the background, by a process that outlives this one, and is
    /// found in the cache by a later start.
    ///
    /// Returns the digests of those that are not done. A component that cannot be compiled is done:
    /// whoever asks for it is told why at once.
    pub async fn compile_ahead(
        self: &Arc<Self>,
        files: &[&ComponentFile],
        patience: Duration,
        progress: &(dyn Fn(CompileProgress<'_>) + Sync),
    ) -> BTreeSet<String> {
        let mut waiting: BTreeSet<String> =
            files.iter().map(|file| file.digest().to_owned()).collect();
        let deadline = Instant::now() + patience;
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
                        self.cache.note_compiled(&digest);
                    }
                }
                // A queue that broke compiled nothing: whoever needs a component compiles it.
                Ok(None) => return BTreeSet::new(),
                Err(_) => {}
            }
        }
        waiting
    }

    /// The digest of each component is received when nothing more is done for it.
    fn start_compiling(self: &Arc<Self>, files: &[&ComponentFile]) -> UnboundedReceiver<String> {
        let started = match (&self.cache.compiler, self.cache.folder()) {
            (Compiler::Worker { program, limits }, Some(folder)) => {
                queue::start(program, limits, folder, queued(files)).ok()
            }
            _ => None,
        };
        started.unwrap_or_else(|| self.compile_here(files))
    }

    /// Where nothing can be kept, it is compiled for this process alone, and ends with it.
    fn compile_here(self: &Arc<Self>, files: &[&ComponentFile]) -> UnboundedReceiver<String> {
        let (sender, receiver) = unbounded_channel();
        for file in files {
            let file = ComponentFile::clone(file);
            let (sandbox, sender) = (Arc::clone(self), sender.clone());
            tokio::task::spawn_blocking(move || {
                if let Ok(engine) = sandbox.engine() {
                    // How it ended is told to whoever asks for the component.
                    let _ = sandbox.cache.component(&engine.wasm, &file);
                }
                // Nobody may wait any more.
                let _ = sender.send(file.digest().to_owned());
            });
        }
        receiver
    }
}

fn queued(files: &[&ComponentFile]) -> Vec<QueuedComponent> {
    let component = |file: &&ComponentFile| {
        // The queue works in another folder.
        let path = std::path::absolute(file.path()).unwrap_or_else(|_| file.path().to_owned());
        QueuedComponent { path, digest: file.digest().to_owned() }
    };
    files.iter().map(component).collect()
}
