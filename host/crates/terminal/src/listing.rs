//! Lists in columns, such as plugins with their versions, and tables: lists whose columns have
//! names.
//!
//! Nothing is cut. Where an output is too narrow, the columns give way from the right. In a list
//! the last one wraps, then the ones before it join it, and in the end all but the first are below
//! the first. In a table each column wraps, and those without room are below the row, with their
//! names.

use anstyle::{AnsiColor, Style};
use sallyport_contract::text;

use crate::{columns::text_columns, style::StyledLine, wrap::fit_column_widths};

/// Space between two columns.
const GAP: &str = "  ";

/// Separator of cells that share a column.
const JOINT: &str = " · ";

/// Space before the lines below a row.
const INDENT: &str = "    ";

/// Narrowest last column that text is wrapped in, in terminal columns. A narrower one is hard to
/// read.
const LAST_COLUMNS_MIN: usize = 24;

/// Narrowest column of a table that text is wrapped in, if the text is wider. A time fits.
const TABLE_COLUMNS_MIN: usize = 20;

/// What a table has in a cell without a text, because an empty one could be taken for a mistake.
const NOTHING: &str = "-";

const CYAN: Style = AnsiColor::Cyan.on_default();
const BOLD: Style = Style::new().bold();

/// A row of a list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListRow {
    cells: Vec<String>,
    below: Vec<String>,
}

impl ListRow {
    /// Creates a row. Line breaks in a cell become spaces, and what a terminal would interpret is
    /// escaped.
    pub fn new<S: AsRef<str>>(cells: impl IntoIterator<Item = S>) -> Self {
        let escaped = |cell: S| text::escape_line(&cell.as_ref().trim().replace('\n', " "));
        Self { cells: cells.into_iter().map(escaped).collect(), below: Vec::new() }
    }

    /// Adds lines below the row, escaped in the same way.
    pub fn with_below<S: AsRef<str>>(mut self, lines: impl IntoIterator<Item = S>) -> Self {
        self.below = Self::new(lines).cells;
        self
    }
}

/// Lays out rows for an output of `width` columns, or without a limit. The first cell of each row is
/// its name.
pub fn list_lines(rows: &[ListRow], width: Option<usize>) -> Vec<StyledLine> {
    let mut widths = Vec::new();
    for row in rows {
        widths.resize(widths.len().max(row.cells.len()), 0);
        for (width, cell) in widths.iter_mut().zip(&row.cells) {
            *width = text_columns(cell).max(*width);
        }
    }
    let width = width.unwrap_or(usize::MAX);
    let sum = |widths: &[usize]| widths.iter().map(|width| width + GAP.len()).sum::<usize>();
    let fits = |aligned: &usize| {
        let rest = sum(&widths[*aligned..]).saturating_sub(GAP.len());
        sum(&widths[..*aligned]).saturating_add(rest.min(LAST_COLUMNS_MIN)) <= width
    };
    let aligned = (1..widths.len()).rev().find(fits);
    let mut lines = Vec::new();
    for row in rows {
        let (first, rest) = row.cells.split_at(aligned.unwrap_or(1).min(row.cells.len()));
        let mut line = StyledLine::default();
        for (index, (cell, width)) in first.iter().zip(&widths).enumerate() {
            let padding = " ".repeat(width - text_columns(cell) + GAP.len());
            line.push(cell, if index == 0 { CYAN } else { Style::new() });
            line.push(&padding, Style::new());
        }
        let rest = rest.iter().filter(|cell| !cell.is_empty());
        let rest = rest.map(String::as_str).collect::<Vec<_>>().join(JOINT);
        let mut below = row.below.clone();
        match aligned {
            Some(_) => line.push(&rest, Style::new()),
            None if rest.is_empty() => {}
            None => below.insert(0, rest),
        }
        let hanging = aligned.map_or(INDENT.len(), |aligned| sum(&widths[..aligned]));
        lines.extend(line.trim_end().fold_to_width(width, hanging));
        let below = below.iter().map(|line| StyledLine::plain(format!("{INDENT}{line}")));
        lines.extend(below.flat_map(|line| line.fold_message(width)));
    }
    lines
}

