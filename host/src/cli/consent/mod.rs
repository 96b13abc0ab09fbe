//! Questions at the terminal, for commands without a session.

mod form;

use sallyport_contract::{ApprovalAnswer, ApprovalRequest, BoxFuture, Consent, PluginName, text};
use sallyport_terminal::card::{is_summary_cut, subject_line};

pub(super) use form::typed_value;

use super::{call_display, output::CliOutput};

/// Most characters of the subject above the prompt.
const SUBJECT_CHARS_MAX: usize = 100;

/// Asks on standard error and reads one line. Without a terminal there is no answer.
#[derive(Debug, Clone, Copy)]
pub(super) struct TerminalConsent {
    pub(super) out: CliOutput,
}

impl Consent for TerminalConsent {
    fn ask_user(&self, request: ApprovalRequest) -> BoxFuture<'_, ApprovalAnswer> {
        Box::pin(async move {
            if !self.out.can_ask || request.needs_folder() {
                return ApprovalAnswer::Nobody;
            }
            self.out.discard_typed_input();
            let mut shown_question = ShownQuestion::show_question(&request, &self.out);
            if !self.out.is_stderr_intact() {
                return ApprovalAnswer::Nobody;
            }
            loop {
                let line = tokio::task::spawn_blocking(read_line).await.ok().flatten();
                if !shown_question.must_show_rest(&request, line.as_deref()) {
                    let answer = parse_answer(line.as_deref(), request.rule.is_some());
                    return form::fill_in(&request, answer, self.out).await;
                }
                self.out.discard_typed_input();
                shown_question.show_rest(&request, &self.out);
            }
        })
    }
}

/// A question on the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ShownQuestion {
    /// Whether all of it was shown.
    is_complete: bool,
}

impl ShownQuestion {
    /// Shows a question and the possible answers.
    pub(super) fn show_question(request: &ApprovalRequest, out: &CliOutput) -> Self {
        call_display::print_approval_request(request, out);
        let shown_question = Self { is_complete: !is_summary_cut(request) };
        shown_question.print_prompt(request, out);
        shown_question
    }

    /// Whether a line asks for more, or approves before the whole request was shown.
    ///
    /// Such a line is not an answer. Input typed after it has to be discarded before the rest is
    /// shown.
    pub(super) fn must_show_rest(self, request: &ApprovalRequest, line: Option<&str>) -> bool {
        let asks = line.is_some_and(|line| line.trim() == "?");
        let is_yes = parse_answer(line, request.rule.is_some()).is_yes();
        (asks && request.request.is_some()) || (is_yes && !self.is_complete)
    }

    /// Shows the whole outgoing request and the possible answers.
    pub(super) fn show_rest(&mut self, request: &ApprovalRequest, out: &CliOutput) {
        call_display::print_whole_request(request, out);
        self.is_complete = true;
        self.print_prompt(request, out);
    }

    /// Prints the possible answers. "always" is offered only if a rule would help.
    fn print_prompt(self, request: &ApprovalRequest, out: &CliOutput) {
        if let Some(line) = subject_line(request, SUBJECT_CHARS_MAX) {
            out.print_block(&line);
        }
        if let Some(form) = request.form_question() {
            return out.print_note_piece(match form.needs_values() {
                true => "fill it in? [y]es / [n]o / no, REASON: ",
                false => "agree? [y]es / [n]o / no, REASON: ",
            });
        }
        out.print_note_piece(match (self.is_complete, &request.rule) {
            (false, _) => "not everything is shown: [?] show the rest / [n]o / no, REASON: ",
            (true, Some(_)) => {
                "allow? [y]es, once / for this [s]ession / [a]lways / [n]o / no, REASON: "
            }
            (true, None) => "allow? [y]es, once / for this [s]ession / [n]o / no, REASON: ",
        });
    }
}

/// Parses an answer. Only an explicit yes approves, never an empty line, the end of input, or an
/// answer that was not offered.
pub(super) fn parse_answer(line: Option<&str>, offers_always: bool) -> ApprovalAnswer {
    let line = line.unwrap_or_default().trim();
    match line.to_ascii_lowercase().as_str() {
        "y" | "yes" => ApprovalAnswer::Once,
        "s" | "session" => ApprovalAnswer::Session,
        "a" | "always" if offers_always => ApprovalAnswer::Always,
        _ => ApprovalAnswer::No { reason: denial_reason(line) },
    }
}

