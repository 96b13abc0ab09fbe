//! The web console: who gets in, what their cookie may do, and what its pages are made of.

use serde_json::json;

use super::{HttpReply, ServiceProgram, home, talking_model, token};
use crate::support::Home;

/// The header that the pages of the console send.
const MARK: &str = "Sallyport-Console: 1\r\n";

/// The policy of every page and file.
const POLICY: &str = "content-security-policy: default-src 'none'; script-src 'self'; \
                      style-src 'self'; connect-src 'self'; img-src 'self' data:; \
                      form-action 'self'; frame-ancestors 'none'; base-uri 'none'\r\n";

fn log_in(service: &ServiceProgram, token: &str, lines: &str) -> HttpReply {
    let body = json!({ "token": token }).to_string();
    service.request("POST", "/console/login", lines, &body)
}

/// The name and the value of the cookie that a reply sets.
#[track_caller]
fn cookie(reply: &HttpReply) -> String {
    // The head is in lower case, and the value of a cookie is not, so it is read from the whole.
    let line = reply.cookies.first().unwrap_or_else(|| panic!("no cookie in {reply:#?}"));
    line.split(';').next().unwrap().to_owned()
}

#[track_caller]
fn logged_in(service: &ServiceProgram, token: &str) -> String {
    cookie(&log_in(service, token, MARK).has(200))
}

/// The head of a request of the console.
fn with_cookie(cookie: &str) -> String {
    format!("Cookie: {cookie}\r\n{MARK}Sec-Fetch-Site: same-origin\r\n")
}

fn remove_token(home: &Home, name: &str) {
    home.run(&["serve", "token", "remove", name]).ended(0);
}

