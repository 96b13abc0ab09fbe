//! The adapter for OpenAI's `responses` against a scripted server on the loopback interface.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

mod answers;
#[path = "../openai/asking.rs"]
mod asking;
mod requests;
#[path = "../openai/server.rs"]
mod server;
mod streams;

use sallyport_model::{Endpoint, Protocol};

use asking::{KEY, ask, hello};

fn settings(base_url: String, stream: bool) -> Endpoint {
    asking::endpoint(Protocol::OpenAiResponses, base_url, stream)
}
