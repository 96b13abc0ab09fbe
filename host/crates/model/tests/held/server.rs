//! A server on the loopback interface that acts only on demand.

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
    time::timeout,
};

use crate::PATIENCE;

pub(crate) struct Server {
    pub(crate) base_url: String,
    listener: TcpListener,
}

/// A client that has sent a request and waits.
pub(crate) struct Caller {
    stream: BufReader<TcpStream>,
    /// The body of the request.
    pub(crate) body: Vec<u8>,
}

impl Server {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base_url = format!("http://{}", listener.local_addr().unwrap());
        Self { base_url, listener }
    }

    /// Waits for the next request and reads it.
    pub(crate) async fn accept(&self) -> Caller {
        let (stream, _) = self.listener.accept().await.unwrap();
        stream.set_nodelay(true).unwrap();
        let mut caller = Caller { stream: BufReader::new(stream), body: Vec::new() };
        caller.read_request().await;
        caller
    }
}

impl Caller {
    /// Sends a piece; a closed connection is ignored.
    pub(crate) async fn send(&mut self, bytes: &[u8]) {
        if self.stream.write_all(bytes).await.is_ok() {
            let _ = self.stream.flush().await;
        }
    }

    /// Closes the connection on this side and waits for the other side.
    pub(crate) async fn hang_up(mut self) {
        let _ = self.stream.shutdown().await;
        self.has_left().await;
    }

    /// Waits until the other side has closed the connection.
    pub(crate) async fn has_left(&mut self) {
        let end = timeout(PATIENCE, self.stream.read_to_end(&mut Vec::new())).await;
        assert!(end.is_ok(), "the connection stays open");
    }

    async fn read_request(&mut self) {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(self.stream.read_u8().await.unwrap());
        }
        let head = String::from_utf8(head).unwrap();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
        self.body = vec![0; length.parse().unwrap()];
        self.stream.read_exact(&mut self.body).await.unwrap();
    }
}

/// The head of an answer that ends with the connection.
pub(crate) fn until_close(content_type: &str) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\ncontent-type: {content_type}\r\nconnection: close\r\n\r\n").into()
}

/// The head of an answer in chunks.
pub(crate) fn in_chunks(content_type: &str) -> Vec<u8> {
    let chunked = "transfer-encoding: chunked";
    format!("HTTP/1.1 200 OK\r\ncontent-type: {content_type}\r\n{chunked}\r\n\r\n").into()
}

/// One chunk. The empty one is the last.
pub(crate) fn chunk(bytes: &[u8]) -> Vec<u8> {
    [format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat()
}

/// A whole answer with the given status.
pub(crate) fn refusal(status: u16, headers: &str) -> Vec<u8> {
    let body = r#"{"error":{"message":"not now"}}"#;
    let length = body.len();
    format!("HTTP/1.1 {status} X\r\n{headers}connection: close\r\ncontent-length: {length}\r\n\r\n{body}")
        .into()
}
