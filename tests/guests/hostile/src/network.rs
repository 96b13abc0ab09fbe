//! Ways out: sockets, names, and HTTP without the manners of the SDK.

use std::time::{Duration, Instant};

use sallyport_sdk::{http, prelude::*};
use wasip2::{
    http::{
        outgoing_handler::handle,
        types::{
            ErrorCode, Fields, IncomingBody, IncomingResponse, Method, OutgoingBody,
            OutgoingRequest, RequestOptions, Scheme,
        },
    },
    io::streams::StreamError,
    sockets::{
        instance_network::instance_network,
        ip_name_lookup::resolve_addresses,
        network::{ErrorCode as SocketError, IpAddressFamily, IpSocketAddress, Ipv4SocketAddress},
        tcp::TcpSocket,
        tcp_create_socket::create_tcp_socket,
        udp_create_socket::create_udp_socket,
    },
};

/// Bytes that are taken from a body at a time.
const CHUNK_BYTES: u64 = 64 * 1024;

/// Bytes that one write may have, by WASI's word.
const WRITE_BYTES: usize = 4096;

/// A place to connect to.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Port {
    /// A port of the loopback.
    port: u16,
}

/// A host name.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Name {
    /// The name.
    name: String,
}

/// A request, part by part, so that odd parts can be tried.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Fetch {
    /// Such as GET.
    method: Option<String>,
    /// Such as https.
    scheme: Option<String>,
    /// Host and port.
    authority: String,
    /// Path and query.
    path: Option<String>,
    /// Names and values.
    headers: Option<Vec<(String, String)>>,
    /// Trailers: names and values.
    trailers: Option<Vec<(String, String)>>,
    /// What to send.
    body: Option<String>,
    /// What to send after it, each in a write of its own.
    pieces: Option<Vec<String>>,
    /// Nanoseconds for each of the three time-outs.
    timeout: Option<u64>,
}

/// Requests, one after another.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Fetches {
    /// The requests.
    requests: Vec<Fetch>,
}

/// A request that has a time-out of its own.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PatientFetch {
    /// Where it goes.
    url: String,
    /// Milliseconds that the guest itself waits.
    wait_ms: u64,
}

/// Many requests.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct FetchMany {
    /// Host and port.
    authority: String,
    /// How many.
    n: u64,
}

type Attempt<T> = Result<T, ToolError>;

fn failed(what: &str, error: impl std::fmt::Debug) -> ToolError {
    ToolError::Failed(format!("{what}: {error:?}"))
}

fn tcp() -> Attempt<TcpSocket> {
    create_tcp_socket(IpAddressFamily::Ipv4).map_err(|e| failed("create", e))
}

fn loopback(port: u16) -> IpSocketAddress {
    IpSocketAddress::Ipv4(Ipv4SocketAddress { port, address: (127, 0, 0, 1) })
}

/// Opens a TCP connection to the loopback.
#[tool]
pub(crate) fn opens_socket(args: Port) -> Attempt<bool> {
    let socket = tcp()?;
    socket
        .start_connect(&instance_network(), loopback(args.port))
        .map_err(|e| failed("start", e))?;
    loop {
        match socket.finish_connect() {
            Err(SocketError::WouldBlock) => socket.subscribe().block(),
            other => return other.map(|_| true).map_err(|e| failed("finish", e)),
        }
    }
}

/// Listens on a port of the loopback.
#[tool]
pub(crate) fn listens(args: Port) -> Attempt<bool> {
    let socket = tcp()?;
    socket.start_bind(&instance_network(), loopback(args.port)).map_err(|e| failed("start", e))?;
    socket.finish_bind().map(|()| true).map_err(|e| failed("finish", e))
}

/// Binds a UDP socket.
#[tool]
pub(crate) fn sends_datagram(args: Port) -> Attempt<bool> {
    let socket = create_udp_socket(IpAddressFamily::Ipv4).map_err(|e| failed("create", e))?;
    socket.start_bind(&instance_network(), loopback(args.port)).map_err(|e| failed("start", e))?;
    socket.finish_bind().map(|()| true).map_err(|e| failed("finish", e))
}

