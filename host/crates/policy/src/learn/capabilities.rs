//! Capabilities of the host: the entries that grant the refused ones.

use sallyport_contract::Denial;

use crate::{Capability, Grant, addition::GrantAddition, request::requests_for};

/// The additions that grant a capability, unless the plugin holds it.
pub(crate) fn capability_additions(
    of: Capability,
    grant: &Grant,
) -> Result<Vec<GrantAddition>, Denial> {
    let requests = requests_for(&grant.manifest_requests().capabilities, of);
    let action = requests.first().map_or_else(|| format!("use \"{of}\""), ToString::to_string);
    let denial = grant.deny_capability(of, &action);
    if denial.fix.is_none() {
        return if grant.has_capability(of) { Ok(Vec::new()) } else { Err(denial) };
    }
    let kind = of.kind();
    let held = grant.effective_capabilities().find_held(of);
    let refusal = held.and_then(|held| kind.refusal_when_held(held, &requests));
    if let Some((_, Some(flag))) = refusal {
        return Ok(vec![GrantAddition::capability_setting(of, flag, "true")]);
    }
    let table = grant.table();
    let missing = kind.missing_entries(&table.capabilities, &table.fs, &requests);
    let additions = of.additions_for(&missing);
    Ok(additions.into_iter().map(GrantAddition::Capability).collect())
}
