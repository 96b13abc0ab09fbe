//! Packages: fetched by the host from an index of the loopback, as far as the policy lets it.

use std::{io::Write, sync::Arc};

use data_encoding::HEXLOWER;
use sallyport_contract::{CallReport, Services};
use sallyport_packages::PackageIndex;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tempfile::TempDir;
use zip::{ZipWriter, write::SimpleFileOptions};

use crate::support::{
    Guarded, Home, Response, Scripted, Server,
    home::{plugin_component, repository},
    registry::{data, told},
};

/// A package that draws tables, in one file, as the well-known one is.
const SOURCE: &str = r#"
"""Draws tables."""
__version__ = "1.2.0"

def table(rows, headers=()):
    rows = [list(map(str, row)) for row in ([headers] if headers else []) + list(rows)]
    widths = [max(map(len, column)) for column in zip(*rows)]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows)
"#;

const METADATA: &str =
    "Metadata-Version: 2.1\nName: tables\nVersion: 1.2.0\nRequires-Dist: wcwidth\n";

fn wheel() -> Vec<u8> {
    let mut writer = ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (path, text) in [
        ("tables/__init__.py", SOURCE),
        ("tables/data.txt", "beside the code"),
        ("tables-1.2.0.dist-info/METADATA", METADATA),
    ] {
        writer.start_file(path, SimpleFileOptions::default()).unwrap();
        writer.write_all(text.as_bytes()).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

fn answer(media_type: &str, body: &[u8]) -> Response {
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: {media_type}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    Response::Bytes([head.as_bytes(), body].concat())
}

/// An index with one package.
fn index() -> Server {
    let wheel = wheel();
    let file = "tables-1.2.0-py3-none-any.whl";
    let sha256 = HEXLOWER.encode(&Sha256::digest(&wheel));
    let entry = json!({ "filename": file, "url": "/files/it", "hashes": { "sha256": sha256 } });
    let page = json!({ "meta": { "api-version": "1.0" }, "name": "tables", "files": [entry] });
    Server::start(move |request| match request.target.as_str() {
        "/simple/tables/" => {
            answer("application/vnd.pypi.simple.v1+json", page.to_string().as_bytes())
        }
        "/files/it" => answer("application/zip", &wheel),
        _ => Response::Bytes(
            b"HTTP/1.1 404 Not Found\r\nconnection: close\r\ncontent-length: 0\r\n\r\n".to_vec(),
        ),
    })
}

/// The interpreter, with an index that it may use as the policy says.
struct Python {
    guarded: Guarded,
    server: Server,
    _wheels: TempDir,
}

impl Python {
    fn granted(packages: &str) -> Self {
        let (server, wheels) = (index(), TempDir::new().unwrap());
        let index =
            PackageIndex::open(&format!("{}/simple", server.url()), wheels.path().join("wheels"));
        let services = Services { packages: Some(Arc::new(index.unwrap())), ..Services::default() };
        let manifest = repository().join("plugins-wasm/python/plugin.toml");
        let manifest = std::fs::read_to_string(manifest).unwrap();
        let policy = format!("[plugin.python]\n{packages}\n");
        let warden = Scripted::of_manifest(&manifest, &policy).offering(services);
        let guarded = Guarded::of(warden, plugin_component("python")).unwrap();
        Self { guarded, server, _wheels: wheels }
    }

    fn run(&self, code: &str, dependencies: &[&str]) -> CallReport {
        let arguments = json!({ "code": code, "dependencies": dependencies });
        self.guarded.call("execute", &arguments)
    }

    #[track_caller]
    fn result(&self, code: &str, dependencies: &[&str]) -> Value {
        data(&self.run(code, dependencies))["result"].clone()
    }
}

const DRAW: &str = "import tables\ntables.table([['bread', 3], ['milk', 14]], ['what', 'n'])";
const DRAWN: &str = "what   n\nbread  3\nmilk   14";

#[test]
fn a_wheel_is_installed_and_stays_for_the_conversation() {
    let python = Python::granted("packages = [\"tables==1.2.0\"]");
    let report = python.run(DRAW, &["tables==1.2.0"]);
    assert_eq!(data(&report)["result"], DRAWN, "{report:?}");
    assert!(data(&report)["missing"].to_string().contains("wcwidth"), "{report:?}");
    let asked = python.server.seen().len();
    assert_eq!(python.result(DRAW, &[]), DRAWN, "it is still there");
    assert_eq!(python.result(DRAW, &["tables==1.2.0"]), DRAWN);
    assert_eq!(python.server.seen().len(), asked, "nobody is asked again");
    let version = "import importlib.metadata as m\nm.version('tables')";
    assert_eq!(python.result(version, &[]), "1.2.0");
    let beside =
        "import importlib.resources as r\nr.files('tables').joinpath('data.txt').read_text()";
    assert_eq!(python.result(beside, &[]), "beside the code");
    python.guarded.call("reset", &json!({}));
    assert!(told(&python.run(DRAW, &[])).contains("ModuleNotFoundError"));
}

#[test]
fn nothing_is_fetched_that_is_not_granted_and_the_code_does_not_run() {
    for (packages, wanted) in [
        ("", "tables==1.2.0"),
        ("packages = [\"six\"]", "tables==1.2.0"),
        ("packages = [\"tables==1.1.0\"]", "tables==1.2.0"),
    ] {
        let python = Python::granted(packages);
        let report = python.run("open('/sandbox/ran', 'w')", &[wanted]);
        assert_eq!(report.outcome.as_str(), "denied", "{packages}: {report:?}");
        assert_eq!(python.server.seen().len(), 0, "{packages}");
    }
}

#[test]
fn what_is_no_pinned_package_or_is_not_there_is_said() {
    let python = Python::granted("packages = [\"*\"]");
    for (wanted, want) in [
        ("tables", "invalid-arguments"),
        ("tables>=1", "invalid-arguments"),
        ("../tables==1.2.0", "invalid-arguments"),
        ("tables==9", "failed"),
        ("nothing==1", "failed"),
    ] {
        let report = python.run("1", &[wanted]);
        assert!(told(&report).starts_with(want), "{wanted}: {}", told(&report));
    }
    assert_eq!(python.result("1 + 1", &[]), 2, "the next call works");
}

#[test]
fn the_index_is_the_one_of_the_configuration() {
    let server = index();
    let arguments = json!({ "code": DRAW, "dependencies": ["tables==1.2.0"] });
    let rule = "[[rule]]\ntool = \"python.*\"\ndecision = \"allow\"\n";
    let granted = format!("[plugin.python]\npackages = [\"tables\"]\n{rule}");
    let named = format!("[packages]\nindex = \"{}/simple\"\n", server.url());
    for (policy, config, outcome, want) in [
        (granted.as_str(), named.as_str(), "completed", "bread  3"),
        (rule, named.as_str(), "denied", "packages"),
        (granted.as_str(), "", "failed", "index"),
    ] {
        let home = Home::new().plugins(&["python"]).policy(policy).config(config);
        let (told, _) = home.call("python.execute", &arguments);
        assert_eq!(told["outcome"], outcome, "{config}{policy}: {told}");
        assert!(told.to_string().contains(want), "{told}");
    }
}
