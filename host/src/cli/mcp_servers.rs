//! `sallyport mcp add|list|remove|check`: the MCP servers whose tools are used.

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use clap::{Args as ClapArgs, Subcommand};
use sallyport_contract::{LOCAL_USER, PluginName, Redactor, Secret, ToolHints, text};
use sallyport_policy::{
    FsAccess, MCP_METHODS,
    edit::{self as policy_edit, FsAddition, GrantAddition, NetAddition, NetReachText},
    is_this_machine,
};
use sallyport_runtime::{
    config::{
        ConfigFlags, HostSettings, McpAddress, McpEndpoint, McpProgram, McpServerSettings, edit,
        read_config_file,
    },
    connections::login::LOGIN_TIME_MAX,
    host::{self, CompileWait},
    lock::LockFile,
    mcp::{
        PendingServerSignIn, RegisteredApplication, ServerSignIn, ServerSignInError,
        begin_server_sign_in, forget_sign_in, forget_tools,
    },
    registry::{PluginAvailability, PluginSelection, RegisteredPlugin, Registry},
};
use sallyport_terminal::listing::ListRow;
use serde_json::json;

use super::{
    args::{OutputArgs, OutputFormat},
    connection::BrowserSignIn,
    exit::{CommandFailure, ExitStatus},
    observers::CallObservers,
    output::{CliOutput, format_count},
    plugin,
    policy::change::{self, PolicyChangeRequest},
    setup,
};

/// The columns of the list.
const COLUMNS: [&str; 4] = ["server", "state", "tools", "command or address"];

// Commands for the MCP servers whose tools are used.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(super) enum McpServerCommand {
    /// Use the tools of an MCP server: configure it, grant it what it needs, and ask for its tools
    Add(AddServerArgs),
    /// List the MCP servers whose tools are used
    #[command(visible_alias = "ls")]
    List {
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Sign in to an MCP server at an address, in your browser
    Login(LoginArgs),
    /// Remove an MCP server from the configuration
    #[command(visible_alias = "rm")]
    Remove {
        /// The server
        name: PluginName,
    },
    /// Start an MCP server and print its tools, or why there are none
    Check {
        /// The server
        name: PluginName,
    },
}

#[derive(Debug, ClapArgs)]
pub(super) struct AddServerArgs {
    /// The name of the server, which is that of its plugin
    name: PluginName,

    /// An environment variable of the server: NAME=VALUE, or NAME='${VARIABLE}' (repeatable)
    #[arg(long, value_name = "NAME=VALUE", value_parser = variable)]
    env: Vec<(String, String)>,

    /// The folder that the server starts in, which has to be a granted one
    #[arg(long, value_name = "PATH")]
    folder: Option<PathBuf>,

    /// A folder or file that the server may read (repeatable)
    #[arg(long, value_name = "PATH")]
    read: Vec<String>,

    /// A folder or file that the server may read and change (repeatable)
    #[arg(long, value_name = "PATH")]
    write: Vec<String>,

    /// Let the server reach the network, all of it
    #[arg(long)]
    network: bool,

    /// The address of a server that is no program of this machine
    #[arg(long, value_name = "URL", conflicts_with_all = PROGRAM_ARGS)]
    url: Option<String>,

    /// A header of every request: 'NAME: VALUE', such as 'Authorization: Bearer ${TOKEN}'
    /// (repeatable)
    #[arg(long, value_name = "HEADER", value_parser = header, requires = "url", conflicts_with_all = PROGRAM_ARGS)]
    header: Vec<(String, String)>,

    /// Do not ask for confirmation
    #[arg(long)]
    yes: bool,

    /// The program of the server and its arguments, after --
    #[arg(last = true, required_unless_present = "url", value_name = "COMMAND")]
    command: Vec<String>,
}

/// The arguments that describe a program.
const PROGRAM_ARGS: [&str; 6] = ["env", "folder", "read", "write", "network", "command"];

