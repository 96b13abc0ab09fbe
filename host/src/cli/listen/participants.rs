//! Participants of a session other than the model: finds them, checks them and binds their
//! addresses.
//!
//! Every problem is reported here, before the session begins and any plugin runs.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    net::SocketAddr,
    sync::Arc,
};

use sallyport_contract::{
    LOCAL_USER,
    services::{SessionInbox, UiSession},
};
use sallyport_model::UserInputMessage;
use sallyport_policy::{Capability, ListenGrant, ListenKind, PluginRole, UiGrant};
use sallyport_runtime::{
    gate::{MessageSink, SecretLookupError},
    roles::{
        RolePlugin, SessionRoles,
        http::{
            AccessKey, AccessKeyHolder, HttpRoute, HttpServer, PluginRequestHandler,
            ReadDecisionCache, RouteHandler,
        },
        listener::{SessionListener, inbox::InputQueue, websocket::WebSocketAcceptor},
        ui::{UiCommand, UiCommandHandler, UiSurface},
    },
};
use tokio::sync::mpsc;

use super::{
    SessionStartError,
    args::{AttendedSessionOptions, ListenerSelection},
    terminal_surface::TerminalSurface,
};
use crate::cli::exit::{CommandFailure, ExitStatus};

/// The selected UI.
pub(super) struct SelectedUi {
    pub(super) role_plugin: RolePlugin,
    pub(super) command_handler: Arc<UiCommandHandler>,
    pub(super) commands: mpsc::Receiver<UiCommand>,
    pub(super) may_confirm: bool,
    pub(super) has_page: bool,
}

/// All participants.
pub(super) struct Participants {
    pub(super) roles: Arc<SessionRoles>,
    pub(super) session_id: String,
    pub(super) ui: Option<SelectedUi>,
    pub(super) listeners: Vec<Arc<SessionListener>>,
    /// The listener that reads standard input.
    pub(super) stdin: Option<Arc<SessionListener>>,
    pub(super) servers: Vec<HttpServer>,
    pub(super) inputs: mpsc::Receiver<UserInputMessage>,
    addresses: Vec<String>,
}

/// Shared parts while the participants are gathered.
struct ParticipantBuilder<'a> {
    roles: &'a Arc<SessionRoles>,
    session_id: &'a str,
    input_queue: InputQueue,
    warn: MessageSink,
}

/// An address or stream, with the plugin that serves it.
struct ListenEndpoint {
    role_plugin: RolePlugin,
    grant: ListenGrant,
    handler: EndpointHandler,
}

#[derive(Clone)]
enum EndpointHandler {
    Listener(Arc<SessionListener>),
    Ui(Arc<UiCommandHandler>),
}

impl Participants {
    pub(super) async fn gather(
        options: &AttendedSessionOptions<'_>,
        roles: &Arc<SessionRoles>,
        session_id: &str,
        surface: &Arc<TerminalSurface>,
    ) -> Result<Self, SessionStartError> {
        let (input_queue, inputs) = InputQueue::new();
        let warning_surface = Arc::clone(surface);
        let warn: MessageSink =
            Arc::new(move |what| warning_surface.with_output(|out| out.print_warning(what)));
        let builder = ParticipantBuilder { roles, session_id, input_queue, warn };
        let mut endpoints = Vec::new();
        let ui =
            options.ui.map(|name| builder.select_ui(name, surface, &mut endpoints)).transpose()?;
        let listeners = builder.select_listeners(options.listeners, &mut endpoints)?;
        check_unique_places(&endpoints)?;
        let stdin =
            endpoints.iter().find_map(|endpoint| match (&endpoint.handler, endpoint.grant.kind) {
                (EndpointHandler::Listener(session_listener), ListenKind::Stdin) => {
                    Some(Arc::clone(session_listener))
                }
                _ => None,
            });
        let keys = AccessKeys::new(options.token, roles)?;
        let (servers, addresses) = builder.bind_addresses(&endpoints, &keys).await?;
        let (roles, session_id) = (Arc::clone(roles), session_id.to_owned());
        Ok(Self { roles, session_id, ui, listeners, stdin, servers, inputs, addresses })
    }

    /// Describes each address that can be used, one sentence each.
    pub(super) fn address_lines(&self) -> Vec<String> {
        self.addresses.clone()
    }

    /// Returns a message if the UI requests more than its grant. It explains missing buttons.
    pub(super) fn missing_grant_message(&self) -> Option<String> {
        let selected_ui = self.ui.as_ref().filter(|selected_ui| !selected_ui.may_confirm)?;
        let grant = selected_ui.role_plugin.grant()?;
        let fix = grant.deny_capability(Capability::Ui, "answer questions").fix?;
        let plugin = grant.plugin();
        let words = "cannot answer approvals";
        Some(format!("{plugin} {words}. To allow it: {}", fix.command()))
    }
}

