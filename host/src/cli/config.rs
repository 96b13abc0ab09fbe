//! `sallyport config` and `sallyport trust`: effective settings, their origins, and trusted
//! projects.

use std::path::{Path, PathBuf};

use clap::{Args as ClapArgs, Subcommand};
use sallyport_runtime::config::{
    self, ConfigFlags, Env, HostPaths, project,
    shown::SettingRow,
    trust::{self, TrustedProjects},
};
use serde_json::{Map, Value, json};

use super::{
    args::{Format, OutputArgs},
    compose,
    exit::{Exit, Failure},
    output::Output,
};

/// Commands for the configuration.
#[derive(Debug, Subcommand)]
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

/// The project whose configuration is trusted.
#[derive(Debug, ClapArgs)]
pub(super) struct TrustArgs {
    /// Stop trusting it
    #[arg(long)]
    pub(super) remove: bool,
    /// The project's folder, or one within it
    #[arg(value_name = "FOLDER")]
    pub(super) folder: Option<PathBuf>,
}

pub(super) fn config(
    flags: &ConfigFlags,
    command: &ConfigCommand,
    out: &Output,
) -> Result<Exit, Failure> {
    match command {
        ConfigCommand::Path(args) => paths(flags, args.output, out)?,
        ConfigCommand::Show { origin, output } => {
            let rows = compose::settings(flags)?.setting_rows();
            match output.output {
                Format::Text => rows.iter().for_each(|row| print(row, *origin, out)),
                Format::Json => out.json(&as_json(&rows)),
            }
        }
    }
    Ok(Exit::Done)
}

/// Prints a line of TOML that can be copied into a file. An unset value becomes a comment.
fn print(row: &SettingRow, with_origin: bool, out: &Output) {
    let line = match &row.value {
        Value::Null => format!("# {} is not set", row.key),
        value => format!("{} = {value}", row.key),
    };
    match with_origin {
        true => out.line(&format!("{line}  # {}", row.origin)),
        false => out.line(&line),
    }
}

fn as_json(rows: &[SettingRow]) -> Value {
    let pairs = rows
        .iter()
        .map(|row| (row.key.clone(), json!({ "value": row.value, "origin": row.origin })));
    Value::Object(Map::from_iter(pairs))
}

/// Prints the paths of files and folders without reading them, so that a broken file can be found.
fn paths(flags: &ConfigFlags, format: Format, out: &Output) -> Result<(), Failure> {
    let paths = HostPaths::new(&Env::from_process())?;
    let user = config::config_file_path(flags, &paths);
    let project =
        folder(None).ok().and_then(|folder| project::find_nearest_project(&folder, &user).0);
    let rows = [
        ("config", Some(user)),
        ("project", project),
        ("policy", Some(flags.policy.clone().unwrap_or_else(|| paths.policy_file()))),
        ("lock", Some(paths.lock_file())),
        ("state", Some(paths.state)),
        ("cache", Some(paths.cache)),
    ];
    match format {
        Format::Text => {
            let there = rows.iter().filter_map(|(name, path)| Some((name, path.as_ref()?)));
            there.for_each(|(name, path)| out.pair(name, 8, &path.display().to_string()));
        }
        Format::Json => {
            let pairs = rows.map(|(name, path)| (name.to_owned(), json!(path)));
            out.json(&Value::Object(Map::from_iter(pairs)));
        }
    }
    Ok(())
}

/// Trusts the configuration of a project and prints it for review.
pub(super) fn trust(flags: &ConfigFlags, args: &TrustArgs, out: &Output) -> Result<Exit, Failure> {
    let env = Env::from_process();
    let paths = HostPaths::new(&env)?;
    let folder = folder(args.folder.as_deref())?;
    let file = project::find_nearest_project(&folder, &config::config_file_path(flags, &paths))
        .0
        .ok_or_else(|| {
        let message = format!("{} is in no project that has a configuration", folder.display());
        Failure::new(Exit::Policy, message)
            .with_hint("a project configuration is called .sallyport/sallyport.toml")
    })?;
    let trusted = TrustedProjects::read(&paths.state)?;
    if args.remove {
        let said = match trusted.remove(&file)? {
            true => "is not trusted any more",
            false => "was not trusted",
        };
        out.line(&format!("{} {said}.", file.display()));
        return Ok(Exit::Done);
    }
    // Trust exactly the text that was read, because the file may change meanwhile.
    let text = project::read_project_file(&file, &env)?;
    trusted.add(&file, trust::content_digest(&text))?;
    out.line(&format!("{} is trusted as it is now. It says:", file.display()));
    text.lines().for_each(|line| out.line(&format!("    {line}")));
    Ok(Exit::Done)
}

/// Canonical path of a folder, so that trust does not depend on how the user reached it.
fn folder(named: Option<&Path>) -> Result<PathBuf, Failure> {
    let folder = named.unwrap_or(Path::new("."));
    folder.canonicalize().map_err(|error| {
        Failure::new(Exit::Usage, format!("there is no folder {}: {error}", folder.display()))
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
