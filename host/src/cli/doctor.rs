//! `sallyport doctor`: checks the installation. Each check has an id, a status and a remedy.
//!
//! The output sums up what is fine, and shows in detail what is not. Only the cache may change. No key is printed.

mod stored;
mod summary;

use std::path::Path;

use clap::Args as ClapArgs;
use sallyport_policy::{PluginRole, UngrantedRequest};
use sallyport_runtime::{
    config::{ConfigFlags, HostSettings, ModelChoice, trust},
    permissions::missing_paths,
    registry::{PluginAvailability, PluginKind, RegisteredPlugin, Registry},
    roles::find_role_plugin,
    secrets::Vault,
    session::ModelHandle,
};
use sallyport_sandbox::compile::{CompilerIsolation, IsolationLayerStatus};
use sallyport_store::HostStore;
use sallyport_terminal::listing::ListRow;
use serde::Serialize;
use serde_json::json;

use super::{
    args::{OutputArgs, OutputFormat},
    call_display,
    exit::{CommandFailure, ExitStatus},
    output::CliOutput,
    setup,
};

#[derive(Debug, ClapArgs)]
pub(super) struct DoctorArgs {
    #[command(flatten)]
    pub(super) output: OutputArgs,
}

/// Largest store whose audit is verified, in bytes. This takes a few seconds.
const AUDIT_CHECKED_BYTES_MAX: u64 = 64 << 20;

/// The result of one check.
#[derive(Debug, Serialize)]
struct DoctorCheck {
    id: &'static str,
    status: CheckStatus,
    finding: String,
    remedy: Option<String>,
    /// The plugin that the user has not set up completely, if the check is about that.
    #[serde(skip)]
    plugin_gap: Option<(PluginGap, String)>,
}

/// What a plugin lacks that only the user can give. That is no fault of the installation: a user who
/// has just installed plugins lacks all of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PluginGap {
    /// Grants that it requests.
    Grants,
    /// Settings or environment variables.
    Configuration,
}

/// The worst status is the largest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
enum CheckStatus {
    Ok,
    /// Something that the user may still want to do.
    Note,
    Warning,
    Failed,
}

impl CheckStatus {
    fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Failed => "failed",
        }
    }
}

impl DoctorCheck {
    fn ok(id: &'static str, finding: impl Into<String>) -> Self {
        let finding = finding.into();
        Self { id, status: CheckStatus::Ok, finding, remedy: None, plugin_gap: None }
    }

    fn note(id: &'static str, finding: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { status: CheckStatus::Note, ..Self::warning(id, finding, remedy) }
    }

    fn warning(id: &'static str, finding: impl Into<String>, remedy: impl Into<String>) -> Self {
        let remedy = Some(remedy.into());
        Self { status: CheckStatus::Warning, remedy, ..Self::ok(id, finding) }
    }

    fn failed(id: &'static str, finding: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { status: CheckStatus::Failed, ..Self::warning(id, finding, remedy) }
    }

    fn list_row(&self) -> ListRow {
        step_row(self.id, self.status.as_str(), &self.finding, self.remedy.as_deref())
    }

    /// A failure whose own hint is the remedy, if it has one.
    fn from_failure(id: &'static str, failure: impl Into<CommandFailure>, remedy: &str) -> Self {
        let CommandFailure { message, hint, .. } = failure.into();
        Self::failed(id, message, hint.unwrap_or_else(|| remedy.to_owned()))
    }
}

pub(super) async fn run_doctor_command(
    flags: &ConfigFlags,
    args: &DoctorArgs,
    is_verbose: bool,
    out: &CliOutput,
) -> Result<ExitStatus, CommandFailure> {
    let checks = match HostSettings::resolve(flags, sallyport_runtime::config::Env::from_process())
    {
        Ok(settings) => {
            setup::warn_of_ignored_files(&settings);
            run_checks(&settings, out).await
        }
        Err(error) => {
            let remedy = error.hint().unwrap_or_else(|| "mend the file".into());
            vec![DoctorCheck::failed("configuration", error.to_string(), remedy)]
        }
    };
    match args.output.output {
        OutputFormat::Text if is_verbose => {
            out.print_list(&checks.iter().map(DoctorCheck::list_row).collect::<Vec<_>>());
        }
        OutputFormat::Text => summary::print_summary(&checks, out),
        OutputFormat::Json => out.print_json(&json!(checks)),
    }
    let failed = checks.iter().any(|check| check.status == CheckStatus::Failed);
    Ok(if failed { ExitStatus::Failed } else { ExitStatus::Done })
}

