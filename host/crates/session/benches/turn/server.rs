//! A loopback server with canned responses. Its threads are not measured.

use std::{
    io::{BufRead, BufReader, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::mpsc::{self, Receiver, Sender},
    thread,
};

use super::script::Script;

/// Answers alternately with a call and with text, on every connection.
pub(crate) struct Server {
    address: SocketAddr,
    bodies: Receiver<Vec<u8>>,
}

impl Server {
    /// Listens until the program ends.
    pub(crate) fn start(script: Script) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let (came, bodies) = mpsc::channel();
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let came = came.clone();
                thread::spawn(move || serve(stream, script, &came));
            }
        });
        Self { address, bodies }
    }

    pub(crate) fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// Returns the bodies of the requests since the last call.
    pub(crate) fn take_bodies(&self) -> Vec<Vec<u8>> {
        self.bodies.try_iter().collect()
    }
}

/// Answers until the client disconnects.
fn serve(stream: TcpStream, script: Script, came: &Sender<Vec<u8>>) {
    stream.set_nodelay(true).expect("a socket");
    let mut answer = stream.try_clone().expect("a socket");
    let mut requests = BufReader::new(stream);
    for index in 0.. {
        let Some(body) = read(&mut requests) else { return };
        // Sent before the answer, so a client that has the answer finds the body.
        if came.send(body).is_err() || answer.write_all(&written(script, index)).is_err() {
            return;
        }
    }
}

/// Reads a request; `None` at the end of the connection.
fn read(requests: &mut impl BufRead) -> Option<Vec<u8>> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        if requests.read_line(&mut line).ok()? == 0 {
            return None;
        }
        let line = line.trim_end().to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().expect("a length");
        }
    }
    let mut body = vec![0; length];
    requests.read_exact(&mut body).ok()?;
    Some(body)
}

/// Returns an answer in wire format.
fn written(script: Script, index: usize) -> Vec<u8> {
    let mut events: String =
        script.answer(index).iter().map(|event| format!("data: {event}\n\n")).collect();
    events.push_str("data: [DONE]\n\n");
    let length = events.len();
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length:";
    format!("{head} {length}\r\n\r\n{events}").into_bytes()
}
