//! `sallyport plugin dev`: builds a plugin whenever its sources change, and puts it into use.
//!
//! The user has named the folder as their own, so a new build is accepted without a question. A chat
//! that runs loads it from its next turn on.

use std::{
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant, SystemTime},
};

use sallyport_contract::{PluginName, text};
use sallyport_plugin_build::{PluginProject, build_project};
use sallyport_runtime::{
    config::HostSettings,
    installation::{InstallationError, StagedPlugin},
    lock::{LockError, LockFile},
    registry::PluginSelection,
};

use super::{
    args::{BuildArgs, DevArgs, TestArgs},
    build::build_options,
    cases, install,
    source::{record_source, recorded_source},
};
use crate::cli::{
    args::{OutputArgs, OutputFormat},
    exit::{CommandFailure, ExitStatus},
    interrupt::InterruptListener,
    output::CliOutput,
    setup,
};

/// How often the sources are looked at. Nobody notices so short a delay.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// Folders that compilers and package managers write.
pub(super) const OUTPUT_FOLDERS: [&str; 5] =
    ["target", "node_modules", "dist", "build", "__pycache__"];

/// Deepest folder of sources, and most files, that are looked at.
const DEPTH_MAX: usize = 8;
const FILES_MAX: usize = 5_000;

/// A source file as it was last seen.
type SeenSource = (PathBuf, Option<SystemTime>, u64);

/// Builds and installs until the user interrupts.
pub(super) async fn develop_plugin(
    settings: &HostSettings,
    args: &DevArgs,
    out: &CliOutput,
) -> Result<ExitStatus, CommandFailure> {
    let project = PluginProject::open(&args.folder)?;
    let name = project.manifest.name.clone();
    confirm_place(settings, &project, args.yes, out)?;
    let mut interrupts = InterruptListener::new();
    loop {
        let seen = look(&project.folder);
        match build_and_install(settings, &args.folder, out).await {
            Ok(()) if project.folder.join("cases.json").is_file() => {
                run_cases(settings, &project.folder, out).await;
            }
            Ok(()) => {}
            Err(failure) => {
                out.print_failure(&failure);
            }
        }
        out.print_note(&format!("Watching {}. Ctrl-C ends it.", project.folder.display()));
        tokio::select! {
            biased;
            () = interrupts.wait() => break,
            () = wait_for_change(&project.folder, seen) => {}
        }
    }
    out.print_note(&format!(
        "{name} stays installed. To remove it: sallyport plugin remove {name}"
    ));
    Ok(ExitStatus::Done)
}

/// Makes sure that the plugin replaces none that the user has from elsewhere.
fn confirm_place(
    settings: &HostSettings,
    project: &PluginProject,
    yes: bool,
    out: &CliOutput,
) -> Result<(), CommandFailure> {
    let name = &project.manifest.name;
    let target = install::first_plugin_dir(settings)?.join(name.as_str());
    install::check_place(settings, name, &target)?;
    let folder = project.folder.display().to_string();
    let is_from_here = recorded_source(settings, name).is_ok_and(|origin| origin == folder);
    if !target.exists() || is_from_here || yes {
        return Ok(());
    }
    let question = format!("{name} is installed from another place. Replace it?");
    match setup::ask_confirmation(&question, out)? {
        true => Ok(()),
        false => Err(CommandFailure::new(ExitStatus::Failed, "nothing was changed")),
    }
}

async fn build_and_install(
    settings: &HostSettings,
    folder: &Path,
    out: &CliOutput,
) -> Result<(), CommandFailure> {
    let started = Instant::now();
    // The manifest may have changed, too.
    let project = PluginProject::open(folder)?;
    let args = BuildArgs::for_folder(folder);
    build_project(&project, &build_options(settings, &args)?, &project.default_output())?;
    let built = started.elapsed();
    let tools = accept_and_install(settings, &project, out).await?;
    let name = &project.manifest.name;
    out.print_line(&format!("Built {name} in {:.1} s: {tools}.", built.as_secs_f64()));
    Ok(())
}

/// Accepts the plugin as it is now and puts it into the plugin folder. Returns its tools.
async fn accept_and_install(
    settings: &HostSettings,
    project: &PluginProject,
    out: &CliOutput,
) -> Result<String, CommandFailure> {
    let staged = StagedPlugin::copy_plugin(&project.folder, install::first_plugin_dir(settings)?)?;
    let selection = PluginSelection::File(staged.folder().to_owned());
    let registry = setup::load_selected_registry(settings, selection, out).await?;
    let entry = install::find_staged_plugin(&registry, &staged, &project.folder)?;
    let (name, accepted) = (entry.name().clone(), entry.as_accepted());
    let tools: Vec<&str> = entry.tools().iter().map(|tool| tool.id.tool.as_str()).collect();
    let tools = tools.join(", ");
    registry.shutdown().await;
    let lock = LockFile::read(&settings.paths.lock_file(), &settings.paths.state)?;
    setup::record_policy_change(settings, name.as_str(), "built, installed and accepted", || {
        let list = lock.begin_change()?;
        let before = list.entry(&name)?;
        // Accepted first, so that a chat which sees the new file finds it accepted.
        list.accept_plugins([accepted])?;
        staged.install(&name, || Ok(())).inspect_err(|_| {
            // What is still installed is the plugin that was accepted before.
            if let Err(error) = list.restore_entry(before) {
                print_unrestored(&name, &error, out);
            }
        })?;
        Ok::<(), InstallationError>(())
    })?;
    record_source(settings, &name, Some(&project.folder.display().to_string()))?;
    Ok(tools)
}

fn print_unrestored(name: &PluginName, error: &LockError, out: &CliOutput) {
    let error = text::escape_line(&error.to_string());
    out.print_warning(&format!(
        "the installed {name} is disabled until you accept it again with `sallyport plugin accept \
         {name}`: {error}"
    ));
}

async fn run_cases(settings: &HostSettings, folder: &Path, out: &CliOutput) {
    let args = TestArgs {
        path: folder.to_owned(),
        cases: None,
        update: false,
        output: OutputArgs { output: OutputFormat::Text },
    };
    if let Err(failure) = cases::test_plugin(settings, &args, out).await {
        out.print_failure(&failure);
    }
}

/// Waits until the sources differ, and then stay the same for a while, because editors write a file
/// in pieces.
async fn wait_for_change(folder: &Path, seen: Vec<SeenSource>) {
    let mut before = seen.clone();
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        let now = look(folder);
        if now != seen && now == before {
            return;
        }
        before = now;
    }
}

fn look(folder: &Path) -> Vec<SeenSource> {
    let mut seen = Vec::new();
    look_into(folder, DEPTH_MAX, &mut seen);
    seen.sort();
    seen
}

fn look_into(folder: &Path, depth: usize, seen: &mut Vec<SeenSource>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_output = name.starts_with('.')
            || name.ends_with(".wasm")
            || name.ends_with(".lock")
            || OUTPUT_FOLDERS.contains(&name.as_str());
        let Ok(info) = entry.metadata() else { continue };
        if is_output || seen.len() >= FILES_MAX {
            continue;
        }
        if info.is_dir() && depth > 0 {
            look_into(&entry.path(), depth - 1, seen);
        } else if info.is_file() {
            seen.push((entry.path(), info.modified().ok(), info.len()));
        }
    }
}
