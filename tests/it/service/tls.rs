//! The service with a certificate of its own.

use std::{
    fs,
    io::{Read, Write},
    net::TcpStream,
    os::unix::fs::PermissionsExt,
    sync::Arc,
    thread,
};

use rcgen::{CertificateParams, KeyPair, date_time_ymd};
use rustls::{
    ClientConfig, ClientConnection, RootCertStore, StreamOwned,
    client::Resumption,
    crypto::ring,
    pki_types::{CertificateDer, ServerName},
};

use super::{EventReader, HttpReply, bearer, home, read_reply, talking_model, token};
use crate::{
    support::{
        Home, OpenAi, Running,
        patience::{PATIENCE, until_so},
    },
    tls::{Authority, authority},
};

/// The name in the certificates.
const NAME: &str = "sallyport.example";

type TlsStream = StreamOwned<ClientConnection, TcpStream>;

/// A home whose service has a certificate of an authority of the test's own.
struct EncryptedHome {
    home: Home,
    authority: Authority,
    _model: OpenAi,
}

/// A service that speaks TLS.
struct EncryptedService {
    running: Running,
    address: String,
    client: Arc<ClientConfig>,
}

impl EncryptedHome {
    fn new() -> Self {
        let model = talking_model();
        let home = home(&model);
        let keys = ["certificate_file = '", "key_file = '"];
        let [certificate, key] = ["chain.pem", "key.pem"].map(|name| home.path(name));
        let (certificate, key) = (certificate.display(), key.display());
        let table = format!("[serve]\n{}{certificate}'\n{}{key}'\n", keys[0], keys[1]);
        let made = Self { home: home.config(table), authority: authority(), _model: model };
        made.write_certificate(2040);
        made
    }

    /// Writes a certificate that ends with the beginning of a year, and its key.
    fn write_certificate(&self, ends: i32) {
        let mut params = CertificateParams::new([NAME.to_owned()]).unwrap();
        params.not_before = date_time_ymd(2020, 1, 1);
        params.not_after = date_time_ymd(ends, 1, 1);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.authority).unwrap();
        self.write("chain.pem", &certificate.pem());
        self.write("key.pem", &key.serialize_pem());
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.home.path(name), text).unwrap();
        fs::set_permissions(self.home.path(name), fs::Permissions::from_mode(0o600)).unwrap();
    }

    fn serve(&self) -> EncryptedService {
        let origin = format!("https://{NAME}");
        let args = ["serve", "--listen", "127.0.0.1:0", "--origin", &origin];
        let running = Running::start(&self.home, &args);
        let line = running.behind("tools at https://");
        let address = line.split_once("/v1").unwrap().0.to_owned();
        let mut roots = RootCertStore::empty();
        roots.add(self.authority.der().clone()).unwrap();
        let mut client = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        // A session that is resumed shows no certificate.
        client.resumption = Resumption::disabled();
        EncryptedService { running, address, client: Arc::new(client) }
    }
}

impl EncryptedService {
    fn connect_plain(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// Opens a connection that trusts the authority.
    fn connect(&self) -> TlsStream {
        let name = ServerName::try_from(NAME).unwrap();
        let connection = ClientConnection::new(Arc::clone(&self.client), name).unwrap();
        StreamOwned::new(connection, self.connect_plain())
    }

    fn request(&self, method: &str, path: &str, lines: &str, body: &str) -> HttpReply {
        let length = body.len();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: {NAME}\r\nConnection: close\r\n\
             Content-Type: application/json\r\nContent-Length: {length}\r\n{lines}\r\n"
        );
        let mut stream = self.connect();
        stream.write_all((head + body).as_bytes()).unwrap();
        read_reply(stream)
    }

    /// The certificate that a new connection gets.
    fn shown_certificate(&self) -> CertificateDer<'static> {
        let mut stream = self.connect();
        while stream.conn.is_handshaking() {
            stream.conn.complete_io(&mut stream.sock).unwrap();
        }
        stream.conn.peer_certificates().unwrap()[0].clone()
    }
}

#[test]
fn a_log_in_over_tls_has_a_secure_cookie_and_browsers_keep_to_tls() {
    let home = EncryptedHome::new();
    let ann = token(&home.home, "ann", "user");
    let service = home.serve();
    let reply = service.request("GET", "/v1/tools", &bearer(&ann), "").has(200);
    assert!(reply.head.contains("strict-transport-security: max-age=31536000"), "{reply:#?}");
    // A program that logs in names no origin.
    let body = format!("{{\"token\": \"{ann}\"}}");
    let line = "Sallyport-Console: 1\r\n";
    let reply = service.request("POST", "/console/login", line, &body).has(200);
    let cookie = &reply.cookies[0];
    assert!(cookie.starts_with("__Host-") && cookie.ends_with("; Secure"), "{cookie}");
    let pair = cookie.split(';').next().unwrap();
    let lines = format!("{line}Cookie: {pair}\r\n");
    service.request("GET", "/console/user", &lines, "").has(200);
    let plain = lines.replace("__Host-", "");
    service.request("GET", "/console/user", &plain, "").has(401);
    let lines = format!("{}Origin: http://{NAME}\r\n", bearer(&ann));
    let refused = service.request("GET", "/v1/tools", &lines, "").has(403);
    assert_eq!(refused.problem(), "foreign-origin");
}

