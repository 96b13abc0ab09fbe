//! Resolves names and connects to addresses. The address that was checked is the address that is
//! dialled.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    time::Duration,
};

use futures::stream::{FuturesUnordered, StreamExt};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
};
use url::{Host, Url};
use wasmtime_wasi_http::Error;

use super::{
    HttpGate,
    exchange::PreparedRequest,
    proxy,
    request_check::PermittedRequest,
    timeouts::{ExchangeStep, ExchangeTimeouts},
};

/// Most addresses of a name that are tried. A name with hundreds of them would delay the call.
const ADDRESSES_MAX: usize = 8;

/// How long one address is tried before the next one is tried in parallel, as RFC 8305 recommends.
const NEXT_ADDRESS_DELAY: Duration = Duration::from_millis(250);

/// A connection, direct or through a proxy.
pub type BoxedConnection = Box<dyn DuplexConnection>;

/// Reads and writes.
pub trait DuplexConnection: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> DuplexConnection for T {}

/// Stands in for all servers.
pub trait SimulatedNetwork: Send + Sync {
    /// Returns a connection to the server of a URL, over which one HTTP/1.1 request is sent as plain
    /// text.
    fn connect(&self, url: &Url) -> BoxedConnection;
}

/// The form of the request target on the request line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RequestTargetForm {
    /// Path and query, for the server itself.
    Origin,
    /// The whole URL, for a proxy.
    Absolute,
}

/// Connects to a URL's host at an address that the grant allows, or through the proxy that the
/// policy names.
pub(super) async fn connect_to_host(
    gate: &HttpGate,
    timeouts: &ExchangeTimeouts,
    prepared: &PreparedRequest,
    permitted: &PermittedRequest,
) -> Result<(BoxedConnection, RequestTargetForm), Error> {
    if let Some(network) = &gate.simulated_network {
        return Ok((network.connect(&prepared.url), RequestTargetForm::Origin));
    }
    let addresses = allowed_addresses(gate, timeouts, prepared, permitted).await?;
    let proxies = gate.run_context.authorizer().proxy_settings();
    let Some(proxy) = proxies.as_deref().and_then(|proxies| proxies.address_for_url(&prepared.url))
    else {
        let stream =
            timeouts.wait_for_step(ExchangeStep::Connect, connect_to_first(&addresses)).await??;
        return Ok((Box::new(stream), RequestTargetForm::Origin));
    };
    let proxy_addresses = proxy::resolve_proxy(gate, timeouts, proxy).await?;
    if prepared.url.scheme() == "https" {
        let tunnel = proxy::open_tunnel(&proxy_addresses, &addresses);
        Ok((
            timeouts.wait_for_step(ExchangeStep::Connect, tunnel).await??,
            RequestTargetForm::Origin,
        ))
    } else {
        let stream = timeouts
            .wait_for_step(ExchangeStep::Connect, connect_to_first(&proxy_addresses))
            .await??;
        Ok((Box::new(stream), RequestTargetForm::Absolute))
    }
}

