//! Tests of a card's layout, its omissions and its keys.

use std::sync::Arc;

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use sallyport_contract::{
    ApprovalRequest, ApprovalSubject, BodyPreview, RequestPreview, RequestedCall, ToolCallContext,
};

use super::*;
use crate::style::StyledLine;

/// The answers that every card has.
const PLAIN: ApprovalOptions = ApprovalOptions {
    always: false,
    edit: false,
    wider: false,
    folder: false,
    form: false,
    is_single: false,
    is_incomplete: false,
};

fn request(arguments: &str) -> ApprovalRequest {
    ApprovalRequest {
        call: RequestedCall {
            context: ToolCallContext::default(),
            tool: "mail.send_email".parse().unwrap(),
            arguments: arguments.to_owned(),
        },
        subject: ApprovalSubject::Call,
        request: None,
        plugin_version: "1.2.0".into(),
        plugin_digest: "3fa9c1d2e4b5f60718293a4b".into(),
        reason: "the default: the plugin can reach the network".into(),
        rule: Some("[[rule]]\ntool = \"mail.send_email\"\ndecision = \"allow\"".into()),
        capabilities: vec!["POST https://api.example.org/**".into()],
    }
}

fn shown(lines: &[StyledLine]) -> String {
    lines.iter().map(|line| line.text() + "\n").collect()
}

fn brief(request: ApprovalRequest) -> String {
    shown(&ApprovalCard::new(request, None).summary_lines(80))
}

fn whole(request: ApprovalRequest) -> String {
    ApprovalCard::new(request, None).pages(80, 10_000).iter().map(|page| shown(page)).collect()
}

#[test]
fn a_card_shows_everything_that_matters() {
    let card = ApprovalCard::new(
        request(
            r#"{"to":["a@x","b@y"],"subject":"Hello","body":"one\ntwo","n":12345678901234567890123,"options":{"urgent":true,"labels":["a long label that takes some room","another one that takes more"]}}"#,
        ),
        Some(QuestionPosition { index: 2, count: 5 }),
    );
    insta::assert_snapshot!(shown(&card.summary_lines(80)) + &shown(&card.key_lines(80)));
}

#[test]
fn a_card_for_an_access_cannot_be_edited_nor_allowed_for_good() {
    let mut request = request("{}");
    request.subject =
        ApprovalSubject::Access { what: "GET https://example.org/\u{202e}gpj".into() };
    (request.rule, request.capabilities) = (None, Vec::new());
    let card = ApprovalCard::new(request, Some(QuestionPosition { index: 1, count: 1 }));
    insta::assert_snapshot!(shown(&card.summary_lines(60)) + &shown(&card.key_lines(60)));
}

fn preview(query: &str, headers: &[(&str, &str)], body: &[u8]) -> RequestPreview {
    let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let body = BodyPreview::new(Some("text/plain".to_owned()), body, "d1".repeat(32));
    RequestPreview {
        method: Some("POST".into()),
        address: "https://example.org/send".into(),
        query: query.into(),
        headers: headers.collect(),
        body: (body.length_bytes > 0).then_some(body),
        digest: "d0".repeat(32),
    }
}

fn about(preview: RequestPreview) -> ApprovalRequest {
    let subject = ApprovalSubject::Access { what: preview.summary_line() };
    ApprovalRequest { subject, request: Some(Arc::new(preview)), ..request("{}") }
}

/// Checks the brief view, and whether an approval requires the remaining pages.
#[track_caller]
fn check_request(preview: &RequestPreview, has_to_be_read: bool, wants: &[&str]) {
    let card = ApprovalCard::new(about(preview.clone()), None);
    let text = shown(&card.summary_lines(80));
    let joined: String = text.split_whitespace().collect();
    for want in wants {
        let want: String = want.split_whitespace().collect();
        assert!(joined.contains(&want), "{want:?} is not in\n{text}");
    }
    assert_eq!(card.needs_full_view(), has_to_be_read, "{text}");
    assert!(text.starts_with("approval: mail wants POST https://example.org/send\n"), "{text}");
    assert!(text.lines().count() < 60, "{} lines", text.lines().count());
    let reminder = card.reminder_line(80, true).unwrap().text();
    assert_eq!(reminder, "mail wants POST https://example.org/send");
}

#[test]
fn a_question_about_a_request_shows_its_headers_and_its_body() {
    let small = preview("?a=1", &[("x-own", "one"), ("content-type", "text/plain")], b"hi\nthere");
    let wants = ["query ?a=1", "headers x-own: one", "content-type: text/plain", "│ hi", "│ there"];
    check_request(&small, false, &wants);
    check_request(&small, false, &["text/plain, 8 bytes, blake3 d1d1d1d1d1d1d1d1", "any query"]);
    check_request(&preview("", &[], b""), false, &[]);
    check_request(&preview("", &[], &[0xff, 0]), false, &["2 bytes, not text", "│ ff00"]);
}

