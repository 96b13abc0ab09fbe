//! The program that makes the load: oha (MIT), a generator of HTTP requests.

use std::{
    path::PathBuf,
    process::{Command, Stdio},
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::{process::run_for_output, programs};

/// The version whose output is read here.
const VERSION: &str = "1.16.0";

/// The program.
pub(super) struct Oha(PathBuf);

/// What is asked for, again and again.
pub(super) struct LoadTarget {
    pub(super) url: String,
    pub(super) method: &'static str,
    pub(super) body: Option<&'static str>,
    pub(super) token: String,
}

/// The figures of one run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct LoadFigures {
    pub(super) per_second: f64,
    /// Half of the answers came within this time, in seconds.
    pub(super) p50: f64,
    /// Of a hundred answers, all but one came within this time, in seconds.
    pub(super) p99: f64,
}

impl Oha {
    /// Installs it, if it is not there in this version.
    pub(super) fn install() -> Result<Self> {
        Ok(Self(programs::install_crate_program("oha", VERSION, "oha")?))
    }

    /// Sends requests for some time, by some connections that are kept.
    pub(super) fn load(
        &self,
        target: &LoadTarget,
        connections: usize,
        time: Duration,
    ) -> Result<LoadFigures> {
        let mut command = Command::new(&self.0);
        command
            .args(["--no-tui", "--output-format", "json", "--wait-ongoing-requests-after-deadline"])
            .args(["-z", &format!("{}s", time.as_secs()), "-c", &connections.to_string()])
            .args(["-m", target.method, "-H", &format!("Authorization: Bearer {}", target.token)])
            .stdin(Stdio::null());
        if let Some(body) = target.body {
            command.args(["-T", "application/json", "-d", body]);
        }
        let output = run_for_output(command.arg(&target.url))?;
        read_figures(&output).with_context(|| format!("the load of {}", target.url))
    }
}

/// Reads what it prints. Any answer but 200 would make the figures those of a refusal.
fn read_figures(output: &str) -> Result<LoadFigures> {
    let report: Value = serde_json::from_str(output)?;
    let statuses = report["statusCodeDistribution"].as_object().context("no statuses")?;
    ensure!(statuses.keys().eq(["200"]), "the answers have other statuses: {statuses:?}");
    let errors = report["errorDistribution"].as_object().context("no list of errors")?;
    ensure!(errors.is_empty(), "some requests failed: {errors:?}");
    let number = |value: &Value| value.as_f64().context("a figure is missing");
    Ok(LoadFigures {
        per_second: number(&report["summary"]["requestsPerSec"])?,
        p50: number(&report["latencyPercentiles"]["p50"])?,
        p99: number(&report["latencyPercentiles"]["p99"])?,
    })
}

impl LoadFigures {
    /// The median of each figure.
    pub(super) fn medians(runs: &[Self]) -> Self {
        let median = |figure: fn(&Self) -> f64| {
            let mut values: Vec<f64> = runs.iter().map(figure).collect();
            values.sort_by(f64::total_cmp);
            values.get(values.len() / 2).copied().unwrap_or_default()
        };
        Self {
            per_second: median(|run| run.per_second),
            p50: median(|run| run.p50),
            p99: median(|run| run.p99),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPORT: &str = r#"{
        "summary": { "requestsPerSec": 1000.5 },
        "latencyPercentiles": { "p50": 0.001, "p99": 0.004 },
        "statusCodeDistribution": { "200": 5 },
        "errorDistribution": {}
    }"#;

    #[test]
    fn a_report_of_refusals_is_no_figure() {
        let want = LoadFigures { per_second: 1000.5, p50: 0.001, p99: 0.004 };
        assert_eq!(read_figures(REPORT).unwrap(), want);
        let rows = [
            (r#""200": 5"#, r#""200": 5, "429": 1"#),
            (r#""errorDistribution": {}"#, r#""errorDistribution": { "refused": 1 }"#),
            ("0.004", "null"),
        ];
        for (from, to) in rows {
            assert!(read_figures(&REPORT.replace(from, to)).is_err(), "{to}");
        }
    }

    #[test]
    fn a_median_is_that_of_each_figure() {
        let run = |per_second, p50| LoadFigures { per_second, p50, p99: 1.0 };
        let runs = [run(3.0, 1.0), run(1.0, 2.0), run(2.0, 3.0)];
        assert_eq!(LoadFigures::medians(&runs), run(2.0, 2.0));
    }
}
