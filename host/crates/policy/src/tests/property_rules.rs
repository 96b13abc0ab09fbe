//! Properties of any rules, for any arguments.

use proptest::prelude::*;
use sallyport_contract::{Decision, ToolCallContext};
use serde_json::{Map, Value};
use url::Url;

use super::{DIGEST, GREEDY, manifest, question_about, tool};
use crate::{Policy, PolicyTier, toml_text::toml_string};

/// Conditions over a few names, many of which cannot be evaluated.
fn condition() -> impl Strategy<Value = String> {
    let part = prop::sample::select(vec![
        "args.a > 3",
        "size(args.l) > 1",
        "args.l.exists(x, x == 1)",
        "args.l.all(x, x.b == args.a)",
        "has(args.a)",
        "args.a == 'x'",
        "args.s.startsWith('x')",
        "args.s.matches('^x+$')",
        "args.a / args.b > 1",
        "context.user_id == 'me'",
        "'TZ' in grants.env",
        "args.l.map(x, x + 1)[0] == args.a",
        "true",
        "false",
    ]);
    let joint = prop::sample::select(vec![" && ", " || "]);
    (part.clone(), joint, part, any::<bool>()).prop_map(|(a, joint, b, negated)| {
        let all = format!("{a}{joint}{b}");
        if negated { format!("!({all})") } else { all }
    })
}

fn rule(decisions: &'static [&'static str]) -> impl Strategy<Value = String> {
    let tools = prop::sample::select(vec![
        "weather.get",
        "weather.*",
        "weather.put",
        "*",
        "*.get",
        "*.*E*",
        "w*.*t",
        "mail.*",
    ]);
    let nets = prop::sample::select(vec![
        "* https://api.example.com/**",
        "GET https://api.example.com/a/*",
        "PUT https://*.example.com/a",
    ]);
    let digests = prop::sample::select(vec![&DIGEST[..12], "000000000000"]);
    let optional = (
        prop::option::of(nets),
        prop::option::weighted(0.2, digests),
        prop::option::weighted(0.7, condition()),
    );
    (tools, prop::sample::select(decisions), optional).prop_map(
        |(tool, decision, (net, digest, when))| {
            let mut text = format!("[[rule]]\ntool = '{tool}'\ndecision = '{decision}'\n");
            for (key, value) in [
                ("net", net.map(str::to_owned)),
                ("digest", digest.map(str::to_owned)),
                ("when", when),
            ] {
                if let Some(value) = value {
                    text.push_str(&format!("{key} = {}\n", toml_string(&value)));
                }
            }
            text
        },
    )
}

fn rules(decisions: &'static [&'static str]) -> impl Strategy<Value = String> {
    prop::collection::vec(rule(decisions), 0..4).prop_map(|rules| rules.concat())
}

const ALL: &[&str] = &["allow", "ask", "deny"];

/// The user's grants: nothing, a request that asks, one that does not.
fn table() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "[plugin.weather]\nenv = ['TZ']\n",
        "[plugin.weather]\nnet = ['* https://api.example.com/**']\n",
        "[plugin.weather]\nnet = [{ allow = '* https://api.example.com/**', decision = 'ask' }]\n",
        "[plugin.weather]\nfs = [{ path = '/x', access = 'read-write' }]\n",
    ])
}

/// Arguments of any shape, under the names that the conditions use.
fn arguments() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (0_i64..6).prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[x-z]{0,3}".prop_map(Value::from),
        "\\PC{0,8}".prop_map(Value::from),
    ];
    let value = leaf.prop_recursive(3, 24, 4, |inner| {
        let key = "[a-cls]";
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(key, inner, 0..4)
                .prop_map(|map| Value::Object(Map::from_iter(map))),
        ]
    });
    prop::collection::btree_map("[ablsx]", value, 0..5)
        .prop_map(|map| Value::Object(Map::from_iter(map)))
}

fn of(files: &[(PolicyTier, &str)]) -> Policy {
    let files =
        files.iter().map(|(tier, text)| Policy::parse_file(*tier, "p.toml", text, None).unwrap());
    Policy::from_files(files.collect()).unwrap()
}

/// A policy's decisions about a call and two of its requests; a request that is not permitted is
/// denied.
fn decisions(policy: &Policy, arguments: &Value) -> Vec<Decision> {
    let grant = policy.effective_grant(&manifest(GREEDY), &Map::new());
    let (id, context) = (tool("weather.get"), ToolCallContext::default());
    let question = question_about(&id, arguments, &context);
    let mut decisions = vec![policy.decide_call(&question, &grant).decision];
    for (method, url) in
        [("GET", "https://api.example.com/a/b"), ("PUT", "https://api.example.com/A")]
    {
        let url = Url::parse(url).unwrap();
        let permit = grant.net().check_request(method, &url);
        let decide =
            |permit| policy.decide_access(&question, &grant, method, &url, &permit).decision;
        decisions.push(permit.map_or(Decision::Deny, decide));
    }
    decisions
}

