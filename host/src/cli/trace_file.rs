//! `--trace FILE`: how long each step took, as a file for a trace viewer.
//!
//! The library opens a span for each step: a turn, a request to the model, a decision, a call, a
//! request of a plugin. Each span becomes one event of the Trace Event Format when it closes. A
//! span has names, never arguments, paths or answers, because a trace is made to be shown to
//! others.

use std::{
    fs::File,
    io::{self, Write},
    path::Path,
    process,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use sallyport_telemetry::{TelemetryLayer, own_span_interest};
use serde_json::{Map, Value, json};
use tracing::{
    Id, Metadata, Subscriber,
    field::{Field, Visit},
    level_filters::LevelFilter,
    span::{Attributes, Record},
    subscriber::Interest,
};
use tracing_subscriber::{
    Layer,
    layer::{Context, SubscriberExt},
    registry::{LookupSpan, Registry, SpanRef},
};

use super::{
    exit::{CommandFailure, ExitStatus},
    new_file,
};

/// The trace of this process.
pub(super) struct TraceFile(Arc<Mutex<TraceWriter>>);

impl TraceFile {
    /// Creates the file, and records each span from now on.
    ///
    /// # Errors
    ///
    /// The file exists or cannot be written, or the process has a trace already.
    pub(super) fn create(path: &Path) -> Result<Self, CommandFailure> {
        let file = new_file::create_private_file(path)?;
        let writer = TraceWriter { file, started: Instant::now(), lanes: Vec::new(), error: None };
        let writer = Arc::new(Mutex::new(writer));
        // The closing bracket is optional in this format, so a killed process leaves a valid trace.
        lock(&writer).write_line("[");
        let layer = TraceLayer { writer: Arc::clone(&writer) };
        // A process has one subscriber, so telemetry that begins later finds its layer in it.
        let subscriber = Registry::default().with(TelemetryLayer).with(layer);
        tracing::subscriber::set_global_default(subscriber)
            .map_err(|error| CommandFailure::new(ExitStatus::Failed, error.to_string()))?;
        Ok(Self(writer))
    }

    /// Why the trace is incomplete, if it is.
    pub(super) fn write_error(&self) -> Option<io::Error> {
        lock(&self.0).error.take()
    }
}

fn lock(writer: &Mutex<TraceWriter>) -> MutexGuard<'_, TraceWriter> {
    writer.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Writes the events.
struct TraceWriter {
    file: File,
    started: Instant,
    /// For each lane, the number of open spans. A viewer shows a lane as a row, in which each span
    /// has to lie within the one before it.
    lanes: Vec<usize>,
    error: Option<io::Error>,
}

impl TraceWriter {
    /// Writes a line, unless an earlier one is missing.
    fn write_line(&mut self, line: &str) {
        if self.error.is_none() {
            self.error = self.file.write_all(format!("{line}\n").as_bytes()).err();
        }
    }

    /// Takes the parent's lane if no other span is open there, else a free one.
    fn enter_lane(&mut self, parent: Option<&OpenSpan>) -> usize {
        let below = parent.filter(|parent| self.lanes[parent.lane] == parent.depth);
        let lane = below.map(|parent| parent.lane).unwrap_or_else(|| {
            self.lanes.iter().position(|open| *open == 0).unwrap_or(self.lanes.len())
        });
        if lane == self.lanes.len() {
            self.lanes.push(0);
        }
        self.lanes[lane] += 1;
        lane
    }

    fn write_span(&mut self, name: &str, span: &OpenSpan) {
        self.lanes[span.lane] -= 1;
        let since_start = span.opened.duration_since(self.started);
        let event = json!({
            "name": name,
            "ph": "X",
            "ts": since_start.as_secs_f64() * 1e6,
            "dur": span.opened.elapsed().as_secs_f64() * 1e6,
            "pid": process::id(),
            "tid": span.lane,
            "args": span.fields,
        });
        self.write_line(&format!("{event},"));
    }
}

/// A span that has not closed yet.
struct OpenSpan {
    opened: Instant,
    lane: usize,
    /// Number of open spans of its lane, with itself.
    depth: usize,
    fields: Map<String, Value>,
}

/// Collects the fields of a span.
struct FieldVisitor<'a>(&'a mut Map<String, Value>);

impl Visit for FieldVisitor<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        self.0.insert(field.name().to_owned(), format!("{value:?}").into());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name().to_owned(), value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.0.insert(field.name().to_owned(), value.into());
    }
}

/// Records the spans of this program's own crates.
struct TraceLayer {
    writer: Arc<Mutex<TraceWriter>>,
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for TraceLayer {
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        own_span_interest(metadata)
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(LevelFilter::INFO)
    }

    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        let mut fields = Map::new();
        attributes.record(&mut FieldVisitor(&mut fields));
        let mut writer = lock(&self.writer);
        let lane = match span.parent() {
            Some(parent) => writer.enter_lane(parent.extensions().get::<OpenSpan>()),
            None => writer.enter_lane(None),
        };
        let depth = writer.lanes[lane];
        span.extensions_mut().insert(OpenSpan { opened: Instant::now(), lane, depth, fields });
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        let span = context.span(id);
        with_open_span(span, |open| values.record(&mut FieldVisitor(&mut open.fields)));
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        let Some(span) = context.span(&id) else { return };
        let name = span.name();
        with_open_span(Some(span), |open| lock(&self.writer).write_span(name, open));
    }
}

fn with_open_span<'a, S: LookupSpan<'a>>(
    span: Option<SpanRef<'a, S>>,
    use_span: impl FnOnce(&mut OpenSpan),
) {
    if let Some(span) = span
        && let Some(open) = span.extensions_mut().get_mut::<OpenSpan>()
    {
        use_span(open);
    }
}
