//! Secrets: put into a request by the host, kept from every other one, taken out of what comes
//! back.

use std::sync::Arc;

use sallyport_contract::{CallReport, Effect};
use sallyport_sandbox::{LoadError, SystemResolver};
use serde_json::{Value, json};

use crate::{
    network::ScriptedNames,
    support::{
        Guarded, Home, Response, Scripted, Server,
        registry::{data, told},
        warden::{entry, hostile, policy, requests},
    },
};

/// With characters that every encoding has to escape.
const TOKEN: &str = "s3cr3t/T0ken+\"with\" <signs>&=?";

/// The end of a manifest that requests the secret, to be sent.
const REQUEST: &str = "[[request.secrets]]\nname = \"token\"\nwhy = \"tests\"\n";

/// Where the secret would come from, were there no script.
const SOURCE: &str = "[secret.token]\nenv = \"TOKEN\"\n";

fn injection(origin: &str) -> String {
    format!(
        "{{ name = \"token\", to = \"{origin}\", header = \"Authorization\", format = \"Bearer {{}}\" }}"
    )
}

/// A guest that may reach these servers; the token is sent to the first of them.
fn holding(servers: &[&Server], token: Result<&str, &str>) -> Scripted {
    let patterns: Vec<String> =
        servers.iter().map(|server| format!("GET,HEAD,POST {}/**", server.url())).collect();
    let patterns: Vec<&str> = patterns.iter().map(String::as_str).collect();
    let entries: Vec<String> = servers.iter().map(|server| entry(server, "")).collect();
    let secrets = format!("secrets = [{}]\n{SOURCE}", injection(&servers[0].url()));
    let request = format!("{}{REQUEST}", requests(&patterns));
    Scripted::new("hostile", &request, &policy(&entries, &secrets)).secret("token", token)
}

fn to(server: &Server) -> Value {
    json!({ "authority": server.authority() })
}

/// The whole of a report, as text.
fn shown(report: &CallReport) -> String {
    format!("{report:?} {}", report.outcome.to_model_value())
}

#[test]
fn the_host_puts_a_secret_into_the_requests_to_its_origin_alone() {
    let (own, other) = (Server::saying("hello"), Server::saying("hello"));
    let tools = Guarded::by(holding(&[&own, &other], Ok("token-4711")));
    let with_header = |server: &Server| {
        json!({
            "authority": server.authority(),
            "headers": [["authorization", "Basic of-the-guest"], ["authorization", "a second one"]],
        })
    };
    let turn = json!({ "requests": [with_header(&own), with_header(&other)] });
    let report = tools.call("fetches_in_turn", &turn);
    assert_eq!(
        (&data(&report)[0]["status"], &data(&report)[1]["status"]),
        (&json!(200), &json!(200))
    );
    let sent = |server: &Server| {
        let headers = server.seen()[0].headers.clone();
        let own = headers.into_iter().filter(|(name, _)| name == "authorization");
        own.map(|(_, value)| value).collect::<Vec<_>>()
    };
    assert_eq!(sent(&own), ["Bearer token-4711"]);
    assert_eq!(sent(&other), ["Basic of-the-guest", "a second one"]);
    let used = Effect::SecretUsed { name: "token".into(), to: Some(own.url()) };
    assert_eq!(report.effects.iter().filter(|effect| **effect == used).count(), 1);
    assert!(!shown(&report).contains("4711"));
}

#[test]
fn h49_a_secret_that_cannot_be_had_is_named_and_nothing_leaves() {
    let server = Server::saying("hello");
    for (value, words) in [
        (Err("its variable TOKEN is not set"), "the secret token: its variable TOKEN is not set"),
        (Ok("two\nlines-of-it"), "the secret token: it holds what a header cannot hold"),
    ] {
        let report = Guarded::by(holding(&[&server], value)).call("fetches", &to(&server));
        assert_eq!(report.outcome.as_str(), "denied");
        assert!(told(&report).contains(words), "{}", told(&report));
        assert!(!shown(&report).contains("lines-of-it"));
        assert!(server.seen().is_empty());
    }
}

