//! Memory that isolated calls use one after another.
//!
//! A fresh instance needs memories, tables and a stack. To map and unmap them costs more than a small
//! call, and each unmapping interrupts the other threads of the process. So a plugin that is called
//! again gets a copy in a second engine, whose memory stays mapped: before another guest gets a place
//! there, wasmtime resets what the last one has written.
//!
//! The pool is an optimisation alone. The first call of a plugin does not wait for it. A component
//! that does not fit, a call for which no place is free, and a system that refuses the address space
//! (as with a low `ulimit -v`) use memory of their own.

use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicU32, Ordering},
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use wasmtime::{Enabled, InstanceAllocationStrategy, PoolingAllocationConfig};

use crate::{
    abi, component::ComponentFile, dynamic::docs::PackageDocs, linked_plugin::LinkedPlugin,
    runtime::Sandbox, wasm_engine::WasmEngine,
};

/// Guests that use the pool at a time. Each reserves [`MEMORIES_PER_GUEST`] times 4 GiB of addresses.
const PLACES: u32 = 128;

/// Core instances of one guest. A Python component has a few dozen.
const CORE_INSTANCES_PER_GUEST: u32 = 64;

/// Linear memories of one guest. One that is made of two programs has two.
const MEMORIES_PER_GUEST: u32 = 2;

/// Tables of one guest.
const TABLES_PER_GUEST: u32 = 4;

/// Elements of a table. Large programs have some ten thousand functions.
const TABLE_ELEMENTS: usize = 1 << 18;

/// What the host itself keeps for an instance, in bytes.
const INSTANCE_BYTES: usize = 4 * 1024 * 1024;

/// Memory of one place that stays resident between two guests, in bytes. It is overwritten, which
/// costs less than to give it back.
const KEPT_BYTES: usize = 128 * 1024;

/// Places that keep memory while nobody uses them.
const KEPT_PLACES: u32 = 16;

/// The pool: an engine, and its places.
pub(crate) struct MemoryPool {
    engine: Arc<WasmEngine>,
    places: Arc<Semaphore>,
}

/// A place in the pool that a guest has taken.
pub(crate) struct PoolPlace {
    _permit: OwnedSemaphorePermit,
}

/// A plugin's copy in the pool. It is made in the background when the plugin is called again.
pub(crate) struct PooledPlugin {
    sandbox: Arc<Sandbox>,
    file: ComponentFile,
    calls: AtomicU32,
    /// `None` if the component does not fit.
    linked: OnceLock<Option<LinkedPlugin>>,
}

impl MemoryPool {
    /// Reserves the addresses of a pool for the code of an engine.
    ///
    /// # Errors
    ///
    /// The system refuses the addresses.
    pub(crate) fn new(engine: &WasmEngine) -> wasmtime::Result<Self> {
        let strategy = InstanceAllocationStrategy::Pooling(pool_config());
        let engine = Arc::new(engine.with_allocation(strategy)?);
        Ok(Self { engine, places: Arc::new(Semaphore::new(PLACES as usize)) })
    }
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
        let permit = Arc::clone(&pool.places).try_acquire_owned().ok()?;
        Some((linked, PoolPlace { _permit: permit }))
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
        let engine = &self.sandbox.get_or_create_memory_pool()?.engine;
        let component = self.sandbox.cache.map_existing(&engine.wasm, &self.file)?;
        let pre = engine.linker.instantiate_pre(&component).ok()?;
        let abi = abi::find_plugin_abi(&pre, &self.file, &PackageDocs::default()).ok()??;
        Some(LinkedPlugin { engine: Arc::clone(engine), pre, abi })
    }
}

/// The totals are those of all places together, so a guest that has a place never lacks a part of
/// it.
fn pool_config() -> PoolingAllocationConfig {
    let mut config = PoolingAllocationConfig::new();
    config
        .total_component_instances(PLACES)
        .total_core_instances(PLACES * CORE_INSTANCES_PER_GUEST)
        .total_memories(PLACES * MEMORIES_PER_GUEST)
        .total_tables(PLACES * TABLES_PER_GUEST)
        .total_stacks(PLACES)
        .max_core_instances_per_component(CORE_INSTANCES_PER_GUEST)
        .max_memories_per_component(MEMORIES_PER_GUEST)
        .max_memories_per_module(MEMORIES_PER_GUEST)
        .max_tables_per_component(TABLES_PER_GUEST)
        .max_tables_per_module(TABLES_PER_GUEST)
        .max_core_instance_size(INSTANCE_BYTES)
        .max_component_instance_size(INSTANCE_BYTES)
        .table_elements(TABLE_ELEMENTS)
        .linear_memory_keep_resident(KEPT_BYTES)
        .table_keep_resident(KEPT_BYTES)
        .max_unused_warm_slots(KEPT_PLACES)
        // Finds what a guest has written, so that nothing else is overwritten.
        .pagemap_scan(Enabled::Auto);
    config
}