#[test]
fn a_renewed_certificate_needs_no_restart_and_a_broken_one_changes_nothing() {
    let home = EncryptedHome::new();
    let ann = bearer(&token(&home.home, "ann", "user"));
    let service = home.serve();
    let first = service.shown_certificate();
    let session = service.request("POST", "/v1/sessions", &ann, "{}").has(201).json();
    let session = format!("/v1/sessions/{}", session["id"].as_str().unwrap());
    let mut kept = service.connect();
    let head = format!("GET {session}/events HTTP/1.1\r\nHost: {NAME}\r\n{ann}\r\n");
    kept.write_all(head.as_bytes()).unwrap();
    home.write_certificate(2041);
    service.running.remarks("Certificate renewed. It is valid until 2041-01-01T00:00:00Z.");
    let second = service.shown_certificate();
    assert_ne!(first, second);
    let said = r#"{"type": "submit-input", "input": {"text": "hello"}}"#;
    service.request("POST", &format!("{session}/commands"), &ann, said).has(202);
    let mut events = EventReader { stream: kept, text: String::new() };
    events.until("turn-ended");
    home.write("key.pem", "no key");
    service.running.remarks("the certificate stays as it was: the key");
    assert_eq!(service.shown_certificate(), second);
    home.write_certificate(2021);
    service.running.remarks("the certificate ended on 2021-01-01T00:00:00Z");
    home.write_certificate(2042);
    service.running.remarks("valid until 2042");
    service.request("GET", "/healthz", "", "").has(200);
    let (code, _, stderr) = service.running.interrupted();
    assert_eq!(code, 130, "{stderr}");
    assert!(!stderr.contains("PRIVATE"), "{stderr}");
}

#[test]
fn files_that_do_not_fit_are_refused_at_the_start() {
    let home = EncryptedHome::new();
    let refused = |texts: &[&str]| {
        home.home.run(&["serve", "--listen", "127.0.0.1:0"]).ended(2).remarks(texts);
    };
    home.write("key.pem", &KeyPair::generate().unwrap().serialize_pem());
    refused(&["[serve]", "does not belong to the certificate", "requested"]);
    home.write_certificate(2040);
    fs::set_permissions(home.home.path("key.pem"), fs::Permissions::from_mode(0o644)).unwrap();
    refused(&["other users can read it (mode 644)", "chmod 600"]);
    fs::remove_file(home.home.path("chain.pem")).unwrap();
    refused(&["the certificate", "chain.pem cannot be used"]);
    let half = home.home.path("half.toml");
    fs::write(&half, "[serve]\nkey_file = '/k.pem'\n").unwrap();
    let args = ["--config", half.to_str().unwrap(), "serve"];
    home.home.run(&args).ended(3).remarks(&["key \"certificate_file\" is missing"]);
}

#[test]
fn connections_without_tls_get_no_answer_and_end() {
    let home = EncryptedHome::new();
    let service = home.serve();
    let silent = service.connect_plain();
    let mut half = service.connect_plain();
    // The head of a record whose rest does not come.
    half.write_all(&[0x16, 3, 1, 2, 0]).unwrap();
    let mut plain = service.connect_plain();
    let head = format!("GET /healthz HTTP/1.1\r\nHost: {NAME}\r\n\r\n");
    plain.write_all(head.as_bytes()).unwrap();
    thread::scope(|scope| {
        let rest = |mut stream: TcpStream| {
            let mut bytes = Vec::new();
            // The service may break the connection.
            let _ = stream.read_to_end(&mut bytes);
            String::from_utf8_lossy(&bytes).into_owned()
        };
        let ends = [silent, half, plain].map(|stream| scope.spawn(move || rest(stream)));
        for end in ends {
            let answer = end.join().unwrap();
            assert!(!answer.contains("HTTP"), "{answer}");
        }
    });
    until_so("an answer", || service.request("GET", "/healthz", "", "").status == 200);
}

/// Where others can read what is sent, the operator learns it.
#[test]
fn an_address_without_tls_is_warned_about() {
    let home = home(&talking_model());
    let _ann = token(&home, "ann", "user");
    let rows: [(&[&str], bool); 3] = [
        (&["--listen", "127.0.0.1:0"], false),
        (&["--listen", "0.0.0.0:0"], true),
        (&["--listen", "0.0.0.0:0", "--origin", "https://sallyport.example"], false),
    ];
    for (args, is_warned) in rows {
        let running = Running::start(&home, &[&["serve"], args].concat());
        running.remarks("The console is at");
        let (_, _, stderr) = running.interrupted();
        assert_eq!(stderr.contains("are not encrypted"), is_warned, "{args:?} {stderr}");
    }
}
