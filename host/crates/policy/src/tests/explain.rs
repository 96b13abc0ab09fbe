//! Explanations: why a policy decides as it does, and the line that would change it.

use sallyport_contract::{
    Decision,
    Decision::{Allow, Ask, Deny},
    ToolCallContext,
};
use serde_json::{Map, Value, json};

use super::{GREEDY, grant, manifest, policy, question_about, tool};
use crate::{DecisionExplanation, FsAccess};

const POLICY: &str = r#"
[plugin.weather]
net = [
  "GET https://api.example.com/**",
  { allow = "PUT https://api.example.com/**", decision = "ask" },
  { deny = "* https://api.example.com/admin/**" },
]
fs = [
  { path = "/srv/notes", mount = "/notes", access = "read-write", deny = ["**/.git/**"] },
  { path = "/srv/books", mount = "/books", access = "read" },
]

[[rule]]
tool = "weather.send"
decision = "deny"
when = "size(args.to) > 2"
message = "{args.to} are too many"

[[rule]]
tool = "weather.quiet"
decision = "allow"
when = "args.n < 3"

[[rule]]
tool = "weather.*"
net = "PUT https://api.example.com/v2/**"
decision = "deny"

[[rule]]
tool = "weather.quiet"
net = "PUT https://api.example.com/**"
decision = "allow"
digest = "16ee56a487a0"
"#;

