//! Servers at an address that require a sign-in, which is found out, made once, and kept fresh.

use serde_json::{Value, json};

use super::address::{answer, home};
use crate::{
    connections::logins::sign_in_by,
    support::{
        Home, Response, client,
        identity::{Identity, IdentityServer},
        server::Request,
    },
};

const LOGIN: &[&str] = &["mcp", "login", "fake", "--wait", "60"];

/// A server that requires a sign-in at the identity server behind it. `change` makes another
/// description of that server.
fn start(change: impl Fn(&mut Value) + Send + Sync + 'static) -> IdentityServer {
    let identity = IdentityServer::start_before(move |identity, request| {
        let url = format!("http://{}", request.header("host").unwrap());
        let document = |value: &Value| {
            let headers = [("content-type", "application/json")];
            Some(Response::with(200, &headers, &value.to_string()))
        };
        match request.target.as_str() {
            "/mcp" => Some(serve(identity, request, &url)),
            "/.well-known/oauth-protected-resource/mcp" => document(&json!({
                "resource": format!("{url}/mcp"),
                "authorization_servers": [url],
                "scopes_supported": ["read", "write"],
            })),
            "/.well-known/oauth-authorization-server" => {
                let mut description = json!({
                    "issuer": url,
                    "authorization_endpoint": format!("{url}/authorize"),
                    "token_endpoint": format!("{url}/token"),
                    "registration_endpoint": format!("{url}/register"),
                    "response_types_supported": ["code"],
                    "code_challenge_methods_supported": ["S256"],
                });
                change(&mut description);
                document(&description)
            }
            "/register" => {
                let asked: Value = serde_json::from_str(&request.body).unwrap();
                document(&json!({
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
        return answer(request);
    }
    let metadata = format!("{url}/.well-known/oauth-protected-resource/mcp");
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
    let identity = start(|_| {});
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

#[test]
fn a_sign_in_that_cannot_be_used_is_refused_with_what_to_do() {
    let set = |key: &'static str, value: Value| {
        move |description: &mut Value| description[key] = value.clone()
    };
    type Change = Box<dyn Fn(&mut Value) + Send + Sync>;
    let far = "http://far.example/token";
    let rows: [(Change, &[&str]); 4] = [
        (
            Box::new(set("registration_endpoint", Value::Null)),
            &["does not register", "--client-id"],
        ),
        (Box::new(set("token_endpoint", json!(far))), &["unencrypted to far.example"]),
        (Box::new(set("token_endpoint", json!("x y"))), &["sign-in"]),
        (Box::new(set("issuer", json!("https://other.example"))), &["sign-in"]),
    ];
    for (change, words) in rows {
        let identity = start(change);
        let ran = home_of(&identity).run(LOGIN);
        assert_ne!(ran.code, 0, "{words:?}");
        ran.remarks(words);
    }
    let plain = IdentityServer::start();
    home_of(&plain).run(LOGIN).ended(1).remarks(&["does not say where its users sign in"]);
    let identity = start(|_| {});
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
    let identity = start(|_| {});
    identity.with(|state| state.issuer = Some("https://other.example"));
    let home = home_of(&identity);
    let refused = sign_in(&home, &identity, "from another service");
    assert_ne!(refused.code, 0);
    refused.remarks(&["from another service"]);
}

/// The application that a user has registered is used as it is.
#[test]
fn an_application_of_the_user_is_not_registered_again() {
    let identity = start(|description| description["registration_endpoint"] = Value::Null);
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
