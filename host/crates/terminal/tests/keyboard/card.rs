//! Tests of cards: keys that answer, and keys that come too early.

use super::Terminal;

/// The end of the line that names the keys.
const KEYS: &str = "[?] more";

fn with_card(folder: &std::path::Path) -> Terminal {
    let mut terminal = Terminal::start(folder);
    terminal.line("card");
    terminal.wait(KEYS);
    terminal
}

#[track_caller]
fn check(keys: &str, answer: &str) {
    let folder = tempfile::tempdir().unwrap();
    let mut terminal = with_card(folder.path());
    terminal.send(keys);
    terminal.wait(&format!("answer: {answer}"));
}

#[test]
fn a_key_answers() {
    check("y", "Key(Once)");
    check("n", "Key(No)");
    check("r", "Key(NoWithReason)");
    check("\x03", "Key(Cancel)");
    check("\x1b", "Key(Cancel)");
}

#[test]
fn a_card_is_read_before_it_is_answered() {
    let folder = tempfile::tempdir().unwrap();
    let mut terminal = Terminal::start(folder.path());
    // Keys typed after the line that opens the card do not answer it.
    terminal.send("card\ryyyy");
    terminal.wait("approval 1 of 2: mail.send asks to run");
    terminal.send("yyyy");
    terminal.wait(KEYS);
    assert!(!terminal.screen().contains("answer:"), "{}", terminal.screen());
    terminal.send("n");
    terminal.wait("answer: Key(No)");
}

#[test]
fn no_paste_no_flood_and_no_other_key_is_an_answer() {
    let folder = tempfile::tempdir().unwrap();
    let mut terminal = Terminal::start(folder.path());
    // Everything below fits on it.
    terminal.resize(120, 80);
    terminal.line("card");
    terminal.wait(KEYS);
    for keys in ["\r", " ", "x", "\x1b[200~y\x1b[201~", "yy", "ny", "y\r", "\x1b[A", "\x04"] {
        let before = terminal.screen().matches(KEYS).count();
        terminal.send(keys);
        terminal.wait_for_more(KEYS, before);
        assert!(!terminal.screen().contains("answer:"), "{keys:?}");
    }
    terminal.send("s");
    terminal.wait("answer: Key(Session)");
}

#[test]
fn pages_show_all_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let mut terminal = Terminal::start(folder.path());
    terminal.resize(60, 80);
    terminal.line("card");
    terminal.wait(KEYS);
    assert!(terminal.screen().contains("more characters"));
    terminal.send("?");
    terminal.wait("page 1 of ");
    terminal.send("?");
    terminal.wait("page 2 of ");
    terminal.send("y");
    terminal.wait("answer: Key(Once)");
}

#[test]
fn a_small_window_showed_neither_the_question_nor_that_lines_were_gone() {
    let folder = tempfile::tempdir().unwrap();
    let mut terminal = Terminal::start(folder.path());
    terminal.resize(15, 40);
    terminal.line("card");
    terminal.wait("part 1 of ");
    terminal.wait(KEYS);
    // What the call would do comes first. What "always" would write is on a later part.
    assert!(terminal.screen().contains("approval 1 of 2: mail.send"), "{}", terminal.screen());
    let count = terminal.screen().split("part 1 of ").nth(1).map(|rest| rest[..1].to_owned());
    let count: usize = count.and_then(|digit| digit.parse().ok()).unwrap();
    for part in 2..=count {
        check_next_view(&mut terminal, &format!("part {part} of "));
    }
    for page in 1..=2 {
        check_next_view(&mut terminal, &format!("page {page} of "));
    }
}

#[track_caller]
fn check_next_view(terminal: &mut Terminal, number: &str) {
    terminal.send("?");
    // The keys of the page before may still be there while this one is drawn.
    terminal.wait_behind(number, KEYS);
    let screen = terminal.screen();
    for wanted in ["mail.send asks to run", "[y] once", "[c] cancel the turn"] {
        assert!(screen.contains(wanted), "no {wanted:?} on\n{screen}");
    }
    assert!(!screen.contains("scroll up"), "{screen}");
}

#[test]
fn a_card_is_withdrawn() {
    let folder = tempfile::tempdir().unwrap();
    let mut terminal = Terminal::start(folder.path());
    terminal.line("withdraw-card");
    terminal.wait("withdrawn: Withdrawn");
    terminal.line("next");
    terminal.wait(r#"input: Line("next")"#);
}

#[test]
fn ctrl_c_is_a_key_while_a_card_is_open_and_lines_still_end_well() {
    let folder = tempfile::tempdir().unwrap();
    let terminal = with_card(folder.path());
    assert_eq!(terminal.modes(), (false, false, false));
    let staircase = terminal.screen().lines().any(|line| line.starts_with("                     "));
    assert!(!staircase, "{}", terminal.screen());
}
