//! Tests of size changes while an answer arrives.

use super::*;

const TEXT: &str = "First paragraph that is final.\n\nSecond one, that is longer and still open";

#[test]
fn a_wider_window_is_filled() {
    let mut screen = terminal(20, 12);
    screen.set_status(thinking()).unwrap();
    screen.show_answer(TEXT).unwrap();
    resize(&mut screen, 60, 12);
    assert_eq!(
        seen(&screen),
        [
            "First paragraph that",
            "is final.",
            "",
            "Second one, that is longer and still open",
            "⠋ thinking · 0 s",
        ]
    );
    screen.show_answer(" now").unwrap();
    screen.finish().unwrap();
    assert_eq!(seen(&screen)[3..], ["Second one, that is longer and still open now"]);
}

#[test]
fn a_narrower_window_loses_nothing_that_is_final() {
    let mut screen = terminal(60, 12);
    screen.print_note("earlier").unwrap();
    screen.set_status(thinking()).unwrap();
    screen.show_answer(TEXT).unwrap();
    resize(&mut screen, 16, 12);
    let rows = seen(&screen);
    assert_eq!(rows[..3], ["earlier", "First paragraph", ""]);
    assert_eq!(rows[3..6], ["Second one, that", "is longer and", "still open"]);
    screen.finish().unwrap();
    assert_eq!(seen(&screen)[3..], ["Second one, that", "is longer and", "still open"]);
}

#[test]
fn a_lower_and_a_higher_window_keep_all_in_order() {
    let mut screen = terminal(40, 20);
    let text: String = (0..30).map(|line| format!("Paragraph {line}.\n\n")).collect();
    screen.set_status(thinking()).unwrap();
    for (index, piece) in text.split_inclusive('.').enumerate() {
        screen.show_answer(piece).unwrap();
        match index {
            8 => resize(&mut screen, 40, 5),
            14 => resize(&mut screen, 40, 1),
            20 => resize(&mut screen, 40, 12),
            _ => {}
        }
    }
    screen.finish().unwrap();
    let filled = |rows: Vec<String>| rows.into_iter().filter(|row| !row.is_empty()).collect();
    let mut paragraphs: Vec<_> = filled(everything(&mut screen));
    // Live rows that scrolled out of a lower window are out of reach and appear twice.
    paragraphs.dedup();
    assert_eq!(paragraphs, filled(rendered(&text, 40)));
}