impl ParticipantBuilder<'_> {
    fn select_ui(
        &self,
        name: &str,
        surface: &Arc<TerminalSurface>,
        endpoints: &mut Vec<ListenEndpoint>,
    ) -> Result<SelectedUi, SessionStartError> {
        let role_plugin =
            self.roles.load_role_plugin(name, PluginRole::Ui).map_err(CommandFailure::from)?;
        let grant = role_plugin.grant().ok_or_else(|| plugin_gone_failure(&role_plugin))?;
        let Some(UiGrant { confirm: may_confirm }) = grant.ui() else {
            return denied_result(
                grant.deny_capability(Capability::Ui, "be the user's side of a session"),
            );
        };
        let ui_surface = Arc::clone(surface) as Arc<dyn UiSurface>;
        let (command_handler, commands) =
            UiCommandHandler::new(self.input_queue.clone(), ui_surface);
        let has_page = role_plugin.plugin().has_http_handler();
        let pages = grant.listen().iter().filter(|grant| grant.kind == ListenKind::Http);
        let before = endpoints.len();
        for grant in pages.filter(|_| has_page) {
            let (role_plugin, handler) =
                (role_plugin.clone(), EndpointHandler::Ui(Arc::clone(&command_handler)));
            endpoints.push(ListenEndpoint { role_plugin, grant: grant.clone(), handler });
        }
        if has_page && endpoints.len() == before {
            return denied_result(grant.deny_capability(Capability::Listen, "serve its page"));
        }
        Ok(SelectedUi { role_plugin, command_handler, commands, may_confirm, has_page })
    }

    fn select_listeners(
        &self,
        selection: ListenerSelection<'_>,
        endpoints: &mut Vec<ListenEndpoint>,
    ) -> Result<Vec<Arc<SessionListener>>, SessionStartError> {
        let role_plugins = match selection {
            ListenerSelection::None => Vec::new(),
            ListenerSelection::Granted => self.granted_listeners()?,
            ListenerSelection::Named(names) => {
                // A listener that is named twice listens once.
                let names: BTreeSet<&String> = names.iter().collect();
                let found = names
                    .into_iter()
                    .map(|name| self.roles.load_role_plugin(name, PluginRole::Listener));
                found.collect::<Result<Vec<_>, _>>().map_err(CommandFailure::from)?
            }
        };
        let mut listeners = Vec::new();
        for role_plugin in role_plugins {
            let session_listener = Arc::new(SessionListener {
                role_plugin: role_plugin.clone(),
                user: LOCAL_USER.to_owned(),
                session_id: self.session_id.to_owned(),
                input_queue: self.input_queue.clone(),
                message_sink: Arc::clone(&self.warn),
                connections: Default::default(),
            });
            self.add_listener_endpoints(&role_plugin, &session_listener, endpoints)?;
            listeners.push(session_listener);
        }
        Ok(listeners)
    }

    /// Returns all listeners with a `listen` grant. There must be at least one.
    fn granted_listeners(&self) -> Result<Vec<RolePlugin>, SessionStartError> {
        let listener_plugins = self.roles.plugins_with_role(PluginRole::Listener);
        let granted = listener_plugins.iter().filter(|entry| !entry.grant().listen().is_empty());
        let names: Vec<&str> = granted.map(|entry| entry.name().as_str()).collect();
        if names.is_empty() {
            let failure = CommandFailure::new(ExitStatus::Policy, "no plugin has a `listen` grant");
            let hint = "run with --listener NAME to see what it needs";
            return Err(failure.with_hint(hint).into());
        }
        let role_plugins =
            names.into_iter().map(|name| self.roles.load_role_plugin(name, PluginRole::Listener));
        Ok(role_plugins.collect::<Result<_, _>>().map_err(CommandFailure::from)?)
    }

    fn add_listener_endpoints(
        &self,
        role_plugin: &RolePlugin,
        session_listener: &Arc<SessionListener>,
        endpoints: &mut Vec<ListenEndpoint>,
    ) -> Result<(), SessionStartError> {
        let grant = role_plugin.grant().ok_or_else(|| plugin_gone_failure(role_plugin))?;
        if grant.listen().is_empty() {
            return denied_result(grant.deny_capability(Capability::Listen, "listen"));
        }
        for grant in grant.listen() {
            if grant.kind == ListenKind::Http && !role_plugin.plugin().has_http_handler() {
                let message =
                    format!("{} does not answer HTTP requests: {grant}", role_plugin.name());
                let failure = CommandFailure::new(ExitStatus::PluginRejected, message);
                return Err(failure
                    .with_hint("the component must export wasi:http/incoming-handler")
                    .into());
            }
            let (role_plugin, handler) =
                (role_plugin.clone(), EndpointHandler::Listener(Arc::clone(session_listener)));
            endpoints.push(ListenEndpoint { role_plugin, grant: grant.clone(), handler });
        }
        Ok(())
    }

    /// Binds every address. No request is served yet.
    async fn bind_addresses(
        &self,
        endpoints: &[ListenEndpoint],
        keys: &AccessKeys,
    ) -> Result<(Vec<HttpServer>, Vec<String>), CommandFailure> {
        let mut endpoints_by_address: BTreeMap<SocketAddr, Vec<&ListenEndpoint>> = BTreeMap::new();
        let mut addresses = Vec::new();
        for endpoint in endpoints {
            match &endpoint.grant.address {
                Some(at) => {
                    endpoints_by_address.entry(at.socket_address).or_default().push(endpoint)
                }
                None => {
                    addresses.push(format!("{} reads standard input", endpoint.role_plugin.name()))
                }
            }
        }
        let mut servers = Vec::new();
        for (addr, endpoints) in endpoints_by_address {
            let routes =
                endpoints.iter().filter_map(|endpoint| self.build_route(endpoint, keys)).collect();
            let server = HttpServer::bind(addr, routes).await;
            let server = server.map_err(|error| bind_failure(endpoints[0], &error))?;
            addresses.extend(endpoints.iter().filter_map(|endpoint| {
                describe_address(endpoint, server.local_addr(), keys.key_for(endpoint))
            }));
            servers.push(server);
        }
        if endpoints.iter().any(ListenEndpoint::is_for_programs) {
            addresses.push(format!(
                "send this header with each request: {}",
                keys.programs.authorization_header()
            ));
        }
        Ok((servers, addresses))
    }

    fn build_route(&self, endpoint: &ListenEndpoint, keys: &AccessKeys) -> Option<HttpRoute> {
        let address = endpoint.grant.address.clone()?;
        let target = match (endpoint.grant.kind, &endpoint.handler) {
            (ListenKind::WebSocket, EndpointHandler::Listener(session_listener)) => {
                RouteHandler::WebSocket(Arc::new(WebSocketAcceptor(Arc::clone(session_listener))))
            }
            _ => RouteHandler::Http(Arc::new(self.build_page(endpoint))),
        };
        Some(HttpRoute { address, handler: target, key: Arc::clone(keys.key_for(endpoint)) })
    }

    fn build_page(&self, endpoint: &ListenEndpoint) -> PluginRequestHandler {
        let (inbox, command_handler) = match &endpoint.handler {
            EndpointHandler::Listener(session_listener) => (
                Some(Arc::new(session_listener.input_queue.clone()) as Arc<dyn SessionInbox>),
                None,
            ),
            EndpointHandler::Ui(command_handler) => {
                (None, Some(Arc::clone(command_handler) as Arc<dyn UiSession>))
            }
        };
        PluginRequestHandler {
            role_plugin: endpoint.role_plugin.clone(),
            user: LOCAL_USER.to_owned(),
            session_id: self.session_id.to_owned(),
            inbox,
            ui_session: command_handler,
            message_sink: Arc::clone(&self.warn),
            decision_cache: ReadDecisionCache::default(),
        }
    }
}

