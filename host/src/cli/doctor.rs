//! `sallyport doctor`: checks the installation. Each check has an id, a status and a remedy.
//!
//! Only the cache may change. No key is printed.

use std::path::Path;

use sallyport_policy::PluginRole;
use sallyport_runtime::{
    config::{ConfigFlags, HostSettings, ModelChoice, trust},
    registry::{PluginAvailability, PluginKind, RegisteredPlugin, Registry},
    roles::find_role_plugin,
    secrets::Vault,
    session::ModelHandle,
};
use sallyport_sandbox::compile::{CompilerIsolation, IsolationLayerStatus};
use sallyport_store::sessions::SessionFilter;
use serde::Serialize;
use serde_json::json;

use super::{
    args::{DoctorArgs, Format},
    compose,
    exit::{Exit, Failure},
    output::Output,
};

/// Largest store whose audit is verified, in bytes. This takes a few seconds.
const AUDIT_CHECKED_BYTES_MAX: u64 = 64 << 20;

/// The result of one check.
#[derive(Debug, Serialize)]
struct Check {
    id: &'static str,
    status: Status,
    finding: String,
    remedy: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Status {
    Ok,
    Warning,
    Failed,
}

impl Check {
    fn ok(id: &'static str, finding: impl Into<String>) -> Self {
        Self { id, status: Status::Ok, finding: finding.into(), remedy: None }
    }

    fn warning(id: &'static str, finding: impl Into<String>, remedy: impl Into<String>) -> Self {
        let remedy = Some(remedy.into());
        Self { id, status: Status::Warning, finding: finding.into(), remedy }
    }

