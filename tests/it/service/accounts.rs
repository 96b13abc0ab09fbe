//! Accounts: each user has their own, in one service.

use serde_json::json;

use super::{ServiceProgram, token};
use crate::{
    connections::logins::{connect, home_of},
    support::identity::IdentityServer,
};

/// The account is that of the user at the terminal, whom records call `local`.
#[test]
fn an_account_of_one_user_is_used_for_no_other() {
    let identity = IdentityServer::start();
    let home = home_of(&identity);
    connect(&home, &identity);
    let tokens = ["ann", "Local", "LOCAL"].map(|user| token(&home, user, "operator"));
    let own = token(&home, "local", "user");
    let service = ServiceProgram::start(&home);
    let call = |token: &str| service.post(token, "/v1/tools/service.list_items/call", &json!({}));
    for token in &tokens {
        assert_eq!(call(token).has(401).problem(), "connection-required");
    }
    let is_service = |target: &str| target.starts_with("/api/");
    assert!(!identity.server.seen().iter().any(|request| is_service(&request.target)));
    assert_eq!(call(&own).has(200).json()["outcome"], "completed");
}
