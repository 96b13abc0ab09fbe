//! `sallyport plugin add|update|remove`: puts a plugin into the plugin folder, and takes it out.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use sallyport_contract::{PluginName, text};
use sallyport_runtime::{
    config::HostSettings,
    installation::{InstallationError, StagedPlugin, installed_entry, remove_plugin_files},
    lock::LockFile,
    plugin_diff::PluginDiff,
    registry::{PluginSelection, RegisteredPlugin, Registry},
};

use super::{
    args::{AddArgs, UpdateArgs},
    difference::print_diff,
    find_only_plugin, print_plugin,
    source::{PluginSource, find_source, record_source, recorded_source},
};
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
            InstallationError::File { .. } | InstallationError::NotUndone { .. } => {
                ExitStatus::Failed
            }
        };
        Self::new(status, text::escape_line(&error.to_string()))
    }
}

/// Installs a plugin after showing what it is and requests. What is shown is the copy that will be
/// installed, so that a source which changes meanwhile changes nothing.
pub(super) async fn add_plugin(
    settings: &HostSettings,
    args: &AddArgs,
    out: &CliOutput,
) -> Result<ExitStatus, CommandFailure> {
    let found = find_source(&args.source, &args.check, args.yes, out).await?;
    let candidate = StagedCandidate::load(settings, &found, out).await?;
    let entry = candidate.entry(&found.path)?;
    let target = candidate.staged.target(entry.name());
    check_place(settings, entry.name(), &target)?;
    print_plugin(entry, Some(Path::new(&found.origin)), out);
    out.print_line("");
    if target.exists() {
        let diff = diff_with_installed(settings, &target, entry, out).await?;
        print_replacement(entry.name(), diff.as_ref(), out);
    }
    let question = format!("Install it into {}?", target.display());
    if !args.yes && !setup::ask_confirmation(&question, out)? {
        out.print_note("Nothing was changed.");
        return Ok(ExitStatus::Done);
    }
    candidate.install(settings, &found, out).await
}

/// Installs another version of a plugin. Asks only if the new version is wider.
pub(super) async fn update_plugin(
    settings: &HostSettings,
    name: &PluginName,
    args: &UpdateArgs,
    out: &CliOutput,
) -> Result<ExitStatus, CommandFailure> {
    let source = args.source.clone().map_or_else(|| recorded_source(settings, name), Ok)?;
    let found = find_source(&source, &args.check, args.yes, out).await?;
    let candidate = StagedCandidate::load(settings, &found, out).await?;
    let entry = candidate.entry(&found.path)?;
    if entry.name() != name {
        let message = format!("this is the plugin {}, and not {name}", entry.name());
        return Err(CommandFailure::new(ExitStatus::Usage, message));
    }
    let target = candidate.staged.target(name);
    let diff = diff_with_installed(settings, &target, entry, out).await?;
    match &diff {
        Some(diff) if diff.is_empty() => {
            out.print_line(&format!("{name} is up to date."));
            return Ok(ExitStatus::Done);
        }
        Some(diff) => print_diff(diff, out),
        None => print_plugin(entry, Some(Path::new(&found.origin)), out),
    }
    let asks = !args.yes && diff.is_none_or(|diff| diff.is_wider);
    if asks && !setup::ask_confirmation(&format!("Update {name}?"), out)? {
        out.print_note("Nothing was changed.");
        return Ok(ExitStatus::Done);
    }
    candidate.install(settings, &found, out).await
}

/// A copy of a plugin that can be installed, loaded for inspection.
struct StagedCandidate {
    staged: StagedPlugin,
    registry: Arc<Registry>,
}

impl StagedCandidate {
    async fn load(
        settings: &HostSettings,
        found: &PluginSource,
        out: &CliOutput,
    ) -> Result<Self, CommandFailure> {
        let staged = StagedPlugin::copy_plugin(&found.path, first_plugin_dir(settings)?)?;
        let selection = PluginSelection::File(staged.folder().to_owned());
        let registry = setup::load_selected_registry(settings, selection, out).await?;
        Ok(Self { staged, registry })
    }

    /// The plugin. `source` names it in errors.
    fn entry(&self, source: &Path) -> Result<&RegisteredPlugin, CommandFailure> {
        find_staged_plugin(&self.registry, &self.staged, source)
    }

