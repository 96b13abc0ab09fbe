//! The OpenAI adapter against a server on the loopback that says exactly what a test wants.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

mod asking;
mod door;
mod failures;
mod requests;
mod server;
mod streams;

use sallyport_model::{Endpoint, Protocol};

use asking::{KEY, ask, hello};

fn settings(base_url: String, stream: bool) -> Endpoint {
    asking::endpoint(Protocol::OpenAiChat, base_url, stream)
}
