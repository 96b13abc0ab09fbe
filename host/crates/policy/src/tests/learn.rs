//! The refusals of a run, and the smallest additions that lift them.

use std::{collections::BTreeSet, net::IpAddr};

use sallyport_contract::Decision;
use serde_json::Map;
use url::Url;

use super::{manifest, policy, settings, tool};
use crate::{
    FsAccess::{self, Read, ReadWrite},
    Policy,
    learn::{PluginRefusals, PolicyProposal, RefusedAccess},
};

mod capabilities;
mod property;
mod refused;

const REQUESTS: &str = "
    [[request.net]]\nallow = '* https://api.example.com/v1/**'\nwhy = 'w'
    [[request.net]]\nallow = 'GET https://*.example.org/a*'\nwhy = 'w'
    [[request.net]]\nallow = 'GET https://many.example.com/x/a*'\nwhy = 'w'
    [[request.net]]\nallow = 'GET,PUT https://many.example.com/x/*b'\nwhy = 'w'
    [[request.net]]\nallow = 'GET https://wide.example.com/**'\nwhy = 'w'
    [[request.net]]\nallow = 'GET https://wide.example.com/a*'\nwhy = 'w'
    [[request.net]]\nallow = 'GET http://localhost:8080/**'\nwhy = 'w'
    [[request.net]]\nallow = 'GET https://intern.example/**'\nwhy = 'w'
    [[request.fs]]\naccess = 'read'\npath = '/proc/meminfo'\nwhy = 'w'
    [[request.fs]]\naccess = 'read-write'\npath = '/data'\nwhy = 'w'
    [[request.fs]]\naccess = 'read-write'\npath = '/data/out'\nwhy = 'w'
    [[request.env]]\nname = 'TZ'\nwhy = 'w'
    [[request.secrets]]\nname = 'pin'\nreveal = true\nwhy = 'w'
    [[request.secrets]]\nname = 'key'\nwhy = 'w'
";

const ANY_FOLDER: &str = "[[request.fs]]\naccess = 'read-write'\nwhy = 'w'\n";

/// Parses `METHOD URL`, followed by the refused address if the refusal was about it.
fn net(request: &str) -> RefusedAccess {
    let words: Vec<_> = request.split(' ').collect();
    let to_private = words.get(2).map(|addr| addr.parse::<IpAddr>().unwrap());
    RefusedAccess::Net { method: words[0].into(), url: Url::parse(words[1]).unwrap(), to_private }
}

fn path(guest_path: &str, access: FsAccess) -> RefusedAccess {
    RefusedAccess::Path { guest_path: guest_path.into(), access }
}

fn learned(needs: &[RefusedAccess]) -> PluginRefusals {
    let mut learned = PluginRefusals::empty();
    needs.iter().cloned().for_each(|need| learned.record_refusal(need));
    learned
}

fn propose(requests: &str, before: &str, needs: &[RefusedAccess]) -> PolicyProposal {
    learned(needs).build_proposal(&manifest(requests), &Map::new(), &policy(before), None)
}

/// Checks the lines that a proposal adds to a policy, and the needs that it leaves open.
#[track_caller]
fn check(before: &str, needs: &[RefusedAccess], lines: &[&str], open: &[&str]) {
    let requests = if before.contains("# any") { ANY_FOLDER } else { REQUESTS };
    let proposal = propose(requests, before, needs);
    let after = proposal.apply_to(before).unwrap();
    policy(&after);
    let known: BTreeSet<&str> = before.lines().collect();
    let added = after.lines().filter(|line| !line.is_empty() && !known.contains(line));
    assert_eq!(added.collect::<Vec<_>>(), lines, "{after}");
    assert_eq!(proposal.unresolved, open);
}

/// Checks a proposal for requests: the entries of the `net` list, and the needs that are left open.
#[track_caller]
fn check_net(before: &str, needs: &[&str], entries: &[&str], open: &[&str]) {
    let needs: Vec<_> = needs.iter().map(|need| net(need)).collect();
    let list = format!("net = [{}]", entries.join(", "));
    let lines = ["[plugin.weather]", &list];
    let lines = if entries.is_empty() { &lines[..0] } else { &lines[..] };
    let known = if before.contains("[plugin.weather]") { 1.min(lines.len()) } else { 0 };
    check(before, &needs, &lines[known..], open);
}