#[test]
fn what_is_long_is_shown_at_both_ends_and_has_to_be_read_before_a_yes() {
    let long = format!("?notes={}#the-end", "x".repeat(9_000));
    let cut = [
        "?notes=xxx",
        "of 9015 characters are not shown",
        "#the-end",
        "BLAKE3 of everything",
        "d0d0",
    ];
    check_request(&preview(&long, &[], b""), true, &cut);
    let value = format!("{}the-end", "y".repeat(9_000));
    check_request(&preview("", &[("x-own", &value)], b""), true, &["x-own: yyy", "the-end"]);
    let many: Vec<(&str, &str)> = (0..50).map(|_| ("x-own", "one")).collect();
    check_request(&preview("", &many, b""), true, &["… and 38 more headers"]);
    let body = (0..1000).map(|n| format!("line {n}\n")).collect::<String>();
    let ends = ["│ line 0", "lines are not shown", "│ line 999", "8890 bytes"];
    check_request(&preview("", &[], body.as_bytes()), true, &ends);
    let one = format!("{}the-end", "z".repeat(100_000));
    check_request(&preview("", &[], one.as_bytes()), true, &["│ zzz", "the-end"]);
    check_request(&preview("", &[], &[0xff; 100_000]), true, &["100000 bytes, not text"]);
    for preview in
        [preview(&long, &[], one.as_bytes()), preview("", &[("x", &value)], body.as_bytes())]
    {
        let all: String = whole(about(preview.clone())).split_whitespace().collect();
        let body = preview.body.unwrap().content;
        for part in [preview.query.as_str(), &body, preview.headers.first().map_or("", |h| &h.1)] {
            let bare = all.replace('│', "");
            assert!(bare.contains(&part.split_whitespace().collect::<String>()));
        }
    }
}

#[test]
fn a_long_path_pushes_nothing_out_of_sight() {
    let mut long = preview("", &[], b"body");
    long.address = format!("https://example.org/{}/the-end", "p".repeat(15_000));
    let card = ApprovalCard::new(about(long), None);
    let text = shown(&card.summary_lines(80));
    assert!(text.starts_with("approval: mail wants POST https://example.org/ppp"), "{text}");
    assert!(
        text.contains("the-end") && text.contains("│ body") && card.needs_full_view(),
        "{text}"
    );
    assert!(card.reminder_line(80, true).unwrap().width() <= 80);
}

#[test]
fn what_hides_in_a_request_is_spelt_out_with_a_warning() {
    for hidden in [
        preview("?\u{202e}q", &[], b""),
        preview("", &[("x-own", "\u{200b}")], b""),
        preview("", &[], "\u{1b}[2J".as_bytes()),
    ] {
        let text = brief(about(hidden));
        assert!(text.contains("look twice") && text.contains("\\u{"), "{text}");
    }
    let windows = brief(about(preview("", &[], b"one\r\ntwo\r\n")));
    assert!(!windows.contains("look twice"), "a warning about every line break: {windows}");
}

#[test]
fn what_no_model_asked_for_cannot_be_edited() {
    for (tool, want) in [("mail.send", true), ("mail.role:timer", false), ("role.timer", true)] {
        let mut request = request("{}");
        request.call.tool = tool.parse().unwrap();
        assert_eq!(ApprovalOptions::from_request(&request).edit, want, "{tool}");
    }
}

