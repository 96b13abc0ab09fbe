//! The catalog, against a server on the loopback interface.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

mod checks;
mod lists;
#[expect(dead_code, reason = "floods and streams are not needed here")]
#[path = "../openai/server.rs"]
mod server;

use sallyport_contract::Secret;
use sallyport_model::{ModelEndpoint, ProviderProtocol};

/// The key in these tests.
const KEY: &str = "sk-test-0123456789";

const JSON: &str = "content-type: application/json\r\n";

fn endpoint(protocol: ProviderProtocol, base_url: &str) -> ModelEndpoint {
    let key = Some(Secret::new(KEY));
    ModelEndpoint { key, stream: false, ..ModelEndpoint::new(protocol, base_url, "test-model") }
}
