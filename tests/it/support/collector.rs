//! A collector of spans, metrics and log records. It reads OTLP by the numbers of the published schema, with a reader of its
//! own, so that a mistake of the program is not repeated here.

use std::collections::BTreeMap;

use super::{Response, Server, patience::until, server::Request};

/// A span as it was received.
#[derive(Debug, Clone, Default)]
pub(crate) struct ReceivedSpan {
    /// IDs are hexadecimal; that of the parent is empty for a span without one.
    pub(crate) trace: String,
    pub(crate) id: String,
    pub(crate) parent: String,
    pub(crate) name: String,
    pub(crate) kind: u64,
    pub(crate) has_failed: bool,
    pub(crate) attributes: BTreeMap<String, String>,
}

/// A log record as it was received.
#[derive(Debug, Clone, Default)]
pub(crate) struct ReceivedLog {
    /// IDs are hexadecimal; empty without a span.
    pub(crate) trace: String,
    pub(crate) span: String,
    pub(crate) event: String,
    pub(crate) severity: String,
    pub(crate) body: Option<String>,
    pub(crate) attributes: BTreeMap<String, String>,
}

/// A collector that takes everything.
pub(crate) struct Collector {
    server: Server,
}

impl Collector {
    pub(crate) fn start() -> Self {
        Self { server: Server::start(|_| Response::with(200, &[], "")) }
    }

    /// The table of the configuration that names it.
    pub(crate) fn config(&self) -> String {
        config(&self.server.url())
    }

    pub(crate) fn requests(&self) -> Vec<Request> {
        self.server.seen()
    }

    /// Everything that it received, as text.
    pub(crate) fn text(&self) -> String {
        let bodies = self.requests().into_iter();
        bodies.map(|request| String::from_utf8_lossy(&request.bytes).into_owned()).collect()
    }

    pub(crate) fn spans(&self) -> Vec<ReceivedSpan> {
        self.of_signal("/v1/traces").iter().flat_map(|bytes| read_request(bytes)).collect()
    }

    /// The names of the metrics in the last message of them, each with its unit and the number of its
    /// values.
    pub(crate) fn metrics(&self) -> BTreeMap<String, (String, u64)> {
        self.of_signal("/v1/metrics").last().map(|bytes| read_metrics(bytes)).unwrap_or_default()
    }

    pub(crate) fn logs(&self) -> Vec<ReceivedLog> {
        self.of_signal("/v1/logs").iter().flat_map(|bytes| read_logs(bytes)).collect()
    }

    /// Waits for a log record of this event.
    #[track_caller]
    pub(crate) fn log(&self, event: &str) -> ReceivedLog {
        until(event, || self.logs().into_iter().find(|log| log.event == event))
    }

    fn of_signal(&self, path: &str) -> Vec<Vec<u8>> {
        let requests = self.requests().into_iter();
        requests.filter(|request| request.target == path).map(|request| request.bytes).collect()
    }

    /// Waits for a span of this name.
    #[track_caller]
    pub(crate) fn span(&self, name: &str) -> ReceivedSpan {
        until(name, || self.spans().into_iter().find(|span| span.name == name))
    }
}

/// The table of the configuration that names a collector.
pub(crate) fn config(url: &str) -> String {
    format!("[telemetry]\nendpoint = \"{url}\"\n")
}

impl ReceivedSpan {
    #[track_caller]
    pub(crate) fn has(&self, attributes: &[(&str, &str)]) -> &Self {
        for (name, value) in attributes {
            assert_eq!(self.attributes.get(*name).map(String::as_str), Some(*value), "{self:#?}");
        }
        self
    }
}

enum Field<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

impl<'a> Field<'a> {
    fn number(&self) -> u64 {
        match self {
            Self::Number(number) => *number,
            Self::Bytes(bytes) => panic!("{bytes:?} where a number is expected"),
        }
    }

