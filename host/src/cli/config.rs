//! `sallyport config` and `sallyport trust`: effective settings, their origins, and trusted
//! projects.

use std::path::{Path, PathBuf};

use clap::{Args as ClapArgs, Subcommand};
use sallyport_runtime::config::{
    self, ConfigFlags, Env, HostPaths, project,
    setting_rows::SettingRow,
    trust::{self, TrustedProjects},
};
use sallyport_terminal::listing::ListRow;
use serde_json::{Map, Value, json};

use super::{
    args::{OutputArgs, OutputFormat},
    exit::{CommandFailure, ExitStatus},
    output::CliOutput,
    setup,
};

// Commands for the configuration.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(super) enum ConfigCommand {
    /// Show all values in use; keys are hidden
    Show {
        /// Show where each value comes from
        #[arg(long)]
        origin: bool,
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Show where the files are
    Path(OutputArgs),
}

// The project whose configuration is trusted.
#[derive(Debug, ClapArgs)]
pub(super) struct TrustArgs {
    /// Stop trusting it
    #[arg(long)]
    pub(super) remove: bool,
    /// The project's folder, or one within it
    #[arg(value_name = "FOLDER")]
    pub(super) folder: Option<PathBuf>,
}

pub(super) fn run_config_command(
    flags: &ConfigFlags,
    command: &ConfigCommand,
    out: &CliOutput,
) -> Result<ExitStatus, CommandFailure> {
    match command {
        ConfigCommand::Path(args) => print_paths(flags, args.output, out)?,
        ConfigCommand::Show { origin, output } => {
            let rows = setup::read_settings(flags)?.setting_rows();
            match output.output {
                OutputFormat::Text => rows.iter().for_each(|row| print_row(row, *origin, out)),
                OutputFormat::Json => out.print_json(&rows_to_json(&rows)),
            }
        }
    }
    Ok(ExitStatus::Done)
}

/// Prints a line of TOML that can be copied into a file. An unset value becomes a comment.
fn print_row(row: &SettingRow, with_origin: bool, out: &CliOutput) {
    let line = match &row.value {
        Value::Null => format!("# {} is not set", row.key),
        value => format!("{} = {value}", row.key),
    };
    match with_origin {
        true => out.print_line(&format!("{line}  # {}", row.origin)),
        false => out.print_line(&line),
    }
}

fn rows_to_json(rows: &[SettingRow]) -> Value {
    let pairs = rows
        .iter()
        .map(|row| (row.key.clone(), json!({ "value": row.value, "origin": row.origin })));
    Value::Object(Map::from_iter(pairs))
}

/// Prints the paths of files and folders without reading them, so that a broken file can be found.
fn print_paths(
    flags: &ConfigFlags,
    format: OutputFormat,
    out: &CliOutput,
) -> Result<(), CommandFailure> {
    let paths = HostPaths::new(&Env::from_process())?;
    let user = config::config_file_path(flags, &paths);
    let project = canonical_folder(None)
        .ok()
        .and_then(|folder| project::find_nearest_project(&folder, &user).0);
    let rows = [
        ("config", Some(user)),
        ("project", project),
        ("policy", Some(flags.policy.clone().unwrap_or_else(|| paths.policy_file()))),
        ("lock", Some(paths.lock_file())),
        ("state", Some(paths.state)),
        ("cache", Some(paths.cache)),
    ];
    match format {
        OutputFormat::Text => {
            let existing = rows.iter().filter_map(|(name, path)| Some((name, path.as_ref()?)));
            let row = |(name, path): (&&str, &PathBuf)| {
                ListRow::new([name, path.display().to_string().as_str()])
            };
            out.print_list(&existing.map(row).collect::<Vec<_>>());
        }
        OutputFormat::Json => {
            let pairs = rows.map(|(name, path)| (name.to_owned(), json!(path)));
            out.print_json(&Value::Object(Map::from_iter(pairs)));
        }
    }
    Ok(())
}

/// Trusts the configuration of a project and prints it for review.
pub(super) fn trust_project(
    flags: &ConfigFlags,
    args: &TrustArgs,
    out: &CliOutput,
) -> Result<ExitStatus, CommandFailure> {
    let env = Env::from_process();
    let paths = HostPaths::new(&env)?;
    let folder = canonical_folder(args.folder.as_deref())?;
    let file = project::find_nearest_project(&folder, &config::config_file_path(flags, &paths))
        .0
        .ok_or_else(|| {
        let message = format!("{} is in no project that has a configuration", folder.display());
        CommandFailure::new(ExitStatus::Policy, message)
            .with_hint("a project configuration is called .sallyport/sallyport.toml")
    })?;
    let trusted = TrustedProjects::read(&paths.state)?;
    if args.remove {
        let result_text = match trusted.remove(&file)? {
            true => "is not trusted any more",
            false => "was not trusted",
        };
        out.print_line(&format!("{} {result_text}.", file.display()));
        return Ok(ExitStatus::Done);
    }
    // Trust exactly the text that was read, because the file may change meanwhile.
    let text = project::read_project_file(&file, &env)?;
    trusted.add(&file, trust::content_digest(&text))?;
    out.print_line(&format!("{} is trusted as it is now. It says:", file.display()));
    text.lines().for_each(|line| out.print_line(&format!("    {line}")));
    Ok(ExitStatus::Done)
}

/// Canonical path of a folder, so that trust does not depend on how the user reached it.
fn canonical_folder(named: Option<&Path>) -> Result<PathBuf, CommandFailure> {
    let folder = named.unwrap_or(Path::new("."));
    folder.canonicalize().map_err(|error| {
        CommandFailure::new(
            ExitStatus::Usage,
            format!("there is no folder {}: {error}", folder.display()),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_can_be_put_into_a_file() {
        let rows = [("a.b", json!("x\"y\n")), ("c", json!([1, 2])), ("d", json!(0.5))];
        for (key, value) in rows {
            let text = format!("{key} = {value}");
            assert!(toml::from_str::<Value>(&text).is_ok(), "{text}");
        }
    }
}