fn header(text: &str) -> Result<(String, String), String> {
    match text.split_once(':') {
        Some((name, value)) if !name.trim().is_empty() => {
            Ok((name.trim().to_owned(), value.trim().to_owned()))
        }
        _ => Err("write 'NAME: VALUE'".to_owned()),
    }
}

fn variable(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("write NAME=VALUE".to_owned()),
    }
}

// A sign-in to an MCP server.
#[derive(Debug, ClapArgs)]
pub(super) struct LoginArgs {
    /// The server
    name: PluginName,
    /// The name of an application that you have registered at the service of the server, if it
    /// registers none by itself
    #[arg(long, value_name = "ID")]
    client_id: Option<String>,
    /// The variable of the environment that has the password of that application, if it has one
    #[arg(long, value_name = "VARIABLE", requires = "client_id")]
    client_secret_from_env: Option<String>,
    /// How long to wait for you to sign in, in seconds
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    wait: Option<u64>,
}

pub(super) async fn run_server_command(
    flags: &ConfigFlags,
    command: &McpServerCommand,
    out: &CliOutput,
) -> Result<ExitStatus, CommandFailure> {
    let settings = setup::read_settings(flags)?;
    match command {
        McpServerCommand::Add(args) => add_server(flags, &settings, args, out).await,
        McpServerCommand::List { output } => list_servers(&settings, output.output, out).await,
        McpServerCommand::Login(args) => sign_in(flags, &settings, args, out).await,
        McpServerCommand::Remove { name } => remove_server(&settings, name, out),
        McpServerCommand::Check { name } => check_server(&settings, name, out).await,
    }
}

/// Shows both changes, asks once, and makes them.
async fn add_server(
    flags: &ConfigFlags,
    settings: &HostSettings,
    args: &AddServerArgs,
    out: &CliOutput,
) -> Result<ExitStatus, CommandFailure> {
    let name = &args.name;
    check_name_is_free(settings, name, out).await?;
    let server = McpServerSettings::from(args.endpoint());
    let file = &settings.config_file;
    let before = read_config_file(file, false)?;
    let after = edit::add_mcp_server(file, &before, (name, &server), &settings.env)?;
    let redactor = redactor_with_server(settings, name, &server);
    let [shown_before, shown_after] = [&before, &after].map(|text| redactor.redact_text(text));
    change::print_diff(file, &shown_before, &shown_after, out);
    let grants = args.grants()?;
    change::warn_of_missing_paths(settings, &grants, out);
    let edit = |text: &str| policy_edit::add_grants(text, name, &grants);
    let proposed = change::propose_change(settings, edit, out)?;
    if !args.yes && !setup::ask_confirmation("Write this?", out)? {
        out.print_note("Nothing was changed.");
        return Ok(ExitStatus::Done);
    }
    // The policy first, because grants of a server that is not configured have no effect.
    let is_granted = proposed.is_some();
    if let Some(proposed) = proposed {
        let grants = grants.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        let description = format!("grants {grants}");
        let request =
            PolicyChangeRequest { plugin: name.as_str(), description, is_confirmed: true };
        change::save_change(settings, &request, &proposed, out)?;
    }
    if let Err(failure) = write_config(settings, &before, &after) {
        if is_granted {
            out.print_note(
                "The policy has the grants already. They have no effect without the server.",
            );
        }
        return Err(failure);
    }
    check_server(&setup::read_settings(flags)?, name, out).await
}

/// Signs the user in to a server, and asks it for its tools.
async fn sign_in(
    flags: &ConfigFlags,
    settings: &HostSettings,
    args: &LoginArgs,
    out: &CliOutput,
) -> Result<ExitStatus, CommandFailure> {
    let application = args.application(settings)?;
    let desk = host::open_connections(settings, &setup::open_store(settings)?);
    let account = desk.find(LOCAL_USER, &args.name).await?;
    let scopes = account.map(|account| account.scope).unwrap_or_default();
    let held_scopes = scopes.split_whitespace().map(str::to_owned).collect();
    let begin = ServerSignIn { application, held_scopes };
    let PendingServerSignIn { service, login, registration } =
        begin_server_sign_in(settings, &args.name, begin).await?;
    let time_max = args.wait.map_or(LOGIN_TIME_MAX, Duration::from_secs);
    let sign_in = BrowserSignIn { settings, desk: &desk, time_max };
    sign_in.finish(&service, login, out).await?;
    registration.keep()?;
    check_server(&setup::read_settings(flags)?, &args.name, out).await
}

