//! Who the user is and what they may do, by the claims of the identity server.

use sallyport_contract::LOCAL_USER;
use serde_json::Value;

use super::{Claims, SignOnRefusal, SignOnSettings};
use crate::role::ServiceUser;

/// What the name of a user of the identity server begins with. No token's user has a colon, so the
/// two are never the same unless the operator wants it.
const USER_PREFIX: &str = "sso:";

/// Longest name in characters. Names are shown in lists and kept with every record.
const NAME_CHARS_MAX: usize = 128;

/// The claim that counts only if the identity server has verified it, and the one that says so.
const EMAIL_CLAIM: &str = "email";
const EMAIL_VERIFIED_CLAIM: &str = "email_verified";

/// Whether the claims say who the user is, and which groups they have.
pub(super) fn is_complete(claims: &Claims, settings: &SignOnSettings) -> bool {
    let has = |name: &str| {
        let is_verified = name != EMAIL_CLAIM || claims.contains_key(EMAIL_VERIFIED_CLAIM);
        find(claims, name).is_some() && is_verified
    };
    has(&settings.user_claim) && has(&settings.groups_claim)
}

/// The user whom the claims describe.
pub(super) fn find_user(
    claims: &Claims,
    settings: &SignOnSettings,
) -> Result<ServiceUser, SignOnRefusal> {
    let given = find_name(claims, &settings.user_claim)
        .map_err(|problem| SignOnRefusal::NoName { claim: settings.user_claim.clone(), problem })?;
    let name = match settings.shares_users {
        // The user of the terminal is nobody at the identity server.
        true if given == LOCAL_USER => {
            let (claim, problem) = (settings.user_claim.clone(), "is the user of the terminal");
            return Err(SignOnRefusal::NoName { claim, problem });
        }
        true => given.to_owned(),
        false => format!("{USER_PREFIX}{given}"),
    };
    let roles = groups(claims, &settings.groups_claim);
    let roles = roles.into_iter().filter_map(|group| settings.roles.get(group));
    match roles.max() {
        Some(role) => Ok(ServiceUser { name, role: *role }),
        None => Err(SignOnRefusal::NoRole { user: name }),
    }
}

fn find_name<'c>(claims: &'c Claims, claim: &str) -> Result<&'c str, &'static str> {
    let name = find(claims, claim).ok_or("is missing")?.as_str().ok_or("is not a text")?;
    if !is_verified(claims, claim) {
        return Err("is not verified");
    }
    let is_plain =
        |one: char| one.is_ascii_alphanumeric() || matches!(one, '.' | '_' | '@' | '-' | '+' | '|');
    let is_name = name.starts_with(|one: char| one.is_ascii_alphanumeric())
        && name.chars().all(is_plain)
        && name.len() <= NAME_CHARS_MAX;
    is_name.then_some(name).ok_or("has other signs than letters, digits and . _ @ - + |")
}

/// The names of all groups of a user, for the groups of the policy.
pub(super) fn group_names(claims: &Claims, settings: &SignOnSettings) -> Vec<String> {
    groups(claims, &settings.groups_claim).into_iter().map(str::to_owned).collect()
}

/// The groups of a user. One text is one group.
fn groups<'c>(claims: &'c Claims, claim: &str) -> Vec<&'c str> {
    match find(claims, claim) {
        Some(_) if !is_verified(claims, claim) => Vec::new(),
        Some(Value::String(group)) => vec![group],
        Some(Value::Array(groups)) => groups.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

/// A claim by its name, or by a JSON pointer, which begins with a slash.
fn find<'c>(claims: &'c Claims, claim: &str) -> Option<&'c Value> {
    let Some(path) = claim.strip_prefix('/') else { return claims.get(claim) };
    let (first, rest) = path.split_once('/').unwrap_or((path, ""));
    let value = claims.get(&first.replace("~1", "/").replace("~0", "~"))?;
    if rest.is_empty() { Some(value) } else { value.pointer(&format!("/{rest}")) }
}

