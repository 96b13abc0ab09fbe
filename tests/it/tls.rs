//! Certificates: a server is who it says it is, or nobody is spoken to.

use std::{
    io::{Read, Write},
    net::{Shutdown, TcpListener},
    sync::Arc,
    thread,
};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, date_time_ymd};
use rustls::{
    ServerConfig, ServerConnection, Stream,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer},
};
use serde_json::json;

use crate::{network, support::Home};

pub(crate) type Authority = CertifiedIssuer<'static, KeyPair>;

/// A certificate authority of the test's own.
pub(crate) fn authority() -> Authority {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// A certificate for a name that ran out in a year.
pub(crate) fn certificate(
    authority: &Authority,
    name: &str,
    until: i32,
) -> (CertificateDer<'static>, KeyPair) {
    let mut params = CertificateParams::new([name.to_owned()]).unwrap();
    params.not_before = date_time_ymd(2020, 1, 1);
    params.not_after = date_time_ymd(until, 1, 1);
    let key = KeyPair::generate().unwrap();
    (params.signed_by(&key, authority).unwrap().der().clone(), key)
}

/// What a friendly server says.
pub(crate) const HELLO: &str =
    "HTTP/1.1 200 OK\r\ncontent-length: 5\r\nconnection: close\r\n\r\nhello";

/// A server that says one thing over TLS. Returns its port.
pub(crate) fn serve((certificate, key): (CertificateDer<'static>, KeyPair), answer: &str) -> u16 {
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let answer = answer.to_owned();
    thread::spawn(move || {
        for mut socket in listener.incoming().flatten() {
            let mut connection = ServerConnection::new(Arc::clone(&config)).unwrap();
            let mut stream = Stream::new(&mut connection, &mut socket);
            // A client that does not trust the certificate goes away.
            let begun = stream.read(&mut [0; 1024]).is_ok_and(|bytes| bytes > 0);
            if begun && connection.alpn_protocol() == Some(b"http/1.1") {
                let mut stream = Stream::new(&mut connection, &mut socket);
                let _ = stream.write_all(answer.as_bytes());
                connection.send_close_notify();
                let _ = connection.complete_io(&mut socket);
            }
            let _ = socket.shutdown(Shutdown::Write);
        }
    });
    port
}

/// A home whose program trusts an authority.
pub(crate) fn trusting(home: Home, authority: &Authority) -> Home {
    let home = home.file("trusted.pem", authority.pem());
    let file = home.path("trusted.pem").to_str().unwrap().to_owned();
    home.env("SSL_CERT_FILE", file)
}

/// Fetches from `localhost`; the program trusts the authority, when there is one.
#[track_caller]
fn check(port: u16, trusted: Option<&Authority>, want: &str) {
    let allow = format!("GET https://localhost:{port}/**");
    let grant = format!("{{ allow = \"{allow}\", to-private = true }}");
    let mut home = network::home(&[&allow], &[&grant], "");
    if let Some(authority) = trusted {
        home = trusting(home, authority);
    }
    let arguments = json!({ "scheme": "https", "authority": format!("localhost:{port}") });
    let (told, _) = home.call("hostile.fetches", &arguments);
    assert!(told["result"].to_string().contains(want), "{want:?} is not in {told}");
}

#[test]
fn a_certificate_that_the_system_trusts_is_trusted() {
    let authority = authority();
    check(serve(certificate(&authority, "localhost", 2100), HELLO), Some(&authority), "hello");
}

#[test]
fn h44_every_other_certificate_is_refused() {
    let (authority, other) = (authority(), authority());
    let good = || certificate(&authority, "localhost", 2100);
    check(serve(good(), HELLO), None, "TlsCertificateError");
    check(serve(good(), HELLO), Some(&other), "TlsCertificateError");
    check(
        serve(certificate(&authority, "evil.example", 2100), HELLO),
        Some(&authority),
        "TlsCertificateError",
    );
    check(
        serve(certificate(&authority, "localhost", 2021), HELLO),
        Some(&authority),
        "TlsCertificateError",
    );
}

#[test]
fn h44_a_server_without_tls_is_not_spoken_to_over_https() {
    let plain = crate::support::Server::saying("hello");
    check(plain.port, None, "Tls");
}
