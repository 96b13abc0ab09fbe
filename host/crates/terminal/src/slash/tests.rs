//! Tests of parsed lines and of the table.

use std::collections::BTreeSet;

use super::*;

#[track_caller]
fn check(line: &str, want: Line) {
    assert_eq!(parse(line, State::Ready), Ok(want), "{line:?}");
}

#[track_caller]
fn check_error(line: &str, state: State, message: &str, hint: &str) {
    let error = parse(line, state).unwrap_err();
    assert_eq!(error.to_string(), message, "{line:?}");
    assert!(error.hint().contains(hint), "{line:?}: {}", error.hint());
}

fn text(text: &str) -> Line {
    Line::Text(text.to_owned())
}

#[test]
fn text_is_text() {
    check("", Line::Nothing);
    check("  \n ", Line::Nothing);
    check(" hello ", text("hello"));
    check("what is 1/2?", text("what is 1/2?"));
    check("/etc/hosts is what?", text("/etc/hosts is what?"));
    check("/usr/", text("/usr/"));
    check("//tmp is full", text("/tmp is full"));
    check("//help", text("/help"));
    check("// a comment\nfn main() {}", text("// a comment\nfn main() {}"));
    check("/// a comment", text("/// a comment"));
    check("//", text("//"));
}

#[test]
fn commands_are_commands() {
    check("/help", Line::Command(Command::Help(None)));
    check("/?", Line::Command(Command::Help(None)));
    check("/HELP", Line::Command(Command::Help(None)));
    check(" /help  save ", Line::Command(Command::Help(find("save"))));
    check("/help /q", Line::Command(Command::Help(find("quit"))));
    check("/tools", Line::Command(Command::Tools(None)));
    check("/tools send mail", Line::Command(Command::Tools(Some("send mail".into()))));
    check("/plugins clock", Line::Command(Command::Plugins(Some("clock".parse().unwrap()))));
    check("/grants", Line::Command(Command::Grants(None)));
    check("/model fast", Line::Command(Command::Model(Some("fast".into()))));
    check("/models", Line::Command(Command::Model(None)));
    check("/edit", Line::Command(Command::Edit(String::new())));
    check("/edit one\ntwo", Line::Command(Command::Edit("one\ntwo".into())));
    check("/save", Line::Command(Command::Save(None)));
    check("/save my notes.md", Line::Command(Command::Save(Some("my notes.md".into()))));
    check("/save \"my notes.md\"", Line::Command(Command::Save(Some("my notes.md".into()))));
    check("/save 'a\"b'", Line::Command(Command::Save(Some("a\"b".into()))));
    check("/pin be brief", Line::Command(Command::Pin(Some("be brief".into()))));
    check("/exit", Line::Command(Command::Quit));
}

#[test]
fn what_looks_like_a_command_is_never_text() {
    let ready = State::Ready;
    check_error("/hepl", ready, "there is no command /hepl", "did you mean /help?");
    check_error("/mod", ready, "there is no command /mod", "did you mean /model?");
    check_error("/Quti", ready, "there is no command /Quti", "did you mean /quit?");
    check_error("/usages", ready, "there is no command /usages", "did you mean /cost?");
    check_error("/tmp is full", ready, "there is no command /tmp", "second slash");
    check_error("/zzz", ready, "there is no command /zzz", "/help lists all");
    check_error("/x", ready, "there is no command /x", "/help lists all");
    check_error("/", ready, "there is no command /", "/help lists all");
    check_error("/ help", ready, "there is no command /", "/help lists all");
    check_error("/\u{1b}[2J", ready, "there is no command /\\u{1b}[2J", "/help");
    check_error("/help wat", ready, "there is no command /wat", "/help lists all");
    check_error("/undo 3", ready, "/undo takes no argument", "/help undo");
    check_error("/plugins ../x", ready, "\"../x\" is not the name of a plugin", "/plugins");
    check_error("/save \"x", ready, "/save: a quotation mark is not closed", "close it");
    check_error("/save \"", ready, "/save: a quotation mark is not closed", "close it");
    let long = format!("/{}", "a".repeat(1 << 20));
    assert!(parse(&long, ready).unwrap_err().to_string().len() < 100);
}

#[test]
fn commands_fit_their_state() {
    let message = "/undo does not work while an answer is being given";
    check_error("/undo", State::Busy, message, "Ctrl-C");
    check_error(
        "/model x",
        State::Asked,
        "/model does not work while a question is open",
        "Ctrl-C",
    );
    for state in [State::Ready, State::Busy, State::Asked] {
        for line in ["/help", "/tools", "/grants", "/cost", "/quit"] {
            assert!(parse(line, state).is_ok(), "{line} {state:?}");
        }
    }
}

#[test]
fn the_table_is_sound() {
    let words: Vec<_> = TABLE.iter().flat_map(Entry::words).collect();
    assert_eq!(words.iter().collect::<BTreeSet<_>>().len(), words.len(), "a word stands twice");
    let plain = |word: &&str| word.bytes().all(|b| b.is_ascii_lowercase()) || *word == "?";
    assert!(words.iter().all(plain), "{words:?}");
    for entry in TABLE {
        assert!(
            parse(&format!("/{}", entry.name), State::Ready).is_ok(),
            "{} is not read",
            entry.name
        );
        assert!(entry.fits(State::Ready), "{} never fits", entry.name);
        assert!(!entry.help.is_empty() && !entry.help.ends_with('.'), "{}", entry.help);
        let takes = parse(&format!("/{} clock", entry.name), State::Ready);
        let takes_nothing = matches!(takes, Err(SlashError::Unwanted { .. }));
        assert_eq!(takes_nothing, entry.argument == Argument::None, "{}", entry.name);
    }
}

#[test]
fn help_names_every_command_within_eighty_columns() {
    let help = help();
    for (entry, line) in TABLE.iter().zip(&help) {
        assert!(line.text().starts_with(&entry.usage()), "{line}");
        assert!(line.width() <= 80, "{line}");
    }
    let save: Vec<_> = help_of(find("compact").unwrap()).iter().map(style_text).collect();
    assert_eq!(
        save,
        [
            "/compact  put a summary in place of old turns",
            "  also /summarize",
            "  only while nothing is running"
        ]
    );
}

fn style_text(line: &crate::style::Line) -> String {
    line.text()
}
