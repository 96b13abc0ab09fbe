//! The place of this moment in a trace.

use sallyport_contract::TraceParent;
use tracing::Span;
use tracing_subscriber::{
    Registry,
    registry::{LookupSpan, SpanRef},
};

use crate::span::RunningSpan;

/// The trace of this moment with its innermost span, to pass it on. `None` without telemetry.
pub fn current_trace() -> Option<TraceParent> {
    let place = Span::current().with_subscriber(|(id, subscriber)| {
        subscriber.downcast_ref::<Registry>()?.span(id).and_then(nearest_place)
    });
    place.flatten()
}

/// The place of a span, or of the nearest one around it that is sent.
pub(crate) fn nearest_place<'a, R: LookupSpan<'a>>(span: SpanRef<'a, R>) -> Option<TraceParent> {
    span.scope().find_map(|span| span.extensions().get::<RunningSpan>().map(|open| open.place))
}
