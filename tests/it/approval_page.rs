//! The approval page of a chat: one browser of the network answers, and nobody else.

use std::{
    io::{Read, Write},
    net::TcpStream,
    sync::{Arc, Mutex},
};

use rustls::{
    ClientConfig, ClientConnection, DigitallySignedStruct, Error, SignatureScheme, StreamOwned,
    client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    crypto::ring,
    pki_types::{CertificateDer, ServerName, UnixTime},
};
use serde_json::json;
use sha2::{Digest, Sha256};

use crate::support::{
    Home, OpenAi, Person, Reply, patience::until, person::CARD_KEYS, warden::requests,
};

/// A chat at a terminal, whose model asks for one call.
struct AskedChat {
    home: Home,
    person: Person,
    /// Host and port of the page.
    authority: String,
    link: String,
    _model: OpenAi,
}

impl AskedChat {
    fn start() -> Self {
        let model = OpenAi::start(vec![
            Reply::call("c1", "hostile__echo", &json!({ "text": "<b>bold</b>" })),
            Reply::Text("the end of it"),
        ]);
        let home = Home::new()
            .env("OPENAI_BASE_URL", model.base_url())
            .env("SALLYPORT_MODEL", "m")
            .guest("hostile", &requests(&["GET https://hostile.example/"]))
            .policy("[plugin.hostile]\nnet = [\"GET https://hostile.example/\"]\n");
        let args = ["chat", "--approve-by-phone=127.0.0.1", "go"];
        let person = Person::start_sized(&home, &args, 60, 120);
        person.sees("https://127.0.0.1:");
        let screen = person.screen();
        let begin = screen.find("https://127.0.0.1:").unwrap();
        let link = screen[begin..].split_whitespace().next().unwrap();
        let (authority, path) = link.strip_prefix("https://").unwrap().split_once('/').unwrap();
        let (authority, link) = (authority.to_owned(), format!("/{path}"));
        Self { home, person, authority, link, _model: model }
    }

    /// Sends a request as the browser of the page would, and returns the whole answer.
    fn browse(&self, method: &str, path: &str, cookie: &str, body: &str) -> String {
        let origin = format!("https://{}", self.authority);
        self.request(method, path, &[("Cookie", cookie), ("Origin", &origin)], body)
    }