impl LoginArgs {
    /// The application that the user has registered, if any.
    fn application(
        &self,
        settings: &HostSettings,
    ) -> Result<Option<RegisteredApplication>, CommandFailure> {
        let Some(client_id) = self.client_id.clone() else { return Ok(None) };
        let secret = self.client_secret_from_env.as_deref().map(|variable| {
            let value = settings.env.get(variable).map(Secret::new);
            value.ok_or_else(|| {
                let message = format!("the environment variable {variable} is not set");
                CommandFailure::new(ExitStatus::Usage, message)
            })
        });
        Ok(Some(RegisteredApplication { client_id, client_secret: secret.transpose()? }))
    }
}

impl From<ServerSignInError> for CommandFailure {
    fn from(error: ServerSignInError) -> Self {
        if let ServerSignInError::Policy(error) = error {
            return error.into();
        }
        let status = match &error {
            ServerSignInError::Unknown(_) | ServerSignInError::NotNeeded(..) => ExitStatus::Usage,
            ServerSignInError::NotAllowed(_) => ExitStatus::Policy,
            _ => ExitStatus::Failed,
        };
        let failure = Self::new(status, error.to_string());
        match error.hint() {
            Some(hint) => failure.with_hint(hint),
            None => failure,
        }
    }
}

/// Knows the keys of the configuration, and those that were typed for a new server. References to
/// variables stay readable.
fn redactor_with_server(
    settings: &HostSettings,
    name: &PluginName,
    server: &McpServerSettings,
) -> Redactor {
    let typed = server.secrets(name).into_iter().filter(|(_, key)| !key.expose().contains("${"));
    let keys: Vec<_> = settings.server_keys().chain(typed).collect();
    Redactor::new(keys.iter().map(|(name, key)| (&**name, key)))
}

async fn check_name_is_free(
    settings: &HostSettings,
    name: &PluginName,
    out: &CliOutput,
) -> Result<(), CommandFailure> {
    let message = if settings.mcp_servers.contains_key(name) {
        format!("there is an MCP server {name} already")
    } else if setup::load_registry(settings, out).await?.find_plugin(name.as_str()).is_ok() {
        format!("there is a plugin {name} already")
    } else {
        return Ok(());
    };
    let failure = CommandFailure::new(ExitStatus::Usage, message);
    Err(failure.with_hint("choose another name, or remove that one first"))
}

impl AddServerArgs {
    /// What the server is.
    fn endpoint(&self) -> McpEndpoint {
        match &self.url {
            Some(url) => {
                let headers = self.header.iter().cloned().collect();
                McpEndpoint::Address(McpAddress { url: url.clone(), headers })
            }
            None => McpEndpoint::Program(McpProgram {
                command: self.command.clone(),
                folder: self.folder.clone(),
                env: self.env.iter().cloned().collect(),
            }),
        }
    }

    /// What the server is granted.
    fn grants(&self) -> Result<Vec<GrantAddition>, CommandFailure> {
        match &self.url {
            Some(url) => Ok(vec![address_grant(url)?]),
            None => self.program_grants(),
        }
    }

    /// What a server that is a program is granted.
    fn program_grants(&self) -> Result<Vec<GrantAddition>, CommandFailure> {
        let folder = |path: &String, access| {
            GrantAddition::Fs(FsAddition {
                path: path.clone(),
                mount: None,
                access,
                deny: Vec::new(),
                quota: None,
                sensitive: false,
            })
        };
        let reads = self.read.iter().map(|path| folder(path, FsAccess::Read));
        let writes = self.write.iter().map(|path| folder(path, FsAccess::ReadWrite));
        let network = self.network.then_some("process.network=true");
        let process = ["process=true"].into_iter().chain(network).map(|text| {
            text.parse::<GrantAddition>().map_err(|error| {
                CommandFailure::new(ExitStatus::Usage, format!("cannot grant {text}: {error}"))
            })
        });
        process.chain(reads.chain(writes).map(Ok)).collect()
    }
}

