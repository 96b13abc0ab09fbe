//! Accounts in a chat: `/connect`, and the sign-ins that calls wait for.

use std::sync::Arc;

use sallyport_connections::Definition;
use sallyport_contract::{LOCAL_USER, PluginName, services::UrlOpener};
use sallyport_runtime::{
    config::HostSettings,
    connections::{
        SignInPresenter,
        login::{Connected, LOGIN_TIME_MAX, LoginError, PendingBrowserLogin},
    },
    services::Browser,
};
use sallyport_terminal::{
    listing::{ListRow, list_lines},
    style::StyledLine,
};
use tokio::sync::mpsc::UnboundedSender;

use super::{interactive::InteractiveChat, view::note_lines};
use crate::cli::{
    connection::{self, account_text, connected_messages},
    exit::CommandFailure,
    observers::SideMessage,
};

/// Shows sign-ins next to the conversation.
pub(super) struct ChatSignIn {
    browser: Browser,
    side_messages: UnboundedSender<SideMessage>,
}

impl ChatSignIn {
    pub(super) fn new(
        settings: &HostSettings,
        side_messages: UnboundedSender<SideMessage>,
    ) -> Arc<Self> {
        let command = settings.browser.command.as_deref();
        // The address is shown anyway, because the browser may open on another screen.
        let browser = Browser::new(command, &settings.env, true, Arc::new(|_| {}));
        Arc::new(Self { browser, side_messages })
    }

    fn tell(&self, message: SideMessage) {
        // The receiver is gone only when the chat ends.
        let _ = self.side_messages.send(message);
    }
}

impl SignInPresenter for ChatSignIn {
    fn show_page(&self, definition: &Definition, address: &str) {
        let service = definition.shown_name();
        self.tell(SideMessage::Info(format!("Sign in at {service} in your browser:")));
        self.tell(SideMessage::Info(address.to_owned()));
        self.browser.open_page(address);
    }

    fn show_connected(&self, definition: &Definition, connected: &Connected) {
        connected_messages(definition, connected).into_iter().for_each(|one| self.tell(one));
    }
}

impl InteractiveChat<'_> {
    /// Lists the accounts, or begins to connect one.
    pub(super) async fn connect_account(&mut self, plugin: Option<PluginName>) {
        let done = match plugin {
            None => self.account_lines().await.map(|lines| self.show_lines(&lines)),
            Some(plugin) => self.begin_sign_in(&plugin).await,
        };
        if let Err(failure) = done {
            self.show_failure(&failure);
        }
    }

    async fn account_lines(&self) -> Result<Vec<StyledLine>, CommandFailure> {
        let definitions = connection::definitions_with_accounts(&self.roles.registry());
        let Some(desk) = self.connections.as_ref().filter(|_| !definitions.is_empty()) else {
            return Ok(note_lines("No plugin has accounts."));
        };
        let connections = desk.list(LOCAL_USER).await?;
        let row = |definition: &Arc<Definition>| {
            let name = definition.name.as_str();
            let of = connections.iter().find(|one| one.plugin_key == name);
            let status = of.map_or("not connected", |facts| facts.status);
            let connect = (status != "active").then(|| format!("/connect {name}"));
            let account = of.map(account_text).unwrap_or_default();
            ListRow::new([name, status, &connect.unwrap_or(account)])
        };
        let rows: Vec<_> = definitions.iter().map(row).collect();
        Ok(list_lines(&rows, Some(self.view.columns())))
    }

    /// Opens the page of a sign-in. The conversation goes on meanwhile.
    async fn begin_sign_in(&self, plugin: &PluginName) -> Result<(), CommandFailure> {
        let definition =
            connection::definition_to_connect(&self.roles.registry(), plugin.as_str())?;
        let Some(desk) = self.connections.clone() else {
            return Err(LoginError::NotNeeded(plugin.to_string()).into());
        };
        let login = PendingBrowserLogin::begin(&definition).await?;
        let sign_in = Arc::clone(&self.sign_in);
        sign_in.show_page(&definition, login.address());
        tokio::spawn(async move {
            match login.finish(&desk, &definition, LOCAL_USER, LOGIN_TIME_MAX).await {
                Ok(connected) => sign_in.show_connected(&definition, &connected),
                Err(error) => {
                    let message = format!("{} was not connected: {error}", definition.name);
                    sign_in.tell(SideMessage::Warning(message));
                }
            }
        });
        Ok(())
    }
}
