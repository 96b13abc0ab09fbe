//! What one store holds: the state of a single guest, from its first instruction to its last.
//!
//! A plain struct of contexts. Each capability borrows the part that it serves.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use serde_json::{Map, Value};
use tempfile::TempDir;
use wasmtime::component::ResourceTable;
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};
use wasmtime_wasi_http::{WasiHttpCtx, WasiHttpCtxView, WasiHttpView};

use crate::{
    ledger::Ledger,
    limits::{HANDLES_MAX, HEADER_BYTES_MAX, MemoryAccount},
    net::HttpGate,
};

/// The state of one guest.
pub(crate) struct Guest {
    pub(crate) wasi: WasiCtx,
    pub(crate) table: ResourceTable,
    pub(crate) http: WasiHttpCtx,
    pub(crate) gate: HttpGate,
    pub(crate) memory: MemoryAccount,
    pub(crate) ledger: Ledger,
    pub(crate) settings: Arc<Map<String, Value>>,
    pub(crate) deadline: Instant,
    pub(crate) output_bytes_max: u64,
    /// Copies of single granted files; removed with the guest.
    pub(crate) _scratch: Option<TempDir>,
}

impl Guest {
    /// Time until the guest is stopped.
    pub(crate) fn time_left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }

    /// Most bytes that the tool may return.
    pub(crate) fn output_bytes_max(&self) -> u64 {
        self.output_bytes_max
    }
}

/// A table that refuses to hold more than a call can sensibly use.
pub(crate) fn bounded_table() -> ResourceTable {
    let mut table = ResourceTable::new();
    table.set_max_capacity(HANDLES_MAX);
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
