//! The capabilities that the plugin contract adds to WASI, one file each: the host's side of an
//! interface in `wit/`, implemented on the part of [`crate::guest::Guest`] that it serves.

pub(crate) mod call_counters;
mod commands;
mod config;
mod deltas;
mod inbox;
mod input;
mod log;
mod monotonic_clock;
mod notify;
mod open_url;
mod packages;
mod progress;
mod render;
pub(crate) mod schedule;
mod secrets;
mod state;
pub(crate) mod stdio;

use serde_json::json;
use wasmtime::component::{HasSelf, Linker};
use wasmtime_wasi::runtime::spawn_blocking;

use crate::{bindings::v0_1::sallyport::plugin as wit, guest::Guest, run_context::RunContext};

/// Links every interface of `wit/`. A guest without the grant for an interface can still import it;
/// its calls are refused.
pub(crate) fn link_capabilities(linker: &mut Linker<Guest>) -> wasmtime::Result<()> {
    type Own = HasSelf<Guest>;
    wit::commands::add_to_linker::<_, Own>(linker, |guest| guest)?;
    wit::config::add_to_linker::<_, Own>(linker, |guest| guest)?;
    wit::deltas::add_to_linker::<_, Own>(linker, |guest| guest)?;
    wit::inbox::add_to_linker::<_, Own>(linker, |guest| guest)?;
    wit::log::add_to_linker::<_, Own>(linker, |guest| guest)?;
    wit::notify::add_to_linker::<_, Own>(linker, |guest| guest)?;
    wit::open_url::add_to_linker::<_, Own>(linker, |guest| guest)?;
    wit::packages::add_to_linker::<_, Own>(linker, |guest| guest)?;
    wit::progress::add_to_linker::<_, Own>(linker, |guest| guest)?;
    wit::render::add_to_linker::<_, Own>(linker, |guest| guest)?;
    wit::schedule::add_to_linker::<_, Own>(linker, |guest| guest)?;
    wit::secrets::add_to_linker::<_, Own>(linker, |guest| guest)?;
    wit::state::add_to_linker::<_, Own>(linker, |guest| guest)?;
    wit::types::add_to_linker::<_, Own>(linker, |guest| guest)
}

/// Longest excerpt of a guest's text in a record, in bytes.
const EXCERPT_BYTES_MAX: usize = 100;

/// A guest's text for a record: quoted, on one line, cut to the limit and without secrets. Secrets
/// are removed before the cut, so that no part of one is left.
fn quote_for_record(run_context: &RunContext, text: &str) -> String {
    let redactor = run_context.authorizer().redactor();
    let text = redactor.redact_text(text);
    let shown = &text[..text.floor_char_boundary(EXCERPT_BYTES_MAX)];
    let dots = if shown.len() < text.len() { "…" } else { "" };
    format!("{shown:?}{dots}")
}

/// Runs blocking work on another thread. Work that has not begun is dropped with the call.
async fn run_blocking<R: Send + 'static>(work: impl FnOnce() -> R + Send + 'static) -> R {
    spawn_blocking(work).await
}

/// The message for a guest when a part of the host fails. The details go to the log.
fn unavailable_message(what: &str) -> String {
    format!("the {what} cannot be reached just now")
}

/// The `other` case of an error: an object with a message.
fn other_case_json(message: &str) -> String {
    json!({ "message": message }).to_string()
}
