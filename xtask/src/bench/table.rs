//! The table of figures, as Markdown and as a file.

use std::{collections::BTreeMap, fs, path::Path};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

/// One row, as a benchmark prints it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Figure {
    pub(super) name: String,
    /// The host's side, in seconds or bytes.
    pub(super) ours: f64,
    /// The floor's side; absent where there is nothing to compare with.
    #[serde(default)]
    pub(super) floor: Option<f64>,
    /// The largest promised ratio; the largest value where there is no floor.
    pub(super) goal: f64,
    #[serde(default)]
    pub(super) unit: Unit,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Unit {
    #[default]
    Seconds,
    Bytes,
}

/// All rows of a run.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct FigureTable {
    pub(super) figures: Vec<Figure>,
}

impl FigureTable {
    pub(super) fn read(file: &Path) -> Result<Self> {
        let text = fs::read(file).with_context(|| file.display().to_string())?;
        serde_json::from_slice(&text).with_context(|| format!("{}: no figures", file.display()))
    }

    /// Writes the rows, and keeps those of groups that this run did not measure.
    pub(super) fn write(&self, file: &Path) -> Result<()> {
        let mut kept = Self::read(file).unwrap_or_default();
        kept.figures.retain(|old| !self.figures.iter().any(|new| new.name == old.name));
        kept.figures.extend_from_slice(&self.figures);
        fs::write(file, serde_json::to_vec_pretty(&kept)?)?;
        Ok(())
    }

    /// Writes a row for each figure: ours, floor, ratio, goal, and the ratio of an earlier run.
    pub(super) fn to_markdown(&self, before: &Self) -> String {
        let before: BTreeMap<&str, &Figure> =
            before.figures.iter().map(|figure| (figure.name.as_str(), figure)).collect();
        let mut text = String::from(
            "| what | Sallyport | floor | ratio | goal | before |\n|---|---|---|---|---|---|\n",
        );
        for figure in &self.figures {
            let before = before.get(figure.name.as_str()).map(|figure| figure.measured());
            text.push_str(&format!(
                "| {} | {} | {} | {} | {} | {} |\n",
                figure.name,
                figure.unit.format(figure.ours),
                figure.floor.map_or(String::new(), |floor| figure.unit.format(floor)),
                figure.ratio().map_or(String::new(), format_ratio),
                figure.goal(),
                before.unwrap_or_default(),
            ));
        }
        text
    }
}

impl Figure {
    fn ratio(&self) -> Option<f64> {
        self.floor.map(|floor| self.ours / floor)
    }

    fn measured(&self) -> String {
        self.ratio().map_or_else(|| self.unit.format(self.ours), format_ratio)
    }

    /// The goal, marked where it is not reached.
    fn goal(&self) -> String {
        let (value, goal) = match self.ratio() {
            Some(ratio) => (ratio, format_ratio(self.goal)),
            None => (self.ours, self.unit.format(self.goal)),
        };
        let mark = if value > self.goal { " (missed)" } else { "" };
        format!("≤ {goal}{mark}")
    }
}

fn format_ratio(ratio: f64) -> String {
    if ratio < 0.1 { format!("1/{:.0}", 1.0 / ratio) } else { format!("{ratio:.2}") }
}

impl Unit {
    fn format(self, value: f64) -> String {
        match self {
            Self::Bytes => format!("{:.1} MB", value / 1e6),
            Self::Seconds if value < 1e-3 => format!("{:.1} µs", value * 1e6),
            Self::Seconds => format!("{:.2} ms", value * 1e3),
        }
    }
}
