//! Conditions: their results for given arguments, and texts that are not conditions.

use sallyport_contract::{Decision, ToolCallContext};
use serde_json::{Value, json};

use super::{GREEDY, check_error, manifest, parse_policy, policy, question_about, tool};
use crate::toml_text::toml_string;

/// The result of a condition, measured with a rule that denies: `true`, `false`, or the failure.
fn outcome(when: &str, arguments: &Value) -> String {
    let rule = format!(
        "[plugin.weather]\nenv = ['TZ']\nnet = ['GET https://api.example.com/v1/**']\n\
         fs = [{{ path = '/srv', access = 'read' }}]\n\
         [[rule]]\ntool = 'weather.get'\ndecision = 'deny'\nwhen = {}",
        toml_string(when)
    );
    let policy = policy(&rule);
    let grant = policy.effective_grant(&manifest(GREEDY), &serde_json::Map::new());
    let context = ToolCallContext {
        call_id: "call-1".into(),
        session_id: "s".into(),
        user_id: Some("ann".into()),
        conversation_id: None,
    };
    let id = tool("weather.get");
    let question = question_about(&id, arguments, &context);
    let verdict = policy.decide_call(&question, &grant);
    match verdict.matched.as_slice() {
        [] => "false".to_owned(),
        [matched] => {
            assert_eq!((verdict.decision, matched.is_counted), (Decision::Deny, true));
            let note = matched.note.as_deref();
            note.map_or("true", |note| {
                note.strip_prefix("its condition cannot be evaluated: ").unwrap()
            })
            .to_owned()
        }
        more => panic!("{more:?}"),
    }
}

#[track_caller]
fn check_rows(arguments: &Value, rows: &[(&str, &str)]) {
    for (when, want) in rows {
        assert_eq!(outcome(when, arguments), *want, "{when}");
    }
}

#[test]
fn conditions_see_the_arguments() {
    let arguments = json!({
        "to": ["a@x.example", "b@x.example"], "count": 3, "ratio": 0.5,
        "big": u64::MAX,
        "subject": "Héllo", "nothing": null, "urgent": true, "odd.key": 1,
        "nested": { "list": [{ "id": 1 }, { "id": 2 }], "min": -9_223_372_036_854_775_808_i64 },
    });
    check_rows(
        &arguments,
        &[
            ("true", "true"),
            ("args.urgent", "true"),
            ("!args.urgent", "false"),
            ("size(args.to) > 1", "true"),
            ("args.to.size() > 2", "false"),
            ("size(args.subject) == 5", "true"),
            ("args.count + 1 == 4", "true"),
            ("args.count == 3.0 && args.ratio < 1", "true"),
            ("args.big > 18446744073709551614u", "true"),
            ("args.big > 1", "true"),
            ("args.nested.min < 0", "true"),
            ("args.nested['list'][1].id == 2", "true"),
            ("args['odd.key'] == 1", "true"),
            ("'a@x.example' in args.to", "true"),
            ("'count' in args", "true"),
            ("args.to.all(t, t.endsWith('@x.example'))", "true"),
            ("args.to.exists(t, t.startsWith('b@'))", "true"),
            ("args.to.exists_one(t, t.contains('@'))", "false"),
            ("args.nested.list.map(i, i.id) == [1, 2]", "true"),
            ("args.nested.list.filter(i, i.id > 1).size() == 1", "true"),
            ("args.nothing == null", "true"),
            ("has(args.nothing) && !has(args.absent)", "true"),
            ("type(args.count) == int && type(args.subject) == string", "true"),
            ("string(args.count) == '3' && int('4') == 4", "true"),
            ("args.subject == 'H\\u00e9llo' && args.subject != r'H\\u'", "true"),
            ("args.subject.matches('^H.llo$')", "true"),
            ("matches(args.subject, '[0-9]')", "false"),
            ("args.to.all(t, t.matches(r'^[a-z]+@x\\.example$'))", "true"),
            ("args.count > 2 ? args.urgent : false", "true"),
            ("args.to.all(args, args.contains('@'))", "true"),
            ("args.nested.list.all(i, args.to.exists(t, size(t) > i.id))", "true"),
            ("// a comment\nargs.urgent", "true"),
        ],
    );
}

