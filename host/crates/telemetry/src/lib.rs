//! Sends spans to an OpenTelemetry collector: turns, requests to models, calls of tools, requests.
//!
//! The other crates open spans of `tracing` and know nothing of this one. What leaves is decided in
//! one table, [`names`]: a span or a field that is not in it is not sent. A text that can come from
//! a plugin, a model or a caller passes the redactor, and without a redactor it is left out.
//!
//! Nothing waits for the collector. Finished spans go into a queue of a fixed length; a thread sends
//! them; what does not fit or cannot be sent is counted, and reported once.

mod message;
pub mod names;
mod span;