/// A situation: a call with arguments, a request of `weather.TOOL`, or an access to a path.
enum About {
    Call(&'static str, Value),
    Net(&'static str, String),
    Path(&'static str, FsAccess),
}
use About::{Call, Net, Path};

fn explain(text: &str, requests: &str, about: &About) -> DecisionExplanation {
    let policy = policy(text);
    let grant = policy.effective_grant(&manifest(requests), &Map::new());
    let (name, arguments) = match about {
        Call(name, arguments) => (*name, arguments.clone()),
        Net(name, _) => (*name, json!({})),
        Path(..) => ("get", json!({})),
    };
    let (id, context) = (tool(&format!("weather.{name}")), ToolCallContext::default());
    let question = question_about(&id, &arguments, &context);
    match about {
        Call(..) => policy.explain_call(&question, &grant),
        Net(_, request) => {
            let (method, url) = request.split_once(' ').unwrap();
            policy.explain_net(&question, &grant, method, url)
        }
        Path(path, access) => policy.explain_path(&grant, path, *access),
    }
}

/// The decision, the lines that won, all lines about the situation, and the reason.
type Row = (About, Decision, &'static [usize], &'static [usize], &'static str);

const ASKS: &str = "no rule for it, and weather can reach the network and change files";

fn calls() -> [Row; 7] {
    let get = |name| Call(name, json!({}));
    [
        (get("get"), Ask, &[4, 5, 9], &[4, 5, 9], ASKS),
        (Call("send", json!({ "to": [1] })), Ask, &[4, 5, 9], &[4, 5, 9], ASKS),
        (
            Call("send", json!({ "to": [1, 2, 3] })),
            Deny,
            &[13],
            &[13],
            "[1,2,3] are too many (rule at policy.toml:13)",
        ),
        (
            get("send"),
            Deny,
            &[13],
            &[13],
            "(none) are too many (rule at policy.toml:13); its condition cannot be evaluated: there \
             is no \"to\"",
        ),
        (Call("quiet", json!({ "n": 2 })), Allow, &[19], &[19], "rule at policy.toml:19"),
        (Call("quiet", json!({ "n": 3 })), Ask, &[4, 5, 9], &[4, 5, 9], ASKS),
        (
            get("quiet"),
            Ask,
            &[4, 5, 9],
            &[19, 4, 5, 9],
            "no rule for it, and weather can reach the network and change files; the rule at \
             policy.toml:19 does not count; its condition cannot be evaluated: there is no \"n\"",
        ),
    ]
}

fn requests() -> [Row; 10] {
    let to = |method: &str, path: &str| format!("{method} https://api.example.com/{path}");
    let get = |method, path| Net("get", to(method, path));
    let quiet = |method, path| Net("quiet", to(method, path));
    let evil = Net("get", "GET https://evil.example/v1".to_owned());
    [
        (get("GET", "v1?q=1"), Allow, &[4], &[4], "no rule for it; entry at policy.toml:4"),
        (get("PUT", "v1"), Ask, &[5], &[5], "no rule for it; entry at policy.toml:5"),
        (get("PUT", "v2/x"), Deny, &[24], &[5, 24], "rule at policy.toml:24"),
        (quiet("PUT", "v1"), Allow, &[29], &[5, 29], "rule at policy.toml:29"),
        (quiet("PUT", "v2/x"), Deny, &[24], &[5, 24, 29], "rule at policy.toml:24"),
        (get("GET", "admin/x"), Deny, &[6], &[4, 6], "denied by policy.toml:6"),
        (quiet("PUT", "admin/x"), Deny, &[6], &[5, 6], "denied by policy.toml:6"),
        (get("DELETE", "v1"), Deny, &[], &[], "no grant covers it"),
        (evil, Deny, &[], &[], "its manifest does not request it"),
        (
            get("GET", "v1/%2e%2e%2f"),
            Deny,
            &[],
            &[],
            "the path hides a dot, a slash, a backslash or a control character",
        ),
    ]
}

fn files() -> [Row; 7] {
    let (read, write) = (FsAccess::Read, FsAccess::ReadWrite);
    let git = "denied by \"**/.git/**\" at policy.toml:9";
    let detour = "\"/notes/../books\" goes upwards with `..`";
    let (first, second) =
        ("the entry at policy.toml:9 grants it", "the entry at policy.toml:10 grants it");
    [
        (Path("/notes/a.txt", write), Allow, &[9], &[9], first),
        (Path("/srv/notes/a.txt", write), Allow, &[9], &[9], first),
        (Path("/notes/.git/config", read), Deny, &[9], &[9], git),
        (Path("/books/a", read), Allow, &[10], &[10], second),
        (
            Path("/srv/books/a", write),
            Deny,
            &[10],
            &[10],
            "the grant at policy.toml:10 is for reading only",
        ),
        (Path("/other/a", read), Deny, &[], &[], "no grant covers it"),
        (Path("/notes/../books", read), Deny, &[], &[], detour),
    ]
}

#[test]
fn twenty_situations_are_explained_as_a_reader_of_the_file_would() {
    let rows = calls().into_iter().chain(requests()).chain(files());
    for (about, decision, won, spoke, reason) in rows {
        let found = explain(POLICY, GREEDY, &about);
        let lines = |won_only: bool| {
            let steps = found.steps.iter().filter(|step| step.is_decisive || !won_only);
            steps.map(|step| step.place.line).collect::<Vec<_>>()
        };
        assert_eq!((found.decision, found.reason.as_str()), (decision, reason), "{found:#?}");
        let both = (lines(true), lines(false));
        assert_eq!((both.0.as_slice(), both.1.as_slice()), (won, spoke), "{found:#?}");
    }
}

#[test]
fn an_explanation_says_what_would_change_the_decision() {
    let rule = "[[rule]]\ntool = \"weather.get\"\ndecision = \"allow\"\n";
    let net = "[[rule]]\ntool = \"weather.get\"\nnet = \"PUT https://api.example.com/v1\"\n\
               decision = \"allow\"\n";
    let rows = [
        (Call("get", json!({})), Some(rule)),
        (Net("get", "PUT https://api.example.com/v1?q".into()), Some(net)),
        // Requests that are allowed already, or that a rule or an entry that denies decided.
        (Net("get", "GET https://api.example.com/v1".into()), None),
        (Call("quiet", json!({ "n": 1 })), None),
        (Call("send", json!({})), None),
        (Net("get", "PUT https://api.example.com/v2/x".into()), None),
        (Net("get", "GET https://api.example.com/admin/x".into()), None),
        (Path("/notes/.git/config", FsAccess::Read), None),
        (Path("/notes/a", FsAccess::Read), None),
    ];
    for (about, fix) in rows {
        let found = explain(POLICY, GREEDY, &about);
        assert_eq!(found.fix.as_ref().map(|fix| fix.toml.as_str()), fix, "{found:#?}");
        if let Some(fix) = fix {
            let mended = explain(&format!("{POLICY}{fix}"), GREEDY, &about);
            assert_eq!(mended.decision, Allow, "{mended:#?}");
        }
    }
    for about in
        [Net("get", "GET https://intern.example/x".into()), Path("/books/a", FsAccess::ReadWrite)]
    {
        let fix = explain(POLICY, GREEDY, &about).fix.unwrap().toml;
        assert_eq!(explain(&fix, GREEDY, &about).decision, Allow, "{fix}");
    }
}

#[test]
fn a_step_shows_the_line_as_the_file_has_it() {
    let rows = [
        (
            Call("send", json!({})),
            "rule deny weather.send when size(args.to) > 2; its condition cannot be evaluated: \
             there is no \"to\"",
        ),
        (
            Net("quiet", "PUT https://api.example.com/".into()),
            "rule allow weather.quiet for PUT https://api.example.com/**",
        ),
        (
            Net("get", "GET https://api.example.com/".into()),
            "net entry \"GET https://api.example.com/**\"",
        ),
        (
            Net("get", "GET https://api.example.com/admin/x".into()),
            "net entry { deny = \"* https://api.example.com/admin/**\" }",
        ),
        (
            Path("/books/x", FsAccess::Read),
            "fs entry { path = \"/srv/books\", mount = \"/books\", access = \"read\" }",
        ),
    ];
    for (about, text) in rows {
        let found = explain(POLICY, GREEDY, &about);
        let won = found.steps.iter().find(|step| step.is_decisive).unwrap();
        assert_eq!(won.text, text);
    }
}

#[test]
fn what_the_manifest_does_not_request_is_no_danger() {
    let found =
        explain(POLICY, "[[request.fs]]\naccess = 'read'\nwhy = 'w'", &Call("get", json!({})));
    assert_eq!((found.decision, found.steps.len(), found.fix), (Allow, 0, None));
    let found = explain(
        POLICY,
        "[[request.fs]]\naccess = 'read'\nwhy = 'w'",
        &Path("/notes/a", FsAccess::ReadWrite),
    );
    assert_eq!(
        (found.decision, found.reason.as_str()),
        (Deny, "its manifest requests to read it only")
    );
    assert!(found.steps.iter().all(|step| !step.is_decisive), "{found:#?}");
    let found = explain(POLICY, "", &Path("/notes/a", FsAccess::Read));
    assert_eq!((found.decision, found.reason.as_str()), (Deny, "its manifest does not request it"));
}

/// All outputs use one computation of the ungranted requests.
#[test]
fn what_is_requested_and_not_granted_is_told_with_the_flags_that_grant_it() {
    let requests = "[[request.net]]\nallow = 'GET https://a.io/**'\nwhy = 'w'
                    [[request.net]]\nallow = 'GET http://127.0.0.1:80/'\nwhy = 'w'
                    [[request.fs]]\naccess = 'read-write'\nwhy = 'w'
                    [[request.fs]]\npath = '/etc/os-release'\naccess = 'read'\nwhy = 'w'
                    [[request.env]]\nname = 'TZ'\nwhy = 'w'
                    [[request.secrets]]\nname = 'key'\nreveal = true\nwhy = 'w'
                    [[request.state]]\nwhy = 'w'
                    [[request.scratch]]\nname = 'box'\nwhy = 'w'
                    [[request.ui]]\nconfirm = true\nwhy = 'w'";
    let told = |policy: &str| {
        let found = grant(policy, requests).ungranted_requests();
        let line = |one: &crate::UngrantedRequest| match one.grant_flags() {
            Some(flags) => format!("{one}: {flags}"),
            None => one.to_string(),
        };
        found.iter().map(line).collect::<Vec<_>>()
    };
    let all = [
        "GET https://a.io/**: --net 'GET https://a.io/**'",
        "GET http://127.0.0.1/: --net 'GET http://127.0.0.1/' --to-private",
        "read-write a folder: --write FOLDER",
        "read /etc/os-release: --read /etc/os-release",
        "the variable TZ: --env TZ",
        "the value of the secret key: --secret key --reveal",
    ];
    assert_eq!(told("")[..6], all);
    assert_eq!(told("").len(), 9, "{:?}", told(""));
    // A partly granted request counts as granted; an explicit denial is reported with its place.
    let some = "[plugin.weather]\nnet = ['GET https://a.io/x', { deny = '* http://*/**' }]\n\
                fs = [{ path = '/n', access = 'read' }]\nenv = ['TZ']\nstate = false\nui = true\n\
                scratch = [{ name = 'box' }]";
    let left = told(some);
    let want = [
        "GET http://127.0.0.1/ (denied by policy.toml:2)",
        "read /etc/os-release: --read /etc/os-release",
        "the value of the secret key: --secret key --reveal",
    ];
    assert_eq!(left[..3], want, "{left:?}");
    assert!(left[3].ends_with("(denied by policy.toml:5)"), "{left:?}");
    assert!(left[4].ends_with("--capability ui --set confirm=true"), "{left:?}");
    assert_eq!(left.len(), 5, "{left:?}");
    let script = crate::Manifest::for_script("weather".parse().unwrap(), "a script".into());
    let process = policy("[plugin.weather]\nprocess = true");
    let of_script = process.effective_grant(&script, &serde_json::Map::new());
    assert_eq!(of_script.ungranted_requests(), []);
    // The text for a folder is valid for a native program.
    let fix = of_script.missing_files_fix(None, FsAccess::Read).expect("a text").toml;
    assert!(crate::Policy::from_user_file("p", &fix, None).is_ok(), "{fix}");
}
