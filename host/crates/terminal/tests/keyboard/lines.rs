//! Tests of lines: typing, completion, history, leaving.

use std::{fs, time::Duration};

use super::Terminal;

#[test]
fn a_line_is_typed_and_cleared_and_left() {
    let folder = tempfile::tempdir().unwrap();
    let mut terminal = Terminal::start(folder.path());
    terminal.line("hello é 漢");
    terminal.wait(r#"input: Line("hello é 漢")"#);
    terminal.send("not this");
    terminal.wait("> not this");
    terminal.send("\x03");
    terminal.wait_without("> not this");
    terminal.line("but this");
    terminal.wait(r#"input: Line("but this")"#);
    // Before the prompt appears, Ctrl-C is a signal.
    terminal.wait_for_more("test-model> ", 2);
    terminal.leave_line();
    terminal.send("\x04");
    terminal.wait("input: End");
    assert!(!terminal.screen().contains("\"not this"), "{}", terminal.screen());
}

#[test]
fn one_ctrl_c_on_an_empty_line_left_and_dropped_what_was_typed_ahead() {
    let folder = tempfile::tempdir().unwrap();
    let mut terminal = Terminal::start(folder.path());
    terminal.send("\x03");
    terminal.wait("Press Ctrl-C again to leave.");
    terminal.wait_for_more("test-model> ", 1);
    terminal.line("still here");
    terminal.wait(r#"input: Line("still here")"#);
    // A second one that comes too late is a first one.
    terminal.wait_for_more("test-model> ", 2);
    terminal.send("\x03");
    terminal.wait_for_more("Press Ctrl-C again", 1);
    terminal.wait_for_more("test-model> ", 3);
    terminal.pass_time(Duration::from_millis(2100));
    terminal.send("\x03");
    terminal.wait_for_more("Press Ctrl-C again", 2);
    assert!(!terminal.screen().contains("Interrupted"), "{}", terminal.screen());
}

#[test]
fn a_message_may_have_several_lines() {
    let folder = tempfile::tempdir().unwrap();
    let mut terminal = Terminal::start(folder.path());
    terminal.line("one\x1b\rtwo\nthree");
    terminal.wait(r#"input: Line("one\ntwo\nthree")"#);
    terminal.line("four\\");
    terminal.wait("> four\\");
    terminal.line("five");
    terminal.wait(r#"input: Line("four\nfive")"#);
    terminal.send("\x1b[200~a\\\rb\x1b[31m\x07c\x1b[201~");
    terminal.wait("b[31mc");
    terminal.line("!!");
    terminal.wait(r#"input: Line("a\\\nb[31mc!!")"#);
}

#[test]
fn tab_completes_commands_names_and_files() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("two words.txt"), "x").unwrap();
    let mut terminal = Terminal::start(folder.path());
    terminal.send("/he\t");
    terminal.wait("> /help");
    terminal.line("");
    terminal.wait(r#"input: Line("/help ")"#);
    terminal.send("/model qui\t");
    // Without colours, the offer that Enter takes is in capitals.
    terminal.wait("QUICK");
    terminal.send("\t");
    terminal.wait("QUIET");
    terminal.send("\r");
    terminal.wait_without("quick");
    terminal.line("");
    terminal.wait(r#"input: Line("/model quiet ")"#);
    terminal.send("see @tw\t");
    terminal.wait(r#"> see @"two words.txt""#);
    terminal.line("");
    terminal.wait(r#"input: Line("see @\"two words.txt\" ")"#);
}

#[test]
fn tab_lists_all_commands_with_what_they_do() {
    let folder = tempfile::tempdir().unwrap();
    let mut terminal = Terminal::start(folder.path());
    terminal.send("/\t");
    terminal.wait("leave (also");
    insta::assert_snapshot!(terminal.screen());
    terminal.send("\x03");
    terminal.wait_without("leave (also");
    terminal.leave_line();
    assert!(terminal.screen().contains("Press Ctrl-C again to leave."), "{}", terminal.screen());
}

#[test]
fn what_is_typed_ahead_is_edited_with_the_usual_keys() {
    for is_vi in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        if is_vi {
            fs::write(folder.path().join("vi"), "").unwrap();
        }
        let mut terminal = Terminal::start(folder.path());
        terminal.line("ahead");
        terminal.wait(r#"typed [] "" 0"#);
        // The keys, and the state that they lead to.
        let rows = [
            ("ac\u{1b}[Db", r#"typed [] "abc" 2"#),
            ("\r", r#"typed ["abc"] "" 0"#),
            (" \r", r#"typed ["abc"] "" 0"#),
            ("é\u{7f}x\ny", r#"typed ["abc"] "x\ny" 3"#),
            ("\r", r#"typed ["abc", "x\ny"] "" 0"#),
            ("\u{1b}[200~p\rq\u{1b}[31m\u{1b}[201~", r#"typed ["abc", "x\ny"] "p\nq[31m" 7"#),
            ("\u{1b}[A", r#"typed ["abc"] "x\ny\np\nq[31m" 11"#),
            ("\u{1b}[A", r#"typed [] "abc\nx\ny\np\nq[31m" 15"#),
            ("\\\rz\r", r#"typed ["abc\nx\ny\np\nq[31m\nz"] "" 0"#),
            ("\u{4}", "is_end: true"),
        ];
        for (keys, want) in rows {
            terminal.send(keys);
            terminal.wait(want);
        }
        terminal.wait("test-model> ");
        terminal.send("\u{1b}[A");
        terminal.wait("q[31m\n  z");
    }
}

#[test]
fn without_a_terminal_there_is_no_keyboard() {
    let folder = tempfile::tempdir().unwrap();
    let said = super::terminal::without(folder.path());
    assert!(said.contains("NoTerminal"), "{said}");
}

#[test]
fn lines_are_remembered_by_the_next_program() {
    let folder = tempfile::tempdir().unwrap();
    let mut first = Terminal::start(folder.path());
    first.line("one\x1b\rtwo");
    first.wait(r#"input: Line("one\ntwo")"#);
    first.line(" secret");
    first.wait(r#"input: Line(" secret")"#);
    drop(first);
    let mut second = Terminal::start(folder.path());
    second.send("\x1b[A");
    second.wait("> one");
    second.line("");
    second.wait(r#"input: Line("one\ntwo")"#);
    second.send("\x12on");
    second.wait("(search: on)");
    // As at every terminal, Ctrl-C discards input typed right after it.
    second.send("\x03");
    second.wait_for_more("test-model> ", 1);
    second.line("three");
    second.wait(r#"input: Line("three")"#);
}

#[test]
fn the_window_may_change_its_size() {
    let folder = tempfile::tempdir().unwrap();
    let mut terminal = Terminal::start(folder.path());
    terminal.send("a line of some words");
    terminal.wait("a line of some words");
    terminal.resize(10, 24);
    terminal.line(" and more");
    terminal.wait("input: Line(");
    let joined = terminal.screen().replace('\n', "");
    assert!(joined.contains("\"a line of some words and more\""), "{joined}");
}

#[test]
fn messages_appear_above_the_line() {
    let folder = tempfile::tempdir().unwrap();
    let mut terminal = Terminal::start(folder.path());
    terminal.line("print");
    terminal.wait("told meanwhile");
    terminal.line("after");
    terminal.wait(r#"input: Line("after")"#);
    let screen = terminal.screen();
    assert!(screen.find("told meanwhile") < screen.find("> after"), "{screen}");
}

#[test]
fn a_line_is_withdrawn_with_what_was_typed() {
    let folder = tempfile::tempdir().unwrap();
    let mut terminal = Terminal::start(folder.path());
    terminal.line("withdraw");
    terminal.wait(r#"withdrawn: Withdrawn("half a line")"#);
    terminal.line("next");
    terminal.wait(r#"input: Line("next")"#);
}

#[test]
fn a_line_that_is_withdrawn_too_late_takes_no_other_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let mut terminal = Terminal::start(folder.path());
    terminal.line("stale");
    terminal.wait("> first");
    terminal.line("");
    terminal.wait("> second");
    terminal.wait("too late");
    terminal.line("still");
    terminal.wait(r#"stale: Line("second still")"#);
}

#[test]
fn an_aside_begins_with_a_text_and_is_not_remembered() {
    let folder = tempfile::tempdir().unwrap();
    let mut terminal = Terminal::start(folder.path());
    terminal.line("aside");
    terminal.wait("reason> since ");
    terminal.line("I say so");
    terminal.wait(r#"aside: Line("since I say so")"#);
    terminal.send("\x1b[A");
    terminal.wait_for_more("> aside", 1);
}

#[test]
fn the_persons_editor_edits_the_message() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("editor"), "sed -i s/tea/coffee/").unwrap();
    let mut terminal = Terminal::start(folder.path());
    terminal.send("more tea\x0f");
    terminal.wait("> more coffee");
    terminal.line("!");
    terminal.wait(r#"input: Line("more coffee!")"#);
    terminal.line("edit");
    terminal.wait("> cold coffee");
    terminal.line("");
    terminal.wait(r#"edited: Line("cold coffee")"#);
    let left: Vec<_> = fs::read_dir(folder.path().join("private")).unwrap().collect();
    assert_eq!(left.len(), 1, "only the history: {left:?}");
}

#[test]
fn an_editor_that_fails_costs_no_message() {
    for (editor, why) in [
        (None, "no editor is configured"),
        (Some("false"), "false ended with exit status: 1"),
        (Some("no-such-editor -w"), "cannot start no-such-editor"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        if let Some(editor) = editor {
            fs::write(folder.path().join("editor"), editor).unwrap();
        }
        let mut terminal = Terminal::start(folder.path());
        terminal.send("my words\x0f");
        terminal.wait(why);
        terminal.line("");
        terminal.wait(r#"input: Line("my words")"#);
    }
}

#[test]
fn vi_keys_are_those_of_vi() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("vi"), "").unwrap();
    let mut terminal = Terminal::start(folder.path());
    terminal.send("one two");
    terminal.wait("> one two");
    terminal.send("\x1b");
    terminal.wait(": one two");
    terminal.send("0dw");
    terminal.wait(": two");
    terminal.send("\x03");
    terminal.wait_without(": two");
    terminal.send("ithree\r");
    terminal.wait(r#"input: Line("three")"#);
}

#[test]
fn the_terminal_is_quiet_while_nothing_is_asked() {
    let folder = tempfile::tempdir().unwrap();
    let mut terminal = Terminal::start(folder.path());
    assert_eq!(terminal.modes(), (false, false, false), "while a line is typed");
    terminal.line("busy");
    terminal.wait("\nbusy");
    assert_eq!(terminal.modes(), (false, false, true), "while a turn runs");
    terminal.send("typed ahead");
    terminal.wait("> typed ahead");
    terminal.line("");
    terminal.wait(r#"input: Line("typed ahead")"#);
}

#[test]
fn the_modes_come_back_when_the_program_leaves_in_the_middle_of_a_line() {
    let folder = tempfile::tempdir().unwrap();
    let mut terminal = Terminal::start(folder.path());
    terminal.line("leave");
    terminal.wait("left");
    assert_eq!(terminal.modes(), (true, true, true));
}