fn denied_result<T>(denial: sallyport_contract::Denial) -> Result<T, SessionStartError> {
    Err(SessionStartError::Denied(Box::new(denial)))
}

fn plugin_gone_failure(role_plugin: &RolePlugin) -> CommandFailure {
    CommandFailure::new(
        ExitStatus::PluginRejected,
        format!("{} is not there any more", role_plugin.name()),
    )
}

/// Refuses two plugins at the same place.
fn check_unique_places(endpoints: &[ListenEndpoint]) -> Result<(), CommandFailure> {
    for (index, endpoint) in endpoints.iter().enumerate() {
        let same = |other: &&ListenEndpoint| is_same_grant_place(&other.grant, &endpoint.grant);
        if let Some(other) = endpoints[..index].iter().find(same) {
            let (first, second) = (other.role_plugin.name(), endpoint.role_plugin.name());
            let message = format!("{first} and {second} both listen at {}", endpoint.grant);
            let hint = "grant one of them another path, or choose one with --listener";
            return Err(CommandFailure::new(ExitStatus::Policy, message).with_hint(hint));
        }
    }
    Ok(())
}

/// Whether two grants name the same place.
///
/// At a fixed port this includes an HTTP grant and a WebSocket grant: the address would not show
/// which plugin answers.
fn is_same_grant_place(one: &ListenGrant, other: &ListenGrant) -> bool {
    let is_same_kind = one.kind == other.kind;
    match (&one.address, &other.address) {
        (None, None) => true,
        (Some(at), Some(others)) => {
            let is_same_place =
                at.socket_address == others.socket_address && at.path == others.path;
            is_same_place && (is_same_kind || at.socket_address.port() != 0)
        }
        _ => false,
    }
}