/// Dials addresses in order, each one a little after the one before, until one accepts the
/// connection.
pub(super) async fn connect_to_first(addresses: &[SocketAddr]) -> Result<TcpStream, Error> {
    let mut untried = addresses.iter();
    let mut dialled = FuturesUnordered::new();
    let mut last = Error::DestinationUnavailable;
    loop {
        match untried.next() {
            Some(address) => dialled.push(dial_address(*address)),
            None if dialled.is_empty() => return Err(last),
            None => {}
        }
        tokio::select! {
            biased;
            Some(answer) = dialled.next() => match answer {
                Ok(stream) => return Ok(stream),
                Err(error) => last = convert_connect_error(&error),
            },
            () = tokio::time::sleep(NEXT_ADDRESS_DELAY), if untried.len() > 0 => {}
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "this is the one place that dials for a guest")]
async fn dial_address(address: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// Resolves the host and keeps the addresses that the grant allows. If none is left, the refusal is
/// recorded.
async fn allowed_addresses(
    gate: &HttpGate,
    timeouts: &ExchangeTimeouts,
    prepared: &PreparedRequest,
    permitted: &PermittedRequest,
) -> Result<Vec<SocketAddr>, Error> {
    let PreparedRequest { method, url, .. } = prepared;
    let host = url.host().ok_or(Error::HttpRequestUriInvalid)?;
    let port = url.port_or_known_default().ok_or(Error::HttpRequestUriInvalid)?;
    let all = resolve_host(gate, timeouts, &host).await?;
    let grant = gate.run_context.current_grant();
    let permit = gate.find_permit(&grant, method.as_str(), url)?;
    let (allowed, refused): (Vec<_>, Vec<_>) =
        all.into_iter().partition(|address| permit.allows_address(*address));
    if let (Some(address), true) = (refused.first(), allowed.is_empty()) {
        gate.run_context.effect_log.record_refusal(grant.deny_address(
            method.as_str(),
            url,
            *address,
        ));
        return Err(Error::DestinationIpProhibited);
    }
    let is_open = url.scheme() != "https" && !allowed.iter().all(IpAddr::is_loopback);
    if is_open && !permitted.credentials.is_empty() {
        let why = "it would send a secret unencrypted to another machine";
        return Err(gate.refuse_request(&permitted.what, why.to_owned()));
    }
    Ok(interleave_families(allowed).map(|address| SocketAddr::new(address, port)).collect())
}

/// The addresses to try, alternating between the two families, one of which may be unreachable.
fn interleave_families(addresses: Vec<IpAddr>) -> impl Iterator<Item = IpAddr> {
    let first_is_v6 = addresses.first().is_some_and(IpAddr::is_ipv6);
    let (first, second): (Vec<_>, Vec<_>) =
        addresses.into_iter().partition(|address| address.is_ipv6() == first_is_v6);
    let mut others = second.into_iter();
    let mut all: Vec<IpAddr> =
        first.into_iter().flat_map(|address| [Some(address), others.next()]).flatten().collect();
    all.extend(others);
    all.into_iter().take(ADDRESSES_MAX)
}

/// Resolves a host to addresses.
pub(super) async fn resolve_host<S: AsRef<str>>(
    gate: &HttpGate,
    timeouts: &ExchangeTimeouts,
    host: &Host<S>,
) -> Result<Vec<IpAddr>, Error> {
    let name = match host {
        Host::Ipv4(ip) => return Ok(vec![IpAddr::V4(*ip)]),
        Host::Ipv6(ip) => return Ok(vec![IpAddr::V6(*ip)]),
        Host::Domain(name) => name.as_ref(),
    };
    match timeouts.wait_for_step(ExchangeStep::Resolve, gate.resolver.resolve_host(name)).await? {
        Ok(addresses) if !addresses.is_empty() => Ok(addresses),
        Ok(_) | Err(_) => {
            Err(Error::DnsError { rcode: Some("no such name".into()), info_code: None })
        }
    }
}

fn convert_connect_error(error: &io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => Error::ConnectionRefused,
        io::ErrorKind::TimedOut => Error::ConnectionTimeout,
        _ => Error::DestinationUnavailable,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(addresses: &[&str], want: &[&str]) {
        let parse = |list: &[&str]| list.iter().map(|ip| ip.parse().unwrap()).collect::<Vec<_>>();
        assert_eq!(
            interleave_families(parse(addresses)).collect::<Vec<_>>(),
            parse(want),
            "{addresses:?}"
        );
    }

    #[test]
    fn both_families_get_their_turn_and_few_addresses_at_all() {
        check(&[], &[]);
        check(&["::1", "::2", "1.1.1.1"], &["::1", "1.1.1.1", "::2"]);
        check(&["1.1.1.1", "::1", "::2", "::3"], &["1.1.1.1", "::1", "::2", "::3"]);
        let many: Vec<String> = (1..100).map(|n| format!("1.1.1.{n}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        check(&many, &many[..ADDRESSES_MAX]);
    }

    #[tokio::test]
    async fn an_address_that_refuses_is_followed_by_the_next() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let open = listener.local_addr().unwrap();
        let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let reached = |stream: TcpStream| stream.peer_addr().unwrap();
        let answer = connect_to_first(&[closed, closed, open]).await.map(reached);
        assert_eq!(answer.ok(), Some(open));
        let answer = connect_to_first(&[closed, closed]).await.map(reached);
        assert!(matches!(answer, Err(Error::ConnectionRefused)), "{answer:?}");
        let answer = connect_to_first(&[]).await.map(reached);
        assert!(matches!(answer, Err(Error::DestinationUnavailable)), "{answer:?}");
    }
}
