//! A server of the loopback that answers every request as a function of the test says, and
//! remembers what it was asked.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{Shutdown, TcpListener, TcpStream},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

/// Longest time that a connection of a test is waited for.
const PATIENCE: Duration = Duration::from_secs(30);

/// How often a server that pauses looks whether it may go on.
const PAUSE: Duration = Duration::from_millis(5);

/// A request, as far as the tests look at it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Request {
    pub(crate) method: String,
    /// Path and query.
    pub(crate) target: String,
    /// The lines of the head behind the first.
    pub(crate) headers: Vec<(String, String)>,
    /// As much of it as came.
    pub(crate) body: String,
    /// The same, if it is not text.
    pub(crate) bytes: Vec<u8>,
    /// What came after the body; `None` when it broke off.
    pub(crate) trailers: Option<Vec<String>>,
}

/// What a server does with a request.
#[derive(Debug, Clone)]
pub(crate) enum Response {
    /// Sends these bytes and closes.
    Bytes(Vec<u8>),
    /// Sends these bytes again and again, until nobody reads.
    Flood(Vec<u8>),
    /// Says nothing and keeps the connection open.
    Silence,
    /// Sends these bytes, then nothing more, and keeps the connection open.
    Stall(Vec<u8>),
    /// Sends these bytes, and the rest when the test lets it go on.
    Pause(Vec<u8>, Arc<AtomicBool>, Vec<u8>),
}

type Script = dyn Fn(&Request) -> Response + Send + Sync;

/// A server; it ends with the process.
#[derive(Clone)]
pub(crate) struct Server {
    pub(crate) port: u16,
    seen: Arc<Mutex<Vec<Request>>>,
}

impl Server {
    /// Starts a server.
    pub(crate) fn start(script: impl Fn(&Request) -> Response + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let book = Arc::clone(&seen);
        let script: Arc<Script> = Arc::new(script);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (script, book) = (Arc::clone(&script), Arc::clone(&book));
                // A client that goes away ends its own connection only.
                thread::spawn(move || serve(stream, &*script, &book));
            }
        });
        Self { port, seen }
    }

    /// Starts a server that has one answer for everything.
    pub(crate) fn saying(body: &str) -> Self {
        let answer = Response::ok(body);
        Self::start(move |_| answer.clone())
    }

    /// Host and port.
    pub(crate) fn authority(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// The address without a path.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.authority())
    }

    /// What it was asked so far.
    pub(crate) fn seen(&self) -> Vec<Request> {
        self.seen.lock().unwrap().clone()
    }
}

fn serve(stream: TcpStream, script: &Script, book: &Mutex<Vec<Request>>) -> Option<()> {
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    let mut reader = BufReader::new(stream);
    let request = read(&mut reader)?;
    book.lock().unwrap().push(request.clone());
    request.trailers.as_ref()?;
    let mut stream = reader.into_inner();
    match script(&request) {
        Response::Bytes(bytes) => stream.write_all(&bytes).ok()?,
        Response::Flood(bytes) => while stream.write_all(&bytes).is_ok() {},
        Response::Silence => drop(stream.read(&mut [0])),
        Response::Stall(bytes) => {
            stream.write_all(&bytes).ok()?;
            let _ = stream.read(&mut [0]);
        }
        Response::Pause(bytes, goes_on, rest) => {
            stream.write_all(&bytes).ok()?;
            while !goes_on.load(Ordering::SeqCst) {
                thread::sleep(PAUSE);
            }
            stream.write_all(&rest).ok()?;
        }
    }
    stream.shutdown(Shutdown::Write).ok()?;
    // Read to the end, so that closing does not reset what is still on its way.
    stream.read_to_end(&mut Vec::new()).ok()?;
    Some(())
}

/// Reads a request, as far as it comes: a client may break off in the middle of its body.
fn read(reader: &mut impl BufRead) -> Option<Request> {
    let lines = lines(reader)?;
    let mut first = lines.first()?.split(' ');
    let (method, target) = (first.next()?.to_owned(), first.next()?.to_owned());
    let headers = lines[1..].iter().filter_map(|line| line.split_once(": "));
    let headers = headers.map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()));
    let mut request = Request { method, target, headers: headers.collect(), ..Request::default() };
    let mut body = Vec::new();
    let length = request.header("content-length").and_then(|length| length.parse().ok());
    request.trailers = match length {
        _ if request.header("transfer-encoding") == Some("chunked") => chunks(reader, &mut body),
        Some(length) => {
            let read = reader.take(length).read_to_end(&mut body).ok();
            read.filter(|bytes| *bytes as u64 == length).map(|_| Vec::new())
        }
        None => Some(Vec::new()),
    };
    request.body = String::from_utf8_lossy(&body).into_owned();
    request.bytes = body;
    Some(request)
}

/// The lines up to an empty one.
fn lines(reader: &mut impl BufRead) -> Option<Vec<String>> {
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|bytes| *bytes > 0)?;
        match line.trim_end() {
            "" => return Some(lines),
            text => lines.push(text.to_owned()),
        }
    }
}

/// Reads a body in chunks and returns its trailers, if it has an end.
fn chunks(reader: &mut impl BufRead, body: &mut Vec<u8>) -> Option<Vec<String>> {
    loop {
        let mut size = String::new();
        reader.read_line(&mut size).ok()?;
        let size = u64::from_str_radix(size.trim_end(), 16).ok()?;
        if size == 0 {
            return lines(reader);
        }
        let read = reader.take(size).read_to_end(body).ok()?;
        reader.read_line(&mut String::new()).ok().filter(|_| read as u64 == size)?;
    }
}

impl Request {
    /// The value of a header.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }
}

impl Response {
    /// Status 200 with a JSON body.
    pub(crate) fn ok(body: &str) -> Self {
        Self::with(200, &[("content-type", "application/json")], body)
    }

    /// Any status, any headers, a body with its length.
    pub(crate) fn with(status: u16, headers: &[(&str, &str)], body: &str) -> Self {
        let mut head = format!("HTTP/1.1 {status} Said\r\nconnection: close\r\n");
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        Self::Bytes(format!("{head}content-length: {}\r\n\r\n{body}", body.len()).into_bytes())
    }

    /// Any headers, a body in chunks, and trailers.
    pub(crate) fn chunked(
        headers: &[(&str, &str)],
        pieces: &[&[u8]],
        trailers: &[(&str, &str)],
    ) -> Self {
        let lines = |pairs: &[(&str, &str)]| {
            pairs.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect::<String>()
        };
        let head = "HTTP/1.1 200 Said\r\nconnection: close\r\ntransfer-encoding: chunked\r\n";
        let mut all = format!("{head}{}\r\n", lines(headers)).into_bytes();
        for piece in pieces {
            all.extend(format!("{:x}\r\n", piece.len()).into_bytes());
            all.extend(*piece);
            all.extend(b"\r\n");
        }
        all.extend(format!("0\r\n{}\r\n", lines(trailers)).into_bytes());
        Self::Bytes(all)
    }

    /// Status 200 with any headers and any bytes.
    pub(crate) fn bytes(headers: &[(&str, &str)], body: &[u8]) -> Self {
        let Self::Bytes(mut all) = Self::with(200, headers, "") else { unreachable!() };
        let head = String::from_utf8(all).unwrap();
        all = head.replace("content-length: 0", &format!("content-length: {}", body.len())).into();
        all.extend(body);
        Self::Bytes(all)
    }
}
