//! The flags of `sallyport policy grant` as additions to the policy.

use sallyport_contract::{Decision, text};
use sallyport_policy::{
    FsAccess,
    edit::{FsAddition, GrantAddition, NetAddition, NetReachText, SecretAddition, SecretUseText},
};

use super::args::{GrantArgs, OWN_RANGE};
use crate::cli::exit::{CommandFailure, ExitStatus};

/// Returns the additions that the flags name, without those for `--allow` and `--requested`.
///
/// # Errors
///
/// A value is not `KEY=VALUE`, or a flag could belong to several others.
pub(super) fn additions_from_args(args: &GrantArgs) -> Result<Vec<GrantAddition>, CommandFailure> {
    check_belonging_flags(args)?;
    let mut additions = net_additions(args);
    additions.extend(folder_additions(args));
    additions.extend(args.env.iter().cloned().map(GrantAddition::Env));
    additions.extend(secret_additions(args));
    additions.extend(capability_additions(args)?);
    additions.extend(item_additions(args));
    additions.extend(args.grant.iter().cloned());
    for limit in &args.limit {
        let (key, value) = parse_pair(limit, "limit")?;
        additions.push(GrantAddition::Limit { key, value });
    }
    Ok(additions)
}

/// Refuses a flag that belongs to one entry when the command names several.
fn check_belonging_flags(args: &GrantArgs) -> Result<(), CommandFailure> {
    let mounted = args.read.len() + args.write.len() + args.scratch.len();
    let rows = [
        ("--mount", args.mount.is_some(), mounted, "folder"),
        ("--quota", args.quota.is_some(), mounted, "folder"),
        ("--to", args.to.is_some(), args.secret.len(), "secret"),
        ("--set", args.set.is_some(), args.capability.len(), "capability"),
    ];
    match rows.iter().find(|(_, is_given, count, _)| *is_given && *count > 1) {
        None => check_private_ranges(args),
        Some((flag, _, count, noun)) => {
            let message = format!("{flag} belongs to one {noun}, and {count} are named");
            let failure = CommandFailure::new(ExitStatus::Usage, message);
            Err(failure.with_hint(format!("use one command for each {noun}")))
        }
    }
}

/// Refuses `--to-private` with and without a range: one entry has either the addresses of its host
/// or ranges.
fn check_private_ranges(args: &GrantArgs) -> Result<(), CommandFailure> {
    let is_own = |range: &String| range == OWN_RANGE;
    if args.to_private.iter().all(is_own) || !args.to_private.iter().any(is_own) {
        return Ok(());
    }
    let message = "--to-private is given with a range and without one";
    let hint = "name every range, or use one command for each entry";
    Err(CommandFailure::new(ExitStatus::Usage, message).with_hint(hint))
}

fn net_additions(args: &GrantArgs) -> Vec<GrantAddition> {
    let reach = match args.to_private.as_slice() {
        [] => NetReachText::Public,
        [own, ..] if own == OWN_RANGE => NetReachText::HostAddresses,
        ranges => NetReachText::Ranges(ranges.to_vec()),
    };
    let decision = args.ask.then_some(Decision::Ask);
    let addition = |pattern: &String| {
        let (pattern, reach) = (pattern.clone(), reach.clone());
        GrantAddition::Net(NetAddition { pattern, decision, reach })
    };
    args.net.iter().map(addition).collect()
}

fn folder_additions(args: &GrantArgs) -> impl Iterator<Item = GrantAddition> {
    let read = args.read.iter().map(|path| (path, FsAccess::Read));
    let write = args.write.iter().map(|path| (path, FsAccess::ReadWrite));
    read.chain(write).map(|(path, access)| {
        GrantAddition::Fs(FsAddition {
            path: path.clone(),
            mount: args.mount.clone(),
            access,
            deny: args.deny.clone(),
            quota: args.quota.clone(),
            sensitive: args.sensitive,
        })
    })
}

fn secret_additions(args: &GrantArgs) -> impl Iterator<Item = GrantAddition> {
    let usage = match (&args.to, &args.header) {
        (Some(to), Some(header)) => SecretUseText::Inject {
            to: to.clone(),
            header: header.clone(),
            format: args.format.clone(),
        },
        // Clap ensures that exactly one of the two ways is given.
        _ => SecretUseText::Reveal,
    };
    let addition = move |name: &String| {
        let (name, usage) = (name.clone(), usage.clone());
        GrantAddition::Secret(SecretAddition { name, usage })
    };
    args.secret.iter().map(addition)
}

fn capability_additions(args: &GrantArgs) -> Result<Vec<GrantAddition>, CommandFailure> {
    let setting = args.set.as_ref().map(|set| parse_pair(set, "setting")).transpose()?;
    let addition = |capability| match &setting {
        Some((key, value)) => {
            GrantAddition::capability_setting(capability, key.clone(), value.clone())
        }
        None => GrantAddition::capability(capability),
    };
    Ok(args.capability.iter().copied().map(addition).collect())
}

fn item_additions(args: &GrantArgs) -> impl Iterator<Item = GrantAddition> {
    args.capability_items().map(|(capability, item)| {
        let is_scratch = capability.as_str() == "scratch";
        let mut pairs = vec![(if is_scratch { "name" } else { "at" }, item)];
        if is_scratch {
            pairs.extend(args.mount.as_deref().map(|mount| ("mount", mount)));
            pairs.extend(args.quota.as_deref().map(|quota| ("quota", quota)));
        }
        let is_public = args.public && capability.as_str() == "listen";
        pairs.extend(is_public.then_some(("public", "true")));
        match is_scratch || is_public {
            true => GrantAddition::capability_table(capability, &pairs),
            false => GrantAddition::capability_item(capability, item),
        }
    })
}

/// Parses `KEY=VALUE`.
///
/// # Errors
///
/// The text is something else.
fn parse_pair(text: &str, what: &str) -> Result<(String, String), CommandFailure> {
    let parts = text.split_once('=').filter(|(key, value)| !key.is_empty() && !value.is_empty());
    let (key, value) = parts.ok_or_else(|| {
        let message = format!("{:?} is not a {what}", text::escape_excerpt(text, 80));
        CommandFailure::new(ExitStatus::Usage, message)
            .with_hint("write KEY=VALUE, such as time=10s")
    })?;
    Ok((key.trim().to_owned(), value.trim().to_owned()))
}
