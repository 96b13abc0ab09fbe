//! One exchange, replayed by a server on the loopback interface.

use std::time::Duration;

use sallyport_contract::Secret;
use sallyport_model::{
    ChatMessage, ModelEndpoint, ModelError, ModelReply, ModelRequest, ReplyDelta, connect_model,
};
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
};

use crate::{cassettes::Exchange, wires};

/// A timeout far above what any exchange needs, so that a hanging test still ends.
const PATIENCE: Duration = Duration::from_secs(60);

/// The key in these tests.
pub(crate) const KEY: &str = "sk-test-0123456789";

/// The size of small pieces, in bytes: most events are split, some twice.
const PIECE_BYTES: usize = 61;

/// The result of a request.
pub(crate) type Outcome = Result<(ModelReply, Vec<ReplyDelta>), ModelError>;

/// A server for one request.
pub(crate) struct Post {
    pub(crate) base_url: String,
    listener: TcpListener,
}

/// How an answer is sent. Either way, the end of the connection ends it.
#[derive(Clone, Copy)]
pub(crate) enum Delivery<'a> {
    /// In one piece.
    Whole(&'a [u8]),
    /// In small pieces.
    Pieces(&'a [u8]),
}

/// A request as it arrived.
pub(crate) struct Seen {
    pub(crate) path: String,
    pub(crate) body: Value,
}

/// Sends the recorded request, and answers with `body`.
pub(crate) async fn play(
    exchange: &Exchange,
    messages: &[ChatMessage],
    body: &[u8],
) -> (Seen, Outcome) {
    deliver(exchange, messages, Delivery::Whole(body)).await
}

/// Sends the recorded request, and answers in the given way.
pub(crate) async fn deliver(
    exchange: &Exchange,
    messages: &[ChatMessage],
    body: Delivery<'_>,
) -> (Seen, Outcome) {
    let post = Post::open().await;
    let base_url = format!("{}{}", post.base_url, base(exchange));
    tokio::join!(post.serve(exchange, body), ask(exchange, base_url, messages))
}

/// The part of the recorded path before the method.
fn base(exchange: &Exchange) -> &str {
    let at = exchange.path.find(exchange.wire.method()).unwrap_or(exchange.path.len());
    exchange.path[..at].trim_end_matches('/')
}

async fn ask(exchange: &Exchange, base_url: String, messages: &[ChatMessage]) -> Outcome {
    let (wire, request) = (exchange.wire, &exchange.request);
    let model = wires::model(&exchange.path, request).unwrap_or_default();
    let endpoint = ModelEndpoint {
        key: Some(Secret::new(KEY)),
        stream: wires::is_streamed(&exchange.path, request),
        time_max: PATIENCE,
        ..ModelEndpoint::new(wire.protocol(), base_url, model)
    };
    let tools = wire.tools(request);
    let mut deltas = Vec::new();
    let mut on_delta = |delta| deltas.push(delta);
    let request = ModelRequest { messages, tools: &tools, ..ModelRequest::default() };
    let reply = connect_model(endpoint).unwrap().generate(request, &mut on_delta).await?;
    Ok((reply, deltas))
}

impl Post {
    pub(crate) async fn open() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base_url = format!("http://{}", listener.local_addr().unwrap());
        Self { base_url, listener }
    }

    /// Accepts one request and answers it with the recorded head and the given body.
    pub(crate) async fn serve(&self, exchange: &Exchange, body: Delivery<'_>) -> Seen {
        let (stream, _) = self.listener.accept().await.unwrap();
        stream.set_nodelay(true).unwrap();
        let mut stream = BufReader::new(stream);
        let seen = read(&mut stream).await;
        let Exchange { status, content_type, .. } = exchange;
        let head = format!(
            "HTTP/1.1 {status} X\r\ncontent-type: {content_type}\r\nconnection: close\r\n\r\n"
        );
        let pieces = match body {
            Delivery::Whole(body) => vec![body],
            Delivery::Pieces(body) => body.chunks(PIECE_BYTES).collect(),
        };
        for piece in [head.as_bytes()].into_iter().chain(pieces) {
            // A client that has read the end of the answer may leave before the last byte.
            if stream.write_all(piece).await.is_err() {
                break;
            }
        }
        let _ = stream.shutdown().await;
        let _ = stream.read_to_end(&mut Vec::new()).await;
        seen
    }
}

async fn read(stream: &mut BufReader<TcpStream>) -> Seen {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    let head = String::from_utf8(head).unwrap();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
    stream.read_exact(&mut body).await.unwrap();
    let path = head.split(' ').nth(1).unwrap().to_owned();
    Seen { path, body: serde_json::from_slice(&body).unwrap_or_default() }
}
