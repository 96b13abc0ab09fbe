//! The gate: everything that decides between a call and its effects.
//!
//! - [`policy_store`]: the policy that is currently in force.
//! - [`approver`]: turns a decision into a yes or a no, and asks the user where needed.
//! - `approval_desk`: takes a question to everyone who may answer it, [`sealed_question`] as it was
//!   asked, and `approval_hook` to the operator's program.
//! - [`user_policy`]: the only writer of the user's policy.
//! - [`missing_grants`]: the grants that a run was missing.
//! - `authorizer`: decides what the running calls of one plugin may do.
//! - `grant_questions`: asks for a grant that a running call lacks; `grant_desk` keeps those of a
//!   session, and `user_grants` has the policy that results.
//! - `call_limits`: the limits that count the calls of all plugins together.
//! - [`question_answer`]: enters the answer of another program.
//! - `server_questions`: takes a question of an MCP server to the user, and `form_values` checks the
//!   values of the answer.
//! - [`user_account`]: the groups and budgets of a call's user.
//! - `account`: signs the requests of a plugin in to the account of the call's user.
//!
//! The registry consults the gate before a call, and the sandbox does while a call runs.

mod account;
mod approval_desk;
pub mod approval_hook;
pub mod approver;
pub(crate) mod authorizer;
mod call_limits;
pub mod form_values;
pub(crate) mod grant_desk;
pub(crate) mod grant_questions;
pub mod missing_grants;
pub mod policy_store;
mod preview;
pub mod question_answer;
pub mod sealed_question;
pub(crate) mod server_questions;
mod sign_in;
pub mod user_account;
mod user_grants;
pub mod user_policy;

use std::sync::Arc;

use sallyport_contract::{Consent, Redactor, Secret, Services, ToolCallContext};
use sallyport_policy::SecretSource;
use sallyport_store::{AuditLog, HostStore, UserStore, audit::HostUser};

pub use approval_hook::ApprovalHook;
pub use approver::Approver;
pub use grant_desk::GrantDesk;
pub use policy_store::{PolicyLoadError, PolicySnapshot, PolicyStore};

use self::{approval_desk::ApprovalDesk, call_limits::SharedCallLimits};
use crate::{
    config::PolicyFiles,
    connections::ConnectionDesk,
    environment::Env,
    secrets::{Vault, VaultError},
};

/// Reports an event besides the answer to the user, one sentence per call.
pub type MessageSink = Arc<dyn Fn(&str) + Send + Sync>;

/// Reports the host that a running call connects to, by name.
pub type Activity = Arc<dyn Fn(&ToolCallContext, &str) + Send + Sync>;

/// The parts of a gate.
pub struct GateParts {
    /// The policy files.
    pub files: PolicyFiles,
    /// The process's environment, for variables and secrets from it.
    pub env: Env,
    /// Asks the user.
    pub consent: Arc<dyn Consent>,
    /// The store of approvals. Without one, they are kept until the program ends.
    pub store: Option<HostStore>,
    /// Receives policy changes, and failures to store something.
    pub message_sink: MessageSink,
    /// Receives the hosts that running calls connect to.
    pub activity: Activity,
    /// The services that plugins use; empty where no plugin is called.
    pub services: Services,
    /// The audit, which has a change of the policy before it is made; missing where no plugin is
    /// called.
    pub audit: Option<Arc<AuditLog>>,
    /// The grants that users give to plugins in a session.
    pub grant_desk: Arc<GrantDesk>,
    /// Receives each question, if the operator has configured one.
    pub approval_hook: Option<ApprovalHook>,
    /// The accounts of users; missing where no plugin is called.
    pub connections: Option<Arc<ConnectionDesk>>,
}

/// Where changes of the policy are recorded, and on whose behalf.
pub(crate) struct GateAudit {
    pub(crate) log: Arc<AuditLog>,
    pub(crate) user: HostUser,
}

