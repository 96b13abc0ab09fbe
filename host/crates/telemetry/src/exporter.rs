//! Sends batches of spans, log records and sums to a collector, by OTLP over HTTP with Protocol Buffers.

use std::{
    future, mem,
    sync::Arc,
    time::{Duration, SystemTime},
};

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use reqwest::Client;
use sallyport_http_client::{TlsSetupError, client_builder, error_causes, read_body};
use tokio::{
    sync::{mpsc, oneshot},
    time::{Instant, sleep_until},
};
use url::Url;

use crate::{
    logs::LogRecord,
    losses::{LossKind, Losses},
    message::{encode_logs, encode_metrics, encode_request},
    metrics::MetricTable,
    span::{FinishedSpan, unix_ns},
};

/// The path of traces below the endpoint, as the protocol has it.
const TRACES_PATH: &str = "v1/traces";

/// The path of metrics.
const METRICS_PATH: &str = "v1/metrics";

/// The path of log records.
const LOGS_PATH: &str = "v1/logs";

/// What a collector answers that takes no log records.
const NOT_TAKEN: [StatusCode; 3] =
    [StatusCode::NOT_FOUND, StatusCode::METHOD_NOT_ALLOWED, StatusCode::NOT_IMPLEMENTED];

/// How often sums are sent while they change, as most programs do.
const METRICS_EVERY: Duration = Duration::from_secs(60);

/// Most spans or log records in one message: the usual number, about 200 KB.
const BATCH_RECORDS_MAX: usize = 512;

/// How long a span waits for others at most. A viewer shows a turn soon after its end.
const BATCH_TIME_MAX: Duration = Duration::from_secs(1);

/// Longest time for one message, from the connection to the end of the answer.
const SEND_TIME_MAX: Duration = Duration::from_secs(10);

/// Longest answer that is read. Nothing depends on it; a short one lets the connection be used again.
const ANSWER_BYTES_MAX: usize = 64 << 10;

const PROTOBUF_TYPE: HeaderValue = HeaderValue::from_static("application/x-protobuf");

/// Why a collector cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CollectorError {
    /// The endpoint is not an address.
    #[error("endpoint is not an address such as http://127.0.0.1:4318")]
    Endpoint,
    /// A header cannot be sent. Its value is not shown, because it may be a key.
    #[error("the header {0:?} cannot be sent")]
    Header(String),
    /// TLS cannot be set up.
    #[error(transparent)]
    Tls(#[from] TlsSetupError),
}

/// A collector of spans.
#[derive(Debug)]
pub struct Collector {
    traces: Url,
    metrics: Url,
    logs: Url,
    headers: HeaderMap,
    client: Client,
}

impl Collector {
    /// A collector at an address, with headers for each request. Nothing is sent yet.
    ///
    /// # Errors
    ///
    /// The address or a header is not valid, or the system's certificates cannot be read.
    pub fn new<'a>(
        endpoint: &str,
        headers: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, CollectorError> {
        let url = |path| signal_url(endpoint, path).ok_or(CollectorError::Endpoint);
        let (traces, metrics, logs) = (url(TRACES_PATH)?, url(METRICS_PATH)?, url(LOGS_PATH)?);
        let headers = headers.into_iter().map(|(name, value)| {
            let wrong = || CollectorError::Header(name.to_owned());
            let mut secret = HeaderValue::from_str(value).map_err(|_| wrong())?;
            secret.set_sensitive(true);
            Ok((HeaderName::from_bytes(name.as_bytes()).map_err(|_| wrong())?, secret))
        });
        let headers = headers.collect::<Result<HeaderMap, CollectorError>>()?;
        let builder = client_builder(traces.scheme() == "https")?.timeout(SEND_TIME_MAX);
        let client = builder.build().map_err(|_| CollectorError::Endpoint)?;
        Ok(Self { traces, metrics, logs, headers, client })
    }

    /// The address as it may be shown: without a path or a query, which can have a key.
    pub(crate) fn shown_address(&self) -> String {
        self.traces.origin().ascii_serialization()
    }