/// A secret is never spoken aloud, whoever answers for `localhost`.
#[test]
fn a_secret_goes_to_no_other_machine_without_encryption() {
    let server = Server::saying("hello");
    let origin = format!("http://localhost:{}", server.port);
    let allow = format!("GET {origin}/**");
    let more = format!("secrets = [{}]\n{SOURCE}", injection(&origin));
    let entries = [format!("{{ allow = \"{allow}\", to-private = true }}")];
    for (address, word) in [("127.0.0.1", "completed"), ("93.184.216.34", "denied")] {
        let request = format!("{}{REQUEST}", requests(&[&allow]));
        let warden = Scripted::new("hostile", &request, &policy(&entries, &more));
        let warden = warden.secret("token", Ok("token-4711"));
        let tools = Guarded::resolving(warden, ScriptedNames::new(&[&[address]]));
        let at = json!({ "authority": format!("localhost:{}", server.port) });
        let report = tools.call("fetches", &at);
        assert_eq!(report.outcome.as_str(), word, "{address}: {}", told(&report));
        let is_told = told(&report).contains("unencrypted to another machine");
        assert_eq!(is_told, word == "denied", "{}", told(&report));
    }
    assert_eq!(server.seen().len(), 1);
}

/// Every way in which a request can carry something, to a server that is not sent the secret.
fn carrying(authority: &str) -> Vec<(&'static str, Value)> {
    let token = "Abc-4711-token";
    let at = |key: &str, value: Value| {
        let mut request = json!({ "method": "POST", "authority": authority });
        request[key] = value;
        request
    };
    let pieces = json!({
        "method": "POST", "authority": authority, "body": "begin Abc-47", "pieces": ["11-to", "ken", " end"],
    });
    vec![
        ("path", at("path", json!(format!("/a/{token}/b")))),
        ("query", at("path", json!(format!("/?q={token}")))),
        ("escaped query", at("path", json!("/?q=%41bc%2D4711%2Dtoken"))),
        ("twice escaped", at("path", json!("/?q=%2541bc%252D4711-token"))),
        ("base64 in a query", at("path", json!("/?q=QWJjLTQ3MTEtdG9rZW4"))),
        ("header", at("headers", json!([["x-a", format!("Bearer {token}")]]))),
        ("escaped header", at("headers", json!([["x-a", "%41bc-4711-token"]]))),
        ("name of a header", at("headers", json!([[token, "1"]]))),
        ("basic", at("headers", json!([["x-a", "Basic dXNlcjpBYmMtNDcxMS10b2tlbg=="]]))),
        ("cookie", at("headers", json!([["cookie", format!("a=b; c={token}")]]))),
        ("body", at("body", json!(format!("{{\"key\": \"{token}\"}}")))),
        ("hex in a body", at("body", json!("x 4162632d343731312d746f6b656e x"))),
        ("pieces of a body", pieces),
        ("wrapped base64", at("body", json!("QWJjLTQ3MTE\r\ntdG9rZW4="))),
        ("markup", at("body", json!("Abc&#x2D;4711&#45;token"))),
        ("mail", at("body", json!("Abc=2D4711-to=\r\nken"))),
        (
            "letters of two bytes",
            at("body", json!(token.chars().flat_map(|c| [c, '\0']).collect::<String>())),
        ),
    ]
}

#[test]
fn h46_a_known_secret_does_not_leave_in_any_part_of_a_request() {
    for (what, request) in carrying("") {
        let server = Server::saying("hello");
        let warden = hostile(&server, "").secret("token", Ok("Abc-4711-token"));
        let tools = Guarded::by(warden);
        let mut request = request;
        request["authority"] = json!(server.authority());
        let report = tools.call("fetches", &request);
        let words = format!("it would carry the secret token to {}", server.url());
        assert_eq!(report.outcome.as_str(), "denied", "{what}: {}", told(&report));
        assert!(told(&report).contains(&words), "{what}: {}", told(&report));
        let seen = format!("{:?}", server.seen()).to_ascii_lowercase();
        assert!(!seen.contains("-token") && !seen.contains("746f6b656e"), "{what}: {seen}");
        let shown = shown(&report).to_ascii_lowercase();
        assert!(!shown.contains("4711-token"), "{what}: {shown}");
        // What is no secret arrives.
        let harmless =
            json!({ "method": "POST", "authority": server.authority(), "body": "Abc-4711-toke" });
        assert_eq!(data(&tools.call("fetches", &harmless))["status"], 200, "{what}");
    }
}

