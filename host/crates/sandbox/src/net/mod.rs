//! Outgoing HTTP: the one way out of a guest, and everything that stands in it.
//!
//! In this order, for every request, and again for every redirect that is followed:
//!
//! 1. [`rebuild_url`](sallyport_policy::rebuild_url): the URL is rebuilt from its parts; user names, odd hosts and addresses in other
//!    than their plain form are refused.
//! 2. [`pass`]: the effective grant of this very moment is asked for scheme, host, port, method and
//!    path. Then whoever has to agree does: a rule, or a person, while the guest is suspended and its
//!    clock stands still; and then the grant once more, since it may have changed meanwhile.
//! 3. [`secret`]: a request that carries a secret in its URL or its headers is refused, and its body
//!    is cut off before a secret in it is whole ([`outgoing`]).
//! 4. [`account`]: requests are counted, and bodies while they pass.
//! 5. [`dial`]: the host name is resolved by our own [`resolver`] and every address is checked against
//!    the grant. The checked address is the one that is dialled; there is no second look-up. A
//!    [`proxy`] stands in between only where the policy names one.
//! 6. [`tls`]: TLS is spoken with the host's name, against the system's certificates.
//! 7. [`exchange`]: framing, host and codings are set by the host ([`headers`]), and last of all the
//!    secrets that the policy sends along.
//! 8. [`incoming`]: the response is capped in headers, body and silence, its [`coding`] undone, and
//!    secrets that a server echoes are taken out of it.
//!
//! Each step has its [`patience`]. Redirects are returned to the guest, unless its policy lets the
//! host follow some ([`redirect`]). There is no cookie jar, and no connection that two requests share.

mod account;
mod address;
pub(crate) mod codes;
mod coding;
mod dial;
mod exchange;
mod headers;
mod incoming;
mod outgoing;
mod pass;
mod patience;
mod pending;
mod proxy;
mod redirect;
mod resolver;
mod secret;
mod tls;
mod wire;

use std::sync::Arc;

use http::Request;
use sallyport_contract::Resolver;
use sallyport_policy::RequestFormError;
use wasmtime_wasi_http::{Error, ForbiddenHeaderFilter, RequestOptions, WasiBody, WasiHttpHooks};

pub(crate) use account::Account;
pub(crate) use headers::answered;
pub use pending::{HoldError, PendingBody};
pub use resolver::SystemResolver;
pub(crate) use tls::Tls;

use crate::case::Case;

/// Bytes of a request's body that the host holds for a guest at a time; with as many requests as a
/// call can hold open, this is what they come to in memory.
const OUTGOING_CHUNK_BYTES_MAX: usize = 16 * 1024;

type Exchange = Box<dyn Future<Output = Result<Response, Error>> + Send>;
type Response = (http::Response<WasiBody>, Box<dyn Future<Output = Result<(), Error>> + Send>);

/// The gate of one guest. Clones share the account.
#[derive(Clone)]
pub(crate) struct HttpGate {
    pub(crate) case: Arc<Case>,
    pub(crate) resolver: Arc<dyn Resolver>,
    pub(crate) tls: Arc<Tls>,
    pub(crate) account: Arc<Account>,
}

impl HttpGate {
    /// Makes a request that ends with its call at the latest, wherever it is by then: also when
    /// somebody is being asked about it, and when only its answer is still being read.
    async fn while_open(
        &self,
        request: Request<WasiBody>,
        options: RequestOptions,
    ) -> Result<Response, Error> {
        let (response, connection) = tokio::select! {
            biased;
            () = self.account.closed() => return Err(Error::ConnectionTerminated),
            done = redirect::follow(self, request, options) => done?,
        };
        let account = Arc::clone(&self.account);
        let connection = async move {
            tokio::select! {
                () = account.closed() => Ok(()),
                done = Box::into_pin(connection) => done,
            }
        };
        Ok((response, Box::new(connection)))
    }

    fn odd_form(&self, error: RequestFormError) -> Error {
        self.case.ledger.refused(error.denial());
        Error::HttpRequestUriInvalid
    }
}

impl WasiHttpHooks for HttpGate {
    fn forbidden_header_filter(&mut self) -> ForbiddenHeaderFilter {
        Arc::new(headers::is_forbidden)
    }

    /// What a guest writes is held by the host until it is sent.
    fn p2_outgoing_body_chunk_size(&mut self) -> usize {
        OUTGOING_CHUNK_BYTES_MAX
    }

    fn send_request(
        &mut self,
        request: Request<WasiBody>,
        options: Option<RequestOptions>,
        _fut: Box<dyn Future<Output = Result<(), Error>> + Send>,
    ) -> Exchange {
        let gate = self.clone();
        let options = options.unwrap_or_default();
        Box::new(async move { gate.while_open(request, options).await })
    }
}
