//! The service: what all requests share.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use futures::future::join_all;
use sallyport_contract::{ApprovalAnswer, ApprovalRequest, BoxFuture, Consent};
use sallyport_http_server::{ConnectionCounts, ServerTls};
use sallyport_runtime::{Host, HostNotice, config::HostSettings, session::SessionOverrides};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    browser_login::{ConsoleLogins, LoginAttempts},
    idempotency::IdempotencyDesk,
    metrics::{ServiceGauges, ServiceMetrics},
    open_sessions::OpenSessions,
    origin::{PublicOrigin, ServiceNames},
    pending_sign_ins::PendingSignIns,
    quota::UserQuota,
    sign_on::SignOn,
    tokens::TokenBook,
};

/// Most open sessions of one user, and of all. Each has its tasks and its instances of plugins.
const SESSIONS_MAX: (usize, usize) = (16, 256);

/// Most streams of events of one user, and of all. Each has a connection.
const STREAMS_MAX: (usize, usize) = (16, 256);

/// Most calls of one user, and of all, that run or wait for an approval.
const CALLS_MAX: (usize, usize) = (8, 64);

/// Most requests of one user, and of all, that are being answered.
const REQUESTS_MAX: (usize, usize) = (32, 256);

/// Longest wait at the end for calls and sessions. A call ends as soon as its host call does.
const WORK_END_TIME_MAX: Duration = Duration::from_secs(5);

/// Reads the configuration anew. An error is a sentence for the operator.
pub type SettingsSource = Box<dyn Fn() -> Result<HostSettings, String> + Send + Sync>;

/// The parts of a service.
pub struct ServiceParts {
    /// The loaded plugins. Its consent is a [`ServiceConsent`].
    pub host: Arc<Host>,
    /// Reads the configuration for each new session, so that a model that was set up meanwhile is
    /// known.
    pub read_settings: SettingsSource,
    /// Overrides the configuration of sessions.
    pub overrides: SessionOverrides,
    /// The users.
    pub tokens: TokenBook,
    /// Logs people in at an identity server, if there is one.
    pub sign_on: Option<SignOn>,
    /// The address at which browsers reach the service through a proxy, if there is one.
    pub public_origin: Option<PublicOrigin>,
    /// Encrypts the connections; without it, they are plain.
    pub tls: Option<ServerTls>,
}

/// Leaves the questions of calls without a session to those who answer over the service, until the
/// question expires. They find it in the store.
#[derive(Debug, Clone, Copy)]
pub struct ServiceConsent;

impl Consent for ServiceConsent {
    fn ask_user(&self, _: ApprovalRequest) -> BoxFuture<'_, ApprovalAnswer> {
        Box::pin(std::future::pending())
    }
}

/// What all requests share.
pub(crate) struct Service {
    pub(crate) host: Arc<Host>,
    pub(crate) read_settings: SettingsSource,
    pub(crate) overrides: SessionOverrides,
    pub(crate) tokens: TokenBook,
    /// Logs people in at an identity server, if there is one.
    pub(crate) sign_on: Option<SignOn>,
    /// The browsers that are logged in to the console.
    pub(crate) logins: ConsoleLogins,
    pub(crate) login_attempts: LoginAttempts,
    pub(crate) sessions: OpenSessions,
    pub(crate) limits: ServiceLimits,
    pub(crate) idempotency: IdempotencyDesk,
    /// The sign-ins that have begun at the services of plugins.
    pub(crate) sign_ins: PendingSignIns,
    pub(crate) metrics: ServiceMetrics,
    /// The names at which the service answers.
    pub(crate) names: ServiceNames,
    /// Is cancelled when calls and sessions have to end.
    pub(crate) stop: CancellationToken,
    /// Is cancelled when streams have to end, after the sessions.
    pub(crate) closing: CancellationToken,
    /// A place for each call, so that the end waits for them.
    running_calls: Arc<Semaphore>,
    connections: Arc<ConnectionCounts>,
    /// The tasks of WebSockets, which outlive their connections' requests.
    pub(crate) sockets: TaskTracker,
}

