//! Connections through a proxy, if the policy names one. The proxy variables of the environment are
//! ignored.
//!
//! The operator vouches for the proxy's own address. The target is resolved and checked as without
//! a proxy, and a tunnel is requested to a checked address, never to a name. Plain HTTP remains an
//! exception: servers distinguish their sites by name, so the proxy receives the name and resolves
//! it again by itself.

use std::net::SocketAddr;

use bytes::Bytes;
use http::{HeaderValue, Method, Request, StatusCode, header};
use http_body_util::Empty;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use sallyport_policy::ProxyAddress;
use wasmtime_wasi_http::Error;

use super::{
    HttpGate,
    dial::{self, BoxedConnection},
    timeouts::ExchangeTimeouts,
};
use crate::limits::HEADER_BYTES_MAX;

/// Resolves the name of a proxy.
pub(super) async fn resolve_proxy(
    gate: &HttpGate,
    timeouts: &ExchangeTimeouts,
    proxy: &ProxyAddress,
) -> Result<Vec<SocketAddr>, Error> {
    let found = dial::resolve_host(gate, timeouts, &proxy.host).await?;
    Ok(found.into_iter().map(|address| SocketAddr::new(address, proxy.port)).collect())
}

/// Asks a proxy to open a tunnel to one of the targets.
pub(super) async fn open_tunnel(
    proxy: &[SocketAddr],
    targets: &[SocketAddr],
) -> Result<BoxedConnection, Error> {
    let mut last = Error::DestinationUnavailable;
    for target in targets {
        match open_tunnel_to(proxy, *target).await {
            Ok(tunnel) => return Ok(tunnel),
            Err(error) => last = error,
        }
    }
    Err(last)
}

async fn open_tunnel_to(
    proxy: &[SocketAddr],
    target: SocketAddr,
) -> Result<BoxedConnection, Error> {
    let stream = dial::connect_to_first(proxy).await?;
    let (mut sender, connection) = http1::Builder::new()
        .max_buf_size(HEADER_BYTES_MAX)
        .handshake::<_, Empty<Bytes>>(TokioIo::new(stream))
        .await?;
    // The driver passes the connection on once the proxy has accepted, and ends.
    let driver = wasmtime_wasi::runtime::spawn(connection.with_upgrades());
    let response = sender.send_request(build_connect_request(target)?).await?;
    if !response.status().is_success() {
        return Err(proxy_status_error(response.status()));
    }
    let tunnel = hyper::upgrade::on(response).await?;
    driver.await?;
    Ok(Box::new(TokioIo::new(tunnel)))
}

/// Refuses a proxy's own demand for credentials. A server must not send this status, so a plugin
/// that received it would send its credentials to the wrong side. Over plain HTTP only the status
/// distinguishes the two.
pub(super) fn check_proxy_status(status: StatusCode) -> Result<(), Error> {
    match status {
        StatusCode::PROXY_AUTHENTICATION_REQUIRED => Err(proxy_status_error(status)),
        _ => Ok(()),
    }
}

fn proxy_status_error(status: StatusCode) -> Error {
    let status = status.as_u16();
    Error::InternalError(Some(format!("the proxy answered with status {status}")))
}

fn build_connect_request(target: SocketAddr) -> Result<Request<Empty<Bytes>>, Error> {
    let invalid = |_| Error::HttpRequestUriInvalid;
    let host = HeaderValue::try_from(target.to_string());
    let request = Request::builder()
        .method(Method::CONNECT)
        .uri(target.to_string())
        .header(header::HOST, host.map_err(|_| Error::HttpRequestUriInvalid)?);
    request.body(Empty::new()).map_err(invalid)
}