/// Looks up a host name.
#[tool]
pub(crate) fn resolves_name(args: Name) -> Attempt<bool> {
    let stream =
        resolve_addresses(&instance_network(), &args.name).map_err(|e| failed("start", e))?;
    loop {
        match stream.resolve_next_address() {
            Err(SocketError::WouldBlock) => stream.subscribe().block(),
            other => return other.map(|_| true).map_err(|e| failed("next", e)),
        }
    }
}

/// Sends one request and tells status, headers and body.
#[tool]
pub(crate) fn fetches(args: Fetch) -> Attempt<Value> {
    fetch(&args)
}

/// Sends requests one after another and tells what came of each.
#[tool]
pub(crate) fn fetches_in_turn(args: Fetches) -> Vec<Value> {
    let told = |request: &Fetch| match fetch(request) {
        Ok(answer) => answer,
        Err(error) => json!({ "error": error.to_string() }),
    };
    args.requests.iter().map(told).collect()
}

/// Sends all requests at once, then tells what came of each.
#[tool]
pub(crate) fn fetches_at_once(args: Fetches) -> Attempt<Vec<String>> {
    let begin = |args: &Fetch| handle(request(args)?, None).map_err(|e| failed("handle", e));
    let answers: Vec<_> = args.requests.iter().map(begin).collect::<Attempt<_>>()?;
    let told = answers.iter().map(|answer| {
        answer.subscribe().block();
        match answer.get() {
            Some(Ok(Ok(response))) => response.status().to_string(),
            other => format!("{other:?}"),
        }
    });
    Ok(told.collect())
}

/// Sends a request as a plugin does that gives up after a while.
#[tool]
pub(crate) fn fetches_with_patience(args: PatientFetch) -> Attempt<u16> {
    let request = http::get(args.url).timeout(Duration::from_millis(args.wait_ms));
    Ok(request.send()?.status)
}

/// Sends a request, and others that nobody granted for as long as the answer is not there. Tells
/// the status, and how many milliseconds went by on the guest's own clock.
#[tool]
pub(crate) fn works_while_it_waits(args: Fetch) -> Attempt<(u16, u128)> {
    let begun = Instant::now();
    let answer = handle(request(&args)?, None).map_err(|e| failed("handle", e))?;
    let ready = answer.subscribe();
    while !ready.ready() {
        let _ = get("elsewhere.example", "/".to_owned());
    }
    let response = answer.get().and_then(Result::ok).ok_or_else(|| failed("answer", "none"))?;
    let status = response.map_err(|e| failed("response", e))?.status();
    Ok((status, begun.elapsed().as_millis()))
}

fn fetch(args: &Fetch) -> Attempt<Value> {
    let request = request(args)?;
    let body = request.body().map_err(|()| failed("body", ()))?;
    let trailers = args.trailers.as_deref().map(|pairs| fields(Some(pairs))).transpose()?;
    let answer = handle(request, options(args.timeout)).map_err(|e| failed("handle", e))?;
    // A host that does not want the body says why in its answer.
    let sent = send_body(body, args, trailers);
    answer.subscribe().block();
    let response = answer.get().and_then(Result::ok).ok_or_else(|| failed("answer", "none"))?;
    let response = response.map_err(|e| failed("response", e))?;
    sent?;
    read(&response)
}

fn request(args: &Fetch) -> Attempt<OutgoingRequest> {
    let request = OutgoingRequest::new(fields(args.headers.as_deref())?);
    let method = match args.method.as_deref() {
        None | Some("GET") => Method::Get,
        Some("POST") => Method::Post,
        Some("CONNECT") => Method::Connect,
        Some(other) => Method::Other(other.to_owned()),
    };
    let scheme = match args.scheme.as_deref() {
        None | Some("http") => Scheme::Http,
        Some("https") => Scheme::Https,
        Some(other) => Scheme::Other(other.to_owned()),
    };
    request.set_method(&method).map_err(|()| failed("method", ()))?;
    request.set_scheme(Some(&scheme)).map_err(|()| failed("scheme", ()))?;
    request.set_authority(Some(&args.authority)).map_err(|()| failed("authority", ()))?;
    let path = args.path.as_deref().unwrap_or("/");
    request.set_path_with_query(Some(path)).map_err(|()| failed("path", ()))?;
    Ok(request)
}

