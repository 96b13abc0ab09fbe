//! `sallyport serve`: serves sessions and tools to many users over HTTP, and keeps their tokens.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use clap::{Args as ClapArgs, Subcommand};
use jiff::Timestamp;
use sallyport_http_server::{RenewedCertificate, raise_descriptor_limit};
use sallyport_runtime::{
    Host, HostOptions,
    config::{ConfigFlags, Env, HostSettings},
    registry::PluginSelection,
};
use sallyport_service::{
    PublicOrigin, ServiceConsent, ServiceParts, SignOn, SignOnSettings, TokenBook, UserRole,
    token_file::{self, NewToken, StoredToken, TokenFileError},
};
use sallyport_terminal::listing::ListRow;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::{
    args::{ModelArgs, OutputArgs, OutputFormat, duration},
    consent,
    exit::{CommandFailure, ExitStatus},
    observers::CallObservers,
    output::{CliOutput, format_count},
    plugin_reload::PluginReloader,
    serve_certificate::{keep_current, read_certificate},
    serving::{StopSignals, keep_served_plugins},
    setup, telemetry,
};

/// The names of the columns of the list of tokens.
const TOKEN_COLUMNS: [&str; 4] = ["token", "user", "role", "expires"];

#[derive(Debug, ClapArgs)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct ServeArgs {
    #[command(subcommand)]
    command: Option<ServeCommand>,

    /// The address; one that other machines can reach needs a token
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8420")]
    listen: SocketAddr,

    /// The address at which browsers reach the service through a proxy, such as
    /// https://sallyport.example
    #[arg(long, value_name = "ORIGIN")]
    origin: Option<PublicOrigin>,

    #[command(flatten)]
    pub(super) model: ModelArgs,
}

#[derive(Debug, Subcommand)]
#[command(defer = true)]
enum ServeCommand {
    /// Make, list and remove the tokens of users
    #[command(subcommand)]
    Token(TokenCommand),
    /// Block users, and list those who are blocked
    #[command(subcommand)]
    User(UserCommand),
}

#[derive(Debug, Subcommand)]
enum UserCommand {
    /// Refuse a user from the next request on, with any token and at the identity server
    Block {
        /// The name of the user, such as sso:ann
        name: String,
    },
    /// Let a blocked user in again
    Unblock {
        /// The name of the user
        name: String,
    },
    /// List the users who are blocked
    #[command(visible_alias = "ls")]
    List(OutputArgs),
}

#[derive(Debug, Subcommand)]
#[command(defer = true)]
enum TokenCommand {
    /// Make a token and print it once
    Add {
        /// The name of the token
        name: String,
        /// What its user may do: user, approver or operator
        #[arg(long)]
        role: UserRole,
        /// The user, if not the name of the token; several tokens can be of one user
        #[arg(long, value_name = "NAME")]
        user: Option<String>,
        /// How long it is valid, such as 2160h
        #[arg(long, value_name = "TIME", value_parser = duration)]
        expires_in: Option<Duration>,
    },
    /// List the tokens: names, users and roles, never a token itself
    #[command(visible_alias = "ls")]
    List(OutputArgs),
    /// Remove a token; a program that serves refuses it from the next request on
    #[command(visible_alias = "rm")]
    Remove {
        /// The name of the token
        name: String,
    },
}

pub(super) async fn run(
    flags: &ConfigFlags,
    args: &ServeArgs,
    observers: &CallObservers,
    out: &CliOutput,
) -> Result<ExitStatus, CommandFailure> {
    let settings = setup::read_settings(flags)?;
    let token_path = settings.paths.config.join(token_file::FILE_NAME);
    match &args.command {
        Some(ServeCommand::Token(command)) => return run_token_command(token_path, command, out),
        Some(ServeCommand::User(command)) => return run_user_command(&token_path, command, out),
        None => {}
    }
    raise_descriptor_limit();
    let tokens = TokenBook::open(token_path).map_err(token_failure)?;
    let sign_on = sign_on(&settings, args)?;
    let certificate = read_certificate(&settings, out)?;
    let (listener, tokens) = open_address(args.listen, tokens, sign_on.is_some(), out).await?;
    let signals = StopSignals::new();
    // A change that comes while the plugins are being loaded counts as one after it.
    let reloader = PluginReloader::for_server(&settings)?;
    let host = Arc::new(Host::open(&settings, host_options(observers, out)).await?);
    telemetry::start(&settings, &host, out);
    setup::print_load_problems(&host.registry(), out);
    print_addresses(listener.local_addr()?, args, host.tools().len(), certificate.is_some(), out);
    let parts = ServiceParts {
        host: Arc::clone(&host),
        read_settings: settings_source(flags.clone()),
        overrides: (&args.model).into(),
        tokens,
        sign_on,
        public_origin: args.origin.clone(),
        tls: certificate.as_ref().map(RenewedCertificate::tls),
    };
    let exit = tokio::select! {
        exit = serve(&host, parts, listener, signals) => exit,
        never = keep_served_plugins(reloader, &host, flags, || host.tools().len(), out) => {
            match never {}
        }
        never = keep_current(certificate, out) => match never {},
    };
    setup::print_shutdown(host.close_shared().await, out).apply_to_result(Ok(exit))
}