fn no_laxer(strict: &[Decision], lax: &[Decision]) -> bool {
    strict.iter().zip(lax).all(|(strict, lax)| strict >= lax)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..Default::default() })]

    #[test]
    fn adding_a_rule_that_denies_or_asks_never_allows_more(
        table in table(), before in rules(ALL), more in rule(&["deny", "ask"]),
        arguments in arguments(),
    ) {
        let without = decisions(&of(&[(PolicyTier::User, &format!("{table}{before}"))]), &arguments);
        let with = decisions(&of(&[(PolicyTier::User, &format!("{table}{before}{more}"))]), &arguments);
        // Asking instead of asking by default is not a change, and denying is always stricter.
        prop_assert!(no_laxer(&with, &without), "{:?} after {:?}", with, without);
    }

    #[test]
    fn a_projects_file_never_allows_more(
        table in table(), user in rules(ALL), project in rules(&["deny", "ask"]),
        deny in any::<bool>(), arguments in arguments(),
    ) {
        let user = format!("{table}{user}");
        let denies = "[plugin.weather]\nnet = [{ deny = 'GET https://*/a/**' }]\n";
        let project = format!("{}{project}", if deny { denies } else { "" });
        let without = decisions(&of(&[(PolicyTier::User, &user)]), &arguments);
        let with = decisions(&of(&[(PolicyTier::User, &user), (PolicyTier::Project, &project)]), &arguments);
        prop_assert!(no_laxer(&with, &without), "{:?} after {:?}", with, without);
    }

    #[test]
    fn the_order_of_rules_does_not_matter(
        table in table(), a in rules(ALL), b in rules(ALL), arguments in arguments(),
    ) {
        let one = decisions(&of(&[(PolicyTier::User, &format!("{table}{a}{b}"))]), &arguments);
        let other = decisions(&of(&[(PolicyTier::User, &format!("{table}{b}{a}"))]), &arguments);
        prop_assert_eq!(one, other);
    }

    /// An explanation has the decision of the verdict, and its winner is the rule of the verdict.
    #[test]
    fn explanations_agree_with_decisions(
        table in table(), rules in rules(ALL), arguments in arguments(),
    ) {
        let policy = of(&[(PolicyTier::User, &format!("{table}{rules}"))]);
        let grant = policy.effective_grant(&manifest(GREEDY), &Map::new());
        let (id, context) = (tool("weather.get"), ToolCallContext::default());
        let question =
            question_about(&id, &arguments, &context);
        let verdict = policy.decide_call(&question, &grant);
        let found = policy.explain_call(&question, &grant);
        prop_assert_eq!((verdict.decision, &verdict.reason), (found.decision, &found.reason));
        let won = found.steps.iter().find(|step| step.is_decisive).map(|step| &step.place);
        prop_assert!(verdict.rule.is_none() || won == verdict.rule.as_ref());
        // A decision that the outlook leaves open is the strictest or the least strict possible
        // one.
        let outlook = policy.expected_verdict(&id, DIGEST, &grant);
        let settled = !outlook.matched.iter().any(|matched| !matched.is_counted);
        prop_assert!(!settled || outlook.decision == verdict.decision);
    }

    #[test]
    fn a_rule_text_reads_back(
        tool in prop::sample::select(vec!["a.b", "a.*", "*", "*.b*", "a*.b"]),
        message in prop::option::of("[^{}]{1,40}"), digest in prop::option::of("[0-9a-f]{12,64}"),
    ) {
        let message = message.filter(|message| !message.trim().is_empty());
        let (net, decision) = (Some("GET https://a.io/x".to_owned()), Decision::Deny);
        let (tool, page) = (tool.to_owned(), None);
        let text = crate::RuleText { tool, net, page, digest, decision, message };
        prop_assert!(Policy::from_user_file("p.toml", &text.to_string(), None).is_ok(), "{}", text);
    }

    #[test]
    fn no_text_makes_a_rule_panic(
        text in "\\PC{0,60}", soup in "[a-z.()\\[\\]{}'\"+*/%<>=!?:,&|0-9\\\\ \n-]{0,60}",
        arguments in arguments(),
    ) {
        let (path, step) = (format!("args.{soup}"), format!("args.l.all(x, {soup})"));
        let whens = [&text, &soup, &path, &step].map(|when| ("when", when));
        for (key, value) in whens.into_iter().chain([("message", &text), ("net", &soup)]) {
            let line = format!("{key} = {}", toml_string(value));
            let rule = format!("[[rule]]\ntool = 'weather.get'\ndecision = 'deny'\n{line}");
            if let Ok(policy) = Policy::from_user_file("p.toml", &rule, None) {
                decisions(&policy, &arguments);
            }
        }
    }
}