#[test]
fn conditions_see_the_context_and_the_grants() {
    check_rows(
        &json!({}),
        &[
            ("context.tool == 'weather.get' && context.plugin == 'weather'", "true"),
            ("context.call_id == 'call-1' && context.session_id == 's'", "true"),
            ("context.user_id == 'ann' && context.conversation_id == null", "true"),
            ("'TZ' in grants.env && size(grants.secrets) == 0", "true"),
            ("grants.net == ['GET https://api.example.com/v1/**']", "true"),
            ("grants.fs.all(f, f.mount == '/srv' && f.access == 'read')", "true"),
            ("grants.fs.exists(f, f.access == 'read-write')", "false"),
        ],
    );
}

#[test]
fn what_cannot_be_evaluated_says_why() {
    let absent = "there is no \"absent\"";
    let kind = "a value is not of the type that it needs";
    let number = "a number is out of range, or divided by zero";
    check_rows(
        &json!({ "count": 3, "text": "x", "list": [1], "min": -9_223_372_036_854_775_808_i64 }),
        &[
            ("args.absent > 3", absent),
            ("size(args.absent.list) > 50", absent),
            ("args.list[3] == 1", "there is no \"entry\""),
            ("args.text > 3", kind),
            ("args.text.all(c, c == 'x')", kind),
            ("args.count.startsWith('3')", kind),
            ("args.count.x.y", kind),
            ("args.count", "its result is neither true nor false"),
            ("args.text ? true : false", kind),
            ("args.count / 0 == 1", number),
            ("args.count % 0 == 1", number),
            ("args.min - 1 < 0", number),
            ("args.min / -1 < 0", number),
            ("-args.min < 0", number),
            ("int('x') == 1", kind),
            // In CEL, an operand that decides the result makes up for one that cannot be evaluated.
            ("args.absent > 3 || args.count == 3", "true"),
            ("args.count == 3 || args.absent > 3", "true"),
            ("args.absent > 3 && args.count == 4", "false"),
            ("args.absent > 3 && args.count == 3", absent),
            ("args.list.exists(i, args.absent == i || i == 1)", "true"),
        ],
    );
}

#[test]
fn what_would_take_too_much_work_is_not_done() {
    let too_much = "it would take too much work";
    let numbers: Vec<u32> = (0..2000).collect();
    let texts = vec!["abcdefgh@example.com"; 2000];
    let mut deep = json!(1);
    for _ in 0..140 {
        deep = json!([deep]);
    }
    let arguments = json!({ "n": numbers, "t": texts, "s": "x".repeat(1 << 20), "deep": 1 });
    check_rows(
        &arguments,
        &[
            // Simple conditions remain possible with a lot of data.
            ("args.n.all(n, n < 2000)", "true"),
            ("args.t.all(t, t.endsWith('@example.com') && t.matches('^[a-z]+@'))", "true"),
            ("args.s.contains('y')", "false"),
            ("args.n.map(n, n + 1).filter(n, n > 5).size() == 1995", "true"),
            ("args.n.exists(n, args.n[n] != n)", "false"),
            (
                "args.n.map(n, [n, n + 1]).filter(n, n[0] > 3).map(n, n[1]).exists(n, n < 0)",
                "false",
            ),
            // Nested loops, repeated doubling, long texts searched again and again.
            ("args.n.all(n, args.n.exists(m, m == n))", too_much),
            ("[1, 2, 3].all(a, args.n.all(b, [1, 2, 3].all(c, b >= 0)))", "true"),
            ("args.n.all(n, args.s.contains('y'))", too_much),
            (&format!("size([args.s]{}) > 1", ".map(x, x + x)".repeat(14)), too_much),
            (&format!("size('xx'{}) > 1", " + args.s".repeat(15)), "true"),
            (&format!("size([1]{}) > 1", ".map(x, [x, x, x])".repeat(14)), too_much),
            ("args.s.matches('(x+x+)+y')", "false"),
            ("args.t.exists(t, args.s.matches('(x+x+)+y'))", too_much),
        ],
    );
    assert_eq!(outcome("true", &deep), too_much);
    assert_eq!(outcome("args.s.matches('^x+$')", &json!({ "s": "x".repeat(1000) })), "true");
}

