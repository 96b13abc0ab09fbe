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
    PluginTarget,
    args::{GrantArgs, OWN_RANGE},
    change::{PolicyChangeRequest, change_policy},
    check::installed_plugins,
};
use crate::cli::{
    exit::{CommandFailure, ExitStatus},
    output::CliOutput,
    setup,
};

pub(super) async fn run_grant_command(
    settings: &HostSettings,
    args: &GrantArgs,
    out: &CliOutput,
) -> Result<ExitStatus, CommandFailure> {
    let plugin_target = PluginTarget::parse(&args.plugin)?;
    let change_request = |what: String| PolicyChangeRequest {
        plugin: plugin_target.as_str(),
        description: format!("grants {what}"),
        is_confirmed: args.yes,
    };
    match (&args.allow, &plugin_target, &args.limit) {
        (Some(tool), _, _) => {
            let rule = RuleText::new_allow(plugin_target.tool_pattern(tool));
            let rule = check_rule(settings, &plugin_target, rule, args, out).await?;
            let change_request = change_request(format!("calls of {}", rule.tool));
            change_policy(settings, &change_request, |text| edit::add_rule(text, &rule), out)?;
        }
        (None, PluginTarget::One(plugin), _) => {
            let addition =
                check_addition(settings, plugin, addition_from_args(args)?, args.force, out)
                    .await?;
            let change_request = change_request(describe_addition(&addition));
            change_policy(
                settings,
                &change_request,
                |text| edit::add_grant(text, plugin, &addition),
                out,
            )?;
        }
        (None, PluginTarget::Several(_), Some(limit)) if plugin_target.is_all_plugins() => {
            let (key, value) = parse_pair(limit, "limit")?;
            let change_request =
                change_request(format!("the limit {key} = {value} to all plugins"));
            change_policy(
                settings,
                &change_request,
                |text| edit::set_shared_limit(text, &key, &value),
                out,
            )?;
        }
        (None, PluginTarget::Several(_), _) => {
            let message =
                "only calls, and limits for all plugins, can be granted to several plugins";
            let failure = CommandFailure::new(ExitStatus::Usage, message);
            return Err(failure.with_hint("name one plugin, or pass --allow TOOL"));
        }
    }
    Ok(ExitStatus::Done)
}

/// Refuses a rule that matches nothing installed, and binds it to the component's digest if
/// requested.
async fn check_rule(
    settings: &HostSettings,
    plugin_target: &PluginTarget,
    rule: RuleText,
    args: &GrantArgs,
    out: &CliOutput,
) -> Result<RuleText, CommandFailure> {
    let selection = match plugin_target {
        PluginTarget::One(plugin) => PluginSelection::Only(plugin.clone()),
        PluginTarget::Several(_) if args.digest => {
            let failure = CommandFailure::new(ExitStatus::Usage, "--digest needs one plugin");
            return Err(failure.with_hint("name one plugin, or leave out --digest"));
        }
        PluginTarget::Several(_) => PluginSelection::All,
    };
    if args.force && !args.digest {
        return Ok(rule);
    }
    let registry = setup::load_selected_registry(settings, selection, out).await?;
    let digest = match plugin_target {
        PluginTarget::One(plugin) => {
            let entry = registry.find_plugin(plugin.as_str()).map_err(CommandFailure::from)?;
            args.digest.then(|| entry.digest().to_owned())
        }
        PluginTarget::Several(_) => None,
    };
    let rule = RuleText { digest, ..rule };
    // Check the rule in a policy of its own, so that all remarks are about it.
    let rule_policy =
        Policy::from_user_file("policy", &rule.to_string(), None).map_err(|error| {
            CommandFailure {
                hint: error.hint,
                ..CommandFailure::new(ExitStatus::Usage, error.message)
            }
        })?;
    let (useless, wide): (Vec<_>, Vec<_>) = rule_policy
        .find_remarks(&installed_plugins(&registry))
        .into_iter()
        .partition(|remark| remark.kind == PolicyRemarkKind::Useless);
    registry.shutdown().await;
    wide.iter().for_each(|remark| out.print_warning(&format!("the rule {}", remark.message)));
    match useless.first().filter(|_| !args.force) {
        Some(remark) => Err(no_effect_failure(remark.message.clone(), None)),
        None => Ok(rule),
    }
}

/// Refuses an addition that could not have the intended effect.
async fn check_addition(
    settings: &HostSettings,
    plugin: &PluginName,
    addition: GrantAddition,
    is_forced: bool,
    out: &CliOutput,
) -> Result<GrantAddition, CommandFailure> {
    if is_forced {
        return Ok(addition);
    }
    let registry =
        setup::load_selected_registry(settings, PluginSelection::Only(plugin.clone()), out).await?;
    let entry = registry.find_plugin(plugin.as_str()).map_err(CommandFailure::from)?;
    let own = settings.plugin_settings.get(plugin).cloned().unwrap_or_default();
    let home = settings.policy.home.as_deref();
    let checked = addition.check_against_manifest(entry.manifest(), &own, home);
    registry.shutdown().await;
    let (addition, objections) = checked.map_err(|error| edit_failure(&error))?;
    match objections.first() {
        Some(first) => {
            let all: Vec<String> = objections.iter().map(ToString::to_string).collect();
            Err(no_effect_failure(format!("{plugin}: {}", all.join("; ")), first.suggested_fix()))
        }
        None => Ok(addition),
    }
}

