//! Tools of MCP servers.
//!
//! A server that is configured under `[mcp.NAME]` is a plugin of that name. It is a program of this
//! machine that runs behind the walls of scripts with exactly the grant of its plugin, or it is at an
//! address that this grant allows. It is started or reached at its first call, or when its tools are
//! not known yet. Its tools pass the same gate, lock, limits, redaction and audit as any other. What
//! it claims about them decides nothing.
//!
//! A server that lists other tools than the accepted ones gets no call until the user has accepted
//! them.

mod connection_spec;
mod outcome;
mod questions;
mod running;
mod sign_in;
mod tools;

use std::{
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
    time::{Duration, Instant},
};

use sallyport_connections::AccountService;
use sallyport_contract::{
    AdmittedCall, BoxFuture, CallFailure, CallReport, Denial, FailureKind, Outcome, PluginName,
    Secret, ToolDescriptor, text,
};
use sallyport_mcp_client::{CallRecord, OfferedTool, RedactServerText, ServerError};
use sallyport_policy::{Grant, Manifest, ProxyTable};
use sallyport_process::StageExecutable;
use sallyport_sandbox::{CallSlots, HostCallAuthorizer};
use tokio::sync::Mutex;

use crate::{
    config::{HostPaths, HostSettings, McpServerError, McpServerSettings},
    environment::Env,
    executor::{PluginExecutor, PluginKind},
    gate::{Gate, authorizer::PluginAuthorizer},
    script::{denied_report, run_in_call_slot},
};
use connection_spec::{ConnectionSpec, ServerEndpoint};
use outcome::FinishedServerCall;
use questions::UserQuestions;
use running::{McpStartError, RunningServer};
pub use sallyport_mcp_client::RegisteredApplication;
use sign_in::note_missing_scopes;
pub use sign_in::{
    PendingServerSignIn, ServerRegistration, ServerSignIn, ServerSignInError, begin_server_sign_in,
    forget_sign_in,
};
pub(crate) use tools::KnownTools;
use tools::ToolFile;

/// How long a failed start counts for the calls that follow. Without it, each call would wait for a
/// server that does not answer.
const FAILED_START_TIME: Duration = Duration::from_secs(5);

/// Longest list of permissions in a message, in characters.
const SCOPES_CHARS_MAX: usize = 200;

/// Forgets the tools of a server, so that the next host that needs them starts it.
pub fn forget_tools(host: &HostSettings, name: &PluginName) {
    let server = host.mcp_servers.get(name);
    // A server that cannot be used has no tools.
    if let Some(Ok(server)) =
        server.map(|server| McpServerPlugin::new(name, server, &host.env, &host.paths))
    {
        server.tool_file.remove();
    }
}

/// An MCP server.
pub(crate) struct McpServerPlugin {
    name: PluginName,
    settings: McpServerSettings,
    endpoint: ServerEndpoint,
    /// The service at which its users sign in, if a sign-in has found it out.
    account_service: Option<Arc<AccountService>>,
    /// The folder with what sign-ins found out.
    state: PathBuf,
    /// The environment, from which the policy grants variables.
    env: Env,
    digest: String,
    stage: StageExecutable,
    tool_file: ToolFile,
    /// Its tools when it was loaded, which are those that the user accepted.
    known: OnceLock<Result<Vec<OfferedTool>, String>>,
    call_slots: CallSlots,
    /// Locked for the whole of a start.
    slot: Mutex<ServerSlot>,
}

/// What the policy states about a server.
#[derive(Clone, Copy)]
pub(crate) struct ServerPolicy<'a> {
    pub(crate) grant: &'a Grant,
    /// The proxies that it names.
    pub(crate) proxies: Option<&'a ProxyTable>,
}

/// Removes the secrets that a gate knows from texts of a server. Tokens change while it runs, so the
/// gate is asked each time.
fn server_text_redaction(gate: &Arc<Gate>) -> RedactServerText {
    let gate = Arc::clone(gate);
    Arc::new(move |text: &str| gate.redactor().redact_text(text).into_owned())
}

/// What runs of a server.
#[derive(Default)]
struct ServerSlot {
    running: Option<Arc<RunningServer>>,
    failed: Option<FailedStart>,
}

