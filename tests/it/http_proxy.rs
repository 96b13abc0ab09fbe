//! A proxy that the policy names: what it is told, and what it is not.

use std::{
    io::{self, BufRead, BufReader, Write},
    net::{Shutdown, TcpListener, TcpStream},
    sync::{Arc, Mutex},
    thread,
};

use serde_json::json;

use crate::{
    network::ScriptedNames,
    support::{
        Guarded, Response, Scripted, Server,
        registry::{data, told},
        warden::{hostile, requests},
    },
    tls,
};

/// What the environment tells a test that runs in a process of its own.
const PORTS: &str = "SALLYPORT_TEST_PORTS";

/// A proxy that opens tunnels. Returns its port, and the first lines that it was told.
fn tunnels(answer: &'static str) -> (u16, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let told = Arc::new(Mutex::new(Vec::new()));
    let book = Arc::clone(&told);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let book = Arc::clone(&book);
            thread::spawn(move || tunnel(stream, answer, &book));
        }
    });
    (port, told)
}

fn tunnel(stream: TcpStream, answer: &str, book: &Mutex<Vec<String>>) -> io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut first = String::new();
    reader.read_line(&mut first)?;
    book.lock().unwrap().push(first.trim_end().to_owned());
    let mut line = String::new();
    while reader.read_line(&mut line)? > 2 {
        line.clear();
    }
    (&stream).write_all(format!("HTTP/1.1 {answer}\r\n\r\n").as_bytes())?;
    if !answer.starts_with("200") {
        return stream.shutdown(Shutdown::Both);
    }
    let target = TcpStream::connect(first.split(' ').nth(1).unwrap_or_default())?;
    let (mut to, mut back) = (target.try_clone()?, stream.try_clone()?);
    let copy = thread::spawn(move || io::copy(&mut reader, &mut to));
    io::copy(&mut &target, &mut back)?;
    stream.shutdown(Shutdown::Write)?;
    copy.join().unwrap().map(|_| ())
}

/// A warden with a proxy, whose guest may fetch one URL.
fn proxied(allow: &str, private: &str, proxy: &str) -> Scripted {
    let policy =
        format!("[plugin.hostile]\nnet = [{{ allow = \"{allow}\"{private} }}]\n[proxy]\n{proxy}\n");
    Scripted::new("hostile", &requests(&[allow]), &policy)
}

#[test]
fn plain_requests_go_through_the_proxy_under_their_name() {
    let proxy = Server::saying("through the proxy");
    let warden = proxied(
        "GET http://api.example:8080/**",
        "",
        &format!("http = \"http://127.0.0.1:{}\"", proxy.port),
    );
    let tools = Guarded::resolving(warden, ScriptedNames::new(&[&["93.184.216.34"]]));
    let arguments = json!({ "authority": "api.example:8080", "path": "/a?b=c" });
    let report = tools.call("fetches", &arguments);
    assert_eq!(data(&report)["body"], "through the proxy");
    let seen = &proxy.seen()[0];
    assert_eq!(seen.target, "http://api.example:8080/a?b=c");
    assert_eq!(seen.header("host"), Some("api.example:8080"));
}

#[test]
fn h35_what_stands_behind_a_proxy_is_resolved_and_checked_all_the_same() {
    let (port, told_of) = tunnels("200 OK");
    for scheme in ["http", "https"] {
        let allow = format!("GET {scheme}://api.example/**");
        let warden = proxied(&allow, "", &format!("{scheme} = \"http://127.0.0.1:{port}\""));
        let tools = Guarded::resolving(warden, ScriptedNames::new(&[&["10.0.0.1"]]));
        let arguments = json!({ "scheme": scheme, "authority": "api.example" });
        let report = tools.call("fetches", &arguments);
        assert_eq!(report.outcome.as_str(), "denied");
        assert!(told(&report).contains("10.0.0.1, which is not a public address"));
    }
    assert!(told_of.lock().unwrap().is_empty(), "{told_of:?}");
}

