//! What one store holds: the state of a single guest, from its first instruction to its last. A
//! fresh guest has one run; one that lives through a session has many, one after another.
//!
//! A plain struct of contexts. Each capability borrows the part that it serves.

use std::sync::Arc;

use sallyport_policy::Limits;
use serde_json::{Map, Value};
use wasmtime::component::ResourceTable;
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};
use wasmtime_wasi_http::{WasiHttpCtx, WasiHttpCtxView, WasiHttpView};

use crate::{
    capability::{stdio::GuestOutput, uses::Uses},
    case::Case,
    docket::Docket,
    files::{Files, own::OwnFolder},
    limits::{HEADER_BYTES_MAX, MemoryAccount},
    net::HttpGate,
    rate::Minute,
};

/// What all guests of one plugin have in common.
pub(crate) struct Common {
    /// Its settings, defaults filled in.
    pub(crate) settings: Map<String, Value>,
    /// Messages to the person, which are counted over all of its runs.
    pub(crate) notices: Minute,
    /// Whether it can be called back by timers.
    pub(crate) has_timers: bool,
}

impl Common {
    /// Of a component that is looked at without being anybody's plugin.
    pub(crate) fn bare() -> Arc<Self> {
        Arc::new(Self { settings: Map::new(), notices: Minute::default(), has_timers: false })
    }
}

/// The state of one guest.
pub(crate) struct Guest {
    pub(crate) wasi: WasiCtx,
    pub(crate) table: ResourceTable,
    pub(crate) files: Files,
    pub(crate) http: WasiHttpCtx,
    pub(crate) gate: HttpGate,
    pub(crate) memory: MemoryAccount,
    /// The present run.
    pub(crate) case: Arc<Case>,
    /// The same, for what the guest holds open.
    pub(crate) docket: Arc<Docket>,
    /// Standard output and error.
    pub(crate) output: [GuestOutput; 2],
    /// What the present run has asked of our own interfaces.
    pub(crate) uses: Uses,
    pub(crate) common: Arc<Common>,
    /// The limits that hold for its whole life.
    pub(crate) limits: Limits,
    /// Copies of single granted files; removed with the guest.
    pub(crate) _scratch: Option<OwnFolder>,
}

impl Guest {
    /// Most bytes that the tool may return.
    pub(crate) fn output_bytes_max(&self) -> u64 {
        self.case.granted().limits().output_bytes
    }

    /// Begins another run. Nothing of the earlier ones counts for it, but for the memory that is
    /// held, and nothing of it counts for them.
    pub(crate) fn take_up(&mut self, case: &Arc<Case>) {
        self.docket.call(case);
        self.case = Arc::clone(case);
        self.gate.case = Arc::clone(case);
        self.gate.account = Arc::default();
        self.uses = Uses::default();
        self.memory.begin_run();
        self.files.begin_run();
    }

    /// Ends the present run: what it has under way outside ends with it.
    pub(crate) fn lay_down(&mut self) {
        self.output.iter().for_each(GuestOutput::finish);
        self.gate.account.close();
        self.docket.rest();
    }
}

/// A table that refuses to hold more than a call can sensibly use.
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
        WasiHttpCtxView { hooks: &mut self.gate, table: &mut self.table, ctx: &mut self.http }
    }
}
