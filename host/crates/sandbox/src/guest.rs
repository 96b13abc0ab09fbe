//! The state of one store, which is a single guest from its first instruction to its last. A fresh
//! guest has one run; a guest that lives through a session has many, one after another.
//!
//! It is a plain struct of contexts. Each capability borrows the part that it serves.

use std::sync::Arc;

use sallyport_policy::PluginLimits;
use wasmtime::component::ResourceTable;
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};
use wasmtime_wasi_http::{WasiHttpCtx, WasiHttpCtxView, WasiHttpView};

use crate::{
    capability::{HostCall, HostCallCounters, SharedPluginState, stdio::GuestOutput},
    current_run::CurrentRun,
    files::{FileCalls, GuestFiles, SharedDiskState, temp_folder::ProcessTempFolder},
    limits::{HEADER_BYTES_MAX, MemoryAccount},
    net::HttpGate,
    run_context::RunContext,
};

/// The state of one guest.
pub(crate) struct Guest {
    pub(crate) wasi: WasiCtx,
    pub(crate) table: ResourceTable,
    pub(crate) files: GuestFiles,
    pub(crate) http: WasiHttpCtx,
    pub(crate) http_gate: HttpGate,
    pub(crate) memory: MemoryAccount,
    /// The current run.
    pub(crate) run_context: Arc<RunContext>,
    /// The current run as seen by resources that outlive a host call.
    pub(crate) current_run: Arc<CurrentRun>,
    /// Standard output and standard error.
    pub(crate) output: [GuestOutput; 2],
    /// The calls of the current run to our own interfaces.
    pub(crate) counters: HostCallCounters,
    pub(crate) shared_state: Arc<SharedPluginState>,
    /// The limits for its whole life.
    pub(crate) limits: PluginLimits,
    /// Copies of single granted files, removed with the guest.
    pub(crate) file_copies: Option<ProcessTempFolder>,
    /// For files that are granted while the guest runs.
    pub(crate) disk: Arc<SharedDiskState>,
}

impl Guest {
    /// Most bytes that the tool may return.
    pub(crate) fn output_bytes_max(&self) -> u64 {
        self.run_context.initial_grant().limits().output_bytes
    }

    /// The part that serves the guest's calls to the interfaces of `wit/`.
    pub(crate) fn host_call(&mut self) -> HostCall<'_> {
        HostCall {
            run_context: &self.run_context,
            counters: &mut self.counters,
            shared_state: &self.shared_state,
        }
    }

    /// The part that serves the guest's calls to `wasi:filesystem`.
    pub(crate) fn file_calls(&mut self) -> FileCalls<'_> {
        FileCalls { table: &mut self.table, files: &self.files }
    }

    /// Begins another run. Limits count separately for each run, except for memory that is still in
    /// use.
    pub(crate) fn begin_run(&mut self, run_context: &Arc<RunContext>) {
        self.current_run.begin_run(run_context);
        self.run_context = Arc::clone(run_context);
        self.http_gate.run_context = Arc::clone(run_context);
        self.http_gate.usage = Arc::default();
        self.counters = HostCallCounters::default();
        self.memory.begin_run();
        self.files.begin_run();
    }

    /// Ends the current run, and with it all outside work that is still running.
    pub(crate) fn end_run(&mut self) {
        self.output.iter().for_each(GuestOutput::log_last_line);
        self.http_gate.usage.close();
        self.current_run.end_run();
    }
}

/// A table with at most this many handles.
pub(crate) fn bounded_table(handles_max: u32) -> ResourceTable {
    let mut table = ResourceTable::new();
    table.set_max_capacity(handles_max as usize);
    table
}

/// An HTTP context with the host's own header limit.
pub(crate) fn bounded_http() -> WasiHttpCtx {
    let mut http = WasiHttpCtx::new();
    http.set_field_size_limit(HEADER_BYTES_MAX);
    http
}

impl WasiView for Guest {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView { ctx: &mut self.wasi, table: &mut self.table }
    }
}

impl WasiHttpView for Guest {
    fn http(&mut self) -> WasiHttpCtxView<'_> {
        WasiHttpCtxView { hooks: &mut self.http_gate, table: &mut self.table, ctx: &mut self.http }
    }
}
