//! Servers at an address that require a sign-in, which is found out, made once, and kept fresh.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use serde_json::{Value, json};

use super::address::{answer, home};
use crate::{
    connections::logins::sign_in_by,
    support::{
        Home, Response, client,
        identity::{CLIENT_SECRET, Identity, IdentityServer},
        server::Request,
    },
};

const LOGIN: &[&str] = &["mcp", "login", "fake", "--wait", "60"];

/// Where the server says who gives its tokens.
const RESOURCE: &str = "/.well-known/oauth-protected-resource/mcp";

/// Where that service says how it is used.
const SERVICE: &str = "/.well-known/oauth-authorization-server";

/// A server that requires a sign-in at the identity server behind it. `change` may change what its
/// documents say, each by its path.
fn start(change: impl Fn(&str, &mut Value) + Send + Sync + 'static) -> IdentityServer {
    let identity = IdentityServer::start_before(move |identity, request| {
        let url = format!("http://{}", request.header("host").unwrap());
        let path = request.target.as_str();
        let document = |mut value: Value| {
            change(path, &mut value);
            let headers = [("content-type", "application/json")];
            Some(Response::with(200, &headers, &value.to_string()))
        };
        match path {
            "/mcp" => Some(serve(identity, request, &url)),
            RESOURCE => document(json!({
                "resource": format!("{url}/mcp"),
                "authorization_servers": [url],
                "scopes_supported": ["read", "write"],
            })),
            SERVICE => document(json!({
                "issuer": url,
                "authorization_endpoint": format!("{url}/authorize"),
                "token_endpoint": format!("{url}/token"),
                "registration_endpoint": format!("{url}/register"),
                "response_types_supported": ["code"],
                "code_challenge_methods_supported": ["S256"],
            })),
            "/register" => {
                let asked: Value = serde_json::from_str(&request.body).unwrap();
                document(json!({
                    "client_id": "the-client", "redirect_uris": asked["redirect_uris"],
                }))
            }
            _ => None,
        }
    });
    identity.with(|state| state.is_public_client = true);
    identity
}

/// The server itself.
fn serve(identity: &Identity, request: &Request, url: &str) -> Response {
    if identity.is_signed_in(request) {
        let asked = identity.asked_scopes.last().cloned().flatten().unwrap_or_default();
        let lacks = identity.needed_scope.is_some_and(|scope| !asked.contains(scope));
        if lacks && request.body.contains("tools/call") {
            let needed = identity.needed_scope.unwrap();
            let challenge = format!("Bearer error=\"insufficient_scope\", scope=\"{needed}\"");
            return Response::with(403, &[("www-authenticate", &challenge)], "");
        }
        return answer(request);
    }
    let metadata = format!("{url}{RESOURCE}");
    let challenge = format!("Bearer resource_metadata=\"{metadata}\"");
    Response::with(401, &[("www-authenticate", &challenge)], "")
}

fn home_of(identity: &IdentityServer) -> Home {
    home(&format!("{}/mcp", identity.server.url()), "").env("SALLYPORT_BROWSER", "none")
}

fn sign_in(home: &Home, identity: &IdentityServer, page: &str) -> crate::support::Ran {
    sign_in_by(LOGIN, home, identity, |authority, path| {
        let shown = client::ask(authority, "GET", path, &[], "");
        assert!(shown.body.contains(page), "{}", shown.body);
    })
}

#[test]
fn a_server_is_signed_in_to_once_and_its_token_kept_fresh() {
    let identity = start(|_, _| {});
    let home = home_of(&identity);
    let needed = "it requires a sign-in: sallyport mcp login fake";
    home.run(&["mcp", "check", "fake"]).ended(9).remarks(&[needed]);
    let signed_in = sign_in(&home, &identity, "You are signed in.").ended(0);
    signed_in.remarks(&["Connected fake."]).answers(&["fake.echo"]);
    let call = || home.run(&["call", "fake.echo", "{}"]);
    call().ended(0).answers(&["it answered"]);
    // A token that has ended is renewed, and the call is made once more.
    identity.with(|state| state.access.clear());
    call().ended(0).answers(&["it answered"]);
    assert_eq!(identity.with(|state| state.refreshes), 1);
    let resource = Some(format!("{}/mcp", identity.server.url()));
    identity.with(|state| {
        assert_eq!(state.problems, [""; 0]);
        assert_eq!(state.resources, vec![resource; 3]);
    });
    home.run(&["connection", "list"]).ended(0).answers(&["fake", "active"]);
    // The user has taken the permission away.
    identity.with(|state| (state.access.clear(), state.refresh.clear()));
    call().ended(7).remarks(&["fake cannot be used now", "sallyport mcp login fake"]);
    home.run(&["connection", "list"]).ended(0).answers(&["fake", "expired"]);
    sign_in(&home, &identity, "You are signed in.").ended(0);
    let ran = call().ended(0).answers(&["it answered"]);
    let secrets = identity.secrets();
    ran.hides(&secrets.iter().map(String::as_str).collect::<Vec<_>>());
    home.run(&["connection", "remove", "fake"]).ended(0);
    call().ended(7).remarks(&["sallyport connection add fake"]);
}