/// How much users may have at the same time.
#[derive(Debug)]
pub(crate) struct ServiceLimits {
    pub(crate) sessions: Arc<UserQuota>,
    pub(crate) streams: Arc<UserQuota>,
    pub(crate) calls: Arc<UserQuota>,
    pub(crate) requests: Arc<UserQuota>,
}

impl ServiceLimits {
    fn new() -> Self {
        let quota = |what, (of_user_max, total_max)| UserQuota::new(what, of_user_max, total_max);
        Self {
            sessions: quota("open sessions", SESSIONS_MAX),
            streams: quota("streams of events", STREAMS_MAX),
            calls: quota("running calls", CALLS_MAX),
            requests: quota("running requests", REQUESTS_MAX),
        }
    }
}

impl Service {
    /// Makes a service that may be reached from this machine only, or from others.
    pub(crate) fn new(
        parts: ServiceParts,
        is_local: bool,
        closing: CancellationToken,
        connections: Arc<ConnectionCounts>,
    ) -> Arc<Self> {
        let ServiceParts { host, read_settings, overrides, tokens, sign_on, public_origin, tls } =
            parts;
        let idempotency = IdempotencyDesk::new(Arc::clone(&host.store().idempotency));
        Arc::new(Self {
            host,
            read_settings,
            overrides,
            tokens,
            sign_on,
            logins: ConsoleLogins::default(),
            login_attempts: LoginAttempts::default(),
            sessions: OpenSessions::default(),
            limits: ServiceLimits::new(),
            idempotency,
            sign_ins: PendingSignIns::default(),
            metrics: ServiceMetrics::default(),
            names: ServiceNames { is_local, has_tls: tls.is_some(), public_origin },
            stop: CancellationToken::new(),
            closing,
            running_calls: Arc::new(Semaphore::new(CALLS_MAX.1)),
            connections,
            sockets: TaskTracker::new(),
        })
    }

    /// The names of all users.
    pub(crate) fn users(&self) -> BTreeSet<String> {
        let mut users = self.tokens.users();
        users.extend(self.sign_on.iter().flat_map(SignOn::users));
        users
    }

    /// Marks that a call runs, until the mark is dropped. `None` if the service stops.
    pub(crate) fn begin_call(&self) -> Option<OwnedSemaphorePermit> {
        let running = Arc::clone(&self.running_calls).try_acquire_owned().ok()?;
        (!self.stop.is_cancelled()).then_some(running)
    }

    pub(crate) fn gauges(&self) -> ServiceGauges {
        let ServiceLimits { sessions, streams, calls, requests } = &self.limits;
        ServiceGauges {
            sessions: sessions.total(),
            streams: streams.total(),
            calls: calls.total(),
            requests: requests.total(),
            sockets: self.connections.open(),
            sockets_refused: self.connections.refused(),
            plugins: self.host.registry().entries().count(),
            tools: self.host.tools().len(),
        }
    }

    /// Ends all calls and sessions, so that each call has its record, and then the streams.
    pub(crate) async fn end_work(&self) {
        self.stop.cancel();
        let calls = self.running_calls.acquire_many(CALLS_MAX.1 as u32);
        // One that is opened now would be missed; from here on none is opened any more.
        let sessions = async {
            let sessions = self.sessions.wait_for_all().await;
            join_all(sessions.iter().map(|session| session.close())).await;
        };
        let work = async {
            // The semaphore is never closed, so the places are always there in the end.
            let _ = tokio::join!(calls, sessions);
        };
        if tokio::time::timeout(WORK_END_TIME_MAX, work).await.is_err() {
            let text = "some calls or sessions did not end in time; their records may be missing";
            self.host.notices()(HostNotice::Warning(text.to_owned()));
        }
        self.closing.cancel();
    }
}
