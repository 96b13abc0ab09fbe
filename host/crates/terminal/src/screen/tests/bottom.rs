//! Tests of the rows below an answer: running calls, and what is typed ahead.

use super::*;

/// The sizes of a small, a usual and a large window: columns and rows.
const SIZES: [(u16, u16); 3] = [(40, 15), (80, 24), (120, 40)];

fn call(text: &str, detail: Option<&str>, seconds: u64) -> RunningCall {
    let detail = detail.map(str::to_owned);
    RunningCall { text: text.to_owned(), detail, since: Duration::from_secs(seconds) }
}

fn typed(queued: &[&str], line: &str, cursor: usize) -> TypedAhead {
    let queued = queued.iter().map(|input| (*input).to_owned()).collect();
    TypedAhead { queued, line: line.to_owned(), cursor }
}

#[test]
fn every_running_call_has_a_row_with_its_time() {
    for (columns, rows) in SIZES {
        let mut screen = terminal(columns, rows);
        screen.show_answer("Some text").unwrap();
        let calls = vec![
            call("files.write /notes/a.md", None, 0),
            call("web.get \x1b[2J", Some("half\nway, 40 %"), 3),
        ];
        screen.set_calls(calls).unwrap();
        screen.advance_time(Duration::from_secs(65)).unwrap();
        let want = [
            "Some text",
            "⠋ files.write /notes/a.md · 1 min 05 s",
            "⠋ web.get \\u{1b}[2J · half\\nway, 40 % · 1 min 02 s",
        ];
        let width = usize::from(columns) - 1;
        let cut = want.map(|row| row.chars().take(width).collect::<String>());
        assert_eq!(seen(&screen), cut.map(|row| row.trim_end().to_owned()));
        screen.finish().unwrap();
        assert_eq!(seen(&screen), ["Some text"]);
    }
}

#[test]
fn many_calls_and_many_queued_inputs_are_counted() {
    for (columns, rows) in SIZES {
        let mut screen = terminal(columns, rows);
        let calls = (0..9).map(|number| call(&format!("a.b {number}"), None, 0)).collect();
        screen.set_calls(calls).unwrap();
        screen.set_typed_ahead(typed(&["one", "two", "three", "four\nfive"], "", 0)).unwrap();
        let seen = seen(&screen);
        assert_eq!(seen[5..8], ["⠋ a.b 5 · 0 s", "… 3 more calls", "… 1 earlier message"]);
        assert_eq!(seen[8..11], ["queued: two", "queued: three", "queued: four\\nfive"]);
        assert!(seen[11].starts_with("Press Up to take back the last queued"), "{seen:?}");
        assert_eq!(seen[12..], [">"]);
    }
}

#[test]
fn the_cursor_is_where_the_user_types() {
    // The line, the cursor's byte in it, the row on a screen of 20 columns, the cursor's column.
    let rows = [
        ("hello", 5, "> hello", 7),
        ("hello", 0, "> hello", 2),
        ("hello", 2, "> hello", 4),
        ("漢字", 3, "> 漢字", 4),
        ("one\ntwo", 7, "> one↵two", 9),
        ("a\x1b[2Jb", 6, "> a\\u{1b}[2Jb", 13),
        ("0123456789012345678901", 22, "> …6789012345678901", 19),
        ("0123456789012345678901", 1, "> 01234567890123456", 3),
        ("漢字漢字漢字漢字漢字漢字", 36, "> …漢字漢字漢字漢字", 19),
    ];
    for (line, cursor, row, column) in rows {
        let mut screen = terminal(20, 6);
        screen.set_status(thinking()).unwrap();
        screen.set_typed_ahead(typed(&[], line, cursor)).unwrap();
        assert_eq!(seen(&screen), ["⠋ thinking · 0 s", row]);
        assert_eq!(screen.out.screen().cursor_position(), (1, column), "{line:?} {cursor}");
        screen.show_answer("text").unwrap();
        assert_eq!(seen(&screen), ["text", "⠋ thinking · 0 s", row]);
        assert_eq!(screen.out.screen().cursor_position(), (2, column), "{line:?} {cursor}");
        screen.set_typed_ahead(TypedAhead::default()).unwrap();
        screen.finish().unwrap();
        assert_eq!(seen(&screen), ["text"]);
    }
}

#[test]
fn what_was_typed_ahead_is_taken_back_in_order() {
    let mut all = typed(&["one", "two"], "three", 2);
    assert!(all.take_back_last());
    assert_eq!(all, typed(&["one"], "two\nthree", 9));
    all.take_back_all();
    assert_eq!(all, typed(&[], "one\ntwo\nthree", 13));
    assert!(!all.take_back_last());
    assert_eq!(all.take_first(), None);
    assert_eq!(all.take_line(), "one\ntwo\nthree");
    assert!(all.is_empty());
}
