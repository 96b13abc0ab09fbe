//! Tests of completion, history and lines.

use std::{fs, os::unix::fs::PermissionsExt, path::Path};

use reedline::{History, HistoryItem, Prompt as _, SearchDirection, SearchQuery, Validator};

use super::{
    completion::{CompletionNames, find_completions},
    external_editor::ExternalEditor,
    history::{PrivateHistory, remove_control_chars},
    line::SharedEditorState,
    prompt::InputPrompt,
    typing::ContinuationLines,
};
use crate::style::{ColourMode, StyledLine};

fn vocabulary() -> CompletionNames {
    CompletionNames {
        tools: vec![
            ("clock.now".into(), "tells\u{1b}[2J the time".into()),
            ("mail.send".into(), "x".repeat(500)),
        ],
        plugins: vec!["clock".into(), "mail".into()],
        models: vec!["quick".into(), "quiet".into(), "odd\u{202e}".into()],
    }
}

fn list(folder: &Path) -> Vec<(String, bool)> {
    let names: &[(&str, bool)] = match folder.to_str().unwrap() {
        "" => &[("src", true), ("my file", false), ("my folder", true), (".git", true)],
        "src/" => &[("main.rs", false), ("map.rs", false), ("bad\n", false), ("q\"\\", false)],
        _ => &[],
    };
    names.iter().map(|(name, is_folder)| ((*name).to_owned(), *is_folder)).collect()
}

/// Checks the offers for the text before the cursor, and whether each is complete.
#[track_caller]
fn check(before: &str, want: &[(&str, bool)]) {
    let offers = find_completions(before, &vocabulary(), &list);
    let found: Vec<_> = offers
        .iter()
        .map(|offer| (format!("{}{}", &before[..offer.start], offer.value), offer.is_complete))
        .collect();
    let want: Vec<_> = want.iter().map(|(text, whole)| ((*text).to_owned(), *whole)).collect();
    assert_eq!(found, want, "{before:?}");
}

#[test]
fn tab_offers_what_could_stand_there() {
    check("/co", &[("/connect", true), ("/cost", true), ("/compact", true)]);
    check(" /qu", &[(" /quit", true)]);
    check("/help /", &[]);
    check("/help un", &[("/help undo", true)]);
    check("/model qui", &[("/model quick", true), ("/model quiet", true)]);
    check("/model  quie", &[("/model  quiet", true)]);
    check("/model ", &[("/model quick", true), ("/model quiet", true)]);
    check("/tools m", &[("/tools mail.send", true)]);
    check("/grants c", &[("/grants clock", true)]);
    check("/save s", &[("/save src/", false)]);
    check("/save my", &[("/save my file", true), ("/save my folder/", false)]);
    check("/undo x", &[]);
    check("/etc/ho", &[]);
    check("//he", &[]);
    check("", &[]);
    check("words", &[]);
}

#[test]
fn tab_offers_files_behind_a_mark() {
    check("see @s", &[("see @src/", false)]);
    check("(@src/ma", &[("(@src/main.rs", true), ("(@src/map.rs", true)]);
    check("@my", &[("@\"my file\"", true), ("@\"my folder/", false)]);
    check("@\"my f", &[("@\"my file\"", true), ("@\"my folder/", false)]);
    check("@src/q", &[("@src/q\"\\", true)].map(|_| ("@\"src/q\\\"\\\\\"", true)));
    check("@.", &[("@.git/", false)]);
    check("@src/b", &[]);
    check("@none/", &[]);
    check("mail me@s", &[]);
    check("@src done", &[]);
    check("@\"src\" done", &[]);
    check("/pin see @s", &[("/pin see @src/", false)]);
}