/// The access keys of this run.
struct AccessKeys {
    ui: Arc<AccessKey>,
    programs: Arc<AccessKey>,
}

impl AccessKeys {
    fn new(token: Option<&str>, roles: &SessionRoles) -> Result<Self, CommandFailure> {
        let ui = random_key(AccessKeyHolder::User)?;
        Ok(Self { ui: Arc::new(ui), programs: Arc::new(load_program_key(token, roles)?) })
    }

    fn key_for(&self, endpoint: &ListenEndpoint) -> &Arc<AccessKey> {
        match &endpoint.handler {
            EndpointHandler::Ui(_) => &self.ui,
            EndpointHandler::Listener(_) => &self.programs,
        }
    }
}

fn random_key(holder: AccessKeyHolder) -> Result<AccessKey, CommandFailure> {
    AccessKey::random(holder)
        .map_err(|error| CommandFailure::new(ExitStatus::Failed, error.to_string()))
}

/// The key for programs: a secret of the user's, or a random one.
fn load_program_key(
    token: Option<&str>,
    roles: &SessionRoles,
) -> Result<AccessKey, CommandFailure> {
    let Some(name) = token else {
        return random_key(AccessKeyHolder::Programs);
    };
    let secret = roles.registry().gate().secret_value(name).map_err(|error| match error {
        SecretLookupError::NotInPolicy => {
            let failure = CommandFailure::new(
                ExitStatus::Policy,
                format!("the policy has no secret {name:?}"),
            );
            failure.with_hint("list the secrets with `sallyport secret list`")
        }
        SecretLookupError::Vault(error) => error.into(),
    })?;
    AccessKey::from_secret(&secret).map_err(|error| {
        let failure = CommandFailure::new(ExitStatus::Policy, error.to_string());
        failure.with_hint(format!("set another value with `sallyport secret set {name}`"))
    })
}

impl ListenEndpoint {
    /// Whether it serves requests that programs send.
    fn is_for_programs(&self) -> bool {
        matches!((&self.handler, self.grant.kind), (EndpointHandler::Listener(_), ListenKind::Http))
    }
}

/// Describes the address of a door. It includes the key where the address alone is enough to
/// connect.
fn describe_address(
    endpoint: &ListenEndpoint,
    addr: SocketAddr,
    key: &AccessKey,
) -> Option<String> {
    let (at, name) = (endpoint.grant.address.as_ref()?, endpoint.role_plugin.name());
    Some(match (&endpoint.handler, endpoint.grant.kind) {
        (EndpointHandler::Ui(_), _) => {
            let path = at.path.trim_end_matches('/');
            format!(
                "{name} shows the session at {}",
                key.address_with_key(&format!("http://{addr}{path}/"))
            )
        }
        (EndpointHandler::Listener(_), ListenKind::WebSocket) => {
            format!(
                "{name} listens at {}",
                key.address_with_key(&format!("ws://{addr}{}", at.path))
            )
        }
        (EndpointHandler::Listener(_), _) => format!("{name} listens at http://{addr}{}", at.path),
    })
}

/// Explains why an address cannot be bound.
fn bind_failure(endpoint: &ListenEndpoint, error: &io::Error) -> CommandFailure {
    let (grant, location) = (&endpoint.grant, &endpoint.grant.place);
    let why = match error.kind() {
        io::ErrorKind::AddrInUse => "the address is already in use".to_owned(),
        io::ErrorKind::AddrNotAvailable => "this machine does not have the address".to_owned(),
        io::ErrorKind::PermissionDenied => "permission denied by the system".to_owned(),
        _ => error.to_string(),
    };
    let message = format!("{} cannot listen at {grant}: {why}", endpoint.role_plugin.name());
    let failure = CommandFailure::new(ExitStatus::Failed, message);
    failure.with_hint(format!(
        "change the port in line {} of the policy; 0 means any free port",
        location.line
    ))
}