/// A body that a guest sends in pieces, with a flush behind each: what may be the beginning of a
/// secret waits, so that of one that comes to its end not a byte has left.
#[test]
fn nothing_of_a_secret_leaves_before_its_last_piece() {
    let token = "Abc-4711-token";
    let bytewise: Vec<String> = token.chars().map(String::from).collect();
    let pieces = |pieces: &[&str]| pieces.iter().map(|piece| (*piece).to_owned()).collect();
    let rows: Vec<(Vec<String>, &str)> = vec![
        (pieces(&["Abc-4711-toke", "n"]), ""),
        (pieces(&["x Abc-4711-toke", "n"]), "x "),
        (pieces(&["Abc-Abc-4711-", "token"]), "Abc-"),
        (bytewise, ""),
        (pieces(&["QWJjLTQ3MTEt", "\r\n", "dG9rZW4"]), ""),
        (pieces(&["4162632d3437313", "12d746f6b656e"]), ""),
        (pieces(&["%41bc%2", "D4711%2Dtoken"]), ""),
        (pieces(&["\\u0041bc-4711&#x2", "D;token"]), ""),
        (pieces(&["A=\r", "\nbc-4711=2Dtoke", "n"]), ""),
    ];
    for (pieces, left) in rows {
        let server = Server::saying("hello");
        let tools = Guarded::by(hostile(&server, "").secret("token", Ok(token)));
        let request = json!({
            "method": "POST", "authority": server.authority(), "body": pieces[0], "pieces": pieces[1..],
        });
        let report = tools.call("fetches", &request);
        assert_eq!(report.outcome.as_str(), "denied", "{pieces:?}: {}", told(&report));
        let seen = server.seen();
        let came: String = seen.iter().map(|request| request.body.as_str()).collect();
        assert!(left.starts_with(&came), "{pieces:?}: {came:?}");
    }
}

/// What only looks like a secret arrives whole, however it is cut.
#[test]
fn what_is_held_back_of_a_body_arrives_in_the_end() {
    for pieces in [&["Abc-4711-toke"][..], &["Abc-", "4711-tok", "xAbc-4711"], &["&#4", "%", "="]] {
        let server = Server::saying("hello");
        let tools = Guarded::by(hostile(&server, "").secret("token", Ok("Abc-4711-token")));
        let request = json!({
            "method": "POST", "authority": server.authority(), "body": pieces[0], "pieces": pieces[1..],
        });
        let report = tools.call("fetches", &request);
        assert_eq!(data(&report)["status"], 200, "{}", told(&report));
        assert_eq!(server.seen()[0].body, pieces.concat());
        assert!(server.seen()[0].trailers.is_some(), "the body has its end");
    }
}

#[test]
fn h46_a_known_secret_does_not_leave_in_the_name_of_a_host() {
    let server = Server::saying("hello");
    let allow = format!("GET http://*.evil.example:{}/**", server.port);
    let granted = format!("{{ allow = \"{allow}\", to-private = true, range = \"127.0.0.0/8\" }}");
    let warden = Scripted::new("hostile", &requests(&[&allow]), &policy(&[granted], ""));
    let warden = warden.secret("token", Ok("Abc-4711-token"));
    let tools = Guarded::resolving(warden, ScriptedNames::new(&[&["127.0.0.1"]]));
    for (label, word) in [("abc-4711-token", "denied"), ("abc-4711-toke", "completed")] {
        let at = json!({ "authority": format!("{label}.evil.example:{}", server.port) });
        let report = tools.call("fetches", &at);
        assert_eq!(report.outcome.as_str(), word, "{}", told(&report));
        assert!(!shown(&report).contains("4711-token"), "{}", shown(&report));
    }
}