    fn failed(self) -> Self {
        Self { status: Status::Failed, ..self }
    }
}

pub(super) async fn doctor(
    flags: &ConfigFlags,
    args: &DoctorArgs,
    out: &Output,
) -> Result<Exit, Failure> {
    let checks = match HostSettings::resolve(flags, sallyport_runtime::config::Env::from_process())
    {
        Ok(settings) => {
            compose::warn_of_foreign(&settings);
            all(&settings, out).await
        }
        Err(error) => {
            let remedy = error.hint().unwrap_or_else(|| "mend the file".into());
            vec![Check::warning("configuration", error.to_string(), remedy).failed()]
        }
    };
    match args.output.output {
        Format::Text => checks.iter().for_each(|check| print(check, out)),
        Format::Json => out.json(&json!(checks)),
    }
    let failed = checks.iter().any(|check| check.status == Status::Failed);
    Ok(if failed { Exit::Failed } else { Exit::Done })
}

async fn all(settings: &HostSettings, out: &Output) -> Vec<Check> {
    let registry = match compose::whole_registry(settings, out).await {
        Ok(registry) => registry,
        Err(failure) => {
            let remedy = failure.hint.unwrap_or_else(|| "mend the file".to_owned());
            return vec![Check::warning("policy", failure.message, remedy).failed()];
        }
    };
    let unready = registry.warm_up();
    let mut checks = vec![configuration(settings), policy(settings), model(settings, &registry)];
    checks.extend(wide_rules(&registry));
    checks.extend(project(settings));
    checks.extend(secrets(settings, &registry));
    checks.push(audit(settings));
    checks.push(sessions(settings));
    checks.push(terminal(settings, out));
    checks.push(folders(settings, &registry));
    checks.extend(plugins(&registry));
    checks.extend(unready.into_iter().map(|(name, reason)| {
        let finding = format!("{name} cannot be loaded: {reason}");
        Check::warning("plugin", finding, "rebuild the plugin").failed()
    }));
    checks.push(compiler(&registry));
    checks.push(scripts(&registry));
    checks.push(cache(settings, &registry));
    registry.shutdown().await;
    checks
}

fn configuration(settings: &HostSettings) -> Check {
    let file = &settings.config_file;
    let is = if file.exists() { "is sound" } else { "does not exist; the defaults are used" };
    Check::ok("configuration", format!("{} {is}", file.display()))
}

/// Checks the configuration of the project around the current folder, and whether it is trusted.
fn project(settings: &HostSettings) -> Option<Check> {
    let project = settings.project.as_ref()?;
    let trust = match project.is_trusted {
        true => "is sound, and trusted",
        false => "is sound; it is not trusted, so it chooses a model and lowers budgets at most",
    };
    Some(Check::ok("project", format!("{} {trust}", project.file.display())))
}

fn policy(settings: &HostSettings) -> Check {
    let there = settings.policy.files.iter().filter(|file| file.path.exists());
    let files: Vec<String> =
        there.map(|file| format!("{} ({})", file.path.display(), file.tier.as_str())).collect();
    let finding = match files.as_slice() {
        [] => {
            format!("{} does not exist; nothing is granted", settings.policy.user_file().display())
        }
        [file] => format!("{file} is sound"),
        files => format!("{} are valid", files.join(", ")),
    };
    Check::ok("policy", finding)
}

/// Reports secrets without a value. They are only a warning because a plugin fails only when it
/// needs one.
fn secrets(settings: &HostSettings, registry: &Registry) -> Vec<Check> {
    let vault = Vault::new(settings.env.clone());
    let policy = registry.gate().standing.current().policy;
    let unresolved = policy.secret_sources().filter_map(|(name, source)| {
        let error = vault.get(name.as_str(), source).err()?;
        let remedy =
            error.hint().unwrap_or_else(|| "set it with `sallyport secret set NAME`".to_owned());
        Some(Check::warning("secret", error.to_string(), remedy))
    });
    unresolved.collect()
}

/// Verifies the audit. The check adds no record.
fn audit(settings: &HostSettings) -> Check {
    let id = "audit";
    let folder = &settings.paths.state;
    match folder_bytes(folder) {
        None => return Check::ok(id, "there is no record yet"),
        Some(bytes) if bytes > AUDIT_CHECKED_BYTES_MAX => {
            let finding = format!("{} is too large to be checked here", folder.display());
            return Check::ok(id, finding + "; run `sallyport audit verify`");
        }
        Some(_) => {}
    }
    let found = compose::store(settings).and_then(|store| Ok(store.audit().verify(None)?));
    match found {
        Ok(found) if found.is_intact() => {
            Check::ok(id, format!("{} records, intact", found.records))
        }
        Ok(_) => Check::warning(id, "it is not whole", "`sallyport audit verify` tells where"),
        Err(failure) => {
            let remedy = failure.hint.unwrap_or_else(|| "mend the folder".to_owned());
            Check::warning(id, failure.message, remedy).failed()
        }
    }
}

/// Counts the stored sessions. The check creates no database.
fn sessions(settings: &HostSettings) -> Check {
    let id = "sessions";
    if folder_bytes(&settings.paths.state).is_none() {
        return Check::ok(id, "none yet");
    }
    let filter = SessionFilter::default();
    let found = compose::store(settings).map(|store| store.sessions().list(&filter));
    match found {
        Ok(Ok(found)) => Check::ok(id, format!("{} are kept", found.len())),
        Ok(Err(error)) => {
            let remedy = error.hint().unwrap_or_else(|| "mend the folder".to_owned());
            Check::warning(id, error.to_string(), remedy).failed()
        }
        Err(failure) => {
            let remedy = failure.hint.unwrap_or_else(|| "mend the folder".to_owned());
            Check::warning(id, failure.message, remedy).failed()
        }
    }
}

/// Checks the terminal that `chat` would use.
fn terminal(settings: &HostSettings, out: &Output) -> Check {
    let id = "terminal";
    if !out.can_ask {
        let finding = "there is none here: a call that needs an approval would be denied";
        return Check::ok(id, finding);
    }
    let size = rustix::termios::tcgetwinsize(std::io::stderr()).ok();
    let size = size.map_or(String::new(), |size| format!(", {}×{}", size.ws_col, size.ws_row));
    match settings.env.get("TERM") {
        None | Some("dumb") => Check::warning(
            id,
            format!("plain mode{size}: no line editor, no cards"),
            "set TERM to the type of your terminal, such as xterm-256color",
        ),
        Some(term) => {
            let is_plain = settings.env.get("NO_COLOR").is_some();
            let colours = if is_plain { "without colours" } else { "with colours" };
            Check::ok(id, format!("{term}{size}, {colours}"))
        }
    }
}

/// Returns the total size of the store's files in bytes, or `None` if there are none.
fn folder_bytes(folder: &Path) -> Option<u64> {
    if folder.is_file() {
        return Some(0);
    }
    let files = std::fs::read_dir(folder).ok()?.flatten();
    let files = files.filter(|file| file.file_name() != trust::FILE);
    let bytes = files.filter_map(|file| Some(file.metadata().ok()?.len()));
    bytes.reduce(u64::saturating_add)
}

fn model(settings: &HostSettings, registry: &Registry) -> Check {
    match &settings.model {
        ModelChoice::Plugin(plugin) => {
            let name = plugin.plugin.as_str();
            let (found, why) =
                (find_role_plugin(registry, name, PluginRole::Provider), &settings.chosen.why);
            match found {
                Ok(_) => Check::ok("model", format!("the plugin {name} ({why})")),
                Err(error) => {
                    let remedy = "choose another model, or fix the plugin";
                    Check::warning("model", error.to_string(), remedy).failed()
                }
            }
        }
        ModelChoice::Endpoint(endpoint) => {
            match ModelHandle::from_choice(&settings.chosen).map_err(Failure::from) {
                Ok(_) => {
                    let key = if endpoint.key.is_some() { "with a key" } else { "without a key" };
                    let why = &settings.chosen.why;
                    let model = format!("{} at {}, {key}", endpoint.model, endpoint.base_url);
                    Check::ok("model", format!("{model} ({why})"))
                }
                Err(failure) if failure.exit == Exit::Credentials => {
                    Check::warning("model", failure.message, failure.hint.unwrap_or_default())
                }
                Err(failure) => {
                    let remedy = failure.hint.unwrap_or_default();
                    Check::warning("model", failure.message, remedy).failed()
                }
            }
        }
        ModelChoice::Offline { on_purpose: true } => Check::ok("model", "offline, as configured"),
        ModelChoice::Offline { on_purpose: false } => Check::warning(
            "model",
            "none configured: the offline matcher answers; it is not a language model",
            settings.models.setup_advice(),
        ),
    }
}

fn folders(settings: &HostSettings, registry: &Registry) -> Check {
    let names: Vec<String> =
        settings.plugin_dirs.iter().map(|folder| folder.display().to_string()).collect();
    let count = registry.entries().filter(|entry| entry.kind() != PluginKind::Internal).count();
    let origin = settings.plugin_dirs_origin;
    let finding = format!("{count} plugins in {} (from {origin})", names.join(", "));
    match count {
        0 => Check::warning("plugin-folders", finding, "name a folder with --plugin-dir"),
        _ => Check::ok("plugin-folders", finding),
    }
}

fn plugins(registry: &Registry) -> Vec<Check> {
    let mut checks: Vec<Check> = registry
        .problems()
        .iter()
        .map(|problem| {
            let finding = format!("{}: {}", problem.place.display(), problem.message);
            Check::warning("plugin", finding, problem.hint.clone().unwrap_or_default()).failed()
        })
        .collect();
    checks.extend(registry.entries().map(|entry| match entry.availability() {
        PluginAvailability::Ready => ready(entry),
        PluginAvailability::Compiling => Check::warning(
            "plugin",
            format!("{} is still being compiled", entry.name()),
            "increase `[compile] wait` in sallyport.toml",
        ),
        PluginAvailability::Disabled { reason } => {
            let finding = format!("{} is disabled: {reason}", entry.name());
            Check::warning("plugin", finding, "add the missing settings, or remove the plugin")
        }
        PluginAvailability::Changed { differences } => {
            let finding = format!("{} has changed: {}", entry.name(), differences.join("; "));
            let remedy =
                format!("accept the change with `sallyport plugin accept {}`", entry.name());
            Check::warning("plugin", finding, remedy)
        }
    }));
    checks
}

/// Checks a plugin that can be called, and whether the policy grants what it needs.
fn ready(entry: &RegisteredPlugin) -> Check {
    let name = entry.name();
    let lacking = entry.grant().ungranted_requests();
    let needed: Vec<_> = lacking.iter().filter(|request| request.is_needed()).collect();
    let Some(first) = needed.first() else {
        return Check::ok("plugin", format!("{name} is ready"));
    };
    let requests: Vec<String> = needed.iter().map(ToString::to_string).collect();
    let finding = format!("{name} is ready, but is not granted {}", requests.join(", "));
    let remedy = match first.grant_flags() {
        Some(flags) => format!("grant it with `sallyport policy grant {name} {flags}`"),
        None => format!("run `sallyport policy explain {name}` to see which line denies it"),
    };
    Check::warning("plugin", finding, remedy)
}

/// Reports rules that allow more than the user can have reviewed.
fn wide_rules(registry: &Registry) -> Vec<Check> {
    let policy = registry.gate().standing.current().policy;
    let wide = policy.wide_rule_remarks().map(|remark| {
        let finding = format!("the rule at {} {}", remark.place, remark.message);
        Check::warning("policy", finding, "name the plugin, or bind the rule to a digest")
    });
    wide.collect()
}

fn compiler(registry: &Registry) -> Check {
    let id = "compiler";
    match registry.compiler_restrictions() {
        Ok(CompilerIsolation {
            landlock: IsolationLayerStatus::Up,
            seccomp: IsolationLayerStatus::Up,
        }) => Check::ok(id, "a process of its own, behind limits, Landlock and seccomp"),
        Ok(CompilerIsolation { landlock, seccomp }) => Check::warning(
            id,
            format!(
                "a process of its own, behind limits; Landlock is {}, seccomp is {}",
                standing(landlock),
                standing(seccomp)
            ),
            "use a Linux kernel with both if you run plugins of others",
        ),
        Err(error) => Check::warning(id, error.to_string(), error.hint()).failed(),
    }
}

fn standing(wall: IsolationLayerStatus) -> &'static str {
    match wall {
        IsolationLayerStatus::Up => "up",
        IsolationLayerStatus::Partly => "partly available",
        IsolationLayerStatus::Missing => "missing",
    }
}