/// The server answered that the call needs a token, or another one.
struct SignInRequired;

/// A start that failed.
struct FailedStart {
    spec: ConnectionSpec,
    at: Instant,
    error: McpStartError,
}

impl McpServerPlugin {
    /// A server as it is configured. A program is read, and not started.
    pub(crate) fn new(
        name: &PluginName,
        settings: &McpServerSettings,
        env: &Env,
        paths: &HostPaths,
    ) -> Result<Self, McpServerError> {
        let endpoint = ServerEndpoint::read(&settings.endpoint, env)?;
        let digest = endpoint.digest();
        Ok(Self {
            tool_file: ToolFile::new(&paths.cache, name, &digest),
            account_service: endpoint.account_service(&paths.state, name),
            state: paths.state.clone(),
            name: name.clone(),
            settings: settings.clone(),
            endpoint,
            env: env.clone(),
            digest,
            stage: StageExecutable::this_program(),
            known: OnceLock::new(),
            call_slots: CallSlots::new(),
            slot: Mutex::default(),
        })
    }

    /// What it requests from the policy.
    ///
    /// # Errors
    ///
    /// The policy cannot name its address.
    pub(crate) fn manifest(&self) -> Result<Manifest, McpServerError> {
        self.endpoint.manifest(self.name.clone())
    }

    /// The file of its program, if it is one.
    pub(crate) fn program(&self) -> Option<&Path> {
        self.endpoint.program()
    }

    /// The digest of its command and its program, or of its address.
    pub(crate) fn digest(&self) -> &str {
        &self.digest
    }

    /// Finds out its tools: from an earlier start, or by starting it under this policy, if there is
    /// one. `credential` signs in to a server at an address, and is asked for only then. `gate` knows
    /// the secrets that its texts may not have.
    pub(crate) async fn find_tools(
        &self,
        policy: Option<ServerPolicy<'_>>,
        credential: impl Future<Output = Option<Secret>>,
        start_time_max: Duration,
        gate: &Arc<Gate>,
    ) {
        let known = match (self.tool_file.read(), policy) {
            (Some(tools), _) => Ok(tools),
            (None, None) => Err("its tools are not known yet".to_owned()),
            (None, Some(policy)) => {
                let redact = server_text_redaction(gate);
                let credential = credential.await;
                self.start_for_tools(policy, credential.as_ref(), start_time_max, redact).await
            }
        };
        // It is called once.
        let _ = self.known.set(known);
    }

    async fn start_for_tools(
        &self,
        policy: ServerPolicy<'_>,
        credential: Option<&Secret>,
        start_time_max: Duration,
        redact: RedactServerText,
    ) -> Result<Vec<OfferedTool>, String> {
        let started = self.connect(policy, credential, start_time_max, Arc::clone(&redact)).await;
        let running = started.map_err(|error| match error {
            McpStartError::Denied(denial) => {
                self.endpoint.describe_missing_grant(&self.name, &denial)
            }
            McpStartError::Server(ServerError::SignInRequired(_), _) => self.sign_in_text(),
            McpStartError::Server(ServerError::PermissionMissing(scopes), _) => {
                self.missing_permission_text(&redact(&scopes))
            }
            error => error.to_string(),
        })?;
        let tools = running.current_tools(&self.tool_file).await;
        tools.map(|tools| tools.to_vec()).map_err(|error| error.to_string())
    }

    /// Its tools, as its plugin has them.
    pub(crate) fn known_tools(&self) -> KnownTools {
        match self.known.get() {
            Some(Ok(tools)) => KnownTools::from_offered(&self.name, tools),
            Some(Err(problem)) => {
                let check = format!("`sallyport mcp check {}` asks the server for them", self.name);
                KnownTools::unknown(format!("{problem} ({check})"))
            }
            None => KnownTools::unknown("its tools were not asked for".to_owned()),
        }
    }

    /// Its tools as an earlier start found them.
    pub(crate) fn remembered_tools(&self) -> Option<Vec<ToolDescriptor>> {
        let offered = self.tool_file.read()?;
        Some(KnownTools::from_offered(&self.name, &offered).tools)
    }

