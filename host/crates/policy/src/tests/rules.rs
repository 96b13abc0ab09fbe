//! Rules in a file: valid content, examples and messages.

use sallyport_contract::Decision::{Allow, Ask, Deny};
use serde_json::json;

use super::{GREEDY, check_error, grant, parse_policy, policy, tool, verdict_with};
use crate::{Policy, PolicyTier, SourceError};

/// Parses a rule of three lines about `mail.send`, with more lines after them.
fn parse_rule(decision: &str, more: &str) -> Result<Policy, SourceError> {
    parse_policy(&format!("[[rule]]\ntool = 'mail.send'\ndecision = '{decision}'\n{more}"))
}

/// Checks lines that a rule cannot have. They begin at line 4.
#[track_caller]
fn check_refused(rows: &[(&str, &str, &str)]) {
    for (more, message, hint) in rows {
        check_error(parse_rule("deny", more), &format!("policy.toml:{message}"), hint);
    }
}

#[test]
fn mistakes_in_the_keys_of_a_rule() {
    let keys =
        "the keys known here are tool, net, open-url, digest, when, decision, message, match";
    let method = "4:7: \"https://a.io/x\" does not say which methods it allows";
    let wide = "4:7: the host \"*\" would allow nearly the whole internet";
    let host = "name the host, or one level below a domain: *.example.com";
    check_refused(&[
        ("whn = 'true'", "4:1: unknown key \"whn\"", "did you mean \"when\"?"),
        ("until = 'x'", "4:1: unknown key \"until\"", keys),
        ("when = true", "4:8: \"when\" must be a string, not a boolean", ""),
        ("net = 'https://a.io/x'", method, "write \"GET https://a.io/x\""),
        ("net = 'GET https://*/**'", wide, host),
        ("net = []", "4:7: \"net\" must be a string, not an array", ""),
        ("message = ''", "4:11: \"message\" is empty", ""),
        ("match = {}", "4:9: \"match\" must be a list, not a table", ""),
        ("match = ['a']", "4:10: an entry of \"match\" must be a table, not a string", ""),
        ("match = [{ to = 'a' }]", "4:10: key \"decision\" is missing", ""),
        (
            "match = [{ decision = 'no' }]",
            "4:23: \"decision\" cannot be \"no\"",
            "write one of allow, ask, deny",
        ),
        (
            "match = [{ a = nan, decision = 'deny' }]",
            "4:16: \"a\" must be a finite number, not a float",
            "",
        ),
    ]);
    for digest in ["16ee56a487a", "16EE56A487A0", "sha256:16ee56a487a0", &"a".repeat(65)] {
        let message = format!("4:10: \"{digest}\" is not a digest");
        let hint = "write its first digits, at least 12 of 0-9 and a-f, or all 64";
        check_refused(&[(&format!("digest = '{digest}'"), &message, hint)]);
    }
}

#[test]
fn mistakes_in_messages() {
    let names = "write {tool}, {plugin}, {args.NAME} or {context.NAME}";
    let rows = [
        ("{size}", names),
        ("{plugn}", "did you mean {plugin}?"),
        ("{args.}", "did you mean {args}?"),
        ("{args..a}", names),
        ("{context.user}", "did you mean {context.user_id}?"),
        ("{tool.x}", "did you mean {tool}?"),
        ("{}", names),
    ];
    for (name, hint) in rows {
        let message = format!("4:11: \"{name}\" is not something that a message can name");
        check_refused(&[(&format!("message = 'to {name}'"), &message, hint)]);
    }
    for text in ["a { b", "a } b", "{", "}", "{args.a", "{{}"] {
        let hint = "write {{ or }} for a brace";
        check_refused(&[(&format!("message = '{text}'"), "4:11: a brace stands alone", hint)]);
    }
    let long = format!("message = '{}'", "x".repeat(1025));
    check_refused(&[(&long, "4:11: a message of 1025 bytes is longer than 1024", "")]);
}

#[test]
fn a_projects_rules_can_only_ask_and_deny() {
    let parse = |decision| {
        let text = format!("[[rule]]\ntool = 'mail.send'\ndecision = '{decision}'");
        Policy::parse_file(PolicyTier::Project, "project.toml", &text, None)
    };
    let message = "project.toml:3:12: a rule of a project's policy cannot allow";
    let hint = "a project can only ask or deny: move it to your own policy";
    check_error(parse("allow"), message, hint);
    assert!(parse("ask").is_ok() && parse("deny").is_ok());
}

#[test]
fn the_rules_of_a_file_are_bounded() {
    let rule = "[[rule]]\ntool = 'a.b'\ndecision = 'deny'\n";
    assert!(parse_policy(&rule.repeat(2000)).is_ok());
    let message = "policy.toml:6001:1: the file has more than 2000 rules";
    check_error(parse_policy(&rule.repeat(2001)), message, "");
}

