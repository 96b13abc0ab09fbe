//! An engine that runs guests: wasmtime's, with a linker and a ticker.

use std::sync::Arc;

use wasmtime::{InstanceAllocationStrategy, component::Linker};

use crate::{
    engine_config::engine_config, guest::Guest, imports::build_linker, ticker::EpochTicker,
};

/// A configured wasmtime engine. Guests share it, and it contains no state of any guest.
pub(crate) struct WasmEngine {
    pub(crate) wasm: wasmtime::Engine,
    pub(crate) linker: Linker<Guest>,
    pub(crate) ticker: Arc<EpochTicker>,
}

impl WasmEngine {
    pub(crate) fn new() -> wasmtime::Result<Self> {
        let wasm = wasmtime::Engine::new(&engine_config())?;
        let linker = build_linker(&wasm)?;
        let ticker = Arc::new(EpochTicker::start(wasm.clone())?);
        Ok(Self { wasm, linker, ticker })
    }

    /// An engine for the same code, which allocates in another way.
    pub(crate) fn with_allocation(
        &self,
        strategy: InstanceAllocationStrategy,
    ) -> wasmtime::Result<Self> {
        let mut config = engine_config();
        let wasm = wasmtime::Engine::new(config.allocation_strategy(strategy))?;
        let linker = build_linker(&wasm)?;
        self.ticker.add_engine(wasm.clone());
        Ok(Self { wasm, linker, ticker: Arc::clone(&self.ticker) })
    }
}