#[test]
fn notes_of_offers_are_harmless_and_short() {
    let offers = find_completions("/tools ", &vocabulary(), &list);
    assert_eq!(offers[0].note, "tells\\u{1b}[2J the time");
    assert_eq!(offers[1].note.chars().count(), 61);
    let many: Vec<_> = (0..1000).map(|n| (format!("a.t{n}"), String::new())).collect();
    let words = CompletionNames { tools: many, ..CompletionNames::default() };
    assert_eq!(super::completion::find_completions("/tools a", &words, &list).len(), 100);
}

fn remembered(history: &PrivateHistory) -> Vec<String> {
    let everything = SearchQuery::everything(SearchDirection::Forward, None);
    history.search(everything).unwrap().into_iter().map(|item| item.command_line).collect()
}

fn remember(history: &mut PrivateHistory, line: &str) {
    history.save(HistoryItem::from_command_line(line)).unwrap();
}

#[test]
fn the_history_is_private_and_keeps_lines_as_they_are() {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("a").join("b");
    let mut history = PrivateHistory::open(&folder).unwrap();
    let lines = ["one", "two\nlines", "<\\n> \"quoted\" é\ttab", "two\nlines"];
    lines.iter().for_each(|line| remember(&mut history, line));
    remember(&mut history, "two\nlines");
    remember(&mut history, &"x".repeat((16 << 10) + 1));
    assert_eq!(remembered(&history), lines);
    assert_eq!(remembered(&PrivateHistory::open(&folder).unwrap()), lines);
    for (path, want) in [(folder.join("history"), 0o600), (folder.clone(), 0o700)] {
        assert_eq!(fs::metadata(path).unwrap().permissions().mode() & 0o777, want);
    }
    assert_eq!(fs::read_to_string(folder.join("history")).unwrap().lines().count(), 4);
}

#[test]
fn what_is_no_entry_is_skipped() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("history");
    fs::write(&file, b"\"one\"\nnot JSON\n\xff\xfe\n{\"v\":2}\n\"t\\u001b[2Jwo\"\n\"cut").unwrap();
    let history = PrivateHistory::open(folder.path()).unwrap();
    assert_eq!(remembered(&history), ["one", "t[2Jwo"]);
}

#[test]
fn the_history_is_bounded() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("history");
    fs::write(&file, (0..4001).map(|n| format!("\"{n}\"\n")).collect::<String>()).unwrap();
    let mut history = PrivateHistory::open(folder.path()).unwrap();
    assert_eq!(remembered(&history).len(), 2000);
    remember(&mut history, "last");
    let text = fs::read_to_string(&file).unwrap();
    assert!(text.starts_with("\"2001\"\n") && text.ends_with("\"last\"\n"));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    history.clear().unwrap();
    assert_eq!(fs::read_to_string(&file).unwrap(), "");
}

#[test]
fn a_folder_that_cannot_be_used_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("file"), "").unwrap();
    assert!(PrivateHistory::open(&folder.path().join("file")).is_err());
    fs::create_dir_all(folder.path().join("x/history")).unwrap();
    assert!(PrivateHistory::open(&folder.path().join("x")).is_err());
}

#[test]
fn texts_lose_what_a_terminal_would_obey() {
    let rows = [
        ("plain é 漢 👩‍👧", "plain é 漢 👩‍👧"),
        ("a\tb\nc", "a\tb\nc"),
        ("a\r\nb\rc", "a\nb\nc"),
        ("\u{1b}[31mred\u{7}\u{9b}2J\0", "[31mred2J"),
    ];
    for (text, want) in rows {
        assert_eq!(remove_control_chars(text), want);
    }
}

/// Checks the message that results from the text at each press of Enter.
#[track_caller]
fn check_continued(presses: &[&str], message: &str, want: &str) {
    let continued = ContinuationLines::default();
    for press in presses {
        assert!(matches!(continued.validate(press), reedline::ValidationResult::Incomplete));
    }
    assert!(matches!(continued.validate(message), reedline::ValidationResult::Complete));
    assert_eq!(continued.remove_backslashes(message), want);
    assert_eq!(
        continued.remove_backslashes("one\\\ntwo"),
        "one\\\ntwo",
        "nothing is kept for the next"
    );
}

