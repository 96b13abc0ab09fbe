//! The keyboard at a terminal: what is typed, what is seen, and the modes that are left behind.
//!
//! Each test starts this program again on a terminal of its own, as [`child`], and looks at the
//! screen that a person would see.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

mod card;
mod child;
mod lines;
mod terminal;

use terminal::Terminal;

/// Not a test by itself: what runs on the terminal of a test.
#[test]
fn child() {
    let folder = std::env::args().find_map(|arg| arg.strip_prefix("folder=").map(str::to_owned));
    if let Some(folder) = folder {
        child::converse(folder.as_ref());
    }
}