/// Why a secret has no value.
#[derive(Debug, thiserror::Error)]
pub enum SecretLookupError {
    /// The policy does not name the secret.
    #[error("no policy says where its value is")]
    NotInPolicy,
    /// The value cannot be fetched.
    #[error(transparent)]
    Vault(#[from] VaultError),
}

/// The parts of the gate that all plugins share.
pub struct Gate {
    /// The policy.
    pub policy_store: PolicyStore,
    pub(crate) approver: Approver,
    vault: Vault,
    message_sink: MessageSink,
    pub(crate) env: Env,
    pub(crate) activity: Activity,
    pub(crate) services: Services,
    pub(crate) call_limits: SharedCallLimits,
    pub(crate) audit: Option<GateAudit>,
    pub(crate) grant_desk: Arc<GrantDesk>,
    pub(crate) connections: Option<Arc<ConnectionDesk>>,
    /// The groups and the usage of users; missing where no plugin is called.
    users: Option<Arc<dyn UserStore>>,
}

impl Gate {
    /// Reads the policy and opens the gate.
    ///
    /// # Errors
    ///
    /// A policy file cannot be read, or contains a mistake.
    pub fn open(parts: GateParts) -> Result<Arc<Self>, PolicyLoadError> {
        let GateParts { files, env, consent, store, message_sink, activity, services, .. } = parts;
        let user = HostUser::from_process(env.get("USER").unwrap_or_default());
        let audit = parts.audit.map(|log| GateAudit { log, user });
        let policy_files = files.clone();
        let change_sink = Arc::clone(&message_sink);
        let policy_store =
            PolicyStore::open(files, Box::new(move |change| change_sink(&change.to_string())))?;
        let users = store.as_ref().map(|store| Arc::clone(&store.users));
        let sink = Arc::clone(&message_sink);
        let desk = ApprovalDesk::new(consent, store.as_ref(), parts.approval_hook, sink);
        let approver = Approver::new(desk, store, policy_files, Arc::clone(&message_sink));
        let vault = Vault::new(env.clone());
        let call_limits = SharedCallLimits::new();
        Ok(Arc::new(Self {
            policy_store,
            approver,
            vault,
            message_sink,
            env,
            activity,
            services,
            call_limits,
            audit,
            grant_desk: parts.grant_desk,
            connections: parts.connections,
            users,
        }))
    }

    /// Returns the redactor that removes secrets from everything that leaves. It knows the value of
    /// every secret that the current policy names, as far as the values can be fetched; the others
    /// are reported to the operator. This is the only source of a redactor, so no text passes one
    /// that knows less.
    pub fn redactor(&self) -> Arc<Redactor> {
        self.refresh_secrets();
        self.vault.redactor()
    }

    /// Returns the value of a secret that the policy names. The redactor knows the value by then.
    ///
    /// # Errors
    ///
    /// The policy does not name the secret, or its value cannot be fetched.
    pub fn secret_value(&self, name: &str) -> Result<Secret, SecretLookupError> {
        self.refresh_secrets();
        let policy = self.policy_store.current().policy;
        let known = name.parse().ok();
        let source = known.as_ref().and_then(|name| policy.secret_source(name));
        Ok(self.vault.get(name, source.ok_or(SecretLookupError::NotInPolicy)?)?)
    }

    /// Returns the value of a secret from a source that only a grant of the user names.
    pub(crate) fn secret_value_from(
        &self,
        name: &str,
        source: &SecretSource,
    ) -> Result<Secret, SecretLookupError> {
        Ok(self.vault.get(name, source)?)
    }

    /// Adds the keys that the program itself sends to servers to the redactor.
    pub fn add_redacted_keys(&self, keys: impl IntoIterator<Item = (String, Secret)>) {
        self.vault.add_redacted_keys(keys);
    }

    /// Adds the current token of an account to the redactor, in place of the one before it.
    pub(crate) fn set_account_token(&self, account: String, name: String, token: Secret) {
        self.vault.set_account_token(account, name, token);
    }

    fn refresh_secrets(&self) {
        let PolicySnapshot { revision, policy } = self.policy_store.current();
        let named = || policy.secret_sources().map(|(name, source)| (name.as_str(), source));
        let remarks = self.vault.fetch_named_secrets(revision, || named().collect());
        remarks.iter().for_each(|remark| (self.message_sink)(&remark.to_string()));
    }
}