    /// Sends a message, and returns the status of the answer.
    async fn post(&self, url: &Url, message: Vec<u8>) -> Result<StatusCode, String> {
        let request = self.client.post(url.clone()).headers(self.headers.clone());
        let request = request.header(header::CONTENT_TYPE, PROTOBUF_TYPE).body(message);
        let answer = request.send().await.map_err(|error| match error.is_timeout() {
            true => format!("it does not answer within {} seconds", SEND_TIME_MAX.as_secs()),
            false => error_causes(&error),
        })?;
        let status = answer.status();
        // The answer may say more, but nothing would be done about it.
        let _ = read_body(answer, ANSWER_BYTES_MAX).await;
        Ok(status)
    }

    async fn send(&self, url: &Url, message: Vec<u8>) -> Result<(), String> {
        check_status(self.post(url, message).await?)
    }
}

fn check_status(status: StatusCode) -> Result<(), String> {
    status.is_success().then_some(()).ok_or_else(|| format!("it answers {status}"))
}

/// The address of a signal, by its path. Credentials belong into a header, where they are
/// known as secrets.
fn signal_url(endpoint: &str, signal_path: &str) -> Option<Url> {
    let mut url = Url::parse(endpoint.trim()).ok()?;
    let is_web = ["http", "https"].contains(&url.scheme()) && url.host().is_some();
    let is_bare = url.username().is_empty() && url.password().is_none() && url.query().is_none();
    if !(is_web && is_bare) {
        return None;
    }
    let path = format!("{}/{signal_path}", url.path().trim_end_matches('/'));
    url.set_path(&path);
    url.set_fragment(None);
    Some(url)
}

/// Receives the one warning about lost spans. It is not called by a thread that makes a call.
pub type WarnFunction = Box<dyn Fn(String) + Send>;

/// What waits for the exporter.
#[derive(Debug)]
pub(crate) enum QueuedSignal {
    /// A span that has ended.
    Span(FinishedSpan),
    /// A log record that no span makes.
    Log(LogRecord),
}

/// Sends spans, sums and log records until it is told to end.
pub(crate) struct Exporter {
    pub(crate) collector: Collector,
    pub(crate) service_name: String,
    pub(crate) warn: WarnFunction,
    pub(crate) losses: Arc<SignalLosses>,
    pub(crate) queue: mpsc::Receiver<QueuedSignal>,
    pub(crate) metrics: MetricTable,
}

/// What was lost of each signal.
#[derive(Debug)]
pub(crate) struct SignalLosses {
    pub(crate) spans: Losses,
    pub(crate) logs: Losses,
}

impl SignalLosses {
    pub(crate) fn new(address: &str) -> Self {
        let losses = |kind| Losses::new(kind, address.to_owned());
        Self { spans: losses(LossKind::Spans), logs: losses(LossKind::Logs) }
    }

    /// One warning about what was lost of any signal: a collector that is away loses all of them.
    pub(crate) fn take_warning(&self) -> Option<String> {
        let warning = self.spans.take_warning().or_else(|| self.logs.take_warning())?;
        self.spans.end_warnings();
        self.logs.end_warnings();
        Some(warning)
    }
}

/// What is sent in one go.
#[derive(Debug, Default)]
struct Batch {
    spans: Vec<FinishedSpan>,
    logs: Vec<LogRecord>,
}

impl Batch {
    fn is_full(&self) -> bool {
        self.spans.len().max(self.logs.len()) >= BATCH_RECORDS_MAX
    }

    fn is_empty(&self) -> bool {
        self.spans.is_empty() && self.logs.is_empty()
    }
}

impl Exporter {
    /// Sends batch after batch. After `end`, what is left is sent, and the last warning is left to
    /// whoever ends the export.
    pub(crate) async fn run(mut self, mut end: oneshot::Receiver<()>) {
        let mut batch = Batch::default();
        let mut metrics_due = Instant::now() + METRICS_EVERY;
        while !self.collect_batch(&mut batch, metrics_due, &mut end).await {
            self.send_batch(mem::take(&mut batch)).await;
            if metrics_due <= Instant::now() {
                self.send_metrics().await;
                metrics_due = Instant::now() + METRICS_EVERY;
            }
            if let Some(warning) = self.losses.take_warning() {
                (self.warn)(warning);
            }
        }
        self.send_rest(batch).await;
        self.send_metrics().await;
    }

