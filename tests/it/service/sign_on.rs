//! Logging in at an identity server: who gets in as whom, and which answers are refused.

use serde_json::{Value, json};

use super::{HttpReply, ServiceProgram, asking_model, home, talking_model, token};
use crate::support::{
    Home, OpenAi, Response,
    openid::{CLIENT_SECRET, OpenIdServer},
};

/// The header that the pages of the console send.
pub(super) const MARK: &str = "Sallyport-Console: 1\r\n";

/// What a browser sends when another site sends it back.
const RETURNING: &str = "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\n";

pub(super) const ROLES: &str =
    "roles = { staff = \"user\", leads = \"approver\", admins = \"operator\" }";

/// The line with the password.
const PASSWORD: &str = "client_secret = \"${LOGIN_PASSWORD}\"";

/// Fewer failures than send an address away.
pub(super) const FAILURES: usize = 8;

/// Changes the query that a browser comes back with.
type QueryChange<'c> = &'c dyn Fn(&str) -> String;

/// A log-in that has begun: the page of the identity server, and the browser's cookie.
pub(super) struct Begun {
    pub(super) page: String,
    pub(super) cookie: String,
}

pub(super) fn home_at(identity: &OpenIdServer, model: &OpenAi, more: &str) -> Home {
    home(model).config(identity.table(more)).env("LOGIN_PASSWORD", CLIENT_SECRET)
}

fn cookie(reply: &HttpReply, name: &str) -> String {
    let lines = reply.cookies.iter().filter(|line| line.contains(name));
    let values: Vec<_> = lines.map(|line| line.split(';').next().unwrap().to_owned()).collect();
    let [value] = values.as_slice() else { panic!("{name}: {reply:#?}") };
    value.clone()
}

#[track_caller]
pub(super) fn begin(service: &ServiceProgram) -> Begun {
    let reply = service.request("POST", "/console/sign-on", MARK, "").has(200);
    let page = reply.json()["url"].as_str().unwrap().to_owned();
    Begun { page, cookie: cookie(&reply, "sallyport-sign-on-") }
}

/// The browser comes back with a query.
pub(super) fn come_back(service: &ServiceProgram, cookie: &str, query: &str) -> HttpReply {
    let lines = format!("Cookie: {cookie}\r\n{RETURNING}");
    service.request("GET", &format!("/console/callback?{query}"), &lines, "")
}

/// Logs in, and returns what the browser gets when it is back.
pub(super) fn sign_on(service: &ServiceProgram, identity: &OpenIdServer) -> HttpReply {
    let Begun { page, cookie } = begin(service);
    come_back(service, &cookie, &identity.log_in(&page))
}

/// Logs in, and returns the lines of the requests that follow.
#[track_caller]
pub(super) fn signed_on(service: &ServiceProgram, identity: &OpenIdServer) -> String {
    let reply = sign_on(service, identity).has(303);
    assert!(reply.head.contains("location: /console\r\n"), "{reply:#?}");
    let cookie = cookie(&reply, "sallyport-console-");
    format!("Cookie: {cookie}\r\n{MARK}Sec-Fetch-Site: same-origin\r\n")
}

fn user(service: &ServiceProgram, lines: &str) -> HttpReply {
    service.request("GET", "/console/user", lines, "")
}

#[track_caller]
pub(super) fn refused(reply: HttpReply, status: u16, words: &str) {
    let reply = reply.has(status);
    assert!(reply.body.contains(words), "no {words:?} in {reply:#?}");
    assert!(reply.head.contains("content-type: text/html"), "{reply:#?}");
    assert!(reply.head.contains("default-src 'none'; script-src 'self'"), "{reply:#?}");
    assert!(!reply.head.contains("location:") && reply.cookies.is_empty(), "{reply:#?}");
}