/// Checks that a condition is refused. The condition begins at line 4, column 8.
#[track_caller]
fn check_refused(rows: &[(&str, &str, &str)]) {
    for (when, message, hint) in rows {
        let rule = "[[rule]]\ntool = 'a.b'\ndecision = 'deny'\n";
        let text = format!("{rule}when = {}", toml_string(when));
        check_error(parse_policy(&text), &format!("policy.toml:4:8: {message}"), hint);
    }
}

/// Checks texts that are not parsed, each with the place of the error in it and the reason.
#[track_caller]
fn check_unread(rows: &[(&str, &str, &str)]) {
    for (when, at, reason) in rows {
        let message = format!("the condition is not understood at {at} of it: {reason}");
        check_refused(&[(when, &message, "")]);
    }
}

#[test]
fn texts_that_are_no_conditions() {
    check_unread(&[
        ("args.a >", "1:9", "the condition is incomplete"),
        ("args.a = 1", "1:8", "token recognition error at: '= '"),
        ("args.?a == 1", "1:5", "unsupported syntax '.?'"),
        ("true\n)", "2:1", "extraneous input ')'"),
        ("args.n == 99999999999999999999", "1:11", "invalid int literal"),
        ("has(args)", "1:5", "invalid argument to has() macro"),
    ]);
    let text = "the condition holds a text that does not end, or an escape that is not known";
    let long = format!("args.a == '{}'", "x".repeat(2048));
    let deep = format!("{}true{}", "(".repeat(33), ")".repeat(33));
    check_refused(&[
        ("", "\"when\" is empty", ""),
        ("'a", text, ""),
        ("args.a == b'x'", text, ""),
        (&long, "a condition of 2060 bytes is longer than 2048", ""),
        (&deep, "the condition nests too deeply", "write several rules"),
    ]);
}

#[test]
fn names_that_stand_for_nothing() {
    let variables = "the variables are args, context, grants";
    let context = "context has call_id, session_id, user_id, conversation_id, tool, plugin";
    let functions = "the functions are size, contains, startsWith, endsWith, matches, int, uint, \
                     double, string, bool, type, dyn, has, all, exists, exists_one, map, filter";
    check_refused(&[
        ("arg.to == 1", "there is no variable \"arg\"", "did you mean args?"),
        ("recipients == 1", "there is no variable \"recipients\"", variables),
        ("args.l.all(item, itm > 1)", "there is no variable \"itm\"", "did you mean item?"),
        ("args.l.all(x, true) && x > 1", "there is no variable \"x\"", variables),
        (".args.x == 1", "there is no variable \".args\"", "did you mean args?"),
        ("context.users == 'a'", "context has no \"users\"", context),
        ("context.userid == 'a'", "context has no \"userid\"", "did you mean context.user_id?"),
        (
            "has(grants.network)",
            "grants has no \"network\"",
            "grants has net, fs, env, secrets, capabilities",
        ),
        ("len(args.to) > 5", "there is no function \"len\"", functions),
        ("args.s.startWith('a')", "there is no function \"startWith\"", "did you mean startsWith?"),
        ("timestamp('2026') == 1", "there is no function \"timestamp\"", functions),
        ("Money{ units: 1 }.units == 1", "there is no type \"Money\"", ""),
    ]);
}

#[test]
fn functions_that_are_called_in_another_way() {
    let rows = [
        ("args.s.startsWith()", "startsWith", "write args.text.startsWith('part')"),
        ("startsWith(args.s, 'a')", "startsWith", "write args.text.startsWith('part')"),
        ("all(args.l)", "all", "write args.list.all(item, item > 5)"),
        ("args.l.map(x)", "map", "write args.list.map(item, item.name)"),
        ("args.has(x)", "has", "write has(args.name)"),
        ("size(args.a, 1) > 0", "size", "write size(args.list)"),
        ("int() == 1", "int", "write int(args.value)"),
    ];
    for (when, name, hint) in rows {
        check_refused(&[(when, &format!("\"{name}\" is not called like this"), hint)]);
    }
}

