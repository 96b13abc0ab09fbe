//! `sallyport connection …`: the accounts that the user has connected.

use std::{sync::Arc, time::Duration};

use clap::Subcommand;
use sallyport_connections::AccountService;
use sallyport_contract::{LOCAL_USER, PluginName, text};
use sallyport_runtime::{
    config::{ConfigFlags, HostSettings},
    connections::{
        AccountError, ConnectionDesk, ConnectionFacts,
        context::{ContextDetail, connection_context},
        login::{self, Connected, LOGIN_TIME_MAX, LoginError, PendingBrowserLogin},
    },
    host,
    registry::{PluginAvailability, RegisteredPlugin, Registry},
    services::Browser,
};
use sallyport_terminal::listing::ListRow;
use serde_json::{Value, json};

use super::{
    args::{OutputArgs, OutputFormat},
    exit::{CommandFailure, ExitStatus},
    interrupt,
    name_kind::NameKind,
    observers::SideMessage,
    output::CliOutput,
    setup,
};

// Commands for connections.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(super) enum ConnectionCommand {
    /// List the plugins that have accounts, and whether you are connected
    #[command(visible_alias = "ls")]
    List(OutputArgs),
    /// Sign in at a service and connect your account
    Add {
        /// The plugin
        #[arg(value_name = "PLUGIN", add = NameKind::Plugin)]
        plugin: String,
        /// Sign in on another device, where this machine has no browser
        #[arg(long)]
        device: bool,
        /// Stop waiting after this many seconds
        #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=3600))]
        wait: Option<u64>,
    },
    /// Show one connection; never prints a token
    Show {
        /// The plugin
        #[arg(value_name = "PLUGIN", add = NameKind::Plugin)]
        plugin: String,
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Refresh the tokens of a connection if they are due
    Refresh {
        /// The plugin
        #[arg(value_name = "PLUGIN", add = NameKind::Plugin)]
        plugin: String,
    },
    /// Remove a connection with its tokens
    #[command(visible_alias = "rm")]
    Remove {
        /// The plugin
        #[arg(value_name = "PLUGIN", add = NameKind::Plugin)]
        plugin: String,
    },
    /// Print what a model is told about connections
    Context {
        /// Everything, with rules and messages; the default without --only
        #[arg(long, conflicts_with = "only")]
        full: bool,
        /// These plugins only
        #[arg(long, value_name = "PLUGINS", value_delimiter = ',')]
        only: Option<Vec<String>>,
        /// With --only: limits and confirmations too
        #[arg(long)]
        rules: bool,
        /// With --only: messages about results and failures too
        #[arg(long)]
        guidance: bool,
        #[command(flatten)]
        output: OutputArgs,
    },
}

/// What the commands work with.
struct ConnectionView {
    settings: HostSettings,
    registry: Arc<Registry>,
    desk: Arc<ConnectionDesk>,
}

pub(super) async fn run_connection_command(
    flags: &ConfigFlags,
    command: &ConnectionCommand,
    out: &CliOutput,
) -> Result<ExitStatus, CommandFailure> {
    let settings = setup::read_settings(flags)?;
    let registry = setup::load_registry(&settings, out).await?;
    let desk = host::open_connections(&settings, &setup::open_store(&settings)?);
    let view = ConnectionView { settings, registry, desk };
    match command {
        ConnectionCommand::List(args) => view.list(args.output, out).await?,
        ConnectionCommand::Add { plugin, device: true, .. } => view.add_device(plugin, out).await?,
        ConnectionCommand::Add { plugin, device: false, wait } => {
            let time_max = wait.map_or(LOGIN_TIME_MAX, Duration::from_secs);
            view.add_browser(plugin, time_max, out).await?;
        }
        ConnectionCommand::Show { plugin, output } => view.show(plugin, output.output, out).await?,
        ConnectionCommand::Refresh { plugin } => {
            let service = service_to_connect(&view.registry, plugin)?;
            view.desk.usable_token(&service, LOCAL_USER).await?;
            out.print_note(&format!("The connection of {} is fresh.", service.plugin));
        }
        ConnectionCommand::Remove { plugin } => {
            let name = parse_plugin(plugin)?;
            if !view.desk.remove(LOCAL_USER, &name).await? {
                return Err(AccountError::NotConnected { plugin: name }.into());
            }
            let note = "The service may still list this program; remove it there too.";
            out.print_note(&format!("Removed the connection of {name}. {note}"));
        }
        ConnectionCommand::Context { full, only, rules, guidance, output } => {
            let full = *full || only.is_none();
            let detail = ContextDetail { rules: full || *rules, guidance: full || *guidance };
            view.print_context(only.as_deref(), detail, output.output, out).await?;
        }
    }
    view.registry.shutdown().await;
    Ok(ExitStatus::Done)
}