    fn request(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> String {
        let host = [("Host", self.authority.as_str())];
        self.raw_request(method, path, &[&host, headers].concat(), body).0
    }

    /// The answer, and the fingerprint of the certificate.
    fn raw_request(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> (String, String) {
        let mut text = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
        for (name, value) in headers {
            text += &format!("{name}: {value}\r\n");
        }
        text += "Content-Type: application/x-www-form-urlencoded\r\n";
        text += &format!("Content-Length: {}\r\n\r\n{body}", body.len());
        let verifier = Arc::new(AnyCertificate::default());
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .dangerous()
            .with_custom_certificate_verifier(Arc::clone(&verifier) as _)
            .with_no_client_auth();
        let name = ServerName::try_from("127.0.0.1").unwrap();
        let connection = ClientConnection::new(Arc::new(config), name).unwrap();
        let mut stream = StreamOwned::new(connection, TcpStream::connect(&self.authority).unwrap());
        stream.write_all(text.as_bytes()).unwrap();
        let mut answer = Vec::new();
        // The server may close without a farewell.
        let _ = stream.read_to_end(&mut answer);
        let fingerprint = verifier.fingerprint.lock().unwrap().clone();
        (String::from_utf8_lossy(&answer).into_owned(), fingerprint)
    }

    /// Opens the link, and returns the cookie.
    fn open_link(&self) -> String {
        let answer = self.browse("POST", &self.link, "", "");
        assert!(answer.starts_with("HTTP/1.1 303"), "{answer}");
        let cookie = answer.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
        for word in ["Secure", "HttpOnly", "SameSite=Strict", "Path=/"] {
            assert!(cookie.contains(word), "{cookie}");
        }
        cookie.split(';').next().unwrap().to_owned()
    }

    /// The page with the question, its id and its hash.
    fn question(&self, cookie: &str) -> (String, String, String) {
        until("a question on the page", || {
            let page = self.browse("GET", "/", cookie, "");
            let value = |name: &str| {
                let (_, rest) = page.split_once(&format!("name=\"{name}\" value=\""))?;
                Some(rest.split('"').next()?.to_owned())
            };
            Some((page.clone(), value("id")?, value("hash")?))
        })
    }

    fn answer(&self, cookie: &str, id: &str, hash: &str, word: &str) -> String {
        let form = format!("id={id}&hash={hash}&answer={word}");
        self.browse("POST", "/answer", cookie, &form)
    }

    fn completed(&self) -> usize {
        let args =
            ["audit", "show", "--kind", "call", "--outcome", "completed", "--output", "json"];
        self.home.run(&args).ended(0).stdout.lines().count()
    }

    fn leave(mut self) {
        self.person.types("/quit\r");
        assert_eq!(self.person.ends(), 0);
        assert!(TcpStream::connect(&self.authority).is_err(), "the page ends with the chat");
    }
}

/// Accepts each certificate, and keeps its fingerprint.
#[derive(Debug, Default)]
struct AnyCertificate {
    fingerprint: Mutex<String>,
}

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let pairs: Vec<String> =
            Sha256::digest(certificate).iter().map(|byte| format!("{byte:02X}")).collect();
        *self.fingerprint.lock().unwrap() = pairs.join(":");
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        ring::default_provider().signature_verification_algorithms.supported_schemes()
    }
}

#[track_caller]
fn check_status(answer: &str, status: u16, words: &str) {
    assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{answer}");
    assert!(answer.contains(words), "{words}: {answer}");
    assert!(answer.contains("content-security-policy: default-src 'none'"), "{answer}");
}

#[test]
fn a_question_is_answered_on_a_phone() {
    let chat = AskedChat::start();
    let cookie = chat.open_link();
    chat.person.sees("a browser at 127.0.0.1 answers approvals");
    let (page, id, hash) = chat.question(&cookie);
    for words in ["hostile.echo", "&lt;b&gt;bold&lt;/b&gt;", "Allow once", "Refuse", "Expires in"] {
        assert!(page.contains(words), "{words}: {page}");
    }
    assert!(!page.contains("<b>bold") && !page.contains("http-equiv"), "{page}");
    check_status(&chat.answer(&cookie, &id, &hash, "once"), 200, "Allowed once.");
    chat.person.sees("the end of it");
    assert_eq!(chat.completed(), 1);
    // The same again changes nothing, and without a question the page looks for one.
    check_status(&chat.answer(&cookie, &id, &hash, "once"), 409, "not asked any more");
    let page = chat.browse("GET", "/", &cookie, "");
    check_status(&page, 200, "No question waits");
    assert!(page.contains("http-equiv=\"refresh\""), "{page}");
    chat.leave();
}

