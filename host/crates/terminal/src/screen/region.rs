//! The redrawn rows at the bottom of the screen, as codes for a terminal.
//!
//! Between two drawings the cursor is in the last row, or at the beginning of a line if the region
//! is empty. All movements are relative, so the text above stays intact regardless of the
//! region's position and of scrolling.

/// Begins a synchronised update on terminals that support it.
const BEGIN: &str = "\x1b[?2026h";

/// Ends the synchronised update.
const END: &str = "\x1b[?2026l";

/// Erases from the cursor to the end of the screen.
const ERASE_BELOW: &str = "\x1b[J";

/// The rows on the screen, as they were written.
#[derive(Debug, Default)]
pub(super) struct LiveRegion {
    rows: Vec<String>,
}

impl LiveRegion {
    /// Returns the codes that write lines above the region and replace its rows, or an empty string
    /// if nothing changes.
    ///
    /// No row may be wider than the screen, and all rows together must fit its height.
    pub(super) fn draw(&mut self, above: &[String], rows: Vec<String>) -> String {
        if above.is_empty() && rows == self.rows {
            return String::new();
        }
        let kept = if above.is_empty() { self.count_unchanged_rows(&rows) } else { 0 };
        let mut codes = format!("{BEGIN}{}{ERASE_BELOW}", self.cursor_to_row(kept));
        for line in above {
            codes.push_str(line);
            codes.push_str("\r\n");
        }
        codes.push_str(&rows[kept..].join("\r\n"));
        codes.push_str(END);
        self.rows = rows;
        codes
    }

    /// Returns the codes that erase the region after a change of size.
    ///
    /// The terminal may have wrapped the rows again. The cursor moves up only as far as is certain:
    /// remains of the region do less harm than erased text.
    pub(super) fn clear(&mut self) -> String {
        if self.rows.is_empty() {
            return String::new();
        }
        let codes = format!("{}{ERASE_BELOW}", self.cursor_to_row(0));
        self.rows.clear();
        codes
    }

    /// Returns how many rows from the top can stay. The last row is always written, so that the
    /// cursor ends in it.
    fn count_unchanged_rows(&self, rows: &[String]) -> usize {
        let same = self.rows.iter().zip(rows).take_while(|(old, new)| old == new).count();
        same.min(self.rows.len().saturating_sub(1)).min(rows.len().saturating_sub(1))
    }

    /// Returns the codes that move the cursor to the beginning of a row.
    fn cursor_to_row(&self, index: usize) -> String {
        match self.rows.len().saturating_sub(1 + index) {
            0 => "\r".to_owned(),
            up => format!("\r\x1b[{up}A"),
        }
    }
}