/// The registration stayed, with its password.
#[test]
fn a_server_that_is_removed_leaves_no_registration_behind() {
    let identity = start(|_, _| {});
    let home = home_of(&identity);
    sign_in(&home, &identity, "You are signed in.").ended(0);
    let registration = home.path("state/mcp-sign-ins/fake.json");
    assert!(registration.is_file());
    let told = ["Removed fake.", "sallyport connection remove fake"];
    home.run(&["mcp", "remove", "fake"]).ended(0).answers(&told[..1]).remarks(&told[1..]);
    assert!(!registration.exists());
    home.run(&["connection", "remove", "fake"]).ended(0);
}

#[test]
fn a_sign_in_that_cannot_be_used_is_refused_with_what_to_do() {
    let far = "http://far.example/token";
    let rows = [
        (SERVICE, "registration_endpoint", Value::Null, "does not register"),
        (SERVICE, "registration_endpoint", Value::Null, "--client-id"),
        (SERVICE, "token_endpoint", json!(far), "unencrypted to far.example"),
        (SERVICE, "token_endpoint", json!("x y"), "sign-in"),
        // Documents of another origin count no more than addresses of this network.
        (SERVICE, "issuer", json!("https://other.example"), "sign-in"),
        (RESOURCE, "resource", json!("https://other.example/mcp"), "sign-in"),
        (RESOURCE, "authorization_servers", json!(["http://169.254.169.254"]), "sign-in"),
        (RESOURCE, "authorization_servers", json!(["https://10.0.0.7"]), "sign-in"),
        (SERVICE, "registration_endpoint", json!("https://10.0.0.7/x"), "not a public address"),
        (SERVICE, "token_endpoint", json!("https://10.0.0.7/token"), "not a public address"),
        (SERVICE, "authorization_endpoint", json!("https://[fd00::1]/x"), "not a public address"),
    ];
    for (document, key, value, words) in rows {
        let identity = start(move |path, description| {
            if path == document {
                description[key] = value.clone();
            }
        });
        let ran = home_of(&identity).run(LOGIN);
        assert_ne!(ran.code, 0, "{document} {key}");
        ran.remarks(&[words]);
    }
    let plain = IdentityServer::start();
    home_of(&plain).run(LOGIN).ended(1).remarks(&["does not say where its users sign in"]);
    let identity = start(|_, _| {});
    let unasked = home_of(&identity);
    let own = "headers = { Authorization = \"Bearer 0123456789\" }";
    let signed = home(&format!("{}/mcp", identity.server.url()), own);
    signed.run(LOGIN).ended(2).remarks(&["needs no sign-in: its headers sign it in"]);
    let program = Home::new().config("[mcp.fake]\ncommand = [\"/bin/true\"]\n").policy("");
    program.run(LOGIN).ended(2).remarks(&["needs no sign-in: it is a program"]);
    let unknown = ["mcp", "login", "other"];
    unasked.run(&unknown).ended(2).remarks(&["there is no MCP server other"]);
    unasked.policy("").run(LOGIN).ended(3).remarks(&["policy grant fake --requested"]);
}

/// Another service must not give its code to this sign-in.
#[test]
fn an_answer_of_another_service_ends_the_sign_in() {
    let promises = |path: &str, description: &mut Value| {
        if path == SERVICE {
            description["authorization_response_iss_parameter_supported"] = json!(true);
        }
    };
    let silent = |_: &str, _: &mut Value| {};
    refuses_issuer(&start(silent), Some("https://other.example"));
    refuses_issuer(&start(promises), Some("https://other.example"));
    // A service that promises to name itself was believed without its name.
    refuses_issuer(&start(promises), None);
}

fn refuses_issuer(identity: &IdentityServer, issuer: Option<&'static str>) {
    identity.with(|state| state.issuer = issuer);
    let refused = sign_in(&home_of(identity), identity, "from another service");
    assert_ne!(refused.code, 0);
    refused.remarks(&["not from the service that was asked"]);
    assert!(identity.secrets().len() == 1, "the code was exchanged");
}

/// The application that a user has registered is used as it is.
#[test]
fn an_application_of_the_user_is_not_registered_again() {
    let identity = start(|path, description| {
        if path == SERVICE {
            description["registration_endpoint"] = Value::Null;
        }
    });
    let home = home_of(&identity);
    let login = [LOGIN, &["--client-id", "the-client"]].concat();
    let signed_in = sign_in_by(&login, &home, &identity, |authority, path| {
        client::ask(authority, "GET", path, &[], "");
    });
    signed_in.ended(0).answers(&["fake.echo"]);
    home.run(&["mcp", "login", "fake", "--client-secret-from-env", "X"]).ended(2);
    let unset = [LOGIN, &["--client-id", "a", "--client-secret-from-env", "NOT_SET"]].concat();
    home.run(&unset).ended(2).remarks(&["NOT_SET is not set"]);
}