#[test]
fn requests_become_exact_entries() {
    check_net(
        "",
        &[
            "GET https://api.example.com/v1/b?key=secret",
            "GET https://api.example.com/v1/b?key=other",
            "PUT https://api.example.com/v1/a",
            "GET https://api.example.com/v1/a",
            "GET https://api.example.com/v1/50%25/x*y",
            "GET https://one.example.org/ab",
        ],
        &[
            "\"GET https://api.example.com/v1/50%25/x%2Ay\"",
            "\"GET,PUT https://api.example.com/v1/a\"",
            "\"GET https://api.example.com/v1/b\"",
            "\"GET https://one.example.org/ab\"",
        ],
        &[],
    );
}

#[test]
fn requests_that_no_entry_can_allow_are_left_open() {
    let deny = "[plugin.weather]\nnet = [{ deny = 'GET https://api.example.com/v1/x' }, { allow = 'GET https://api.example.com/v1/ask', decision = 'ask' }, 'GET https://intern.example/**']\n";
    check_net(
        deny,
        &[
            "GET https://api.example.com/v1/x",
            "GET https://api.example.com/v1/ask",
            "GET https://api.example.com/v2",
            "FROB https://api.example.com/v1/a",
            "GET https://api.example.com/v1/..%2f",
            "GET https://me@api.example.com/v1/a",
            "GET https://you@api.example.com/v1/a",
            "GET https://intern.example/a 10.1.2.3",
            "GET https://intern.example/a",
            "GET https://evil.example/a",
        ],
        &[],
        &[
            "weather may not FROB https://api.example.com/v1/a: no pattern can name it and nothing else",
            "weather may not GET https://api.example.com/v1/..%2f: the path hides a dot, a slash, a backslash or a control character",
            "weather may not GET https://api.example.com/v1/ask: the entry at policy.toml:2 asks a person",
            "weather may not GET https://api.example.com/v1/x: denied by policy.toml:2",
            "weather may not GET https://api.example.com/v2: its manifest does not request it",
            "weather may not GET https://evil.example/a: its manifest does not request it",
            "weather may not GET https://intern.example/a: intern.example is at 10.1.2.3, which is not a public address; only an entry with to-private and a range of your choice reaches it",
            "weather may not GET https://api.example.com/v1/a: the URL holds a user name or password",
        ],
    );
}

#[test]
fn hosts_that_are_private_by_nature_are_granted_as_such() {
    let entry = "{ allow = \"GET http://localhost:8080/a\", to-private = true }";
    let needs = ["GET http://localhost:8080/a", "GET http://localhost:8080/a 127.0.0.1"];
    check_net("", &needs, &[entry], &[]);
    check_net("", &needs[1..], &[entry], &[]);
    let lacking = "[plugin.weather]\nnet = ['GET http://localhost:8080/**']\n";
    let both = ["'GET http://localhost:8080/**'", entry];
    check_net(lacking, &needs[1..], &both, &[]);
    check_net(lacking, &needs[..1], &[], &[]);
    let granted =
        "[plugin.weather]\nnet = [{ allow = 'GET http://localhost:8080/**', to-private = true }]\n";
    check_net(granted, &needs, &[], &[]);
    let other = "weather may not GET http://localhost:8080/a: localhost is at 10.0.0.1, which is not a \
                 public address; only an entry with to-private and a range of your choice reaches it";
    check_net("", &["GET http://localhost:8080/a 10.0.0.1"], &[], &[other]);
}

