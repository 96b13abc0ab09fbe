//! `sallyport mcp`: serves the tools to a client of the Model Context Protocol.
//!
//! Standard output carries the protocol and nothing else. Everything for people goes to standard
//! error, which clients keep as the server's log.

use std::{
    io::IsTerminal,
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
};

use clap::{Args as ClapArgs, ValueEnum};
use sallyport_contract::Secret;
use sallyport_http_server::raise_descriptor_limit;
use sallyport_mcp::{
    CallBroker, ConnectionEnd, HTTP_PATH, HttpEndpoint, McpServer, McpServerParts, NameStyle,
    ToolSelection, needs_token, serve_http, serve_stdio,
};
use sallyport_policy::{ToolPattern, source::HintedError};
use sallyport_runtime::{
    Host, HostError, HostOptions, config::ConfigFlags, registry::PluginSelection,
};
use sallyport_untrusted_file as untrusted_file;
use tokio::net::TcpListener;

use super::{
    consent,
    exit::{CommandFailure, ExitStatus},
    mcp_servers::{self, McpServerCommand},
    observers::CallObservers,
    output::{CliOutput, format_count},
    plugin_reload::PluginReloader,
    serving::{StopSignals, keep_served_plugins},
    setup, telemetry,
};

/// Size limit of the file of a token.
const TOKEN_FILE_BYTES_MAX: u64 = 4096;

/// The shortest token. A shorter one could be guessed.
const TOKEN_BYTES_MIN: usize = 16;

#[derive(Debug, ClapArgs)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct McpArgs {
    #[command(subcommand)]
    command: Option<McpServerCommand>,

    /// Serve only tools that match: files.read, files.*, *.search (repeatable)
    #[arg(long, value_name = "GLOB", value_parser = tool_pattern)]
    only: Vec<ToolPattern>,

    /// Do not serve tools that match, even if --only names them (repeatable)
    #[arg(long, value_name = "GLOB", value_parser = tool_pattern)]
    deny: Vec<ToolPattern>,

    /// How tools and prompts are named: plugin-tool is plugin__tool; tool needs unambiguous names
    #[arg(long, value_name = "STYLE", value_enum, default_value_t = NameStyleArg::PluginTool)]
    names: NameStyleArg,

    /// Serve over HTTP at this address, such as 127.0.0.1:8000, not over standard input
    #[arg(long, value_name = "ADDRESS")]
    http: Option<SocketAddr>,

    /// The file with the token that HTTP requests have to show
    #[arg(long, value_name = "FILE", requires = "http")]
    token_file: Option<PathBuf>,
}

/// How tools are named towards clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum NameStyleArg {
    PluginTool,
    Tool,
}

impl From<NameStyleArg> for NameStyle {
    fn from(style: NameStyleArg) -> Self {
        match style {
            NameStyleArg::PluginTool => Self::PluginAndTool,
            NameStyleArg::Tool => Self::Tool,
        }
    }
}

/// The failure of a server whose tools cannot be told apart.
fn name_failure(error: HostError, names: NameStyleArg) -> CommandFailure {
    match names {
        NameStyleArg::PluginTool => error.into(),
        NameStyleArg::Tool => CommandFailure::from(error)
            .with_hint("leave out --names tool, or leave out one of the two with --deny"),
    }
}

fn tool_pattern(text: &str) -> Result<ToolPattern, String> {
    let wrong = |error: <ToolPattern as std::str::FromStr>::Err| match error.hint() {
        Some(hint) => format!("{error}; {hint}"),
        None => error.to_string(),
    };
    text.parse().map_err(wrong)
}

pub(super) async fn run_mcp_command(
    flags: &ConfigFlags,
    args: &McpArgs,
    observers: &CallObservers,
    out: &CliOutput,
) -> Result<ExitStatus, CommandFailure> {
    if let Some(command) = &args.command {
        return mcp_servers::run_server_command(flags, command, out).await;
    }
    let endpoint = match args.http {
        Some(address) => Some(open_endpoint(address, args.token_file.as_deref()).await?),
        None => None,
    };
    let settings = setup::read_settings(flags)?;
    let signals = StopSignals::new();
    // A change that comes while the plugins are being loaded counts as one after it.
    let reloader = PluginReloader::for_server(&settings)?;
    let broker = Arc::new(CallBroker::default());
    let host = Arc::new(Host::open(&settings, host_options(&broker, observers, out)).await?);
    telemetry::start(&settings, &host, out);
    setup::print_load_problems(&host.registry(), out);
    let selection = ToolSelection {
        only: args.only.clone(),
        denied: args.deny.clone(),
        names: args.names.into(),
    };
    let parts = McpServerParts { host: Arc::clone(&host), broker, selection };
    warn_of_unmatched_patterns(args, &host, out);
    let result = match McpServer::new(parts) {
        Ok(server) => serve(server, endpoint, &host, (flags, reloader), signals, out).await,
        Err(error) => Err(name_failure(error, args.names)),
    };
    setup::print_shutdown(host.close_shared().await, out).apply_to_result(result)
}

