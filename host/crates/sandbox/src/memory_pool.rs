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

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use wasmtime::{Enabled, InstanceAllocationStrategy, PoolingAllocationConfig};

use crate::wasm_engine::WasmEngine;

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

    /// The engine, in which components have to be linked before their guests can use the pool.
    pub(crate) fn engine(&self) -> &Arc<WasmEngine> {
        &self.engine
    }

    /// Takes a place, if one is free.
    pub(crate) fn try_take_place(&self) -> Option<PoolPlace> {
        let permit = Arc::clone(&self.places).try_acquire_owned().ok()?;
        Some(PoolPlace { _permit: permit })
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