    /// Whether these are its tools, as far as an earlier start tells.
    pub(crate) fn has_known_tools(&self, tools: &[ToolDescriptor]) -> bool {
        self.remembered_tools().is_some_and(|known| known == tools)
    }

    /// What a user has to do when the server requires a sign-in.
    fn sign_in_text(&self) -> String {
        match self.endpoint.sign_in_obstacle() {
            None => format!("it requires a sign-in: sallyport mcp login {}", self.name),
            Some(_) => {
                "it requires a sign-in: its token is missing, wrong or has expired".to_owned()
            }
        }
    }

    /// What a user has to do when the account lacks permissions. The next sign-in asks for them.
    fn missing_permission_text(&self, scopes: &str) -> String {
        let shown = text::escape_excerpt(scopes, SCOPES_CHARS_MAX);
        match self.endpoint.sign_in_obstacle() {
            None => {
                note_missing_scopes(&self.state, &self.name, scopes);
                let login = format!("sallyport mcp login {}", self.name);
                format!("the account lacks the permission {shown}; to give it: {login}")
            }
            Some(_) => format!("its token lacks the permission {shown}"),
        }
    }

    /// Returns the server, started or reached with exactly this grant and this credential.
    async fn connect(
        &self,
        policy: ServerPolicy<'_>,
        credential: Option<&Secret>,
        start_time_max: Duration,
        redact: RedactServerText,
    ) -> Result<Arc<RunningServer>, McpStartError> {
        let spec = self.endpoint.connection_spec(policy, &self.env, credential)?;
        let mut slot = self.slot.lock().await;
        if let Some(running) = &slot.running
            && running.spec == spec
            && !running.connection.is_closed()
        {
            return Ok(Arc::clone(running));
        }
        if let Some(failed) = &slot.failed
            && failed.spec == spec
            && failed.at.elapsed() < FAILED_START_TIME
        {
            return Err(failed.error.clone());
        }
        // Calls that run keep the old one until they end.
        slot.running = None;
        let start_time = self.settings.start_time.min(start_time_max);
        let (stage, tool_file) = (&self.stage, &self.tool_file);
        match RunningServer::start(stage, spec.clone(), start_time, tool_file, redact).await {
            Ok(running) => {
                let running = Arc::new(running);
                slot.running = Some(Arc::clone(&running));
                slot.failed = None;
                Ok(running)
            }
            Err(error) => {
                slot.failed = Some(FailedStart { spec, at: Instant::now(), error: error.clone() });
                Err(error)
            }
        }
    }

    /// Whether a server offers the tools that were accepted.
    async fn offers_accepted_tools(&self, running: &RunningServer) -> Result<bool, ServerError> {
        let Some(Ok(accepted)) = self.known.get() else { return Ok(false) };
        let now = running.current_tools(&self.tool_file).await?;
        Ok(*now == *accepted)
    }

    async fn run_in_slot(
        &self,
        authorizer: &Arc<PluginAuthorizer>,
        call: &Arc<AdmittedCall>,
    ) -> CallReport {
        let credential = match authorizer.ensured_credential(call).await {
            Ok(credential) => credential,
            Err(failure) => return Outcome::Failed(failure).into(),
        };
        if let Ok(report) = self.run_signed_in(authorizer, call, credential.as_ref()).await {
            return report;
        }
        // The server refused the token before it ran anything, so the call can be made once more.
        let renewed = match &credential {
            Some(refused) if authorizer.renew_account_token(call, refused).await => {
                authorizer.account_credential(call).await
            }
            Some(_) | None => None,
        };
        let Some(renewed) = renewed else { return self.sign_in_report() };
        match self.run_signed_in(authorizer, call, Some(&renewed)).await {
            Ok(report) => report,
            Err(SignInRequired) => {
                authorizer.expire_account_token(call).await;
                self.sign_in_report()
            }
        }
    }

    /// The report of a call whose server requires a sign-in.
    fn sign_in_report(&self) -> CallReport {
        self.account_report(&self.sign_in_text())
    }

    /// The report of a call for which the account has too few permissions.
    fn missing_permission_report(&self, authorizer: &PluginAuthorizer, scopes: &str) -> CallReport {
        let scopes = authorizer.redactor().redact_text(scopes);
        self.account_report(&self.missing_permission_text(&scopes))
    }