#[test]
fn a_user_of_the_identity_server_is_one_of_their_own() {
    let (identity, model) = (OpenIdServer::start(), asking_model());
    let home = home_at(&identity, &model, ROLES);
    let (ann, lea) = (token(&home, "ann", "operator"), token(&home, "lea", "approver"));
    let service = ServiceProgram::start(&home);
    let offer = service.request("GET", "/console/sign-on", "", "").has(200).json();
    assert_eq!(offer, json!({ "server": "127.0.0.1" }));
    let begun = service.request("POST", "/console/sign-on", MARK, "").has(200);
    let [line] = begun.cookies.as_slice() else { panic!("{begun:#?}") };
    assert!(line.ends_with("; Path=/; HttpOnly; SameSite=Lax"), "{line}");
    let page = begun.json()["url"].as_str().unwrap().to_owned();
    assert!(page.starts_with(&format!("{}/authorize?", identity.server.url())), "{page}");
    let reply = come_back(&service, &cookie(&begun, "sign-on"), &identity.log_in(&page)).has(303);
    let line = reply.cookies.iter().find(|line| line.contains("sallyport-console-")).unwrap();
    assert!(line.ends_with("; Path=/; HttpOnly; SameSite=Strict"), "{line}");
    let line = reply.cookies.iter().find(|line| line.contains("sallyport-sign-on-")).unwrap();
    assert!(line.ends_with("; Max-Age=0"), "{line}");

    let lines = signed_on(&service, &identity);
    let shown = user(&service, &lines).has(200).json();
    assert_eq!((&shown["name"], &shown["role"]), (&json!("sso:ann"), &json!("user")));
    service.request("GET", "/v1/grants", &lines, "").has(403);
    // What belongs to the user of a token with the same name is another's.
    let others = service.open_session(&ann);
    service.request("GET", &format!("/v1/sessions/{others}"), &lines, "").has(404);
    let opened = service.request("POST", "/v1/sessions", &lines, "{}").has(201).json();
    let own = opened["id"].as_str().unwrap();
    service.ask(&ann, "GET", &format!("/v1/sessions/{own}"), "").has(404);
    let command = json!({ "type": "submit-input", "input": { "text": "echo" } }).to_string();
    service.request("POST", &format!("/v1/sessions/{own}/commands"), &lines, &command).has(202);
    let question = service.only_question(&lea);
    assert_eq!(question["user"], "sso:ann", "those who approve see it");

    service.request("POST", "/console/logout", &lines, "").has(204);
    user(&service, &lines).has(401);
    assert_eq!(service.only_question(&lea)["id"], question["id"], "it outlives the log-in");
    identity.with(|state| assert!(state.problems.is_empty(), "{:?}", state.problems));
}

#[test]
fn groups_give_roles_and_none_gives_none() {
    let (identity, model) = (OpenIdServer::start(), talking_model());
    let more = format!("user_claim = \"preferred_username\"\nshare_users = true\n{ROLES}");
    let home = home_at(&identity, &model, &more);
    let bea = token(&home, "bea", "user");
    let service = ServiceProgram::start(&home);
    let named = |name: &str, groups: Value| {
        let claims = json!({ "preferred_username": name, "groups": groups });
        identity.with(|state| state.claims = claims.as_object().unwrap().clone());
    };
    for (groups, role) in [
        (json!(["staff"]), "user"),
        (json!("leads"), "approver"),
        (json!(["staff", "admins", "others"]), "operator"),
    ] {
        named("bea", groups.clone());
        let shown = user(&service, &signed_on(&service, &identity)).json();
        assert_eq!((&shown["name"], &shown["role"]), (&json!("bea"), &json!(role)), "{groups}");
    }
    // The operator wants that both are the same user.
    let session = service.open_session(&bea);
    let lines = signed_on(&service, &identity);
    service.request("GET", &format!("/v1/sessions/{session}"), &lines, "").has(200);
    for (name, groups, words) in [
        ("bea", json!([]), "has no role here"),
        ("bea", json!(["Staff", "staf"]), "has no role here"),
        ("bea", Value::Null, "has no role here"),
        ("local", json!(["staff"]), "is the user of the terminal"),
        ("a b", json!(["staff"]), "has other signs"),
    ] {
        named(name, groups);
        refused(sign_on(&service, &identity), 403, words);
    }
}