#[test]
fn nobody_else_answers_on_the_page() {
    let chat = AskedChat::start();
    let (link, origin) = (chat.link.clone(), format!("https://{}", chat.authority));
    // A preview of the link does not open it.
    for _ in 0..2 {
        check_status(&chat.browse("GET", &link, "", ""), 200, "Use this browser");
    }
    let host = ("Host", chat.authority.as_str());
    for (headers, path) in [
        (vec![host], &link),
        (vec![host, ("Origin", "https://evil.example")], &link),
        (vec![host, ("Origin", "null")], &link),
        (vec![("Host", "evil.example"), ("Origin", &origin)], &link),
    ] {
        check_status(&chat.raw_request("POST", path, &headers, "").0, 403, "for another page");
    }
    check_status(&chat.raw_request("GET", "/", &[("Host", "evil.example")], "").0, 403, "another");
    check_status(&chat.browse("GET", "/", "__Host-approver=x", ""), 403, "Open the link");
    check_status(&chat.browse("POST", "/link/AAAAAAAAAAAAAAAAAAAAAA", "", ""), 410, "used before");
    check_status(&chat.browse("GET", "/link/AAAAAAAAAAAAAAAAAAAAAA", "", ""), 404, "no such page");
    let cookie = chat.open_link();
    check_status(&chat.browse("POST", &link, "", ""), 410, "used before");
    check_status(&chat.browse("GET", &link, "", ""), 410, "used before");
    let (_, id, hash) = chat.question(&cookie);
    let other = if hash.ends_with('0') { "1" } else { "0" };
    let changed = format!("{}{other}", &hash[..hash.len() - 1]);
    check_status(&chat.answer("", &id, &hash, "once"), 403, "Open the link");
    check_status(&chat.answer(&cookie, &id, &changed, "once"), 409, "not the one");
    check_status(&chat.answer(&cookie, &id, "", "once"), 409, "needs the hash");
    check_status(&chat.answer(&cookie, "zz", &hash, "once"), 409, "not asked");
    check_status(&chat.answer(&cookie, &id, &hash, "yes"), 400, "not an answer");
    let headers = [host, ("Cookie", cookie.as_str()), ("Origin", "https://evil.example")];
    let form = format!("id={id}&hash={hash}&answer=once");
    check_status(&chat.raw_request("POST", "/answer", &headers, &form).0, 403, "another page");
    let long = format!("{form}&reason={}", "x".repeat(20 << 10));
    let answer = chat.browse("POST", "/answer", &cookie, &long);
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 413"), "{answer}");
    assert_eq!(chat.completed(), 0, "none of it was an answer");
    check_status(&chat.answer(&cookie, &id, &hash, "no"), 200, "Refused.");
    chat.person.sees("the end of it");
    assert_eq!(chat.completed(), 0);
    chat.leave();
}

#[test]
fn the_terminal_answers_first_and_the_page_is_told() {
    let mut chat = AskedChat::start();
    let cookie = chat.open_link();
    let (_, id, hash) = chat.question(&cookie);
    chat.person.sees(CARD_KEYS);
    chat.person.types("y");
    chat.person.sees("the end of it");
    let answer = chat.answer(&cookie, &id, &hash, "no");
    check_status(&answer, 409, "nothing was answered");
    assert_eq!(chat.completed(), 1);
    chat.leave();
}

#[test]
fn the_certificate_is_the_one_that_the_terminal_names() {
    let chat = AskedChat::start();
    let host = [("Host", chat.authority.as_str())];
    let (_, fingerprint) = chat.raw_request("GET", "/", &host, "");
    let screen: String = chat.person.screen().split_whitespace().collect();
    assert!(screen.contains(&fingerprint), "{fingerprint} in {screen}");
    // Without encryption nothing is answered.
    let mut plain = TcpStream::connect(&chat.authority).unwrap();
    plain.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    let _ = plain.read_to_end(&mut answer);
    assert!(!answer.starts_with(b"HTTP"), "{answer:?}");
    let cookie = chat.open_link();
    let (_, id, hash) = chat.question(&cookie);
    check_status(&chat.answer(&cookie, &id, &hash, "no"), 200, "Refused.");
    chat.person.sees("the end of it");
    chat.leave();
}

#[test]
fn an_address_of_another_machine_is_refused() {
    let home = Home::new();
    for (flag, words) in [
        ("--approve-by-phone=203.0.113.9", "name an address of this machine"),
        ("--approve-by-phone=phone", "--approve-by-phone"),
    ] {
        let ran = home.run(&["chat", flag, "-m", "offline"]);
        assert!(ran.code == 1 || ran.code == 2, "{}", ran.stderr);
        assert!(ran.stderr.contains(words), "{}", ran.stderr);
    }
}