/// Warns of patterns that match no tool: a denied tool with a slip in its name would be served.
fn warn_of_unmatched_patterns(args: &McpArgs, host: &Host, out: &CliOutput) {
    let tools = host.tools();
    for (flag, pattern) in [("--only", &args.only), ("--deny", &args.deny)]
        .into_iter()
        .flat_map(|(flag, patterns)| patterns.iter().map(move |pattern| (flag, pattern)))
    {
        // Resources and prompts of plugins are selected by their roles, which are no tools.
        let is_role = pattern.to_string().contains(".role:");
        if !is_role && !tools.iter().any(|tool| pattern.matches(&tool.id)) {
            out.print_warning(&format!("{flag} {pattern} matches no tool at present"));
        }
    }
}

/// Serves until the client leaves, and loads the plugins anew whenever they change.
async fn serve(
    server: Arc<McpServer>,
    endpoint: Option<HttpEndpoint>,
    host: &Arc<Host>,
    (flags, reloader): (&ConfigFlags, PluginReloader),
    mut signals: StopSignals,
    out: &CliOutput,
) -> Result<ExitStatus, CommandFailure> {
    print_start(&server, endpoint.as_ref(), out);
    let serving = async {
        match endpoint {
            Some(endpoint) => {
                serve_http(Arc::clone(&server), endpoint, signals.wait_for_stop()).await
            }
            None => serve_stdio(Arc::clone(&server), signals.wait_for_stop()).await,
        }
    };
    let end = tokio::select! {
        end = serving => end,
        never = keep_served_plugins(reloader, host, flags, || server.tool_count(), out) => {
            match never {}
        }
    };
    Ok(match end {
        ConnectionEnd::ClosedByClient => ExitStatus::Done,
        ConnectionEnd::Stopped => signals.exit_status(),
        ConnectionEnd::Failed(error) => {
            let message = format!("cannot serve the client: {error}");
            let failure = CommandFailure::new(ExitStatus::Failed, message);
            return Err(failure.with_hint("raise the limits of threads and open files (ulimit)"));
        }
        ConnectionEnd::OutputFailed(error) => {
            out.print_write_error(&error);
            ExitStatus::Failed
        }
    })
}

/// Returns the options of the host. A changed plugin stays disabled until the user accepts it,
/// because standard input belongs to the client.
fn host_options(
    broker: &Arc<CallBroker>,
    observers: &CallObservers,
    out: &CliOutput,
) -> HostOptions {
    let without_questions = CliOutput { can_ask: false, ..*out };
    let options = observers.host_options(Arc::clone(broker) as _, PluginSelection::All, out);
    HostOptions {
        activity: broker.activity(),
        accepts_change: Box::new(move |plugin, differences| {
            consent::confirm_plugin_change(plugin, differences, &without_questions)
        }),
        ..options
    }
}

/// Opens the address, and reads the token.
async fn open_endpoint(
    address: SocketAddr,
    token_file: Option<&Path>,
) -> Result<HttpEndpoint, CommandFailure> {
    let token = token_file.map(read_token).transpose()?;
    if token.is_none() && needs_token(&address) {
        let message = format!("other machines can reach {address}, so it needs a token");
        let failure = CommandFailure::new(ExitStatus::Usage, message);
        return Err(failure.with_hint("pass --token-file FILE, or use a loopback address"));
    }
    raise_descriptor_limit();
    let listener = TcpListener::bind(address).await.map_err(|error| {
        let message = format!("cannot serve at {address}: {error}");
        CommandFailure::new(ExitStatus::Failed, message).with_hint("choose another address")
    })?;
    Ok(HttpEndpoint { listener, token })
}

fn read_token(file: &Path) -> Result<Secret, CommandFailure> {
    let failure = |why: String| {
        let message = format!("cannot use {} as a token: {why}", file.display());
        CommandFailure::new(ExitStatus::Usage, message)
    };
    let text = untrusted_file::read_own_text(file, TOKEN_FILE_BYTES_MAX)
        .map_err(|error| failure(error.to_string()))?;
    let token = text.trim();
    match token.len() >= TOKEN_BYTES_MIN && token.bytes().all(|byte| byte.is_ascii_graphic()) {
        true => Ok(Secret::new(token.to_owned())),
        false => Err(failure(format!("it needs at least {TOKEN_BYTES_MIN} visible characters"))
            .with_hint("make one with `openssl rand -hex 32 > FILE`")),
    }
}

fn print_start(server: &McpServer, endpoint: Option<&HttpEndpoint>, out: &CliOutput) {
    let tools = format_count(server.tool_count(), "tool");
    if let Some(address) = endpoint.and_then(|endpoint| endpoint.listener.local_addr().ok()) {
        out.print_note(&format!("Serving {tools} over MCP at http://{address}{HTTP_PATH}."));
        return;
    }
    out.print_note(&format!("Serving {tools} over MCP on standard input."));
    if std::io::stdin().is_terminal() {
        out.print_hint("this command is for MCP clients, which start it; Ctrl-D ends it");
    }
}
