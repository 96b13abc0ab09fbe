//! From finished spans to the exporter: the queue, its beginning and its end.

use std::{
    fmt,
    sync::{Arc, Mutex, OnceLock, PoisonError, RwLock, mpsc as blocking},
    time::{Duration, SystemTime},
};

use tokio::sync::{mpsc, oneshot};

use crate::{
    exporter::{Collector, Exporter, QueuedSignal, SignalLosses, WarnFunction},
    logs::{LogRecord, NoticeLog},
    metrics::MetricTable,
    span::{RedactText, RunningSpan, unix_ns},
    trace::current_trace,
};

/// Spans and notices that wait for the exporter. More are dropped, so that a collector that does not keep up
/// costs two megabytes and no time.
const QUEUE_RECORDS_MAX: usize = 2048;

/// Longest wait for the last spans at the end of the program.
const END_TIME_MAX: Duration = Duration::from_secs(2);

/// Removes secrets from a text. `None` if it cannot tell any more, and the text must not leave.
pub type RedactFunction = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// What the export needs.
pub struct TelemetryParts {
    /// Where the spans go.
    pub collector: Collector,
    /// The name of the program among others that send spans to the collector.
    pub service_name: String,
    /// Whether the texts of notices are sent.
    pub sends_notice_texts: bool,
    /// The redactor of everything that leaves.
    pub redact: RedactFunction,
    /// Tells the operator.
    pub warn: WarnFunction,
}

/// The export of this process. A subscriber of spans belongs to a process, too.
static PIPELINE: OnceLock<Pipeline> = OnceLock::new();

pub(crate) fn current_pipeline() -> Option<&'static Pipeline> {
    PIPELINE.get()
}

/// Begins the export, and returns whether there was none yet when it began. A later call changes the
/// redactor only. Of two calls at the same moment both may return true.
pub(crate) fn begin_export(parts: TelemetryParts) -> std::io::Result<bool> {
    if let Some(pipeline) = PIPELINE.get() {
        *pipeline.redact.write().unwrap_or_else(PoisonError::into_inner) = parts.redact;
        return Ok(false);
    }
    let pipeline = Pipeline::start(parts)?;
    // Another thread may have been faster; its export counts, and this one ends.
    let _ = PIPELINE.set(pipeline);
    Ok(true)
}

/// Ends the export: sends what is left, for two seconds at most. Returns a warning if something was
/// lost and no warning has been given yet.
pub fn finish() -> Option<String> {
    PIPELINE.get().and_then(|pipeline| pipeline.finish(END_TIME_MAX))
}

/// How many spans have been lost so far. `None` without telemetry.
pub fn lost_spans() -> Option<u64> {
    PIPELINE.get().map(|pipeline| pipeline.losses.spans.count())
}

/// How many log records have been lost so far. `None` without telemetry.
pub fn lost_logs() -> Option<u64> {
    PIPELINE.get().map(|pipeline| pipeline.losses.logs.count())
}

/// Sends a notice of the program as a log record, in the trace of this moment. It never waits, and
/// does nothing without telemetry.
pub fn log_notice(notice: NoticeLog<'_>) {
    if let Some(pipeline) = PIPELINE.get() {
        pipeline.add_notice(notice);
    }
}

/// The queue to the exporter.
pub(crate) struct Pipeline {
    queue: mpsc::Sender<QueuedSignal>,
    sends_notice_texts: bool,
    redact: RwLock<RedactFunction>,
    losses: Arc<SignalLosses>,
    end: Mutex<Option<ExportEnd>>,
}

/// Ends the exporter, and waits for it.
struct ExportEnd {
    begin: oneshot::Sender<()>,
    ended: blocking::Receiver<()>,
}