async fn run_checks(settings: &HostSettings, out: &CliOutput) -> Vec<DoctorCheck> {
    // It comes first: without its store, no plugin is loaded.
    let database = stored::check_database(settings).await;
    let has_tables = database.as_ref().is_none_or(|found| found.has_tables);
    let mut checks = Vec::from_iter(database.map(|found| found.check));
    let registry = match setup::load_compiled_registry(settings, out).await {
        Ok(registry) => registry,
        Err(failure) => {
            let is_known = checks.iter().any(|check| check.finding == failure.message);
            let check = DoctorCheck::from_failure("policy", failure, "mend the file");
            checks.extend((!is_known).then_some(check));
            return checks;
        }
    };
    let unready = registry.warm_up();
    checks.extend([
        check_configuration(settings),
        check_policy(settings),
        check_model(settings, &registry),
    ]);
    checks.extend(check_wide_rules(&registry));
    checks.extend(check_project(settings));
    checks.extend(check_secrets(settings, &registry));
    // Without its tables, a database would fail once more, or get them.
    if has_tables {
        checks.push(check_audit(settings).await);
        checks.push(stored::check_sessions(settings).await);
        checks.push(stored::check_connections(settings).await);
    }
    checks.push(check_terminal(settings, out));
    checks.push(check_plugin_folders(settings, &registry));
    checks.extend(check_plugins(&registry));
    checks.extend(check_granted_paths(&registry));
    checks.extend(unready.into_iter().map(|(name, reason)| {
        let finding = format!("{name} cannot be loaded: {reason}");
        DoctorCheck::failed("plugin", finding, "rebuild the plugin")
    }));
    checks.push(check_compiler(&registry));
    checks.push(check_scripts(&registry));
    checks.push(check_cache(settings, &registry));
    registry.shutdown().await;
    checks
}

fn check_configuration(settings: &HostSettings) -> DoctorCheck {
    let file = &settings.config_file;
    let is = if file.exists() { "is sound" } else { "does not exist; the defaults are used" };
    DoctorCheck::ok("configuration", format!("{} {is}", file.display()))
}

/// Checks the configuration of the project around the current folder, and whether it is trusted.
fn check_project(settings: &HostSettings) -> Option<DoctorCheck> {
    let project = settings.project.as_ref()?;
    let trust = match project.is_trusted {
        true => "is sound, and trusted",
        false => "is sound; it is not trusted, so it chooses a model and lowers budgets at most",
    };
    Some(DoctorCheck::ok("project", format!("{} {trust}", project.file.display())))
}

fn check_policy(settings: &HostSettings) -> DoctorCheck {
    let existing = settings.policy.files.iter().filter(|file| file.path.exists());
    let files: Vec<String> =
        existing.map(|file| format!("{} ({})", file.path.display(), file.tier.as_str())).collect();
    let finding = match files.as_slice() {
        [] => {
            format!("{} does not exist; nothing is granted", settings.policy.user_file().display())
        }
        [file] => format!("{file} is sound"),
        files => format!("{} are valid", files.join(", ")),
    };
    DoctorCheck::ok("policy", finding)
}

/// Reports secrets without a value. They are only a warning because a plugin fails only when it
/// needs one.
fn check_secrets(settings: &HostSettings, registry: &Registry) -> Vec<DoctorCheck> {
    let vault = Vault::new(settings.env.clone());
    let policy = registry.gate().policy_store.current().policy;
    let unresolved = policy.secret_sources().filter_map(|(name, source)| {
        let error = vault.get(name.as_str(), source).err()?;
        let remedy =
            error.hint().unwrap_or_else(|| "set it with `sallyport secret set NAME`".to_owned());
        Some(DoctorCheck::warning("secret", error.to_string(), remedy))
    });
    unresolved.collect()
}

