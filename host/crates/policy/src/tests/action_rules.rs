//! The rules of a plugin's author: what their names mean, when they apply, what they say.

use serde_json::{Map, Value, json};

use super::{GREEDY, manifest, policy, question_about, tool};
use crate::{
    ActionRuleKind, ActionRuleText, ActionRules, ArgumentNames, SourceLocation,
    fill_success_message,
};
use sallyport_contract::{Decision, ToolCallContext};

/// The parameters of an action that sends mail.
fn parameters() -> Value {
    let list = json!({"type": "array", "items": {"type": "string"}});
    json!({"type": "object", "properties": {
        "recipients": {"type": "object", "properties": {"to": list, "cc": list, "via": {"type": "string"}}},
        "content": {"type": "object", "properties": {"subject": {"type": "string"}}},
        "entries": list,
        "amount": {"type": "number"},
        "one": {"type": "object", "properties": {"tags": list}},
        "two": {"type": "object", "properties": {"tags": list}},
    }})
}

fn rule(kind: ActionRuleKind, condition: &str, message: &str) -> ActionRuleText {
    let place = |column| SourceLocation { file: "mail.json".into(), line: 7, column };
    ActionRuleText {
        kind,
        name: "r".into(),
        condition: (condition.into(), place(1)),
        message: (message.into(), place(2)),
    }
}

fn compile(kind: ActionRuleKind, condition: &str, message: &str) -> Result<ActionRules, String> {
    let names = ArgumentNames::from_schema(&parameters());
    let compiled = ActionRules::compile(&names, vec![rule(kind, condition, message)]);
    compiled.map_err(|e| {
        format!("{}:{} {} | {}", e.line, e.column, e.message, e.hint.unwrap_or_default())
    })
}

/// The message of a limit for these arguments; empty if it does not apply.
#[track_caller]
fn check(condition: &str, message: &str, arguments: &Value, want: &str) {
    let rules = compile(ActionRuleKind::Limit, condition, message).unwrap();
    let policy = policy("");
    let grant = policy.effective_grant(&manifest(GREEDY), &Map::new());
    let context = ToolCallContext {
        call_id: "1".into(),
        session_id: "s".into(),
        user_id: Some("ann".into()),
        conversation_id: None,
    };
    let id = tool("weather.get");
    let question = question_about(&id, arguments, &context);
    let applied = rules.applied_to(&question, &grant);
    let messages: Vec<_> = applied.iter().map(|rule| rule.message.as_str()).collect();
    assert_eq!(messages.join(";"), want, "{condition}");
    let verdict = policy.decide_call(&question, &grant).tightened_by(&applied);
    assert_eq!(verdict.decision == Decision::Deny, !want.is_empty(), "{condition}");
}

#[test]
fn names_of_an_author_count_and_compare() {
    let mail = json!({"recipients": {"to": ["a", "b"], "cc": ["c"]}, "content": {"subject": "hi"}});
    for (condition, message, want) in [
        ("total_recipients > 2", "{total_recipients} of {recipient_count}", "3 of 3"),
        ("total_recipients > 3", "no", ""),
        ("recipient_count == 3", "yes", "yes"),
        ("to_count == 2 && total_cc == 1", "{to_count}+{cc_count}", "2+1"),
        ("total_entries == 0 && entry_count == 0", "{entry_count}", "0"),
        ("content.subject == 'hi'", "{content.subject}", "hi"),
        ("size(recipients.to) > 1", "{args.recipients.cc.0}", "c"),
        ("recipients.to.exists(to, to == 'b')", "yes", "yes"),
        ("recipients.to.all(entries, entries != 'z')", "yes", "yes"),
        ("has(recipients.to) && !has(args.amount)", "yes", "yes"),
        ("context.user_id == 'ann'", "{context.user_id}", "ann"),
        // An argument that the call does not have decides nothing.
        ("amount > 5", "no", ""),
        ("amount > 5 || total_recipients > 2", "yes", "yes"),
        ("type(recipients) == map", "yes", "yes"),
    ] {
        check(condition, message, &mail, want);
    }
    check("amount > 5", "{amount}", &json!({"amount": 6}), "6");
    // A list that the schema does not name counts as well: nobody passes a limit with it.
    let hidden = json!({"recipients": {"to": [], "bcc": ["a", "b"], "more": {"x": [["c"], "d"]}}});
    check("total_recipients > 3", "{total_recipients}", &hidden, "4");
    check("entry_count > 0", "no", &json!({"\u{0}count of entries": 5}), "");
    let broken =
        "yes (the condition of r cannot be evaluated: a value is not of the type that it needs)";
    check("amount > 5", "yes", &json!({"amount": "6"}), broken);
}