/// Checks the sandbox of native scripts. A missing one matters only if there is such a script.
fn scripts(registry: &Registry) -> Check {
    let id = "scripts";
    let missing: Vec<String> =
        sallyport_process::walls_missing().iter().map(ToString::to_string).collect();
    let lacks = missing.join(", ");
    match (missing.is_empty(), registry.entries().any(|entry| entry.kind() == PluginKind::Script)) {
        (true, _) => Check::ok(id, "native scripts run with Landlock and seccomp"),
        (false, false) => {
            Check::ok(id, format!("there is none; this kernel would lack walls for it: {lacks}"))
        }
        (false, true) => Check::warning(
            id,
            format!("this kernel cannot sandbox native scripts, it lacks {lacks}"),
            "use a newer Linux kernel; until then scripts are refused unless the policy says `unwalled`",
        ),
    }
}

fn cache(settings: &HostSettings, registry: &Registry) -> Check {
    let uses = registry.cache_use();
    let folder = settings.paths.cache.display();
    Check::ok(
        "cache",
        format!("{folder}: {} plugins came from it, {} were compiled", uses.hits, uses.compiled),
    )
}

fn print(check: &Check, out: &Output) {
    let status = match check.status {
        Status::Ok => "ok",
        Status::Warning => "warning",
        Status::Failed => "failed",
    };
    let finding = sallyport_contract::text::escape_line(&check.finding);
    out.pair(check.id, 14, &format!("{status:8} {finding}"));
    if let Some(remedy) = &check.remedy {
        out.pair("", 14, &format!("{:8} → {}", "", sallyport_contract::text::escape_line(remedy)));
    }
}
