//! `sallyport policy grant`: adds one grant for a plugin.

use sallyport_contract::{Decision, PluginName, text};
use sallyport_policy::{
    FsAccess, HintedError, Policy, PolicyRemarkKind, RuleText,
    edit::{
        self, CapabilityAddition, EditError, FsAddition, GrantAddition, ListenAddition,
        NetAddition, NetReachText, ScratchAddition, SecretAddition, SecretUseText,
    },
};
use sallyport_runtime::{config::HostSettings, registry::PluginSelection};

use super::{
    Whose,
    args::{GrantArgs, OWN_RANGE},
    change::{Wish, change},
    check::installed,
};
use crate::cli::{
    compose,
    exit::{Exit, Failure},
    output::Output,
};

pub(super) async fn grant(
    settings: &HostSettings,
    args: &GrantArgs,
    out: &Output,
) -> Result<Exit, Failure> {
    let whose = Whose::parse(&args.plugin)?;
    let wish = |what: String| Wish {
        plugin: whose.as_str(),
        what: format!("grants {what}"),
        yes: args.yes,
    };
    match (&args.allow, &whose, &args.limit) {
        (Some(tool), _, _) => {
            let rule = RuleText::new_allow(whose.tools(tool));
            let rule = checked_rule(settings, &whose, rule, args, out).await?;
            let wish = wish(format!("calls of {}", rule.tool));
            change(settings, &wish, |text| edit::add_rule(text, &rule), out)?;
        }
        (None, Whose::One(plugin), _) => {
            let addition = checked(settings, plugin, addition(args)?, args.force, out).await?;
            let wish = wish(in_words(&addition));
            change(settings, &wish, |text| edit::add_grant(text, plugin, &addition), out)?;
        }
        (None, Whose::Several(_), Some(limit)) if whose.is_everybody() => {
            let (key, value) = pair(limit, "limit")?;
            let wish = wish(format!("the limit {key} = {value} to all plugins"));
            change(settings, &wish, |text| edit::set_shared_limit(text, &key, &value), out)?;
        }
        (None, Whose::Several(_), _) => {
            let message =
                "only calls, and limits for all plugins, can be granted to several plugins";
            let failure = Failure::new(Exit::Usage, message);
            return Err(failure.with_hint("name one plugin, or pass --allow TOOL"));
        }
    }
    Ok(Exit::Done)
}

/// Refuses a rule that matches nothing installed, and binds it to the component's digest if
/// requested.
async fn checked_rule(
    settings: &HostSettings,
    whose: &Whose,
    rule: RuleText,
    args: &GrantArgs,
    out: &Output,
) -> Result<RuleText, Failure> {
    let selection = match whose {
        Whose::One(plugin) => PluginSelection::Only(plugin.clone()),
        Whose::Several(_) if args.digest => {
            let failure = Failure::new(Exit::Usage, "--digest needs one plugin");
            return Err(failure.with_hint("name one plugin, or leave out --digest"));
        }
        Whose::Several(_) => PluginSelection::All,
    };
    if args.force && !args.digest {
        return Ok(rule);
    }
    let registry = compose::registry_of(settings, selection, out).await?;
    let digest = match whose {
        Whose::One(plugin) => {
            let entry = registry.find_plugin(plugin.as_str()).map_err(Failure::from)?;
            args.digest.then(|| entry.digest().to_owned())
        }
        Whose::Several(_) => None,
    };
    let rule = RuleText { digest, ..rule };
    // Check the rule in a policy of its own, so that all remarks are about it.
    let alone = Policy::from_user_file("policy", &rule.to_string(), None).map_err(|error| {
        Failure { hint: error.hint, ..Failure::new(Exit::Usage, error.message) }
    })?;
    let (useless, wide): (Vec<_>, Vec<_>) = alone
        .find_remarks(&installed(&registry))
        .into_iter()
        .partition(|remark| remark.kind == PolicyRemarkKind::Useless);
    registry.shutdown().await;
    wide.iter().for_each(|remark| out.warn(&format!("the rule {}", remark.message)));
    match useless.first().filter(|_| !args.force) {
        Some(remark) => Err(pointless(remark.message.clone(), None)),
        None => Ok(rule),
    }
}

/// Refuses an addition that could not have the intended effect.
async fn checked(
    settings: &HostSettings,
    plugin: &PluginName,
    addition: GrantAddition,
    is_forced: bool,
    out: &Output,
) -> Result<GrantAddition, Failure> {
    if is_forced {
        return Ok(addition);
    }
    let registry =
        compose::registry_of(settings, PluginSelection::Only(plugin.clone()), out).await?;
    let entry = registry.find_plugin(plugin.as_str()).map_err(Failure::from)?;
    let own = settings.plugin_settings.get(plugin).cloned().unwrap_or_default();
    let home = settings.policy.home.as_deref();
    let examined = addition.check_against_manifest(entry.manifest(), &own, home);
    registry.shutdown().await;
    let (addition, objections) = examined.map_err(|error| unfit(&error))?;
    match objections.first() {
        Some(first) => {
            let all: Vec<String> = objections.iter().map(ToString::to_string).collect();
            Err(pointless(format!("{plugin}: {}", all.join("; ")), first.suggested_fix()))
        }
        None => Ok(addition),
    }
}

