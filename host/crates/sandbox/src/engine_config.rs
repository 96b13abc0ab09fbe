//! The settings of every engine: of one that compiles, and of those that run the code.

use wasmtime::{Config, InstanceAllocationStrategy, WasmBacktraceDetails, WasmFeatures};

use crate::limits::{FIBER_STACK_BYTES, WASM_STACK_BYTES};

/// The engine's settings. Proposals that plugins of WASI 0.2 do not need are off, because untrusted
/// input could reach their code.
pub(crate) fn engine_config() -> Config {
    let mut config = Config::new();
    config
        .epoch_interruption(true)
        // Makes calls three to four times cheaper. Components of WASI 0.2 do not use it.
        .concurrency_support(false)
        .max_wasm_stack(WASM_STACK_BYTES)
        .async_stack_size(FIBER_STACK_BYTES)
        .allocation_strategy(InstanceAllocationStrategy::OnDemand)
        .wasm_backtrace_details(WasmBacktraceDetails::Disable)
        .wasm_features(WasmFeatures::THREADS, false)
        .wasm_features(WasmFeatures::MEMORY64, false)
        .wasm_features(WasmFeatures::CUSTOM_PAGE_SIZES, false)
        .wasm_features(WasmFeatures::GC, false)
        .wasm_features(WasmFeatures::EXCEPTIONS, false)
        .wasm_features(WasmFeatures::RELAXED_SIMD, false);
    config
}