fn fields(pairs: Option<&[(String, String)]>) -> Attempt<Fields> {
    let fields = Fields::new();
    for (name, value) in pairs.unwrap_or_default() {
        fields.append(name, value.as_bytes()).map_err(|e| failed(&format!("header {name}"), e))?;
    }
    Ok(fields)
}

fn options(timeout: Option<u64>) -> Option<RequestOptions> {
    let options = RequestOptions::new();
    let _ = options.set_connect_timeout(Some(timeout?));
    let _ = options.set_first_byte_timeout(timeout);
    let _ = options.set_between_bytes_timeout(timeout);
    Some(options)
}

fn send_body(body: OutgoingBody, args: &Fetch, trailers: Option<Fields>) -> Attempt<()> {
    if let Some(text) = &args.body {
        let stream = body.write().map_err(|()| failed("write", ()))?;
        for piece in std::iter::once(text).chain(args.pieces.iter().flatten()) {
            for chunk in piece.as_bytes().chunks(WRITE_BYTES) {
                stream.blocking_write_and_flush(chunk).map_err(|e| failed("write", e))?;
            }
        }
    }
    OutgoingBody::finish(body, trailers).map_err(|e| failed("finish", e))
}

fn read(response: &IncomingResponse) -> Attempt<Value> {
    let headers = pairs(&response.headers());
    let body = response.consume().map_err(|()| failed("consume", ()))?;
    let stream = body.stream().map_err(|()| failed("stream", ()))?;
    let (mut bytes, mut text) = (0_u64, Vec::new());
    loop {
        match stream.blocking_read(CHUNK_BYTES) {
            Ok(chunk) => {
                bytes += chunk.len() as u64;
                text.extend(chunk.into_iter().take(1000_usize.saturating_sub(text.len())));
            }
            Err(StreamError::Closed) => break,
            Err(StreamError::LastOperationFailed(error)) => {
                let code = wasip2::http::types::http_error_code(&error);
                return Err(failed(&format!("after {bytes} bytes"), code));
            }
        }
    }
    drop(stream);
    let text = String::from_utf8_lossy(&text).into_owned();
    let trailers = trailers(body)?;
    Ok(json!({
        "status": response.status(), "headers": headers, "bytes": bytes, "body": text,
        "trailers": trailers,
    }))
}

fn trailers(body: IncomingBody) -> Attempt<Vec<(String, String)>> {
    let trailers = IncomingBody::finish(body);
    trailers.subscribe().block();
    let trailers = trailers.get().and_then(Result::ok).ok_or_else(|| failed("trailers", "none"))?;
    let fields = trailers.map_err(|e| failed("trailers", e))?;
    Ok(fields.map(|fields| pairs(&fields)).unwrap_or_default())
}

fn pairs(fields: &Fields) -> Vec<(String, String)> {
    let entries = fields.entries().into_iter();
    entries.map(|(name, value)| (name, String::from_utf8_lossy(&value).into_owned())).collect()
}

fn get(authority: &str, path: String) -> Result<u16, ErrorCode> {
    let request = OutgoingRequest::new(Fields::new());
    let set = request.set_authority(Some(authority)).and(request.set_path_with_query(Some(&path)));
    if set.and(request.set_scheme(Some(&Scheme::Http))).is_err() {
        return Err(ErrorCode::HttpRequestUriInvalid);
    }
    let answer = handle(request, None)?;
    answer.subscribe().block();
    let response = answer.get().and_then(Result::ok).ok_or(ErrorCode::ConnectionTerminated)??;
    Ok(response.status())
}

/// Sends n requests, one after another, and tells how many were answered before the first error.
#[tool]
pub(crate) fn fetches_many(args: FetchMany) -> Attempt<u64> {
    for done in 0..args.n {
        get(&args.authority, format!("/{done}"))
            .map_err(|e| failed(&format!("{done} were answered"), e))?;
    }
    Ok(args.n)
}

/// Tries n requests to places that nobody granted, then one that may be granted.
#[tool]
pub(crate) fn floods_then_fetches(args: FetchMany) -> Attempt<u16> {
    for i in 0..args.n {
        let _ = get("elsewhere.example", format!("/{i}"));
    }
    get(&args.authority, "/last".to_owned()).map_err(|e| failed("the last one", e))
}
