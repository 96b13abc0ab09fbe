//! A loopback server with configured responses for each path.

use std::{
    io::{BufRead, BufReader, Write},
    net::{TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

/// A response.
#[derive(Clone)]
pub(super) struct Answer {
    status: u16,
    media_type: String,
    body: Vec<u8>,
}

impl Answer {
    pub(super) fn ok(media_type: &str, body: impl Into<Vec<u8>>) -> Self {
        Self { status: 200, media_type: media_type.to_owned(), body: body.into() }
    }

    pub(super) fn status(status: u16) -> Self {
        Self { status, ..Self::ok("", "") }
    }

    /// The server closes the connection without a response.
    pub(super) fn hangs_up() -> Self {
        Self::status(0)
    }

    fn send(&self, mut stream: TcpStream) -> std::io::Result<()> {
        if self.status == 0 {
            return Ok(());
        }
        let (status, length) = (self.status, self.body.len());
        write!(stream, "HTTP/1.1 {status} X\r\ncontent-length: {length}\r\n")?;
        write!(stream, "content-type: {}\r\nconnection: close\r\n\r\n", self.media_type)?;
        stream.write_all(&self.body)
    }
}

pub(super) struct Server {
    port: u16,
    asked: Arc<AtomicUsize>,
}

impl Server {
    pub(super) fn start(answer: impl Fn(&str) -> Answer + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let asked = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&asked);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                count.fetch_add(1, Ordering::SeqCst);
                let path = path(&stream);
                // An error means that the client has gone.
                let _ = answer(&path).send(stream);
            }
        });
        Self { port, asked }
    }

    pub(super) fn address(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    pub(super) fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

fn path(stream: &TcpStream) -> String {
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
    let first = lines.next().unwrap_or_default();
    let _ = lines.take_while(|line| !line.is_empty()).count();
    first.split(' ').nth(1).unwrap_or_default().to_owned()
}
