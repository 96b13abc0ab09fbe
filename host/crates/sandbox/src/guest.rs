//! What one store holds: the state of a single guest, from its first instruction to its last.
//!
//! A plain struct of contexts. Each capability borrows the part that it serves.

use std::sync::Arc;

use sallyport_policy::Limits;
use serde_json::{Map, Value};
use tempfile::TempDir;
use wasmtime::component::ResourceTable;
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};
use wasmtime_wasi_http::{WasiHttpCtx, WasiHttpCtxView, WasiHttpView};

use crate::{
    case::Case,
    files::Files,
    limits::{HEADER_BYTES_MAX, MemoryAccount},
    net::HttpGate,
};

/// The state of one guest.
pub(crate) struct Guest {
    pub(crate) wasi: WasiCtx,
    pub(crate) table: ResourceTable,
    pub(crate) files: Files,
    pub(crate) http: WasiHttpCtx,
    pub(crate) gate: HttpGate,
    pub(crate) memory: MemoryAccount,
    pub(crate) case: Arc<Case>,
    pub(crate) settings: Arc<Map<String, Value>>,
    pub(crate) limits: Limits,
    /// Copies of single granted files; removed with the guest.
    pub(crate) _scratch: Option<TempDir>,
}

impl Guest {
    /// Most bytes that the tool may return.
    pub(crate) fn output_bytes_max(&self) -> u64 {
        self.limits.output_bytes
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
