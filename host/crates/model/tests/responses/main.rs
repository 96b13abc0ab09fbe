//! The adapter for OpenAI's `responses` against a scripted server on the loopback interface.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

mod answers;
#[path = "../openai/asking.rs"]
mod asking;
mod requests;
#[path = "../openai/server.rs"]
mod server;
mod streams;

use sallyport_model::{ModelEndpoint, ProviderProtocol};

use asking::{KEY, ask, hello};

fn settings(base_url: String, stream: bool) -> ModelEndpoint {
    asking::endpoint(ProviderProtocol::OpenAiResponses, base_url, stream)
}
