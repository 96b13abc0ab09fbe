//! `wasi:http/incoming-handler`: a component that answers requests. It is the same in every version of
//! our own contract.

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

use super::{Mismatch, export_names};
use crate::guest::Guest;

/// How the interface begins in each of its versions.
const HANDLER_PREFIX: &str = "wasi:http/incoming-handler@0.2.";

/// Whether an export answers requests.
pub(crate) fn is_handler(export: &str) -> bool {
    export.starts_with(HANDLER_PREFIX)
}

/// What a guest gives for an answer.
pub(crate) type Given = Result<Response<WasiBody>, ErrorCode>;

/// The export of a component that answers requests.
pub(crate) struct HttpHandler(GuestIndices);

impl HttpHandler {
    /// Looks up the export, if there is one.
    ///
    /// # Errors
    ///
    /// The export has this name and other contents.
    pub(crate) fn find(pre: &InstancePre<Guest>) -> wasmtime::Result<Option<Self>> {
        if !export_names(pre).iter().any(|name| is_handler(name)) {
            return Ok(None);
        }
        Ok(Some(Self(GuestIndices::new(pre)?)))
    }

    /// What a component without the export answers.
    pub(crate) fn absent() -> wasmtime::Result<()> {
        Err(wasmtime::Error::new(Mismatch("it exports no wasi:http/incoming-handler".to_owned())))
    }

    /// Hands a request to the guest. What it answers is handed over at once; the guest goes on with
    /// the body, and with whatever else it likes, until it returns.
    pub(crate) async fn handle(
        &self,
        store: &mut Store<Guest>,
        instance: Instance,
        request: Request<WasiBody>,
        hand_over: impl FnOnce(Given) + Send + Sync + 'static,
    ) -> wasmtime::Result<()> {
        let guest = self.0.load(&mut *store, &instance).map_err(Mismatch::wrap)?;
        let scheme = scheme(request.uri().scheme());
        let mut http = store.data_mut().http();
        let request = http.new_incoming_request(scheme, request)?;
        let answer = http.new_response_outparam_from_callback(hand_over)?;
        guest.call_handle(store, request, answer).await
    }
}

fn scheme(scheme: Option<&Scheme>) -> types::Scheme {
    if scheme == Some(&Scheme::HTTPS) { types::Scheme::Https } else { types::Scheme::Http }
}