    /// The report of a call that needs something of the account.
    fn account_report(&self, need: &str) -> CallReport {
        let message = format!("{} cannot be used now: {need}", self.name);
        Outcome::Failed(CallFailure::new(FailureKind::AuthRequired, message)).into()
    }

    /// The report of a call before which the server did not start, or did not list its tools.
    fn not_ready_report(
        &self,
        authorizer: &PluginAuthorizer,
        grant: &Grant,
        error: McpStartError,
    ) -> Result<CallReport, SignInRequired> {
        match error {
            McpStartError::Denied(denial) => Ok(denied_report(*denial)),
            McpStartError::Server(ServerError::SignInRequired(_), _) => Err(SignInRequired),
            McpStartError::Server(ServerError::PermissionMissing(scopes), _) => {
                Ok(self.missing_permission_report(authorizer, &scopes))
            }
            error => Ok(outcome::not_started(grant, &error, &authorizer.redactor())),
        }
    }

    async fn run_signed_in(
        &self,
        authorizer: &Arc<PluginAuthorizer>,
        call: &Arc<AdmittedCall>,
        credential: Option<&Secret>,
    ) -> Result<CallReport, SignInRequired> {
        // Read the grant again, because it may have been revoked while the call waited for a place.
        let grant = authorizer.checked_call_grant(call).await;
        let proxies = authorizer.proxy_settings();
        let policy = ServerPolicy { grant: &grant, proxies: proxies.as_deref() };
        let redact = server_text_redaction(authorizer.gate());
        let running = match self.connect(policy, credential, Duration::MAX, redact).await {
            Ok(running) => running,
            Err(error) => return self.not_ready_report(authorizer, &grant, error),
        };
        match self.offers_accepted_tools(&running).await {
            Ok(true) => {}
            Ok(false) => return Ok(outcome::changed_tools(&self.name)),
            Err(error) => {
                let error = McpStartError::Server(error, String::new());
                return self.not_ready_report(authorizer, &grant, error);
            }
        }
        let limit = self.settings.call_time.unwrap_or(Duration::MAX).min(grant.limits().time);
        let arguments = call.arguments().as_object().cloned().unwrap_or_default();
        let user = UserQuestions::new(authorizer, call);
        let (connection, tool) = (&running.connection, call.tool().tool.as_str());
        let record = Arc::<CallRecord>::default();
        let answering =
            connection.call_tool(tool, arguments, Arc::clone(&user) as _, Arc::clone(&record));
        let answer = user.run_within(limit, answering).await;
        match &answer {
            Ok(Err(ServerError::SignInRequired(_))) => return Err(SignInRequired),
            Ok(Err(ServerError::PermissionMissing(scopes))) => {
                return Ok(self.missing_permission_report(authorizer, scopes));
            }
            _ => {}
        }
        let (questions, remarks) = (record.take_questions(), record.take_remarks());
        let end = match &answer {
            Ok(Err(_)) if running.connection.is_closed() => running.end_report().await,
            _ => String::new(),
        };
        let finished =
            FinishedServerCall { call, grant: &grant, answer, limit, questions, remarks, end };
        Ok(finished.into_report(self.endpoint.call_effect(), &authorizer.redactor()))
    }
}

impl PluginExecutor for Arc<McpServerPlugin> {
    fn kind(&self) -> PluginKind {
        PluginKind::McpServer
    }

    fn file(&self) -> Option<&Path> {
        self.program()
    }

    fn unconditional_denial(&self, grant: &Grant) -> Option<Denial> {
        self.endpoint.find_denial(grant)
    }

    fn account_service(&self) -> Option<&Arc<AccountService>> {
        self.account_service.as_ref()
    }

    fn run_call<'a>(
        &'a self,
        authorizer: &'a Arc<PluginAuthorizer>,
        call: Arc<AdmittedCall>,
    ) -> BoxFuture<'a, CallReport> {
        Box::pin(async move {
            let run = self.run_in_slot(authorizer, &call);
            run_in_call_slot(&self.call_slots, &authorizer.current_grant(), run).await
        })
    }

    fn stop(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            if let Some(running) = self.slot.lock().await.running.take() {
                running.stop().await;
            }
        })
    }
}
