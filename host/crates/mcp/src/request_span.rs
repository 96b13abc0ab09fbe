//! The span of a client's request, in the trace of its caller.

use std::future::Future;

use rmcp::{RoleServer, service::RequestContext};
use sallyport_contract::{Outcome, ToolId, TraceParent};
use tracing::{
    Instrument as _, Span,
    field::{self, Empty},
    info_span,
};

/// The word for a tool that answered with an error, as the conventions have it.
const TOOL_ERROR: &str = "tool_error";

/// Answers a request inside of its span. A method is one of ours, never a text of the client.
pub(crate) fn in_request_span<T>(
    method: &'static str,
    context: &RequestContext<RoleServer>,
    answer: impl Future<Output = T>,
) -> impl Future<Output = T> {
    let caller = context.meta.get_traceparent().and_then(|text| text.parse::<TraceParent>().ok());
    let span = info_span!(
        "mcp_request",
        method,
        protocol = context.protocol_version().map(field::display),
        traceparent = caller.map(field::display),
        tool = Empty,
        error = Empty,
    );
    answer.instrument(span)
}

/// Records in the request's span which tool it calls.
pub(crate) fn record_tool(tool: &ToolId) {
    Span::current().record("tool", field::display(tool));
}

/// Records in the request's span how its call ended.
pub(crate) fn record_end(outcome: &Outcome) {
    if !matches!(outcome, Outcome::Completed(_)) {
        Span::current().record("error", TOOL_ERROR);
    }
}
