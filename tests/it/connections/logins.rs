//! Connecting an account: in a browser, on another device, and what goes wrong there.

use std::io::{BufRead, BufReader};

use serde_json::json;

use crate::support::{
    Home, Ran, client,
    home::finish,
    identity::{CLIENT_SECRET, IdentityServer},
};

pub(crate) fn home_of(identity: &IdentityServer) -> Home {
    Home::new()
        .file("plugins/service.json", identity.definition(""))
        .policy(identity.policy())
        .env("CLIENT_SECRET", CLIENT_SECRET)
        .env("SALLYPORT_BROWSER", "none")
}

/// Path and query of a redirect, and its host with the port.
pub(crate) fn location(identity: &IdentityServer, address: &str) -> (String, String) {
    let path = address.strip_prefix(&identity.server.url()).unwrap();
    let answer = client::ask_whole(&identity.server.authority(), "GET", path);
    let line = answer.lines().find(|line| line.to_ascii_lowercase().starts_with("location: "));
    let target = line.unwrap().split_once(": ").unwrap().1.trim().to_owned();
    let rest = target.strip_prefix("http://").unwrap().to_owned();
    let (authority, path) = rest.split_once('/').unwrap();
    (authority.to_owned(), format!("/{path}"))
}

/// Signs in as a browser would. `visit` gets the redirect: the host and the path.
pub(super) fn sign_in(
    home: &Home,
    identity: &IdentityServer,
    visit: impl FnOnce(&str, &str),
) -> Ran {
    sign_in_to("service", home, identity, visit)
}

fn sign_in_to(
    plugin: &str,
    home: &Home,
    identity: &IdentityServer,
    visit: impl FnOnce(&str, &str),
) -> Ran {
    sign_in_by(&["connection", "add", plugin, "--wait", "60"], home, identity, visit)
}

/// Signs in with a command that prints the address of the page.
pub(crate) fn sign_in_by(
    args: &[&str],
    home: &Home,
    identity: &IdentityServer,
    visit: impl FnOnce(&str, &str),
) -> Ran {
    let mut child = home.start(args);
    let mut lines = BufReader::new(child.stderr.take().unwrap());
    let mut address = String::new();
    while !address.starts_with("http") {
        address.clear();
        if lines.read_line(&mut address).unwrap() == 0 {
            break;
        }
    }
    let (authority, path) = location(identity, address.trim());
    visit(&authority, &path);
    let mut ran = finish(child, args);
    let mut rest = String::new();
    while lines.read_line(&mut rest).unwrap() > 0 {}
    ran.stderr = rest;
    ran
}

pub(crate) fn connect(home: &Home, identity: &IdentityServer) {
    connect_to("service", home, identity);
}

pub(super) fn connect_to(plugin: &str, home: &Home, identity: &IdentityServer) {
    sign_in_to(plugin, home, identity, |authority, path| {
        let page = client::ask(authority, "GET", path, &[], "");
        assert!(page.body.contains("You are signed in."), "{}", page.body);
    })
    .ended(0)
    .remarks(&[&format!("Connected {plugin}.")]);
}

#[test]
fn a_connection_is_made_in_a_browser_and_then_simply_works() {
    let identity = IdentityServer::start();
    let home = home_of(&identity);
    home.run(&["connection", "list"]).ended(0).answers(&["service", "not connected"]);
    let (report, _) = home.call("service.list_items", &json!({}));
    let text = "Sign in again. To fix: sallyport connection add service";
    assert!(report.to_string().contains(text), "{report}");
    connect(&home, &identity);
    let (report, code) = home.call("service.list_items", &json!({}));
    assert_eq!((&report["result"], code), (&json!(["a", "b", "c"]), 0), "{report}");
    assert!(identity.with(|state| state.problems.is_empty()));
    let shown = home.run(&["connection", "show", "service", "--output", "json"]).ended(0).json();
    assert_eq!(
        (&shown["status"], &shown["profile_data"]["email"], &shown["scope"]),
        (&json!("active"), &json!("ann@example.com"), &json!("read write"))
    );
    home.run(&["connection", "list"]).ended(0).answers(&["active", "ann@example.com"]);
    home.run(&["connection", "remove", "service"]).ended(0);
    home.run(&["connection", "show", "service"]).ended(4).remarks(&["is not connected"]);
}

#[test]
fn no_token_is_in_any_file_or_output() {
    let identity = IdentityServer::start();
    identity.with(|state| state.fields = json!({"expires_in": 1}).as_object().unwrap().clone());
    let home = home_of(&identity);
    connect(&home, &identity);
    let ran = home.run(&["call", "service.list_items", "{}", "-vv"]);
    home.run(&["call", "service.list_items", "{}"]);
    let secrets = identity.secrets();
    ran.hides(&secrets.iter().map(String::as_str).collect::<Vec<_>>());
    let mut folders = vec![home.path("")];
    let mut count = 0;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            // The shared cache of compiled plugins is a link.
            if path.is_symlink() {
                continue;
            }
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let bytes = std::fs::read(&path).unwrap();
            count += 1;
            for secret in &secrets {
                let is_in = bytes.windows(secret.len()).any(|part| part == secret.as_bytes());
                assert!(!is_in, "{secret} is in {}", path.display());
            }
        }
    }
    assert!(count > 3, "only {count} files");
}