/// Prints where the service is. Without TLS, what it is sent can be read on the way.
fn print_addresses(
    address: SocketAddr,
    args: &ServeArgs,
    tool_count: usize,
    has_tls: bool,
    out: &CliOutput,
) {
    let scheme = if has_tls { "https" } else { "http" };
    let tools = format_count(tool_count, "tool");
    out.print_note(&format!("Serving {tools} at {scheme}://{address}/v1."));
    let origin = args.origin.as_ref().map_or(format!("{scheme}://{address}"), ToString::to_string);
    out.print_note(&format!("The console is at {origin}/console."));
    if !has_tls && !address.ip().is_loopback() && !origin.starts_with("https://") {
        out.print_warning(&format!(
            "connections to {address} are not encrypted, so the network can read tokens and answers"
        ));
        out.print_hint(
            "give [serve] a certificate, or put a proxy with one in front of the service and name it \
             with --origin https://NAME",
        );
    }
}

async fn serve(
    host: &Host,
    parts: ServiceParts,
    listener: TcpListener,
    mut signals: StopSignals,
) -> ExitStatus {
    let timekeeper = host.start_timekeeper();
    sallyport_service::serve(parts, listener, signals.wait_for_stop()).await;
    timekeeper.stop().await;
    signals.exit_status()
}

fn settings_source(flags: ConfigFlags) -> sallyport_service::SettingsSource {
    Box::new(move || {
        HostSettings::resolve(&flags, Env::from_process()).map_err(|error| error.to_string())
    })
}

/// Prepares log-ins at the identity server, if one is configured.
fn sign_on(settings: &HostSettings, args: &ServeArgs) -> Result<Option<SignOn>, CommandFailure> {
    let Some(login) = &settings.login else { return Ok(None) };
    if args.origin.is_none() && !args.listen.ip().is_loopback() {
        let message = "[login] needs the address at which browsers reach the service";
        let failure = CommandFailure::new(ExitStatus::Usage, message.to_owned());
        return Err(failure.with_hint("pass it, such as --origin https://sallyport.example"));
    }
    let sign_on = SignOnSettings::new(login, &settings.env).and_then(SignOn::new);
    sign_on.map(Some).map_err(|error| {
        let file = settings.config_file.display();
        let message = format!("nobody could log in by [login] in {file}: {error}");
        CommandFailure::new(ExitStatus::Usage, message).with_hint(error.hint())
    })
}

/// Opens the address. Without any other way in, a program of this machine gets one that ends with us; for
/// other machines there has to be one.
async fn open_address(
    address: SocketAddr,
    mut tokens: TokenBook,
    has_sign_on: bool,
    out: &CliOutput,
) -> Result<(TcpListener, TokenBook), CommandFailure> {
    let is_empty = tokens.is_empty() && !has_sign_on;
    if is_empty && !address.ip().is_loopback() {
        let message = format!("other machines can reach {address}, and no user has a token");
        let failure = CommandFailure::new(ExitStatus::Usage, message);
        return Err(failure.with_hint(
            "make one with `sallyport serve token add NAME --role operator`, or use a loopback \
             address",
        ));
    }
    let listener = TcpListener::bind(address).await.map_err(|error| {
        let message = format!("cannot serve at {address}: {error}");
        CommandFailure::new(ExitStatus::Failed, message).with_hint("choose another with --listen")
    })?;
    if is_empty {
        let token = tokens.add_one_time_token()?;
        out.print_note(&format!(
            "No user has a token. This one is valid until the program ends, for the operator \
             \"local\": {}",
            token.expose()
        ));
    }
    Ok((listener, tokens))
}