#[test]
fn what_only_the_details_of_a_user_say_is_asked_for() {
    let (identity, model) = (OpenIdServer::start(), talking_model());
    let more = format!("user_claim = \"email\"\n{ROLES}");
    let home = home_at(&identity, &model, &more);
    let service = ServiceProgram::start(&home);
    identity.with(|state| drop(state.claims.insert("groups".to_owned(), Value::Null)));
    let ann = json!({ "sub": "ann", "email": "ann@team.example", "email_verified": true,
                      "groups": ["leads"] });
    identity.with(|state| state.user_info = ann.clone());
    let shown = user(&service, &signed_on(&service, &identity)).json();
    assert_eq!(shown["name"], "sso:ann@team.example");
    assert_eq!(shown["role"], "approver");
    for (name, value, status, words) in [
        ("sub", json!("otto"), 401, "details are of another user"),
        ("sub", Value::Null, 401, "details are of another user"),
        ("email_verified", json!(false), 403, "is not verified"),
        ("email", Value::Null, 403, "is missing"),
        ("groups", Value::Null, 403, "has no role"),
    ] {
        let mut other = ann.clone();
        other[name] = value;
        other.as_object_mut().unwrap().retain(|_, value| !value.is_null());
        identity.with(|state| state.user_info = other);
        refused(sign_on(&service, &identity), status, words);
    }
    identity.with(|state| drop(state.answers.insert("/userinfo", Response::ok("[]"))));
    refused(sign_on(&service, &identity), 503, "to the question for the user");
}

