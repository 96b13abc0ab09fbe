//! Outgoing HTTP: the only way out of a guest, and every check on it.
//!
//! Each request goes through these steps in order, and so does each redirect that is followed:
//!
//! 1. [`rebuild_url`](sallyport_policy::rebuild_url): the URL is rebuilt from its parts. User
//!    names, odd hosts and addresses that are not in their plain form are refused.
//! 2. [`request_check`]: the current grant is asked for scheme, host, port, method and path. Then a rule or
//!    the user has to allow the request, while the guest's clock is paused. Then the grant is asked
//!    again, as it may have changed in the meantime.
//! 3. [`secret`]: a request with a secret in its URL or headers is refused, and its body is cut off
//!    before a secret in it is complete ([`outgoing`]).
//! 4. [`http_usage`]: requests are counted, and bodies while they pass.
//! 5. [`dial`]: our own [`resolver`] resolves the host name, and every address is checked against
//!    the grant. The checked address is the one that is dialled, without a second lookup. A
//!    [`proxy`] is used only if the policy names one.
//! 6. [`tls`]: TLS verifies the name in the URL against the system's certificates.
//! 7. [`exchange`]: the host sets framing, the host header and codings ([`headers`]), and finally
//!    adds the secrets that the policy sends along.
//! 8. [`incoming`]: the response is limited in headers, body and silence, its [`coding`] is
//!    decoded, and secrets that a server echoes are removed.
//!
//! A request that a service refuses with 401 is sent once more with a renewed token of the account
//! ([`repeat`]). Each step has a timeout ([`timeouts`]). Redirects are returned to the guest, unless
//! its policy lets the host follow some ([`redirect`]). The host keeps no cookies, and no two
//! requests share a connection.

mod coding;
mod dial;
mod exchange;
mod headers;
mod http_usage;
mod incoming;
mod limited_connection;
mod outgoing;
mod proxy;
mod redirect;
mod repeat;
mod request_check;
mod request_url;
mod resolver;
mod secret;
mod timeouts;
mod tls;

use std::sync::Arc;

use http::Request;
use sallyport_contract::HostNameResolver;
use sallyport_policy::RequestFormError;
use tracing::Instrument as _;
use wasmtime_wasi_http::{Error, ForbiddenHeaderFilter, RequestOptions, WasiBody, WasiHttpHooks};

pub use dial::{BoxedConnection, DuplexConnection, SimulatedNetwork};
pub(crate) use headers::prepare_response_headers;
pub(crate) use http_usage::HttpUsage;
pub use resolver::SystemResolver;
pub(crate) use tls::TlsClient;

use crate::run_context::RunContext;

/// Most bytes of one request's body that the host buffers for a guest. The limit on open requests
/// bounds the sum.
const OUTGOING_CHUNK_BYTES_MAX: usize = 16 * 1024;

type ResponseFuture = Box<dyn Future<Output = Result<Response, Error>> + Send>;
type Response = (http::Response<WasiBody>, Box<dyn Future<Output = Result<(), Error>> + Send>);

/// The gate of one guest. Clones share the account.
#[derive(Clone)]
pub(crate) struct HttpGate {
    pub(crate) run_context: Arc<RunContext>,
    pub(crate) resolver: Arc<dyn HostNameResolver>,
    pub(crate) tls: Arc<TlsClient>,
    pub(crate) usage: Arc<HttpUsage>,
    /// Replaces every server in a test of a plugin.
    pub(crate) simulated_network: Option<Arc<dyn SimulatedNetwork>>,
}

impl HttpGate {
    /// Makes a request that ends no later than its call, even while the user is being asked about
    /// it or its response is being read.
    pub(crate) async fn send_while_open(
        &self,
        request: Request<WasiBody>,
        options: RequestOptions,
    ) -> Result<Response, Error> {
        let (response, connection) = tokio::select! {
            biased;
            () = self.usage.wait_until_closed() => return Err(Error::ConnectionTerminated),
            done = redirect::send_with_redirects(self, request, options) => done?,
        };
        let usage = Arc::clone(&self.usage);
        let connection = async move {
            tokio::select! {
                () = usage.wait_until_closed() => Ok(()),
                done = Box::into_pin(connection) => done,
            }
        };
        Ok((response, Box::new(connection)))
    }

    fn request_form_error(&self, error: RequestFormError) -> Error {
        self.run_context.effect_log.record_refusal(error.into_denial());
        Error::HttpRequestUriInvalid
    }
}

impl WasiHttpHooks for HttpGate {
    fn forbidden_header_filter(&mut self) -> ForbiddenHeaderFilter {
        Arc::new(headers::is_forbidden_header)
    }

    /// The size of the host's buffer for a body that a guest writes.
    fn p2_outgoing_body_chunk_size(&mut self) -> usize {
        OUTGOING_CHUNK_BYTES_MAX
    }

    fn send_request(
        &mut self,
        request: Request<WasiBody>,
        options: Option<RequestOptions>,
        _fut: Box<dyn Future<Output = Result<(), Error>> + Send>,
    ) -> ResponseFuture {
        let gate = self.clone();
        let options = options.unwrap_or_default();
        let exchange = async move { gate.send_while_open(request, options).await };
        // The request runs in a task of its own.
        Box::new(exchange.in_current_span())
    }
}
