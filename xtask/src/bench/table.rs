//! The table of figures, as Markdown and as a file.

use std::{collections::BTreeMap, fs, path::Path};

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};

/// One row, as a benchmark prints it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Figure {
    pub(super) name: String,
    /// The group that it belongs to, once it is kept.
    #[serde(default)]
    pub(super) group: String,
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

    /// Writes the figures of a group into a file that keeps those of the others.
    pub(super) fn keep_group(file: &Path, group: &str, figures: &[Figure]) -> Result<()> {
        let mut kept = Self::read(file).unwrap_or_default();
        kept.figures.retain(|old| old.group != group);
        kept.figures.extend_from_slice(figures);
        fs::write(file, serde_json::to_vec_pretty(&kept)?)?;
        Ok(())
    }

    /// All figures in the order of their groups.
    ///
    /// # Errors
    ///
    /// A group has none.
    pub(super) fn in_order(mut self, groups: &[&str]) -> Result<Self> {
        let place = |group: &str| groups.iter().position(|one| *one == group);
        self.figures.retain(|figure| place(&figure.group).is_some());
        for group in groups {
            let is_measured = self.figures.iter().any(|figure| figure.group == *group);
            ensure!(
                is_measured,
                "{group} has no figures yet; measure it: cargo xtask bench {group}"
            );
        }
        self.figures.sort_by_key(|figure| place(&figure.group));
        Ok(self)
    }

    /// The figures that another table has too.
    pub(super) fn only_figures_of(mut self, other: &Self) -> Self {
        self.figures.retain(|figure| other.figures.iter().any(|one| one.name == figure.name));
        self
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

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(group: &str, name: &str) -> Figure {
        let (name, group) = (name.to_owned(), group.to_owned());
        Figure { name, group, ours: 1.0, floor: None, goal: 1.0, unit: Unit::Seconds }
    }

    #[test]
    fn a_group_that_is_measured_again_replaces_its_figures_alone() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("bench.json");
        let groups = ["start", "call"];
        let keep = |group: &str, names: &[&str]| {
            let figures: Vec<Figure> = names.iter().map(|name| figure(group, name)).collect();
            FigureTable::keep_group(&file, group, &figures).unwrap();
        };
        keep("call", &["a", "b"]);
        assert!(FigureTable::read(&file).unwrap().in_order(&groups).is_err(), "start is missing");
        keep("start", &["s"]);
        keep("call", &["c"]);
        keep("gone", &["x"]);
        let table = FigureTable::read(&file).unwrap().in_order(&groups).unwrap();
        let names: Vec<&str> = table.figures.iter().map(|figure| figure.name.as_str()).collect();
        assert_eq!(names, ["s", "c"]);
    }
}
