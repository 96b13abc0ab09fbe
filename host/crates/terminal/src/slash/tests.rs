//! Tests of parsed lines and of the table.

use std::collections::BTreeSet;

use super::*;

#[track_caller]
fn check(line: &str, want: ParsedInput) {
    assert_eq!(parse_line(line), Ok(want), "{line:?}");
}

#[track_caller]
fn check_error(line: &str, message: &str, hint: &str) {
    let error = parse_line(line).unwrap_err();
    assert_eq!(error.to_string(), message, "{line:?}");
    assert!(error.hint().contains(hint), "{line:?}: {}", error.hint());
}

fn text(text: &str) -> ParsedInput {
    ParsedInput::Text(text.to_owned())
}

#[test]
fn text_is_text() {
    check("", ParsedInput::Blank);
    check("  \n ", ParsedInput::Blank);
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
    check("/help", ParsedInput::Command(SlashCommand::Help(None)));
    check("/?", ParsedInput::Command(SlashCommand::Help(None)));
    check("/HELP", ParsedInput::Command(SlashCommand::Help(None)));
    check(" /help  save ", ParsedInput::Command(SlashCommand::Help(find_command("save"))));
    check("/help /q", ParsedInput::Command(SlashCommand::Help(find_command("quit"))));
    check("/tools", ParsedInput::Command(SlashCommand::Tools(None)));
    check("/tools send mail", ParsedInput::Command(SlashCommand::Tools(Some("send mail".into()))));
    check(
        "/plugins clock",
        ParsedInput::Command(SlashCommand::Plugins(Some("clock".parse().unwrap()))),
    );
    check("/grants", ParsedInput::Command(SlashCommand::Grants(None)));
    check("/connect", ParsedInput::Command(SlashCommand::Connect(None)));
    let plugin = Some("google-mail".parse().unwrap());
    check("/accounts google-mail", ParsedInput::Command(SlashCommand::Connect(plugin)));
    check("/model fast", ParsedInput::Command(SlashCommand::Model(Some("fast".into()))));
    check("/models", ParsedInput::Command(SlashCommand::Model(None)));
    check("/edit", ParsedInput::Command(SlashCommand::Edit(String::new())));
    check("/edit one\ntwo", ParsedInput::Command(SlashCommand::Edit("one\ntwo".into())));
    check("/save", ParsedInput::Command(SlashCommand::Save(None)));
    check(
        "/save my notes.md",
        ParsedInput::Command(SlashCommand::Save(Some("my notes.md".into()))),
    );
    check(
        "/save \"my notes.md\"",
        ParsedInput::Command(SlashCommand::Save(Some("my notes.md".into()))),
    );
    check("/save 'a\"b'", ParsedInput::Command(SlashCommand::Save(Some("a\"b".into()))));
    check("/pin be brief", ParsedInput::Command(SlashCommand::Pin(Some("be brief".into()))));
    check("/exit", ParsedInput::Command(SlashCommand::Quit));
}

#[test]
fn what_looks_like_a_command_is_never_text() {
    check_error("/hepl", "there is no command /hepl", "did you mean /help?");
    check_error("/mod", "there is no command /mod", "did you mean /model?");
    check_error("/Quti", "there is no command /Quti", "did you mean /quit?");
    check_error("/usages", "there is no command /usages", "did you mean /cost?");
    check_error("/tmp is full", "there is no command /tmp", "second slash");
    check_error("/zzz", "there is no command /zzz", "/help lists all");
    check_error("/x", "there is no command /x", "/help lists all");
    check_error("/", "there is no command /", "/help lists all");
    check_error("/ help", "there is no command /", "/help lists all");
    check_error("/\u{1b}[2J", "there is no command /\\u{1b}[2J", "/help");
    check_error("/help wat", "there is no command /wat", "/help lists all");
    check_error(
        "/undo 3",
        "/undo takes no argument except \"files\"",
        "/undo files puts files back",
    );
    check_error("/retry 3", "/retry takes no argument", "/help retry");
    check_error("/plugins ../x", "\"../x\" is not the name of a plugin", "/plugins");
    check_error("/save \"x", "/save: a quotation mark is not closed", "close it");
    check_error("/save \"", "/save: a quotation mark is not closed", "close it");
    let long = format!("/{}", "a".repeat(1 << 20));
    assert!(parse_line(&long).unwrap_err().to_string().len() < 100);
}

