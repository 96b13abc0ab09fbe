//! `plugin add https://…`: what is downloaded, from where, and what is refused.

use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};

use crate::{
    support::{
        Home,
        home::{Ran, plugin_component},
        server::{Request, Response, Server},
    },
    tls,
};

/// A server with a component, and with answers that are none.
fn server() -> Server {
    let component = plugin_component("clock");
    Server::start(move |request: &Request| match request.target.as_str() {
        "/clock.wasm" => Response::bytes(&[], &component),
        "/moved" => Response::with(302, &[("location", "/clock.wasm")], ""),
        "/loop" => Response::with(302, &[("location", "/loop")], ""),
        "/away" => Response::with(302, &[("location", "ftp://127.0.0.1/clock.wasm")], ""),
        "/huge" => Response::Bytes(b"HTTP/1.1 200 OK\r\ncontent-length: 99999999\r\n\r\n".to_vec()),
        "/endless" => Response::Flood(vec![b'x'; 1 << 16]),
        "/cut" => Response::Bytes(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc".to_vec()),
        "/page" => Response::ok("<html>"),
        _ => Response::with(404, &[], ""),
    })
}

fn sha256() -> String {
    format!("sha256:{}", HEXLOWER.encode(&Sha256::digest(plugin_component("clock"))))
}

fn add(home: &Home, address: &str, flags: &[&str]) -> Ran {
    home.run(&[&["plugin", "add", address], flags].concat())
}

#[test]
fn a_component_is_downloaded_checked_and_installed() {
    let (home, server, digest) = (Home::new(), server(), sha256());
    let flags = ["--allow-private", "--yes", "--digest", &digest];
    add(&home, &format!("{}/clock.wasm", server.url()), &flags)
        .ended(0)
        .answers(&["Installed clock."]);
    home.run(&["plugin", "update", "clock", "--allow-private", "--yes", "--digest", &digest])
        .ended(0)
        .answers(&["clock is up to date."]);
    let moved = Home::new();
    add(&moved, &format!("{}/moved", server.url()), &flags).ended(0).answers(&["Installed"]);
}

#[test]
fn what_cannot_be_downloaded_installs_nothing() {
    let (home, server, digest) = (Home::new(), server(), sha256());
    let flags: &[&str] = &["--allow-private", "--yes", "--digest", &digest];
    let wrong: &[&str] = &["--allow-private", "--yes", "--digest", &"0".repeat(64)];
    for (path, flags, code, remark) in [
        ("/clock.wasm", &["--yes"][..], 2, "no digest is given"),
        ("/clock.wasm", &["--yes", "--digest", &digest], 2, "is on the private network"),
        ("/clock.wasm", wrong, 9, "has another digest"),
        ("/clock.wasm", &["--allow-private"], 6, "--yes"),
        ("/nothing", flags, 1, "answered 404"),
        ("/loop", flags, 1, "redirects too often"),
        ("/away", flags, 1, "cannot download from 127.0.0.1"),
        ("/huge", flags, 9, "larger than 64 MiB"),
        ("/cut", flags, 1, "cannot download from 127.0.0.1"),
        ("/page", flags, 9, "is not a WebAssembly file"),
    ] {
        let ran = add(&home, &format!("{}{path}", server.url()), flags);
        ran.ended(code).remarks(&[remark]);
    }
    assert!(!home.path("plugins/clock").exists());
}

#[test]
fn h44_a_download_believes_only_a_certificate_that_the_system_trusts() {
    let authority = tls::authority();
    let port = tls::serve(tls::certificate(&authority, "localhost", 2999), tls::HELLO);
    let (address, digest) = (format!("https://localhost:{port}/clock.wasm"), sha256());
    let flags: &[&str] = &["--allow-private", "--yes", "--digest", &digest];
    add(&Home::new(), &address, flags).ended(1).remarks(&["cannot download from localhost"]);
    let trusting = tls::trusting(Home::new(), &authority);
    add(&trusting, &address, flags).ended(9).remarks(&["is not a WebAssembly file"]);
    add(&trusting, &address, &flags[1..]).ended(2).remarks(&["is on the private network"]);
}
