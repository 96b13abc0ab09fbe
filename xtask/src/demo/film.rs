//! A film of a terminal: an SVG that shows one screen after the other.
//!
//! A row that stays the same over several screens is drawn once. Styles switch rows on and off, so
//! a page shows the film as an image, without a script.

use std::{collections::BTreeMap, fmt::Write as _, time::Duration};

use vt100::{Cell, Color, Screen};

/// Size of a cell, and the margin around the screen, in pixels.
const CELL: (usize, usize) = (8, 18);
const MARGIN: usize = 14;

/// Where the letters of a row stand, below its upper edge.
const BASELINE: usize = 13;

/// The sixteen colours that a program names by number, for a dark background.
const PALETTE: [&str; 16] = [
    "#484f58", "#ff7b72", "#3fb950", "#d29922", "#58a6ff", "#bc8cff", "#39c5cf", "#b1bac4",
    "#6e7681", "#ffa198", "#56d364", "#e3b341", "#79c0ff", "#d2a8ff", "#56d4dd", "#f0f6fc",
];

/// How letters look.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Look {
    color: Option<&'static str>,
    bold: bool,
    dim: bool,
    inverse: bool,
}

/// Letters of one look, from a column on.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Run {
    column: usize,
    columns: usize,
    text: String,
    look: Look,
}

type Row = Vec<Run>;

/// The screens of a film, with the time from which each is shown.
#[derive(Debug, Default)]
pub(super) struct Film {
    screens: Vec<(Duration, Vec<Row>)>,
    length: Duration,
}

/// A row of the screen that did not change for a while.
struct Shot<'a> {
    row: usize,
    runs: &'a Row,
    from: Duration,
    until: Duration,
}

impl Film {
    /// Adds a screen that is shown for a while.
    pub(super) fn add_screen(&mut self, screen: &Screen, shown_for: Duration) {
        let rows = (0..screen.size().0.get()).map(|row| row_runs(screen, row)).collect();
        self.screens.push((self.length, rows));
        self.length += shown_for;
    }

    /// Replaces a text in each row.
    pub(super) fn replace_text(&mut self, from: &str, to: &str) {
        let rows = self.screens.iter_mut().flat_map(|(_, rows)| rows);
        for run in rows.flatten() {
            let shorter = run.text.replace(from, to);
            run.columns -= run.text.chars().count() - shorter.chars().count();
            run.text = shorter;
        }
    }

    /// Draws the film, for a window of so many columns and rows.
    pub(super) fn to_svg(&self, title: &str, (columns, rows): (usize, usize)) -> String {
        let (width, height) = (columns * CELL.0 + 2 * MARGIN, rows * CELL.1 + 2 * MARGIN);
        let shots = self.shots();
        let mut spans: BTreeMap<(Duration, Duration), usize> = BTreeMap::new();
        for shot in &shots {
            let next = spans.len();
            spans.entry((shot.from, shot.until)).or_insert(next);
        }
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
             width=\"{width}\" height=\"{height}\" role=\"img\">\n<title>{}</title>\n<style>\n",
            escape(title)
        );
        svg.push_str(
            "text { font: 13px ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace; \
             fill: #c9d1d9; white-space: pre; }\n.b { font-weight: 700; }\n.d { opacity: .65; }\n\
             .s { visibility: hidden; }\n.s.last { visibility: visible; }\n",
        );
        for ((from, until), number) in &spans {
            self.write_span(&mut svg, *number, *from, *until);
        }
        svg.push_str(
            "@media (prefers-reduced-motion: reduce) { .s { animation: none; } }\n</style>\n",
        );
        let _ = writeln!(
            svg,
            "<rect width=\"{width}\" height=\"{height}\" rx=\"8\" fill=\"#0d1117\"/>"
        );
        for shot in &shots {
            let number = spans[&(shot.from, shot.until)];
            let last = if shot.until == self.length { " last" } else { "" };
            let _ = write!(svg, "<g class=\"s f{number}{last}\">");
            shot.runs.iter().for_each(|run| write_run(&mut svg, shot.row, run));
            svg.push_str("</g>\n");
        }
        svg.push_str("</svg>\n");
        svg
    }

    /// The rows in the order of the screen, each as long as it stays the same.
    fn shots(&self) -> Vec<Shot<'_>> {
        let mut shots: Vec<Shot<'_>> = Vec::new();
        let rows = self.screens.first().map_or(0, |(_, rows)| rows.len());
        for row in 0..rows {
            for (at, (from, screen)) in self.screens.iter().enumerate() {
                let until = self.screens.get(at + 1).map_or(self.length, |(next, _)| *next);
                let runs = &screen[row];
                match shots.last_mut() {
                    Some(shot) if shot.row == row && shot.until == *from && shot.runs == runs => {
                        shot.until = until;
                    }
                    _ => shots.push(Shot { row, runs, from: *from, until }),
                }
            }
        }
        shots.retain(|shot| !shot.runs.is_empty());
        shots
    }

    /// Writes the style that shows rows during a span of the film, again at each repetition.
    fn write_span(&self, svg: &mut String, number: usize, from: Duration, until: Duration) {
        let percent = |time: Duration| time.as_secs_f64() / self.length.as_secs_f64() * 100.0;
        let first = if from.is_zero() { "visible" } else { "hidden" };
        let end = if until == self.length { "visible" } else { "hidden" };
        let _ = writeln!(
            svg,
            ".f{number} {{ animation: k{number} {:.1}s step-end infinite; }}\n@keyframes k{number} {{ \
             0% {{ visibility: {first}; }} {:.2}% {{ visibility: visible; }} {:.2}% {{ visibility: \
             {end}; }} }}",
            self.length.as_secs_f64(),
            percent(from),
            percent(until),
        );
    }
}