#[test]
fn a_bare_exit_was_sent_to_the_model() {
    for line in ["exit", "quit", " Quit ", "bye"] {
        check(line, ParsedInput::Command(SlashCommand::Quit));
    }
    for line in ["help", "?"] {
        check(line, ParsedInput::Command(SlashCommand::Help(None)));
    }
    check("help me", text("help me"));
    check("exit strategies", text("exit strategies"));
}

/// What users of other programs type, each with a part of the hint; an empty one for a command
/// that exists.
#[test]
fn commands_of_other_programs_lead_to_the_right_one() {
    for (line, want) in [
        ("/permissions", "/grants"),
        ("/allow weather", "/grants"),
        ("/config", "config show"),
        ("/login", "sallyport setup"),
        ("/sessions", "session list"),
        ("/resume", "chat --continue"),
        ("/copy", "/save"),
        ("/doctor", "sallyport doctor"),
        ("/exit", ""),
        ("/quit", ""),
        ("/clear", ""),
        ("/new", ""),
        ("/compact", ""),
        ("/context", "/memory"),
        ("/mcp", "/plugins"),
        ("/init", "sallyport setup"),
        ("/undo", ""),
        ("/retry", ""),
        ("/diff", "audit show"),
        ("/status", "/session"),
        ("/tols", "/tools"),
    ] {
        let hint = parse_line(line).err().map(|error| error.hint());
        assert_eq!(hint.is_none(), want.is_empty(), "{line}: {hint:?}");
        let hint = hint.unwrap_or_default();
        assert!(hint.contains(want) && !hint.contains('\n'), "{line}: {hint}");
    }
}

/// A word that is a command here needs no hint, and a hint must not name a command that is none.
#[test]
fn hints_name_commands_that_exist() {
    for row in FOREIGN_WORDS {
        assert!(row.words.iter().all(|word| find_command(word).is_none()), "{row:?}");
        let slashes = row.hint.split([' ', ';', ',']).filter_map(|word| word.strip_prefix('/'));
        for name in slashes {
            assert!(find_command(name).is_some(), "{}", row.hint);
        }
    }
}

#[test]
fn the_table_is_sound() {
    let words: Vec<_> = TABLE.iter().flat_map(SlashCommandEntry::command_names).collect();
    assert_eq!(words.iter().collect::<BTreeSet<_>>().len(), words.len(), "a word stands twice");
    let plain = |word: &&str| word.bytes().all(|b| b.is_ascii_lowercase()) || *word == "?";
    assert!(words.iter().all(plain), "{words:?}");
    for entry in TABLE {
        assert!(parse_line(&format!("/{}", entry.name)).is_ok(), "{} is not read", entry.name);
        assert!(!entry.help.is_empty() && !entry.help.ends_with('.'), "{}", entry.help);
        let takes = parse_line(&format!("/{} clock", entry.name));
        let takes_nothing = matches!(takes, Err(SlashError::UnexpectedArgument(_)));
        assert_eq!(takes_nothing, entry.argument == CommandArgumentKind::None, "{}", entry.name);
    }
}

#[test]
fn help_names_every_command_within_eighty_columns() {
    let help = help_lines();
    for (entry, line) in TABLE.iter().zip(&help) {
        assert!(line.text().starts_with(&entry.usage()), "{line}");
        assert!(line.width() <= 80, "{line}");
    }
    let save: Vec<_> =
        command_help_lines(find_command("compact").unwrap()).iter().map(style_text).collect();
    assert_eq!(save, ["/compact  replace old turns with a summary", "  also /summarize"]);
}

fn style_text(line: &crate::style::StyledLine) -> String {
    line.text()
}