/// Lays out rows below the names of their columns, for an output of `width` columns, or without a
/// limit, where each row is one line. Rows have a cell for each name, of which the first is never
/// empty.
pub fn table_lines(names: &[&str], rows: &[ListRow], width: Option<usize>) -> Vec<StyledLine> {
    let head = ListRow::new(names);
    let mut wanted: Vec<usize> = head.cells.iter().map(|name| text_columns(name)).collect();
    for row in rows {
        for (width, cell) in wanted.iter_mut().zip(&row.cells) {
            *width = text_columns(cell).max(*width);
        }
    }
    let width = width.unwrap_or(usize::MAX);
    let aligned = (2..=wanted.len()).rev();
    let fits = |count| fit_column_widths(&wanted[..count], width, GAP.len(), TABLE_COLUMNS_MIN);
    let widths = aligned.map(fits).find_map(|widths| widths);
    let widths = widths.unwrap_or_else(|| vec![width; wanted.len().min(1)]);
    let mut lines = table_row_lines(&head.cells, &widths, Some(BOLD));
    for row in rows {
        lines.extend(table_row_lines(&row.cells, &widths, None));
        let rest = names.iter().zip(&row.cells).skip(widths.len());
        let rest = rest.filter(|(_, cell)| !cell.is_empty());
        let rest = rest.map(|(name, cell)| format!("{name}: {cell}"));
        lines.extend(rest.chain(row.below.iter().cloned()).flat_map(|line| {
            StyledLine::plain(format!("{INDENT}{line}")).fold_to_width(width, 2 * INDENT.len())
        }));
    }
    lines
}

/// The lines of one row of a table, as many as its highest cell has.
fn table_row_lines(cells: &[String], widths: &[usize], style: Option<Style>) -> Vec<StyledLine> {
    let cell_lines = |(cell, width): (&String, &usize)| {
        let text = if cell.is_empty() { NOTHING } else { cell };
        StyledLine::plain(text).fold_to_width(*width, 0)
    };
    let columns: Vec<Vec<StyledLine>> = cells.iter().zip(widths).map(cell_lines).collect();
    let height = columns.iter().map(Vec::len).max().unwrap_or(0);
    let table_line = |index: usize| {
        let mut line = StyledLine::default();
        for (column, (cell, width)) in columns.iter().zip(widths).enumerate() {
            let text = cell.get(index).map(StyledLine::text).unwrap_or_default();
            let plain = if column == 0 { CYAN } else { Style::new() };
            line.push(&text, style.unwrap_or(plain));
            // The last column has no end.
            if column + 1 < columns.len() {
                // A grapheme cluster is not folded, so a cell can be wider than its column.
                let room = width.saturating_sub(text_columns(&text)) + GAP.len();
                line.push(&" ".repeat(room), Style::new());
            }
        }
        line.trim_end()
    };
    (0..height).map(table_line).collect()
}

