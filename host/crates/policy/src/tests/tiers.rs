//! Policies of several files.

use std::path::Path;

use sallyport_contract::Decision::{Allow, Ask, Deny};
use serde_json::Map;

use super::{GREEDY, check_error, manifest, send, verdict};
use crate::{Policy, PolicyTier, SecretSource, SourceError};

const FILES: [(PolicyTier, &str); 3] = [
    (PolicyTier::Admin, "admin.toml"),
    (PolicyTier::User, "user.toml"),
    (PolicyTier::Project, "project.toml"),
];

/// The policy of an administrator's, a user's and a project's file.
fn parse_all(texts: [&str; 3]) -> Result<Policy, SourceError> {
    let home = Some(Path::new("/home/me"));
    let files = FILES.iter().zip(texts);
    let files = files.map(|((tier, file), text)| Policy::parse_file(*tier, file, text, home));
    // The order of the files does not matter.
    let mut files = files.collect::<Result<Vec<_>, _>>()?;
    files.reverse();
    Policy::from_files(files)
}

fn all(texts: [&str; 3]) -> Policy {
    parse_all(texts).unwrap_or_else(|error| panic!("{error}\n{texts:?}"))
}

#[test]
fn the_rules_of_all_files_are_one_list() {
    let rule =
        |decision: &str| format!("[[rule]]\ntool = 'weather.get'\ndecision = '{decision}'\n");
    let (allow, ask, deny) = (rule("allow"), rule("ask"), rule("deny"));
    let rows = [
        (["", &allow, ""], Allow, "rule at user.toml:1"),
        ([&ask, &allow, ""], Ask, "rule at admin.toml:1"),
        (["", &allow, &ask], Ask, "rule at project.toml:1"),
        ([&deny, &allow, &ask], Deny, "rule at admin.toml:1"),
        (["", &ask, &deny], Deny, "rule at project.toml:1"),
        // The first of several equally strict rules is named.
        ([&ask, &ask, &ask], Ask, "rule at admin.toml:1"),
        (["", &deny, &deny], Deny, "rule at user.toml:1"),
    ];
    for (texts, decision, reason) in rows {
        let policy = all(texts);
        let grant = policy.effective_grant(&manifest(GREEDY), &Map::new());
        let verdict = verdict(&policy, &grant, "weather.get");
        assert_eq!((verdict.decision, verdict.reason.as_str()), (decision, reason), "{texts:?}");
    }
}

#[test]
fn grants_come_from_the_administrator_and_the_user_and_a_project_takes_away() {
    let net =
        |path: &str| format!("[plugin.weather]\nnet = ['GET https://api.example.com/{path}']");
    let deny =
        "[plugin.weather]\nnet = [{ deny = '* https://*/secret/**' }]\nlimits = { time = '2s' }";
    let policy = all([&net("a/**"), &net("**"), deny]);
    let grant = policy.effective_grant(&manifest(GREEDY), &Map::new());
    assert!(send(&grant, "GET https://api.example.com/a/b").is_ok());
    assert!(send(&grant, "GET https://api.example.com/b").is_ok());
    let denial = send(&grant, "GET https://api.example.com/secret/x").unwrap_err();
    assert_eq!(denial.reason.to_string(), "denied by project.toml:2");
    assert_eq!(denial.fix, None);
    assert_eq!(grant.limits().time.as_secs(), 2);
}

#[test]
fn what_grants_in_a_projects_file_is_a_mistake() {
    let hint = "move it to your own policy, or leave it out";
    let rows = [
        ("[plugin.a]\nnet = ['GET https://a.io/x']", "2:8", ""),
        ("[plugin.a]\nnet = [{ allow = 'GET https://a.io/x' }]", "2:18", "\"allow\" grants"),
        ("[plugin.a]\nfs = [{ path = '/x', access = 'read' }]", "2:6", "\"fs\" grants"),
        ("[plugin.a]\nenv = ['TZ']", "2:7", "\"env\" grants"),
        ("[plugin.a]\nsecrets = []", "2:11", "\"secrets\" grants"),
        ("[secret.a]\nenv = 'A'", "1:1", "\"a\" grants"),
        ("[proxy]\nhttp = 'http://p.example:1'", "1:1", "\"proxy\" grants"),
    ];
    for (text, place, what) in rows {
        let error = parse_all(["", "", text]).unwrap_err();
        let start = format!("project.toml:{place}: {what}");
        assert!(error.to_string().starts_with(&start), "{error}, not {start}");
        assert!(error.to_string().ends_with("a project's policy can only tighten"), "{error}");
        assert_eq!(error.hint.as_deref(), Some(hint), "{text}");
        assert!(parse_all([text, "", ""]).is_ok(), "{text}");
    }
}

#[test]
fn secrets_and_the_proxy_have_one_source() {
    let source = "[secret.key]\nenv = 'KEY'\n";
    let grants = "[plugin.weather]\nsecrets = [{ name = 'key', reveal = true }]\n";
    let policy = all([source, grants, ""]);
    let name = "key".parse().unwrap();
    assert_eq!(policy.secret_source(&name), Some(&SecretSource::Env("KEY".into())));
    assert_eq!(policy.secret_source(&"other".parse().unwrap()), None);
    assert!(policy.proxy().is_none());

    let message = "user.toml:2:12: no file says where the secret key is";
    let hint = "add [secret.key] with \"env\", \"file\" or \"keyring\"";
    check_error(parse_all(["", grants, ""]), message, hint);
    let message = "user.toml:1:9: the secret key has a source at admin.toml:1";
    let hint = "a secret has one source: leave out one of the two";
    check_error(parse_all([source, source, ""]), message, hint);
    let proxy = "[proxy]\nhttp = 'http://proxy.example:3128'\n";
    assert!(all(["", proxy, ""]).proxy().is_some());
    let error = parse_all([proxy, proxy, ""]).unwrap_err();
    assert_eq!(error.to_string(), "user.toml:1:1: there is a proxy at admin.toml:1");
}

#[test]
fn a_plugin_that_uses_secrets_is_asked_about() {
    let source = "[secret.key]\nenv = 'KEY'\n";
    let grants = "[plugin.weather]\nsecrets = [{ name = 'key', reveal = true }]\n";
    let policy = all([source, grants, ""]);
    let asks = "[[request.secrets]]\nname = 'key'\nreveal = true\nwhy = 'w'";
    let grant = policy.effective_grant(&manifest(asks), &Map::new());
    let reason = "no rule for it, and weather can use secrets".to_owned();
    assert_eq!(super::decide(&policy, &grant, "weather.get"), (Ask, reason));
}

#[test]
fn a_policy_can_be_shared() {
    fn check<T: Clone + std::fmt::Debug + Send + Sync + 'static>(_: &T) {}
    check(&all([
        "",
        "[[rule]]\ntool = 'a.b'\nwhen = 'args.x.matches(\"y\")'\ndecision = 'deny'",
        "",
    ]));
    let rule = |when| format!("[[rule]]\ntool = 'a.b'\nwhen = '{when}'\ndecision = 'deny'");
    assert_eq!(all(["", &rule("args.x"), ""]), all(["", &rule("args.x"), ""]));
    assert_ne!(all(["", &rule("args.x"), ""]), all(["", &rule("args.y"), ""]));
}