/// Verifies the audit. The check adds no record.
async fn check_audit(settings: &HostSettings) -> DoctorCheck {
    let id = "audit";
    let folder = &settings.paths.state;
    match folder_bytes(folder) {
        // Its size is not known here, and reading all of it may take long.
        _ if settings.store.is_some() => {
            return DoctorCheck::ok(id, "in the database; run `sallyport audit verify`");
        }
        None => {
            return match HostStore::check_folder(folder) {
                Ok(()) => DoctorCheck::ok(id, "there is no record yet"),
                Err(error) => DoctorCheck::from_failure(id, error, "mend the folder"),
            };
        }
        Some(bytes) if bytes > AUDIT_CHECKED_BYTES_MAX => {
            let finding = format!("{} is too large to be checked here", folder.display());
            return DoctorCheck::ok(id, finding + "; run `sallyport audit verify`");
        }
        Some(_) => {}
    }
    let found = match setup::open_store(settings) {
        Ok(store) => store.audit.verify(None).await.map_err(Into::into),
        Err(failure) => Err(failure),
    };
    match found {
        Ok(found) if found.is_intact() => {
            DoctorCheck::ok(id, format!("{} records, intact", found.records))
        }
        Ok(_) => {
            DoctorCheck::warning(id, "it is not intact", "`sallyport audit verify` tells where")
        }
        Err(failure) => DoctorCheck::from_failure(id, failure, "mend the folder"),
    }
}

/// Checks the terminal that `chat` would use.
fn check_terminal(settings: &HostSettings, out: &CliOutput) -> DoctorCheck {
    let id = "terminal";
    if !out.can_ask {
        let finding = "there is none here: a call that needs an approval would be denied";
        return DoctorCheck::ok(id, finding);
    }
    let size = rustix::termios::tcgetwinsize(std::io::stderr()).ok();
    let size = size.map_or(String::new(), |size| format!(", {}×{}", size.ws_col, size.ws_row));
    match settings.env.get("TERM") {
        None | Some("dumb") => DoctorCheck::warning(
            id,
            format!("plain mode{size}: no line editor, no cards"),
            "set TERM to the type of your terminal, such as xterm-256color",
        ),
        Some(term) => {
            let is_plain = settings.env.get("NO_COLOR").is_some();
            let colours = if is_plain { "without colours" } else { "with colours" };
            DoctorCheck::ok(id, format!("{term}{size}, {colours}"))
        }
    }
}

/// Returns the total size of the store's files in bytes, or `None` if there are none.
fn folder_bytes(folder: &Path) -> Option<u64> {
    if folder.is_file() {
        return Some(0);
    }
    let files = std::fs::read_dir(folder).ok()?.flatten();
    let files = files.filter(|file| file.file_name() != trust::TRUST_FILE);
    let bytes = files.filter_map(|file| Some(file.metadata().ok()?.len()));
    bytes.reduce(u64::saturating_add)
}