    /// Puts it in place, and accepts it.
    async fn install(
        self,
        settings: &HostSettings,
        found: &PluginSource,
        out: &CliOutput,
    ) -> Result<ExitStatus, CommandFailure> {
        let Self { staged, registry } = self;
        let entry = find_only_plugin(&registry, &found.path)?;
        let (name, accepted) = (entry.name().clone(), entry.as_accepted());
        let has_all = call_display::ungranted_lines(entry).is_empty();
        registry.shutdown().await;
        let lock = LockFile::read(&settings.paths.lock_file(), &settings.paths.state)?;
        setup::record_policy_change(settings, name.as_str(), "installed and accepted", || {
            // Until it is accepted, no other command may put anything else in its place.
            let list = lock.begin_change()?;
            staged.install(&name, || list.accept_plugins([accepted])).map(drop)
        })?;
        record_source(settings, &name, Some(&found.origin))?;
        out.print_line(&format!("Installed {name}."));
        match has_all {
            true => out.print_note("It has all that it requests."),
            false => out.print_hint(&format!(
                "to grant what it requests: sallyport policy grant {name} --requested"
            )),
        }
        Ok(ExitStatus::Done)
    }
}

/// The plugin of a copy. An error names the source that was copied, because the copy is gone then.
pub(super) fn find_staged_plugin<'r>(
    registry: &'r Registry,
    staged: &StagedPlugin,
    source: &Path,
) -> Result<&'r RegisteredPlugin, CommandFailure> {
    let copy = match (source.is_dir(), source.file_name()) {
        (false, Some(file)) => staged.folder().join(file),
        _ => staged.folder().to_owned(),
    };
    find_only_plugin(registry, source).map_err(|failure| {
        let (copy, source) = (copy.display().to_string(), source.display().to_string());
        CommandFailure { message: failure.message.replace(&copy, &source), ..failure }
    })
}

/// How a plugin differs from the one that is installed. `None` if that one cannot be loaded.
async fn diff_with_installed(
    settings: &HostSettings,
    installed: &Path,
    new: &RegisteredPlugin,
    out: &CliOutput,
) -> Result<Option<PluginDiff>, CommandFailure> {
    let selection = PluginSelection::File(installed.to_owned());
    let registry = setup::load_selected_registry(settings, selection, out).await?;
    let old = registry.entries().next().map(RegisteredPlugin::snapshot);
    registry.shutdown().await;
    Ok(old.map(|old| PluginDiff::between(&old, &new.snapshot())))
}

/// Shows how the new plugin differs from the installed one.
fn print_replacement(name: &PluginName, diff: Option<&PluginDiff>, out: &CliOutput) {
    match diff.filter(|diff| !diff.is_empty()) {
        Some(diff) => {
            out.print_warning(&format!("it replaces {name}, which is installed. What differs:"));
            print_diff(diff, out);
        }
        None => out.print_note(&format!("{name} is installed already; this replaces it.")),
    }
}

/// The folder that plugins are installed in.
pub(super) fn first_plugin_dir(settings: &HostSettings) -> Result<&Path, CommandFailure> {
    settings.plugin_dirs.first().map(PathBuf::as_path).ok_or_else(no_plugin_dir_failure)
}

/// Removes an installed plugin from its folder and from the list of accepted plugins.
pub(super) async fn remove_plugin(
    settings: &HostSettings,
    name: &PluginName,
    yes: bool,
    out: &CliOutput,
) -> Result<ExitStatus, CommandFailure> {
    let installed = find_installed(settings, name, out).await?;
    let question = format!("Remove {}?", installed.display());
    if !yes && !setup::ask_confirmation(&question, out)? {
        out.print_note("Nothing was changed.");
        return Ok(ExitStatus::Done);
    }
    let lock = LockFile::read(&settings.paths.lock_file(), &settings.paths.state)?;
    setup::record_policy_change(settings, name.as_str(), "removed", || {
        let list = lock.begin_change()?;
        remove_plugin_files(&installed, || list.remove_plugin(name))
    })?;
    out.print_line(&format!("Removed {name}."));
    out.print_note(&format!(
        "Its grants and its data stay: `sallyport policy revoke {name} --all` and `sallyport state \
         clear {name}` remove them."
    ));
    record_source(settings, name, None)?;
    Ok(ExitStatus::Done)
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
pub(super) fn check_place(
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