#[test]
fn many_paths_below_one_parent_become_a_glob_within_the_request() {
    let paths = |front: &str, count: usize| -> Vec<String> {
        (0..count).map(|n| format!("{front}{n}b")).collect()
    };
    let check = |needs: &[String], entries: &[&str]| {
        let needs: Vec<_> = needs.iter().map(String::as_str).collect();
        check_net("", &needs, entries, &[]);
    };
    let eight = paths("GET https://api.example.com/v1/", 8);
    let exact: Vec<_> = eight.iter().map(|path| format!("\"{path}\"")).collect();
    check(&eight, &exact.iter().map(String::as_str).collect::<Vec<_>>());
    let nine = paths("GET https://api.example.com/v1/", 9);
    check(&nine, &["\"GET https://api.example.com/v1/*\""]);
    let put = paths("PUT https://api.example.com/v1/", 9);
    check(&[nine.clone(), put].concat(), &["\"GET,PUT https://api.example.com/v1/*\""]);
    let root = paths("GET https://two.example.org/a", 9);
    check(&root, &["\"GET https://two.example.org/a*\""]);
    let many = |front| paths(&format!("{front} https://many.example.com/x/a"), 9);
    let both = ["\"GET https://many.example.com/x/a*\"", "\"PUT https://many.example.com/x/*b\""];
    check(&many("GET"), &both[..1]);
    check(&[many("GET"), many("PUT")].concat(), &[both[1], both[0]]);
    let wide = paths("GET https://wide.example.com/a", 9);
    check(&wide, &["\"GET https://wide.example.com/a*\""]);
    let wider = [wide, vec!["GET https://wide.example.com/b".to_owned()]].concat();
    check(&wider, &["\"GET https://wide.example.com/*\""]);
}

#[test]
fn a_manifest_with_very_many_requests_gets_exact_entries() {
    let needs: Vec<_> = (0..9).map(|n| net(&format!("GET https://a.io/b{n}"))).collect();
    let entries = |requests: usize| {
        let one = "[[request.net]]\nallow = 'GET https://a.io/b*'\nwhy = 'w'\n";
        propose(&one.repeat(requests), "", &needs).additions.len()
    };
    assert_eq!([entries(64), entries(65)], [1, 9]);
}

#[test]
fn files_become_entries_where_the_manifest_names_them() {
    let meminfo =
        "fs = [{ path = \"/proc/meminfo\", mount = \"/proc/meminfo\", access = \"read\" }]";
    check("", &[path("/proc/meminfo", Read)], &["[plugin.weather]", meminfo], &[]);
    let out = "fs = [{ path = \"/data/out\", mount = \"/data/out\", access = \"read-write\" }]";
    let needs = [path("data/out/x", Read), path("/data/out/y", ReadWrite)];
    check("", &needs, &["[plugin.weather]", out], &[]);
    let data = "fs = [{ path = \"/data\", mount = \"/data\", access = \"read-write\" }]";
    let needs = [path("/data/in", ReadWrite), path("/data/out/y", Read)];
    check("", &needs, &["[plugin.weather]", data], &[]);
    let read = data.replace("read-write", "read");
    let needs = [path("/data/in", Read), path("/data/out/y", ReadWrite)];
    let open =
        "weather may not change /data/out/y: it lies in /data, which is needed for reading only";
    check("", &needs, &["[plugin.weather]", &read], &[open]);
}

#[test]
fn files_that_only_the_operator_knows_are_left_open() {
    let table =
        "[plugin.weather]\nfs = [{ path = '/data', access = 'read', deny = ['**/.env*'] }]\n";
    let rows = [
        (
            "# any",
            "/notes/a",
            Read,
            "its policy grants no folder, and only you know which one is meant",
        ),
        ("", "/etc/passwd", Read, "its manifest does not request it"),
        ("", "/proc/meminfo", ReadWrite, "its manifest does not request it"),
        ("", "/a/../b", Read, "\"/a/../b\" goes upwards with `..`"),
        (table, "/data/x", ReadWrite, "the grant at policy.toml:2 is for reading only"),
        (table, "/data/x/.env", Read, "denied by \"**/.env*\" at policy.toml:2"),
    ];
    for (before, guest_path, access, why) in rows {
        let verb = if access == Read { "read" } else { "change" };
        let open = format!("weather may not {verb} {guest_path}: {why}");
        check(before, &[path(guest_path, access)], &[], &[&open]);
    }
    check(table, &[path("/data/x", Read)], &[], &[]);
}