fn edit_failure(error: &EditError) -> CommandFailure {
    CommandFailure {
        hint: error.hint(),
        ..CommandFailure::new(ExitStatus::Usage, error.to_string())
    }
}

/// The failure for an entry that would have no effect.
fn no_effect_failure(message: String, remedy: Option<String>) -> CommandFailure {
    let otherwise = "pass --force to write it anyway";
    let hint = remedy.map_or(otherwise.to_owned(), |remedy| format!("{remedy}; {otherwise}"));
    CommandFailure::new(ExitStatus::Usage, message).with_hint(hint)
}

fn addition_from_args(args: &GrantArgs) -> Result<GrantAddition, CommandFailure> {
    let found = net_addition(args)
        .or_else(|| folder_addition(args))
        .or_else(|| args.env.clone().map(GrantAddition::Env))
        .or_else(|| secret_addition(args))
        .or_else(|| args.page.clone().map(GrantAddition::OpenUrl))
        .or_else(|| args.package.clone().map(GrantAddition::Package))
        .or_else(|| temp_dir_addition(args))
        .or_else(|| listen_addition(args));
    match (found, args.capability, &args.limit) {
        (Some(addition), _, _) => Ok(addition),
        (None, Some(capability), _) => {
            let setting = args.set.as_deref().map(|set| parse_pair(set, "setting")).transpose()?;
            Ok(GrantAddition::Capability(CapabilityAddition { capability, setting }))
        }
        (None, None, Some(limit)) => {
            let (key, value) = parse_pair(limit, "limit")?;
            Ok(GrantAddition::Limit { key, value })
        }
        (None, None, None) => Err(CommandFailure::new(
            ExitStatus::Usage,
            "nothing to grant: pass one of --net, --read, --write, --env, --secret, --capability, --allow, --limit",
        )),
    }
}

fn net_addition(args: &GrantArgs) -> Option<GrantAddition> {
    let named = args.to_private.iter().filter(|range| *range != OWN_RANGE);
    let ranges: Vec<String> = named.cloned().collect();
    let reach = match (args.to_private.is_empty(), ranges.is_empty()) {
        (true, _) => NetReachText::Public,
        (false, true) => NetReachText::HostAddresses,
        (false, false) => NetReachText::Ranges(ranges),
    };
    let decision = args.ask.then_some(Decision::Ask);
    Some(GrantAddition::Net(NetAddition { pattern: args.net.clone()?, decision, reach }))
}

fn folder_addition(args: &GrantArgs) -> Option<GrantAddition> {
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

fn secret_addition(args: &GrantArgs) -> Option<GrantAddition> {
    let name = args.secret.clone()?;
    let secret_use = match (&args.to, &args.header) {
        (Some(to), Some(header)) => SecretUseText::Inject {
            to: to.clone(),
            header: header.clone(),
            format: args.format.clone(),
        },
        // Clap ensures that exactly one of the two ways is given.
        _ => SecretUseText::Reveal,
    };
    Some(GrantAddition::Secret(SecretAddition { name, usage: secret_use }))
}

fn temp_dir_addition(args: &GrantArgs) -> Option<GrantAddition> {
    let (mount, quota) = (args.mount.clone(), args.quota.clone());
    Some(GrantAddition::Scratch(ScratchAddition { name: args.scratch.clone()?, mount, quota }))
}

fn listen_addition(args: &GrantArgs) -> Option<GrantAddition> {
    Some(GrantAddition::Listen(ListenAddition {
        address: args.listen.clone()?,
        public: args.public,
    }))
}

fn parse_pair(text: &str, what: &str) -> Result<(String, String), CommandFailure> {
    let parts = text.split_once('=').filter(|(key, value)| !key.is_empty() && !value.is_empty());
    let (key, value) = parts.ok_or_else(|| {
        let message = format!("{:?} is no {what}", text::escape_excerpt(text, 80));
        CommandFailure::new(ExitStatus::Usage, message)
            .with_hint("write KEY=VALUE, such as time=10s")
    })?;
    Ok((key.trim().to_owned(), value.trim().to_owned()))
}

/// Describes an addition for the record.
fn describe_addition(addition: &GrantAddition) -> String {
    match addition {
        GrantAddition::Net(net) => net.pattern.clone(),
        GrantAddition::Fs(fs) => format!("{} {}", fs.access.as_str(), fs.path),
        GrantAddition::Env(name) => format!("the variable {name}"),
        GrantAddition::Secret(secret) => format!("the secret {}", secret.name),
        GrantAddition::Capability(one) => match &one.setting {
            Some((key, value)) => format!("{} with {key} = {value}", one.capability),
            None => one.capability.to_string(),
        },
        GrantAddition::OpenUrl(pattern) => format!("the opening of {pattern}"),
        GrantAddition::Package(package) => format!("the package {package}"),
        GrantAddition::Scratch(scratch) => format!("the scratch {}", scratch.name),
        GrantAddition::Listen(listen) => format!("listening to {}", listen.address),
        GrantAddition::Limit { key, value } => format!("the limit {key} = {value}"),
    }
}
