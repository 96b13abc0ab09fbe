//! The short form of the checks: a line for each area, and what the user may want to do.

use sallyport_terminal::listing::ListRow;

use super::{CheckStatus, DoctorCheck, PluginGap};
use crate::cli::output::CliOutput;

/// Prints one line per area, and below them the checks that are not fine.
pub(super) fn print_summary(checks: &[DoctorCheck], out: &CliOutput) {
    let rows = DoctorArea::ALL.iter().filter_map(|area| area.summary_row(checks));
    out.print_list(&rows.collect::<Vec<_>>());
    let rows = attention_rows(checks);
    if !rows.is_empty() {
        out.print_line("");
        out.print_list(&rows);
    }
    out.print_note("`sallyport doctor -v` shows every check.");
}

/// The checks that are not fine. Several plugins with the same gap share one row.
fn attention_rows(checks: &[DoctorCheck]) -> Vec<ListRow> {
    let is_own_row =
        |check: &&DoctorCheck| check.status != CheckStatus::Ok && check.plugin_gap.is_none();
    let rows = checks.iter().filter(is_own_row).map(DoctorCheck::list_row);
    rows.chain(PluginGap::ALL.into_iter().flat_map(|gap| gap.list_rows(checks))).collect()
}

/// A part of the installation, which a line of the summary is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DoctorArea {
    Settings,
    Model,
    Plugins,
    Sandbox,
    Store,
    Records,
}

impl DoctorArea {
    const ALL: [Self; 6] =
        [Self::Settings, Self::Model, Self::Plugins, Self::Sandbox, Self::Store, Self::Records];

    /// The area that a check is about, by its id.
    fn from_check_id(id: &str) -> Self {
        match id {
            "model" => Self::Model,
            "plugin" | "plugin-folders" => Self::Plugins,
            "compiler" | "scripts" | "cache" => Self::Sandbox,
            "store" => Self::Store,
            "audit" | "sessions" => Self::Records,
            _ => Self::Settings,
        }
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::Settings => "settings",
            Self::Model => "model",
            Self::Plugins => "plugins",
            Self::Sandbox => "sandbox",
            Self::Store => "store",
            Self::Records => "records",
        }
    }

    /// The line about the area, unless nothing of it was checked.
    fn summary_row(self, checks: &[DoctorCheck]) -> Option<ListRow> {
        let own = checks.iter().filter(|check| Self::from_check_id(check.id) == self);
        let own: Vec<&DoctorCheck> = own.collect();
        let status = own.iter().map(|check| check.status).max()?;
        let fine = own.iter().filter(|check| check.status <= CheckStatus::Note);
        let fine: Vec<&DoctorCheck> = fine.copied().collect();
        let text = match (own.as_slice(), fine.len()) {
            ([only], _) => only.finding.clone(),
            (_, count) if count == own.len() => {
                let mut names: Vec<&str> = fine.iter().map(|check| check.id).collect();
                names.dedup();
                format!("{count} checks: {}", names.join(", "))
            }
            (_, count) => format!("{} of {} checks need attention", own.len() - count, own.len()),
        };
        Some(ListRow::new([self.as_str(), status.as_str(), &text]))
    }
}

impl PluginGap {
    const ALL: [Self; 2] = [Self::Configuration, Self::Grants];

    /// The checks about plugins with this gap: one that sums them up, if there are several.
    fn list_rows(self, checks: &[DoctorCheck]) -> Vec<ListRow> {
        let names = |check: &&DoctorCheck| match &check.plugin_gap {
            Some((gap, plugin)) if *gap == self => Some(plugin.clone()),
            _ => None,
        };
        let own: Vec<&DoctorCheck> = checks.iter().filter(|check| names(check).is_some()).collect();
        let [_, _, ..] = own.as_slice() else {
            return own.iter().map(|check| check.list_row()).collect();
        };
        let (lack, remedy) = match self {
            Self::Grants => (
                "are not granted all that they request",
                "`sallyport policy` lists what each lacks; grant it with \
                 `sallyport policy grant NAME --requested`",
            ),
            Self::Configuration => (
                "are not set up",
                "`sallyport plugin list` lists what each lacks; set it to use the plugin",
            ),
        };
        let plugins: Vec<String> = own.iter().filter_map(names).collect();
        let finding = format!("{} plugins {lack}: {}", plugins.len(), plugins.join(", "));
        vec![DoctorCheck::note("plugin", finding, remedy).list_row()]
    }
}

#[cfg(test)]
mod tests {
    use sallyport_terminal::listing::list_lines;

    use super::*;

    fn summary(checks: &[DoctorCheck]) -> Vec<String> {
        let rows = DoctorArea::ALL.iter().filter_map(|area| area.summary_row(checks));
        let lines = list_lines(&rows.collect::<Vec<_>>(), None);
        lines.iter().map(|line| line.text()).collect()
    }

    #[test]
    fn each_area_has_one_line_with_its_worst_result() {
        let checks = [
            DoctorCheck::ok("configuration", "it is sound"),
            DoctorCheck::ok("policy", "it is sound"),
            DoctorCheck::warning("model", "none", "choose one"),
            DoctorCheck::ok("plugin", "a is ready"),
            DoctorCheck::failed("plugin", "b\u{1b}[2J", "rebuild it"),
            DoctorCheck::warning("plugin", "c", "grant it"),
            DoctorCheck::ok("cache", "in \u{202e}x"),
            DoctorCheck::ok("store", "postgres://db: PostgreSQL 15.14"),
            DoctorCheck::ok("audit", "whole"),
            DoctorCheck::ok("sessions", "none"),
        ];
        assert_eq!(
            summary(&checks),
            [
                "settings  ok       2 checks: configuration, policy",
                "model     warning  none",
                "plugins   failed   2 of 3 checks need attention",
                "sandbox   ok       in \\u{202e}x",
                "store     ok       postgres://db: PostgreSQL 15.14",
                "records   ok       2 checks: audit, sessions",
            ]
        );
        assert_eq!(summary(&[]), [""; 0]);
    }
    #[test]
    fn a_fresh_home_gets_one_row_about_missing_grants() {
        let ungranted = |name: &str| DoctorCheck {
            plugin_gap: Some((PluginGap::Grants, name.to_owned())),
            ..DoctorCheck::note("plugin", format!("{name} lacks"), "grant it")
        };
        let text = |checks: &[DoctorCheck]| {
            let lines = list_lines(&attention_rows(checks), None);
            lines.iter().map(|line| line.text()).collect::<Vec<_>>().join("\n")
        };
        let one = text(&[DoctorCheck::ok("plugin", "fine"), ungranted("a")]);
        assert!(one.contains("a lacks") && !one.contains("fine"), "{one}");
        let model = DoctorCheck::warning("model", "none", "choose one");
        let two = text(&[ungranted("a"), model, ungranted("b")]);
        let summed_up = "2 plugins are not granted all that they request: a, b";
        assert!(two.contains(summed_up) && two.contains("--requested"), "{two}");
        assert!(two.contains("choose one") && !two.contains("a lacks"), "{two}");
    }
}