/// The letters of a row, those of one look together. Blanks at the end are left out.
fn row_runs(screen: &Screen, row: u16) -> Row {
    let cursor = (!screen.hide_cursor()).then(|| screen.cursor_position());
    let mut runs: Row = Vec::new();
    for column in 0..screen.size().1.get() {
        let Some(cell) = screen.cell(row, column) else { break };
        if cell.is_wide_continuation() {
            continue;
        }
        let mut look = cell_look(cell);
        look.inverse |= cursor == Some((row, column));
        let text = if cell.has_contents() { cell.contents() } else { " " };
        let (column, columns) = (usize::from(column), 1 + usize::from(cell.is_wide()));
        match runs.last_mut() {
            Some(run) if run.look == look => {
                run.text.push_str(text);
                run.columns += columns;
            }
            _ => runs.push(Run { column, columns, text: text.to_owned(), look }),
        }
    }
    runs.retain(|run| run.look.inverse || !run.text.trim().is_empty());
    runs
}

fn cell_look(cell: &Cell) -> Look {
    let color = match cell.fgcolor() {
        Color::Idx(number) => PALETTE.get(usize::from(number)).copied(),
        Color::Default | Color::Rgb(..) => None,
    };
    Look { color, bold: cell.bold(), dim: cell.dim(), inverse: cell.inverse() }
}

fn write_run(svg: &mut String, row: usize, run: &Run) {
    let (x, y) = (MARGIN + run.column * CELL.0, MARGIN + row * CELL.1);
    let ink = run.look.color.unwrap_or("#c9d1d9");
    if run.look.inverse {
        let (width, height) = (run.columns * CELL.0, CELL.1);
        let _ = write!(
            svg,
            "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" fill=\"{ink}\"/>"
        );
    }
    let fill = match (run.look.inverse, run.look.color) {
        (true, _) => " style=\"fill:#0d1117\"".to_owned(),
        (false, Some(color)) => format!(" style=\"fill:{color}\""),
        (false, None) => String::new(),
    };
    let class = match (run.look.bold, run.look.dim) {
        (false, false) => "",
        (true, false) => " class=\"b\"",
        (false, true) => " class=\"d\"",
        (true, true) => " class=\"b d\"",
    };
    // The length keeps the columns in line, whichever font a reader has.
    let text = run.text.trim_end();
    let columns = run.columns - (run.text.chars().count() - text.chars().count());
    if !text.is_empty() {
        let _ = write!(
            svg,
            "<text x=\"{x}\" y=\"{}\" textLength=\"{}\" xml:space=\"preserve\"{class}{fill}>{}</text>",
            y + BASELINE,
            columns * CELL.0,
            escape(text)
        );
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
