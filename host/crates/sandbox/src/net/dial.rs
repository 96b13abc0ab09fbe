//! Names to addresses to connections. The address that was checked is the address that is dialled.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    time::Duration,
};

use sallyport_contract::{BoxFuture, Resolver};
use tokio::net::TcpStream;
use url::{Host, Url};
use wasmtime_wasi_http::Error;

use super::HttpGate;

/// Longest wait for a name.
const RESOLVE_TIME_MAX: Duration = Duration::from_secs(10);

/// Longest wait for one address to accept.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(10);

/// Addresses that are tried one after another; a name with hundreds would hold the call up.
const ADDRESSES_MAX: usize = 8;

/// The system's own name service.
#[derive(Debug, Clone, Copy)]
pub struct SystemResolver;

impl Resolver for SystemResolver {
    fn resolve<'a>(&'a self, host: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        Box::pin(async move {
            let found = tokio::net::lookup_host((host, 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    }
}

/// Connects to a URL's host, at an address that the grant allows.
pub(super) async fn connect(
    gate: &HttpGate,
    method: &str,
    url: &Url,
    what: &str,
    wait: Option<Duration>,
) -> Result<TcpStream, Error> {
    let addresses = allowed_addresses(gate, method, url, what).await?;
    let port = url.port_or_known_default().ok_or(Error::HttpRequestUriInvalid)?;
    let wait = wait.map_or(CONNECT_TIME_MAX, |asked| asked.min(CONNECT_TIME_MAX));
    let mut last = Error::DestinationUnavailable;
    for address in addresses.into_iter().take(ADDRESSES_MAX) {
        match tokio::time::timeout(wait, dial(SocketAddr::new(address, port))).await {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(error)) => last = connect_error(error),
            Err(_) => last = Error::ConnectionTimeout,
        }
    }
    Err(last)
}

#[expect(clippy::disallowed_methods, reason = "this is the one place that dials for a guest")]
async fn dial(address: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// Resolves, then keeps what the grant allows. When nothing is left, the refusal is written down.
async fn allowed_addresses(
    gate: &HttpGate,
    method: &str,
    url: &Url,
    what: &str,
) -> Result<Vec<IpAddr>, Error> {
    let all = match url.host().ok_or(Error::HttpRequestUriInvalid)? {
        Host::Ipv4(ip) => vec![IpAddr::V4(ip)],
        Host::Ipv6(ip) => vec![IpAddr::V6(ip)],
        Host::Domain(name) => resolve(gate, name).await?,
    };
    let permit = gate.grant.net().check(method, url).map_err(|denial| {
        gate.ledger.refused(denial);
        Error::HttpRequestDenied
    })?;
    let (allowed, refused): (Vec<_>, Vec<_>) =
        all.into_iter().partition(|address| permit.allows_address(*address));
    match refused.first() {
        Some(address) if allowed.is_empty() => {
            gate.ledger.refused(gate.grant.deny_address(what, *address));
            Err(Error::DestinationIpProhibited)
        }
        _ => Ok(allowed),
    }
}

async fn resolve(gate: &HttpGate, name: &str) -> Result<Vec<IpAddr>, Error> {
    let found = tokio::time::timeout(RESOLVE_TIME_MAX, gate.resolver.resolve(name)).await;
    match found {
        Ok(Ok(addresses)) if !addresses.is_empty() => Ok(addresses),
        Ok(_) => Err(Error::DnsError { rcode: Some("no such name".into()), info_code: None }),
        Err(_) => Err(Error::DnsTimeout),
    }
}

fn connect_error(error: io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => Error::ConnectionRefused,
        io::ErrorKind::TimedOut => Error::ConnectionTimeout,
        _ => Error::DestinationUnavailable,
    }
}