    /// Waits until a batch is full or old enough. Returns whether it is time to end.
    async fn collect_batch(
        &mut self,
        batch: &mut Batch,
        metrics_due: Instant,
        end: &mut oneshot::Receiver<()>,
    ) -> bool {
        let mut batch_due = None;
        while !batch.is_full() {
            let due = batch_due.or_else(|| self.metrics.is_changed().then_some(metrics_due));
            tokio::select! {
                biased;
                _ = &mut *end => return true,
                () = wait_until(due) => return false,
                record = self.queue.recv() => match record {
                    Some(record) => self.take_record(record, batch),
                    None => return true,
                },
            }
            if !batch.is_empty() {
                batch_due = batch_due.or_else(|| Some(Instant::now() + BATCH_TIME_MAX));
            }
        }
        false
    }

    fn take_record(&mut self, record: QueuedSignal, batch: &mut Batch) {
        match record {
            QueuedSignal::Span(span) => self.take_span(span, batch),
            QueuedSignal::Log(record) => batch.logs.push(record),
        }
    }

    /// Sums up a span, makes its log record, and keeps it for sending if its trace is recorded.
    fn take_span(&mut self, span: FinishedSpan, batch: &mut Batch) {
        self.metrics.add_span(&span);
        if let Some(record) = LogRecord::of_span(&span) {
            self.losses.logs.note_queued();
            batch.logs.push(record);
        }
        match span.place.is_sampled {
            true => batch.spans.push(span),
            false => self.losses.spans.note_sent(1, Ok(())),
        }
    }

    /// Sends the sums, if they have changed. A message that does not arrive loses nothing, because
    /// the next one has the same sums; so a collector that takes no metrics is no failure.
    async fn send_metrics(&mut self) {
        if !self.metrics.take_changed() {
            return;
        }
        let now_ns = unix_ns(SystemTime::now());
        let version = env!("CARGO_PKG_VERSION");
        let message = encode_metrics(&self.service_name, version, &self.metrics, now_ns);
        let _ = self.collector.send(&self.collector.metrics, message).await;
    }

    async fn send_batch(&self, batch: Batch) {
        self.send_spans(batch.spans).await;
        self.send_logs(batch.logs).await;
    }

    async fn send_spans(&self, spans: Vec<FinishedSpan>) {
        if spans.is_empty() {
            return;
        }
        let message = encode_request(&self.service_name, env!("CARGO_PKG_VERSION"), &spans);
        let sent = self.collector.send(&self.collector.traces, message).await;
        self.losses.spans.note_sent(spans.len() as u64, sent);
    }

    async fn send_logs(&self, logs: Vec<LogRecord>) {
        if logs.is_empty() {
            return;
        }
        let (losses, count) = (&self.losses.logs, logs.len() as u64);
        let message = encode_logs(&self.service_name, env!("CARGO_PKG_VERSION"), &logs);
        match self.collector.post(&self.collector.logs, message).await {
            Ok(status) if NOT_TAKEN.contains(&status) => losses.note_not_taken(count),
            sent => losses.note_sent(count, sent.and_then(check_status)),
        }
    }

    async fn send_rest(&mut self, mut batch: Batch) {
        loop {
            while !batch.is_full()
                && let Ok(record) = self.queue.try_recv()
            {
                self.take_record(record, &mut batch);
            }
            if batch.is_empty() {
                return;
            }
            self.send_batch(mem::take(&mut batch)).await;
        }
    }
}

async fn wait_until(due: Option<Instant>) {
    match due {
        Some(due) => sleep_until(due).await,
        None => future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traces_go_below_the_endpoint() {
        let rows = [
            ("http://127.0.0.1:4318", Some("http://127.0.0.1:4318/v1/traces")),
            ("https://otel.example/otlp/", Some("https://otel.example/otlp/v1/traces")),
            ("http://user:key@otel.example", None),
            ("https://otel.example?key=1", None),
            ("ftp://otel.example", None),
            ("127.0.0.1:4318", None),
            ("", None),
        ];
        for (endpoint, want) in rows {
            assert_eq!(
                signal_url(endpoint, TRACES_PATH).as_ref().map(Url::as_str),
                want,
                "{endpoint}"
            );
        }
    }

    #[test]
    fn a_header_that_cannot_be_sent_is_named_without_its_value() {
        let rows = [("authorization", "a\nb"), ("not a name", "s3cret")];
        for (name, value) in rows {
            let error = Collector::new("http://127.0.0.1:4318", [(name, value)]).unwrap_err();
            assert_eq!(error, CollectorError::Header(name.to_owned()));
            assert!(!error.to_string().contains(value), "{error}");
        }
    }
}
