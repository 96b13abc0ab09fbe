//! The refusal of a secret that a plugin tried to read.

use sallyport_contract::{
    Denial, DenialReason, DenialSubject, GrantedScope, PolicyFix, RequestedScope,
};

use crate::{
    addition::{GrantAddition, SecretAddition, SecretUseText},
    fix::PluginTableText,
    policy_context::PolicyContext,
    request::SecretRequest,
    secret::{SecretGrant, SecretUse, secret_source_toml},
};

/// Returns the refusal, with the fix that reveals the secret if the manifest requests that.
pub(super) fn secret_denial(
    policy_context: &PolicyContext,
    requests: &[SecretRequest],
    name: &str,
) -> Denial {
    let table = policy_context.effective_table();
    let named = requests.iter().filter(|request| request.name.as_str() == name);
    let is_sent = |grant: &SecretGrant| grant.name.as_str() == name;
    let (reason, fix) = match named.max_by_key(|request| request.reveal) {
        None => (DenialReason::NotRequested { capability: None }, None),
        Some(request) if !request.reveal => {
            (DenialReason::RequestedLess(RequestedScope::SendingSecret), None)
        }
        Some(request) => {
            let reason = match table.secrets.iter().any(is_sent) {
                true => DenialReason::GrantedLess(GrantedScope::SendingSecret),
                false => DenialReason::NotGranted { capability: None },
            };
            (reason, reveal_fix(policy_context, request))
        }
    };
    let subject = DenialSubject::Secret { plugin: table.plugin.clone(), name: name.to_owned() };
    Denial::new(subject, reason).with_fix(fix)
}

fn reveal_fix(policy_context: &PolicyContext, request: &SecretRequest) -> Option<PolicyFix> {
    let name = &request.name;
    let reveals = |grant: &SecretGrant| grant.name == *name && grant.usage == SecretUse::Reveal;
    if policy_context.effective_table().secrets.iter().any(reveals) {
        return None;
    }
    let mut table = PluginTableText::new(policy_context);
    let (text, usage) = (name.to_string(), SecretUseText::Reveal);
    let addition = GrantAddition::Secret(SecretAddition { name: text, usage });
    table.secrets.push(addition.entry_toml());
    table.additions.push(addition);
    let mut fix = table.into_fix(true);
    if !policy_context.secrets.contains(name) {
        fix.toml.push_str(&format!("\n{}", secret_source_toml(name)));
    }
    Some(fix)
}