/// The grant of a server at an address: the requests of the protocol, to this address alone.
fn address_grant(url: &str) -> Result<GrantAddition, CommandFailure> {
    let settings = McpAddress { url: url.to_owned(), headers: BTreeMap::new() };
    let address = settings.bare_address().map_err(|error| {
        CommandFailure::new(ExitStatus::Usage, error.to_string()).with_hint(error.hint())
    })?;
    let pattern = format!("{} {address}", MCP_METHODS.join(","));
    let reach = match is_this_machine(&address) {
        true => NetReachText::HostAddresses,
        false => NetReachText::Public,
    };
    Ok(GrantAddition::Net(NetAddition { pattern, decision: None, reach }))
}

/// Removes the server and its acceptance. What the policy grants it stays, and is shown.
fn remove_server(
    settings: &HostSettings,
    name: &PluginName,
    out: &CliOutput,
) -> Result<ExitStatus, CommandFailure> {
    let file = &settings.config_file;
    let before = read_config_file(file, false)?;
    let after = edit::remove_mcp_server(file, &before, name, &settings.env)?;
    let Some(after) = after else {
        let message = format!("{} has no [mcp.{name}]", file.display());
        let failure = CommandFailure::new(ExitStatus::Usage, message);
        return Err(failure.with_hint("list the servers with `sallyport mcp list`"));
    };
    let lock = LockFile::read(&settings.paths.lock_file(), &settings.paths.state)?;
    let write = || write_config(settings, &before, &after);
    setup::record_policy_change(settings, name.as_str(), "removed", write)?;
    forget_tools(settings, name);
    out.print_line(&format!("Removed {name}."));
    // A server that is added under this name later would count as changed, so this is no failure.
    if let Err(error) = lock.remove_plugin(name) {
        out.print_warning(&format!("its acceptance cannot be removed: {error}"));
    }
    match forget_sign_in(settings, name) {
        Ok(true) => out.print_hint(&format!(
            "your account at {name} is kept: `sallyport connection remove {name}` removes it"
        )),
        Ok(false) => {}
        Err(error) => out.print_warning(&format!("its sign-in cannot be removed: {error}")),
    }
    out.print_hint(&format!(
        "the policy still has what was granted to {name}: `sallyport policy revoke {name} --all` \
         removes it",
    ));
    Ok(ExitStatus::Done)
}

/// Writes the configuration, unless it was changed in the meantime.
fn write_config(settings: &HostSettings, before: &str, after: &str) -> Result<(), CommandFailure> {
    let file = &settings.config_file;
    let unwritable = |error: std::io::Error| {
        let message = format!("cannot write {}: {error}", file.display());
        CommandFailure::new(ExitStatus::Policy, message)
            .with_hint("check the path and its permissions")
    };
    let writer = edit::ConfigWriter::lock(file).map_err(unwritable)?;
    if read_config_file(file, false)? != before {
        let message = format!("{} changed in the meantime and was not written", file.display());
        return Err(
            CommandFailure::new(ExitStatus::Failed, message).with_hint("run the command again")
        );
    }
    writer.write(after).map_err(unwritable)
}