#[test]
fn a_backslash_continues_only_where_enter_was_pressed_behind_it() {
    check_continued(&[], "one", "one");
    check_continued(&["one\\"], "one\\\ntwo", "one\ntwo");
    check_continued(&["one\\", "one\\\ntwo\\"], "one\\\ntwo\\\nthree", "one\ntwo\nthree");
    check_continued(&[], "pasted\\\ntext", "pasted\\\ntext");
    check_continued(&["b\\"], "pasted\\\nb\\\nc", "pasted\\\nb\nc");
    check_continued(&[], "a path\\\\", "a path\\\\");
    check_continued(&["\\"], "\\\n", "\n");
}

#[test]
fn commands_are_split_without_a_shell() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("my editor");
    fs::write(&program, "#!/bin/sh\nfor last; do :; done\nprintf '%s|' \"$@\" > \"$last\"\n")
        .unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o700)).unwrap();
    let rows = [
        ("", ""),
        ("  -n  --wait ", "-n|--wait|"),
        (" a'b c'd", "ab cd|"),
        (" x \"\"", "x||"),
        (" x; rm -rf $HOME", "x;|rm|-rf|$HOME|"),
    ];
    for (arguments, want) in rows {
        let command = format!("\"{}\"{}", program.display(), arguments);
        let editor =
            ExternalEditor { command: Some(command), folder: Some(folder.path().to_owned()) };
        let told = editor.edit_text("x").unwrap();
        assert!(told.starts_with(want) && told.ends_with(".md|"), "{arguments:?}: {told}");
    }
}

#[test]
fn a_message_that_is_edited_elsewhere_is_private_and_bounded() {
    let folder = tempfile::tempdir().unwrap();
    let outside = |command: &str| ExternalEditor {
        command: Some(command.to_owned()),
        folder: Some(folder.path().to_owned()),
    };
    assert_eq!(outside("true").edit_text("as it was\n").unwrap(), "as it was");
    let seen = folder.path().join("seen");
    let look = format!("sh -c 'stat -c %a \"$1\" > {}' -", seen.display());
    outside(&look).edit_text("x").unwrap();
    assert_eq!(fs::read_to_string(&seen).unwrap(), "600\n");
    fs::remove_file(seen).unwrap();
    let rows = [
        ("truncate -s 2M", "the message is longer than 1048576 bytes: attach it as a file"),
        ("rm", "cannot pass the message to the editor"),
        ("sh -c 'printf \"\\377\" > \"$1\"' -", "cannot pass the message to the editor"),
        ("false", "false ended with exit status: 1, so the message is unchanged"),
        ("", "no editor is configured: set VISUAL or EDITOR"),
        ("vi 'never closed", "no editor is configured: set VISUAL or EDITOR to its command"),
    ];
    for (command, want) in rows {
        let error = outside(command).edit_text("x").unwrap_err().to_string();
        assert!(error.starts_with(want), "{command}: {error}");
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn prompts_name_what_is_asked_for() {
    let message = InputPrompt::Message { model: "a\u{1b}[2J".into() };
    assert_eq!(message.render_prompt_left(), "a\\u{1b}[2J");
    let aside = InputPrompt::Other { name: "x".repeat(100) };
    assert_eq!(aside.render_prompt_left().chars().count(), 33);
}

#[test]
fn a_printer_takes_no_more_than_it_can_keep() {
    let shared = SharedEditorState::new();
    let printer = shared.create_printer(ColourMode::Off);
    let taken = (0..100).take_while(|_| printer.print_lines(&[StyledLine::plain("x")])).count();
    assert_eq!(taken, 64);
    assert_eq!(shared.printer.get_line().as_deref(), Some("x"));
    assert!(printer.print_lines(&[StyledLine::plain("one"), StyledLine::plain("two")]));
}
