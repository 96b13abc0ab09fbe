//! Asking at the terminal, for commands that have no session.

use sallyport_contract::{Answer, ApprovalRequest, BoxFuture, Consent, PluginName, text};

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
            self.out.aside(prompt(&request));
            let line = tokio::task::spawn_blocking(read_line).await;
            parse(line.ok().flatten().as_deref(), request.rule.is_some())
        })
    }
}

/// What may be answered: "always" only where a rule would help.
pub(super) fn prompt(request: &ApprovalRequest) -> &'static str {
    match request.rule {
        Some(_) => "allow? [y]es, once / for this [s]ession / [a]lways / [n]o / no, REASON: ",
        None => "allow? [y]es, once / for this [s]ession / [n]o / no, REASON: ",
    }
}

/// Reads an answer. Only a clear yes is one: neither an empty line nor the end of the input is, nor
/// a word that was not offered.
pub(super) fn parse(line: Option<&str>, offers_always: bool) -> Answer {
    let line = line.unwrap_or_default().trim();
    match line.to_ascii_lowercase().as_str() {
        "y" | "yes" => Answer::Once,
        "s" | "session" => Answer::Session,
        "a" | "always" if offers_always => Answer::Always,
        _ => Answer::No { reason: reason(line) },
    }
}

/// What stands behind the no, for the model.
fn reason(line: &str) -> Option<String> {
    let rest = line.split_once([',', ' ']).map(|(_, rest)| rest.trim())?;
    (!rest.is_empty()).then(|| rest.to_owned())
}

/// Shows what has changed about a plugin since it was agreed to, and asks whether that is agreed to.
/// Where nobody can be asked, it is not.
pub(super) fn agrees_to_change(plugin: &PluginName, differences: &[String], out: &Output) -> bool {
    out.warn(&format!("{plugin} has changed since it was agreed to"));
    differences.iter().for_each(|difference| out.block(&text::one_line(difference)));
    if !out.can_ask {
        out.hint(&format!("`sallyport plugin accept {plugin}` agrees to it"));
        return false;
    }
    out.forget_typed();
    out.aside("use it as it is now? [y]es / [n]o: ");
    says_yes()
}

/// Reads a line from the terminal, and whether it is a yes.
pub(super) fn says_yes() -> bool {
    matches!(parse(read_line().as_deref(), false), Answer::Once)
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
        let rows = [
            ("y", Answer::Once),
            ("Y", Answer::Once),
            (" yes \n", Answer::Once),
            ("s", Answer::Session),
            ("session", Answer::Session),
            ("a", Answer::Always),
            ("ALWAYS", Answer::Always),
        ];
        for (line, answer) in rows {
            assert_eq!(parse(Some(line), true), answer, "{line:?}");
        }
        for no in [None, Some(""), Some("\n"), Some("n"), Some("maybe"), Some("yess"), Some("all")]
        {
            assert!(matches!(parse(no, true), Answer::No { .. }), "{no:?}");
        }
        let reason = Answer::No { reason: Some("use the other folder".into()) };
        assert_eq!(parse(Some("no, use the other folder"), true), reason);
    }

    #[test]
    fn always_is_no_answer_where_it_was_not_offered() {
        for line in ["a", "always"] {
            assert!(matches!(parse(Some(line), false), Answer::No { .. }));
        }
    }
}