#[test]
fn a_secret_may_go_in_any_way_to_the_origin_that_it_is_sent_to() {
    let server = Server::saying("hello");
    let token = "Abc-4711-token";
    for (what, request) in carrying(&server.authority()) {
        let warden = holding(&[&server], Ok(token)).secret("other", Ok("the-other-secret"));
        let tools = Guarded::by(warden);
        let report = tools.call("fetches", &request);
        assert_eq!(report.outcome.as_str(), "completed", "{what}: {}", told(&report));
        // One that may pass does not hide another one behind it.
        let mut both = request.clone();
        both["headers"] = json!([["x-a", format!("{token} the-other-secret")]]);
        let report = tools.call("fetches", &both);
        assert!(told(&report).contains("carry the secret other"), "{what}: {}", told(&report));
    }
}

/// What a server makes of a credential before it says it back.
fn echoes() -> Vec<(&'static str, Response)> {
    let plain = format!("you said {TOKEN} to me");
    let json = format!("{{\"you\": {}}}", json!(TOKEN));
    let of = |body: &str| Response::ok(body);
    let halves = TOKEN.as_bytes().split_at(9);
    let bytes: Vec<&[u8]> = TOKEN.as_bytes().chunks(1).collect();
    let hex: String = TOKEN.bytes().map(|byte| format!("{byte:02x}")).collect();
    let percent: String = TOKEN.bytes().map(|byte| format!("%{byte:02X}")).collect();
    vec![
        ("plain", of(&plain)),
        ("json", of(&json)),
        ("json in json", of(&json!({ "body": json }).to_string())),
        ("hex", of(&hex)),
        ("percent", of(&percent)),
        ("base64", of("czNjcjN0L1Qwa2VuKyJ3aXRoIiA8c2lnbnM+Jj0/")),
        ("basic", of("dXNlcjpzM2NyM3QvVDBrZW4rIndpdGgiIDxzaWducz4mPT8=")),
        ("markup", of("s3cr3t/T0ken+&quot;with&quot; &lt;signs&gt;&amp;=?")),
        ("two pieces", Response::chunked(&[], &[halves.0, halves.1], &[])),
        ("many pieces", Response::chunked(&[], &bytes, &[])),
        ("a header", Response::with(200, &[("x-echo", TOKEN)], "x")),
        ("the name of a header", Response::with(200, &[(&hex, "1")], "x")),
        ("a trailer", Response::chunked(&[("trailer", "x-echo")], &[b"x"], &[("x-echo", TOKEN)])),
        (
            "gzip",
            Response::bytes(
                &[("content-encoding", "gzip")],
                &super::http_answers::gzip(plain.as_bytes()),
            ),
        ),
        ("an error page", Response::with(401, &[], &plain)),
    ]
}

#[test]
fn h47_a_credential_that_is_said_back_never_reaches_the_guest() {
    for (what, answer) in echoes() {
        let server = Server::start(move |_| answer.clone());
        let tools = Guarded::by(holding(&[&server], Ok(TOKEN)));
        let report = tools.call("fetches", &to(&server));
        let told = data(&report).to_string();
        for piece in ["s3cr3t", "T0ken", "czNjcjN0", "NyM3QvVDBr", "733363723374", "%73%33%63"] {
            assert!(!told.contains(piece), "{what}: {told}");
        }
        let is_marked = told.contains("[secret token]") || what == "the name of a header";
        assert!(is_marked, "{what}: {told}");
        assert!(!told.contains("content-length"), "{what}: the length is not that of what came");
    }
}