#[test]
fn what_the_policy_exempts_goes_straight() {
    let (proxy, server) = (Server::saying("proxied"), Server::saying("straight"));
    let proxies =
        format!("http = \"http://127.0.0.1:{}\"\nbypass = [\"*.inside.example\"]", proxy.port);
    for (host, want) in
        [("a.inside.example", "straight"), ("a.example", "proxied"), ("127.0.0.1", "straight")]
    {
        let allow = format!("GET http://{host}:{}/**", server.port);
        let range = if host == "127.0.0.1" { "" } else { ", range = \"127.0.0.0/8\"" };
        let warden = proxied(&allow, &format!(", to-private = true{range}"), &proxies);
        let tools = Guarded::resolving(warden, ScriptedNames::new(&[&["127.0.0.1"]]));
        let arguments = json!({ "authority": format!("{host}:{}", server.port) });
        assert_eq!(data(&tools.call("fetches", &arguments))["body"], want, "{host}");
    }
}

/// Over plain HTTP a proxy answers like the server behind it. Its own demand for credentials is no
/// answer of that server, which may say so itself when nothing stands in between.
#[test]
fn a_plain_proxy_that_wants_credentials_is_not_taken_for_the_server() {
    let wants =
        || Server::start(|_| Response::with(407, &[("proxy-authenticate", "Basic")], "who?"));
    let (proxy, server) = (wants(), wants());
    let address = format!("http = \"http://127.0.0.1:{}\"", proxy.port);
    let warden = proxied("GET http://api.example/**", "", &address);
    let tools = Guarded::resolving(warden, ScriptedNames::new(&[&["93.184.216.34"]]));
    let report = tools.call("fetches", &json!({ "authority": "api.example" }));
    assert!(told(&report).contains("the proxy answered with status 407"), "{}", told(&report));
    let straight = Guarded::by(hostile(&server, ""));
    let report = straight.call("fetches", &json!({ "authority": server.authority() }));
    assert_eq!(data(&report)["status"], 407, "{}", told(&report));
}

#[test]
fn a_proxy_that_refuses_is_named_as_such() {
    let (port, _) = tunnels("407 Proxy Authentication Required");
    let allow = "GET https://api.example/**";
    let warden = proxied(allow, "", &format!("https = \"http://127.0.0.1:{port}\""));
    let tools = Guarded::resolving(warden, ScriptedNames::new(&[&["93.184.216.34"]]));
    let report = tools.call("fetches", &json!({ "scheme": "https", "authority": "api.example" }));
    assert!(told(&report).contains("the proxy answered with status 407"), "{}", told(&report));
}

/// In a process of its own, since whom a process trusts is said once for all of it.
#[test]
fn a_tunnel_leads_to_a_checked_address_and_tls_through_it_to_the_name() {
    let Ok(ports) = std::env::var(PORTS) else {
        let authority = tls::authority();
        let port = tls::serve(tls::certificate(&authority, "api.example", 2100), tls::HELLO);
        let (proxy, told_of) = tunnels("200 OK");
        let folder = tempfile::tempdir().unwrap();
        let trusted = folder.path().join("trusted.pem");
        std::fs::write(&trusted, authority.pem()).unwrap();
        let own = "http_proxy::a_tunnel_leads_to_a_checked_address_and_tls_through_it_to_the_name";
        let status = std::process::Command::new(std::env::current_exe().unwrap())
            .args([own, "--exact"])
            .env(PORTS, format!("{port} {proxy}"))
            .env("SSL_CERT_FILE", &trusted)
            .status();
        assert!(status.unwrap().success());
        let target = format!("CONNECT 127.0.0.1:{port} HTTP/1.1");
        assert_eq!(*told_of.lock().unwrap(), [target.clone(), target]);
        return;
    };
    let (port, proxy) = ports.split_once(' ').unwrap();
    for (name, want) in [("api.example", "hello"), ("other.example", "TlsCertificateError")] {
        let allow = format!("GET https://{name}:{port}/**");
        let private = ", to-private = true, range = \"127.0.0.0/8\"";
        let warden = proxied(&allow, private, &format!("https = \"http://127.0.0.1:{proxy}\""));
        let tools = Guarded::resolving(warden, ScriptedNames::new(&[&["127.0.0.1"]]));
        let arguments = json!({ "scheme": "https", "authority": format!("{name}:{port}") });
        let report = tools.call("fetches", &arguments);
        assert!(told(&report).contains(want), "{}", told(&report));
    }
}
