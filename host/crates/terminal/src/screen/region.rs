//! The rows at the bottom of the screen that are drawn again and again, as codes for a terminal.
//!
//! Between two drawings the cursor stands behind the last row, or at the beginning of a line when
//! there is none. Nothing but relative movements is used, so what stands above is safe wherever the
//! region is, and however the screen was scrolled.

/// Begins changes that are shown all at once, by terminals that know how.
const BEGIN: &str = "\x1b[?2026h";

/// Ends them.
const END: &str = "\x1b[?2026l";

/// Erases from the cursor to the end of the screen.
const ERASE_BELOW: &str = "\x1b[J";

/// Rows on a screen, as they were written.
#[derive(Debug, Default)]
pub(super) struct Region {
    rows: Vec<String>,
}

impl Region {
    /// Returns what writes lines above the region and makes its rows these; nothing if nothing
    /// changes. No row may be wider than the screen, and not all of them higher.
    pub(super) fn draw(&mut self, above: &[String], rows: Vec<String>) -> String {
        if above.is_empty() && rows == self.rows {
            return String::new();
        }
        let kept = if above.is_empty() { self.kept(&rows) } else { 0 };
        let mut codes = format!("{BEGIN}{}{ERASE_BELOW}", self.to_row(kept));
        for line in above {
            codes.push_str(line);
            codes.push_str("\r\n");
        }
        codes.push_str(&rows[kept..].join("\r\n"));
        codes.push_str(END);
        self.rows = rows;
        codes
    }

    /// Returns what erases the region on a screen whose size has changed. A terminal may have
    /// broken its rows anew; the cursor goes up no further than it surely can, since a rest of the
    /// region does less harm above than text that is gone.
    pub(super) fn clear(&mut self) -> String {
        if self.rows.is_empty() {
            return String::new();
        }
        let codes = format!("{}{ERASE_BELOW}", self.to_row(0));
        self.rows.clear();
        codes
    }

    /// Returns how many rows, from the first, can stay as they are. The last one that is drawn is
    /// always written, since the cursor has to end behind it.
    fn kept(&self, rows: &[String]) -> usize {
        let same = self.rows.iter().zip(rows).take_while(|(old, new)| old == new).count();
        same.min(self.rows.len().saturating_sub(1)).min(rows.len().saturating_sub(1))
    }

    /// Returns what moves the cursor to the beginning of a row.
    fn to_row(&self, index: usize) -> String {
        match self.rows.len().saturating_sub(1 + index) {
            0 => "\r".to_owned(),
            up => format!("\r\x1b[{up}A"),
        }
    }
}
