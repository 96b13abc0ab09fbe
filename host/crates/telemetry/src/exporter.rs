//! Sends batches of spans to a collector, by OTLP over HTTP with Protocol Buffers.

use std::{
    future, mem,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, SystemTime},
};

use http::{HeaderMap, HeaderName, HeaderValue, header};
use reqwest::Client;
use sallyport_http_client::{TlsSetupError, client_builder, error_causes, read_body};
use tokio::{
    sync::{mpsc, oneshot},
    time::{Instant, sleep_until},
};
use url::Url;

use crate::{
    message::{encode_metrics, encode_request},
    metrics::MetricTable,
    pipeline::WarnFunction,
    span::{FinishedSpan, unix_ns},
};

/// The path of traces below the endpoint, as the protocol has it.
const TRACES_PATH: &str = "v1/traces";

/// The path of metrics.
const METRICS_PATH: &str = "v1/metrics";

/// How often sums are sent while they change, as most programs do.
const METRICS_EVERY: Duration = Duration::from_secs(60);

/// Most spans in one message: the usual number, about 200 KB.
const BATCH_SPANS_MAX: usize = 512;

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
        let (traces, metrics) = (url(TRACES_PATH)?, url(METRICS_PATH)?);
        let headers = headers.into_iter().map(|(name, value)| {
            let wrong = || CollectorError::Header(name.to_owned());
            let mut secret = HeaderValue::from_str(value).map_err(|_| wrong())?;
            secret.set_sensitive(true);
            Ok((HeaderName::from_bytes(name.as_bytes()).map_err(|_| wrong())?, secret))
        });
        let headers = headers.collect::<Result<HeaderMap, CollectorError>>()?;
        let builder = client_builder(traces.scheme() == "https")?.timeout(SEND_TIME_MAX);
        let client = builder.build().map_err(|_| CollectorError::Endpoint)?;
        Ok(Self { traces, metrics, headers, client })
    }

    /// The address as it may be shown: without a path or a query, which can have a key.
    pub(crate) fn shown_address(&self) -> String {
        self.traces.origin().ascii_serialization()
    }

    async fn send(&self, url: &Url, message: Vec<u8>) -> Result<(), String> {
        let request = self.client.post(url.clone()).headers(self.headers.clone());
        let request = request.header(header::CONTENT_TYPE, PROTOBUF_TYPE).body(message);
        let answer = request.send().await.map_err(|error| match error.is_timeout() {
            true => format!("it does not answer within {} seconds", SEND_TIME_MAX.as_secs()),
            false => error_causes(&error),
        })?;
        let status = answer.status();
        // The answer may say more, but nothing would be done about it.
        let _ = read_body(answer, ANSWER_BYTES_MAX).await;
        status.is_success().then_some(()).ok_or_else(|| format!("it answers {status}"))
    }
}

/// The address of traces or metrics, by its path. Credentials belong into a header, where they are
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

/// Counts spans that were not sent. The operator is told once.
#[derive(Debug)]
pub(crate) struct Losses {
    address: String,
    queued: AtomicU64,
    /// The queued ones that were sent or lost.
    handled: AtomicU64,
    lost: AtomicU64,
    is_told: AtomicBool,
    reason: Mutex<Option<String>>,
}

impl Losses {
    pub(crate) fn new(address: String) -> Self {
        Self {
            address,
            queued: AtomicU64::new(0),
            handled: AtomicU64::new(0),
            lost: AtomicU64::new(0),
            is_told: AtomicBool::new(false),
            reason: Mutex::new(None),
        }
    }

