//! Remarks on useless parts of a policy.

use std::collections::BTreeSet;

use crate::{Installed, Policy, PolicyRemark, PolicyTier};

use super::policy;

fn installed() -> Installed {
    let plugin = |name: &str, tools: &[&str]| {
        let tools: BTreeSet<_> = tools.iter().map(|tool| tool.parse().unwrap()).collect();
        (name.parse().unwrap(), tools)
    };
    Installed::from([plugin("weather", &["get", "send"]), plugin("mail", &["send"])])
}

fn shown(remarks: Vec<PolicyRemark>) -> Vec<String> {
    let shown =
        |PolicyRemark { place, message, .. }| format!("{}:{}: {message}", place.line, place.column);
    remarks.into_iter().map(shown).collect()
}

#[track_caller]
fn check_remarks(text: &str, want: &[&str]) {
    assert_eq!(shown(policy(text).find_remarks(&installed())), want, "{text}");
}

/// A tool, a decision, and more lines.
type RuleRow<'r> = (&'r str, &'r str, &'r str);

/// The rules for rows of a tool, a decision, and more lines. Each rule has three lines without the
/// latter.
fn rules(rows: &[RuleRow<'_>]) -> String {
    let rule = |(tool, decision, more): &RuleRow<'_>| {
        format!("[[rule]]\ntool = '{tool}'\ndecision = '{decision}'{more}\n")
    };
    rows.iter().map(rule).collect()
}

