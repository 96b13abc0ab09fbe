//! `/undo files`: what calls did to files is put back, after a question.

use std::{fs, os::unix::fs::MetadataExt};

use serde_json::{Value, json};

use super::{PROMPT, chat, chat_with, home};
use crate::support::{Home, OpenAi, Person, Reply};

const ASKS: &str = "put back? [y]es / [n]o>";

/// A home with notes, in which every tool of the plugin runs without a question.
fn home_with_notes(model: &OpenAi) -> Home {
    let home = home(model).plugins(&["files"]).user_file("notes/todo.md", "buy milk\n");
    let path = home.user_path("notes");
    home.policy(format!(
        "[plugin.files]\nfs = [{{ path = {path:?}, mount = \"/notes\", access = \"read-write\" }}]\n\
         [[rule]]\ntool = \"files.*\"\ndecision = \"allow\"\n"
    ))
}

fn call(tool: &'static str, arguments: &Value) -> Vec<Reply> {
    vec![Reply::call("a", tool, arguments), Reply::Text("All done.")]
}

fn write(path: &str, text: &str) -> Vec<Reply> {
    call("files__write", &json!({ "path": path, "mode": "overwrite", "text": text }))
}

#[track_caller]
fn turns(person: &mut Person, count: usize) {
    for turn in 1..=count {
        person.types("go\r");
        person.sees_count("All done.", turn);
        person.sees_last(PROMPT);
    }
}

fn todo(home: &Home) -> String {
    fs::read_to_string(home.user_path("notes/todo.md")).unwrap_or_default()
}

#[test]
fn files_are_put_back_one_call_after_the_other() {
    let remove = call("files__remove", &json!({ "path": "/notes/todo.md" }));
    let create = call("files__write", &json!({ "path": "/notes/new.md", "text": "x" }));
    let model = OpenAi::start([write("/notes/todo.md", "buy tea\n"), create, remove].concat());
    let home = home_with_notes(&model);
    let mut person = chat(&home);
    person.types("/undo files\r");
    person.sees("There is no change of a file to undo.");
    person.sees_last(PROMPT);
    turns(&mut person, 3);
    assert_eq!(todo(&home), "");
    let copies: Vec<_> = fs::read_dir(home.path("state/undo")).unwrap().flatten().collect();
    assert_eq!(copies[0].metadata().unwrap().mode() & 0o777, 0o700);

    person.types("/undo files\r");
    person.sees("todo.md: created again, 8 bytes");
    person.sees_last(ASKS);
    person.types("n\r");
    person.sees("Nothing was changed.");
    person.sees_last(PROMPT);
    assert_eq!(todo(&home), "");

    person.types("/undo files\r");
    person.sees_last(ASKS);
    person.types("y\r");
    person.sees_count("Put back: 1 path.", 1);
    person.sees_last(PROMPT);
    assert_eq!(todo(&home), "buy tea\n");

    person.types("/undo files\r");
    person.sees("new.md: removed");
    person.sees_last(ASKS);
    person.types("yes\r");
    person.sees_count("Put back: 1 path.", 2);
    person.sees_last(PROMPT);
    assert!(!home.user_path("notes/new.md").exists());

    person.types("/undo files\r");
    person.sees("-buy tea\n+buy milk\n");
    person.sees_last(ASKS);
    person.types("y\r");
    person.sees_count("Put back: 1 path.", 3);
    person.sees_last(PROMPT);
    assert_eq!(todo(&home), "buy milk\n");
    person.types("/undo nothing\r");
    person.sees("/undo takes no argument except \"files\"");
}

#[test]
fn what_changed_since_stays_and_the_copies_go_with_the_session() {
    let model = OpenAi::start(write("/notes/todo.md", "buy tea\n"));
    let home = home_with_notes(&model);
    let mut person = chat(&home);
    turns(&mut person, 1);
    fs::write(home.user_path("notes/todo.md"), "mine\n").unwrap();
    person.types("/undo files\r");
    person.sees("it was changed after the call");
    person.sees("There is no change of a file to undo.");
    person.sees_last(PROMPT);
    assert_eq!(todo(&home), "mine\n");
    fs::write(home.user_path("notes/todo.md"), "buy tea\n").unwrap();
    person.types("/quit\r");
    assert_eq!(person.ends(), 0);

    // A resumed session has them still.
    let mut person = chat_with(&home, &["--continue"]);
    person.types("/undo files\r");
    person.sees_last(ASKS);
    person.types("y\r");
    person.sees("Put back: 1 path.");
    person.sees_last(PROMPT);
    assert_eq!(todo(&home), "buy milk\n");
    person.types("/quit\r");
    assert_eq!(person.ends(), 0);

    let folder = fs::read_dir(home.path("state/undo")).unwrap().next().unwrap().unwrap();
    let session = folder.file_name().into_string().unwrap();
    home.run(&["session", "remove", &session, "--yes"]).ended(0);
    assert!(!folder.path().exists());
}

#[test]
fn a_session_that_is_not_saved_leaves_no_copies() {
    let model = OpenAi::start(write("/notes/todo.md", "buy tea\n"));
    let home = home_with_notes(&model);
    let mut person = chat_with(&home, &["--ephemeral"]);
    turns(&mut person, 1);
    person.types("/quit\r");
    assert_eq!(person.ends(), 0);
    assert_eq!(todo(&home), "buy tea\n");
    assert_eq!(fs::read_dir(home.path("state/undo")).unwrap().count(), 0);
}
