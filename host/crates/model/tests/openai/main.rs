//! The OpenAI adapter against a scripted server on the loopback interface.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

mod asking;
mod door;
mod failures;
mod requests;
mod server;
mod streams;

use sallyport_model::{ModelEndpoint, ProviderProtocol};

use asking::{KEY, ask, hello};

fn settings(base_url: String, stream: bool) -> ModelEndpoint {
    asking::endpoint(ProviderProtocol::OpenAiChat, base_url, stream)
}