/// Returns the options of the host. A changed plugin stays disabled until the operator accepts it,
/// and questions go to those who answer over the service.
fn host_options(observers: &CallObservers, out: &CliOutput) -> HostOptions {
    let without_questions = CliOutput { can_ask: false, ..*out };
    let options = observers.host_options(Arc::new(ServiceConsent), PluginSelection::All, out);
    HostOptions {
        accepts_change: Box::new(move |plugin, differences| {
            consent::confirm_plugin_change(plugin, differences, &without_questions)
        }),
        is_watched: false,
        ..options
    }
}

fn run_token_command(
    path: PathBuf,
    command: &TokenCommand,
    out: &CliOutput,
) -> Result<ExitStatus, CommandFailure> {
    match command {
        TokenCommand::Add { name, role, user, expires_in } => {
            let user = user.clone().unwrap_or_else(|| name.clone());
            let new = NewToken { name: name.clone(), user, role: *role, lifetime: *expires_in };
            let token = token_file::add_token(&path, new).map_err(token_failure)?;
            out.print_line(token.expose());
            out.print_note("Keep the token: it is not stored, and not shown again.");
        }
        TokenCommand::List(args) => {
            let tokens = token_file::read_tokens(&path).map_err(token_failure)?;
            match args.output {
                OutputFormat::Json => {
                    let tokens: Vec<Value> = tokens.iter().map(token_json).collect();
                    out.print_json(&json!({ "tokens": tokens }));
                }
                OutputFormat::Text if tokens.is_empty() => out.print_note("No user has a token."),
                OutputFormat::Text => {
                    let rows: Vec<ListRow> = tokens.iter().map(token_row).collect();
                    out.print_table(&TOKEN_COLUMNS, &rows);
                }
            }
        }
        TokenCommand::Remove { name } => {
            token_file::remove_token(&path, name).map_err(token_failure)?;
            out.print_line(&format!("Removed the token {name}."));
        }
    }
    Ok(ExitStatus::Done)
}

fn run_user_command(
    path: &Path,
    command: &UserCommand,
    out: &CliOutput,
) -> Result<ExitStatus, CommandFailure> {
    match command {
        UserCommand::Block { name } => {
            token_file::block_user(path, name).map_err(token_failure)?;
            out.print_line(&format!("Blocked {name}."));
        }
        UserCommand::Unblock { name } => {
            token_file::unblock_user(path, name).map_err(token_failure)?;
            out.print_line(&format!("{name} is not blocked any more."));
        }
        UserCommand::List(args) => {
            let blocked = token_file::read_document(path).map_err(token_failure)?.blocked;
            match args.output {
                OutputFormat::Json => out.print_json(&json!({ "blocked": blocked })),
                OutputFormat::Text if blocked.is_empty() => out.print_note("No user is blocked."),
                OutputFormat::Text => blocked.iter().for_each(|name| out.print_line(name)),
            }
        }
    }
    Ok(ExitStatus::Done)
}

fn token_row((name, token): (&String, &StoredToken)) -> ListRow {
    let expires_ms = token.expires_ms.and_then(|expires_ms| i64::try_from(expires_ms).ok());
    let expires = expires_ms.and_then(|ms| Timestamp::from_millisecond(ms).ok());
    let expires = expires.map_or_else(|| "never".to_owned(), |at| format!("{at:.0}"));
    ListRow::new([name.as_str(), token.user.as_str(), token.role.as_str(), &expires])
}

fn token_json((name, token): (&String, &StoredToken)) -> Value {
    json!({
        "name": name,
        "user": token.user,
        "role": token.role,
        "created_ms": token.created_ms,
        "expires_ms": token.expires_ms,
    })
}

fn token_failure(error: TokenFileError) -> CommandFailure {
    let exit = match &error {
        TokenFileError::File { .. } | TokenFileError::Content { .. } => ExitStatus::Policy,
        _ => ExitStatus::Usage,
    };
    CommandFailure::new(exit, error.to_string()).with_hint(error.hint())
}
