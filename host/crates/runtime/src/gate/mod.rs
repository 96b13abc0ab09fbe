//! The gate: what stands between a call and its effects, from the policy's files to the audit.
//!
//! - [`standing`]: the policy as it stands at this moment.
//! - [`approver`]: from a decision to a yes or a no, by way of the person.
//! - [`rulebook`]: the only writer of the user's policy.
//! - [`needed`]: what a run would have needed.
//! - `warden`: what running calls of one plugin ask for.
//! - [`audited`]: one record for each decision and each call.
//!
//! The registry asks it before a call, the sandbox while one runs.

pub mod approver;
pub mod audited;
pub mod needed;
pub mod rulebook;
pub mod standing;
pub(crate) mod warden;

use std::sync::Arc;

use sallyport_contract::{CallContext, Consent, Services};
use sallyport_store::Store;

pub use approver::Approver;
pub use audited::Audited;
pub(crate) use audited::now_ms;
pub use standing::{Standing, StandingError};

use crate::{
    config::{Env, PolicyFiles},
    secrets::Vault,
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

/// What all plugins share of the gate.
pub struct Gate {
    /// The policy.
    pub standing: Standing,
    pub(crate) approver: Approver,
    pub(crate) vault: Vault,
    pub(crate) env: Env,
    pub(crate) activity: Activity,
    pub(crate) services: Services,
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
        let approver = Approver::new(consent, store, user_file, tell);
        let vault = Vault::new(env.clone());
        Ok(Arc::new(Self { standing, approver, vault, env, activity, services }))
    }
}
