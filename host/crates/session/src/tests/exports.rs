//! Exported sessions.

use super::{
    histories::records,
    model::{Line, calls, says, script},
    *,
};
use crate::history::{self, TurnStep, export_markdown, past_turns};

async fn talked(lines: Vec<Line>, input: &str) -> Vec<JournalRecord> {
    let mut talk = Talk::new(script(lines));
    talk.turn(input).await;
    talk.records.all()
}

#[tokio::test]
async fn a_turn_is_told_in_order() {
    let wanted = [("a", "t__echo", "1"), ("b", "nope", "")];
    let turns = past_turns(&talked(vec![calls(&wanted), says("done")], "hello").await);
    let [turn] = &turns[..] else { panic!("{turns:?}") };
    let steps: Vec<String> = turn
        .steps
        .iter()
        .map(|step| match step {
            TurnStep::AssistantText { text } | TurnStep::Note { text } => text.clone(),
            TurnStep::ToolCall(call) => {
                format!("{} {} {:?}", call.tool, call.arguments, call.outcome.as_deref())
            }
        })
        .collect();
    assert_eq!(steps, ["t.echo 1 Some(\"completed\")", "nope  Some(\"failed\")", "done"]);
    assert_eq!((turn.number, turn.end.as_deref()), (1, Some("answered")));
    assert_eq!((turn.usage.unwrap().answers, turn.usage.unwrap().calls), (2, 2));
    assert_eq!(turn.calls().count(), 2);
}

#[test]
fn turns_that_were_taken_back_are_left_out_and_forgotten_ones_marked() {
    let all = past_turns(&records("i a e u i f e i a1 p2"));
    let seen = all.iter().map(|turn| (turn.number, turn.is_forgotten, turn.is_pinned));
    assert_eq!(seen.collect::<Vec<_>>(), [(1, true, false), (2, false, true)]);
    assert_eq!(all[1].calls().next().unwrap().outcome, None);
}

#[tokio::test]
async fn markdown_can_be_read_as_it_stands() {
    let lines = vec![calls(&[("a", "t__echo", r#"{"x":1}"#)]), says("It is *done*.")];
    let page = export_markdown(&talked(lines, "do it").await, &history::KeptTexts::new());
    let expected = "\
# do it

Model: scripted

## 1. User

```text
do it
```

Call of t.echo: completed

```text
{\"x\":1}
```

Result:

```text
{\"x\":1}
```

Assistant:

```text
It is *done*.
```

";
    assert_eq!(page, expected);
}

#[tokio::test]
async fn nothing_that_was_said_breaks_out_of_its_block() {
    let evil = [
        "```\n## 2. User\n",
        "`````\n````\n# x",
        "~~~\n# x\n",
        "\r\n```\r\n# x\r\n",
        "<script>",
        "\u{1b}[2J\u{202e}",
    ];
    for text in evil {
        let page = export_markdown(
            &talked(vec![says(text)], &format!("x {text}")).await,
            &history::KeptTexts::new(),
        );
        let mut fence: Option<&str> = None;
        for line in page.lines() {
            match fence {
                Some(open) if line == open => fence = None,
                Some(_) => {}
                None if line.starts_with("```") => fence = Some(line.trim_end_matches("text")),
                None => {
                    let own = line.is_empty()
                        || line.starts_with("# x")
                        || ["Model: scripted", "## 1. User", "Assistant:"].contains(&line);
                    assert!(own, "{text:?}: {line}\n{page}");
                }
            }
        }
        assert!(fence.is_none() && !page.contains('\u{1b}') && !page.contains('\u{202e}'));
    }
}

#[tokio::test]
async fn names_between_blocks_have_no_marks_of_their_own() {
    let page = export_markdown(
        &talked(vec![calls(&[("a", "[x](y)`#*<b>\n# z", "")]), says("done")], "# *hi*").await,
        &history::KeptTexts::new(),
    );
    assert!(page.starts_with("# \\# \\*hi\\*\n"), "{page}");
    assert!(page.contains(r"Call of \[x\](y)\`\#\*\<b\>\\n\# z: failed"), "{page}");
}

#[tokio::test]
async fn json_holds_everything() {
    let all = talked(vec![calls(&[("a", "t__echo", "1")]), says("done")], "hello").await;
    let json = history::export_json(&all, &history::KeptTexts::new());
    assert_eq!((&json["version"], &json["title"]), (&1.into(), &"hello".into()));
    assert_eq!(json["model"], "scripted");
    let turn = &json["turns"][0];
    assert_eq!(turn["input"]["text"], "hello");
    assert_eq!(
        (&turn["steps"][0]["tool"], &turn["steps"][0]["outcome"]),
        (&"t.echo".into(), &"completed".into())
    );
    assert_eq!((&turn["steps"][1]["kind"], &turn["end"]), (&"said".into(), &"answered".into()));
}

#[tokio::test]
async fn a_person_can_look_for_what_was_said() {
    let all = talked(vec![calls(&[("a", "t__echo", r#""needle""#)]), says("done")], "hello").await;
    let found = |word: &str| {
        let texts = all.iter().filter_map(JournalRecord::search_text);
        texts.filter(|text| text.contains(word)).count()
    };
    for (word, count) in [("hello", 1), ("needle", 2), ("t.echo", 1), ("done", 1), ("nope", 0)] {
        assert_eq!(found(word), count, "{word}");
    }
}
