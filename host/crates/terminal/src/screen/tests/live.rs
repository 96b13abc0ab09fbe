//! Tests of a live region that is redrawn.

use super::*;

#[test]
fn an_answer_grows_above_the_status_and_leaves_no_trace() {
    let mut screen = terminal(30, 10);
    screen.set_status(thinking()).unwrap();
    assert_eq!(seen(&screen), ["⠋ thinking · 0 s"]);
    screen.show_answer("# Hi\n\nSome **bo").unwrap();
    assert_eq!(seen(&screen), ["# Hi", "", "Some bo", "⠋ thinking · 0 s"]);
    screen.show_answer("ld** text\n\n- a").unwrap();
    assert_eq!(seen(&screen), ["# Hi", "", "Some bold text", "", "• a", "⠋ thinking · 0 s"]);
    screen.finish().unwrap();
    assert_eq!(seen(&screen), ["# Hi", "", "Some bold text", "", "• a"]);
    assert_eq!(screen.out.screen().cursor_position(), (5, 0));
}

#[test]
fn the_status_says_what_is_waited_for() {
    let since = Duration::from_secs(10);
    let rows = [
        (StatusActivity::Thinking, None, 10_000, "⠋ thinking · 0 s"),
        (StatusActivity::Answering, Some(7), 12_345, "⠸ answering · 2 s · 7 tokens"),
        (StatusActivity::Calling, None, 71_000, "⠋ calling tools · 1 min 01 s"),
        (
            StatusActivity::Calling,
            Some(12_345_678),
            3_700_000,
            "⠋ calling tools · 1 h 01 min · 12,345,678 tokens",
        ),
        (
            StatusActivity::Other("retrying\n".to_owned()),
            Some(1_000),
            10_950,
            "⠏ retrying\\n · 0 s · 1,000 tokens",
        ),
    ];
    for (activity, tokens, now, want) in rows {
        let mut screen = terminal(80, 5);
        screen.set_status(Some(StatusLine { activity, since, tokens, context: None })).unwrap();
        screen.advance_time(Duration::from_millis(now)).unwrap();
        assert_eq!(seen(&screen), [want]);
    }
}

#[test]
fn a_status_that_is_too_long_is_cut() {
    let mut screen = terminal(12, 4);
    let activity = StatusActivity::Other("漢字".repeat(20));
    screen
        .set_status(Some(StatusLine {
            activity,
            since: Duration::ZERO,
            tokens: None,
            context: None,
        }))
        .unwrap();
    screen.advance_time(Duration::from_millis(100)).unwrap();
    assert_eq!(seen(&screen), ["⠙ 漢字漢字"]);
    screen.finish().unwrap();
    assert!(seen(&screen).is_empty());
}

#[test]
fn lines_are_printed_above_what_is_alive() {
    let mut screen = terminal(20, 8);
    screen.set_status(thinking()).unwrap();
    screen.show_answer("still open").unwrap();
    screen.print_note("a note\nof two").unwrap();
    assert_eq!(seen(&screen), ["a note", "of two", "still open", "⠋ thinking · 0 s"]);
    screen.print_note("\x1b[2Jbad").unwrap();
    screen.show_answer(" text").unwrap();
    screen.finish().unwrap();
    assert_eq!(seen(&screen), ["a note", "of two", "\\u{1b}[2Jbad", "still open text"]);
}

#[test]
fn a_text_that_is_higher_than_the_screen_scrolls() {
    let text: String = (0..50).map(|line| format!("- item {line}\n")).collect();
    let mut screen = terminal(20, 6);
    screen.set_status(thinking()).unwrap();
    for c in text.chars() {
        screen.show_answer(&c.to_string()).unwrap();
        let rows = seen(&screen);
        assert_eq!(rows.last().map(String::as_str), Some("⠋ thinking · 0 s"));
    }
    screen.finish().unwrap();
    assert_eq!(everything(&mut screen), rendered(&text, 20));
}

#[test]
fn of_a_block_that_is_higher_than_the_screen_the_end_is_seen() {
    let text = "word ".repeat(60);
    let mut screen = terminal(20, 6);
    screen.print_note("before").unwrap();
    screen.set_status(thinking()).unwrap();
    for piece in ["> ", &text, "last"] {
        screen.show_answer(piece).unwrap();
    }
    let rows = seen(&screen);
    assert_eq!(rows.len(), 6);
    assert_eq!(rows[0], "before");
    assert_eq!(&rows[3..], ["│ word word word", "│ last", "⠋ thinking · 0 s"]);
    screen.finish().unwrap();
    let want = [vec!["before".to_owned()], rendered(&format!("> {text}last"), 20)].concat();
    assert_eq!(everything(&mut screen), want);
}

#[test]
fn wide_characters_at_the_edge_keep_the_region_in_its_place() {
    for columns in 8..13 {
        let text =
            "漢字かな交じり文，漢字\n\n```\n漢字かな交じりの長い行である\n```\n\n👍🏽❤\u{fe0f} done";
        let mut screen = terminal(columns, 30);
        screen.print_note("top").unwrap();
        screen.set_status(thinking()).unwrap();
        for (index, c) in text.chars().enumerate() {
            screen.show_answer(&c.to_string()).unwrap();
            screen.advance_time(Duration::from_millis(index as u64 * 100)).unwrap();
        }
        screen.finish().unwrap();
        let rows = everything(&mut screen);
        assert_eq!(rows[0], "top");
        assert_eq!(rows[1..].len(), rendered(text, columns).len(), "{columns}: {rows:?}");
    }
}

