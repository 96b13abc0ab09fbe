//! A client that sends one request and reads the whole answer.

use std::{
    io::{Read, Write},
    net::TcpStream,
    time::Duration,
};

/// Longest wait for an answer.
const PATIENCE: Duration = Duration::from_secs(60);

/// What stands between a head and its body.
const END: &str = "\r\n\r\n";

/// What came back.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: String,
}

/// Sends a request to a host and port.
#[track_caller]
pub(crate) fn ask(
    authority: &str,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> Answer {
    let mut text =
        format!("{method} {path} HTTP/1.1\r\nHost: {authority}\r\nConnection: close\r\n");
    for (name, value) in headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    text.push_str(&format!("Content-Length: {}\r\n\r\n{body}", body.len()));
    let mut stream = TcpStream::connect(authority).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(text.as_bytes()).unwrap();
    let text = read(stream);
    let (head, body) = text.split_once(END).unwrap_or((&text, ""));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
    let is_chunked = head.to_ascii_lowercase().contains("transfer-encoding: chunked");
    let body = if is_chunked { whole(body) } else { body.to_owned() };
    Answer { status: status.unwrap_or_default(), body }
}

/// Sends a request without a body, and returns the whole answer with its head.
#[track_caller]
pub(crate) fn ask_whole(authority: &str, method: &str, path: &str) -> String {
    let text =
        format!("{method} {path} HTTP/1.1\r\nHost: {authority}\r\nConnection: close\r\n\r\n");
    let mut stream = TcpStream::connect(authority).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(text.as_bytes()).unwrap();
    read(stream)
}

/// Reads up to the end of the answer: not every server closes the connection.
fn read(mut stream: TcpStream) -> String {
    let (mut bytes, mut buffer) = (Vec::new(), [0; 8192]);
    while !is_whole(&bytes) {
        // Whoever refuses early may not read to the end.
        let Ok(count @ 1..) = stream.read(&mut buffer) else { break };
        bytes.extend_from_slice(&buffer[..count]);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Whether as much of a body is there as its head says.
fn is_whole(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    let Some((head, _)) = text.split_once(END) else { return false };
    let lines = head.lines().filter_map(|line| line.split_once(':'));
    let length = lines.filter(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    let length = length.filter_map(|(_, value)| value.trim().parse::<usize>().ok()).next();
    length.is_some_and(|length| bytes.len() >= head.len() + END.len() + length)
}

/// Puts the chunks of a body together. They are of whole characters in the tests.
fn whole(mut chunks: &str) -> String {
    let mut body = String::new();
    while let Some((size, rest)) = chunks.split_once("\r\n") {
        let size = usize::from_str_radix(size.trim(), 16).unwrap_or(0);
        if size == 0 || rest.len() < size {
            break;
        }
        body.push_str(&rest[..size]);
        chunks = rest[size..].trim_start_matches("\r\n");
    }
    body
}
