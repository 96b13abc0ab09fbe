//! What a card shows, what it hides, and what its keys mean.

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use sallyport_contract::{ApprovalRequest, CallContext, Subject, ToolCall};

use super::*;
use crate::style::Line;

fn request(arguments: &str) -> ApprovalRequest {
    ApprovalRequest {
        call: ToolCall {
            context: CallContext::default(),
            tool: "mail.send_email".parse().unwrap(),
            arguments: arguments.to_owned(),
        },
        subject: Subject::Call,
        query: None,
        plugin_version: "1.2.0".into(),
        plugin_digest: "3fa9c1d2e4b5f60718293a4b".into(),
        reason: "the default: the plugin can reach the network".into(),
        rule: Some("[[rule]]\ntool = \"mail.send_email\"\ndecision = \"allow\"".into()),
        powers: vec!["POST https://api.example.org/**".into()],
    }
}

fn shown(lines: &[Line]) -> String {
    lines.iter().map(|line| line.text() + "\n").collect()
}

fn brief(request: ApprovalRequest) -> String {
    shown(&Card::new(request, None).lines(80))
}

fn whole(request: ApprovalRequest) -> String {
    Card::new(request, None).pages(80, 10_000).iter().map(|page| shown(page)).collect()
}

#[test]
fn a_card_shows_everything_that_matters() {
    let card = Card::new(
        request(
            r#"{"to":["a@x","b@y"],"subject":"Hello","body":"one\ntwo","n":12345678901234567890123,"options":{"urgent":true,"labels":["a long label that takes some room","another one that takes more"]}}"#,
        ),
        Some(Position { index: 2, count: 5 }),
    );
    insta::assert_snapshot!(shown(&card.lines(80)) + &shown(&card.keys(80)));
}

#[test]
fn a_card_for_an_access_cannot_be_edited_nor_allowed_for_good() {
    let mut request = request("{}");
    request.subject = Subject::Access { what: "GET https://example.org/\u{202e}gpj".into() };
    (request.rule, request.powers) = (None, Vec::new());
    let card = Card::new(request, Some(Position { index: 1, count: 1 }));
    insta::assert_snapshot!(shown(&card.lines(60)) + &shown(&card.keys(60)));
}

#[test]
fn the_query_of_an_address_is_seen() {
    let mut request = request("{}");
    request.subject = Subject::Access { what: "open https://example.org/".into() };
    request.query = Some(format!("?notes={}#the-end", "x".repeat(1000)));
    let text = brief(request.clone());
    for want in ["?notes=xxx", "(615 more characters)", "holds for any query"] {
        assert!(text.contains(want), "{want:?} is not in\n{text}");
    }
    assert!(whole(request.clone()).contains("#the-end"));
    request.query = Some("?\u{202e}q".into());
    assert!(brief(request).contains("look twice"));
}

#[test]
fn what_no_model_asked_for_cannot_be_edited() {
    for (tool, want) in [("mail.send", true), ("mail.role:timer", false), ("role.timer", true)] {
        let mut request = request("{}");
        request.call.tool = tool.parse().unwrap();
        assert_eq!(Offers::of(&request).edit, want, "{tool}");
    }
}

#[test]
fn a_narrow_window_folds_and_loses_nothing() {
    let card = Card::new(request(r#"{"path":"/a/very/long/path/that/does/not/fit"}"#), None);
    for width in [0, 1, 30, 31, 40, 79, 500] {
        let lines = card.lines(width);
        let joined: String = lines
            .iter()
            .flat_map(|l| l.text().chars().collect::<Vec<_>>())
            .filter(|c| !c.is_whitespace())
            .collect();
        assert!(joined.contains("/a/very/long/path/that/does/not/fit"), "{joined}");
        assert!(lines.iter().all(|line| line.width() <= width.clamp(30, 110)), "{width}");
    }
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
    let many = ApprovalRequest { powers, ..request("{}") };
    assert!(brief(many.clone()).contains("… and 92 more"));
    assert!(whole(many.clone()).contains("power 99."));
    let pages = Card::new(many, None).pages(80, 24);
    assert!(pages.iter().all(|page| page.len() <= 24));
    assert!(pages[0].last().unwrap().text().starts_with("page 1 of "));
    assert_eq!(Card::new(request("{}"), None).pages(80, 0)[0].len(), 6);
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
        assert_eq!(editable(arguments), want);
    }
    let long = format!(r#"{{"a":"{}"}}"#, "x".repeat(5000));
    assert_eq!(editable(&long).len(), long.len() + 5);
}

#[track_caller]
fn check_key(code: KeyCode, modifiers: KeyModifiers, want: Choice) {
    let all = Offers { always: true, edit: true };
    assert_eq!(key(KeyEvent::new(code, modifiers), &all), want, "{code:?} {modifiers:?}");
}

#[test]
fn keys_mean_what_the_card_says() {
    let rows = [
        ('y', Choice::Once),
        ('s', Choice::Session),
        ('a', Choice::Always),
        ('e', Choice::Edit),
        ('n', Choice::No),
        ('r', Choice::NoBecause),
        ('c', Choice::Cancel),
        ('?', Choice::More),
    ];
    for (letter, want) in rows {
        check_key(KeyCode::Char(letter), KeyModifiers::NONE, want);
        check_key(KeyCode::Char(letter.to_ascii_uppercase()), KeyModifiers::SHIFT, want);
        check_key(KeyCode::Char(letter), KeyModifiers::ALT, Choice::Other);
    }
    check_key(KeyCode::Esc, KeyModifiers::NONE, Choice::Cancel);
    check_key(KeyCode::Char('c'), KeyModifiers::CONTROL, Choice::Cancel);
    check_key(KeyCode::Char('y'), KeyModifiers::CONTROL, Choice::Other);
}

#[test]
fn no_other_key_is_an_answer() {
    use KeyCode as K;
    let keys = [K::Enter, K::Tab, K::Backspace, K::Up, K::F(1), K::Null, K::Char(' ')];
    for code in keys {
        check_key(code, KeyModifiers::NONE, Choice::Other);
    }
    for letter in ('\0'..='\u{ff}').filter(|c| !"ysaenrcYSAENRC?".contains(*c)) {
        check_key(K::Char(letter), KeyModifiers::NONE, Choice::Other);
    }
    let few = Offers { always: false, edit: false };
    for letter in ['a', 'e'] {
        let event = KeyEvent::new(K::Char(letter), KeyModifiers::NONE);
        assert_eq!(key(event, &few), Choice::Other);
    }
    let mut released = KeyEvent::new(K::Char('y'), KeyModifiers::NONE);
    for kind in [KeyEventKind::Release, KeyEventKind::Repeat] {
        released.kind = kind;
        assert_eq!(key(released, &few), Choice::Other);
    }
}