/// An example tests the rule alone.
#[test]
fn examples_that_do_not_come_out_are_mistakes() {
    let absent = ": its condition cannot be evaluated, as there is no \"n\"";
    // (the rule's decision, its condition, an example, the rule's actual decision if the example
    // fails)
    let rows = [
        ("deny", "args.n > 5", "n = 6, decision = 'deny'", None),
        ("deny", "args.n > 5", "n = 5, decision = 'allow'", None),
        ("ask", "args.n > 5", "n = 6, decision = 'ask'", None),
        ("ask", "args.n > 5", "n = 5, decision = 'allow'", None),
        ("allow", "args.n > 5", "n = 6, decision = 'allow'", None),
        ("allow", "args.n > 5", "n = 5, decision = 'ask'", None),
        ("deny", "true", "decision = 'deny'", None),
        ("deny", "args.to.b[1] == 'x'", "to = { b = ['y', 'x'] }, decision = 'deny'", None),
        ("deny", "context.tool == 'mail.send'", "decision = 'deny'", None),
        ("deny", "args.n > 5", "n = 5, decision = 'deny'", Some(("deny", "allow", ""))),
        ("deny", "args.n > 5", "n = 6, decision = 'allow'", Some(("allow", "deny", ""))),
        ("deny", "args.n > 5", "n = 6, decision = 'ask'", Some(("ask", "deny", ""))),
        ("allow", "args.n > 5", "n = 5, decision = 'allow'", Some(("allow", "ask", ""))),
        ("allow", "args.n > 5", "n = 5, decision = 'deny'", Some(("deny", "ask", ""))),
        // A condition that cannot be evaluated counts for the stricter side.
        ("deny", "args.n > 5", "decision = 'deny'", None),
        ("deny", "args.n > 5", "decision = 'allow'", Some(("allow", "deny", absent))),
        ("allow", "args.n > 5", "decision = 'ask'", None),
        ("allow", "args.n > 5", "decision = 'allow'", Some(("allow", "ask", absent))),
    ];
    for (decision, when, example, wrong) in rows {
        let parsed =
            parse_rule(decision, &format!("when = \"{when}\"\nmatch = [\n{{ {example} }},\n]"));
        match wrong {
            None => assert_eq!(parsed.map(|_| ()), Ok(()), "{decision} {when} {example}"),
            Some((says, gives, why)) => {
                let message = format!("the example says {says}, but the rule gives {gives}{why}");
                check_error(parsed, &format!("policy.toml:6:1: {message}"), "");
            }
        }
    }
}

#[test]
fn every_example_can_be_listed() {
    let policy = policy(
        "[[rule]]\ntool = 'mail.*'\ndecision = 'deny'\nwhen = 'size(args.to) > 1'\n\
         match = [{ to = ['a'], decision = 'allow' }, { to = ['a', 'b'], decision = 'deny' },\n\
         { decision = 'deny' }]\n\
         [[rule]]\ntool = 'mail.send'\ndecision = 'ask'\nmatch = [{ decision = 'ask' }]",
    );
    let listed = policy.example_results().map(|example| {
        let places = (example.rule.line, example.place.line, example.place.column);
        (places, example.arguments, example.expected, example.actual, example.failure)
    });
    let absent = Some("there is no \"to\"".to_owned());
    let want = [
        ((1, 5, 10), json!({ "to": ["a"] }), Allow, Allow, None),
        ((1, 5, 46), json!({ "to": ["a", "b"] }), Deny, Deny, None),
        ((1, 6, 1), json!({}), Deny, Deny, absent),
        ((7, 10, 10), json!({}), Ask, Ask, None),
    ];
    assert_eq!(listed.collect::<Vec<_>>(), want);
}

#[test]
fn messages_say_what_the_call_was_about() {
    let arguments = json!({
        "to": ["ann@x.example", { "name": "bob" }], "n": 3, "none": null, "yes": true,
        "evil": "a\x1b[2J\nb\u{202e}", "long": "x".repeat(500), "braces": "{tool}",
    });
    let long = format!("{}…", "x".repeat(80));
    let rows = [
        ("{tool} of {plugin}", "weather.get of weather"),
        ("{args.to.0} and {args.to.1.name}", "ann@x.example and bob"),
        ("{args.to}", "[\"ann@x.example\",{\"name\":\"bob\"}]"),
        ("{args.n}{args.yes}", "3true"),
        (
            "{args.none} {args.absent} {args.to.9} {args.n.x} {context.user_id}",
            "(none) (none) (none) (none) (none)",
        ),
        ("{context.tool} {context.call_id}", "weather.get "),
        ("{args.evil}", "a\\u{1b}[2J\\nb\\u{202e}"),
        ("{args.long}", &long),
        ("{{{args.n}}} {{tool}}", "{3} {tool}"),
        ("{args.braces}", "{tool}"),
    ];
    for (message, want) in rows {
        let text =
            format!("[[rule]]\ntool = 'weather.get'\ndecision = 'deny'\nmessage = '{message}'");
        let (policy, grant) = (policy(&text), grant(&text, GREEDY));
        let said = verdict_with(&policy, &grant, "weather.get", &arguments);
        assert_eq!(said.reason, format!("{want} (rule at policy.toml:1)"), "{message}");
        // Without a call, the message keeps its placeholders.
        let outlook = policy.expected_verdict(&tool("weather.get"), "", &grant);
        assert_eq!(outlook.reason, format!("{message} (rule at policy.toml:1)"));
    }
}
