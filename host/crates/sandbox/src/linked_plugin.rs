//! A component in an engine, ready to be instantiated.

use std::sync::Arc;

use wasmtime::component::InstancePre;

use crate::{abi::PluginAbi, guest::Guest, wasm_engine::WasmEngine};

/// A component that is linked in an engine, with the exports that the host calls.
pub(crate) struct LinkedPlugin {
    pub(crate) engine: Arc<WasmEngine>,
    pub(crate) pre: InstancePre<Guest>,
    pub(crate) abi: Box<dyn PluginAbi>,
}