    pub(crate) fn count(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    pub(crate) fn note_queued(&self) {
        self.queued.fetch_add(1, Ordering::Relaxed);
    }

    /// A span did not fit into the queue.
    pub(crate) fn note_dropped(&self) {
        self.lost.fetch_add(1, Ordering::Relaxed);
    }

    fn note_sent(&self, count: u64, result: Result<(), String>) {
        self.handled.fetch_add(count, Ordering::Relaxed);
        if let Err(reason) = result {
            self.lost.fetch_add(count, Ordering::Relaxed);
            self.reason().get_or_insert(reason);
        }
    }

    /// The program ends before everything was sent.
    pub(crate) fn note_unfinished(&self) {
        let queued = self.queued.load(Ordering::Relaxed);
        let left = queued.saturating_sub(self.handled.load(Ordering::Relaxed));
        self.lost.fetch_add(left, Ordering::Relaxed);
        self.reason().get_or_insert("it did not answer before the end of the program".to_owned());
    }

    fn reason(&self) -> MutexGuard<'_, Option<String>> {
        self.reason.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The warning about lost spans, once.
    pub(crate) fn take_warning(&self) -> Option<String> {
        let lost = self.count();
        if lost == 0 || self.is_told.swap(true, Ordering::Relaxed) {
            return None;
        }
        let reason = self.reason().clone();
        let reason = reason.unwrap_or_else(|| "it is slower than spans are made".to_owned());
        let spans = if lost == 1 { "1 span was" } else { &format!("{lost} spans were") };
        let address = &self.address;
        Some(format!(
            "{spans} not sent to the collector at {address}: {reason}. Nothing else is affected, \
             and later losses are not reported. To fix: start the collector, or correct [telemetry] \
             in sallyport.toml"
        ))
    }
}

/// Sends spans until it is told to end.
pub(crate) struct Exporter {
    pub(crate) collector: Collector,
    pub(crate) service_name: String,
    pub(crate) warn: WarnFunction,
    pub(crate) losses: Arc<Losses>,
    pub(crate) spans: mpsc::Receiver<FinishedSpan>,
    pub(crate) metrics: MetricTable,
}

impl Exporter {
    /// Sends batch after batch. After `end`, what is left is sent, and the last warning is left to
    /// whoever ends the export.
    pub(crate) async fn run(mut self, mut end: oneshot::Receiver<()>) {
        let mut batch = Vec::new();
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
        batch: &mut Vec<FinishedSpan>,
        metrics_due: Instant,
        end: &mut oneshot::Receiver<()>,
    ) -> bool {
        let mut batch_due = None;
        while batch.len() < BATCH_SPANS_MAX {
            let due = batch_due.or_else(|| self.metrics.is_changed().then_some(metrics_due));
            tokio::select! {
                biased;
                _ = &mut *end => return true,
                () = wait_until(due) => return false,
                span = self.spans.recv() => match span {
                    Some(span) => self.take_span(span, batch),
                    None => return true,
                },
            }
            if !batch.is_empty() {
                batch_due = batch_due.or_else(|| Some(Instant::now() + BATCH_TIME_MAX));
            }
        }
        false
    }

    /// Sums up a span, and keeps it for sending if its trace is recorded.
    fn take_span(&mut self, span: FinishedSpan, batch: &mut Vec<FinishedSpan>) {
        self.metrics.add_span(&span);
        match span.place.is_sampled {
            true => batch.push(span),
            false => self.losses.note_sent(1, Ok(())),
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

    async fn send_batch(&self, batch: Vec<FinishedSpan>) {
        if batch.is_empty() {
            return;
        }
        let message = encode_request(&self.service_name, env!("CARGO_PKG_VERSION"), &batch);
        let sent = self.collector.send(&self.collector.traces, message).await;
        self.losses.note_sent(batch.len() as u64, sent);
    }

    async fn send_rest(&mut self, mut batch: Vec<FinishedSpan>) {
        loop {
            while batch.len() < BATCH_SPANS_MAX
                && let Ok(span) = self.spans.try_recv()
            {
                self.take_span(span, &mut batch);
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

    #[test]
    fn losses_are_told_once_with_their_number_and_reason() {
        let losses = Losses::new("http://127.0.0.1:4318".to_owned());
        losses.note_queued();
        losses.note_sent(1, Ok(()));
        assert_eq!(losses.take_warning(), None);
        losses.note_dropped();
        let warning = losses.take_warning().unwrap();
        assert!(warning.starts_with("1 span was not sent"), "{warning}");
        assert!(warning.contains("slower"), "{warning}");
        losses.note_sent(3, Err("it answers 500".to_owned()));
        assert_eq!((losses.count(), losses.take_warning()), (4, None));

        let unfinished = Losses::new("http://127.0.0.1:4318".to_owned());
        (0..5).for_each(|_| unfinished.note_queued());
        unfinished.note_sent(2, Ok(()));
        unfinished.note_unfinished();
        assert!(unfinished.take_warning().unwrap().starts_with("3 spans were not sent"));
    }
}