impl Pipeline {
    pub(crate) fn start(parts: TelemetryParts) -> std::io::Result<Self> {
        let TelemetryParts { collector, service_name, sends_notice_texts, redact, warn } = parts;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (queue, receiver) = mpsc::channel(QUEUE_RECORDS_MAX);
        let (begin, begin_end) = oneshot::channel();
        let (end, ended) = blocking::channel();
        let losses = Arc::new(SignalLosses::new(&collector.shown_address()));
        let metrics = MetricTable::new(unix_ns(SystemTime::now()));
        let exporter = Exporter {
            collector,
            service_name,
            warn,
            losses: Arc::clone(&losses),
            queue: receiver,
            metrics,
        };
        // A thread of its own, because the program's runtimes begin and end with its commands.
        std::thread::Builder::new().name("telemetry".to_owned()).spawn(move || {
            runtime.block_on(exporter.run(begin_end));
            // The program may not have waited.
            let _ = end.send(());
        })?;
        let end = Mutex::new(Some(ExportEnd { begin, ended }));
        Ok(Self { queue, sends_notice_texts, redact: RwLock::new(redact), losses, end })
    }

    /// Queues a span that has ended. It never waits.
    pub(crate) fn add_span(&self, open: RunningSpan, name: &str) {
        let Some(span) = open.finish(name, &*self.redactor()) else { return };
        match self.queue.try_send(QueuedSignal::Span(span)) {
            Ok(()) => self.losses.spans.note_queued(),
            Err(_) => self.losses.spans.note_dropped(),
        }
    }

    /// Queues the log record of a notice. It never waits.
    fn add_notice(&self, notice: NoticeLog<'_>) {
        let redact = self.redactor();
        let redact: Option<RedactText<'_>> = self.sends_notice_texts.then_some(&*redact);
        let now_ns = unix_ns(SystemTime::now());
        let record = LogRecord::of_notice(notice, now_ns, current_trace(), redact);
        match self.queue.try_send(QueuedSignal::Log(record)) {
            Ok(()) => self.losses.logs.note_queued(),
            Err(_) => self.losses.logs.note_dropped(),
        }
    }

    fn redactor(&self) -> RedactFunction {
        Arc::clone(&self.redact.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn finish(&self, time_max: Duration) -> Option<String> {
        let ExportEnd { begin, ended } =
            self.end.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        // An exporter that is gone has ended, too.
        let _ = begin.send(());
        if let Err(blocking::RecvTimeoutError::Timeout) = ended.recv_timeout(time_max) {
            self.losses.spans.note_unfinished();
            self.losses.logs.note_unfinished();
        }
        self.losses.take_warning()
    }
}

impl fmt::Debug for Pipeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pipeline").field("losses", &self.losses).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::{iter, net::TcpListener, time::Instant};

    use super::*;
    use crate::span::SpanFields;

    const SPANS: u64 = 5000;

    fn open_span() -> RunningSpan {
        let place = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01".parse().unwrap();
        let (started_at, started) = (SystemTime::now(), Instant::now());
        RunningSpan { place, parent: None, started_at, started, fields: SpanFields::default() }
    }

    #[test]
    fn a_collector_that_hangs_delays_no_span_and_each_lost_one_is_counted() {
        // Connections are taken by the system, and nobody answers.
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let pipeline = Pipeline::start(TelemetryParts {
            collector: Collector::new(&address, iter::empty()).unwrap(),
            service_name: "test".to_owned(),
            sends_notice_texts: false,
            redact: Arc::new(|text| Some(text.to_owned())),
            warn: Box::new(|warning| panic!("{warning}")),
        });
        let pipeline = pipeline.unwrap();
        let began = Instant::now();
        (0..SPANS).for_each(|_| pipeline.add_span(open_span(), "turn"));
        assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
        let dropped = pipeline.losses.spans.count();
        assert!(dropped > 0, "the queue is limited");
        let warning = pipeline.finish(Duration::from_millis(50)).unwrap();
        assert!(warning.starts_with("5000 spans were not sent"), "{warning}");
        assert!(warning.contains("before the end of the program"), "{warning}");
        assert_eq!(pipeline.finish(Duration::from_secs(60)), None);
    }
}
