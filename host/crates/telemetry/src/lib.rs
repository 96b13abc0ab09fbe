//! Sends spans, metrics and logs to an OpenTelemetry collector: turns, requests to models, calls of tools, requests.
//!
//! The other crates open spans of `tracing` and know nothing of this one. What leaves is decided in
//! one table, [`names`]: a span or a field that is not in it is not sent. A text that can come from
//! a plugin, a model or a caller passes the redactor, and without a redactor it is left out.
//!
//! Metrics are summed up from the same spans, and log records are made of them and of notices.
//!
//! Nothing waits for the collector. Finished spans go into a queue of a fixed length; a thread sends
//! them; what does not fit or cannot be sent is counted, and reported once.
//!
//! - [`TelemetryLayer`]: turns spans of `tracing` into those of the table.
//! - [`start`], [`finish`]: begin and end the export. Start reading here.
//! - [`log_notice`]: sends a notice of the program as a log record.
//! - [`current_trace`]: the trace of this moment, for whoever passes it on.

mod exporter;
mod layer;
mod logs;
mod losses;
mod message;
mod metrics;
pub mod names;
mod pipeline;
mod span;
mod trace;

pub use exporter::{Collector, CollectorError, WarnFunction};
pub use layer::{TelemetryLayer, own_span_interest, start};
pub use logs::NoticeLog;
pub use pipeline::{RedactFunction, TelemetryParts, finish, log_notice, lost_logs, lost_spans};
pub use trace::current_trace;