/// Whether a claim may be believed. Many identity servers let users write any e-mail address.
fn is_verified(claims: &Claims, claim: &str) -> bool {
    let verified = claims.get(EMAIL_VERIFIED_CLAIM);
    // Some servers write it as a text.
    claim.trim_start_matches('/') != EMAIL_CLAIM
        || verified.is_some_and(|verified| verified == true || verified == "true")
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, time::Duration};

    use openidconnect::IssuerUrl;
    use sallyport_contract::UserRole;
    use serde_json::json;

    use super::*;

    fn settings(user: &str, groups: &str, shares_users: bool) -> SignOnSettings {
        let roles = [
            ("staff", UserRole::User),
            ("leads", UserRole::Approver),
            ("admins", UserRole::Operator),
            ("ann@team.example", UserRole::Approver),
        ];
        SignOnSettings {
            issuer: IssuerUrl::new("https://id.example".to_owned()).unwrap(),
            client_id: "sallyport".to_owned(),
            client_secret: None,
            scopes: Vec::new(),
            user_claim: user.to_owned(),
            groups_claim: groups.to_owned(),
            roles: BTreeMap::from(roles.map(|(group, role)| (group.to_owned(), role))),
            shares_users,
            time: Duration::from_secs(1),
        }
    }

    fn check(keys: (&str, &str, bool), claims: Value, want: Result<(&str, UserRole), &str>) {
        let settings = settings(keys.0, keys.1, keys.2);
        let found = find_user(claims.as_object().unwrap(), &settings);
        match (&found, want) {
            (Ok(ServiceUser { name, role }), Ok(want)) => {
                assert_eq!((name.as_str(), *role), want, "{keys:?} {claims}");
            }
            (Err(refusal), Err(want)) => {
                let text = refusal.to_string();
                assert!(text.contains(want), "{keys:?} {claims}: {text}");
            }
            _ => panic!("{keys:?} {claims}: {found:?}"),
        }
    }

    #[test]
    fn the_user_has_the_highest_role_of_their_groups() {
        let own = ("sub", "groups", false);
        let rows = [
            (json!({ "sub": "7", "groups": ["staff"] }), Ok(("sso:7", UserRole::User))),
            (json!({ "sub": "7", "groups": "staff" }), Ok(("sso:7", UserRole::User))),
            (
                json!({ "sub": "7", "groups": ["x", "admins", "staff", 7, null] }),
                Ok(("sso:7", UserRole::Operator)),
            ),
            (
                json!({ "sub": "auth0|ab", "groups": ["leads"] }),
                Ok(("sso:auth0|ab", UserRole::Approver)),
            ),
            (json!({ "sub": "7", "groups": [] }), Err("has no role here")),
            (json!({ "sub": "7", "groups": "staff leads" }), Err("has no role here")),
            (json!({ "sub": "7", "groups": { "staff": true } }), Err("has no role here")),
            (json!({ "sub": "7", "groups": ["Staff"] }), Err("has no role here")),
            (json!({ "sub": "7" }), Err("has no role here")),
            (json!({ "groups": ["staff"] }), Err("is missing")),
            (json!({ "sub": 7, "groups": ["staff"] }), Err("is not a text")),
            (json!({ "sub": "", "groups": ["staff"] }), Err("has other signs")),
            (json!({ "sub": "a b", "groups": ["staff"] }), Err("has other signs")),
            (json!({ "sub": "sso:7", "groups": ["staff"] }), Err("has other signs")),
            (json!({ "sub": "ann\n", "groups": ["staff"] }), Err("has other signs")),
            (json!({ "sub": "\u{430}nn", "groups": ["staff"] }), Err("has other signs")),
            (json!({ "sub": "a".repeat(129), "groups": ["staff"] }), Err("has other signs")),
        ];
        for (claims, want) in rows {
            check(own, claims, want);
        }
    }

    #[test]
    fn an_address_counts_only_if_it_is_verified() {
        let ann = "ann@team.example";
        let rows = [
            (
                ("email", "groups"),
                json!({ "email": ann, "email_verified": true, "groups": "staff" }),
                Ok(("sso:ann@team.example", UserRole::User)),
            ),
            (
                ("email", "groups"),
                json!({ "email": ann, "email_verified": "true", "groups": "staff" }),
                Ok(("sso:ann@team.example", UserRole::User)),
            ),
            (
                ("email", "groups"),
                json!({ "email": ann, "email_verified": false, "groups": "staff" }),
                Err("is not verified"),
            ),
            (
                ("email", "groups"),
                json!({ "email": ann, "groups": "staff" }),
                Err("is not verified"),
            ),
            (
                ("/email", "groups"),
                json!({ "email": ann, "groups": "staff" }),
                Err("is not verified"),
            ),
            (
                ("sub", "email"),
                json!({ "sub": "7", "email": ann, "email_verified": true }),
                Ok(("sso:7", UserRole::Approver)),
            ),
            (("sub", "email"), json!({ "sub": "7", "email": ann }), Err("has no role here")),
        ];
        for ((user, groups), claims, want) in rows {
            check((user, groups, false), claims, want);
        }
    }

    #[test]
    fn claims_may_be_deep_and_names_shared() {
        let roles = json!({ "sub": "ann", "realm_access": { "roles": ["leads"] }, "a/b": "staff" });
        check(
            ("sub", "/realm_access/roles", false),
            roles.clone(),
            Ok(("sso:ann", UserRole::Approver)),
        );
        check(("sub", "/a~1b", true), roles.clone(), Ok(("ann", UserRole::User)));
        check(("sub", "a/b", true), roles.clone(), Ok(("ann", UserRole::User)));
        check(("sub", "/realm_access", true), roles, Err("has no role here"));
        let local = json!({ "sub": "local", "groups": "admins" });
        check(("sub", "groups", true), local.clone(), Err("is the user of the terminal"));
        check(("sub", "groups", false), local, Ok(("sso:local", UserRole::Operator)));
    }
}