#[test]
fn a_narrow_window_folds_and_loses_nothing() {
    let card =
        ApprovalCard::new(request(r#"{"path":"/a/very/long/path/that/does/not/fit"}"#), None);
    for width in [0, 1, 30, 31, 40, 79, 500] {
        let lines = card.summary_lines(width);
        let joined: String = lines
            .iter()
            .flat_map(|l| l.text().chars().collect::<Vec<_>>())
            .filter(|c| !c.is_whitespace())
            .collect();
        assert!(joined.contains("/a/very/long/path/that/does/not/fit"), "{joined}");
        assert!(lines.iter().all(|line| line.width() <= width.clamp(30, 110)), "{width}");
    }
}

#[test]
fn the_rule_of_always_was_folded_and_no_toml_any_more() {
    let digest = "3fa9c1d2e4b5f607".repeat(4);
    let rule = format!(
        "[[rule]]\ntool = \"mail.send_email\"\ndigest = \"{digest}\"\ndecision = \"allow\""
    );
    let card =
        ApprovalCard::new(ApprovalRequest { rule: Some(rule.clone()), ..request("{}") }, None);
    for width in [40, 80, 120] {
        let text = shown(&card.summary_lines(width));
        let (_, written) = text.split_once("writes into your policy:\n").unwrap();
        let lines: Vec<&str> = written.lines().map(str::trim_start).collect();
        assert_eq!(lines.join("\n"), rule, "{width}");
    }
    assert!(card.summary_lines(80).iter().all(|line| line.width() <= 80));
}

#[test]
fn the_question_is_above_the_keys_when_its_title_is_out_of_sight() {
    let card = ApprovalCard::new(request("{}"), None);
    assert_eq!(card.reminder_line(40, true), None);
    let reminder = card.reminder_line(40, false).unwrap().text();
    assert_eq!(reminder, "mail.send_email asks to run");
}

#[track_caller]
fn check_brief(arguments: &str, wants: &[&str]) {
    let text = brief(request(arguments));
    for want in wants {
        assert!(text.contains(want), "{want:?} is not in\n{text}");
    }
    assert!(text.lines().count() < 250, "{} lines", text.lines().count());
}

#[test]
fn nothing_long_pushes_another_argument_out_of_sight() {
    let long = "x".repeat(100_000);
    let last = "path: \"/important\"";
    check_brief(&format!(r#"{{"a":"{long}","path":"/important"}}"#), &[last, "(99802 more"]);
    let lines = "x\\n".repeat(5000);
    check_brief(&format!(r#"{{"a":"{lines}","path":"/important"}}"#), &[last, "… 4991 more lines"]);
    let list = format!("[{}1]", "1,".repeat(5000));
    check_brief(&format!(r#"{{"a":{list},"path":"/important"}}"#), &[last, "more lines …"]);
    let deep = format!("{}1{}", "[".repeat(120), "]".repeat(120));
    check_brief(&format!(r#"{{"a":{deep},"path":"/important"}}"#), &[last]);
    check_brief(&format!(r#"{{"{long}":1,"path":"/important"}}"#), &[last, "(99800 more"]);
    check_brief(&format!(r#"{{"a":[{{"{long}":"{long}"}}],"path":"/important"}}"#), &[last]);
    let block = "x\\n".repeat(50);
    let tall: Vec<_> = (0..16).map(|n| format!("\"k{n}\":\"{block}\"")).collect();
    let text = brief(request(&format!("{{{}}}", tall.join(","))));
    assert!(text.lines().count() < 60 && text.contains("k15:"), "{text}");
    let many: Vec<_> = (0..1000).map(|n| format!("\"k{n}\":{n}")).collect();
    check_brief(&format!("{{{}}}", many.join(",")), &["k0: 0", "… and 984 more arguments"]);
    check_brief("", &["no arguments"]);
    check_brief("{}", &["no arguments"]);
    check_brief("[1]", &["[1]"]);
    check_brief("not JSON \u{1b}[2J", &["│ not JSON \\u{1b}[2J", "look twice"]);
    check_brief(&format!("{}1", "[".repeat(100_000)), &["more characters"]);
}

#[test]
fn whatever_is_cut_is_on_the_pages() {
    let long = (0..20_000).map(|n| format!("{n} ")).collect::<String>();
    let text = whole(request(&format!(r#"{{"a":"{long}"}}"#)));
    let joined: String = text.split_whitespace().collect();
    assert!(joined.contains(&long.split_whitespace().collect::<String>()));
    let powers: Vec<_> = (0..100).map(|n| format!("power {n}.")).collect();
    let many = ApprovalRequest { capabilities: powers, ..request("{}") };
    assert!(brief(many.clone()).contains("… and 92 more"));
    assert!(whole(many.clone()).contains("power 99."));
    let pages = ApprovalCard::new(many, None).pages(80, 24);
    assert!(pages.iter().all(|page| page.len() <= 24));
    assert!(pages[0].last().unwrap().text().starts_with("page 1 of "));
    assert_eq!(ApprovalCard::new(request("{}"), None).pages(80, 0)[0].len(), 6);
}

#[test]
fn numbers_stand_as_they_were_written() {
    for number in ["12345678901234567890123", "1.50", "-0", "1E5", "0.1000000000000000055"] {
        check_brief(&format!(r#"{{ "n" : {number} }}"#), &[&format!("n: {number}\n")]);
    }
}

#[test]
fn what_hides_is_spelt_out_with_a_warning() {
    let rows = [
        (r#"{"a":"\u001b[2J"}"#, r#"a: "\u001b[2J""#),
        (r#"{"a":"x\u202ey"}"#, r#"a: "x\u202ey""#),
        ("{\"a\":\"x\u{202e}y\"}", r#"a: "x\u202ey""#),
        (r#"{"a":"zero\u200bwidth"}"#, r#"a: "zero\u200bwidth""#),
        (r#"{"a":["\r"]}"#, r#"a: ["\r"]"#),
        (r#"{"\u202ea":1}"#, r"\u202ea: 1"),
        ("{\"a\":\"می\u{200c}خواهم\"}", r#"a: "می\u200cخواهم""#),
        ("{\"a\":\"👩\u{200d}👧\"}", r#"a: "👩\u200d👧""#),
        (r#"{"a":"one\n\u001b[1Atwo"}"#, r"│ \u{1b}[1Atwo"),
    ];
    for (arguments, want) in rows {
        check_brief(arguments, &[want, "look twice"]);
    }
    for plain in [r#"{"a":"\u0061 é 漢 👍"}"#, r#"{"a":"one\n\ttwo"}"#, "{}"] {
        assert!(!brief(request(plain)).contains("look twice"), "{plain}");
    }
    let version = ApprovalRequest { plugin_version: "1\u{1b}[2J".into(), ..request("{}") };
    let text = brief(version);
    assert!(text.contains("mail 1\\u{1b}[2J, digest 3fa9c1d2e4b5\n") && text.contains("twice"));
}

#[test]
fn edited_arguments_begin_as_json_in_which_nothing_hides() {
    let rows = [
        (r#"{"a":[1,2],"b":{}}"#, "{\n  \"a\": [\n    1,\n    2\n  ],\n  \"b\": {}\n}"),
        (r#"{"a":"\u001b\u202e"}"#, "{\n  \"a\": \"\\u001b\\u202e\"\n}"),
        ("{\"n\":1.50}", "{\n  \"n\": 1.50\n}"),
        ("broken \u{1b}", "broken \\u{1b}"),
    ];
    for (arguments, want) in rows {
        assert_eq!(format_editable(arguments), want);
    }
    let long = format!(r#"{{"a":"{}"}}"#, "x".repeat(5000));
    assert_eq!(format_editable(&long).len(), long.len() + 5);
}

#[track_caller]
fn check_key(code: KeyCode, modifiers: KeyModifiers, want: ApprovalChoice) {
    let all = ApprovalOptions { always: true, edit: true, ..PLAIN };
    assert_eq!(
        choice_for_key(KeyEvent::new(code, modifiers), &all),
        want,
        "{code:?} {modifiers:?}"
    );
}

#[test]
fn keys_mean_what_the_card_says() {
    let rows = [
        ('y', ApprovalChoice::Once),
        ('s', ApprovalChoice::Session),
        ('a', ApprovalChoice::Always),
        ('e', ApprovalChoice::Edit),
        ('n', ApprovalChoice::No),
        ('r', ApprovalChoice::NoWithReason),
        ('c', ApprovalChoice::Cancel),
        ('?', ApprovalChoice::More),
    ];
    for (letter, want) in rows {
        check_key(KeyCode::Char(letter), KeyModifiers::NONE, want);
        check_key(KeyCode::Char(letter.to_ascii_uppercase()), KeyModifiers::SHIFT, want);
        check_key(KeyCode::Char(letter), KeyModifiers::ALT, ApprovalChoice::Ignored);
    }
    check_key(KeyCode::Esc, KeyModifiers::NONE, ApprovalChoice::Cancel);
    check_key(KeyCode::Char('c'), KeyModifiers::CONTROL, ApprovalChoice::Cancel);
    check_key(KeyCode::Char('y'), KeyModifiers::CONTROL, ApprovalChoice::Ignored);
}

#[test]
fn no_other_key_is_an_answer() {
    use KeyCode as K;
    let keys = [K::Enter, K::Tab, K::Backspace, K::Up, K::F(1), K::Null, K::Char(' ')];
    for code in keys {
        check_key(code, KeyModifiers::NONE, ApprovalChoice::Ignored);
    }
    for letter in ('\0'..='\u{ff}').filter(|c| !"ysaenrcYSAENRC?".contains(*c)) {
        check_key(K::Char(letter), KeyModifiers::NONE, ApprovalChoice::Ignored);
    }
    let few = PLAIN;
    for letter in ['a', 'e'] {
        let event = KeyEvent::new(K::Char(letter), KeyModifiers::NONE);
        assert_eq!(choice_for_key(event, &few), ApprovalChoice::Ignored);
    }
    let mut released = KeyEvent::new(K::Char('y'), KeyModifiers::NONE);
    for kind in [KeyEventKind::Release, KeyEventKind::Repeat] {
        released.kind = kind;
        assert_eq!(choice_for_key(released, &few), ApprovalChoice::Ignored);
    }
}
