//! `sallyport plugin add|remove`: puts a plugin into the plugin folder, and takes it out.

use std::path::{Path, PathBuf};

use sallyport_contract::{PluginName, text};
use sallyport_runtime::{
    config::HostSettings,
    installation::{InstallationError, StagedPlugin, installed_entry, remove_plugin_files},
    lock::{LockFile, PinComparison},
    registry::PluginSelection,
};

use super::{find_only_plugin, print_plugin};
use crate::cli::{
    call_display,
    exit::{CommandFailure, ExitStatus},
    output::CliOutput,
    setup,
};

impl From<InstallationError> for CommandFailure {
    fn from(error: InstallationError) -> Self {
        let status = match error {
            InstallationError::Lock(error) => return error.into(),
            InstallationError::Source { .. } => ExitStatus::PluginRejected,
            InstallationError::File { .. } => ExitStatus::Failed,
        };
        Self::new(status, text::escape_line(&error.to_string()))
    }
}

/// Installs a plugin after showing what it is and requests. What is shown is the copy that will be
/// installed, so that a source which changes meanwhile changes nothing.
pub(super) async fn add_plugin(
    settings: &HostSettings,
    path: &Path,
    yes: bool,
    out: &CliOutput,
) -> Result<(), CommandFailure> {
    let plugin_dir = settings.plugin_dirs.first().ok_or_else(no_plugin_dir_failure)?;
    let staged = StagedPlugin::copy_plugin(path, plugin_dir)?;
    let selection = PluginSelection::File(staged.folder().to_owned());
    let registry = setup::load_selected_registry(settings, selection, out).await?;
    let entry = find_only_plugin(&registry, path)?;
    let name = entry.name().clone();
    check_place(settings, &name, &staged.target(&name))?;
    print_plugin(entry, Some(path), out);
    out.print_line("");
    let pin = entry.pin();
    let lock = LockFile::read(&settings.paths.lock_file(), &settings.paths.state)?;
    let comparison = lock.compare_plugin(&name, &pin);
    let is_installed = staged.target(&name).exists();
    print_replacement(&name, is_installed, &comparison, out);
    let has_all = call_display::ungranted_lines(entry).is_empty();
    registry.shutdown().await;
    let question = format!("Install it into {}?", staged.target(&name).display());
    if !yes && !setup::ask_confirmation(&question, out)? {
        out.print_note("Nothing was changed.");
        return Ok(());
    }
    setup::record_policy_change(settings, name.as_str(), "installed and accepted", || {
        staged.install(&name)?;
        Ok::<(), InstallationError>(lock.accept_plugins([(name.clone(), pin)])?)
    })?;
    out.print_line(&format!("Installed {name}."));
    match has_all {
        true => out.print_note("It has all that it requests."),
        false => out.print_hint(&format!(
            "to grant what it requests: sallyport policy grant {name} --requested"
        )),
    }
    Ok(())
}

/// Shows how the new plugin differs from the accepted one.
fn print_replacement(
    name: &PluginName,
    is_installed: bool,
    comparison: &PinComparison,
    out: &CliOutput,
) {
    match (is_installed, comparison) {
        (true, PinComparison::Changed(differences)) => {
            out.print_warning(&format!("it replaces {name}, which is installed. What differs:"));
            differences.iter().for_each(|line| out.print_block(&text::escape_line(line)));
        }
        (true, _) => out.print_note(&format!("{name} is installed already; this replaces it.")),
        (false, _) => {}
    }
}

/// Removes an installed plugin from its folder and from the list of accepted plugins.
pub(super) async fn remove_plugin(
    settings: &HostSettings,
    name: &PluginName,
    yes: bool,
    out: &CliOutput,
) -> Result<(), CommandFailure> {
    let installed = find_installed(settings, name, out).await?;
    let question = format!("Remove {}?", installed.display());
    if !yes && !setup::ask_confirmation(&question, out)? {
        out.print_note("Nothing was changed.");
        return Ok(());
    }
    let lock = LockFile::read(&settings.paths.lock_file(), &settings.paths.state)?;
    setup::record_policy_change(settings, name.as_str(), "removed", || {
        remove_plugin_files(&installed)?;
        Ok::<(), InstallationError>(lock.remove_plugin(name)?)
    })?;
    out.print_line(&format!("Removed {name}."));
    out.print_note(&format!(
        "Its grants and its data stay: `sallyport policy revoke {name} --all` and `sallyport state \
         clear {name}` remove them."
    ));
    Ok(())
}

/// The entry of a plugin folder that holds a plugin. One that cannot be loaded is found by the name
/// of its folder.
async fn find_installed(
    settings: &HostSettings,
    name: &PluginName,
    out: &CliOutput,
) -> Result<PathBuf, CommandFailure> {
    let registry = setup::load_registry(settings, out).await?;
    let loaded = registry.find_plugin(name.as_str()).map(|entry| entry.file().map(Path::to_owned));
    registry.shutdown().await;
    let folders = settings.plugin_dirs.iter().map(|folder| folder.join(name.as_str()));
    match loaded {
        Ok(Some(file)) => installed_entry(&file, &settings.plugin_dirs).ok_or_else(|| {
            let message = format!("{name} is in none of the plugin folders: {}", file.display());
            CommandFailure::new(ExitStatus::Failed, message)
        }),
        Ok(None) => Err(CommandFailure::new(
            ExitStatus::Usage,
            format!("{name} is built into the program and cannot be removed"),
        )
        .with_hint("`internal.reminder = false` in sallyport.toml switches it off")),
        Err(unknown) => {
            let broken = folders.into_iter().find(|folder| folder.symlink_metadata().is_ok());
            broken.ok_or_else(|| unknown.into())
        }
    }
}

/// Makes sure that no other plugin has the name.
fn check_place(
    settings: &HostSettings,
    name: &PluginName,
    target: &Path,
) -> Result<(), CommandFailure> {
    let file_name = format!("{name}.wasm");
    let elsewhere = settings
        .plugin_dirs
        .iter()
        .flat_map(|folder| [folder.join(name.as_str()), folder.join(&file_name)]);
    match elsewhere.into_iter().find(|path| path != target && path.exists()) {
        None => Ok(()),
        Some(other) => {
            let message = format!("{name} is installed in another place: {}", other.display());
            let hint = format!("remove it first: sallyport plugin remove {name}");
            Err(CommandFailure::new(ExitStatus::Failed, message).with_hint(hint))
        }
    }
}

fn no_plugin_dir_failure() -> CommandFailure {
    CommandFailure::new(ExitStatus::Policy, "there is no plugin folder")
        .with_hint("name one with --plugin-dir or plugin_dir")
}
