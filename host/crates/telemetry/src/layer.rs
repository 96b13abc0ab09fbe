//! Turns spans of `tracing` into spans that are sent, once the export has begun.

use std::time::{Instant, SystemTime};

use rustix::rand::{GetRandomFlags, getrandom};
use sallyport_contract::TraceParent;
use tracing::{
    Id, Metadata, Subscriber, dispatcher,
    level_filters::LevelFilter,
    span::{Attributes, Record},
    subscriber::Interest,
};
use tracing_subscriber::{
    Layer, Registry,
    layer::{Context, SubscriberExt},
    registry::LookupSpan,
};

use crate::{
    names,
    pipeline::{TelemetryParts, begin_export, current_pipeline},
    span::{RunningSpan, SpanFields},
    trace::nearest_place,
};

/// Start of the targets of our own spans. Libraries have spans as well.
const OWN_TARGETS: &str = "sallyport";

/// Sends the spans of the table, from [`start`](crate::start) on. Before, it does nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct TelemetryLayer;

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for TelemetryLayer {
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        own_span_interest(metadata)
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(LevelFilter::INFO)
    }

    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        if current_pipeline().is_none() || !names::is_sent(attributes.metadata().name()) {
            return;
        }
        let Some(span) = context.span(id) else { return };
        let mut fields = SpanFields::default();
        attributes.record(&mut fields);
        let parent = fields.trace_parent.or_else(|| span.parent().and_then(nearest_place));
        let Some(place) = new_place(parent) else { return };
        let (started_at, started) = (SystemTime::now(), Instant::now());
        span.extensions_mut().insert(RunningSpan { place, parent, started_at, started, fields });
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        if let Some(span) = context.span(id)
            && let Some(open) = span.extensions_mut().get_mut::<RunningSpan>()
        {
            values.record(&mut open.fields);
        }
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        let Some(span) = context.span(&id) else { return };
        let Some(open) = span.extensions_mut().remove::<RunningSpan>() else { return };
        if let Some(pipeline) = current_pipeline() {
            pipeline.add_span(open, span.name());
        }
    }
}

/// Begins the export, if there is none in this process yet; later calls change the redactor only.
///
/// Without a subscriber, one that has the [`TelemetryLayer`] is installed. Whoever installs another
/// one adds the layer to it.
///
/// # Errors
///
/// The system has no thread for it.
pub fn start(parts: TelemetryParts) -> std::io::Result<()> {
    if begin_export(parts)? && !dispatcher::has_been_set() {
        let subscriber = Registry::default().with(TelemetryLayer);
        let _ = tracing::subscriber::set_global_default(subscriber);
    }
    Ok(())
}

/// Wants each span of this program's own crates. All layers need the same answer, because one that
/// refuses a span refuses it for all.
pub fn own_span_interest(metadata: &Metadata<'_>) -> Interest {
    let is_own = metadata.is_span() && metadata.target().starts_with(OWN_TARGETS);
    if is_own { Interest::always() } else { Interest::never() }
}

/// The place of a new span. `None` without random numbers, because an ID that another span has
/// would mix two traces.
fn new_place(parent: Option<TraceParent>) -> Option<TraceParent> {
    let span_id = random_bytes()?;
    Some(match parent {
        // A caller that does not record a trace does not get a part of it.
        Some(parent) => TraceParent { span_id, ..parent },
        None => TraceParent { trace_id: random_bytes()?, span_id, is_sampled: true },
    })
}

fn random_bytes<const N: usize>() -> Option<[u8; N]> {
    let mut bytes = [0; N];
    let count = getrandom(&mut bytes, GetRandomFlags::empty()).ok()?;
    (count == N && bytes != [0; N]).then_some(bytes)
}
