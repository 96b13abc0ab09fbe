//! A home is read and switched with one token of the whole installation, against a server that
//! answers as the real one does.

use serde_json::{Value, json};

use super::policy_of;
use crate::support::{Home, Response, Server, home::repository, server::Request};

const TOKEN: &str = "a-long-lived-token-zq47";

/// Answers as the real service does: plain text for what it does not understand.
fn answer(request: &Request) -> Response {
    let plain =
        |status, text: &str| Response::with(status, &[("content-type", "text/plain")], text);
    let light = json!({ "entity_id": "light.kitchen", "state": "on", "attributes": {} });
    if request.header("authorization") != Some(&format!("Bearer {TOKEN}")) {
        return plain(401, "401: Unauthorized");
    }
    match (request.method.as_str(), request.target.as_str()) {
        ("GET", "/api/states") => Response::ok(&json!([light]).to_string()),
        ("GET", "/api/states/light.kitchen") => Response::ok(&light.to_string()),
        ("GET", _) => {
            let headers = [("content-type", "application/json")];
            Response::with(404, &headers, r#"{"message": "Entity not found."}"#)
        }
        ("POST", "/api/services/light/turn_on" | "/api/services/lock/unlock") => {
            match serde_json::from_str::<Value>(&request.body) {
                Ok(body) if body["entity_id"].is_string() => Response::ok("[]"),
                _ => plain(400, "400: Bad Request"),
            }
        }
        ("POST", "/api/services/light/turn_off") => plain(500, "500: Internal Server Error"),
        ("POST", _) => plain(400, "400: Bad Request"),
        _ => plain(405, "405: Method Not Allowed"),
    }
}

fn home_of(server: &Server, token: &str) -> Home {
    let url = server.url();
    let path = repository().join("plugins-src/definitions/home-assistant.json");
    let requests = ["GET /api/states", "GET /api/states/*", "POST /api/services/*/*"];
    Home::new()
        .file("plugins/home-assistant.json", std::fs::read(path).unwrap())
        .policy(policy_of("home-assistant", &url, &requests))
        .env("HOME_ASSISTANT_URL", &url)
        .env("HOME_ASSISTANT_TOKEN", token)
}

#[test]
fn entities_states_and_services_need_no_sign_in() {
    let server = Server::start(answer);
    let home = home_of(&server, TOKEN);
    let kitchen = json!({ "entity_id": "light.kitchen" });
    let service = |domain: &str, service: &str| json!({ "domain": domain, "service": service, "entity_id": format!("{domain}.kitchen") });
    for (tool, arguments, code, want) in [
        ("list_entities", json!({}), 0, "light.kitchen"),
        ("get_state", kitchen, 0, "light.kitchen is on"),
        ("get_state", json!({ "entity_id": "light.attic" }), 7, "no entity of this name"),
        ("get_state", json!({ "entity_id": "../config" }), 2, "entity_id"),
        ("call_service", service("light", "turn_on"), 0, "Called light.turn_on for light.kitchen"),
        ("call_service", service("light", "turn_off"), 7, "the service answered 500"),
        ("call_service", service("light", "sing"), 2, "the service answered 400"),
        ("call_service", service("lock", "unlock"), 6, "Call lock.unlock for lock.kitchen?"),
    ] {
        let (report, ended) = home.call(&format!("home-assistant.{tool}"), &arguments);
        assert!(report.to_string().contains(want), "{tool} {arguments}: {report}");
        assert_eq!(ended, code, "{tool} {arguments}: {report}");
        assert!(!report.to_string().contains("zq47"), "{report}");
    }
    let is_lock = |request: &Request| request.target.contains("lock");
    assert!(!server.seen().iter().any(is_lock), "nobody agreed to unlock");
    home.run(&["connection", "list"]).ended(0).hides(&["zq47"]);
}

#[test]
fn a_refused_token_and_a_missing_one_say_which_variable_to_set() {
    let server = Server::start(answer);
    let (report, code) = home_of(&server, "old").call("home-assistant.list_entities", &json!({}));
    assert_eq!(code, 7, "{report}");
    let kitchen = json!({ "domain": "light", "service": "turn_on", "entity_id": "light.kitchen" });
    let (report, _) = home_of(&server, "old").call("home-assistant.call_service", &kitchen);
    assert!(report.to_string().contains("HOME_ASSISTANT_TOKEN"), "{report}");
    let home = home_of(&server, "");
    home.run(&["plugin", "list"]).ended(0).answers(&["home-assistant", "HOME_ASSISTANT_TOKEN"]);
}
