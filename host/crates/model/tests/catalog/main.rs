//! The catalog, against a server on the loopback interface.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

mod checks;
mod lists;
#[expect(dead_code, reason = "floods and streams are not needed here")]
#[path = "../openai/server.rs"]
mod server;

use sallyport_contract::Secret;
use sallyport_model::{Endpoint, Protocol};

/// The key in these tests.
const KEY: &str = "sk-test-0123456789";

const JSON: &str = "content-type: application/json\r\n";

fn endpoint(protocol: Protocol, base_url: &str) -> Endpoint {
    let key = Some(Secret::new(KEY));
    Endpoint { key, stream: false, ..Endpoint::new(protocol, base_url, "test-model") }
}
