//! The refusal of a secret that a plugin tried to read.

use sallyport_contract::Denial;

use super::{SecretGrant, SecretName, SecretUse};
use crate::{
    fix::{PluginTableText, PolicyContext},
    net::grant::refusal_sentence,
    request::SecretRequest,
    source::quoted,
};

/// Returns the refusal, with the policy text that reveals the secret if the manifest requests that.
pub(crate) fn secret_denial(
    policy_context: &PolicyContext,
    requests: &[SecretRequest],
    name: &str,
) -> Denial {
    let table = policy_context.effective_table();
    let what = refusal_sentence(&table.plugin, &format!("read the secret {}", quoted(name)));
    let named = requests.iter().filter(|request| request.name.as_str() == name);
    let is_sent = |grant: &SecretGrant| grant.name.as_str() == name;
    let (why, fix) = match named.max_by_key(|request| request.reveal) {
        None => ("its manifest does not request it", None),
        Some(request) if !request.reveal => {
            ("its manifest requests it for use in requests only", None)
        }
        Some(request) => match table.secrets.iter().any(is_sent) {
            true => (
                "its policy has it sent with requests only",
                reveal_fix_text(policy_context, request),
            ),
            false => ("its policy does not grant it", reveal_fix_text(policy_context, request)),
        },
    };
    Denial { what, why: why.to_owned(), fix, nobody_to_ask: false }
}

fn reveal_fix_text(policy_context: &PolicyContext, request: &SecretRequest) -> Option<String> {
    let name = &request.name;
    let reveals = |grant: &SecretGrant| grant.name == *name && grant.usage == SecretUse::Reveal;
    if policy_context.effective_table().secrets.iter().any(reveals) {
        return None;
    }
    let mut table = PluginTableText::new(policy_context);
    table.secrets.push(format!("{{ name = \"{name}\", reveal = true }}"));
    let text = table.text_with_rule();
    match policy_context.secrets.contains(name) {
        true => Some(text),
        false => Some(format!("{text}\n{}", secret_source_toml(name))),
    }
}

/// Returns the proposed table for a secret without a source: the system's keyring.
pub(crate) fn secret_source_toml(name: &SecretName) -> String {
    format!("[secret.{name}]\nkeyring = \"sallyport/{name}\"\n")
}