impl ConnectionView {
    async fn list(&self, format: OutputFormat, out: &CliOutput) -> Result<(), CommandFailure> {
        let connections = self.desk.list(LOCAL_USER).await?;
        let row = |entry: &RegisteredPlugin| {
            let service = entry.account_service()?;
            let of = connections.iter().find(|one| one.plugin_key == service.plugin.as_str());
            let mut row = row_json(service, of);
            // What a disabled plugin lacks comes before its account.
            if let PluginAvailability::Disabled { reason } = entry.availability() {
                row["status"] = "disabled".into();
                row["reason"] = reason.as_str().into();
            }
            Some(row)
        };
        let rows: Vec<Value> = self.registry.entries().filter_map(row).collect();
        if format == OutputFormat::Json {
            out.print_json(&Value::Array(rows));
            return Ok(());
        }
        let cell = |row: &Value, key: &str| row[key].as_str().unwrap_or_default().to_owned();
        let cells = |row: &Value| {
            let account = cell(row, "account") + &text::escape_line(&cell(row, "reason"));
            ListRow::new([cell(row, "plugin_key"), cell(row, "status"), account])
        };
        out.print_list(&rows.iter().map(cells).collect::<Vec<_>>());
        if rows.is_empty() {
            out.print_note("No plugin has accounts.");
        }
        Ok(())
    }

    async fn show(
        &self,
        plugin: &str,
        format: OutputFormat,
        out: &CliOutput,
    ) -> Result<(), CommandFailure> {
        let name = parse_plugin(plugin)?;
        let found = self.desk.find(LOCAL_USER, &name).await?;
        let Some(facts) = found else {
            // The error of a plugin that cannot be connected.
            service_to_connect(&self.registry, plugin)?;
            return Err(AccountError::NotConnected { plugin: name }.into());
        };
        if format == OutputFormat::Json {
            out.print_json(&json!(facts));
            return Ok(());
        }
        let expires = facts.expires_at.map_or_else(|| "not stated".to_owned(), moment_text);
        let refreshed = if facts.has_refresh_token { "yes" } else { "no" };
        out.print_list(&[
            ListRow::new(["plugin", &facts.plugin_name]),
            ListRow::new(["status", facts.status.as_str()]),
            ListRow::new(["account", &account_text(&facts)]),
            ListRow::new(["permissions", &facts.scope]),
            ListRow::new(["token ends", &expires]),
            ListRow::new(["refreshed by itself", refreshed]),
        ]);
        Ok(())
    }

    async fn add_browser(
        &self,
        plugin: &str,
        time_max: Duration,
        out: &CliOutput,
    ) -> Result<(), CommandFailure> {
        let service = service_to_connect(&self.registry, plugin)?;
        let login = PendingBrowserLogin::begin(&service).await?;
        let sign_in = BrowserSignIn { settings: &self.settings, desk: &self.desk, time_max };
        sign_in.finish(&service, login, out).await
    }

    async fn add_device(&self, plugin: &str, out: &CliOutput) -> Result<(), CommandFailure> {
        let service = service_to_connect(&self.registry, plugin)?;
        let login = login::begin_device_login(&self.desk, &service).await?;
        out.print_note(&format!(
            "Open {} on any device and type this code: {}",
            text::escape_line(login.address()),
            text::escape_line(login.user_code())
        ));
        let finish = login::finish_device_login(login, &self.desk, &service, LOCAL_USER);
        print_connected(&service, &finish.await?, out);
        Ok(())
    }

    async fn print_context(
        &self,
        only: Option<&[String]>,
        detail: ContextDetail,
        format: OutputFormat,
        out: &CliOutput,
    ) -> Result<(), CommandFailure> {
        let definitions = self.registry.usable_definitions();
        let context =
            connection_context(&self.desk, LOCAL_USER, &definitions, only, detail).await?;
        match (format, context.prompt_text()) {
            (OutputFormat::Json, _) => out.print_json(&json!(context)),
            (OutputFormat::Text, Some(text)) => out.print_text(&text),
            (OutputFormat::Text, None) => out.print_note("Every plugin is connected."),
        }
        Ok(())
    }
}

/// What a sign-in in a browser is finished with.
pub(super) struct BrowserSignIn<'a> {
    pub(super) settings: &'a HostSettings,
    pub(super) desk: &'a Arc<ConnectionDesk>,
    pub(super) time_max: Duration,
}

