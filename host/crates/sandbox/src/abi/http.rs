//! `wasi:http/incoming-handler`: a component that answers HTTP requests. The interface does not
//! depend on the version of the plugin contract.

use http::{Request, Response, uri::Scheme};
use wasmtime::{
    Store,
    component::{Instance, InstancePre},
};
use wasmtime_wasi_http::{
    WasiBody, WasiHttpView,
    p2::bindings::{
        exports::wasi::http::incoming_handler::GuestIndices,
        http::types::{self, ErrorCode},
    },
};

use super::{InterfaceMismatch, export_names};
use crate::guest::Guest;

/// The name of the interface up to its patch version.
const HANDLER_PREFIX: &str = "wasi:http/incoming-handler@0.2.";

/// Whether an export is an HTTP handler.
pub(crate) fn is_http_handler(export: &str) -> bool {
    export.starts_with(HANDLER_PREFIX)
}

/// The response of a guest, or its error code.
pub(crate) type GuestResponse = Result<Response<WasiBody>, ErrorCode>;

/// The HTTP handler that a component exports.
pub(crate) struct HttpHandler(GuestIndices);

impl HttpHandler {
    /// Looks up the export, if the component has it.
    ///
    /// # Errors
    ///
    /// The component exports the interface with other types.
    pub(crate) fn find_export(pre: &InstancePre<Guest>) -> wasmtime::Result<Option<Self>> {
        if !export_names(pre).iter().any(|name| is_http_handler(name)) {
            return Ok(None);
        }
        Ok(Some(Self(GuestIndices::new(pre)?)))
    }

    /// The error for a component that does not export the interface.
    pub(crate) fn missing_export_error() -> wasmtime::Result<()> {
        Err(wasmtime::Error::new(InterfaceMismatch(
            "it exports no wasi:http/incoming-handler".to_owned(),
        )))
    }

    /// Passes a request to the guest. `hand_over` receives the response as soon as the guest sets
    /// it; the guest keeps running, for example to write the body, until it returns.
    pub(crate) async fn handle_request(
        &self,
        store: &mut Store<Guest>,
        instance: Instance,
        request: Request<WasiBody>,
        hand_over: impl FnOnce(GuestResponse) + Send + Sync + 'static,
    ) -> wasmtime::Result<()> {
        let guest = self.0.load(&mut *store, &instance).map_err(InterfaceMismatch::wrap_error)?;
        let scheme = wasi_scheme(request.uri().scheme());
        let mut http = store.data_mut().http();
        let request = http.new_incoming_request(scheme, request)?;
        let answer = http.new_response_outparam_from_callback(hand_over)?;
        guest.call_handle(store, request, answer).await
    }
}

fn wasi_scheme(scheme: Option<&Scheme>) -> types::Scheme {
    if scheme == Some(&Scheme::HTTPS) { types::Scheme::Https } else { types::Scheme::Http }
}
