//! Server-sent events, a format in which many services stream an answer.

use std::collections::VecDeque;

use super::{HttpError, stream::Stream};

/// Longest single event, in bytes: more than services send, and small enough for memory.
pub const EVENT_BYTES_MAX: usize = 1024 * 1024;

/// A server-sent event.
///
/// ```
/// use sallyport_sdk::{http, testing};
///
/// testing::http(|_| Ok(http::Response::new(200, "event: ping\ndata: 1\n\n")));
/// let event = http::get("https://a.example/").open()?.events().next().unwrap()?;
/// assert_eq!((event.name.as_str(), event.data.as_str()), ("ping", "1"));
/// # Ok::<(), http::HttpError>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerEvent {
    /// The event's type; empty if the service does not set one.
    pub name: String,
    /// The event's data. Several `data` fields are joined with line feeds.
    pub data: String,
}

/// The events of a response, in order. An incomplete event at the end is dropped, as the format
/// requires.
#[derive(Debug)]
pub struct Events {
    /// `None` after the end, or after an error.
    stream: Option<Stream>,
    parser: Parser,
}

/// Parses pieces of a body into events.
#[derive(Debug, Default)]
struct Parser {
    line: Vec<u8>,
    /// The last byte was a carriage return, so a following line feed belongs to the same line end.
    after_return: bool,
    began: bool,
    name: String,
    data: Option<String>,
    ready: VecDeque<ServerEvent>,
}

impl Events {
    pub(crate) fn new(stream: Stream) -> Self {
        Self { stream: Some(stream), parser: Parser::default() }
    }

    fn advance(&mut self) -> Result<Option<ServerEvent>, HttpError> {
        while let Some(stream) = self.stream.as_mut().filter(|_| self.parser.ready.is_empty()) {
            match stream.piece()? {
                Some(piece) => self.parser.take(&piece)?,
                None => self.stream = None,
            }
        }
        Ok(self.parser.ready.pop_front())
    }
}

impl Iterator for Events {
    type Item = Result<ServerEvent, HttpError>;

    fn next(&mut self) -> Option<Self::Item> {
        let event = self.advance();
        if event.is_err() {
            self.stream = None;
        }
        event.transpose()
    }
}

impl Parser {
    fn take(&mut self, piece: &[u8]) -> Result<(), HttpError> {
        for &byte in piece {
            match byte {
                b'\n' if self.after_return => self.after_return = false,
                b'\n' | b'\r' => {
                    self.after_return = byte == b'\r';
                    self.end_line()?;
                }
                _ => {
                    self.after_return = false;
                    self.line.push(byte);
                }
            }
            self.check_length()?;
        }
        Ok(())
    }

    fn check_length(&self) -> Result<(), HttpError> {
        let held = self.line.len() + self.name.len() + self.data.as_ref().map_or(0, String::len);
        if held > EVENT_BYTES_MAX {
            let reason = format!("an event is longer than {EVENT_BYTES_MAX} bytes");
            return Err(HttpError::Body { reason });
        }
        Ok(())
    }

    fn end_line(&mut self) -> Result<(), HttpError> {
        let line = std::mem::take(&mut self.line);
        let line = String::from_utf8(line)
            .map_err(|_| HttpError::Body { reason: "an event is not text".to_owned() })?;
        let line = if self.began { &line } else { line.trim_start_matches('\u{feff}') };
        self.began = true;
        if line.is_empty() {
            self.end_event();
            return Ok(());
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => value.clone_into(&mut self.name),
            "data" => self.add_data(value),
            _ => {}
        }
        Ok(())
    }

    fn add_data(&mut self, value: &str) {
        match &mut self.data {
            Some(data) => {
                data.push('\n');
                data.push_str(value);
            }
            none => *none = Some(value.to_owned()),
        }
    }

    fn end_event(&mut self) {
        let name = std::mem::take(&mut self.name);
        if let Some(data) = self.data.take() {
            self.ready.push_back(ServerEvent { name, data });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        http::{Response, get},
        testing,
    };

    fn events(body: impl Into<Vec<u8>>) -> Result<Vec<(String, String)>, HttpError> {
        let body = body.into();
        testing::http(move |_| Ok(Response::new(200, body.clone())));
        let events = get("https://a.example/").open()?.events();
        events.map(|event| event.map(|event| (event.name, event.data))).collect()
    }

    #[track_caller]
    fn check(body: &str, want: &[(&str, &str)]) {
        let found = events(body).unwrap();
        let found: Vec<_> = found.iter().map(|(n, d)| (n.as_str(), d.as_str())).collect();
        assert_eq!(found, want, "{body:?}");
    }

    #[test]
    fn events_are_read_whatever_ends_their_lines() {
        check("", &[]);
        check("data: a\n\ndata: b\n\n", &[("", "a"), ("", "b")]);
        check("data: a\r\n\r\ndata: b\r\n\r\n", &[("", "a"), ("", "b")]);
        check("data: a\r\rdata: b\r\r", &[("", "a"), ("", "b")]);
        check("\u{feff}data: a\n\n", &[("", "a")]);
        check(
            "event: x\nid: 7\nretry: 3\n: a remark\ndata:a\ndata: b\ndata\n\n",
            &[("x", "a\nb\n")],
        );
        check("event: x\n\ndata: b\n\n", &[("", "b")]);
        check("data: {\"ü\": 1}\n\n", &[("", "{\"ü\": 1}")]);
        check("data: whole\n\ndata: cut of", &[("", "whole")]);
    }

    #[test]
    fn nonsense_and_floods_are_refused() {
        for body in [b"data: \xff\n\n".to_vec(), vec![b'x'; EVENT_BYTES_MAX + 1]] {
            assert!(matches!(events(body), Err(HttpError::Body { .. })));
        }
        let lines = "data: 0123456789\n".repeat(EVENT_BYTES_MAX / 10);
        assert!(matches!(events(lines), Err(HttpError::Body { .. })));
    }
}