fn check_model(settings: &HostSettings, registry: &Registry) -> DoctorCheck {
    let why = &settings.chosen_model.reason;
    match &settings.model {
        ModelChoice::Plugin(plugin) => {
            let name = plugin.plugin.as_str();
            match find_role_plugin(registry, name, PluginRole::Provider) {
                Ok(_) => DoctorCheck::ok("model", format!("the plugin {name} ({why})")),
                Err(error) => {
                    let remedy = "choose another model, or fix the plugin";
                    DoctorCheck::failed("model", error.to_string(), remedy)
                }
            }
        }
        ModelChoice::Endpoint(endpoint) => {
            match ModelHandle::from_choice(&settings.chosen_model).map_err(CommandFailure::from) {
                Ok(_) => {
                    let key = if endpoint.key.is_some() { "with a key" } else { "without a key" };
                    let model = format!("{} at {}, {key}", endpoint.model, endpoint.base_url);
                    DoctorCheck::ok("model", format!("{model} ({why})"))
                }
                Err(failure) if failure.exit == ExitStatus::Credentials => {
                    DoctorCheck::warning("model", failure.message, failure.hint.unwrap_or_default())
                }
                Err(failure) => DoctorCheck::from_failure("model", failure, ""),
            }
        }
        ModelChoice::Offline { is_explicit: true } => {
            DoctorCheck::ok("model", "offline, as configured")
        }
        ModelChoice::Offline { is_explicit: false } => DoctorCheck::warning(
            "model",
            "none configured: the offline matcher answers; it is not a language model",
            settings.models.setup_advice(),
        ),
    }
}

fn check_plugin_folders(settings: &HostSettings, registry: &Registry) -> DoctorCheck {
    let names: Vec<String> =
        settings.plugin_dirs.iter().map(|folder| folder.display().to_string()).collect();
    let count = registry.entries().filter(|entry| entry.kind() != PluginKind::Internal).count();
    let origin = settings.plugin_dirs_origin;
    let finding = format!("{count} plugins in {} (from {origin})", names.join(", "));
    match count {
        0 => DoctorCheck::warning("plugin-folders", finding, "name a folder with --plugin-dir"),
        _ => DoctorCheck::ok("plugin-folders", finding),
    }
}

/// Reports granted folders and files that do not exist. They are only a warning, because a folder may
/// be on a disk that is not connected.
fn check_granted_paths(registry: &Registry) -> Vec<DoctorCheck> {
    let checks = registry.entries().flat_map(|entry| {
        let (name, grant) = (entry.name(), entry.grant());
        let checks = missing_paths(&grant).map(|mount| {
            let path = mount.host.display();
            let finding = format!("{name} is granted {path}, which does not exist: its calls fail");
            DoctorCheck::warning("plugin", finding, "create it, or revoke the grant")
        });
        checks.collect::<Vec<_>>()
    });
    checks.collect()
}

fn check_plugins(registry: &Registry) -> Vec<DoctorCheck> {
    let mut checks: Vec<DoctorCheck> = registry
        .problems()
        .iter()
        .map(|problem| {
            let finding = format!("{}: {}", problem.location.display(), problem.message);
            DoctorCheck::failed("plugin", finding, problem.hint.clone().unwrap_or_default())
        })
        .collect();
    checks.extend(registry.entries().map(|entry| match entry.availability() {
        PluginAvailability::Ready => check_ready_plugin(entry),
        PluginAvailability::Compiling => DoctorCheck::warning(
            "plugin",
            format!("{} is still being compiled", entry.name()),
            "increase `[compile] wait` in sallyport.toml",
        ),
        PluginAvailability::Disabled { reason } if entry.lacks_configuration() => {
            let finding = format!("{} is not set up: {reason}", entry.name());
            DoctorCheck {
                plugin_gap: Some((PluginGap::Configuration, entry.name().to_string())),
                ..DoctorCheck::note("plugin", finding, "set it to use the plugin")
            }
        }
        PluginAvailability::Disabled { reason } => {
            let finding = format!("{} is disabled: {reason}", entry.name());
            DoctorCheck::warning(
                "plugin",
                finding,
                "do what the message says, or remove the plugin",
            )
        }
        PluginAvailability::Changed { differences } => {
            let finding = format!("{} has changed: {}", entry.name(), differences.join("; "));
            let remedy =
                format!("accept the change with `sallyport plugin accept {}`", entry.name());
            DoctorCheck::warning("plugin", finding, remedy)
        }
    }));
    checks
}

