//! Music is played by a component that never holds a token, against a server that answers as the
//! real service does.

use serde_json::{Value, json};

use super::{logins::connect_to, policy_of};
use crate::support::{Home, Response, home::repository, identity::IdentityServer};

const FOUND: &str = r#"{"tracks": {"items": [{"name": "Clair de Lune", "uri": "spotify:track:7",
    "artists": [{"name": "Claude Debussy"}]}]}}"#;
const NO_DEVICE: &str = r#"{"error": {"status": 404, "reason": "NO_ACTIVE_DEVICE",
    "message": "Player command failed: No active device found"}}"#;

/// The plugin with its sign-in and its service at the identity server.
fn connected() -> (IdentityServer, Home) {
    let identity = IdentityServer::start();
    let url = identity.server.url();
    let path = repository().join("plugins-src/spotify/spotify.json");
    let definition = std::fs::read_to_string(path)
        .unwrap()
        .replace("https://accounts.spotify.com/authorize", &format!("{url}/authorize"))
        .replace("https://accounts.spotify.com/api/token", &format!("{url}/token"))
        .replace("https://api.spotify.com/v1/me", &format!("{url}/profile"));
    let requests = ["GET /v1/search", "PUT /v1/me/player/play", "PUT /v1/me/player/pause"];
    let home = Home::new()
        .plugins(&["spotify"])
        .file("plugins/spotify/spotify.json", definition)
        .config(format!("[settings.spotify]\nspotify_url = \"{url}\"\n"))
        .policy(policy_of("spotify", &url, &requests))
        .env("SPOTIFY_CLIENT_ID", "the-client")
        .env("SALLYPORT_BROWSER", "none");
    identity.with(|state| state.is_public_client = true);
    connect_to("spotify", &home, &identity);
    (identity, home)
}

fn play(home: &Home, answers: Vec<Response>, identity: &IdentityServer) -> (Value, i32) {
    identity.with(|state| state.answers = answers);
    home.call("spotify.spotify_play", &json!({ "query": "Clair de Lune" }))
}

#[test]
fn music_is_found_played_and_named() {
    let (identity, home) = connected();
    let answers = vec![Response::ok(FOUND), Response::with(204, &[], "")];
    let (report, code) = play(&home, answers, &identity);
    assert_eq!((&report["outcome"], code), (&json!("completed"), 0), "{report}");
    assert_eq!(report["result"]["by"], "Claude Debussy", "{report}");
    let accepted = identity.with(|state| state.accepted.clone());
    let what: Vec<&str> = accepted.iter().map(|(what, _)| what.as_str()).collect();
    let search = "GET /v1/search?q=Clair%20de%20Lune&type=track&limit=5";
    assert_eq!(what, [search, "PUT /v1/me/player/play"]);
    assert_eq!(accepted[1].1, r#"{"uris":["spotify:track:7"]}"#);
}

#[test]
fn a_service_that_does_not_play_says_what_to_do() {
    let (identity, home) = connected();
    let answers = vec![Response::ok(FOUND), Response::with(404, &[], NO_DEVICE)];
    let (report, code) = play(&home, answers, &identity);
    assert_eq!(code, 7, "{report}");
    assert!(report.to_string().contains("Open Spotify on a device"), "{report}");
    // The token has ended: it is refreshed once for both requests.
    identity.with(|state| state.access.clear());
    let answers = vec![Response::ok(FOUND), Response::with(204, &[], "")];
    let (report, code) = play(&home, answers, &identity);
    assert_eq!((&report["outcome"], code), (&json!("completed"), 0), "{report}");
    assert_eq!(identity.with(|state| state.refreshes), 1);
}
