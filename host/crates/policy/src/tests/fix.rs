//! Fixes: the policy text in a refusal is complete, can be pasted, and lifts the refusal.

use sallyport_contract::{Decision, Denial};
use serde_json::Map;
use url::Url;

use super::{GREEDY, decide, deny_address, grant, manifest, policy, reaches, send};
use crate::{
    FsAccess::{self, Read, ReadWrite},
    Grant,
};

/// The grant under the policy that a refusal proposes, which replaces the previous one.
fn fixed(denial: &Denial, requests: &str) -> Grant {
    policy(denial.fix_toml().unwrap()).effective_grant(&manifest(requests), &Map::new())
}

#[test]
fn a_refused_request_carries_the_table_that_allows_it() {
    let requests = "[settings.base]\ntype = 'string'\ndefault = 'https://geo.example.com/'
        [[request.net]]\nallow = 'GET https://api.example.com/v1/forecast'\nwhy = 'w'
        [[request.net]]\nallow = 'GET {base}/v1/search'\nwhy = 'w'
        [[request.env]]\nname = 'TZ'\nwhy = 'w'";
    let rule = "\n[[rule]]\ntool = \"weather.*\"\ndecision = \"allow\"\n";
    let (api, geo) =
        ("GET https://api.example.com/v1/forecast", "GET https://geo.example.com/v1/search");
    let rows = [
        ("", "its policy grants no network access", format!("[plugin.weather]\nnet = [\"{api}\", \"{geo}\"]\n{rule}")),
        (
            "[plugin.weather]\nnet = ['GET https://geo.example.com/**', { deny = 'GET https://a.io/x' }]\nenv = ['TZ']
             limits = { time = '10s', memory = '64MiB' }\nfs = [{ path = '~/n', access = 'read' }]",
            "no grant covers it",
            format!("[plugin.weather]\nnet = [\"GET https://geo.example.com/**\", {{ deny = \"GET https://a.io/x\" }}, \"{api}\"]
fs = [{{ path = \"~/n\", mount = \"/n\", access = \"read\" }}]\nenv = [\"TZ\"]
limits = {{ time = \"10s\", memory = \"64MiB\" }}\n{rule}"),
        ),
        (
            "[plugin.weather]\nnet = ['GET https://api.example.com']\n[[rule]]\ntool = 'weather.*'\ndecision = 'ask'",
            "no grant covers it: the entry at policy.toml:2 has no path and so means / alone; /** would be every path",
            format!("[plugin.weather]\nnet = [\"GET https://api.example.com/\", \"{api}\", \"{geo}\"]\n"),
        ),
    ];
    for (text, why, fix) in rows {
        let denial = send(&grant(text, requests), &format!("{api}?q=1")).unwrap_err();
        assert_eq!(denial.subject.to_string(), format!("weather may not {api}"));
        assert_eq!(denial.reason.to_string(), why);
        assert_eq!(denial.fix_toml(), Some(fix.as_str()));
        let fixed = fixed(&denial, requests);
        for request in [api, geo] {
            assert_eq!(send(&fixed, request), Ok(()), "{fix}");
        }
    }
}

#[test]
fn the_proposed_text_includes_the_secret_that_the_service_asks_for() {
    let secret = "[[request.secrets]]\nname = 'key'\nwhy = 'w'";
    let (net, plain) = (
        "[[request.net]]\nallow = 'POST https://api.example.com/**'\nwhy = 'w'",
        "header = 'x-key'",
    );
    let entry = "secrets = [{ name = \"key\", to = \"https://api.example.com\", \
                 header = \"x-key\", format = \"{}\" }]";
    let (unknown, known) =
        ("\n[secret.key]\nkeyring = \"sallyport/key\"\n", "[secret.key]\nenv = 'K'\n");
    let held = "[plugin.weather]\nsecrets = [{ name = 'key', to = 'https://other.example.com', header = 'a' }]\n";
    let rows = [
        ("", format!("{secret}\n{plain}"), true, Some(unknown)),
        (known, format!("{secret}\n{plain}\nformat = '{{}}'"), true, None),
        // The way to send it is unknown, or decided already.
        ("", secret.to_owned(), false, None),
        (&format!("{known}{held}"), format!("{secret}\n{plain}"), false, None),
    ];
    for (text, secret, is_sent, source) in rows {
        let requests = format!("{net}\n{secret}");
        let denial = send(&grant(text, &requests), "POST https://api.example.com/v1").unwrap_err();
        let fix = denial.fix_toml().unwrap();
        assert_eq!(fix.contains(entry), is_sent, "{fix}");
        assert_eq!(fix.contains("[secret.key]"), source.is_some(), "{fix}");
        assert!(fix.ends_with(source.unwrap_or_default()), "{fix}");
        let complete = if source.is_none() { format!("{known}{fix}") } else { fix.to_owned() };
        let fixed = policy(&complete).effective_grant(&manifest(&requests), &Map::new());
        assert_eq!(send(&fixed, "POST https://api.example.com/v1"), Ok(()), "{fix}");
        assert_eq!(fixed.secrets().len(), usize::from(is_sent || text.contains("other")), "{fix}");
    }
}

#[test]
fn one_paste_lets_a_tool_run_where_nobody_can_be_asked() {
    let requests = "[[request.net]]\nallow = 'GET https://api.example.com/**'\nwhy = 'w'";
    let denial = send(&grant("", requests), "GET https://api.example.com/").unwrap_err();
    let policy = policy(&denial.fix.clone().unwrap().toml);
    let grant = fixed(&denial, requests);
    assert_eq!(decide(&policy, &grant, "weather.get").0, Decision::Allow);
    assert_eq!(decide(&policy, &grant, "weather2.get").0, Decision::Ask);
}

#[test]
fn hosts_that_are_private_by_nature_are_granted_as_such() {
    let rows = [
        (
            "http://127.0.0.1:8080",
            "127.0.0.1",
            "{ allow = \"GET http://127.0.0.1:8080/**\", to-private = true }",
        ),
        (
            "http://localhost:8080",
            "::1",
            "{ allow = \"GET http://localhost:8080/**\", to-private = true }",
        ),
        (
            "https://[fd00::1]",
            "fd00::1",
            "{ allow = \"GET https://[fd00::1]/**\", to-private = true }",
        ),
        ("https://93.184.216.34", "93.184.216.34", "\"GET https://93.184.216.34/**\""),
    ];
    for (base, addr, entry) in rows {
        let requests = format!("[[request.net]]\nallow = 'GET {base}/**'\nwhy = 'w'");
        let request = format!("GET {base}/x");
        let denial = send(&grant("", &requests), &request).unwrap_err();
        let line = format!("net = [{entry}]");
        assert_eq!(denial.fix_toml().unwrap().lines().nth(1), Some(line.as_str()));
        assert!(reaches(&fixed(&denial, &requests), &request, addr), "{line}");
    }
}

#[test]
fn what_the_manifest_does_not_request_cannot_be_fixed_by_policy() {
    let requests = "[[request.net]]\nallow = 'GET https://api.example.com'\nwhy = 'w'";
    let only = "its manifest requests GET https://api.example.com/ only, and without a path that \
                is the path / alone";
    let rows = [
        ("GET https://evil.example/", "its manifest does not request it"),
        ("POST https://api.example.com/", "its manifest does not request it"),
        ("GET https://api.example.com/v1", only),
    ];
    for (request, why) in rows {
        let denial = send(&grant("", requests), request).unwrap_err();
        assert_eq!((denial.reason.to_string().as_str(), denial.fix), (why, None), "{request}");
    }
}

/// Checks the refusal of an address, and that its fix lets the request reach it.
#[track_caller]
fn check_address(net: &str, request: &str, addr: &str, want: &str) {
    let before = grant(&format!("[plugin.weather]\nnet = {net}"), GREEDY);
    assert!(!reaches(&before, request, addr));
    let denial = deny_address(&before, request, addr.parse().unwrap());
    assert_eq!(denial.subject.to_string(), format!("weather may not {request}"));
    assert!(
        denial.reason.to_string().ends_with("is not a public address"),
        "{}",
        denial.reason.to_string()
    );
    let fix = denial.fix.clone().unwrap().toml;
    assert_eq!(fix.lines().nth(1), Some(format!("net = [{want}]").as_str()));
    assert!(fix.ends_with("decision = \"allow\"\n"), "{fix}");
    assert!(reaches(&fixed(&denial, GREEDY), request, addr), "{fix}");
}

#[test]
fn a_refused_address_carries_the_entry_that_allows_it() {
    check_address(
        "['GET http://localhost:8080/**', 'GET https://api.example.com/']",
        "GET http://localhost:8080/a",
        "127.0.0.1",
        "{ allow = \"GET http://localhost:8080/**\", to-private = true }, \"GET https://api.example.com/\"",
    );
}

/// The owner of a name chooses its address, and would otherwise choose the proposed grant.
#[test]
fn an_address_that_a_name_led_to_is_not_offered_to_be_granted() {
    let rows = [
        ("['GET https://intern.example/**']", "GET https://intern.example/a", "10.1.2.3"),
        ("['GET https://intern.example/**']", "GET https://intern.example/a", "169.254.169.254"),
        ("['GET http://localhost:8080/**']", "GET http://localhost:8080/a", "10.0.0.1"),
    ];
    for (net, request, addr) in rows {
        let grant = grant(&format!("[plugin.weather]\nnet = {net}"), GREEDY);
        let denial = deny_address(&grant, request, addr.parse().unwrap());
        assert_eq!(denial.fix, None, "{net}");
        assert!(denial.reason.to_string().contains("to-private"), "{}", denial.reason.to_string());
    }
}

#[test]
fn the_refusal_of_an_address_reads_well_however_it_is_asked_for() {
    let grant = grant("[plugin.weather]\nnet = ['GET https://intern.example/**']", GREEDY);
    let addr = "10.1.2.3".parse().unwrap();
    let why = "intern.example is at 10.1.2.3, which is not a public address; only an entry with \
               to-private and a range of your choice reaches it";
    for request in ["GET https://intern.example/a", "GET https://me:pw@intern.example/a?b#c"] {
        let denial = deny_address(&grant, request, addr);
        assert_eq!(denial.subject.to_string(), "weather may not GET https://intern.example/a");
        assert_eq!(denial.reason.to_string(), why);
        assert_eq!(denial.fix, None);
    }
    for request in [" data:nonsense", "non\nsense https://a.example/", "GET https://other.example/"]
    {
        let denial = deny_address(&grant, request, addr);
        assert_eq!(denial.fix, None);
        assert!(denial.reason.to_string().contains("not a public address"));
    }
    // An address is no name that is at an address, in brackets either.
    for (request, address) in
        [("GET http://10.1.2.3/", "10.1.2.3"), ("GET http://[fd00::1]/", "fd00::1")]
    {
        let denial = deny_address(&grant, request, address.parse().unwrap());
        assert_eq!(denial.reason.to_string(), format!("{address} is not a public address"));
    }
}

struct PathRow {
    policy: &'static str,
    path: &'static str,
    wanted: FsAccess,
    why: &'static str,
    /// The `fs` line of the fix, if there is one, and whether a rule follows it.
    fix: Option<(&'static str, bool)>,
}

const PATH_REQUESTS: &str = "
    [[request.fs]]\naccess = 'read'\npath = '/proc/meminfo'\nwhy = 'w'
    [[request.fs]]\naccess = 'read-write'\nwhy = 'w'";

const NO_FOLDER: &str = "its policy grants no folder";
const PLACEHOLDER: &str =
    "{ path = \"/path/to/folder\", mount = \"/notes\", access = \"read-write\" }";
const READ_PLACEHOLDER: &str =
    "{ path = \"/path/to/folder\", mount = \"/notes\", access = \"read\" }";

const PATH_ROWS: &[PathRow] = &[
    PathRow {
        policy: "",
        path: "/proc/meminfo",
        wanted: Read,
        why: NO_FOLDER,
        fix: Some((
            "{ path = \"/proc/meminfo\", mount = \"/proc/meminfo\", access = \"read\" }",
            false,
        )),
    },
    PathRow {
        policy: "",
        path: "/notes/a/b.txt",
        wanted: Read,
        why: NO_FOLDER,
        fix: Some((READ_PLACEHOLDER, false)),
    },
    PathRow {
        policy: "",
        path: "notes/x",
        wanted: ReadWrite,
        why: NO_FOLDER,
        fix: Some((PLACEHOLDER, true)),
    },
    PathRow {
        policy: "fs = [{ path = '~/n', mount = '/data/n', access = 'read' }]",
        path: "/data/m",
        wanted: Read,
        why: "no grant covers it",
        fix: Some((
            "{ path = \"~/n\", mount = \"/data/n\", access = \"read\" }, { path = \"/path/to/folder\", mount = \"/data/m\", access = \"read\" }",
            false,
        )),
    },
    PathRow {
        policy: "fs = [{ path = '~/n', mount = '/n', access = 'read' }, { path = '/m', access = 'read' }]",
        path: "/n/x",
        wanted: ReadWrite,
        why: "the grant at policy.toml:2 is for reading only",
        fix: Some((
            "{ path = \"~/n\", mount = \"/n\", access = \"read-write\" }, { path = \"/m\", mount = \"/m\", access = \"read\" }",
            true,
        )),
    },
    PathRow {
        policy: "fs = [{ path = '/n', access = 'read' }, { path = '/n/m', access = 'read' }]",
        path: "/n/x",
        wanted: ReadWrite,
        why: "the grant at policy.toml:2 is for reading only",
        fix: None,
    },
    PathRow {
        policy: "fs = [{ path = '/n', access = 'read' }]",
        path: "/n/x",
        wanted: Read,
        why: "no grant covers it",
        fix: None,
    },
    PathRow { policy: "", path: "/", wanted: Read, why: NO_FOLDER, fix: None },
    PathRow {
        policy: "",
        path: "/../etc",
        wanted: Read,
        why: "\"/../etc\" goes upwards with `..`",
        fix: None,
    },
    PathRow {
        policy: "",
        path: "/a\0",
        wanted: Read,
        why: "\"/a\\u{0}\" holds a control character",
        fix: None,
    },
];

#[test]
fn a_refused_path_carries_the_folder_that_allows_it() {
    PATH_ROWS.iter().for_each(check_path);
}

#[track_caller]
fn check_path(row: &PathRow) {
    let grant = grant(&format!("[plugin.weather]\n{}", row.policy), PATH_REQUESTS);
    let denial = grant.deny_path(row.path, row.wanted);
    assert_eq!(denial.reason.to_string(), row.why, "{}", row.path);
    let Some((entries, with_rule)) = row.fix else {
        assert_eq!(denial.fix, None, "{}", row.path);
        return;
    };
    let fix = denial.fix_toml().unwrap();
    assert_eq!(fix.lines().nth(1), Some(format!("fs = [{entries}]").as_str()));
    assert_eq!(fix.contains("[[rule]]"), with_rule, "{fix}");
    let path = format!("/{}", row.path.trim_start_matches('/'));
    let fixed = fixed(&denial, PATH_REQUESTS);
    let mut mounts = fixed.fs().iter();
    assert!(mounts.any(|m| path.starts_with(&m.guest) && m.access >= row.wanted), "{fix}");
}

#[test]
fn a_path_that_is_not_requested_cannot_be_fixed_by_policy() {
    let read = "[[request.fs]]\naccess = 'read'\npath = '/x'\nwhy = 'w'";
    let table = "[plugin.weather]\nfs = [{ path = '/x', access = 'read' }]";
    let rows = [
        ("", "", "/x/y", FsAccess::Read, "its manifest does not request it"),
        ("", read, "/y", FsAccess::Read, "its manifest does not request it"),
        ("", read, "/x/y", FsAccess::ReadWrite, "its manifest does not request it"),
        (table, read, "/x/y", FsAccess::ReadWrite, "its manifest requests to read it only"),
        (table, "", "/x/y", FsAccess::Read, "its manifest does not request it"),
    ];
    for (text, requests, path, wanted, why) in rows {
        let denial = grant(text, requests).deny_path(path, wanted);
        assert_eq!((denial.reason.to_string().as_str(), denial.fix), (why, None), "{path}");
    }
    let denial = grant("", "").deny_path("/x", FsAccess::ReadWrite);
    assert_eq!(denial.subject.to_string(), "weather may not change /x");
}

#[test]
fn odd_text_in_a_policy_survives_the_way_into_a_fix() {
    let text = r#"[plugin.weather]
        fs = [{ path = "/a \"b\" \\ é #'x", mount = "/m", access = "read" }]"#;
    let denial = send(&grant(text, GREEDY), "GET https://api.example.com/").unwrap_err();
    let url = Url::parse("https://api.example.com/").unwrap();
    let fixed = fixed(&denial, GREEDY);
    assert!(fixed.net().check_request("GET", &url).is_ok());
    assert_eq!(fixed.fs()[0].host.to_str(), Some("/a \"b\" \\ é #'x"));
}

#[test]
fn files_that_only_the_plugin_missed_are_granted_by_one_text() {
    let file =
        |path: &str| format!("[[request.fs]]\naccess = 'read'\npath = '{path}'\nwhy = 'w'\n");
    let requests = file("/proc/meminfo") + &file("/etc/os-release");
    let partly = "[plugin.weather]\nfs = [{ path = '/proc/meminfo', access = 'read' }]";
    let misplaced =
        "[plugin.weather]\nfs = [{ path = '/proc/meminfo', mount = '/m', access = 'read' }]";
    for policy in ["", partly, misplaced] {
        let text = grant(policy, &requests).missing_files_fix(None, Read).unwrap().toml;
        assert!(!text.contains("[[rule]]"), "reading leaks nothing: {text}");
        assert_eq!(grant(&text, &requests).fs().len(), 2, "{text}");
        assert_eq!(grant(&text, &requests).missing_files_fix(None, Read), None);
    }
    let folder = "[[request.fs]]\naccess = 'read-write'\nwhy = 'w'";
    let text = grant("", folder).missing_files_fix(Some("/notes/a"), ReadWrite).unwrap().toml;
    assert_eq!(grant(&text, folder).fs()[0].guest, "/notes");
    assert_eq!(grant("", "").missing_files_fix(None, Read), None);
}

#[test]
fn without_its_powers_a_grant_keeps_its_limits() {
    let policy = "[plugin.weather]\nnet = ['GET https://api.example.com/']\nenv = ['TZ']\n\
                  fs = [{ path = '/n', access = 'read-write' }]\nlimits = { time = '3s' }";
    let full = grant(policy, &(GREEDY.to_owned() + PATH_REQUESTS));
    let powerless = full.without_permissions();
    assert!(full.can_change_or_leak() && !powerless.can_change_or_leak());
    assert_eq!((powerless.permission_lines().len(), powerless.limits()), (0, full.limits()));
}
