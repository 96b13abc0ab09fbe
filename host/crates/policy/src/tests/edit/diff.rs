//! The difference between two texts, as it is printed.

use crate::edit::{LineChange, diff_lines};

/// The lines of a difference, each as its mark, its number and its text.
fn shown(before: &str, after: &str) -> Vec<String> {
    let mark = |change| match change {
        LineChange::Unchanged => ' ',
        LineChange::Added => '+',
        LineChange::Removed => '-',
    };
    let lines = diff_lines(before, after).into_iter();
    lines.map(|line| format!("{}{}{}", mark(line.change), line.number, line.text)).collect()
}

#[test]
fn changes_are_shown_with_the_lines_around_them() {
    let rows: [(&str, &str, &[&str]); 8] = [
        ("", "", &[]),
        ("a\nb\n", "a\nb\n", &[]),
        ("", "a\n", &["+1a"]),
        ("a\n", "", &["-1a"]),
        ("a\nb\nc\nd\ne", "a\nb\nx\nd\ne", &[" 1a", " 2b", "-3c", "+3x", " 4d", " 5e"]),
        (
            "1\n2\n3\n4\n5\n6\n7\n8\n9\n",
            "1\n3\n4\n5\n6\n7\n8\n9\nx\n",
            &[" 11", "-22", " 23", " 34", " 78", " 89", "+9x"],
        ),
        ("a\nb\na\nb\n", "b\na\n", &["-1a", " 1b", " 2a", "-4b"]),
        ("a\r\nb\r\n", "a\r\nx\r\n", &[" 1a", "-2b", "+2x"]),
    ];
    for (before, after, want) in rows {
        assert_eq!(shown(before, after), want, "{before:?} {after:?}");
    }
}

#[test]
fn texts_that_differ_in_much_are_not_searched_for_what_stayed() {
    let text = |word: &str, lines: usize| {
        let lines =
            (0..lines).map(|n| if n == 10 { "same\n".into() } else { format!("{word}{n}\n") });
        lines.collect::<String>()
    };
    let kept = |lines| {
        let changed = diff_lines(&text("a", lines), &text("b", lines));
        changed.iter().filter(|line| line.change == LineChange::Unchanged).count()
    };
    assert_eq!([kept(2_000), kept(3_000)], [1, 0]);
}
