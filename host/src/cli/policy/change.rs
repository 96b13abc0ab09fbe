//! A change to the user's policy: shown, confirmed, written atomically, and recorded.

use std::path::Path;

use sallyport_policy::{
    HintedError,
    edit::{self, DiffLine, EditError, LineChange},
};
use sallyport_runtime::{
    config::HostSettings,
    gate::{rulebook, standing},
};

use crate::cli::{
    compose,
    exit::{Exit, Failure},
    output::Output,
};

/// A requested change.
pub(super) struct Wish<'a> {
    /// The plugin, or a pattern that matches several.
    pub(super) plugin: &'a str,
    /// Description for the record, such as `grants GET https://example.org/`.
    pub(super) what: String,
    /// Whether the user has already confirmed it.
    pub(super) yes: bool,
}

/// Changes the user's policy if the result is valid together with the other files and the user
/// confirms. Returns whether the file was written.
pub(super) fn change(
    settings: &HostSettings,
    wish: &Wish<'_>,
    edit: impl FnOnce(&str) -> Result<String, EditError>,
    out: &Output,
) -> Result<bool, Failure> {
    let file = settings.policy.user_file();
    let before = rulebook::read_policy(file).map_err(|error| unusable(file, &error))?;
    let after = edit(&before).map_err(|error| uneditable(file, &error))?;
    standing::parse_proposed_policy(&settings.policy, &after)?;
    if after == before {
        out.line(&format!("{} says so already.", file.display()));
        return Ok(false);
    }
    out.line(&file.display().to_string());
    edit::diff_lines(&before, &after).iter().for_each(|line| print(line, out));
    if !wish.yes && !compose::confirms("Write this?", out)? {
        out.note("Nothing was changed.");
        return Ok(false);
    }
    if rulebook::read_policy(file)? != before {
        let message = format!("{} changed in the meantime; nothing was written", file.display());
        return Err(Failure::new(Exit::Failed, message).with_hint("run the command again"));
    }
    compose::record_policy(settings, wish.plugin, &wish.what, || {
        rulebook::write_policy(file, &after).map_err(|error| unusable(file, &error))
    })?;
    out.line("Saved. Running sessions use it from the next call.");
    Ok(true)
}

fn print(line: &DiffLine, out: &Output) {
    let mark = match line.change {
        LineChange::Kept => ' ',
        LineChange::Added => '+',
        LineChange::Removed => '-',
    };
    out.line(&format!("{:5} {mark} {}", line.number, line.text));
}

fn unusable(file: &Path, error: &std::io::Error) -> Failure {
    let failure = Failure::new(Exit::Policy, format!("cannot use {}: {error}", file.display()));
    failure.with_hint("check the path and its permissions")
}

/// A fault in the file is a policy error. All others are usage errors.
fn uneditable(file: &Path, error: &EditError) -> Failure {
    let failure = match error {
        EditError::Syntax { .. } | EditError::Shape { .. } => {
            Failure::new(Exit::Policy, format!("{}:{error}", file.display()))
        }
        EditError::Unfit { .. } | EditError::Absent { .. } | EditError::Ambiguous { .. } => {
            Failure::new(Exit::Usage, error.to_string())
        }
    };
    Failure { hint: error.hint(), ..failure }
}
