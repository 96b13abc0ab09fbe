//! What an author gets for a mistake: each one clear message, with what to do.

use std::fs;

use crate::support::{Home, home::plugin_component};

/// Runs a command in a home with these files of the user. Checks its exit code and its message.
#[track_caller]
fn check(files: &[(&str, &[u8])], args: &[&str], code: i32, remarks: &[&str]) {
    let home = files.iter().fold(Home::new(), |home, (path, bytes)| home.user_file(path, bytes));
    home.run(args).ended(code).remarks(remarks);
}

#[test]
fn a_project_with_a_bad_name_or_place_is_not_created() {
    let new = |name: &'static str| ["plugin", "new", name, "--lang", "rust"];
    let form = "use lower-case letters, digits and single hyphens";
    for name in ["Hello", "9lives", "a_b", "a--b", "a-", "../up", "hello world", "grüße", ""] {
        check(&[], &new(name), 2, &["cannot be the name of a plugin", form]);
    }
    for name in ["serde", "std", "class", "import", "reminder"] {
        check(&[], &new(name), 2, &["the name is taken", "such as word-count"]);
    }
    check(&[("hello/kept", b"")], &new("hello"), 2, &["hello exists already", "--path"]);
    check(&[("hello", b"a file")], &new("hello"), 2, &["hello exists already"]);
    let nested = ["plugin", "new", "hello", "--lang", "rust", "--path", "file/inside"];
    check(&[("file", b"")], &nested, 1, &["cannot create the folder"]);
}

#[test]
fn an_unknown_language_is_met_with_the_nearest() {
    let new = |language: &'static str| ["plugin", "new", "hello", "--lang", language];
    for (language, nearest) in [("rusty", "rust"), ("pyton", "python"), ("gol", "go")] {
        check(&[], &new(language), 2, &[language, nearest]);
    }
    check(&[], &new("cobol"), 2, &["rust, python, js, ts, c, cpp, go"]);
    check(&[], &["plugin", "new", "hello"], 2, &["--lang"]);
}

#[test]
fn a_new_project_has_everything_and_says_what_comes_next() {
    let home = Home::new();
    home.run(&["plugin", "new", "hello", "--lang", "rust", "--path", "deep/down"])
        .ended(0)
        .answers(&["Created the Rust plugin hello in deep/down/hello."])
        .remarks(&["cd deep/down/hello", "sallyport plugin build", "sallyport plugin test"]);
    let read =
        |file: &str| fs::read_to_string(home.user_path("deep/down/hello").join(file)).unwrap();
    for file in ["Cargo.toml", "plugin.toml", "README.md", "src/lib.rs", "cases.json", ".gitignore"]
    {
        assert!(!read(file).contains("{{"), "{file}");
    }
    assert!(read("plugin.toml").contains("name = \"hello\""));
    assert!(read(".cargo/config.toml").contains("patch.crates-io.sallyport-sdk.path"));
}

#[test]
fn what_cannot_be_built_says_why() {
    let build = ["plugin", "build", "p"];
    check(&[], &build, 1, &["cannot open the folder"]);
    check(&[("p/notes.txt", b"")], &build, 2, &["has no Cargo.toml", "plugin new NAME"]);
    check(&[("p/Cargo.toml", b"")], &build, 2, &["it has no plugin.toml"]);
    let with = |manifest: &'static str| {
        [("p/Cargo.toml", &b""[..]), ("p/plugin.toml", manifest.as_bytes())]
    };
    let rest = "description = \"x\"\n";
    check(&with("name = \"p\"\nversion = \"1.0\"\n"), &build, 9, &["plugin.toml", "1.0.0"]);
    check(&with("nmae = \"p\"\n"), &build, 9, &["nmae", "name"]);
    check(&with("name = \"P\"\nversion = \"1.0.0\"\n"), &build, 9, &["is not a plugin name"]);
    check(&with("name = \"p\"\nversion = \"1.0.0\"\n"), &build, 9, &["description"]);
    let unknown = ["name = \"p\"\nversion = \"1.0.0\"\n", rest, "[[request.nte]]\nwhy = \"x\"\n"];
    let unknown: &'static str = unknown.concat().leak();
    check(&with(unknown), &build, 9, &["nte"]);
    let no_why = [
        "name = \"p\"\nversion = \"1.0.0\"\n",
        rest,
        "[[request.net]]\nallow = \"GET https://a.example/\"\n",
    ];
    check(&with(no_why.concat().leak()), &build, 9, &["why"]);
}

#[test]
fn a_language_without_its_tools_names_the_command_that_installs_them() {
    let manifest = b"name = \"p\"\nversion = \"1.0.0\"\ndescription = \"x\"\n";
    let files = [("p/Cargo.toml", &b"[package]"[..]), ("p/plugin.toml", &manifest[..])];
    let home = files.iter().fold(Home::new(), |home, (path, bytes)| home.user_file(path, bytes));
    home.env("PATH", "/nowhere")
        .run(&["plugin", "build", "p"])
        .ended(1)
        .remarks(&["needs cargo, which is not installed", "https://rustup.rs"]);
}

#[test]
fn a_component_needs_no_manifest_beside_it() {
    let manifest =
        "name = \"told\"\nversion = \"3.2.1\"\ndescription = \"Has its manifest inside.\"\n";
    let section = |text: &str| {
        let name = b"sallyport-manifest";
        let inner = [&[name.len() as u8][..], name, text.as_bytes()].concat();
        assert!(inner.len() < 0x4000);
        let length = [(inner.len() & 0x7f) as u8 | 0x80, (inner.len() >> 7) as u8];
        [&[0][..], &length, &inner].concat()
    };
    let with = |text: &str| [plugin_component("clock"), section(text)].concat();
    let home = Home::new().file("plugins/any-name.wasm", with(manifest));
    home.run(&["plugin", "show", "told"]).ended(0).answers(&["told 3.2.1", "get_time"]);
    home.run(&["call", "told.get_time", "{\"timezone\": \"UTC\"}"]).ended(0);
    // A manifest beside the component is the operator's, and counts.
    let beside = manifest.replace("told", "beside");
    let home = Home::new().component("beside", &beside, &with(manifest));
    home.run(&["plugin", "show", "beside"]).ended(0).answers(&["beside 3.2.1"]);
    let broken = Home::new().file("plugins/x.wasm", with("nmae = 1\n"));
    broken.run(&["plugin", "list"]).ended(0).answers(&["rejected", "embedded manifest, line 1"]);
}
