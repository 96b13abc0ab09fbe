//! Asking at the terminal, for commands that have no session.

use sallyport_contract::{Answer, ApprovalRequest, BoxFuture, Consent};

use super::{output::Output, show};

/// Asks on standard error and reads one line. Where there is no terminal, there is nobody to ask.
#[derive(Debug, Clone, Copy)]
pub(super) struct AtTerminal {
    pub(super) out: Output,
}

impl Consent for AtTerminal {
    fn ask(&self, request: ApprovalRequest) -> BoxFuture<'_, Answer> {
        Box::pin(async move {
            if !self.out.can_ask {
                return Answer::Nobody;
            }
            self.out.forget_typed();
            show::question(&request, &self.out);
            self.out.aside(PROMPT);
            let line = tokio::task::spawn_blocking(read_line).await;
            parse(line.ok().flatten().as_deref())
        })
    }
}

/// What may be answered.
pub(super) const PROMPT: &str = "allow this once? [y]es / [n]o / no, REASON: ";

/// Reads an answer. Only a clear yes is one: neither an empty line nor the end of the input is.
pub(super) fn parse(line: Option<&str>) -> Answer {
    let line = line.unwrap_or_default().trim();
    match line.to_ascii_lowercase().as_str() {
        "y" | "yes" => Answer::Once,
        _ => Answer::No { reason: reason(line) },
    }
}

/// What stands behind the no, for the model.
fn reason(line: &str) -> Option<String> {
    let rest = line.split_once([',', ' ']).map(|(_, rest)| rest.trim())?;
    (!rest.is_empty()).then(|| rest.to_owned())
}

fn read_line() -> Option<String> {
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).ok()?;
    Some(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_clear_yes_is_a_yes() {
        for yes in ["y", "Y", "yes", " yes \n"] {
            assert_eq!(parse(Some(yes)), Answer::Once, "{yes:?}");
        }
        for no in [None, Some(""), Some("\n"), Some("n"), Some("maybe"), Some("yess")] {
            assert!(matches!(parse(no), Answer::No { .. }), "{no:?}");
        }
        let reason = Answer::No { reason: Some("use the other folder".into()) };
        assert_eq!(parse(Some("no, use the other folder")), reason);
    }
}