fn unfit(error: &EditError) -> Failure {
    Failure { hint: error.hint(), ..Failure::new(Exit::Usage, error.to_string()) }
}

/// The failure for an entry that would have no effect.
fn pointless(message: String, remedy: Option<String>) -> Failure {
    let otherwise = "pass --force to write it anyway";
    let hint = remedy.map_or(otherwise.to_owned(), |remedy| format!("{remedy}; {otherwise}"));
    Failure::new(Exit::Usage, message).with_hint(hint)
}

fn addition(args: &GrantArgs) -> Result<GrantAddition, Failure> {
    let found = net(args)
        .or_else(|| folder(args))
        .or_else(|| args.env.clone().map(GrantAddition::Env))
        .or_else(|| secret(args))
        .or_else(|| args.page.clone().map(GrantAddition::Page))
        .or_else(|| args.package.clone().map(GrantAddition::Package))
        .or_else(|| scratch(args))
        .or_else(|| listen(args));
    match (found, args.capability, &args.limit) {
        (Some(addition), _, _) => Ok(addition),
        (None, Some(capability), _) => {
            let setting = args.set.as_deref().map(|set| pair(set, "setting")).transpose()?;
            Ok(GrantAddition::Capability(CapabilityAddition { capability, setting }))
        }
        (None, None, Some(limit)) => {
            let (key, value) = pair(limit, "limit")?;
            Ok(GrantAddition::Limit { key, value })
        }
        (None, None, None) => Err(Failure::new(
            Exit::Usage,
            "nothing to grant: pass one of --net, --read, --write, --env, --secret, --capability, --allow, --limit",
        )),
    }
}

fn net(args: &GrantArgs) -> Option<GrantAddition> {
    let named = args.to_private.iter().filter(|range| *range != OWN_RANGE);
    let ranges: Vec<String> = named.cloned().collect();
    let reach = match (args.to_private.is_empty(), ranges.is_empty()) {
        (true, _) => NetReachText::Public,
        (false, true) => NetReachText::Own,
        (false, false) => NetReachText::Ranges(ranges),
    };
    let decision = args.ask.then_some(Decision::Ask);
    Some(GrantAddition::Net(NetAddition { pattern: args.net.clone()?, decision, reach }))
}

fn folder(args: &GrantArgs) -> Option<GrantAddition> {
    let (path, access) = match (&args.read, &args.write) {
        (Some(path), _) => (path, FsAccess::Read),
        (None, path) => (path.as_ref()?, FsAccess::ReadWrite),
    };
    Some(GrantAddition::Fs(FsAddition {
        path: path.clone(),
        mount: args.mount.clone(),
        access,
        deny: args.deny.clone(),
        quota: args.quota.clone(),
        sensitive: args.sensitive,
    }))
}

fn secret(args: &GrantArgs) -> Option<GrantAddition> {
    let name = args.secret.clone()?;
    let way = match (&args.to, &args.header) {
        (Some(to), Some(header)) => SecretUseText::Inject {
            to: to.clone(),
            header: header.clone(),
            format: args.format.clone(),
        },
        // Clap ensures that exactly one of the two ways is given.
        _ => SecretUseText::Reveal,
    };
    Some(GrantAddition::Secret(SecretAddition { name, way }))
}

fn scratch(args: &GrantArgs) -> Option<GrantAddition> {
    let (mount, quota) = (args.mount.clone(), args.quota.clone());
    Some(GrantAddition::Scratch(ScratchAddition { name: args.scratch.clone()?, mount, quota }))
}

fn listen(args: &GrantArgs) -> Option<GrantAddition> {
    Some(GrantAddition::Listen(ListenAddition { at: args.listen.clone()?, public: args.public }))
}

fn pair(text: &str, what: &str) -> Result<(String, String), Failure> {
    let parts = text.split_once('=').filter(|(key, value)| !key.is_empty() && !value.is_empty());
    let (key, value) = parts.ok_or_else(|| {
        let message = format!("{:?} is no {what}", text::escape_excerpt(text, 80));
        Failure::new(Exit::Usage, message).with_hint("write KEY=VALUE, such as time=10s")
    })?;
    Ok((key.trim().to_owned(), value.trim().to_owned()))
}

/// Describes an addition for the record.
fn in_words(addition: &GrantAddition) -> String {
    match addition {
        GrantAddition::Net(net) => net.pattern.clone(),
        GrantAddition::Fs(fs) => format!("{} {}", fs.access.as_str(), fs.path),
        GrantAddition::Env(name) => format!("the variable {name}"),
        GrantAddition::Secret(secret) => format!("the secret {}", secret.name),
        GrantAddition::Capability(one) => match &one.setting {
            Some((key, value)) => format!("{} with {key} = {value}", one.capability),
            None => one.capability.to_string(),
        },
        GrantAddition::Page(pattern) => format!("the opening of {pattern}"),
        GrantAddition::Package(package) => format!("the package {package}"),
        GrantAddition::Scratch(scratch) => format!("the scratch {}", scratch.name),
        GrantAddition::Listen(listen) => format!("listening to {}", listen.at),
        GrantAddition::Limit { key, value } => format!("the limit {key} = {value}"),
    }
}