#[test]
fn results_that_are_neither_true_nor_false() {
    let rows = [
        ("size(args.to)", "a number"),
        ("args.a + 'x' == 'z' ? 'a' : 'b'", "a text"),
        ("args.l.map(x, x)", "a list"),
        ("{'a': 1}", "a table"),
        ("null", "null"),
        ("int", "the name of a type"),
        ("grants.net", "a list"),
    ];
    for (when, what) in rows {
        let hint = "compare it with something, as in size(args.to) > 5";
        check_refused(&[(when, &format!("the condition is {what}, not true or false"), hint)]);
    }
    let rows = [
        ("args.a && size(args.b)", "a number"),
        ("!'x'", "a text"),
        ("1 ? true : false", "a number"),
    ];
    for (when, what) in rows {
        let hint = "compare it with something, as in args.count > 5";
        check_refused(&[(when, &format!("{what} stands where true or false has to"), hint)]);
    }
    let looked = "nothing can be looked for in what is a text";
    check_refused(&[
        ("'abc'.x == 1", "\"x\" is looked up in what is a text", "only tables have fields"),
        ("'abc'.all(c, c == 'a')", looked, "only lists and tables hold something"),
    ]);
}

#[test]
fn loops_and_patterns_that_would_be_too_much() {
    let loops = "[1].all(a, [1].all(b, [1].all(c, [1].all(d, [1].all(e, true)))))";
    let around = "\"(?=x)\" is not a pattern: look-around, including look-ahead and look-behind, \
                  is not supported";
    let size = "write [a-z0-9_] instead of \\w, and + instead of a count";
    let open = "write it in quotation marks";
    check_refused(&[
        (loops, "more than 4 loops stand in each other", "write several rules"),
        ("args.s.matches(args.p)", "a pattern has to be written out", open),
        ("args.s.matches('(')", "\"(\" is not a pattern: unclosed group", ""),
        ("args.s.matches('(?=x)')", around, ""),
        (r"args.s.matches(r'\w{99}')", "the pattern \"\\w{99}\" is too large", size),
    ]);
}

#[test]
fn the_patterns_of_a_file_are_bounded_together() {
    let rule = |n: usize| {
        let when = format!("args.a.matches('{n}') || args.a.matches('{n}x')");
        format!("[[rule]]\ntool = 'a.b'\ndecision = 'deny'\nwhen = \"{when}\"\n")
    };
    let rules = |most| (0..most).map(rule).collect::<String>();
    assert!(parse_policy(&rules(32)).is_ok());
    let message = "policy.toml:129:1: the file has more than 64 patterns in its conditions";
    check_error(parse_policy(&rules(40)), message, "");
}

#[test]
fn the_conditions_of_a_file_are_bounded_together() {
    let rule = |n: usize| {
        let when = format!("args.a == '{}'", "x".repeat(2000));
        format!("[[rule]]\ntool = 'a.b{n}'\ndecision = 'deny'\nwhen = \"{when}\"\n")
    };
    let rules = |most| (0..most).map(rule).collect::<String>();
    assert!(parse_policy(&rules(32)).is_ok());
    let message = "policy.toml:129:1: the file has conditions of more than 64KiB together";
    check_error(parse_policy(&rules(40)), message, "");
}

/// The deepest accepted conditions of every kind fit into half the stack of a worker thread.
#[test]
fn the_deepest_conditions_need_little_stack() {
    let kinds = [
        ("(", "true", ")"),
        ("[", "true", "]"),
        ("{1: ", "true", "}"),
        ("size(", "args", ")"),
        ("!", "true", ""),
        ("true ? true : ", "true", ""),
        ("", "args", ".a"),
        ("", "args", "[0]"),
        ("", "1", " + 1"),
        ("", "1", " < 1"),
        ("", "args.l", ".map(x, x)"),
        ("", "true", " && true"),
    ];
    let work = move || {
        for (open, middle, close) in kinds {
            let deep = |n| format!("{}{middle}{} == 1 || true", open.repeat(n), close.repeat(n));
            let too_deep = |n: &usize| {
                let text =
                    format!("[[rule]]\ntool = 'a.b'\ndecision = 'deny'\nwhen = '{}'", deep(*n));
                parse_policy(&text).is_err_and(|error| error.message.contains("too deeply"))
            };
            let most = (1..200).find(too_deep).unwrap_or(200) - 1;
            assert!(most > 10, "{open} {close}");
            assert_eq!(outcome(&deep(most), &json!({ "l": [1] })), "true", "{open} {close}");
        }
    };
    let small = std::thread::Builder::new().stack_size(1 << 20);
    small.spawn(work).unwrap().join().unwrap();
}