#[test]
fn an_answer_counts_once_for_the_browser_that_began() {
    let (identity, model) = (OpenIdServer::start(), talking_model());
    let home = home_at(&identity, &model, ROLES);
    let service = ServiceProgram::start(&home);
    let (ours, theirs) = (begin(&service), begin(&service));
    let answer = identity.log_in(&ours.page);
    refused(come_back(&service, &theirs.cookie, &answer), 400, "Another browser");
    refused(come_back(&service, "a=b", &answer), 400, "Another browser");
    come_back(&service, &ours.cookie, &answer).has(303);
    refused(come_back(&service, &ours.cookie, &answer), 400, "is over, or was never begun");
    // A code of another log-in is one of another challenge.
    let code = answer.split('&').next().unwrap();
    let state = identity.log_in(&theirs.page);
    let state = state.split_once('&').unwrap().1;
    let reply = come_back(&service, &theirs.cookie, &format!("{code}&{state}"));
    refused(reply, 401, "The identity server refused: invalid_grant");
    identity.with(|state| assert!(state.problems.is_empty(), "{:?}", state.problems));

    let service = ServiceProgram::start(&home);
    let other_issuer = |query: &str| query.replace("iss=http", "iss=https");
    let rows: [(QueryChange<'_>, u16, &str); 8] = [
        (&other_issuer, 401, "not from the identity server"),
        (&|query| query.split("&iss").next().unwrap().to_owned(), 401, "not from the identity"),
        (&|query| format!("{query}&code=x"), 400, "is not understood"),
        (&|query| format!("{query}&state=x"), 400, "is not understood"),
        (&|query| format!("{query}&error=x"), 400, "is not understood"),
        (&|query| query.replace("state=", "state=x"), 400, "never begun here"),
        (
            &|query| {
                query.replace(
                    "code=",
                    "error=access_denied&error_description=%3Cb%3Eno%0A%E2%80%AE&x=",
                )
            },
            401,
            "refused: access_denied: &lt;b&gt;no",
        ),
        (&|_| String::new(), 400, "is not understood"),
    ];
    for (change, status, words) in rows {
        let begun = begin(&service);
        let query = change(&identity.log_in(&begun.page));
        refused(come_back(&service, &begun.cookie, &query), status, words);
    }
}

#[test]
fn nobody_is_sent_elsewhere() {
    let (identity, model) = (OpenIdServer::start(), talking_model());
    let service = ServiceProgram::start(&home_at(&identity, &model, ROLES));
    for more in [
        "&redirect=https://evil.example",
        "&return_to=//evil.example",
        "&redirect_uri=https%3A%2F%2Fevil.example%2F",
        "&next=javascript:alert(1)#x",
    ] {
        let begun = begin(&service);
        let query = identity.log_in(&begun.page) + more;
        let reply = come_back(&service, &begun.cookie, &query).has(303);
        assert!(reply.head.contains("location: /console\r\n"), "{reply:#?}");
    }
    // Neither the body nor a header of a log-in chooses where the identity server sends the browser.
    for lines in ["X-Forwarded-Host: evil.example\r\n", "Forwarded: host=evil.example\r\n"] {
        let lines = format!("{MARK}{lines}");
        let body = r#"{"redirect_uri":"https://evil.example"}"#;
        let page = service.request("POST", "/console/sign-on?redirect=//evil", &lines, body);
        let page = page.has(200).json()["url"].as_str().unwrap().to_owned();
        let want = format!("redirect_uri=http%3A%2F%2F{}", service.address.replace(':', "%3A"));
        assert!(page.contains(&format!("{want}%2Fconsole%2Fcallback")), "{page}");
        assert!(!page.contains("evil"), "{page}");
    }
    for (lines, status) in [
        ("", 403),
        ("Sallyport-Console: 1\r\nSec-Fetch-Site: cross-site\r\n", 403),
        ("Sallyport-Console: 1\r\nOrigin: https://evil.example\r\n", 403),
    ] {
        service.request("POST", "/console/sign-on", lines, "").has(status);
    }
    service.request("GET", "/console/callback", "Host: evil.example\r\n", "").has(400);
}

#[test]
fn an_address_that_guesses_states_is_sent_away() {
    let (identity, model) = (OpenIdServer::start(), talking_model());
    let home = home_at(&identity, &model, ROLES);
    let ann = token(&home, "ann", "user");
    let service = ServiceProgram::start(&home);
    let begun = begin(&service);
    let answer = identity.log_in(&begun.page);
    let statuses: Vec<u16> =
        (0..12).map(|_| come_back(&service, &begun.cookie, "state=x&code=y").status).collect();
    assert_eq!(statuses, [vec![400; 10], vec![429; 2]].concat());
    let refused = come_back(&service, &begun.cookie, &answer).has(429);
    assert!(refused.head.contains("retry-after: 60"), "{refused:#?}");
    service.request("POST", "/console/sign-on", MARK, "").has(429);
    let body = json!({ "token": ann }).to_string();
    service.request("POST", "/console/login", MARK, &body).has(429);
    service.get(&ann, "/v1/usage");
}

#[test]
fn a_log_in_ends_at_its_time_and_a_token_of_the_identity_server_is_none_of_ours() {
    let (identity, model) = (OpenIdServer::start(), talking_model());
    let home = home_at(&identity, &model, &format!("time = \"1ms\"\n{ROLES}"));
    let service = ServiceProgram::start(&home);
    let lines = signed_on(&service, &identity);
    user(&service, &lines).has(401);
    for secret in identity.with(|state| state.secrets.clone()) {
        service.ask(&secret, "GET", "/v1/usage", "").has(401);
    }
}

#[test]
fn a_blocked_user_is_out_at_once_until_they_are_let_in_again() {
    let (identity, model) = (OpenIdServer::start(), talking_model());
    let home = home_at(&identity, &model, ROLES);
    let ann = token(&home, "ann", "user");
    let service = ServiceProgram::start(&home);
    let lines = signed_on(&service, &identity);
    let opened = service.request("POST", "/v1/sessions", &lines, "{}").has(201).json();
    let mut events = service.stream("", opened["id"].as_str().unwrap(), &lines);
    events.until("retry:");
    home.run(&["serve", "user", "block", "sso:ann"]).ended(0).answers(&["Blocked sso:ann."]);
    home.run(&["serve", "user", "list"]).ended(0).answers(&["sso:ann"]);
    user(&service, &lines).has(401);
    assert!(events.rest().contains("{\"reason\":\"token-ended\"}"));
    refused(sign_on(&service, &identity), 403, "sso:ann may not log in here");
    service.get(&ann, "/v1/usage");
    home.run(&["serve", "user", "block", "ann"]).ended(0);
    service.ask(&ann, "GET", "/v1/usage", "").has(401);
    for name in ["ann", "sso:ann"] {
        home.run(&["serve", "user", "unblock", name]).ended(0);
    }
    service.get(&ann, "/v1/usage");
    user(&service, &signed_on(&service, &identity)).has(200);
    home.run(&["serve", "user", "unblock", "ann"]).ended(2).remarks(&["is not blocked"]);
    home.run(&["serve", "user", "block", "a b"]).ended(2).remarks(&["not the name of a user"]);
}

#[test]
fn behind_a_proxy_the_cookies_are_secure_and_the_origin_is_the_public_one() {
    let (identity, model) = (OpenIdServer::start(), talking_model());
    let home = home_at(&identity, &model, ROLES);
    let service = ServiceProgram::start_with(&home, &["--origin", "https://team.example"]);
    let own = format!("{MARK}Origin: http://{}\r\n", service.address);
    let wrong = service.request("POST", "/console/sign-on", &own, "").has(400);
    assert!(wrong.body.contains("log in at https://team.example/console"), "{wrong:#?}");
    let lines = format!("{MARK}Origin: https://team.example\r\n");
    let begun = service.request("POST", "/console/sign-on", &lines, "").has(200);
    let page = begun.json()["url"].as_str().unwrap().to_owned();
    assert!(
        page.contains("redirect_uri=https%3A%2F%2Fteam.example%2Fconsole%2Fcallback"),
        "{page}"
    );
    assert!(begun.cookies[0].starts_with("__Host-"), "{begun:#?}");
    let query = identity.log_in(&page);
    let entered = come_back(&service, &cookie(&begun, "sign-on"), &query).has(303);
    assert!(entered.cookies.iter().all(|line| line.starts_with("__Host-")), "{entered:#?}");
    assert!(entered.cookies.iter().all(|line| line.contains("; Secure")), "{entered:#?}");
}

#[test]
fn a_table_that_lets_nobody_in_stops_the_start() {
    let (identity, model) = (OpenIdServer::start(), talking_model());
    let with = |table: String| home(&model).config(table).env("LOGIN_PASSWORD", CLIENT_SECRET);
    let own = identity.server.url();
    let rows = [
        (identity.table(""), "no group has a role", "roles ="),
        (
            identity.table(ROLES).replace(&own, "http://id.example"),
            "begins with https://",
            "issuer",
        ),
        (
            identity.table(ROLES).replace("client_id = \"sallyport\"", "client_id = \" \""),
            "client_id is empty",
            "name",
        ),
        (
            identity.table(ROLES).replace(PASSWORD, "client_secret_file = \"keys/login\""),
            "is not an absolute path",
            "client_secret_file",
        ),
    ];
    for (table, message, hint) in rows {
        let ran = with(table).run(&["serve", "--listen", "127.0.0.1:0"]).ended(2);
        ran.remarks(&["nobody could log in by [login]", message, hint]).hides(&["4711"]);
    }
    let home = with(identity.table(ROLES));
    let ran = home.run(&["serve", "--listen", "0.0.0.0:0"]).ended(2);
    ran.remarks(&["[login] needs the address at which browsers reach", "--origin"]);
    let shown = home.run(&["config", "show"]).ended(0).hides(&["4711"]);
    shown.answers(&["login.issuer = ", "login.client_secret = ", "${LOGIN_PASSWORD}"]);
    let service = ServiceProgram::start(&home);
    let printed = service.running.behind("The console is at ");
    assert!(printed.ends_with("/console."), "no token was printed before: {printed}");
    service.request("GET", "/console/sign-on", "", "").has(200);
}

#[test]
fn without_a_table_there_is_no_sign_on() {
    let model = talking_model();
    let service = ServiceProgram::start(&home(&model));
    let offer = service.request("GET", "/console/sign-on", "", "").has(200).json();
    assert_eq!(offer, json!({ "server": null }));
    service.request("POST", "/console/sign-on", MARK, "").has(404);
    service.request("GET", "/console/callback?state=a&code=b", "", "").has(404);
}
