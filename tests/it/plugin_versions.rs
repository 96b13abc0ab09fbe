//! `plugin diff`, `verify` and `update`: wider asks, narrower does not.

use std::fs;

use crate::{
    plugin_install::Package,
    support::{Home, home::plugin_component},
};

const WANTS_NET: &str =
    "\n[[request.net]]\nallow = \"GET https://time.example/now\"\nwhy = \"asks\"\n";

#[test]
fn two_versions_are_compared_in_what_they_ask_for_and_may_do() {
    let home = Home::new().policy("[plugin.clock]\nnet = [\"GET https://time.example/**\"]\n");
    let (old, new) = (Package::clock("0.1.0", ""), Package::clock("0.2.0", WANTS_NET));
    let diff = |old: &Package, new: &Package| {
        home.run(&["plugin", "diff", &old.path("clock"), &new.path("clock")]).ended(0)
    };
    diff(&old, &new).answers(&[
        "- 0.1.0",
        "+ 0.2.0",
        "Requests",
        "+ GET https://time.example/now",
        "Possible under your policy",
        "The new version asks for more",
    ]);
    diff(&new, &old).answers(&["- GET https://time.example/now", "asks for nothing more"]);
    diff(&old, &old).answers(&["The two are the same."]);
    home.run(&["plugin", "diff", "./nothing.wasm", &old.path("clock")]).ended(9);
    home.run(&["plugin", "diff", "nothing", &old.path("clock")]).ended(2);
}

#[test]
fn an_update_asks_only_if_the_new_version_is_wider() {
    let home = Home::new();
    let source = Package::clock("0.1.0", WANTS_NET);
    home.run(&["plugin", "add", &source.path("clock"), "--yes"]).ended(0);
    let update = || home.run(&["plugin", "update", "clock"]);
    update().ended(0).answers(&["clock is up to date."]);
    let manifest = source.path("clock/plugin.toml");
    let text = fs::read_to_string(&manifest).unwrap();
    let narrower = text.replace(WANTS_NET, "").replace("0.1.0", "0.2.0");
    fs::write(&manifest, &narrower).unwrap();
    update().ended(0).answers(&["- GET https://time.example/now", "Installed clock."]);
    fs::write(&manifest, text.replace("0.1.0", "0.3.0")).unwrap();
    update().ended(6).answers(&["+ GET https://time.example/now"]).remarks(&["--yes"]);
    home.run(&["plugin", "show", "clock"]).ended(0).answers(&["clock 0.2.0"]);
    home.run(&["plugin", "update", "clock", "--yes"]).ended(0).answers(&["Installed clock."]);
    home.run(&["plugin", "show", "clock"]).ended(0).answers(&["clock 0.3.0"]);
    let other = Package::new("other", &[("other.wasm", &plugin_component("clock"))]);
    home.run(&["plugin", "update", "clock", "--from", &other.path("other")])
        .ended(2)
        .remarks(&["this is the plugin other"]);
    home.run(&["plugin", "update", "nothing"]).ended(2).remarks(&["--from PATH"]);
}

#[test]
fn what_differs_from_the_accepted_version_is_found() {
    let home = Home::new();
    let verify = || home.run(&["plugin", "verify"]);
    home.run(&["plugin", "add", &Package::clock("0.1.0", "").path("clock"), "--yes"]).ended(0);
    verify().ended(0).answers(&["clock", "as accepted"]);
    let manifest = home.path("plugins/clock/plugin.toml");
    let text = fs::read_to_string(&manifest).unwrap();
    fs::write(&manifest, text + WANTS_NET).unwrap();
    verify().ended(9).answers(&["changed", "it now asks for GET https://time.example/now"]);
    home.run(&["plugin", "verify", "clock"]).ended(9);
    home.run(&["plugin", "verify", "nothing"]).ended(2);
    let report = home.run(&["plugin", "verify", "--output", "json"]).ended(9).json();
    assert_eq!(report[0]["state"], "changed");
}

#[test]
fn a_component_with_another_digest_is_not_installed() {
    let (home, clock) = (Home::new(), Package::clock("0.1.0", ""));
    let digest = blake3::hash(&plugin_component("clock")).to_hex().to_string();
    let file = clock.path("clock/clock.wasm");
    let add = |digest: &str| home.run(&["plugin", "add", &file, "--yes", "--digest", digest]);
    add("abc").ended(2).remarks(&["is not a digest"]);
    add(&"0".repeat(64)).ended(9).remarks(&["has another digest"]);
    home.run(&["plugin", "add", "https://example.com/x.wasm", "--yes"])
        .ended(2)
        .remarks(&["--digest"]);
    assert!(fs::read_dir(home.path("plugins")).unwrap().next().is_none());
    add(&digest).ended(0).answers(&["Installed clock."]);
}
