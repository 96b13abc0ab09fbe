//! Sessions that plugins attend: fed by listeners, shown by UIs, with a real browser at the end.

mod browser;
mod listeners;
mod uis;

use crate::support::{Home, client, client::Answer};

/// A home with plugins of the repository.
fn home(plugins: &[&str], policy: &str) -> Home {
    Home::new().plugins(plugins).policy(policy)
}

/// Sends JSON with a token.
fn post(authority: &str, path: &str, token: &str, body: &str) -> Answer {
    let bearer = format!("Bearer {token}");
    let headers = [("Authorization", bearer.as_str()), ("Content-Type", "application/json")];
    client::ask(authority, "POST", path, &headers, body)
}

/// Host and port of an address.
fn authority(url: &str) -> String {
    let rest = url.split_once("://").unwrap().1;
    rest.split(['/', '?']).next().unwrap().to_owned()
}

/// The token in an address.
fn token(url: &str) -> String {
    url.split_once("token=").unwrap().1.to_owned()
}