    fn bytes(&self) -> &'a [u8] {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Number(number) => panic!("{number} where bytes are expected"),
        }
    }

    fn text(&self) -> String {
        String::from_utf8(self.bytes().to_vec()).unwrap()
    }

    fn hex(&self) -> String {
        self.bytes().iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

fn read_request(bytes: &[u8]) -> Vec<ReceivedSpan> {
    let mut spans = Vec::new();
    for (number, resource_spans) in fields(bytes) {
        assert_eq!(number, 1, "a request has resource spans only");
        for (_, scope_spans) in fields(resource_spans.bytes()).filter(|(number, _)| *number == 2) {
            let inside = fields(scope_spans.bytes()).filter(|(number, _)| *number == 2);
            spans.extend(inside.map(|(_, span)| read_span(span.bytes())));
        }
    }
    spans
}

fn read_logs(bytes: &[u8]) -> Vec<ReceivedLog> {
    let mut logs = Vec::new();
    for (number, resource_logs) in fields(bytes) {
        assert_eq!(number, 1, "a request has resource logs only");
        for (_, scope_logs) in fields(resource_logs.bytes()).filter(|(number, _)| *number == 2) {
            let inside = fields(scope_logs.bytes()).filter(|(number, _)| *number == 2);
            logs.extend(inside.map(|(_, log)| read_log(log.bytes())));
        }
    }
    logs
}

fn read_log(bytes: &[u8]) -> ReceivedLog {
    let mut log = ReceivedLog::default();
    let (mut times, mut level) = ((0, 0), 0);
    for (number, field) in fields(bytes) {
        match number {
            1 => times.0 = field.number(),
            2 => level = field.number(),
            3 => log.severity = field.text(),
            5 => log.body = fields(field.bytes()).next().map(|(_, text)| text.text()),
            6 => log.attributes.extend([read_attribute(field.bytes())]),
            8 => assert!(field.number() <= 1, "flags of a trace"),
            9 => log.trace = field.hex(),
            10 => log.span = field.hex(),
            11 => times.1 = field.number(),
            12 => log.event = field.text(),
            other => panic!("field {other} of a log record"),
        }
    }
    assert!(0 < times.0 && times.0 <= times.1, "{times:?}");
    let known = [("INFO", 9), ("WARN", 13), ("ERROR", 17)];
    assert!(known.contains(&(log.severity.as_str(), level)), "{log:#?} {level}");
    log
}

fn read_metrics(bytes: &[u8]) -> BTreeMap<String, (String, u64)> {
    let mut metrics = BTreeMap::new();
    for (number, resource_metrics) in fields(bytes) {
        assert_eq!(number, 1, "a request has resource metrics only");
        for (_, scope) in fields(resource_metrics.bytes()).filter(|(number, _)| *number == 2) {
            let inside = fields(scope.bytes()).filter(|(number, _)| *number == 2);
            for (name, metric) in inside.map(|(_, metric)| read_metric(metric.bytes())) {
                let twice = metrics.insert(name.clone(), metric);
                assert!(twice.is_none(), "{name} is there twice");
            }
        }
    }
    metrics
}

fn read_metric(bytes: &[u8]) -> (String, (String, u64)) {
    let (mut name, mut unit, mut count) = (String::new(), String::new(), 0);
    for (number, field) in fields(bytes) {
        match number {
            1 => name = field.text(),
            2 => assert!(field.text().ends_with('.')),
            3 => unit = field.text(),
            9 => count = read_histogram(field.bytes()),
            other => panic!("field {other} of a metric"),
        }
    }
    (name, (unit, count))
}

/// The number of values of all series.
fn read_histogram(bytes: &[u8]) -> u64 {
    let mut total = 0;
    for (number, field) in fields(bytes) {
        match number {
            1 => total += read_point(field.bytes()),
            2 => assert_eq!(field.number(), 2, "sums that only grow"),
            other => panic!("field {other} of a histogram"),
        }
    }
    total
}

fn read_point(bytes: &[u8]) -> u64 {
    let (mut times, mut count, mut ranges) = ((0, 0), 0, (Vec::new(), 0));
    for (number, field) in fields(bytes) {
        match number {
            2 => times.0 = field.number(),
            3 => times.1 = field.number(),
            4 => count = field.number(),
            5 => assert!(f64::from_bits(field.number()) >= 0.0),
            6 => {
                let words = field.bytes().chunks(8).map(|word| word.try_into().unwrap());
                ranges.0 = words.map(u64::from_le_bytes).collect();
            }
            7 => ranges.1 = field.bytes().len() / 8,
            9 => drop(read_attribute(field.bytes())),
            other => panic!("field {other} of a point"),
        }
    }
    assert!(0 < times.0 && times.0 <= times.1, "{times:?}");
    assert_eq!((ranges.0.len(), ranges.0.iter().sum()), (ranges.1 + 1, count));
    count
}

fn read_span(bytes: &[u8]) -> ReceivedSpan {
    let mut span = ReceivedSpan::default();
    let mut times = (0, 0);
    for (number, field) in fields(bytes) {
        match number {
            1 => span.trace = field.hex(),
            2 => span.id = field.hex(),
            4 => span.parent = field.hex(),
            5 => span.name = field.text(),
            6 => span.kind = field.number(),
            7 => times.0 = field.number(),
            8 => times.1 = field.number(),
            9 => span.attributes.extend([read_attribute(field.bytes())]),
            15 => {
                let code = fields(field.bytes()).find(|(number, _)| *number == 3);
                span.has_failed = code.is_some_and(|(_, code)| code.number() == 2);
            }
            16 => assert_eq!(field.number(), 1, "the flag of a recorded trace"),
            other => panic!("field {other} of a span"),
        }
    }
    assert!(0 < times.0 && times.0 <= times.1, "{times:?}");
    assert_eq!((span.trace.len(), span.id.len()), (32, 16), "{span:#?}");
    span
}

fn read_attribute(bytes: &[u8]) -> (String, String) {
    let (mut name, mut value) = (String::new(), String::new());
    for (number, field) in fields(bytes) {
        match number {
            1 => name = field.text(),
            2 => {
                let (kind, any) = fields(field.bytes()).next().unwrap();
                value = match kind {
                    1 => any.text(),
                    2 => (any.number() == 1).to_string(),
                    3 => any.number().to_string(),
                    other => panic!("a value of kind {other}"),
                };
            }
            other => panic!("field {other} of an attribute"),
        }
    }
    (name, value)
}

/// The fields of a message, each with its number.
fn fields(mut bytes: &[u8]) -> impl Iterator<Item = (u64, Field<'_>)> {
    std::iter::from_fn(move || {
        if bytes.is_empty() {
            return None;
        }
        let tag = read_varint(&mut bytes);
        let field = match tag & 7 {
            0 => Field::Number(read_varint(&mut bytes)),
            1 => Field::Number(u64::from_le_bytes(take(&mut bytes, 8).try_into().unwrap())),
            2 => {
                let length = read_varint(&mut bytes) as usize;
                Field::Bytes(take(&mut bytes, length))
            }
            5 => {
                let word = u32::from_le_bytes(take(&mut bytes, 4).try_into().unwrap());
                Field::Number(u64::from(word))
            }
            other => panic!("a field is written as {other}"),
        };
        Some((tag >> 3, field))
    })
}

fn take<'a>(bytes: &mut &'a [u8], count: usize) -> &'a [u8] {
    let (taken, rest) = bytes.split_at(count);
    *bytes = rest;
    taken
}

fn read_varint(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let byte = take(bytes, 1)[0];
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            break;
        }
    }
    value
}
