//! A plugin whose calls use the memory pool.

use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicU32, Ordering},
};

use crate::{
    abi, component::ComponentFile, dynamic::docs::PackageDocs, linked_plugin::LinkedPlugin,
    memory_pool::PoolPlace, runtime::Sandbox,
};

/// A plugin's copy in the pool. It is made in the background when the plugin is called again.
pub(crate) struct PooledPlugin {
    sandbox: Arc<Sandbox>,
    file: ComponentFile,
    calls: AtomicU32,
    /// `None` if the component does not fit.
    linked: OnceLock<Option<LinkedPlugin>>,
}

impl PooledPlugin {
    pub(crate) fn new(sandbox: &Arc<Sandbox>, file: &ComponentFile) -> Arc<Self> {
        Arc::new(Self {
            sandbox: Arc::clone(sandbox),
            file: file.without_bytes(),
            calls: AtomicU32::new(0),
            linked: OnceLock::new(),
        })
    }

    /// The sandbox of the plugin.
    pub(crate) fn sandbox(&self) -> &Sandbox {
        &self.sandbox
    }

    /// The copy, if it exists.
    pub(crate) fn linked(&self) -> Option<&LinkedPlugin> {
        self.linked.get()?.as_ref()
    }

    /// Takes a place, if the copy exists and a place is free.
    pub(crate) fn take_free_place(&self) -> Option<(&LinkedPlugin, PoolPlace)> {
        let linked = self.linked()?;
        let pool = self.sandbox.get_or_create_memory_pool()?;
        Some((linked, pool.try_take_place()?))
    }

    /// Takes a place for a call in the same way. The second call begins to make the copy.
    pub(crate) fn take_place(self: &Arc<Self>) -> Option<(&LinkedPlugin, PoolPlace)> {
        if self.linked.get().is_some() {
            return self.take_free_place();
        }
        if self.calls.fetch_add(1, Ordering::Relaxed) == 1 {
            let pooled = Arc::clone(self);
            tokio::task::spawn_blocking(move || {
                pooled.linked.get_or_init(|| pooled.link()).is_some()
            });
        }
        None
    }

    /// Maps the compiled code for the engine of the pool. wasmtime refuses a component here that
    /// does not fit in a place.
    fn link(&self) -> Option<LinkedPlugin> {
        let engine = self.sandbox.get_or_create_memory_pool()?.engine();
        let component = self.sandbox.cache.map_existing(&engine.wasm, &self.file)?;
        let pre = engine.linker.instantiate_pre(&component).ok()?;
        let abi = abi::find_plugin_abi(&pre, &self.file, &PackageDocs::default()).ok()??;
        Some(LinkedPlugin { engine: Arc::clone(engine), pre, abi })
    }
}