#[test]
fn a_token_is_exchanged_for_a_cookie_that_is_not_the_token() {
    let model = talking_model();
    let home = home(&model);
    let ann = token(&home, "ann", "approver");
    let expired = ["serve", "token", "add", "old", "--role", "user", "--expires-in", "1ms"];
    let expired = home.run(&expired).ended(0).stdout.trim().to_owned();
    let service = ServiceProgram::start(&home);
    let reply = log_in(&service, &format!(" {ann}\n"), MARK).has(200);
    let user = reply.json();
    assert_eq!((&user["name"], &user["role"]), (&json!("ann"), &json!("approver")), "{user}");
    let [line] = reply.cookies.as_slice() else { panic!("{reply:#?}") };
    let port = service.address.rsplit_once(':').unwrap().1;
    assert!(line.starts_with(&format!("sallyport-console-{port}=")), "{line}");
    assert!(line.ends_with("; Path=/; HttpOnly; SameSite=Strict"), "{line}");
    assert!(!line.contains(&ann) && !reply.body.contains(&ann), "{reply:#?}");
    let over_tls = format!("{MARK}Origin: https://{}\r\n", service.address);
    let over_tls = log_in(&service, &ann, &over_tls).has(200);
    let [line] = over_tls.cookies.as_slice() else { panic!("{over_tls:#?}") };
    assert!(line.starts_with("__Host-") && line.ends_with("; Secure"), "{line}");
    for wrong in ["", "x", expired.as_str(), &ann.to_uppercase()] {
        let refused = log_in(&service, wrong, MARK).has(401);
        assert_eq!(refused.problem(), "unauthorized", "{wrong}");
        assert!(refused.cookies.is_empty(), "{refused:#?}");
    }
    for (body, status) in [("{}", 400), ("[]", 400), (r#"{"token":7}"#, 400), ("", 400)] {
        service.request("POST", "/console/login", MARK, body).has(status);
    }
    for (lines, status) in [
        ("".to_owned(), 403),
        (format!("{MARK}Origin: http://evil.example\r\n"), 403),
        (format!("{MARK}Sec-Fetch-Site: cross-site\r\n"), 403),
        (format!("{MARK}Sec-Fetch-Site: same-site\r\n"), 403),
    ] {
        let refused = log_in(&service, &ann, &lines).has(status);
        assert_eq!(refused.problem(), "foreign-origin", "{lines}");
    }
    service.request("GET", "/console/login", MARK, "").has(405);
}

#[test]
fn a_cookie_does_what_its_token_does_for_the_console_alone() {
    let model = talking_model();
    let home = home(&model);
    let ann = token(&home, "ann", "user");
    let service = ServiceProgram::start(&home);
    let cookie = format!("Cookie: {}\r\n", logged_in(&service, &ann));
    let (same, none) = ("Sec-Fetch-Site: same-origin\r\n", "Sec-Fetch-Site: none\r\n");
    let own_origin = format!("Origin: http://{}\r\n", service.address);
    let other_port = "Origin: http://127.0.0.1:1\r\n";
    // The lines, and the statuses of a read and of a change.
    let rows = [
        (vec![MARK, same], 200, 200),
        (vec![MARK, same, own_origin.as_str()], 200, 200),
        (vec![MARK], 200, 200),
        (vec![same], 200, 403),
        (vec![none], 200, 403),
        (vec![], 403, 403),
        (vec!["Sallyport-Console: 0\r\n"], 403, 403),
        (vec![MARK, "Sec-Fetch-Site: cross-site\r\n"], 403, 403),
        (vec![MARK, "Sec-Fetch-Site: same-site\r\n"], 403, 403),
        (vec![MARK, same, other_port], 403, 403),
        (vec![MARK, same, "Origin: null\r\n"], 403, 403),
        (vec![MARK, same, "Origin: http://evil.example\r\n"], 403, 403),
    ];
    for (lines, read, change) in rows {
        let head = cookie.clone() + &lines.concat();
        let reply = service.request("GET", "/v1/usage", &head, "");
        assert_eq!(reply.status, read, "{lines:?}: {reply:#?}");
        let call = "/v1/tools/clock.get_time/check";
        let reply = service.request("POST", call, &head, "{}");
        assert_eq!(reply.status, change, "{lines:?}: {reply:#?}");
        if change == 403 {
            assert_eq!(reply.problem(), "foreign-origin", "{lines:?}");
        }
    }
    let head = cookie.clone() + MARK;
    let refused = service.request("GET", "/v1/grants", &head, "").has(403);
    assert_eq!(refused.problem(), "role-missing", "the role stays that of the token");
    let bearer = super::bearer(&ann);
    service.request("GET", "/v1/usage", &(bearer + &cookie), "").has(200);
    let wrong = super::bearer("x") + &head;
    service.request("GET", "/v1/usage", &wrong, "").has(401);
    let twice = format!("{cookie}{head}");
    service.request("GET", "/v1/usage", &twice, "").has(401);
}

#[test]
fn a_login_ends_with_its_log_out_and_with_its_token() {
    let model = talking_model();
    let home = home(&model);
    let (ann, ben) = (token(&home, "ann", "user"), token(&home, "ben", "user"));
    let service = ServiceProgram::start(&home);
    let (anns, bens) = (logged_in(&service, &ann), logged_in(&service, &ben));
    let status =
        |cookie: &str| service.request("GET", "/console/user", &with_cookie(cookie), "").status;
    let again = log_in(&service, &ann, &with_cookie(&anns)).has(200);
    let again = self::cookie(&again);
    assert_eq!((status(&anns), status(&again)), (401, 200), "the same browser");
    service.request("POST", "/console/logout", &format!("Cookie: {again}\r\n"), "").has(403);
    assert_eq!(status(&again), 200, "another page cannot end it");
    let left = service.request("POST", "/console/logout", &with_cookie(&again), "").has(204);
    assert!(left.cookies[0].ends_with("; Max-Age=0"), "{left:#?}");
    assert_eq!((status(&again), status(&bens)), (401, 200));
    service.request("POST", "/console/logout", &with_cookie(&again), "").has(204);
    remove_token(&home, "ben");
    let refused = service.request("GET", "/v1/usage", &with_cookie(&bens), "").has(401);
    assert_eq!(refused.problem(), "unauthorized");
    // A token of the same name is another one.
    token(&home, "ben", "user");
    assert_eq!(status(&bens), 401);
}

#[test]
fn a_stream_ends_with_the_login_that_began_it() {
    let model = talking_model();
    let home = home(&model);
    let ann = token(&home, "ann", "user");
    let service = ServiceProgram::start(&home);
    let cookie = logged_in(&service, &ann);
    let session = service.open_session(&ann);
    let mut events = service.stream("", &session, &with_cookie(&cookie));
    events.until("retry:");
    service.request("POST", "/console/logout", &with_cookie(&cookie), "").has(204);
    assert!(events.rest().contains("{\"reason\":\"token-ended\"}"));
}

#[test]
fn an_address_that_guesses_tokens_is_sent_away() {
    let model = talking_model();
    let home = home(&model);
    let ann = token(&home, "ann", "user");
    let service = ServiceProgram::start(&home);
    let cookie = logged_in(&service, &ann);
    let statuses: Vec<u16> = (0..12).map(|_| log_in(&service, "guess", MARK).status).collect();
    assert_eq!(statuses, [vec![401; 10], vec![429; 2]].concat());
    let refused = log_in(&service, &ann, MARK).has(429);
    assert!(refused.head.contains("retry-after: 60"), "{refused:#?}");
    assert_eq!(refused.problem(), "too-many");
    service.get(&ann, "/v1/usage");
    service.request("GET", "/v1/usage", &with_cookie(&cookie), "").has(200);
}

#[test]
fn every_page_and_file_runs_and_loads_only_what_the_service_sends() {
    let model = talking_model();
    let home = home(&model);
    let service = ServiceProgram::start(&home);
    let get = |path: &str| service.request("GET", path, "", "");
    let page = get("/console").has(200);
    assert!(page.head.contains("content-type: text/html; charset=utf-8"), "{}", page.head);
    let mut paths = vec!["/console".to_owned(), "/console/console.css".to_owned()];
    let mut scripts = vec!["/console/app.js".to_owned()];
    // Every module is imported by another, so following the imports finds them all.
    while let Some(path) = scripts.pop() {
        let script = get(&path).has(200);
        assert!(script.head.contains("content-type: text/javascript"), "{path}: {}", script.head);
        let names = script.body.lines().filter_map(|line| line.split_once(" from \"./"));
        let names = names.map(|(_, rest)| format!("/console/{}", rest.trim_end_matches("\";")));
        scripts.extend(names.filter(|name| !paths.contains(name)));
        paths.push(path);
    }
    paths.sort();
    paths.dedup();
    assert!(paths.len() > 10, "{paths:?}");
    for path in &paths {
        let reply = get(path).has(200);
        for line in [
            POLICY,
            "x-content-type-options: nosniff\r\n",
            "referrer-policy: no-referrer\r\n",
            "x-frame-options: deny\r\n",
            "cache-control: no-store\r\n",
        ] {
            let head = format!("{}\r\n", reply.head);
            assert!(head.contains(&line.to_lowercase()), "{path}: no {line} in {head}");
        }
    }
    for path in
        ["/console/", "/console/x.js", "/console/..%2flogin.rs", "/console/app.js/", "/console/%00"]
    {
        assert_eq!(get(path).has(404).problem(), "not-found", "{path}");
    }
    service.request("POST", "/console", "", "").has(405);
    service.request("GET", "/console/user", "", "").has(401);
    let api = get("/healthz").has(200);
    assert!(api.head.contains("default-src 'none'; frame-ancestors 'none'"), "{}", api.head);
}

#[test]
fn the_address_of_the_console_is_printed_with_the_token() {
    let model = talking_model();
    let home = home(&model);
    let service = ServiceProgram::start(&home);
    let printed = service.running.behind("for the operator \"local\": ");
    let console = service.running.behind("The console is at ");
    assert_eq!(console.trim_end_matches('.'), format!("http://{}/console", service.address));
    let user = log_in(&service, &printed, MARK).has(200).json();
    assert_eq!((&user["name"], &user["role"]), (&json!("local"), &json!("operator")));
}

/// Behind a proxy on the same machine the browser names an origin that is not the one of `Host`.
#[test]
fn a_browser_behind_a_proxy_was_taken_for_a_page_of_another_origin() {
    let model = talking_model();
    let home = home(&model);
    let ann = token(&home, "ann", "user");
    let service = ServiceProgram::start_with(&home, &["--origin", "https://team.example"]);
    assert_eq!(service.running.behind("The console is at "), "https://team.example/console.");
    let from = |origin: &str| format!("{MARK}Sec-Fetch-Site: same-origin\r\nOrigin: {origin}\r\n");
    let reply = log_in(&service, &ann, &from("https://team.example")).has(200);
    assert!(reply.cookies[0].ends_with("; Secure"), "{reply:#?}");
    let head = format!("Cookie: {}\r\n{}", cookie(&reply), from("https://team.example"));
    service.request("POST", "/v1/tools/clock.get_time/check", &head, "{}").has(200);
    log_in(&service, &ann, &from("https://other.example")).has(403);
    let own = format!("http://{}", service.address);
    log_in(&service, &ann, &from(&own)).has(200);
}

/// A program at another port of the host could log a browser in as somebody else: cookies of one port
/// go to all, and only one over TLS says that the host itself set it.
#[test]
fn a_cookie_without_tls_counted_where_browsers_use_tls() {
    let model = talking_model();
    let home = home(&model);
    let ann = token(&home, "ann", "user");
    let service = ServiceProgram::start_with(&home, &["--origin", "https://team.example"]);
    let begun = log_in(&service, &ann, MARK).has(200);
    let cookie = cookie(&begun);
    let (_, id) = cookie.split_once('=').unwrap();
    for (host, name, status) in [
        ("team.example", "sallyport-console-0", 401),
        ("team.example", "__Host-sallyport-console-0", 200),
        (&service.address, cookie.split_once('=').unwrap().0, 200),
    ] {
        let request = format!(
            "GET /v1/tools HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{MARK}\
             Sec-Fetch-Site: same-origin\r\nCookie: {name}={id}\r\n\r\n"
        );
        let reply = service.send(request.as_bytes());
        assert_eq!(reply.status, status, "{host} {name}: {reply:#?}");
    }
}