impl BrowserSignIn<'_> {
    /// Opens the page, and waits until the user has signed in.
    pub(super) async fn finish(
        self,
        service: &AccountService,
        login: PendingBrowserLogin,
        out: &CliOutput,
    ) -> Result<(), CommandFailure> {
        let address = login.address().to_owned();
        out.print_note(&format!("Sign in at {} in your browser:", service.shown_name));
        out.print_note(&address);
        let command = self.settings.browser.command.as_deref();
        let is_watched = out.stderr_is_terminal;
        let browser = Browser::new(command, &self.settings.env, is_watched, Arc::new(|_| {}));
        sallyport_contract::services::UrlOpener::open_page(&browser, &address);
        let connected = tokio::select! {
            connected = login.finish(self.desk, service, LOCAL_USER, self.time_max) => connected?,
            () = interrupt::wait_for_interrupt() => {
                return Err(CommandFailure::new(ExitStatus::Interrupted, "stopped"));
            }
        };
        print_connected(service, &connected, out);
        Ok(())
    }
}

/// The services of the usable plugins that have accounts, by name.
pub(super) fn account_services(registry: &Registry) -> Vec<Arc<AccountService>> {
    let ready = registry.entries().filter(|entry| entry.is_ready());
    ready.filter_map(RegisteredPlugin::account_service).cloned().collect()
}

/// The service of a plugin that can be connected.
pub(super) fn service_to_connect(
    registry: &Registry,
    plugin: &str,
) -> Result<Arc<AccountService>, CommandFailure> {
    let entry = registry.find_plugin(plugin)?;
    if let PluginAvailability::Disabled { reason } = entry.availability() {
        let message = format!("{} is disabled: {reason}", entry.name());
        return Err(CommandFailure::new(ExitStatus::Policy, message));
    }
    entry.account_service().cloned().ok_or_else(|| {
        CommandFailure::new(ExitStatus::Usage, format!("{} needs no account", entry.name()))
    })
}

fn parse_plugin(text: &str) -> Result<PluginName, CommandFailure> {
    text.parse().map_err(|error| CommandFailure::new(ExitStatus::Usage, format!("{error}")))
}

fn print_connected(service: &AccountService, connected: &Connected, out: &CliOutput) {
    for message in connected_messages(service, connected) {
        match message {
            SideMessage::Warning(text) => out.print_warning(&text),
            SideMessage::Info(text) | SideMessage::Trace(text) => out.print_note(&text),
            SideMessage::HostContacted { .. } => {}
        }
    }
}

/// What the user is told about a new connection.
pub(super) fn connected_messages(
    service: &AccountService,
    connected: &Connected,
) -> Vec<SideMessage> {
    let mut messages = vec![SideMessage::Info(format!("Connected {}.", service.plugin))];
    if !connected.missing_scopes.is_empty() {
        messages.push(SideMessage::Warning(format!(
            "some permissions were not given, so some actions may fail: {}",
            text::escape_line(&connected.missing_scopes.join(", "))
        )));
    }
    if !connected.has_refresh_token {
        let note = "The service gave no refresh token. You have to sign in again when it ends.";
        messages.push(SideMessage::Info(note.to_owned()));
    }
    messages
}

fn row_json(service: &AccountService, of: Option<&ConnectionFacts>) -> Value {
    json!({
        "plugin_key": service.plugin.as_str(),
        "plugin_name": service.shown_name,
        "status": of.map_or("not connected", |facts| facts.status.as_str()),
        "account": of.map(account_text).unwrap_or_default(),
        "expires_at": of.and_then(|facts| facts.expires_at),
        "scope": of.map(|facts| facts.scope.as_str()),
    })
}

/// Who the account belongs to, according to the service.
pub(super) fn account_text(facts: &ConnectionFacts) -> String {
    text::escape_line(facts.account())
}

fn moment_text(at_ms: u64) -> String {
    let moment = jiff::Timestamp::from_millisecond(i64::try_from(at_ms).unwrap_or(i64::MAX));
    moment.map_or_else(|_| "never".to_owned(), |moment| moment.to_string())
}

impl From<AccountError> for CommandFailure {
    fn from(error: AccountError) -> Self {
        let exit = match &error {
            AccountError::NotConnected { .. } | AccountError::Expired { .. } => {
                ExitStatus::Credentials
            }
            AccountError::NotNow { .. } => ExitStatus::Unreachable,
            _ => ExitStatus::Failed,
        };
        let hint = error.hint();
        Self { hint, ..Self::new(exit, error.to_string()) }
    }
}

impl From<LoginError> for CommandFailure {
    fn from(error: LoginError) -> Self {
        match error {
            LoginError::Account(error) => error.into(),
            LoginError::NotNeeded(_) => Self::new(ExitStatus::Usage, error.to_string()),
            LoginError::Callback(_) => Self::new(ExitStatus::Failed, error.to_string()),
        }
    }
}