#[test]
fn a_name_that_nothing_defines_is_refused_with_what_would_define_it() {
    let limit =
        |condition, message| compile(ActionRuleKind::Limit, condition, message).unwrap_err();
    for (condition, message, want) in [
        (
            "total_recipient > 5 && nope",
            "m",
            "7:1 nothing defines \"nope\" | a property \"nope\" in \"parameters\" would define it",
        ),
        (
            "total_files > 5",
            "m",
            "7:1 nothing defines \"total_files\" | a list \"files\" in \"parameters\" would define it",
        ),
        ("amuont > 5", "m", "7:1 nothing defines \"amuont\" | did you mean amount?"),
        (
            "total_content > 5",
            "m",
            "7:1 \"total_content\" counts nothing, because \"content\" contains no list | a property of the type \"array\" in \"content\" would define it",
        ),
        (
            "total_tags > 5",
            "m",
            "7:1 \"total_tags\" could count one.tags or two.tags | rename one of the properties, or write size(args.NAME)",
        ),
        (
            "total_recipients",
            "m",
            "7:1 the condition is a number, not true or false | compare it with something, as in size(args.to) > 5",
        ),
        (
            "amount > ",
            "m",
            "7:1 the condition is not understood at 1:10 of it: the condition is incomplete | ",
        ),
        (
            "amount > 5",
            "{total_files}",
            "7:2 nothing defines \"total_files\" | a list \"files\" in \"parameters\" would define it",
        ),
        ("amount > 5", "{", "7:2 a brace stands alone | write {{ or }} for a brace"),
    ] {
        assert_eq!(limit(condition, message), want, "{condition}");
    }
}

#[test]
fn a_confirmation_asks_also_where_the_policy_allows_and_never_lifts_a_refusal() {
    let rules =
        compile(ActionRuleKind::Confirmation, "total_recipients > 1", "Send to {to_count}?");
    let rules = rules.unwrap();
    let arguments = &json!({"recipients": {"to": ["a", "b"]}});
    let context = ToolCallContext {
        call_id: "1".into(),
        session_id: "s".into(),
        user_id: None,
        conversation_id: None,
    };
    for (decision, want, reason) in [
        ("allow", Decision::Ask, "Send to 2?"),
        ("ask", Decision::Ask, "Send to 2? (rule at policy.toml:"),
        ("deny", Decision::Deny, "rule at policy.toml:"),
    ] {
        let policy = policy(&format!("[[rule]]\ntool = 'weather.get'\ndecision = '{decision}'"));
        let grant = policy.effective_grant(&manifest(GREEDY), &Map::new());
        let id = tool("weather.get");
        let question = question_about(&id, arguments, &context);
        let applied = rules.applied_to(&question, &grant);
        let verdict = policy.decide_call(&question, &grant).tightened_by(&applied);
        assert_eq!(verdict.decision, want, "{decision}");
        assert!(verdict.reason.starts_with(reason), "{}", verdict.reason);
        assert!(verdict.allowing_rule(&id, None).is_none(), "always must not be offered");
    }
}

#[test]
fn a_success_message_has_a_value_for_each_name_or_is_left_out() {
    let names = ArgumentNames::from_schema(&parameters());
    let arguments = json!({"recipients": {"to": ["a", "b"]}, "amount": 3});
    for (message, result, want) in [
        ("Sent to {recipient_count}", json!({"id": "1"}), Some("Sent to 2")),
        ("Sent to {recipient_count}", json!({"recipient_count": 7}), Some("Sent to 7")),
        ("{source_count} sources", json!({"sources": [1, 2, 3]}), Some("3 sources")),
        (
            "Paid {amount} for {item.name}.",
            json!({"item": {"name": "tea"}}),
            Some("Paid 3 for tea."),
        ),
        ("{source_count} sources", json!({"sources": "none"}), None),
        ("{nothing}", json!(null), None),
        ("an open {brace", json!({}), None),
        ("plain", json!([]), Some("plain")),
    ] {
        let filled = fill_success_message(message, &names, &arguments, &result);
        assert_eq!(filled.as_deref(), want, "{message}");
    }
}
