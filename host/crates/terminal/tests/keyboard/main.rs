//! Tests of the keyboard at a terminal: input, screen, and the modes afterwards.
//!
//! Each test starts this program again on its own terminal, as [`child`], and reads the screen that
//! a user would see.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

mod card;
mod child;
mod lines;
mod terminal;

use terminal::Terminal;

/// Not a test itself: it runs on the terminal of a test.
#[test]
fn child() {
    let folder = std::env::args().find_map(|arg| arg.strip_prefix("folder=").map(str::to_owned));
    if let Some(folder) = folder {
        child::converse(folder.as_ref());
    }
}