/// Returns the text after a no. It is the reason that the model receives.
fn denial_reason(line: &str) -> Option<String> {
    let rest = line.split_once([',', ' ']).map(|(_, rest)| rest.trim())?;
    (!rest.is_empty()).then(|| rest.to_owned())
}

/// Shows what has changed about a plugin since it was accepted, and asks for confirmation.
///
/// Without a terminal the change is not accepted.
pub(super) fn confirm_plugin_change(
    plugin: &PluginName,
    differences: &[String],
    out: &CliOutput,
) -> bool {
    out.print_warning(&format!("{plugin} has changed since you accepted it"));
    differences.iter().for_each(|difference| out.print_block(&text::escape_line(difference)));
    if !out.can_ask {
        out.print_hint(&format!("accept the change with `sallyport plugin accept {plugin}`"));
        return false;
    }
    out.discard_typed_input();
    out.print_note_piece("accept the change? [y]es / [n]o: ");
    read_confirmation(out)
}

/// Reads a line from the terminal. Returns whether it confirms a question that was visible.
pub(super) fn read_confirmation(out: &CliOutput) -> bool {
    out.is_stderr_intact()
        && matches!(parse_answer(read_line().as_deref(), false), ApprovalAnswer::Once)
}

/// Reads a line from the terminal.
fn read_line() -> Option<String> {
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).ok()?;
    Some(line)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use sallyport_contract::{ApprovalSubject, RequestPreview, RequestedCall, ToolCallContext};

    use super::*;

    #[test]
    fn only_a_clear_yes_is_a_yes() {
        let rows = [
            ("y", ApprovalAnswer::Once),
            ("Y", ApprovalAnswer::Once),
            (" yes \n", ApprovalAnswer::Once),
            ("s", ApprovalAnswer::Session),
            ("session", ApprovalAnswer::Session),
            ("a", ApprovalAnswer::Always),
            ("ALWAYS", ApprovalAnswer::Always),
        ];
        for (line, answer) in rows {
            assert_eq!(parse_answer(Some(line), true), answer, "{line:?}");
        }
        for no in [None, Some(""), Some("\n"), Some("n"), Some("maybe"), Some("yess"), Some("all")]
        {
            assert!(matches!(parse_answer(no, true), ApprovalAnswer::No { .. }), "{no:?}");
        }
        let reason = ApprovalAnswer::No { reason: Some("use the other folder".into()) };
        assert_eq!(parse_answer(Some("no, use the other folder"), true), reason);
    }

    #[test]
    fn always_is_no_answer_where_it_was_not_offered() {
        for line in ["a", "always"] {
            assert!(matches!(parse_answer(Some(line), false), ApprovalAnswer::No { .. }));
        }
    }

    /// A question about a request whose query has `chars` characters.
    fn request(chars: usize) -> ApprovalRequest {
        let shown = RequestPreview {
            method: Some("GET".to_owned()),
            address: "https://example.org/".to_owned(),
            query: "x".repeat(chars),
            headers: Vec::new(),
            body: None,
            digest: "d0".to_owned(),
        };
        ApprovalRequest {
            call: RequestedCall {
                context: ToolCallContext::default(),
                tool: "mail.send".parse().unwrap(),
                arguments: "{}".to_owned(),
            },
            subject: ApprovalSubject::Access { what: shown.summary_line() },
            request: Some(Arc::new(shown)),
            plugin_version: "1".to_owned(),
            plugin_digest: "00".to_owned(),
            reason: "why".to_owned(),
            rule: None,
            capabilities: Vec::new(),
        }
    }

    #[test]
    fn a_yes_to_what_was_not_shown_whole_shows_it_first() {
        let out = CliOutput::new();
        for (chars, is_cut) in [(10, false), (9_000, true)] {
            for yes in ["y", "s", "?"] {
                let request = request(chars);
                let mut shown_question =
                    ShownQuestion { is_complete: !super::is_summary_cut(&request) };
                assert_eq!(shown_question.is_complete, !is_cut);
                assert_eq!(
                    shown_question.must_show_rest(&request, Some(yes)),
                    is_cut || yes == "?",
                    "{chars} {yes}"
                );
                shown_question.show_rest(&request, &out);
                assert!(!shown_question.must_show_rest(&request, Some("y")), "it was shown");
            }
            for no in [Some("n"), Some(""), None] {
                assert!(
                    !ShownQuestion { is_complete: !is_cut }.must_show_rest(&request(chars), no),
                    "{no:?}"
                );
            }
        }
    }
}