#[test]
fn h47_what_is_no_secret_arrives_as_it_is() {
    let body = "s3cr3t/T0ken+\"with\" <sign".repeat(3000);
    let answer = Response::ok(&body);
    let server = Server::start(move |_| answer.clone());
    let tools = Guarded::by(holding(&[&server], Ok(TOKEN)));
    let report = tools.call("fetches", &to(&server));
    assert_eq!(data(&report)["bytes"], body.len());
    assert_eq!(data(&report)["body"], body[..1000]);
}

/// The warden of a guest that reads secrets.
fn secretive(requests: &str, secrets: &str) -> Scripted {
    let policy = format!(
        "[plugin.secretive]\nsecrets = [{secrets}]\n[secret.pin]\nenv = \"PIN\"\n[secret.api]\nenv = \"API\"\n"
    );
    Scripted::new("secretive", requests, &policy)
        .secret("pin", Ok("4711-0815"))
        .secret("api", Ok("api-key-4711"))
        .secret("never-granted", Ok("never-granted-4711"))
}

fn reveal(name: &str) -> String {
    format!("[[request.secrets]]\nname = \"{name}\"\nwhy = \"tests\"\nreveal = true\n")
}

#[test]
fn a_secret_that_is_shown_is_on_record_and_in_no_result() {
    let shown = "{ name = \"pin\", reveal = true }";
    let tools = Guarded::by(secretive(&reveal("pin"), shown));
    let report = tools.call("reads_secret", &json!({ "name": "pin" }));
    // The guest returned the value: only a known one is replaced.
    assert_eq!(data(&report), "[secret pin]");
    let used = Effect::SecretUsed { name: "pin".into(), to: None };
    assert_eq!(report.effects, [used]);
}

#[test]
fn a_line_of_the_log_is_not_cut_in_the_middle_of_a_secret() {
    let tools = Guarded::by(secretive(&reveal("pin"), "{ name = \"pin\", reveal = true }"));
    let longest = 8 * 1024;
    for before in [0, 1].into_iter().chain(longest - 12..=longest + 1) {
        let report = tools.call("logs_secret", &json!({ "name": "pin", "before": before }));
        let logged = report.effects.iter().filter_map(|effect| match effect {
            Effect::Logged { text, .. } => Some(text.as_str()),
            _ => None,
        });
        let logged: Vec<&str> = logged.collect();
        assert!(logged.len() >= 2, "{before}: {report:?}");
        assert!(
            logged.iter().all(|line| !line.contains(|c: char| c.is_ascii_digit())),
            "{before}: {logged:?}"
        );
    }
}

#[test]
fn h48_other_secrets_look_as_if_there_were_none() {
    let granted = format!(
        "{{ name = \"pin\", reveal = true }}, {}",
        injection("https://api.example").replace("token", "api")
    );
    let requests = format!("{}{}", reveal("pin"), reveal("api"));
    let tools = Guarded::by(secretive(&requests, &granted));
    let told_of = |name: &str| {
        let report = tools.call("tries_secret", &json!({ "name": name }));
        (data(&report).to_string() + &format!("{:?}", report.effects)).replace(name, "NAME")
    };
    // One that the host sends, one that nobody granted, one that does not exist.
    let sent = told_of("api");
    assert!(sent.contains("is not shown to this plugin"), "{sent}");
    for name in ["never-granted", "nowhere"] {
        assert_eq!(told_of(name), told_of("nothing"));
    }
    for name in ["", "PIN", "pin ", "../pin", "pin\n", &"x".repeat(100_000)] {
        let report = tools.call("tries_secret", &json!({ "name": name }));
        assert!(data(&report).to_string().contains("is not shown to this plugin"), "{name:?}");
    }
}

#[test]
fn a_secret_that_cannot_be_shown_just_now_says_why() {
    let shown = "{ name = \"pin\", reveal = true }";
    let warden = secretive(&reveal("pin"), shown).secret("pin", Err("the keyring is locked"));
    let report = Guarded::by(warden).call("reads_secret", &json!({ "name": "pin" }));
    assert!(told(&report).contains("the secret `pin` cannot be had: the keyring is locked"));
    assert!(report.effects.is_empty(), "{:?}", report.effects);
}

