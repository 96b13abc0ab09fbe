//! The policy with what the user granted to one call or to its session.
//!
//! It is the policy that results when the grants are written into the user's file, so it is subject
//! to the same checks: conflicts, guarded folders, and what the other files deny. What the user's own
//! file takes away with `false` is left out, because the user may have written it after the grant.

use std::sync::{Arc, Mutex, PoisonError};

use sallyport_policy::{
    Grant, Manifest, Policy, SecretName, SecretSource,
    edit::{self, GrantAddition, SecretAddition},
};
use serde_json::{Map, Value};

use super::{Gate, PolicyLoadError, PolicySnapshot, user_policy};

/// Most grants of calls and sessions that are kept ready for one plugin.
const CACHED_MAX: usize = 16;

/// Why a policy with additions cannot be had.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UserGrantError {
    /// The user's file cannot be read.
    #[error(transparent)]
    File(#[from] std::io::Error),
    /// The additions cannot be written into it.
    #[error(transparent)]
    Text(#[from] edit::EditError),
    /// The result is not valid.
    #[error(transparent)]
    Policy(#[from] PolicyLoadError),
}

/// A policy with additions, and the grant of one plugin under it.
#[derive(Debug, Clone)]
pub(crate) struct ExtendedGrant {
    revision: u64,
    additions: Vec<GrantAddition>,
    pub(crate) policy: Arc<Policy>,
    pub(crate) grant: Arc<Grant>,
}

/// The text of the user's file before and after additions.
pub(crate) struct ProposedText {
    pub(crate) before: String,
    pub(crate) after: String,
}

/// The extended grants of one plugin that were needed lately.
#[derive(Debug, Default)]
pub(crate) struct ExtendedGrants(Mutex<Vec<ExtendedGrant>>);

impl ExtendedGrants {
    /// The grant under the policy of this moment with additions. The file is read when the policy
    /// or the additions have changed, and not for each host call.
    ///
    /// # Errors
    ///
    /// The additions are not valid in the policy of this moment.
    pub(crate) fn get(
        &self,
        gate: &Gate,
        (manifest, settings): (&Manifest, &Map<String, Value>),
        additions: &[GrantAddition],
    ) -> Result<ExtendedGrant, UserGrantError> {
        let snapshot = gate.policy_store.current();
        let is_same = |known: &&ExtendedGrant| {
            known.revision == snapshot.revision && known.additions == additions
        };
        let known = self.lock().iter().find(is_same).cloned();
        if let Some(known) = known {
            return Ok(known);
        }
        let policy = Arc::new(policy_with_additions(gate, &snapshot, manifest, additions)?);
        let grant = Arc::new(policy.effective_grant(manifest, settings));
        let (revision, additions) = (snapshot.revision, additions.to_vec());
        let extended = ExtendedGrant { revision, additions, policy, grant };
        let mut known = self.lock();
        known.retain(|one| one.revision == revision);
        if known.len() >= CACHED_MAX {
            known.remove(0);
        }
        known.push(extended.clone());
        Ok(extended)
    }

    /// The source of a secret that only additions name.
    pub(crate) fn secret_source(&self, name: &SecretName) -> Option<SecretSource> {
        self.lock().iter().find_map(|known| known.policy.secret_source(name).cloned())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<ExtendedGrant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the user's file with additions. A granted secret that no policy names gets a source.
///
/// # Errors
///
/// The file cannot be read, or the additions cannot be written into it.
pub(crate) fn propose_text(
    gate: &Gate,
    policy: &Policy,
    manifest: &Manifest,
    additions: &[GrantAddition],
) -> Result<ProposedText, UserGrantError> {
    let before = user_policy::read_policy(gate.policy_store.files().user_file())?;
    let granted = edit::add_grants(&before, &manifest.name, additions)?;
    let after = add_secret_sources(granted, policy, additions)?;
    Ok(ProposedText { before, after })
}

/// Adds a source for each granted secret that no policy names.
fn add_secret_sources(
    text: String,
    policy: &Policy,
    additions: &[GrantAddition],
) -> Result<String, edit::EditError> {
    let mut unsourced =
        granted_secrets(additions).filter(|name| policy.secret_source(name).is_none());
    unsourced.try_fold(text, |text, name| edit::add_secret_source(&text, &name))
}

/// The names of the secrets that additions grant.
pub(crate) fn granted_secrets(
    additions: &[GrantAddition],
) -> impl Iterator<Item = SecretName> + '_ {
    additions.iter().filter_map(|addition| match addition {
        GrantAddition::Secret(SecretAddition { name, .. }) => name.parse().ok(),
        _ => None,
    })
}

fn policy_with_additions(
    gate: &Gate,
    snapshot: &PolicySnapshot,
    manifest: &Manifest,
    additions: &[GrantAddition],
) -> Result<Policy, UserGrantError> {
    let text = user_policy::read_policy(gate.policy_store.files().user_file())?;
    let granted = edit::add_grants_unless_denied(&text, &manifest.name, additions)?;
    let proposed = add_secret_sources(granted, &snapshot.policy, additions)?;
    Ok(gate.policy_store.parse_proposed_text(&proposed)?)
}
