//! Connections over the service: who begins a sign-in finishes it, once, and only for themselves.

use serde_json::{Value, json};

use super::{HttpReply, ServiceProgram, bearer, token};
use crate::{
    connections::logins::{home_of, location},
    support::identity::IdentityServer,
};

const MARK: &str = "Sallyport-Console: 1\r\n";

/// What a browser sends when another site sends it back.
const RETURNING: &str =
    "Accept: text/html\r\nSec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\n";

/// Changes the address that a browser comes back to.
type AddressChange<'c> = &'c dyn Fn(&str) -> String;

const CONNECT: &str = "/v1/connections/service/connect";
const CALL: &str = "/v1/tools/service.list_items/call";

/// The first cookie of a reply, as a browser sends it back.
#[track_caller]
fn cookie(reply: &HttpReply) -> String {
    let line = reply.cookies.first().unwrap_or_else(|| panic!("no cookie in {reply:#?}"));
    line.split(';').next().unwrap().to_owned()
}

/// Logs in to the console, and returns the lines of its requests.
#[track_caller]
fn log_in(service: &ServiceProgram, token: &str) -> String {
    let body = json!({ "token": token }).to_string();
    let reply = service.request("POST", "/console/login", MARK, &body).has(200);
    format!("Cookie: {}\r\n{MARK}Sec-Fetch-Site: same-origin\r\n", cookie(&reply))
}

/// A sign-in that has begun: the path that the service of the account sends the browser to, and the
/// cookie of the browser, if one began it.
struct Begun {
    path: String,
    cookie: String,
}

#[track_caller]
fn begin(service: &ServiceProgram, identity: &IdentityServer, lines: &str) -> Begun {
    let reply = service.request("POST", CONNECT, lines, "").has(200);
    let address = reply.json()["url"].as_str().unwrap().to_owned();
    let (authority, path) = location(identity, &address);
    assert_eq!(authority, service.address);
    assert!(path.starts_with("/oauth/callback/service?"), "{path}");
    let cookie = reply.cookies.first().map_or_else(String::new, |_| cookie(&reply));
    Begun { path, cookie }
}

/// The browser comes back.
fn come_back(service: &ServiceProgram, cookie: &str, path: &str) -> HttpReply {
    service.request("GET", path, &format!("Cookie: {cookie}\r\n{RETURNING}"), "")
}

#[track_caller]
fn connection(service: &ServiceProgram, token: &str) -> Value {
    let listed = service.get(token, "/v1/connections");
    let [connection] = listed["connections"].as_array().unwrap().as_slice() else {
        panic!("{listed}")
    };
    connection.clone()
}

#[test]
fn a_browser_connects_an_account_for_its_own_user_alone() {
    let identity = IdentityServer::start();
    let home = home_of(&identity);
    let (ann, ben) = (token(&home, "ann", "user"), token(&home, "ben", "operator"));
    let service = ServiceProgram::start(&home);
    let before = connection(&service, &ann);
    assert_eq!(before["status"], "disconnected");
    assert_eq!(before["required_scopes"], json!(["read", "write"]));
    let lines = log_in(&service, &ann);
    let begun = begin(&service, &identity, &lines);
    let back = come_back(&service, &begun.cookie, &begun.path).has(303);
    assert!(back.head.contains("location: /console#/connections\r\n"), "{back:#?}");
    assert!(back.cookies[0].ends_with("; Max-Age=0"), "{back:#?}");

    let after = connection(&service, &ann);
    assert_eq!(
        (&after["status"], &after["account"]),
        (&json!("connected"), &json!("ann@example.com"))
    );
    assert_eq!(after["scopes"], json!(["read", "write"]));
    let report = service.post(&ann, CALL, &json!({})).has(200).json();
    assert_eq!(report["outcome"], "completed", "{report}");
    // For others it does not exist.
    assert_eq!(connection(&service, &ben)["status"], "disconnected");
    let refused = service.post(&ben, CALL, &json!({})).has(401);
    assert_eq!(refused.problem(), "connection-required");
    let detail = refused.json()["detail"].as_str().unwrap().to_owned();
    assert!(detail.contains("on the page Connections of the console"), "{detail}");
    service.ask(&ben, "POST", "/v1/connections/service/disconnect", "").has(404);
    service.ask(&ann, "POST", "/v1/connections/service/disconnect", "").has(204);
    assert_eq!(connection(&service, &ann)["status"], "disconnected");
    assert_eq!(service.post(&ann, CALL, &json!({})).has(401).problem(), "connection-required");
    for path in ["/v1/connections/nope/connect", "/v1/connections/a%2Fb/connect"] {
        assert_eq!(service.ask(&ann, "POST", path, "").has(404).problem(), "not-found");
    }
    identity.with(|state| assert!(state.problems.is_empty(), "{:?}", state.problems));
}

