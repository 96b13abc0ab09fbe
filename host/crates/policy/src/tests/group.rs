//! Groups: whom they are about, what they take away, and that they never give.

use sallyport_contract::{
    BudgetMeasure::{Calls, MicroUsd, Tokens},
    BudgetPeriod::{Day, Month},
    Decision::{self, Allow, Ask, Deny},
    DenialReason, ToolCallContext,
};
use serde_json::{Map, json};

use super::{check_error, manifest, parse_policy, policy, question_about, tool};
use crate::{Installed, LoginGroups, Policy, PolicyQuestion, PolicyVerdict};

const GROUPS: &str = "
[group.support]
users = ['ann', 'temp-*']
login-groups = ['Support']
[[group.support.rule]]
tool = 'weather.send'
decision = 'deny'
message = 'support sends nothing'
[[group.support.rule]]
tool = 'weather.get'
decision = 'ask'

[group.trial]
users = ['ann', 'eve']
tools = ['weather.get', 'clock.*']
";

fn verdict_for(
    policy: &Policy,
    (user, login_groups): (Option<&str>, &LoginGroups),
    id: &str,
) -> PolicyVerdict {
    let context =
        ToolCallContext { user_id: user.map(str::to_owned), ..ToolCallContext::default() };
    let (tool, arguments) = (tool(id), json!({}));
    let question = PolicyQuestion { login_groups, ..question_about(&tool, &arguments, &context) };
    let grant = policy.effective_grant(&manifest(""), &Map::new());
    match id.contains("role:") {
        true => policy.decide_role(&question, &grant),
        false => policy.decide_call(&question, &grant),
    }
}

fn known(groups: &[&str]) -> LoginGroups {
    LoginGroups::Known(groups.iter().map(|group| (*group).to_owned()).collect())
}

#[test]
fn a_group_is_about_its_members_and_the_strictest_of_several_counts() {
    let policy = policy(GROUPS);
    let support = "support sends nothing (rule of the group support at policy.toml:5)";
    let asks = "rule of the group support at policy.toml:9";
    let trial = "it is not among the tools of the group trial, at policy.toml:15";
    let free = "no rule for it, and weather can neither change nor leak anything";
    let none = known(&[]);
    let rows: [(Option<&str>, LoginGroups, &str, Decision, &str); 15] = [
        (Some("ann"), none.clone(), "weather.send", Deny, support),
        (Some("ann"), none.clone(), "weather.get", Ask, asks),
        (Some("ann"), none.clone(), "weather.other", Deny, trial),
        (Some("eve"), none.clone(), "weather.get", Allow, free),
        (Some("eve"), none.clone(), "weather.send", Deny, trial),
        (Some("temp-7"), none.clone(), "weather.get", Ask, asks),
        (Some("temp"), none.clone(), "weather.get", Allow, free),
        (Some("ben"), none.clone(), "weather.send", Allow, free),
        (Some("Ann"), none.clone(), "weather.send", Allow, free),
        (Some("sso:ben"), known(&["Support", "x"]), "weather.send", Deny, support),
        (Some("sso:ben"), known(&["support"]), "weather.send", Allow, free),
        // A group that depends on what cannot be told applies.
        (Some("sso:ben"), LoginGroups::Unknown, "weather.send", Deny, support),
        (Some("sso:ben"), LoginGroups::Unknown, "weather.other", Allow, free),
        (None, none.clone(), "weather.send", Allow, free),
        (Some("eve"), none, "weather.role:timer", Deny, trial),
    ];
    for (user, login_groups, id, decision, reason) in rows {
        let verdict = verdict_for(&policy, (user, &login_groups), id);
        let found = (verdict.decision, verdict.reason.as_str());
        assert_eq!(found, (decision, reason), "{user:?} {login_groups:?} {id}");
        let (group, _) = reason.split_once(" of the group ").unzip();
        assert_eq!(verdict.group.is_some(), group.is_some(), "{user:?} {id}");
    }
}

#[test]
fn no_rule_about_all_users_lifts_what_a_group_takes_away() {
    let rules = "[[rule]]\ntool = '*'\ndecision = 'allow'\n";
    let policy = policy(&format!("{rules}{GROUPS}"));
    for (user, id, want) in [
        ("ann", "weather.send", Deny),
        ("ann", "weather.get", Ask),
        ("eve", "weather.other", Deny),
        ("ben", "weather.send", Allow),
    ] {
        let verdict = verdict_for(&policy, (Some(user), &known(&[])), id);
        assert_eq!(verdict.decision, want, "{user} {id}");
        assert!(verdict.allowing_rule(&tool(id), None).is_none(), "no rule can lift it");
    }
}

#[test]
fn a_refusal_names_the_group_as_data() {
    let policy = policy(GROUPS);
    let id = tool("weather.send");
    let denial = verdict_for(&policy, (Some("ann"), &known(&[])), "weather.send").to_denial(&id);
    assert!(denial.fix.is_none());
    let DenialReason::Rule { group, place, .. } = denial.reason else { panic!("{denial}") };
    assert_eq!((group.as_deref(), place.line), (Some("support"), 5));
}