/// Draws a part of a whole as a bar of `columns` characters, such as `###.......`. What is more than
/// nothing is never drawn as nothing.
pub fn bar_text(part: u64, whole: u64, columns: u32) -> String {
    let columns = u64::from(columns);
    let filled = match part.min(whole) {
        0 => 0,
        part => (u128::from(part) * u128::from(columns)).div_ceil(u128::from(whole)) as u64,
    };
    let repeat = |mark: &str, count: u64| mark.repeat(count as usize);
    repeat("#", filled) + &repeat(".", columns - filled)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows() -> Vec<ListRow> {
        vec![
            ListRow::new([
                "clock",
                "1.0.0",
                "component",
                "2 tools",
                "Tells the time in any timezone.",
            ]),
            ListRow::new([
                "weather-forecast",
                "0.12.1",
                "script",
                "1 tool, guide",
                "Weather:\nnow and \u{1b}[2J later, for any place on earth that has a name.",
            ])
            .with_below(["a note"]),
            ListRow::new(["rejected"]).with_below(["/plugins/x: no manifest"]),
        ]
    }

    fn shown(width: Option<usize>) -> String {
        let lines = list_lines(&rows(), width);
        assert!(lines.iter().all(|line| line.width() <= width.unwrap_or(usize::MAX)));
        lines.iter().map(|line| line.text() + "\n").collect()
    }

    #[test]
    fn columns_give_way_from_the_right_and_nothing_is_cut() {
        let widths = [None, Some(120), Some(80), Some(60), Some(40), Some(24)];
        let all = widths.map(|width| {
            format!(
                "{width:?}
{}",
                shown(width)
            )
        });
        insta::assert_snapshot!(all.join(
            "
"
        ));
        let words = |width| {
            shown(width)
                .replace(JOINT, GAP)
                .replace(" ·\n", "\n")
                .split_whitespace()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        for width in 24..200 {
            let mut found = words(Some(width));
            let mut all = words(None);
            found.sort();
            all.sort();
            assert_eq!(found, all, "{width}");
        }
    }

    #[test]
    fn lists_without_rows_or_with_one_column_are_lists() {
        assert_eq!(list_lines(&[], Some(80)), []);
        let lines = list_lines(&[ListRow::new(["one"]), ListRow::new(["two"])], Some(10));
        assert_eq!(lines.iter().map(StyledLine::text).collect::<Vec<_>>(), ["one", "two"]);
    }

    const NAMES: [&str; 5] = ["plugin", "works", "tools", "net", "missing"];

    fn table() -> Vec<ListRow> {
        let long = "x".repeat(200);
        vec![
            ListRow::new(["clock", "yes", "2 allow", "", ""]),
            ListRow::new([
                "weather",
                "partly",
                "1 allow, 1 ask",
                "GET https://api.open-meteo.com/v1/forecast, GET https://geocoding.example/v1/**",
                "the variable TZ",
            ])
            .with_below(["a note"]),
            ListRow::new([
                "hostile",
                "no",
                "1 deny",
                "\u{1b}[2J<b>\u{202e}gnp\r\n漢字漢字漢字",
                &long,
            ]),
            ListRow::new([long.as_str(), "yes", "", "", ""]),
        ]
    }

    #[test]
    fn a_cell_that_cannot_be_folded_broke_its_table() {
        // Leading consonants of Hangul are one grapheme cluster, however many there are.
        let wide = "\u{1100}".repeat(30);
        let row = ListRow::new([wide.as_str(), &"x".repeat(80)]);
        let lines = table_lines(&["a", "b"], &[row], Some(60));
        let text: String = lines.iter().map(StyledLine::text).collect();
        assert!(text.contains(&wide), "{text}");
        assert_eq!(text.matches('x').count(), 80, "{text}");
    }

    #[test]
    fn a_table_wraps_its_columns_and_puts_what_has_no_room_below() {
        let widths = [None, Some(120), Some(80), Some(40)];
        let lay_out = |width: Option<usize>| {
            let lines = table_lines(&NAMES, &table(), width);
            assert!(lines.iter().all(|line| line.width() <= width.unwrap_or(usize::MAX)));
            lines.iter().map(|line| line.text() + "\n").collect::<String>()
        };
        let all = widths.map(|width| format!("{width:?}\n{}", lay_out(width)));
        insta::assert_snapshot!(all.join("\n"));
        let letters = |width| {
            let mut letters: Vec<char> =
                lay_out(Some(width)).chars().filter(|c| !" \n-:".contains(*c)).collect();
            letters.sort_unstable();
            letters
        };
        let count = |width, letter| letters(width).iter().filter(|c| **c == letter).count();
        for width in 12..200 {
            lay_out(Some(width));
            // The names of columns are repeated below rows, but no name has these.
            for letter in ['x', '漢', 'G', 'z', '/', '*', 'Z'] {
                assert_eq!(count(width, letter), count(4000, letter), "{letter} at {width}");
            }
        }
    }

    #[test]
    fn tables_without_rows_or_columns_are_tables() {
        let texts = |names: &[&str], rows: &[ListRow]| {
            table_lines(names, rows, Some(40)).iter().map(StyledLine::text).collect::<Vec<_>>()
        };
        assert_eq!(texts(&["a", "b"], &[]), ["a  b"]);
        assert_eq!(texts(&["a"], &[ListRow::new(["one"])]), ["a", "one"]);
        assert_eq!(texts(&[], &[]), [""; 0]);
    }

    #[test]
    fn bars_are_as_long_as_their_parts() {
        let rows = [
            (0, 10, ".........."),
            (1, 1000, "#........."),
            (5, 10, "#####....."),
            (10, 10, "##########"),
            (11, 10, "##########"),
            (0, 0, ".........."),
            (3, 0, ".........."),
            (u64::MAX, u64::MAX, "##########"),
        ];
        for (part, whole, want) in rows {
            assert_eq!(bar_text(part, whole, 10), want, "{part} of {whole}");
        }
    }
}