#[test]
fn a_program_finishes_with_the_token_that_it_began_with() {
    let identity = IdentityServer::start();
    let home = home_of(&identity);
    let (ann, ben) = (token(&home, "ann", "user"), token(&home, "ben", "user"));
    let service = ServiceProgram::start(&home);
    let begun = begin(&service, &identity, &bearer(&ann));
    assert!(begun.cookie.is_empty(), "a program has no cookies");
    // Neither a browser that was made to open the address, nor another user.
    let page = come_back(&service, "a=b", &begun.path).has(403);
    assert!(page.body.contains("give the program the address of this page"), "{page:#?}");
    assert_eq!(service.ask(&ben, "GET", &begun.path, "").has(403).problem(), "sign-in-refused");
    service.ask("wrong", "GET", &begun.path, "").has(401);
    let finished = service.ask(&ann, "GET", &begun.path, "").has(200).json();
    assert_eq!(finished["plugin"], "service");
    assert_eq!(service.ask(&ann, "GET", &begun.path, "").has(400).problem(), "bad-request");
    assert_eq!(connection(&service, &ann)["status"], "connected");
    assert_eq!(connection(&service, &ben)["status"], "disconnected");
}

#[test]
fn an_answer_counts_once_for_the_browser_and_the_log_in_that_began() {
    let identity = IdentityServer::start();
    let home = home_of(&identity);
    let (ann, ben) = (token(&home, "ann", "user"), token(&home, "ben", "user"));
    let service = ServiceProgram::start(&home);
    let (ours, theirs) = (log_in(&service, &ann), log_in(&service, &ben));
    let mine = begin(&service, &identity, &ours);
    let foreign = begin(&service, &identity, &theirs);
    come_back(&service, &foreign.cookie, &mine.path).has(403);
    come_back(&service, "a=b", &mine.path).has(403);
    service.ask(&ann, "GET", &mine.path, "").has(403);
    let elsewhere = mine.path.replace("/callback/service", "/callback/other");
    come_back(&service, &mine.cookie, &elsewhere).has(400);
    come_back(&service, &mine.cookie, &mine.path).has(303);
    come_back(&service, &mine.cookie, &mine.path).has(400);

    let rows: [(AddressChange<'_>, &str); 5] = [
        (&|path| path.replace("state=", "state=x"), "never begun here"),
        (&|path| format!("{path}&state=x"), "is not understood"),
        (&|path| format!("{path}&error=x"), "is not understood"),
        (&|path| path.split('?').next().unwrap().to_owned(), "is not understood"),
        (
            &|path| path.replace("code=", "error=access_denied&error_description=%3Cb%3Eno&x="),
            "The sign-in was refused: &lt;b&gt;no",
        ),
    ];
    for (change, words) in rows {
        let begun = begin(&service, &identity, &ours);
        let page = come_back(&service, &begun.cookie, &change(&begun.path)).has(400);
        assert!(page.body.contains(words), "no {words:?} in {page:#?}");
    }
    // The log-in ends while its user signs in.
    let begun = begin(&service, &identity, &theirs);
    service.request("POST", "/console/logout", &theirs, "").has(204);
    let page = come_back(&service, &begun.cookie, &begun.path).has(403);
    assert!(page.body.contains("has ended"), "{page:#?}");
    assert_eq!(connection(&service, &ben)["status"], "disconnected");
}

#[test]
fn arguments_that_do_not_fit_are_refused_with_all_errors() {
    let identity = IdentityServer::start();
    let home = home_of(&identity).plugins(&["clock"]);
    let ann = token(&home, "ann", "user");
    let service = ServiceProgram::start(&home);
    let body = json!({ "arguments": { "timezone": 5, "nope": true } });
    let refused = service.post(&ann, "/v1/tools/clock.get_time/call", &body).has(400);
    assert_eq!(refused.problem(), "invalid-arguments");
    let check = service.post(&ann, "/v1/tools/clock.get_time/check", &body).has(200).json();
    let errors = check["errors"].as_array().unwrap();
    assert!(errors.len() == 2, "{check}");
    assert_eq!(&refused.json()["errors"], &check["errors"]);
}