#[test]
fn rules_that_never_decide() {
    let deny_all = "4:1: never decides: policy.toml:1 says deny to every call of weather.*";
    let net = "\nnet = 'GET https://a.io/x'";
    let wide = "\nnet = '* https://a.io/**'";
    let (when, digest, longer) =
        ("\nwhen = 'args.a'", "\ndigest = '0123456789ab'", "\ndigest = '0123456789abcd'");
    let rows: [(&[RuleRow<'_>], &[&str]); 17] = [
        (&[("weather.*", "deny", ""), ("weather.get", "allow", "")], &[deny_all]),
        (&[("weather.*", "deny", ""), ("weather.get", "ask", when)], &[deny_all]),
        (&[("weather.*", "deny", ""), ("weather.get", "deny", "")], &[deny_all]),
        (&[("weather.*", "deny", ""), ("weather.*", "allow", digest)], &[deny_all]),
        // A denied call sends no requests.
        (&[("weather.*", "deny", ""), ("weather.get", "allow", net)], &[deny_all]),
        (
            &[("weather.get", "allow", ""), ("weather.*", "deny", "")],
            &["1:1: never decides: policy.toml:4 says deny to every call of weather.*"],
        ),
        (
            &[("weather.get", "ask", ""), ("weather.get", "ask", "")],
            &["4:1: never decides: policy.toml:1 says ask to every call of weather.get"],
        ),
        (
            &[("weather.get", "ask", digest), ("weather.get", "allow", longer)],
            &["5:1: never decides: policy.toml:1 says ask to every call of weather.get"],
        ),
        // The narrower rule decides where the wider one does not match, or has its own message.
        (&[("weather.get", "deny", ""), ("weather.*", "allow", "")], &[]),
        (&[("weather.get", "deny", ""), ("weather.*", "deny", "")], &[]),
        (&[("weather.*", "ask", ""), ("weather.get", "deny", "")], &[]),
        (&[("weather.*", "allow", ""), ("weather.get", "ask", "")], &[]),
        (&[("weather.*", "deny", when), ("weather.get", "allow", "")], &[]),
        (&[("weather.*", "deny", digest), ("weather.get", "allow", "")], &[]),
        (&[("weather.*", "deny", longer), ("weather.get", "allow", digest)], &[]),
        (&[("weather.*", "ask", ""), ("mail.send", "allow", "")], &[]),
        (&[("weather.get", "deny", ""), ("weather.send", "allow", "")], &[]),
    ];
    for (rows, want) in rows {
        check_remarks(&rules(rows), want);
    }
    let entry = "[plugin.weather]\nnet = ['GET https://a.io/**']\n";
    check_remarks(
        &(entry.to_owned() + &rules(&[("weather.*", "ask", wide), ("weather.get", "allow", net)])),
        &["7:1: never decides: policy.toml:3 says ask to * https://a.io/** of weather.*"],
    );
    check_remarks(
        &(entry.to_owned() + &rules(&[("weather.*", "ask", net), ("weather.get", "allow", wide)])),
        &[],
    );
    check_remarks(
        &(entry.to_owned() + &rules(&[("weather.get", "ask", "\nnet = 'PUT https://a.io/**'")])),
        &["3:1: has no effect: no entry of weather allows PUT https://a.io/**"],
    );
}

#[test]
fn names_of_what_is_not_installed() {
    check_remarks(
        &rules(&[
            ("weather.gett", "ask", ""),
            ("mial.*", "ask", ""),
            ("weather.*", "ask", ""),
            ("x.y", "ask", ""),
        ]),
        &[
            "1:1: weather has no tool gett; did you mean get?",
            "4:1: no plugin mial is installed; did you mean mail?",
            "10:1: no plugin x is installed",
        ],
    );
    check_remarks(
        "[plugin.wether]\nenv = ['A', 'B']",
        &["2:8: no plugin wether is installed; did you mean weather?"],
    );
    check_remarks("[plugin.wether]", &[]);
}

#[test]
fn network_entries_without_effect() {
    let rows: [(&str, &[&str]); 13] = [
        (
            "'GET https://a.io/x', { deny = '* https://**' }",
            &["2:8: allows nothing: the entry at policy.toml:2 denies all of it"],
        ),
        (
            "'GET https://a.io/x', { deny = 'GET https://a.io/**' }",
            &["2:8: allows nothing: the entry at policy.toml:2 denies all of it"],
        ),
        ("'GET https://a.io/**', { deny = 'GET https://a.io/x' }", &[]),
        (
            "'GET https://a.io/x', 'GET https://a.io/x'",
            &["2:30: adds nothing to the entry at policy.toml:2, which covers it"],
        ),
        (
            "'GET https://a.io/x', 'GET https://a.io/**'",
            &["2:8: adds nothing to the entry at policy.toml:2, which covers it"],
        ),
        ("'GET https://a.io/x', 'GET https://b.io/**'", &[]),
        (
            "{ allow = 'GET https://a.io/x', decision = 'ask' }, 'GET https://a.io/**'",
            &["2:8: never asks: the entry at policy.toml:2 allows all of it"],
        ),
        ("{ allow = 'GET https://a.io/**', decision = 'ask' }, 'GET https://a.io/x'", &[]),
        (
            "{ allow = '* https://a.io/**', decision = 'ask' }, \
             { allow = 'GET https://a.io/x', decision = 'ask' }",
            &["2:59: adds nothing to the entry at policy.toml:2, which covers it"],
        ),
        (
            "{ allow = 'GET http://localhost/x', to-private = true }, 'GET http://localhost/x'",
            &["2:65: adds nothing to the entry at policy.toml:2, which covers it"],
        ),
        (
            "'GET https://a.io/x', \
             { allow = 'GET https://a.io/x', to-private = true, range = '10.0.0.0/8' }",
            &["2:8: adds nothing to the entry at policy.toml:2, which covers it"],
        ),
        (
            "{ deny = 'GET https://a.io/x' }, { deny = 'GET https://a.io/x' }",
            &["2:41: denies what the entry at policy.toml:2 denies"],
        ),
        ("{ deny = 'GET https://a.io/x' }, { deny = 'PUT https://a.io/x' }", &[]),
    ];
    for (net, want) in rows {
        check_remarks(&format!("[plugin.weather]\nnet = [{net}]"), want);
    }
}

#[test]
fn names_that_are_granted_twice_and_secrets_that_nobody_uses() {
    check_remarks(
        "[plugin.weather]\nenv = ['A', 'B', 'A']",
        &["2:18: grants A like the entry at policy.toml:2"],
    );
    let secret = "{ name = 'key', reveal = true }";
    let source = "[secret.key]\nenv = 'KEY'\n";
    check_remarks(source, &["1:9: no plugin has a grant for the secret key"]);
    check_remarks(&format!("{source}[plugin.weather]\nsecrets = [{secret}]"), &[]);
    check_remarks(
        &format!("{source}[plugin.weather]\nsecrets = [{secret}, {secret}]"),
        &["4:45: grants key like the entry at policy.toml:4"],
    );
    // The same grant for two plugins is two grants.
    check_remarks("[plugin.weather]\nenv = ['A']\n[plugin.mail]\nenv = ['A']", &[]);
}

#[test]
fn the_rules_that_name_a_plugin_are_told() {
    let net = "\nnet = 'GET https://a.io/x'";
    let text = rules(&[
        ("weather.get", "allow", ""),
        ("*.*get*", "deny", ""),
        ("wea*.*", "ask", ""),
        ("mail.*", "deny", ""),
        ("weather.*", "deny", net),
    ]) + "[group.g]\nusers = ['a']\ntools = ['weather.*']\n"
        + "[[group.g.rule]]\ntool = 'weather.send'\ndecision = 'deny'\n";
    let policy = policy(&text);
    let naming = |plugin: &str| policy.rules_naming(&plugin.parse().unwrap()).collect::<Vec<_>>();
    let want = [
        "policy.toml:1 says allow to every call of weather.get",
        "policy.toml:7 says ask to every call of wea*.*",
        "policy.toml:13 says deny to GET https://a.io/x of weather.*",
        "policy.toml:20 says deny to every call of weather.send",
    ];
    assert_eq!(naming("weather"), want);
    assert_eq!(naming("mail"), ["policy.toml:10 says deny to every call of mail.*"]);
    assert_eq!(naming("other"), [""; 0]);
    // Those about requests or a group are not among them.
    let tools = |plugin: &str| Vec::from_iter(policy.call_rule_tools(&plugin.parse().unwrap()));
    assert_eq!(tools("weather"), ["wea*.*", "weather.get"]);
    assert_eq!(tools("mail"), ["mail.*"]);
}

#[test]
fn remarks_are_sorted_by_place_over_all_files() {
    let (secret, env) = ("[secret.key]\nenv = 'KEY'\n", "[plugin.weather]\nenv = ['A']\n");
    let user = format!("{secret}{env}{}", rules(&[("weather.get", "allow", "")]));
    let admin = format!("{env}{}", rules(&[("weather.gte", "deny", "")]));
    let project = rules(&[("weather.*", "deny", "")]);
    let files = [
        (PolicyTier::User, "user.toml", user),
        (PolicyTier::Admin, "admin.toml", admin),
        (PolicyTier::Project, "project.toml", project),
    ];
    let files =
        files.map(|(tier, file, text)| Policy::parse_file(tier, file, &text, None).unwrap());
    let policy = Policy::from_files(files.into()).unwrap();
    let remarks = policy.find_remarks(&installed()).into_iter();
    let remarks = remarks.map(|remark| format!("{}: {}", remark.place, remark.message));
    let want = [
        "admin.toml:3: weather has no tool gte; did you mean get?",
        "user.toml:1: no plugin has a grant for the secret key",
        "user.toml:4: grants A like the entry at admin.toml:2",
        "user.toml:5: never decides: project.toml:1 says deny to every call of weather.*",
    ];
    assert_eq!(remarks.collect::<Vec<_>>(), want);
}

/// A policy without useless lines needs no remark.
#[test]
fn a_policy_without_idle_lines_has_no_remarks() {
    let net = "['GET https://a.io/**', { deny = 'GET https://a.io/secret/**' }]";
    let rules = rules(&[
        ("weather.*", "allow", ""),
        ("weather.send", "ask", ""),
        ("weather.send", "deny", "\nnet = 'GET https://a.io/x'"),
    ]);
    check_remarks(&format!("[plugin.weather]\nnet = {net}\nenv = ['TZ']\n{rules}"), &[]);
}

#[test]
fn rules_that_allow_calls_of_any_plugin_are_told() {
    let wide = |line: usize, what: &str| {
        format!("{line}:1: allows {what} without asking, also for plugins that you add later")
    };
    let rows: [(&str, Vec<String>); 7] = [
        ("tool = '*'\ndecision = 'allow'", vec![wide(1, "every call of *")]),
        ("tool = '*.get'\ndecision = 'allow'\nwhen = 'true'", vec![wide(1, "every call of *.get")]),
        ("tool = '*'\ndecision = 'deny'", vec![]),
        ("tool = 'weather.*'\ndecision = 'allow'", vec![]),
        ("tool = '*'\ndigest = '0123456789ab'\ndecision = 'allow'", vec![]),
        // A pattern without matches may be a mistake; a pattern of roles always matches.
        (
            "tool = '*.delte*'\ndecision = 'deny'",
            vec!["1:1: no tool that is installed matches *.delte*".to_owned()],
        ),
        ("tool = 'weather.role:*'\ndecision = 'deny'", vec![]),
    ];
    for (rule, want) in rows {
        let want: Vec<&str> = want.iter().map(String::as_str).collect();
        check_remarks(&format!("[[rule]]\n{rule}"), &want);
    }
    let both = rules(&[("*", "deny", ""), ("weather.get", "allow", "")]);
    check_remarks(&both, &["4:1: never decides: policy.toml:1 says deny to every call of *"]);
    let entry = "[plugin.weather]\nnet = ['GET https://a.io/**']\n";
    let net = [("*.send", "ask", "\nnet = 'GET https://b.io/x'")];
    let want = "3:1: has no effect: no entry of any plugin allows GET https://b.io/x";
    check_remarks(&format!("{entry}{}", rules(&net)), &[want]);
}
