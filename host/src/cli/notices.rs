//! Messages for what a host reports about itself.

use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use sallyport_contract::text;
use sallyport_runtime::HostNotice;

use super::output::{CliOutput, format_count};

/// Waits shorter than this are not reported.
const SILENT_WAIT: Duration = Duration::from_millis(400);

/// Prints notices and the progress of compilation: a changing line at a terminal, one line
/// elsewhere.
pub(super) struct NoticePrinter {
    out: CliOutput,
    compiling: Mutex<CompileDisplayState>,
}

#[derive(Default)]
struct CompileDisplayState {
    began: Option<Instant>,
    /// The line on the screen.
    shown: Option<String>,
}

impl NoticePrinter {
    pub(super) fn new(out: &CliOutput) -> Self {
        Self { out: *out, compiling: Mutex::default() }
    }

    pub(super) fn show_notice(&self, notice: &HostNotice) {
        let mut compiling = self.compiling.lock().unwrap_or_else(PoisonError::into_inner);
        match notice {
            HostNotice::Compiling { done, total, waiting } => {
                let began = *compiling.began.get_or_insert_with(Instant::now);
                if began.elapsed() >= SILENT_WAIT {
                    self.show_progress((*done, *total), waiting, &mut compiling.shown);
                }
            }
            HostNotice::CompilingEnded => {
                if self.out.stderr_is_terminal && compiling.shown.is_some() {
                    self.out.set_status(None);
                }
                *compiling = CompileDisplayState::default();
            }
            notice => print_notice(notice, &self.out),
        }
    }

    /// Shows the progress if it differs from the line that is shown already.
    fn show_progress(
        &self,
        counts: (usize, usize),
        waiting: &[String],
        shown: &mut Option<String>,
    ) {
        let line = match self.out.stderr_columns() {
            // A line that reaches the last column would wrap, and only its last row would be
            // replaced. Where the line is cut, one more column is needed.
            Some(columns) => {
                text::escape_excerpt(&progress_text(counts, waiting), columns.saturating_sub(2))
            }
            None => format!("Preparing {} (once) …", format_count(counts.1, "plugin")),
        };
        if self.out.stderr_is_terminal && shown.as_ref() != Some(&line) {
            self.out.set_status(Some(&line));
        } else if shown.is_none() {
            self.out.print_note(&line);
        }
        *shown = Some(line);
    }
}

/// The progress, with the plugins that are being compiled.
fn progress_text((done, total): (usize, usize), waiting: &[String]) -> String {
    let count = format_count(total, "plugin");
    format!("Preparing {count} (once): {done} of {total}, {} …", waiting.join(", "))
}

/// Prints a notice that is not about progress.
pub(super) fn print_notice(notice: &HostNotice, out: &CliOutput) {
    match notice {
        HostNotice::ForeignFile(file) => {
            out.print_warning(&file.to_string());
            out.print_hint(
                "if it is yours: make file and folder your own, and let no one else write there",
            );
        }
        HostNotice::Sandbox(words) | HostNotice::Warning(words) => out.print_warning(words),
        HostNotice::Info(words) => out.print_note(words),
        HostNotice::LockLost { path } => {
            let path = path.display();
            out.print_warning(&format!(
                "{path} is missing, so it is not known which plugins you accepted: all count as \
                 new, and a plugin that was changed is not noticed"
            ));
            out.print_hint(
                "restore the file from a backup, or look at every plugin: sallyport plugin list",
            );
        }
        HostNotice::UnusedSettings { plugin, suggestion: near } => {
            out.print_warning(&format!(
                "[settings.{plugin}] has no effect, because there is no plugin {plugin}"
            ));
            if let Some(near) = near {
                out.print_hint(&format!("did you mean [settings.{near}]?"));
            }
        }
        HostNotice::EmbeddingUnavailable { why, hint } => {
            out.print_warning(&format!("memories are found by words alone: {why}"));
            if let Some(hint) = hint {
                out.print_hint(hint);
            }
        }
        HostNotice::StillCompiling(plugins) => {
            let are = if plugins.len() == 1 { "is" } else { "are" };
            let names: Vec<&str> = plugins.iter().map(|plugin| plugin.as_str()).collect();
            let names = names.join(", ");
            out.print_note(&format!(
                "{names} {are} still being compiled, which is done once; the next start has the tools."
            ));
        }
        HostNotice::Compiling { .. } | HostNotice::CompilingEnded => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_names_what_is_being_compiled() {
        let waiting = ["python".to_owned(), "weather".to_owned()];
        for (counts, want) in [
            ((6, 17), "Preparing 17 plugins (once): 6 of 17, python, weather …"),
            ((0, 1), "Preparing 1 plugin (once): 0 of 1, python, weather …"),
        ] {
            assert_eq!(progress_text(counts, &waiting), want);
        }
    }
}
