//! Accounts in a chat: `/connect`, and the sign-ins that calls wait for.

use std::sync::Arc;

use sallyport_connections::AccountService;
use sallyport_contract::{LOCAL_USER, PluginName, services::UrlOpener};
use sallyport_runtime::{
    config::HostSettings,
    connections::{
        SignInPresenter,
        login::{Connected, LOGIN_TIME_MAX, LoginError, PendingBrowserLogin},
    },
    services::Browser,
};
use sallyport_store::ConnectionStatus;
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
    fn show_page(&self, service: &AccountService, address: &str) {
        let name = &service.shown_name;
        self.tell(SideMessage::Info(format!("Sign in at {name} in your browser:")));
        self.tell(SideMessage::Info(address.to_owned()));
        self.browser.open_page(address);
    }

    fn show_connected(&self, service: &AccountService, connected: &Connected) {
        connected_messages(service, connected).into_iter().for_each(|one| self.tell(one));
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
        let services = connection::account_services(&self.roles.registry());
        let Some(desk) = self.connections.as_ref().filter(|_| !services.is_empty()) else {
            return Ok(note_lines("No plugin has accounts."));
        };
        let connections = desk.list(LOCAL_USER).await?;
        let row = |service: &Arc<AccountService>| {
            let name = service.plugin.as_str();
            let of = connections.iter().find(|one| one.plugin_key == name);
            let status = of.map_or("not connected", |facts| facts.status.as_str());
            let is_connected = of.is_some_and(|facts| facts.status == ConnectionStatus::Active);
            let connect = (!is_connected).then(|| format!("/connect {name}"));
            let account = of.map(account_text).unwrap_or_default();
            ListRow::new([name, status, &connect.unwrap_or(account)])
        };
        let rows: Vec<_> = services.iter().map(row).collect();
        Ok(list_lines(&rows, Some(self.view.columns())))
    }

    /// Opens the page of a sign-in. The conversation goes on meanwhile.
    async fn begin_sign_in(&self, plugin: &PluginName) -> Result<(), CommandFailure> {
        let service = connection::service_to_connect(&self.roles.registry(), plugin.as_str())?;
        let Some(desk) = self.connections.clone() else {
            return Err(LoginError::NotNeeded(plugin.to_string()).into());
        };
        let login = PendingBrowserLogin::begin(&service).await?;
        let sign_in = Arc::clone(&self.sign_in);
        sign_in.show_page(&service, login.address());
        tokio::spawn(async move {
            match login.finish(&desk, &service, LOCAL_USER, LOGIN_TIME_MAX).await {
                Ok(connected) => sign_in.show_connected(&service, &connected),
                Err(error) => {
                    let message = format!("{} was not connected: {error}", service.plugin);
                    sign_in.tell(SideMessage::Warning(message));
                }
            }
        });
        Ok(())
    }
}
