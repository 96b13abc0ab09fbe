//! Messages for what a host reports about itself.

use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use sallyport_contract::text;
use sallyport_runtime::HostNotice;

use super::output::CliOutput;

/// Waits shorter than this are not reported.
const SILENT_WAIT: Duration = Duration::from_millis(400);

/// Longest line about compilation, in characters.
const PROGRESS_CHARS_MAX: usize = 76;

/// Prints notices and the progress of compilation: a changing line at a terminal, one line
/// elsewhere.
pub(super) struct NoticePrinter {
    out: CliOutput,
    compiling: Mutex<CompileDisplayState>,
}

#[derive(Default)]
struct CompileDisplayState {
    began: Option<Instant>,
    is_shown: bool,
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
                    self.show_progress((*done, *total), waiting, compiling.is_shown);
                    compiling.is_shown = true;
                }
            }
            HostNotice::CompilingEnded => {
                if self.out.stderr_is_terminal && compiling.is_shown {
                    self.out.set_status(None);
                }
                *compiling = CompileDisplayState::default();
            }
            notice => print_notice(notice, &self.out),
        }
    }

    fn show_progress(&self, (done, total): (usize, usize), waiting: &[String], was_shown: bool) {
        let preparing = format!("Preparing {total} plugins (once)");
        let names = waiting.join(", ");
        if self.out.stderr_is_terminal {
            let words = format!("{preparing}: {done} of {total} done, {names} …");
            self.out.set_status(Some(&text::escape_excerpt(&words, PROGRESS_CHARS_MAX)));
        } else if !was_shown {
            self.out.print_note(&format!("{preparing}: {names} …"));
        }
    }
}

/// Prints a notice that is not about progress.
pub(super) fn print_notice(notice: &HostNotice, out: &CliOutput) {
    match notice {
        HostNotice::ForeignFile(file) => {
            out.print_warning(&file.to_string());
            out.print_hint(
                "if it is yours: make file and folder your own, and let nobody else write there",
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
