//! Calls: what they returned, and what they would overwrite.

use serde_json::json;

use super::{PROMPT, chat, echoing, home};
use crate::support::{Home, OpenAi, Reply, person::CARD_KEYS};

#[test]
fn the_last_call_is_shown_whole() {
    let model = OpenAi::start(echoing());
    let home = home(&model);
    let mut person = chat(&home);
    person.types("/last\r");
    person.sees("No call has finished since this session was opened.");
    person.sees_last(PROMPT);
    person.types("go\r");
    person.sees("All done.");
    person.sees_last(PROMPT);
    for (count, keys) in [(1, "/last\r"), (2, "/last 1\r"), (3, "\u{f}")] {
        person.types(keys);
        person.sees_count("arguments\ntext: \"hi\"\nresult\n\"hi\"\n", count);
        person.sees_last(PROMPT);
    }
    person.types("/last 2\r");
    person.sees("error: there is no call 2");
}

#[test]
fn a_long_result_is_shown_to_its_end() {
    let text = format!("{}\u{1b}[2J\nthe end", "word ".repeat(400));
    let script =
        vec![Reply::call("a", "hostile__echo", &json!({ "text": text })), Reply::Text("All done.")];
    let model = OpenAi::start(script);
    let home = home(&model);
    let mut person = chat(&home);
    person.types("go\r");
    person.sees("All done.");
    person.sees_last(PROMPT);
    person.types("/last\r");
    person.sees("word \\u{1b}[2J\n");
    person.sees_last(PROMPT);
    let screen = person.screen();
    assert!(screen.contains("the end\n"), "{screen}");
}

/// A home in which a file may be overwritten after a question.
fn home_with_notes(model: &OpenAi) -> Home {
    let home = home(model)
        .plugins(&["files"])
        .user_file("notes/todo.md", "buy milk\nwash the car\n")
        .user_file("other/secret.md", "the secret\n");
    let path = home.user_path("notes");
    home.policy(format!(
        "[plugin.files]\nfs = [{{ path = {path:?}, mount = \"/notes\", access = \"read-write\" }}]\n"
    ))
}

#[test]
fn a_card_shows_what_would_be_overwritten() {
    let write = |path: &str, mode: &str, text: &str| {
        let arguments = json!({ "path": path, "mode": mode, "text": text });
        vec![Reply::call("a", "files__write", &arguments), Reply::Text("All done.")]
    };
    let rows = [
        (
            write("/notes/todo.md", "overwrite", "buy milk\npaint the car\n"),
            Some(" buy milk\n            -wash the car\n            +paint the car\n"),
        ),
        (write("notes/todo.md", "append", "rest\n"), Some(" wash the car\n            +rest\n")),
        (write("/notes/todo.md", "create", "rest\n"), None),
        (write("/notes/new.md", "overwrite", "rest\n"), None),
        (write("/notes/../other/secret.md", "overwrite", "rest\n"), None),
    ];
    for (script, want) in rows {
        let model = OpenAi::start(script);
        let home = home_with_notes(&model);
        let mut person = chat(&home);
        person.types("go\r");
        person.sees(CARD_KEYS);
        let screen = person.screen();
        match want {
            Some(diff) => assert!(screen.contains(diff), "{screen}"),
            None => assert!(!screen.contains("  changes "), "{screen}"),
        }
        person.types("n");
        person.sees("All done.");
        person.sees_last(PROMPT);
        assert!(person.screen().contains("\n[n] denied: files.write\n"), "{}", person.screen());
    }
}
