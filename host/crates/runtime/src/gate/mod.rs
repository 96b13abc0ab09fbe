//! The gate: what stands between a call and its effects, from the policy's files to the audit.
//!
//! - [`standing`]: the policy as it stands at this moment.
//! - [`approver`]: from a decision to a yes or a no, by way of the person.
//! - [`rulebook`]: the only writer of the user's policy.
//! - [`needed`]: what a run would have needed.
//! - `warden`: what running calls of one plugin ask for.
//! - [`audited`]: one record for each decision and each call.
//! - `call_limits`: what counts the calls of all plugins together.
//!
//! The registry asks it before a call, the sandbox while one runs.

pub mod approver;
pub mod audited;
mod call_limits;
pub mod needed;
mod preview;
pub mod rulebook;
pub mod standing;
pub(crate) mod warden;

use std::sync::Arc;

use sallyport_contract::{CallContext, Consent, Redactor, Secret, Services};
use sallyport_store::Store;

pub use approver::Approver;
pub use audited::Audited;
pub use audited::now_ms;
pub use standing::{Edition, Standing, StandingError};

use self::call_limits::SharedCallLimits;
use crate::{
    config::{Env, PolicyFiles},
    secrets::{Vault, VaultError},
};

/// Tells the person something that happened beside the answer, a sentence at a time.
pub type Tell = Arc<dyn Fn(&str) + Send + Sync>;

/// Tells whom a running call turns to, by the name of the host.
pub type Activity = Arc<dyn Fn(&CallContext, &str) + Send + Sync>;

/// What a gate is made of.
pub struct GateParts {
    /// The policy's files.
    pub files: PolicyFiles,
    /// The process's environment, for variables and secrets that come from it.
    pub env: Env,
    /// Who is asked.
    pub consent: Arc<dyn Consent>,
    /// Where approvals are kept; without one they are kept until the program ends.
    pub store: Option<Store>,
    /// Who is told of a changed policy and of what could not be kept.
    pub tell: Tell,
    /// Who is told whom running calls turn to.
    pub activity: Activity,
    /// What plugins keep, plan and say; nothing where none is called.
    pub services: Services,
}

/// Why there is no value of a secret.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    /// The policy has no such secret.
    #[error("no policy says where its value is")]
    Unnamed,
    /// Its value cannot be had.
    #[error(transparent)]
    Vault(#[from] VaultError),
}

/// What all plugins share of the gate.
pub struct Gate {
    /// The policy.
    pub standing: Standing,
    pub(crate) approver: Approver,
    vault: Vault,
    tell: Tell,
    pub(crate) env: Env,
    pub(crate) activity: Activity,
    pub(crate) services: Services,
    pub(crate) call_limits: SharedCallLimits,
}

impl Gate {
    /// Reads the policy and takes its stand.
    ///
    /// # Errors
    ///
    /// There is no policy to begin with: a file cannot be read, or has a mistake.
    pub fn open(parts: GateParts) -> Result<Arc<Self>, StandingError> {
        let GateParts { files, env, consent, store, tell, activity, services } = parts;
        let user_file = files.user_file().to_owned();
        let told = Arc::clone(&tell);
        let standing = Standing::read(files, Box::new(move |change| told(&change.to_string())))?;
        let approver = Approver::new(consent, store, user_file, Arc::clone(&tell));
        let vault = Vault::new(env.clone());
        let call_limits = SharedCallLimits::new();
        Ok(Arc::new(Self { standing, approver, vault, tell, env, activity, services, call_limits }))
    }

    /// What takes secrets out of whatever leaves. It knows the value of every secret that the policy
    /// of this moment names, as far as it can be had; the operator is told which cannot. Nobody else
    /// hands out a redactor, so nothing passes one that knows less.
    pub fn redactor(&self) -> Arc<Redactor> {
        self.learn();
        self.vault.redactor()
    }

    /// Returns the value of a secret that the policy names. By then the redactor knows it.
    ///
    /// # Errors
    ///
    /// The policy does not name it, or its value cannot be had.
    pub fn secret(&self, name: &str) -> Result<Secret, SecretError> {
        self.learn();
        let policy = self.standing.present().policy;
        let known = name.parse().ok();
        let source = known.as_ref().and_then(|name| policy.secret_source(name));
        Ok(self.vault.get(name, source.ok_or(SecretError::Unnamed)?)?)
    }

    /// Takes keys out of whatever leaves that the program itself sends to servers.
    pub fn know(&self, keys: impl IntoIterator<Item = (String, Secret)>) {
        self.vault.know(keys);
    }

    fn learn(&self) {
        let Edition { number, policy } = self.standing.present();
        let named = || policy.secret_sources().map(|(name, source)| (name.as_str(), source));
        let remarks = self.vault.learn(number, || named().collect());
        remarks.iter().for_each(|remark| (self.tell)(&remark.to_string()));
    }
}