/// A service that asks for more was a dead end, and a sign-in that the user left spoiled the account
/// that was there.
#[test]
fn a_call_that_needs_more_permissions_did_not_say_how_to_give_them() {
    let registers_another = Arc::new(AtomicBool::new(false));
    let other = Arc::clone(&registers_another);
    let identity = start(move |path, description| {
        if path == "/register" && other.load(Ordering::SeqCst) {
            description["client_id"] = json!("another-client");
        }
    });
    identity.with(|state| state.needed_scope = Some("admin"));
    let home = home_of(&identity);
    sign_in(&home, &identity, "You are signed in.").ended(0);
    let call = || home.run(&["call", "fake.echo", "{}"]);
    call().ended(7).remarks(&["lacks the permission admin", "sallyport mcp login fake"]);
    registers_another.store(true, Ordering::SeqCst);
    let left = home.run(&["mcp", "login", "fake", "--wait", "1"]);
    assert_ne!(left.code, 0);
    // The account is as it was, also when it has to be refreshed.
    identity.with(|state| state.access.clear());
    call().ended(7).remarks(&["lacks the permission admin"]);
    assert_eq!(identity.with(|state| state.refreshes), 1);
    registers_another.store(false, Ordering::SeqCst);
    sign_in(&home, &identity, "You are signed in.").ended(0);
    call().ended(0).answers(&["it answered"]);
    let asked = identity.with(|state| state.asked_scopes.clone());
    assert_eq!(asked, [Some("read write".to_owned()), Some("read write admin".to_owned())]);
}

/// The password went into a header whatever the service takes.
#[test]
fn a_service_that_takes_passwords_in_the_form_got_them_in_a_header() {
    for (methods, in_form) in [
        (json!(["client_secret_post"]), true),
        (json!(["client_secret_post", "none"]), true),
        (json!(["client_secret_post", "client_secret_basic"]), false),
        (Value::Null, false),
    ] {
        let identity = start(move |path, description| {
            if path == SERVICE {
                description["token_endpoint_auth_methods_supported"] = methods.clone();
            }
        });
        identity.with(|state| {
            (state.is_public_client, state.takes_secret_in_form) = (false, in_form);
        });
        let home = home_of(&identity).env("THE_SECRET", CLIENT_SECRET);
        let own = ["--client-id", "the-client", "--client-secret-from-env", "THE_SECRET"];
        let login = [LOGIN, &own].concat();
        let signed_in = sign_in_by(&login, &home, &identity, |authority, path| {
            client::ask(authority, "GET", path, &[], "");
        });
        signed_in.ended(0);
        identity.with(|state| state.access.clear());
        home.run(&["call", "fake.echo", "{}"]).ended(0);
        assert_eq!(identity.with(|state| state.refreshes), 1);
    }
}

/// The server answers messages alone, so a plain request for its address tells nothing. It names the
/// place of its description and the permissions that it needs.
#[test]
fn a_server_that_answers_messages_alone_was_not_asked_where_its_users_sign_in() {
    const PLACE: &str = "/custom/metadata/location.json";
    let identity = IdentityServer::start_before(|identity, request| {
        let url = format!("http://{}", request.header("host").unwrap());
        let document = |value: Value| {
            Some(Response::with(200, &[("content-type", "application/json")], &value.to_string()))
        };
        let path = request.target.as_str();
        match (request.method.as_str(), path) {
            ("POST", "/mcp") if identity.is_signed_in(request) => Some(answer(request)),
            ("POST", "/mcp") => {
                let place = format!("{url}{PLACE}");
                let challenge = format!("Bearer resource_metadata=\"{place}\", scope=\"basic\"");
                Some(Response::with(401, &[("www-authenticate", &challenge)], ""))
            }
            (_, PLACE) => document(json!({
                "resource": format!("{url}/mcp"),
                "authorization_servers": [format!("{url}/tenant1")],
                "scopes_supported": ["all", "that", "exist"],
            })),
            (_, "/tenant1/.well-known/openid-configuration") => document(json!({
                "issuer": format!("{url}/tenant1"),
                "authorization_endpoint": format!("{url}/authorize"),
                "token_endpoint": format!("{url}/token"),
                "registration_endpoint": format!("{url}/register"),
                "code_challenge_methods_supported": ["S256"],
            })),
            (_, "/register") => {
                let asked: Value = serde_json::from_str(&request.body).unwrap();
                let redirects = &asked["redirect_uris"];
                document(json!({ "client_id": "the-client", "redirect_uris": redirects }))
            }
            (_, "/authorize" | "/token") => None,
            (_, path) if path.starts_with("/authorize?") => None,
            _ => Some(Response::with(404, &[], "")),
        }
    });
    identity.with(|state| state.is_public_client = true);
    let home = home_of(&identity);
    sign_in(&home, &identity, "You are signed in.").ended(0).answers(&["fake.echo"]);
    let asked = identity.with(|state| state.asked_scopes.clone());
    assert_eq!(asked, [Some("basic".to_owned())]);
}