async fn list_servers(
    settings: &HostSettings,
    format: OutputFormat,
    out: &CliOutput,
) -> Result<ExitStatus, CommandFailure> {
    let registry = setup::load_registry(settings, out).await?;
    let servers = settings.mcp_servers.iter().map(|(name, server)| {
        let entry = registry.find_plugin(name.as_str()).ok();
        (name, server, state_of(&registry, name), entry.map_or(0, |entry| entry.tools().len()))
    });
    match format {
        OutputFormat::Json => {
            let servers = servers.map(|(name, server, state, tools)| {
                let mut row = json!({ "name": name, "state": state, "tools": tools });
                match &server.endpoint {
                    McpEndpoint::Program(program) => row["command"] = json!(program.command),
                    McpEndpoint::Address(address) => row["url"] = json!(address.shown_url()),
                }
                row
            });
            out.print_json(&servers.collect());
        }
        OutputFormat::Text if settings.mcp_servers.is_empty() => {
            out.print_note(
                "No MCP servers. Add one with `sallyport mcp add NAME -- COMMAND` or `… --url URL`.",
            );
        }
        OutputFormat::Text => {
            let rows = servers.map(|(name, server, state, tools)| {
                let what = match &server.endpoint {
                    McpEndpoint::Program(program) => program.command.join(" "),
                    McpEndpoint::Address(address) => address.shown_url(),
                };
                let what = text::escape_line(&what);
                ListRow::new([name.to_string(), state, tools.to_string(), what])
            });
            out.print_table(&COLUMNS, &rows.collect::<Vec<_>>());
        }
    }
    Ok(ExitStatus::Done)
}

fn state_of(registry: &Registry, name: &PluginName) -> String {
    match registry.find_plugin(name.as_str()) {
        Ok(entry) => plugin::describe_state(entry),
        Err(error) => text::escape_line(error.message()),
    }
}

/// Starts the server anew, and prints its tools. What it claims about them is shown as a claim.
async fn check_server(
    settings: &HostSettings,
    name: &PluginName,
    out: &CliOutput,
) -> Result<ExitStatus, CommandFailure> {
    if !settings.mcp_servers.contains_key(name) {
        let failure =
            CommandFailure::new(ExitStatus::Usage, format!("there is no MCP server {name}"));
        return Err(failure.with_hint("list the servers with `sallyport mcp list`"));
    }
    forget_tools(settings, name);
    let notices = CallObservers::default().notice_sink(out);
    let selection = PluginSelection::Only(name.clone());
    let registry =
        host::load_for_inspection(settings, selection, CompileWait::Complete, &notices).await?;
    let checked = match registry.find_plugin(name.as_str()) {
        Ok(entry) => print_server(entry, out),
        Err(error) => Err(error.into()),
    };
    registry.shutdown().await;
    checked
}

fn print_server(entry: &RegisteredPlugin, out: &CliOutput) -> Result<ExitStatus, CommandFailure> {
    let name = entry.name();
    if let PluginAvailability::Disabled { reason } = entry.availability() {
        let message = format!("{name} has no tools: {}", text::escape_multiline(reason));
        return Err(CommandFailure::new(ExitStatus::PluginRejected, message));
    }
    let rows = entry.tools().iter().map(|tool| {
        let description = tool.description.trim().lines().next().unwrap_or_default();
        ListRow::new([tool.id.to_string(), text::escape_line(description), claims(&tool.hints)])
    });
    out.print_table(&["tool", "description", "the server claims"], &rows.collect::<Vec<_>>());
    for note in entry.notes() {
        out.print_warning(&text::escape_line(&note));
    }
    out.print_line(&format!("{name} has {}.", format_count(entry.tools().len(), "tool")));
    match entry.availability().problem_and_hint(name) {
        None => Ok(ExitStatus::Done),
        Some((problem, hint)) => {
            let failure =
                CommandFailure::new(ExitStatus::PluginRejected, format!("{name} {problem}"));
            Err(CommandFailure { hint, ..failure })
        }
    }
}

/// What a server claims about the effects of a tool.
fn claims(hints: &ToolHints) -> String {
    let claims = [
        ("changes nothing", hints.read_only),
        ("destructive", hints.destructive),
        ("safe to repeat", hints.idempotent),
        ("reaches other machines", hints.open_world),
    ];
    let made = claims.iter().filter(|(_, claim)| *claim == Some(true)).map(|(text, _)| *text);
    made.collect::<Vec<_>>().join(", ")
}
