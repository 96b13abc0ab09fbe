//! Models behind Ollama's `/api/chat`, streamed or whole.
//!
//! A stream contains one JSON object per line. Calls arrive whole; results are matched to them by
//! name and order.
//!
//! Suggested reading order: `request`, `reply`.

mod reply;
mod request;

pub(crate) use self::request::OllamaFormat;
