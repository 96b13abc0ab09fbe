//! Tests of rendered text, in pieces and as a whole.

mod layout;
mod property;
mod streaming;

use super::*;

/// Compares the layout of a text, without its styles.
#[track_caller]
fn check(text: &str, width: usize, want: &str) {
    let lines = render_markdown(text, width);
    let found: String = lines.iter().map(|line| line.text() + "\n").collect();
    assert_eq!(found, want, "{text:?}\n{found}");
}

/// Returns the text of each line.
fn texts(lines: &[StyledLine]) -> Vec<String> {
    lines.iter().map(StyledLine::text).collect()
}
