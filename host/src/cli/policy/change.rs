//! A change to the user's policy: shown, confirmed, written atomically, and recorded.

use std::path::{Path, PathBuf};

use sallyport_contract::text;
use sallyport_policy::{
    HintedError,
    edit::{self, DiffLine, EditError, FsAddition, GrantAddition},
};
use sallyport_runtime::{
    atomic_file::WriteLock,
    config::HostSettings,
    gate::{policy_store, user_policy},
    permissions::is_missing,
};

use sallyport_terminal::style::StyledLine;

use crate::cli::{
    exit::{CommandFailure, ExitStatus},
    output::CliOutput,
    setup,
};

/// Columns before the text of a changed line, and before the rest of a long one.
const DIFF_INDENT: usize = 8;

/// A requested change.
pub(in crate::cli) struct PolicyChangeRequest<'a> {
    /// The plugin, or a pattern that matches several.
    pub(in crate::cli) plugin: &'a str,
    /// Description for the record, such as `grants GET https://example.org/`.
    pub(in crate::cli) description: String,
    /// Whether the user has already confirmed it.
    pub(in crate::cli) is_confirmed: bool,
}

/// Changes the user's policy if the result is valid together with the other files and the user
/// confirms. Returns whether the file was written.
pub(in crate::cli) fn change_policy(
    settings: &HostSettings,
    request: &PolicyChangeRequest<'_>,
    edit: impl FnOnce(&str) -> Result<String, EditError>,
    out: &CliOutput,
) -> Result<bool, CommandFailure> {
    let Some(change) = propose_change(settings, edit, out)? else { return Ok(false) };
    if !request.is_confirmed && !setup::ask_confirmation("Write this?", out)? {
        out.print_note("Nothing was changed.");
        return Ok(false);
    }
    save_change(settings, request, &change, out)?;
    Ok(true)
}

/// Warns of granted folders and files that do not exist, because every call of the plugin fails
/// until they do.
pub(in crate::cli) fn warn_of_missing_paths(
    settings: &HostSettings,
    grants: &[GrantAddition],
    out: &CliOutput,
) {
    let home = settings.policy.home.as_deref();
    for addition in grants {
        let GrantAddition::Fs(FsAddition { path, .. }) = addition else { continue };
        let on_host = match (path.strip_prefix("~/"), home) {
            (Some(rest), Some(home)) => home.join(rest),
            _ => PathBuf::from(path),
        };
        if is_missing(&on_host) {
            out.print_warning(&format!(
                "{} does not exist at the moment: calls fail until you create it",
                text::escape_line(path)
            ));
        }
    }
}

/// A change that was shown, and is not written yet.
pub(in crate::cli) struct ProposedPolicyChange {
    before: String,
    after: String,
}

/// Shows a change of the user's policy. `None` if the policy has it already.
pub(in crate::cli) fn propose_change(
    settings: &HostSettings,
    edit: impl FnOnce(&str) -> Result<String, EditError>,
    out: &CliOutput,
) -> Result<Option<ProposedPolicyChange>, CommandFailure> {
    let file = settings.policy.user_file();
    let before = user_policy::read_policy(file).map_err(|error| file_failure(file, &error))?;
    let after = edit(&before).map_err(|error| edit_failure(file, &error))?;
    policy_store::parse_proposed_policy(&settings.policy, &after)?;
    if after == before {
        out.print_text(&format!("{} says so already.", file.display()));
        return Ok(None);
    }
    print_diff(file, &before, &after, out);
    Ok(Some(ProposedPolicyChange { before, after }))
}

/// Shows the difference between two texts of a file.
pub(in crate::cli) fn print_diff(file: &Path, before: &str, after: &str, out: &CliOutput) {
    out.print_line(&file.display().to_string());
    edit::diff_lines(before, after).iter().for_each(|line| print_diff_line(line, out));
}

/// Writes a change that the user has confirmed, unless the file was changed in the meantime.
pub(in crate::cli) fn save_change(
    settings: &HostSettings,
    request: &PolicyChangeRequest<'_>,
    change: &ProposedPolicyChange,
    out: &CliOutput,
) -> Result<(), CommandFailure> {
    let file = settings.policy.user_file();
    let ProposedPolicyChange { before, after } = change;
    let _lock = WriteLock::take(file).map_err(|error| file_failure(file, &error))?;
    if user_policy::read_policy(file)? != *before {
        let message = format!("{} changed in the meantime; nothing was written", file.display());
        return Err(
            CommandFailure::new(ExitStatus::Failed, message).with_hint("run the command again")
        );
    }
    setup::record_policy_change(settings, request.plugin, &request.description, || {
        user_policy::write_policy(file, after).map_err(|error| file_failure(file, &error))
    })?;
    out.print_line("Saved. Running sessions use it from the next call.");
    Ok(())
}

fn print_diff_line(line: &DiffLine, out: &CliOutput) {
    let text = text::escape_line(&line.text);
    let line = StyledLine::plain(format!("{:5} {} {text}", line.number, line.change.mark()));
    let columns = out.stdout_columns().unwrap_or(usize::MAX);
    out.print_styled_lines(&line.fold_to_width(columns, DIFF_INDENT));
}

fn file_failure(file: &Path, error: &std::io::Error) -> CommandFailure {
    let failure =
        CommandFailure::new(ExitStatus::Policy, format!("cannot use {}: {error}", file.display()));
    failure.with_hint("check the path and its permissions")
}

/// A fault in the file is a policy error. All others are usage errors.
fn edit_failure(file: &Path, error: &EditError) -> CommandFailure {
    let failure = match error {
        EditError::Syntax { .. } | EditError::Shape { .. } => {
            CommandFailure::new(ExitStatus::Policy, format!("{}:{error}", file.display()))
        }
        EditError::InvalidAddition { .. }
        | EditError::NotRestricted { .. }
        | EditError::GrantedInPart { .. }
        | EditError::NeverAsked { .. }
        | EditError::TakenAway { .. }
        | EditError::NotFound { .. }
        | EditError::Ambiguous { .. } => CommandFailure::new(ExitStatus::Usage, error.to_string()),
    };
    CommandFailure { hint: error.hint(), ..failure }
}