#[test]
fn the_tools_of_a_group_say_nothing_of_requests_and_its_rules_do() {
    let text = "
[plugin.weather]
net = ['GET https://api.example.com/**']
[group.trial]
users = ['eve']
tools = ['weather.get']
[[group.trial.rule]]
tool = 'weather.get'
net = 'GET https://api.example.com/secret/**'
decision = 'deny'
";
    let policy = policy(text);
    let grant = policy.effective_grant(&manifest(super::GREEDY), &Map::new());
    let context = ToolCallContext { user_id: Some("eve".to_owned()), ..ToolCallContext::default() };
    let (tool, arguments) = (tool("weather.get"), json!({}));
    let login_groups = &known(&[]);
    let question = PolicyQuestion { login_groups, ..question_about(&tool, &arguments, &context) };
    for (path, want) in [("a", Allow), ("secret/a", Deny)] {
        let url = format!("https://api.example.com/{path}");
        let explained = policy.explain_net(&question, &grant, "GET", &url);
        assert_eq!(explained.decision, want, "{path}: {explained:?}");
        let names_group = explained.reason.contains("of the group trial");
        assert_eq!(names_group, want == Deny, "{path}: {}", explained.reason);
        let step =
            explained.steps.iter().any(|step| step.text.starts_with("rule of the group trial"));
        assert_eq!(step, want == Deny, "{path}");
    }
}

#[test]
fn budgets_of_all_groups_apply_next_to_each_other() {
    let text = "
[group.all]
users = ['*']
[group.all.budget]
calls-per-day = 200
usd-per-month = 5.25
sessions = 4
[group.trial]
login-groups = ['trial']
[group.trial.budget]
calls-per-day = 0
tokens-per-day = 1000
tokens-per-month = 9000
usd-per-day = 1
calls-per-month = 50
sessions = 9
";
    let policy = policy(text);
    let budgets = |login_groups: &LoginGroups| -> Vec<_> {
        let all = policy.budgets_of("ann", login_groups).into_iter();
        all.map(|one| (one.group, one.measure, one.period, one.limit)).collect()
    };
    let (all, trial) = ("all".to_owned(), || "trial".to_owned());
    let of_all = vec![(all.clone(), Calls, Day, 200), (all, MicroUsd, Month, 5_250_000)];
    let of_trial = vec![
        (trial(), Calls, Day, 0),
        (trial(), Calls, Month, 50),
        (trial(), Tokens, Day, 1000),
        (trial(), Tokens, Month, 9000),
        (trial(), MicroUsd, Day, 1_000_000),
    ];
    assert_eq!(budgets(&known(&[])), of_all);
    assert_eq!(budgets(&known(&["trial"])), [of_all.clone(), of_trial].concat());
    assert_eq!(policy.sessions_max_of("ann", &known(&["trial"])), Some(4));
    assert!(policy.has_budgets() && policy.names_login_groups());
    assert!(!super::policy("[group.a]\nusers = ['b']").has_budgets());
}

#[test]
fn mistakes_in_groups_are_told_with_their_place() {
    let group = |body: &str| parse_policy(&format!("[group.a]\n{body}"));
    let rows = [
        ("user = ['ann']", "2:1: unknown key \"user\"", "did you mean \"users\"?"),
        (
            "tools = ['a.*']",
            "1:1: no user can belong to this group",
            "write users = [\"ann\"], or login-groups = [\"support\"]",
        ),
        (
            "users = []\nlogin-groups = []",
            "1:1: no user can belong to this group",
            "write users = [\"ann\"], or login-groups = [\"support\"]",
        ),
        (
            "users = ['a*b']",
            "2:10: a name may have a star at its end only",
            "write \"sso:*\" for all names that begin with \"sso:\"",
        ),
        (
            "login-groups = ['support*']",
            "2:17: a star has no meaning in the name of a login group",
            "write each group, as the identity server names it",
        ),
        (
            "users = ['b']\ntools = []",
            "3:9: this list has no tool, so nothing could be called",
            "leave it out to allow all, or write a rule that denies \"*\"",
        ),
        (
            "users = ['b']\n[[group.a.rule]]\ntool = 'a.b'\ndecision = 'allow'",
            "3:1: a rule of a group cannot allow",
            "a group can only ask or deny: write a [[rule]] for all users instead",
        ),
        (
            "users = ['b']\nbudget.calls-per-day = -1",
            "3:24: \"calls-per-day\" must not be negative",
            "",
        ),
        (
            "users = ['b']\nbudget.usd-per-day = 'x'",
            "3:22: \"usd-per-day\" must be a number from 0 to 1000000",
            "write US dollars, such as 2.50",
        ),
        (
            "users = ['b']\nbudget.calls-per-week = 1",
            "3:8: unknown key \"calls-per-week\"",
            "did you mean \"calls-per-day\"?",
        ),
    ];
    for (body, want, hint) in rows {
        check_error(group(body), &format!("policy.toml:{want}"), hint);
    }
    let many: String = (0..65).map(|n| format!("[group.g{n}]\nusers = ['b']\n")).collect();
    check_error(parse_policy(&many), "policy.toml:129:1: the file has more than 64 groups", "");
}

#[test]
fn a_group_that_has_no_effect_is_remarked_on() {
    let text = "
[[rule]]
tool = 'weather.send'
decision = 'deny'
[group.a]
users = ['ann']
tools = ['weather.get', 'wether.*']
[[group.a.rule]]
tool = 'weather.send'
decision = 'ask'
[[group.a.rule]]
tool = 'weather.gett'
decision = 'deny'
";
    let tools = ["get", "send"].map(|tool| tool.parse().unwrap());
    let installed: Installed = [("weather".parse().unwrap(), tools.into_iter().collect())].into();
    let remarks = policy(text).find_remarks(&installed);
    let lines: Vec<String> =
        remarks.iter().map(|one| format!("{} {}", one.place, one.message)).collect();
    let want = [
        "policy.toml:7 no plugin wether is installed; did you mean weather?",
        "policy.toml:8 never decides: policy.toml:2 says deny to every call of weather.send",
        "policy.toml:11 weather has no tool gett; did you mean get?",
    ];
    assert_eq!(lines, want);
}
