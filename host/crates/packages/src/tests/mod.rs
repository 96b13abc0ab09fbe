//! Tests with an index on the loopback interface, generated wheels, and every kind of faulty
//! response.

mod server;

use std::{fs, io::Write, path::Path, sync::Arc};

use data_encoding::HEXLOWER;
use sallyport_contract::services::{PackageFetchError, PackageFile, PackageService};
use zip::{ZipWriter, write::SimpleFileOptions};

use crate::{
    PackageIndex, kept::sha256_digest, listing, project::ProjectVersion, wheel, wheel::WheelName,
};
use server::{Answer, Server};

const JSON: &str = "application/vnd.pypi.simple.v1+json";
const HTML: &str = "text/html; charset=utf-8";

type Fetched = Result<Arc<[PackageFile]>, PackageFetchError>;

fn wheel_of(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut writer = ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (path, data) in files {
        writer.start_file(*path, SimpleFileOptions::default()).unwrap();
        writer.write_all(data).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

fn small() -> Vec<u8> {
    wheel_of(&[("six.py", b"x = 6\n"), ("six-1.0.dist-info/METADATA", b"Name: six\n")])
}

fn hex(bytes: &[u8]) -> String {
    HEXLOWER.encode(&sha256_digest(bytes))
}

fn html(file: &str, fragment: &str) -> Answer {
    let text = format!("<!DOCTYPE html><a HREF='../files/{file}#{fragment}'>{file}</a><br>");
    Answer::ok(HTML, text)
}

fn json(file: &str, sha256: &str) -> Answer {
    let url = format!("/files/{file}");
    let file = serde_json::json!({"filename": file, "url": url, "hashes": {"sha256": sha256}});
    Answer::ok(JSON, serde_json::json!({"meta": {}, "files": [file]}).to_string())
}

/// Serves one project, `six`, with a page and a file, and fetches it.
async fn fetch(page: Answer, file: Answer, name: &str, version: &str) -> Fetched {
    let server = Server::start(move |path| match path {
        "/simple/six/" => page.clone(),
        path if path.starts_with("/files/") || path.starts_with("/simple/files/") => file.clone(),
        _ => Answer::status(404),
    });
    let folder = tempfile::tempdir().unwrap();
    let index =
        PackageIndex::open(&server.address("/simple"), folder.path().join("wheels")).unwrap();
    index.fetch_package(name, version).await
}

const WHEEL: &str = "six-1.0-py2.py3-none-any.whl";

#[tokio::test]
async fn a_wheel_is_found_in_both_forms_of_a_page() {
    let sha = hex(&small());
    for page in [json(WHEEL, &sha), html(WHEEL, &format!("sha256={sha}"))] {
        let files = fetch(page, Answer::ok("", small()), "Six", "1.0").await.unwrap();
        let paths: Vec<&str> = files.iter().map(|file| file.path.as_str()).collect();
        assert_eq!(paths, ["six.py", "six-1.0.dist-info/METADATA"]);
        assert_eq!(files[0].data, b"x = 6\n");
    }
}

#[tokio::test]
async fn what_cannot_be_had_is_said() {
    let sha = hex(&small());
    let good = || json(WHEEL, &sha);
    let file = || Answer::ok("", small());
    let rows = [
        (good(), file(), "six", "2.0", "no wheel of six in version 2.0"),
        (good(), file(), "seven", "1.0", "no package seven"),
        (good(), file(), "../six", "1.0", "is not the name of a package"),
        (good(), file(), "six", "../1.0", "is not a version"),
        (good(), file(), "six", "", "is not a version"),
        (json("six-1.0-cp311-cp311-linux_x86_64.whl", &sha), file(), "six", "1.0", "pure Python"),
        (json("six-1.0.tar.gz", &sha), file(), "six", "1.0", "no wheel of six"),
        (html(WHEEL, ""), file(), "six", "1.0", "lists no SHA-256"),
        (html(WHEEL, "md5=0123"), file(), "six", "1.0", "lists no SHA-256"),
        (json(WHEEL, &hex(b"other")), file(), "six", "1.0", "differs from the listed one"),
        (good(), Answer::status(404), "six", "1.0", "does not have it"),
        (good(), Answer::status(500), "six", "1.0", "answered 500"),
        (Answer::status(403), file(), "six", "1.0", "answered 403"),
        (Answer::ok(JSON, "{"), file(), "six", "1.0", "no wheel of six"),
        (Answer::ok(HTML, "<a href='http://[::1'>"), file(), "six", "1.0", "no wheel of six"),
        (Answer::hangs_up(), file(), "six", "1.0", "connection was lost"),
    ];
    for (page, file, name, version, words) in rows {
        let error = fetch(page, file, name, version).await.unwrap_err().to_string();
        assert!(error.contains(words), "{name} {version}: {error:?} does not say {words:?}");
        assert!(!error.contains("127.0.0.1"), "{error}");
    }
}

#[tokio::test]
async fn a_wheel_that_was_fetched_needs_no_index_any_more_and_a_changed_one_is_fetched_anew() {
    let folder = tempfile::tempdir().unwrap();
    let wheels = folder.path().join("wheels");
    let page = json(WHEEL, &hex(&small()));
    let server = Server::start(move |path| match path {
        "/simple/six/" => page.clone(),
        _ => Answer::ok("", small()),
    });
    let index = PackageIndex::open(&server.address("/simple/"), wheels.clone()).unwrap();
    index.fetch_package("six", "1.0").await.unwrap();
    let asked = server.asked();
    index.fetch_package("six", "1.0").await.unwrap();
    assert_eq!(server.asked(), asked, "the second time nobody is asked");
    let only = |folder: &Path| fs::read_dir(folder).unwrap().next().unwrap().unwrap().path();
    let kept = only(&only(&wheels));
    fs::write(&kept, wheel_of(&[("six.py", b"evil")])).unwrap();
    let files = index.fetch_package("six", "1.0").await.unwrap();
    assert_eq!(files[0].data, b"x = 6\n");
    assert!(server.asked() > asked, "what was changed is fetched again");
    // An entry that cannot be read, of the same version, hides nothing.
    let asked = server.asked();
    for digest in ["0", "1", "2", "e", "f"] {
        fs::create_dir(kept.with_file_name(format!("six=1.0={digest}.whl"))).unwrap();
    }
    index.fetch_package("six", "1.0").await.unwrap();
    assert_eq!(server.asked(), asked, "the good copy is still found");
}

#[tokio::test]
async fn what_one_index_gave_out_is_not_taken_for_what_another_one_has() {
    let folder = tempfile::tempdir().unwrap();
    for source in [&b"x = 6\n"[..], b"x = 7\n"] {
        let wheel = wheel_of(&[("six.py", source)]);
        let page = json(WHEEL, &hex(&wheel));
        let server = Server::start(move |path| match path {
            "/simple/six/" => page.clone(),
            _ => Answer::ok("", wheel.clone()),
        });
        let index =
            PackageIndex::open(&server.address("/simple/"), folder.path().to_owned()).unwrap();
        assert_eq!(index.fetch_package("six", "1.0").await.unwrap()[0].data, source);
    }
}

#[test]
fn wheels_that_are_not_taken() {
    let over = vec![0u8; 66 << 20];
    let rows: [(Vec<u8>, &str); 6] = [
        (b"PK nothing".to_vec(), "cannot be used"),
        (small()[..60].to_vec(), "cannot be used"),
        (wheel_of(&[("../out.py", b"")]), "outside of it"),
        (wheel_of(&[("/etc/x", b"")]), "outside of it"),
        (wheel_of(&[("a\\..\\b", b"")]), "outside of it"),
        (wheel_of(&[("big", &over)]), "larger than 64 MiB"),
    ];
    for (bytes, words) in rows {
        let error = wheel::unpack_wheel(&bytes).unwrap_err().to_string();
        assert!(error.contains(words), "{error:?} does not say {words:?}");
    }
}

#[test]
fn file_names() {
    let rows = [
        ("tabulate-0.9.0-py3-none-any.whl", Some(("tabulate", "0.9.0", true))),
        ("a_b-1.0.post1-2-py2.py3-none-any.whl", Some(("a_b", "1.0.post1", true))),
        ("n-1-cp311-cp311-manylinux1_x86_64.whl", Some(("n", "1", false))),
        ("n-1-py2-none-any.whl", Some(("n", "1", false))),
        ("n-1.tar.gz", None),
        ("n.whl", None),
        ("", None),
    ];
    for (name, want) in rows {
        let got = WheelName::parse(name);
        let got = got.as_ref().map(|w| (w.project.as_str(), w.version.as_str(), w.is_pure));
        assert_eq!(got, want, "{name}");
    }
}

#[test]
fn a_file_that_was_taken_back_is_the_last_choice() {
    let page = "https://i.example/simple/six/".parse().unwrap();
    let file = |name: &str, yanked: serde_json::Value| serde_json::json!({"filename": name, "url": name, "hashes": {}, "yanked": yanked});
    let files = [
        file("six-1.0-py3-none-any.whl", "broken".into()),
        file("six-1.0-1-py3-none-any.whl", false.into()),
    ];
    let text = serde_json::json!({ "files": files }).to_string();
    let entries = listing::parse_page(&page, JSON, &text);
    let chosen =
        listing::choose_entry(&entries, &ProjectVersion::new("six", "1.0").unwrap()).unwrap();
    assert_eq!(chosen.url.path(), "/simple/six/six-1.0-1-py3-none-any.whl");
}

#[test]
fn a_page_of_https_leads_to_nothing_without() {
    let wanted = ProjectVersion::new("six", "1.0").unwrap();
    for (page, file, is_taken) in [
        ("https://i.example/simple/six/", "http://i.example/", false),
        ("https://i.example/simple/six/", "ftp://i.example/", false),
        ("https://i.example/simple/six/", "https://files.example/", true),
        ("http://i.example/simple/six/", "http://files.example/", true),
        ("http://i.example/simple/six/", "https://files.example/", true),
    ] {
        let (page, url) = (page.parse().unwrap(), format!("{file}{WHEEL}"));
        let json = serde_json::json!({"files": [{"filename": WHEEL, "url": url}]}).to_string();
        let html = format!("<a href='{url}'>{WHEEL}</a>");
        for (form, text) in [(JSON, json), (HTML, html)] {
            let entries = listing::parse_page(&page, form, &text);
            let chosen = listing::choose_entry(&entries, &wanted);
            assert_eq!((entries.len(), chosen.is_some()), (1, is_taken), "{page} {url}");
        }
    }
}

#[test]
fn a_version_is_the_same_with_and_without_zeros_at_its_end() {
    let page = "https://i.example/simple/six/".parse().unwrap();
    for (wanted, file, is_it) in [
        ("1", "1.0", true),
        ("1.0", "1", true),
        ("0.10", "0.10.0", true),
        ("1.0", "10", false),
        ("1", "1.0.1", false),
        ("0", "0.0", true),
        ("1rc1", "1rc1.0", false),
    ] {
        let text = format!("<a href='six-{file}-py3-none-any.whl'>");
        let entries = listing::parse_page(&page, HTML, &text);
        let chosen = listing::choose_entry(&entries, &ProjectVersion::new("six", wanted).unwrap());
        assert_eq!(chosen.is_some(), is_it, "{wanted} {file}");
    }
}

#[test]
fn addresses() {
    let folder = std::path::PathBuf::from("/nowhere");
    for good in ["http://127.0.0.1:1/simple", "https://user:pin@i.example/"] {
        assert!(PackageIndex::open(good, folder.clone()).is_ok(), "{good}");
    }
    for bad in ["", "i.example", "ftp://i.example/", "file:///etc"] {
        let error = PackageIndex::open(bad, folder.clone()).err().unwrap();
        assert!(error.hint().is_some(), "{bad}");
    }
    // The second one has a port that is no number, as it seems.
    for secret in ["ftp://user:pin@i.example/", "https://user:a/pin@i.example/", "user:pin"] {
        let error = PackageIndex::open(secret, folder.clone()).err().unwrap();
        assert!(!error.to_string().contains("pin"), "{error}");
    }
}
