//! Properties for any input: no panic, no lost text, no control sequence in the output.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use std::{io, path::Path};

use proptest::prelude::*;
use sallyport_contract::{ApprovalRequest, ApprovalSubject, RequestedCall, ToolCallContext, text};
use sallyport_terminal::{
    attach::{FileSource, PathKind, detect_media, find_mentions},
    card::{ApprovalCard, format_editable},
    slash::{ParsedInput, parse_line},
    style,
};
use serde_json::Value;

/// Every second name is a file.
struct Some2;

impl FileSource for Some2 {
    fn path_kind(&self, path: &Path) -> PathKind {
        match path.to_string_lossy().chars().count() % 2 {
            0 => PathKind::File,
            _ => PathKind::Missing,
        }
    }

    fn read_file(&self, _: &Path, _: u64) -> io::Result<Vec<u8>> {
        Ok(Vec::new())
    }
}

fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[\\PC\n\t\"\\\\\u{1b}\u{202e}]{0,300}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map("[\\PC\u{7}]{0,20}", inner, 0..6)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

fn card(arguments: String) -> ApprovalCard {
    let request = ApprovalRequest {
        call: RequestedCall {
            context: ToolCallContext::default(),
            tool: "a.b".parse().unwrap(),
            arguments,
        },
        subject: ApprovalSubject::Call,
        request: None,
        plugin_version: "1".into(),
        plugin_digest: "00".into(),
        reason: "why".into(),
        rule: None,
        capabilities: Vec::new(),
    };
    ApprovalCard::new(request, None)
}

fn assert_harmless(lines: &[style::StyledLine], width: usize) {
    for line in lines {
        assert_eq!(text::escape_line(&line.text()), line.text());
        assert!(line.width() <= width.clamp(30, 110), "{} columns: {line}", line.width());
    }
}

proptest! {
    #[test]
    fn a_line_that_begins_with_a_slash_is_text_only_on_purpose(line in "/[\\PC \n/@\"]{0,40}") {
        if let Ok(ParsedInput::Text(_)) = parse_line(&line) {
            let first = line[1..].split(char::is_whitespace).next().unwrap_or_default();
            prop_assert!(first.contains('/'), "{line:?}");
        }
    }

    #[test]
    fn text_comes_through_as_it_is(line in "[^/\\s]\\PC{0,40}[^\\s]") {
        prop_assert_eq!(parse_line(&line), Ok(ParsedInput::Text(line.clone())));
    }

    #[test]
    fn mentions_lose_nothing_but_backslashes(line in "[a-z @\\\\\"'.!é\n(]{0,60}") {
        let found = find_mentions(&line, &Some2);
        prop_assert_eq!(found.text.replace('\\', ""), line.replace('\\', ""));
        prop_assert!(found.files.len() <= found.text.matches('@').count());
    }

    #[test]
    fn any_bytes_have_a_kind_or_none(name in "\\PC{0,10}", bytes in any::<Vec<u8>>()) {
        detect_media(Path::new(&name), &bytes);
    }

    #[test]
    fn cards_are_harmless_and_fit(value in json(), width in 0_usize..200) {
        let card = card(value.to_string());
        assert_harmless(&card.summary_lines(width), width);
        for page in card.pages(width, 20) {
            assert_harmless(&page, width);
        }
    }

    #[test]
    fn cards_of_broken_arguments_are_harmless(arguments in "[\\PC{}\\[\\]\",:\\\\\u{1b}\n]{0,200}") {
        assert_harmless(&card(arguments).summary_lines(80), 80);
    }

    #[test]
    fn what_is_edited_is_the_same_json(value in json()) {
        let text = format_editable(&value.to_string());
        prop_assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
    }
}
