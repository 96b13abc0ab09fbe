//! The table of `cargo xtask load`.

use std::fmt::Write as _;

use super::oha::LoadFigures;

/// One kind of request, at both servers.
pub(super) struct LoadRow {
    pub(super) name: &'static str,
    pub(super) service: LoadFigures,
    pub(super) floor: LoadFigures,
    /// The same with one client.
    pub(super) service_alone: LoadFigures,
    pub(super) floor_alone: LoadFigures,
}

/// All figures of a run.
pub(super) struct LoadTable {
    pub(super) rows: Vec<LoadRow>,
    /// Sessions that were opened and closed.
    pub(super) sessions: LoadFigures,
    /// Of the service and of axum alone, after all of it.
    pub(super) resident_bytes: (u64, u64),
}

impl LoadTable {
    pub(super) fn to_markdown(&self) -> String {
        let mut text = String::from(
            "| what | server | per second | p50 | p99 | p50 of one client |\n|---|---|---|---|---|---|\n",
        );
        for row in &self.rows {
            let sides = [
                ("`sallyport serve`", &row.service, &row.service_alone),
                ("axum alone", &row.floor, &row.floor_alone),
            ];
            for (server, loaded, alone) in sides {
                let alone = time(alone.p50);
                let _ = writeln!(text, "| {} | {server} | {} | {alone} |", row.name, cells(loaded));
            }
        }
        let name = "a session opened and closed";
        let _ = writeln!(text, "| {name} | `sallyport serve` | {} | |", cells(&self.sessions));
        let (ours, floor) = (megabytes(self.resident_bytes.0), megabytes(self.resident_bytes.1));
        let _ = write!(text, "\nResident memory after it: {ours} and {floor}.");
        if let Some(call) = self.rows.last() {
            let cost = call.service_alone.p50 - call.floor_alone.p50;
            let _ = write!(text, " A sandboxed call through HTTP costs {} more", time(cost));
            text.push_str(" than the same request to axum alone.");
        }
        text
    }
}

fn cells(figures: &LoadFigures) -> String {
    format!("{:.0} | {} | {}", figures.per_second, time(figures.p50), time(figures.p99))
}

fn time(seconds: f64) -> String {
    match seconds < 1e-3 {
        true => format!("{:.0} µs", seconds * 1e6),
        false => format!("{:.2} ms", seconds * 1e3),
    }
}

#[expect(clippy::cast_precision_loss, reason = "one decimal is printed")]
fn megabytes(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_has_both_servers_and_the_cost_of_a_call() {
        let figures = |p50| LoadFigures { per_second: 1.0 / p50, p50, p99: p50 * 4.0 };
        let row = LoadRow {
            name: "a call",
            service: figures(0.002),
            floor: figures(0.000_2),
            service_alone: figures(0.000_35),
            floor_alone: figures(0.000_05),
        };
        let sessions = figures(0.01);
        let table =
            LoadTable { rows: vec![row], sessions, resident_bytes: (30_000_000, 5_000_000) };
        let text = table.to_markdown();
        for part in [
            "| a call | `sallyport serve` | 500 | 2.00 ms | 8.00 ms | 350 µs |",
            "| a call | axum alone | 5000 | 200 µs | 800 µs | 50 µs |",
            "| a session opened and closed | `sallyport serve` | 100 | 10.00 ms | 40.00 ms | |",
            "Resident memory after it: 30.0 MB and 5.0 MB.",
            "costs 300 µs more",
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
    }
}
