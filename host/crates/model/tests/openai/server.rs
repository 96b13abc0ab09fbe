//! A server on the loopback interface that answers each request with a script.

use std::sync::{Arc, Mutex};

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// One action of the server on a connection.
#[derive(Clone)]
pub(crate) enum Step {
    /// Sends bytes unchanged.
    Send(Vec<u8>),
    /// Sends the bytes repeatedly until the client leaves.
    Flood(Vec<u8>),
    /// Keeps the connection open without sending.
    Hang,
}

/// A request that arrived.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) head: String,
    pub(crate) body: Value,
}

/// Chooses the script that answers a request.
type Director = Arc<dyn Fn(&Seen) -> Vec<Step> + Send + Sync>;

pub(crate) struct Server {
    pub(crate) base_url: String,
    seen: Arc<Mutex<Vec<Seen>>>,
    task: JoinHandle<()>,
}

impl Server {
    /// Answers every request with the same script.
    pub(crate) async fn start(script: Vec<Step>) -> Self {
        Self::directed(move |_| script.clone()).await
    }

    /// Answers each request with a script chosen for it.
    pub(crate) async fn directed(
        director: impl Fn(&Seen) -> Vec<Step> + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base_url = format!("http://{}/v1", listener.local_addr().unwrap());
        let seen = Arc::new(Mutex::new(Vec::new()));
        let task = tokio::spawn(accept(listener, Arc::new(director), Arc::clone(&seen)));
        Self { base_url, seen, task }
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn accept(listener: TcpListener, director: Director, seen: Arc<Mutex<Vec<Seen>>>) {
    while let Ok((stream, _)) = listener.accept().await {
        tokio::spawn(answer(stream, Arc::clone(&director), Arc::clone(&seen)));
    }
}

async fn answer(stream: TcpStream, director: Director, seen: Arc<Mutex<Vec<Seen>>>) {
    let mut stream = BufReader::new(stream);
    let Some(request) = read(&mut stream).await else { return };
    let script = director(&request);
    seen.lock().unwrap().push(request);
    for step in script {
        if play(step, &mut stream).await.is_err() {
            return;
        }
    }
    // Reads to the end, so that closing does not reset data in transit.
    let _ = stream.shutdown().await;
    let _ = stream.read_to_end(&mut Vec::new()).await;
}

async fn play(step: Step, stream: &mut BufReader<TcpStream>) -> std::io::Result<()> {
    match step {
        Step::Send(bytes) => stream.write_all(&bytes).await?,
        Step::Flood(bytes) => loop {
            stream.write_all(&bytes).await?;
        },
        Step::Hang => std::future::pending().await,
    }
    stream.flush().await
}

async fn read(stream: &mut BufReader<TcpStream>) -> Option<Seen> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    let head = String::from_utf8(head).unwrap();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
    stream.read_exact(&mut body).await.ok()?;
    let body = if body.is_empty() { Value::Null } else { serde_json::from_slice(&body).unwrap() };
    Some(Seen { head, body })
}

/// A whole answer with a length.
pub(crate) fn plain(status: u16, headers: &str, body: &str) -> Vec<Step> {
    let length = body.len();
    let head = format!("HTTP/1.1 {status} X\r\n{headers}content-length: {length}\r\n\r\n{body}");
    vec![Step::Send(head.into_bytes())]
}

/// The head of an answer that ends with the connection.
pub(crate) fn until_close(content_type: &str) -> Step {
    let head =
        format!("HTTP/1.1 200 OK\r\ncontent-type: {content_type}\r\nconnection: close\r\n\r\n");
    Step::Send(head.into_bytes())
}

/// The head of an answer in chunks, and one chunk for each piece. The caller adds the end.
pub(crate) fn chunked(content_type: &str, pieces: &[&[u8]]) -> Step {
    let mut bytes = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: {content_type}\r\ntransfer-encoding: chunked\r\n\r\n"
    )
    .into_bytes();
    for piece in pieces.iter().filter(|piece| !piece.is_empty()) {
        bytes.extend(format!("{:x}\r\n", piece.len()).bytes().chain(piece.iter().copied()));
        bytes.extend(b"\r\n");
    }
    Step::Send(bytes)
}

/// The end of an answer in chunks.
pub(crate) fn last_chunk() -> Step {
    Step::Send(b"0\r\n\r\n".to_vec())
}
