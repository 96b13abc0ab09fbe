//! The floor of the benchmarks: a component in plain wasmtime, without any code of the host.
//!
//! The engine has the settings that the host has. The store holds a plain `WasiCtx`, which grants
//! nothing, and a limit of memory. Imports that WASI does not define trap. Nothing is checked,
//! counted, recorded or bounded in time; epochs are on, but nobody advances them.
//!
//! A benchmark has nobody to report an error to, so every function here panics instead.
#![expect(clippy::expect_used, reason = "a benchmark stops when its ground is missing")]
#![expect(clippy::missing_panics_doc, reason = "the head of this file says it")]
#![expect(clippy::disallowed_methods, reason = "this is wasmtime without the host")]

pub mod measure;

use std::path::Path;

use wasmtime::{
    Config, Engine, InstanceAllocationStrategy, Store, StoreLimits, StoreLimitsBuilder,
    WasmBacktraceDetails, WasmFeatures,
    component::{
        Component, InstancePre, Linker, ResourceTable, ResourceType, types::ComponentItem,
    },
};
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};

use self::plugin::{exports::sallyport::plugin::tools, sallyport::plugin::types::CallContext};

mod plugin {
    wasmtime::component::bindgen!({
        path: "../../../wit",
        world: "sallyport:plugin/tool-plugin",
        exports: { default: async },
    });
}

/// Most memory of an instance in bytes.
const MEMORY_BYTES_MAX: usize = 256 * 1024 * 1024;

/// The state of a store.
pub struct PlainState {
    wasi: WasiCtx,
    table: ResourceTable,
    limits: StoreLimits,
}

/// A compiled and linked component.
pub struct PlainComponent {
    engine: Engine,
    pre: InstancePre<PlainState>,
    indices: tools::GuestIndices,
}

/// A live instance.
pub struct PlainInstance {
    store: Store<PlainState>,
    guest: tools::Guest,
}

impl WasiView for PlainState {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView { ctx: &mut self.wasi, table: &mut self.table }
    }
}

impl PlainComponent {
    /// Compiles a component of the interface `tools`.
    pub fn compile(wasm: &Path) -> Self {
        let engine = Engine::new(&config()).expect("an engine");
        let component = Component::from_file(&engine, wasm).expect("a component");
        let mut linker = Linker::new(&engine);
        wasmtime_wasi::p2::add_to_linker_async(&mut linker).expect("WASI");
        define_other_imports(&engine, &mut linker, &component).expect("the other imports");
        let pre = linker.instantiate_pre(&component).expect("all imports");
        let indices = tools::GuestIndices::new(&pre).expect("the interface `tools`");
        Self { engine, pre, indices }
    }

    /// Creates a store and an instance.
    pub async fn instantiate(&self) -> PlainInstance {
        let state = PlainState {
            wasi: WasiCtx::builder().build(),
            table: ResourceTable::new(),
            limits: StoreLimitsBuilder::new().memory_size(MEMORY_BYTES_MAX).build(),
        };
        let mut store = Store::new(&self.engine, state);
        store.limiter(|state| &mut state.limits);
        store.set_epoch_deadline(1);
        let instance = self.pre.instantiate_async(&mut store).await.expect("an instance");
        let guest = self.indices.load(&mut store, &instance).expect("the interface `tools`");
        PlainInstance { store, guest }
    }
}

impl PlainInstance {
    /// Calls a tool. Returns the length of its result in bytes.
    pub async fn call(&mut self, tool: &str, arguments: &str) -> usize {
        let context = CallContext {
            call_id: "bench".into(),
            session_id: "bench".into(),
            user_id: "bench".into(),
            conversation_id: None,
            deadline_ms: Some(30_000),
            extra: None,
        };
        let (tool, arguments) = (tool.to_owned(), arguments.to_owned());
        let called = self.guest.call_call_tool(&mut self.store, &context, &tool, &arguments);
        called.await.expect("no trap").expect("an output").data.len()
    }
}

/// Defines the imports that are not WASI's as functions that trap.
///
/// wasmtime can do this for all imports that are unknown, but it takes an interface of another patch
/// version of WASI for an unknown one, and then types of the two do not match.
fn define_other_imports(
    engine: &Engine,
    linker: &mut Linker<PlainState>,
    component: &Component,
) -> wasmtime::Result<()> {
    for (name, item) in component.component_type().imports(engine) {
        let is_wasi = name.starts_with("wasi:") && !name.starts_with("wasi:http/");
        let (false, ComponentItem::ComponentInstance(interface)) = (is_wasi, item.ty) else {
            continue;
        };
        let mut instance = linker.instance(name)?;
        for (export, item) in interface.exports(engine) {
            match item.ty {
                ComponentItem::ComponentFunc(_) => instance.func_new(export, |_, _, _, _| {
                    Err(wasmtime::format_err!("the floor has no such function"))
                })?,
                ComponentItem::Resource(_) => {
                    instance.resource(export, ResourceType::host::<()>(), |_, _| Ok(()))?;
                }
                _ => {}
            }
        }
    }
    Ok(())
}

/// The settings of the host's engine, as far as they change what code or an instance costs.
fn config() -> Config {
    let mut config = Config::new();
    config
        .epoch_interruption(true)
        .concurrency_support(false)
        .max_wasm_stack(2 * 1024 * 1024)
        .async_stack_size(4 * 1024 * 1024)
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