#[test]
fn h67_a_secret_is_shown_only_while_it_is_granted() {
    let shown = "{ name = \"pin\", reveal = true }";
    let tools = Guarded::by(secretive(&reveal("pin"), shown));
    tools.warden.change("");
    let report = tools.call("reads_secret", &json!({ "name": "pin" }));
    assert_eq!(report.outcome.as_str(), "denied");
}

#[test]
fn h23_asking_for_secrets_has_to_be_requested() {
    let sent = "[[request.secrets]]\nname = \"pin\"\nwhy = \"tests\"\n";
    for requests in ["", sent] {
        let loaded =
            Guarded::load(secretive(requests, ""), Arc::new(SystemResolver::default())).err();
        let Some(LoadError::UnrequestedCapability { interface, .. }) = loaded else {
            panic!("{loaded:?}")
        };
        assert_eq!(interface, "sallyport:plugin/secrets@0.1.0");
    }
}

/// A home whose policy names a secret that nobody asks for.
fn unasked(server: &Server) -> Home {
    let allow = format!("GET,POST {}/**", server.url());
    let grant = format!("{{ allow = \"{allow}\", to-private = true }}");
    let secrets = "[secret.token]\nenv = \"TOKEN\"\n[secret.unset]\nenv = \"UNSET\"\n";
    crate::network::home(&[&allow], &[&grant], secrets).env("TOKEN", "Abc-4711-token")
}

#[test]
fn h73_a_secret_that_nobody_asked_for_yet_is_known_all_the_same() {
    let echo = Server::start(|request| Response::ok(&format!("\"{}\"", request.target)));
    let said = Server::saying("{\"was\": \"Abc-4711-token\"}");
    for (what, mut request) in carrying("") {
        let home = unasked(&echo);
        request["authority"] = json!(echo.authority());
        let (told, code) = home.call("hostile.fetches", &request);
        assert_eq!(code, 3, "{what}: {told}");
        assert!(told.to_string().contains("carry the secret token"), "{what}: {told}");
    }
    let came: Vec<_> =
        echo.seen().into_iter().map(|request| (request.target, request.body)).collect();
    assert!(came.iter().all(|(target, body)| target == "/" && !body.contains("oken")), "{came:?}");
    let home = unasked(&said);
    let (told, _) = home.call("hostile.fetches", &to(&said));
    assert!(told.to_string().contains("[secret token]"), "{told}");
    assert!(!told.to_string().contains("4711"), "{told}");
    home.run(&["audit", "show", "--output", "json"]).ended(0).hides(&["Abc-4711"]);
}

#[test]
fn a_secret_that_cannot_be_read_is_named_where_plugins_run_and_nowhere_else() {
    let server = Server::saying("hello");
    let home = unasked(&server);
    let called = home.run(&["call", "hostile.fetches", &to(&server).to_string()]).ended(0);
    called.remarks(&["the secret unset cannot be read", "set UNSET before"]);
    for args in [&["--version"][..], &["plugin", "list"], &["tool", "list"], &["policy", "check"]] {
        let looked = home.run(args);
        assert!(!looked.stderr.contains("cannot be read"), "{args:?}: {looked:?}");
    }
}

/// The key of a model is a secret like any other, though no policy names it.
#[test]
fn the_key_of_a_model_is_taken_out_of_what_servers_say() {
    let server =
        Server::saying("{\"key\": \"sk-4711-of-a-model\", \"written\": \"sk-0815-of-a-table\"}");
    let home = unasked(&server)
        .env("OPENAI_API_KEY", "sk-4711-of-a-model")
        .config("[model.work]\nprovider = 'openai'\nmodel = 'm'\nkey = 'sk-0815-of-a-table'\n");
    let (told, _) = home.call("hostile.fetches", &to(&server));
    let told = told.to_string();
    assert!(
        told.contains("[secret OPENAI_API_KEY]") && told.contains("[secret model.work.key]"),
        "{told}"
    );
    assert!(!told.contains("4711") && !told.contains("0815"), "{told}");
}
