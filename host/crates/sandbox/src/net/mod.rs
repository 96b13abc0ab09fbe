//! Outgoing HTTP: the one way out of a guest, and everything that stands in it.
//!
//! In this order, for every request:
//!
//! 1. [`address`]: the URL is rebuilt from its parts; user names, odd hosts and addresses in other
//!    than their plain form are refused.
//! 2. The effective grant is asked: scheme, host, port, method and path.
//! 3. The host name is resolved by our own resolver and every address is checked against the grant.
//!    The checked address is the one that is dialled ([`dial`]); there is no second look-up.
//! 4. TLS is spoken with the host's name, against the system's certificates ([`tls`]).
//! 5. The response is capped in headers, body and silence between two pieces ([`exchange`]).
//!
//! Redirects are not followed: the guest sees them, and a request to the new place is a new request
//! from step 1. There is no proxy, no cookie jar and no connection that two calls share.

mod address;
mod dial;
mod exchange;
mod tls;

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use http::{HeaderName, Request};
use sallyport_contract::Resolver;
use sallyport_policy::Grant;
use url::Url;
use wasmtime_wasi_http::{
    DEFAULT_FORBIDDEN_HEADERS, Error, ForbiddenHeaderFilter, RequestOptions, WasiBody,
    WasiHttpHooks,
};

pub use dial::SystemResolver;
pub(crate) use tls::Tls;

use crate::ledger::Ledger;

/// Headers beyond wasi-http's own list that belong to the host: framing, hops, proxies, and claims
/// about who is asking.
const FORBIDDEN_HEADERS: [&str; 6] = ["te", "trailer", "expect", "forwarded", "x-real-ip", "via"];

/// How the rest of the claims about who is asking begin.
const FORBIDDEN_PREFIX: &str = "x-forwarded-";

/// Bytes of a request's body that the host holds for a guest at a time; with as many requests as a
/// call can hold open, this is what they come to in memory.
const OUTGOING_CHUNK_BYTES_MAX: usize = 16 * 1024;

type Exchange = Box<dyn Future<Output = Result<Response, Error>> + Send>;
type Response = (http::Response<WasiBody>, Box<dyn Future<Output = Result<(), Error>> + Send>);

/// The gate of one guest. Clones share the account of requests.
#[derive(Clone)]
pub(crate) struct HttpGate {
    pub(crate) grant: Arc<Grant>,
    pub(crate) ledger: Ledger,
    pub(crate) resolver: Arc<dyn Resolver>,
    pub(crate) tls: Arc<Tls>,
    pub(crate) requests: Arc<AtomicU32>,
}

/// A request that the grant allows, on its way out.
pub(crate) struct Passed {
    pub(crate) url: Url,
    pub(crate) what: String,
    pub(crate) request: Request<WasiBody>,
    pub(crate) options: RequestOptions,
}

impl HttpGate {
    /// Checks a request against grant and account. What is refused is written down.
    fn pass(
        &self,
        request: Request<WasiBody>,
        options: Option<RequestOptions>,
    ) -> Result<Passed, Error> {
        let url = address::rebuild(request.uri()).map_err(|reason| self.odd_address(reason))?;
        let method = request.method().as_str();
        if let Err(denial) = self.grant.net().check(method, &url) {
            self.ledger.refused(denial);
            return Err(Error::HttpRequestDenied);
        }
        let limit = self.grant.limits().http_requests;
        if self.requests.fetch_add(1, Ordering::Relaxed) >= limit {
            self.ledger.limit_reached(format!("{limit} requests per call"));
            return Err(Error::ConnectionLimitReached);
        }
        let what = address::describe(method, &url);
        Ok(Passed { url, what, request, options: options.unwrap_or_default() })
    }

    fn odd_address(&self, reason: &str) -> Error {
        self.ledger.refused(sallyport_contract::Denial {
            what: "a request to an address in an odd form was stopped".into(),
            why: reason.into(),
            fix: None,
            nobody_to_ask: false,
        });
        Error::HttpRequestUriInvalid
    }
}

impl WasiHttpHooks for HttpGate {
    fn forbidden_header_filter(&mut self) -> ForbiddenHeaderFilter {
        Arc::new(is_forbidden)
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
        let passed = self.pass(request, options);
        let gate = self.clone();
        Box::new(async move { exchange::send(&gate, passed?).await })
    }
}

fn is_forbidden(name: &HeaderName) -> bool {
    let text = name.as_str();
    DEFAULT_FORBIDDEN_HEADERS.contains(name)
        || FORBIDDEN_HEADERS.contains(&text)
        || text.starts_with(FORBIDDEN_PREFIX)
}
