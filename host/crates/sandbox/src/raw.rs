//! The baseline of the benchmarks: the same component in bare wasmtime, with the same engine
//! settings and linker, and without the rest of Sallyport.
//!
//! No other crate depends on wasmtime, so it is in this one. It is compiled for benchmarks only.

use std::{sync::Arc, time::Duration};

use sallyport_policy::Grant;
use wasmtime::{
    Store, UpdateDeadline,
    component::{Component, InstancePre},
};

use crate::{
    ComponentFile, Sandbox,
    authorizer::FixedGrantAuthorizer,
    bindings::v0_1::{exports::sallyport::plugin::tools, sallyport::plugin::types::CallContext},
    guest::{Guest, SharedPluginState},
    run_context::RunContext,
    runtime::WasmEngine,
};

/// A component in bare wasmtime.
pub struct BareComponent {
    engine: Arc<WasmEngine>,
    sandbox: Arc<Sandbox>,
    pre: InstancePre<Guest>,
    indices: tools::GuestIndices,
}

/// A live instance of a [`BareComponent`] component.
pub struct BareInstance {
    store: Store<Guest>,
    guest: tools::Guest,
}

impl BareComponent {
    /// Compiles a component, or maps its cached code, and links it.
    ///
    /// # Panics
    ///
    /// Any step fails: a benchmark has no caller to report to.
    #[expect(clippy::expect_used, reason = "a benchmark stops when its ground is missing")]
    pub fn new(sandbox: &Arc<Sandbox>, file: &ComponentFile) -> Self {
        let engine = sandbox.get_or_create_engine().expect("an engine");
        let component = sandbox.cache.load_or_compile(&engine.wasm, file).expect("a component");
        let pre = engine.linker.instantiate_pre(&component).expect("all imports");
        let indices = tools::GuestIndices::new(&pre).expect("tools");
        Self { engine, sandbox: Arc::clone(sandbox), pre, indices }
    }

    /// Compiles a component without any cache.
    ///
    /// # Panics
    ///
    /// The component does not compile.
    #[expect(clippy::expect_used, reason = "a benchmark stops when its ground is missing")]
    pub fn compile(&self, file: &ComponentFile) {
        let bytes = file.bytes().expect("a file");
        Component::new(&self.engine.wasm, &*bytes).expect("a component");
    }

    /// Creates a fresh store and instance with `InstancePre` alone.
    ///
    /// # Panics
    ///
    /// The component cannot be instantiated.
    #[expect(clippy::expect_used, reason = "a benchmark stops when its ground is missing")]
    #[expect(clippy::disallowed_methods, reason = "the baseline is bare wasmtime")]
    pub async fn instantiate(&self) -> BareInstance {
        let grant = Arc::new(Grant::empty("bench".parse().expect("a name")));
        let run_context =
            RunContext::without_call(Arc::new(FixedGrantAuthorizer::new(grant)), None);
        let guest = self
            .sandbox
            .create_guest(&run_context, &SharedPluginState::without_plugin())
            .expect("a guest");
        let mut store = Store::new(&self.engine.wasm, guest);
        store.set_epoch_deadline(1);
        store.epoch_deadline_callback(|_| Ok(UpdateDeadline::Yield(1)));
        let instance = self.pre.instantiate_async(&mut store).await.expect("an instance");
        let guest = self.indices.load(&mut store, &instance).expect("tools");
        BareInstance { store, guest }
    }
}

impl BareInstance {
    /// Calls a tool and returns the length of its result in bytes.
    ///
    /// # Panics
    ///
    /// The tool traps or fails.
    #[expect(clippy::expect_used, reason = "a benchmark stops when its ground is missing")]
    pub async fn call(&mut self, tool: &str, arguments: &str) -> usize {
        let context = CallContext {
            call_id: "bench".into(),
            session_id: "bench".into(),
            user_id: "bench".into(),
            conversation_id: None,
            deadline_ms: Some(Duration::from_secs(30).as_millis() as u32),
            extra: None,
        };
        let arguments = arguments.to_owned();
        let called = self.guest.call_call_tool(&mut self.store, &context, tool, &arguments);
        called.await.expect("no trap").expect("an output").data.len()
    }
}