#[test]
fn an_answer_that_does_not_belong_to_the_sign_in_neither_counts_nor_ends_it() {
    let identity = IdentityServer::start();
    let home = home_of(&identity);
    sign_in(&home, &identity, |authority, path| {
        for (wrong, status) in [
            (path.replace("state=", "state=x"), 400),
            (path.split("&state").next().unwrap().to_owned(), 400),
            (path.replace("/callback/", "/other/"), 404),
            ("/favicon.ico".to_owned(), 404),
        ] {
            assert_eq!(client::ask(authority, "GET", &wrong, &[], "").status, status, "{wrong}");
        }
        assert_eq!(client::ask(authority, "GET", path, &[], "").status, 200);
    })
    .ended(0);
}

#[test]
fn of_two_sign_ins_at_once_each_takes_its_own_answer() {
    let identity = IdentityServer::start();
    let home = home_of(&identity);
    sign_in(&home, &identity, |authority, path| {
        sign_in(&home, &identity, |second, second_path| {
            // The answer to the one does not end the other.
            assert_eq!(client::ask(authority, "GET", second_path, &[], "").status, 400);
            assert_eq!(client::ask(second, "GET", second_path, &[], "").status, 200);
        })
        .ended(0);
        assert_eq!(client::ask(authority, "GET", path, &[], "").status, 200);
    })
    .ended(0);
    let listed = home.run(&["connection", "list", "--output", "json"]).ended(0).json();
    assert_eq!(listed.as_array().unwrap().len(), 1, "{listed}");
    assert_eq!(home.call("service.list_items", &json!({})).1, 0);
}

#[test]
fn a_refusal_a_used_code_and_a_broken_answer_are_said_plainly() {
    let identity = IdentityServer::start();
    let home = home_of(&identity);
    sign_in(&home, &identity, |authority, path| {
        let refused = format!("{}&error=access_denied", path.replace("code=", "nothing="));
        client::ask(authority, "GET", &refused, &[], "");
    })
    .ended(1)
    .remarks(&["the sign-in was refused: access_denied"]);
    sign_in(&home, &identity, |authority, path| {
        let used = path.replace("code=code-2", "code=code-1x");
        client::ask(authority, "GET", &used, &[], "");
    })
    .ended(1)
    .remarks(&["the service refuses the account"]);
    for (status, media_type, body) in [
        (502, "text/html", "<html>Bad Gateway</html>"),
        (200, "text/html", "<html>Sign in</html>"),
        (200, "application/json", ""),
        (200, "application/json", "{}"),
        (200, "application/json", r#"{"error": "server_error"}"#),
    ] {
        identity.with(|state| state.next = vec![(status, media_type, body.to_owned())]);
        sign_in(&home, &identity, |authority, path| {
            client::ask(authority, "GET", path, &[], "");
        })
        .ended(1)
        .remarks(&["the service gave no tokens"])
        .hides(&["<html>"]);
    }
    home.run(&["connection", "list"]).ended(0).answers(&["not connected"]);
}

#[test]
fn a_scope_that_was_cut_is_a_warning_and_no_refresh_token_a_note() {
    let identity = IdentityServer::start();
    let fields = json!({"scope": "read", "refresh_token": null});
    identity.with(|state| state.fields = fields.as_object().unwrap().clone());
    let home = home_of(&identity);
    sign_in(&home, &identity, |authority, path| {
        client::ask(authority, "GET", path, &[], "");
    })
    .ended(0)
    .remarks(&["some permissions were not given", "write", "no refresh token"]);
}

#[test]
fn a_browser_that_never_comes_back_and_a_port_that_is_taken_end_the_wait() {
    let identity = IdentityServer::start();
    let home = home_of(&identity);
    home.run(&["connection", "add", "service", "--wait", "1"])
        .ended(1)
        .remarks(&["nobody signed in within 1s"]);
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let own = format!(r#", "redirect_uri": "http://127.0.0.1:{port}/back""#);
    let home = home.file("plugins/service.json", identity.definition(&own));
    home.run(&["plugin", "accept", "service", "--yes"]).ended(0);
    home.run(&["connection", "add", "service"])
        .ended(1)
        .remarks(&[&format!("cannot listen on 127.0.0.1:{port}")]);
}

#[test]
fn a_device_without_a_browser_is_connected_on_another_one() {
    let identity = IdentityServer::start();
    identity.with(|state| state.is_device_pending = true);
    let home = home_of(&identity);
    home.run(&["connection", "add", "service", "--device"]).ended(0).remarks(&[
        "https://service.example/device",
        "WDJB-MJHT",
        "Connected service.",
    ]);
    assert_eq!(home.call("service.list_items", &json!({})).1, 0);
}

#[test]
fn the_context_of_a_model_says_what_is_connected_and_what_could_be() {
    let identity = IdentityServer::start();
    let home = home_of(&identity);
    let context = |args: &[&str]| {
        let args = [&["connection", "context", "--output", "json"], args].concat();
        home.run(&args).ended(0).json()
    };
    let before = context(&[]);
    assert_eq!(before["available"][0]["name"], "service", "{before}");
    assert_eq!(before["connected"], json!([]));
    home.run(&["connection", "context"]).ended(0).answers(&["sallyport connection add service"]);
    connect(&home, &identity);
    let after = context(&["--full"]);
    let action = &after["connected"][0]["actions"][0];
    assert_eq!((&action["name"], &after["available"]), (&json!("list_items"), &json!([])));
    assert_eq!(action["output_guidance"]["common_errors"]["auth_failed"], "Sign in again.");
    let skinny = context(&["--only", "service,other"]);
    let action = &skinny["connected"][0]["actions"][0];
    assert!(action.get("rules").is_none() && action.get("output_guidance").is_none(), "{skinny}");
    assert_eq!(context(&["--only", "other"])["connected"], json!([]));
}