#[test]
fn what_a_model_writes_is_shown_and_not_obeyed() {
    let mut screen = terminal(60, 40);
    screen.print_note("safe").unwrap();
    screen.set_status(thinking()).unwrap();
    let pieces = ["\x1b", "[2J\x1b[1;1Hgone ", "\x1b]0;title\x07 ", "a\rb\x08 \u{9b}2J &#27;[A"];
    pieces.iter().for_each(|piece| screen.show_answer(piece).unwrap());
    pieces.iter().for_each(|piece| screen.show_reasoning(piece).unwrap());
    screen.finish().unwrap();
    let shown =
        ["\\u{1b}[2J\\u{1b}[1;1Hgone \\u{1b}]0;title\\u{7} a b\\u{8}", "\\u{9b}2J \\u{1b}[A"];
    let want = [&["safe"], &shown[..], &[""], &shown[..]].concat();
    assert_eq!(seen(&screen), want);
}

#[test]
fn reasoning_is_faint_and_stands_apart() {
    let mut screen = terminal(30, 10);
    screen.show_reasoning("Hm, **so**").unwrap();
    assert!(screen.out.screen().cell(0, 0).is_some_and(vt100::Cell::dim));
    screen.show_answer("Answer").unwrap();
    assert_eq!(seen(&screen), ["Hm, so", "", "Answer"]);
    assert!(screen.out.screen().cell(2, 0).is_some_and(|cell| !cell.dim()));
    screen.finish_text().unwrap();
    screen.show_reasoning("again").unwrap();
    screen.finish().unwrap();
    assert_eq!(seen(&screen), ["Hm, so", "", "Answer", "", "again"]);
}

#[test]
fn a_status_comes_and_goes_below_an_open_text() {
    let mut screen = terminal(30, 20);
    screen.print_note("before").unwrap();
    screen.show_answer("open\\\ntext").unwrap();
    for _ in 0..3 {
        screen.set_status(thinking()).unwrap();
        assert_eq!(seen(&screen), ["before", "open", "text", "⠋ thinking · 0 s"]);
        screen.set_status(None).unwrap();
        assert_eq!(seen(&screen), ["before", "open", "text"]);
    }
    screen.show_answer(" more").unwrap();
    screen.finish().unwrap();
    assert_eq!(seen(&screen), ["before", "open", "text more"]);
}

#[test]
fn two_texts_stand_apart_and_a_note_between_them_is_enough() {
    let mut screen = terminal(30, 20);
    for text in ["one\n\n", "two"] {
        screen.show_answer(text).unwrap();
        screen.finish_text().unwrap();
    }
    screen.print_note("note").unwrap();
    screen.show_answer("three").unwrap();
    screen.finish().unwrap();
    screen.show_answer("four").unwrap();
    screen.finish().unwrap();
    assert_eq!(seen(&screen), ["one", "", "two", "note", "three", "four"]);
}

#[test]
fn a_long_block_is_not_laid_out_with_every_piece() {
    let mut screen = TerminalScreen::new(Vec::new(), size(40, 10), ColourMode::Off);
    screen.show_answer(&"> words that stay open\n".repeat(400)).unwrap();
    assert!(screen.out.is_empty());
    screen.advance_time(Duration::ZERO).unwrap();
    assert!(!screen.out.is_empty());
    screen.out.clear();
    screen.show_answer("> more\n").unwrap();
    assert!(screen.out.is_empty());
    screen.finish().unwrap();
    assert!(String::from_utf8(screen.out).unwrap().contains("more"));
}

#[test]
fn a_terminal_that_does_not_know_its_size_has_the_usual_one() {
    assert_eq!(size(0, 0), size(80, 24));
    assert_eq!((size(0, 7).columns(), size(7, 0).rows()), (80, 24));
}

#[test]
fn without_colour_the_layout_is_the_same() {
    let text = "# T\n\n**b** `c`\n\n```rust\nx\n```\n";
    let mut screens = [ColourMode::On, ColourMode::Off].map(|colour| {
        let mut screen = terminal_in(colour, 20, 12);
        screen.set_status(thinking()).unwrap();
        screen.show_answer(text).unwrap();
        screen
    });
    assert_eq!(seen(&screens[0]), seen(&screens[1]));
    let mut plain = TerminalScreen::new(Vec::new(), size(20, 12), ColourMode::Off);
    plain.set_status(thinking()).unwrap();
    plain.show_answer(text).unwrap();
    plain.finish().unwrap();
    let codes = String::from_utf8(plain.out).unwrap();
    assert!(!codes.split("\x1b[").skip(1).any(|code| {
        code.trim_start_matches(|c: char| c.is_ascii_digit() || c == ';').starts_with('m')
    }));
    screens.iter_mut().for_each(|screen| screen.finish().unwrap());
}

#[test]
fn what_did_not_change_is_not_drawn() {
    let mut screen = TerminalScreen::new(Vec::new(), size(40, 10), ColourMode::Off);
    screen.show_answer("a line that stays\nand ").unwrap();
    screen.set_status(thinking()).unwrap();
    screen.out.clear();
    screen.advance_time(Duration::from_millis(50)).unwrap();
    assert!(screen.out.is_empty());
    screen.advance_time(Duration::from_millis(100)).unwrap();
    let codes = String::from_utf8(std::mem::take(&mut screen.out)).unwrap();
    assert_eq!(codes, "\x1b[?2026h\r\x1b[J⠙ thinking · 0 s\x1b[?2026l");
}

#[test]
fn nothing_is_written_when_nothing_is_said() {
    let mut screen = TerminalScreen::new(Vec::new(), size(40, 10), ColourMode::On);
    screen.advance_time(Duration::from_secs(1)).unwrap();
    screen.resize(size(20, 5)).unwrap();
    screen.set_status(None).unwrap();
    screen.show_answer("").unwrap();
    screen.finish().unwrap();
    assert!(screen.out.is_empty(), "{:?}", screen.out);
}
