//! The state that all plugins share: a wasmtime engine with its linker, a ticker, a cache, and the
//! memory pool, which has an engine of its own.
//!
//! The engine is created when it is first needed. Listing plugins from the metadata cache does not
//! need it.

use std::{
    io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, OnceLock, Weak},
};

use sallyport_contract::HostNameResolver;

use crate::{
    cache::{CacheStatistics, ComponentCache},
    compile::{Compiler, CompilerIsolation},
    component::ComponentFile,
    digest_cache::DigestCache,
    error::LoadError,
    files::SharedDiskState,
    host_start,
    instance_pool::InstancePool,
    memory_pool::MemoryPool,
    mutex::lock_mutex,
    net::TlsClient,
    simulation::Simulation,
    undo::{
        UndoHistory, UndoStep,
        restore::{self, PathRestoration},
    },
    wasm_engine::WasmEngine,
};

/// The configuration of a sandbox.
pub struct SandboxOptions {
    /// Folder for compiled components. `None` compiles at every start.
    pub cache_dir: Option<PathBuf>,
    /// Where components are compiled.
    pub compiler: Compiler,
    /// Resolves host names for plugins.
    pub resolver: Arc<dyn HostNameResolver>,
}

/// Loads and runs plugins.
pub struct Sandbox {
    pub(crate) cache: ComponentCache,
    pub(crate) digests: DigestCache,
    pub(crate) resolver: Arc<dyn HostNameResolver>,
    pub(crate) tls: Arc<TlsClient>,
    pub(crate) disk: Arc<SharedDiskState>,
    /// The warm instances of all plugins.
    instance_pools: Mutex<Vec<Weak<InstancePool>>>,
    engine: OnceLock<Arc<WasmEngine>>,
    /// `None` if the system does not allow one.
    memory_pool: OnceLock<Option<MemoryPool>>,
    pub(crate) simulation: Simulation,
}

impl Sandbox {
    /// Creates a sandbox. If the cache folder cannot be used, the sandbox works without it and the
    /// second value states why.
    pub fn new(options: SandboxOptions) -> (Arc<Self>, Option<String>) {
        Self::with_simulation(options, Simulation::default())
    }

    /// Creates a sandbox as [`new`](Self::new) does, in which parts of the world are simulated.
    pub fn with_simulation(
        options: SandboxOptions,
        simulation: Simulation,
    ) -> (Arc<Self>, Option<String>) {
        host_start::note_start();
        let (cache, warning) = match &options.cache_dir {
            None => (ComponentCache::without_folder(options.compiler), None),
            Some(folder) => match ComponentCache::open(folder, &options.compiler) {
                Ok(cache) => (cache, None),
                Err(error) => {
                    let warning = format!(
                        "compiled plugins are not kept, every start compiles them again: {}: {error}",
                        folder.display()
                    );
                    (ComponentCache::without_folder(options.compiler), Some(warning))
                }
            },
        };
        let sandbox = Self {
            digests: DigestCache::new(cache.folder()),
            cache,
            resolver: options.resolver,
            tls: Arc::new(TlsClient::default()),
            disk: Arc::default(),
            instance_pools: Mutex::default(),
            engine: OnceLock::new(),
            memory_pool: OnceLock::new(),
            simulation,
        };
        (Arc::new(sandbox), warning)
    }

    /// Opens a component. It is read only if its digest is not known from an earlier start.
    ///
    /// # Errors
    ///
    /// As for [`ComponentFile::read`].
    pub fn open_component(&self, path: &Path) -> Result<ComponentFile, LoadError> {
        self.digests.open_component(path)
    }

    /// Stores the digests of the components that were read, for later starts. Errors are ignored,
    /// because the next start then reads them again.
    pub fn save_digests(&self) {
        self.digests.save();
    }

    /// The hits and misses of the cache.
    pub fn cache_statistics(&self) -> CacheStatistics {
        self.cache.statistics()
    }

    /// Returns the walls around the compiler on this system.
    ///
    /// # Errors
    ///
    /// The compiler cannot be started.
    pub fn compiler_isolation(&self) -> Result<CompilerIsolation, LoadError> {
        self.cache.compiler.isolation()
    }

    /// Creates the collection of warm instances for one more plugin.
    pub(crate) fn create_instance_pool(&self) -> Arc<InstancePool> {
        let instance_pool = Arc::default();
        let mut all = lock_mutex(&self.instance_pools);
        all.retain(|known| known.strong_count() > 0);
        all.push(Arc::downgrade(&instance_pool));
        instance_pool
    }

    /// Ends a session: stops its warm instances, even in the middle of a call, and removes its
    /// scratch folders.
    pub async fn end_session(&self, session_id: &str) {
        let all: Vec<_> =
            lock_mutex(&self.instance_pools).iter().filter_map(Weak::upgrade).collect();
        all.iter().for_each(|instance_pool| instance_pool.end_session(session_id));
        let (disk, session_id) = (Arc::clone(&self.disk), session_id.to_owned());
        // If this fails, the folders are removed with the sandbox.
        let _ =
            tokio::task::spawn_blocking(move || disk.scratch_folders.remove_session(&session_id))
                .await;
    }

    /// Puts paths of a step back. Returns those that failed, each with the reason. A step of which
    /// everything is back is then given up. No guest changes a folder while a path in it is put back.
    pub fn restore_paths(
        &self,
        history: &UndoHistory,
        step: &UndoStep,
        paths: &[PathRestoration],
    ) -> Vec<(String, io::Error)> {
        restore::restore_paths(history, step, paths, &|folder, change| {
            self.disk.folder_usage.change_folder(folder, change)
        })
    }

    pub(crate) fn get_or_create_engine(&self) -> Result<Arc<WasmEngine>, LoadError> {
        if let Some(engine) = self.engine.get() {
            return Ok(Arc::clone(engine));
        }
        let failed = |e: wasmtime::Error| LoadError::Engine { message: format!("{e:#}") };
        let engine = Arc::new(WasmEngine::new().map_err(failed)?);
        Ok(Arc::clone(self.engine.get_or_init(|| engine)))
    }

    /// The memory pool, unless the system refuses it.
    pub(crate) fn get_or_create_memory_pool(&self) -> Option<&MemoryPool> {
        let create = || MemoryPool::new(&*self.get_or_create_engine().ok()?).ok();
        self.memory_pool.get_or_init(create).as_ref()
    }
}