#[test]
fn variables_and_secrets_are_granted_where_the_manifest_requests_them() {
    let variables = [RefusedAccess::Env("TZ".into()), RefusedAccess::Env("HO\nME".into())];
    let open = "weather may not see the environment variable \"HO\\nME\": its manifest does not request it";
    check("", &variables, &["[plugin.weather]", "env = [\"TZ\"]"], &[open]);
    check("[plugin.weather]\nenv = ['TZ']", &variables[..1], &[], &[]);

    let secrets = ["pin", "key", "no"].map(|name| RefusedAccess::Secret(name.into()));
    let mut open = [
        "weather may not read the secret \"key\": its manifest requests it for use in requests only",
        "weather may not read the secret \"no\": its manifest does not request it",
        "weather may not read the secret \"pin\": no policy says where it is: add [secret.pin]",
    ];
    check("", &secrets, &[], &open);
    let source = "[secret.pin]\nenv = 'PIN'\n";
    let entry = "secrets = [{ name = \"pin\", reveal = true }]";
    check(source, &secrets, &["[plugin.weather]", entry], &open[..2]);
    let granted = format!("{source}[plugin.weather]\n{entry}");
    open.rotate_left(2);
    check(&granted, &secrets, &[], &open[1..]);
}

#[test]
fn tools_get_rules_unless_a_rule_decided() {
    let calls = ["weather.get", "weather.put", "other.x"].map(|id| RefusedAccess::Call(tool(id)));
    let other = "weather may not call other.x: the tool belongs to another plugin";
    let rule = |tool: &'static str| ["[[rule]]", tool, "decision = \"allow\""];
    let (get, put) = (rule("tool = \"weather.get\""), rule("tool = \"weather.put\""));
    check("", &calls, &[get, put].concat(), &[other]);
    let ruled = "[[rule]]\ntool = 'weather.get'\ndecision = 'deny'\nmessage = 'no'\n\
                 [[rule]]\ntool = 'weather.put'\ndecision = 'allow'\n";
    let denied = "weather.get may not be called: no (rule at policy.toml:1)";
    check(ruled, &calls, &[], &[other, denied]);

    let digest = "16ee56a487a0";
    let proposal = learned(&calls[..1]).build_proposal(
        &manifest(REQUESTS),
        &Map::new(),
        &Policy::empty(),
        Some(digest),
    );
    assert_eq!(proposal.rules[0].digest.as_deref(), Some(digest));
    assert_eq!(proposal.rules[0].decision, Decision::Allow);
}

#[test]
fn settings_are_part_of_what_a_manifest_requests() {
    let requests =
        "[settings.base]\ntype = 'string'\n[[request.net]]\nallow = 'GET {base}/**'\nwhy = 'w'";
    let needs: Vec<_> = (0..9).map(|n| net(&format!("GET https://a.io/v/{n}"))).collect();
    let given = settings(&[("base", "https://a.io/v")]);
    let proposal =
        learned(&needs).build_proposal(&manifest(requests), &given, &Policy::empty(), None);
    let text = "[plugin.weather]\nnet = [\"GET https://a.io/v/*\"]\n";
    assert_eq!(proposal.apply_to("").as_deref(), Ok(text));
    assert_eq!(propose(requests, "", &needs).additions, []);
}

#[test]
fn a_plugin_that_asks_forever_is_not_learned_from_forever() {
    let mut many = PluginRefusals::empty();
    assert!(many.is_empty());
    for n in 0..1500 {
        many.record_refusal(RefusedAccess::Env(format!("A{n}")));
        many.record_refusal(RefusedAccess::Env("A1".into()));
    }
    many.record_refusal(RefusedAccess::Env("A".repeat(1 << 20)));
    assert_eq!(many.refused_accesses().count(), 1000);
    let proposal = many.build_proposal(&manifest(""), &Map::new(), &Policy::empty(), None);
    assert_eq!(proposal.unresolved.len(), 1001);
    assert_eq!(proposal.unresolved[1000], "501 more refusals were left out");
    let long = learned(&[RefusedAccess::Secret("A".repeat(1 << 20))]);
    assert_eq!((long.is_empty(), long.refused_accesses().count()), (false, 0));
}

#[test]
fn of_a_url_only_what_policies_speak_about_is_kept() {
    let needs = ["a?key=1#x", "a?key=2", "a"].map(|end| net(&format!("GET https://a.io/{end}")));
    assert!(learned(&needs).refused_accesses().eq([&net("GET https://a.io/a")]));
}