/// Checks a plugin that can be called, and whether the policy grants what it needs.
fn check_ready_plugin(entry: &RegisteredPlugin) -> DoctorCheck {
    let name = entry.name();
    if let Some(remark) = entry.idle_actions_remark() {
        let remedy = "do what the message says; the other actions work without it";
        return DoctorCheck::warning("plugin", format!("{name}: {remark}"), remedy);
    }
    let ungranted = entry.grant().ungranted_requests();
    let needed: Vec<_> = ungranted.into_iter().filter(UngrantedRequest::is_needed).collect();
    if needed.is_empty() {
        return DoctorCheck::ok("plugin", format!("{name} is ready"));
    }
    let requests: Vec<String> = needed.iter().map(ToString::to_string).collect();
    let finding = format!("{name} is ready, but is not granted: {}", requests.join(", "));
    let remedy = match call_display::grant_command(entry, &needed) {
        Some(command) => format!("to grant it: {command}"),
        None => format!("run `sallyport policy explain {name}` to see which line denies it"),
    };
    DoctorCheck {
        plugin_gap: Some((PluginGap::Grants, name.to_string())),
        ..DoctorCheck::note("plugin", finding, remedy)
    }
}

/// Reports rules that allow more than the user can have reviewed.
fn check_wide_rules(registry: &Registry) -> Vec<DoctorCheck> {
    let policy = registry.gate().policy_store.current().policy;
    let wide = policy.wide_rule_remarks().map(|remark| {
        let finding = format!("the rule at {} {}", remark.place, remark.message);
        DoctorCheck::warning("policy", finding, "name the plugin, or bind the rule to a digest")
    });
    wide.collect()
}

fn check_compiler(registry: &Registry) -> DoctorCheck {
    let id = "compiler";
    match registry.compiler_restrictions() {
        Ok(CompilerIsolation {
            landlock: IsolationLayerStatus::Active,
            seccomp: IsolationLayerStatus::Active,
        }) => DoctorCheck::ok(id, "a process of its own, behind limits, Landlock and seccomp"),
        Ok(CompilerIsolation { landlock, seccomp }) => DoctorCheck::warning(
            id,
            format!(
                "a process of its own, behind limits; Landlock is {}, seccomp is {}",
                wall_status_text(landlock),
                wall_status_text(seccomp)
            ),
            "use a Linux kernel with both if you run plugins of others",
        ),
        Err(error) => DoctorCheck::failed(id, error.to_string(), error.hint()),
    }
}

fn wall_status_text(wall: IsolationLayerStatus) -> &'static str {
    match wall {
        IsolationLayerStatus::Active => "up",
        IsolationLayerStatus::Partial => "partly available",
        IsolationLayerStatus::Missing => "missing",
    }
}

/// Checks the sandbox of native scripts. A missing one matters only if there is such a script.
fn check_scripts(registry: &Registry) -> DoctorCheck {
    let id = "scripts";
    let missing: Vec<String> =
        sallyport_process::walls_missing().iter().map(ToString::to_string).collect();
    let missing_text = missing.join(", ");
    match (missing.is_empty(), registry.entries().any(|entry| entry.kind() == PluginKind::Script)) {
        (true, _) => DoctorCheck::ok(id, "native scripts run with Landlock and seccomp"),
        (false, false) => DoctorCheck::ok(
            id,
            format!("there is none; this kernel would lack walls for it: {missing_text}"),
        ),
        (false, true) => DoctorCheck::warning(
            id,
            format!("this kernel cannot sandbox native scripts, it lacks {missing_text}"),
            "use a newer Linux kernel; until then scripts are refused unless the policy says `unwalled`",
        ),
    }
}

fn check_cache(settings: &HostSettings, registry: &Registry) -> DoctorCheck {
    let uses = registry.cache_use();
    let folder = settings.paths.cache.display();
    DoctorCheck::ok(
        "cache",
        format!("{folder}: {} plugins came from it, {} were compiled", uses.hits, uses.compiled),
    )
}

/// The result of a check, and below it the remedy.
pub(super) fn step_row(name: &str, status: &str, finding: &str, remedy: Option<&str>) -> ListRow {
    let remedy = remedy.filter(|remedy| !remedy.is_empty());
    ListRow::new([name, status, finding]).with_below(remedy.map(|remedy| format!("→ {remedy}")))
}
