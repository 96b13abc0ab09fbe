//! `sallyport policy revoke`: removes one grant of a plugin, or all of them.

use std::collections::BTreeSet;

use sallyport_contract::PluginName;
use sallyport_policy::edit::{self, RemovalTarget, RuleRemovalTarget};
use sallyport_runtime::{
    config::HostSettings,
    gate::{policy_store, user_policy},
};

use super::{
    PluginTarget, WILDCARD,
    args::RevokeArgs,
    change::{PolicyChangeRequest, change_policy},
};
use crate::cli::{
    exit::{CommandFailure, ExitStatus},
    output::CliOutput,
};

pub(super) fn run_revoke_command(
    settings: &HostSettings,
    args: &RevokeArgs,
    out: &CliOutput,
) -> Result<ExitStatus, CommandFailure> {
    let plugin_target = PluginTarget::parse(&args.plugin)?;
    let change_request = |what: String| PolicyChangeRequest {
        plugin: plugin_target.as_str(),
        description: format!("revokes {what}"),
        is_confirmed: args.yes,
    };
    let target = grant_target(args);
    match (rule_target(&plugin_target, args), &plugin_target, &target) {
        (Some(rule), _, _) => {
            let change_request = change_request(format!("the rules for {}", rule.tool));
            change_policy(settings, &change_request, |text| edit::remove_rule(text, &rule), out)?;
        }
        (None, PluginTarget::One(plugin), _) => {
            let is_written = change_policy(
                settings,
                &change_request(target.to_string()),
                |text| edit::revoke_grant(text, plugin, &target),
                out,
            )?;
            if is_written
                && target == RemovalTarget::Plugin
                && let Err(failure) = print_remaining_rules(settings, plugin, out)
            {
                // What was asked for is done.
                let message = &failure.message;
                out.print_warning(&format!("the rules that stay cannot be named: {message}"));
            }
        }
        (None, PluginTarget::Several(_), RemovalTarget::Limit(key))
            if plugin_target.is_all_plugins() =>
        {
            let change_request = change_request(format!("the limit {key} of all plugins"));
            change_policy(
                settings,
                &change_request,
                |text| edit::revoke_shared_limit(text, key),
                out,
            )?;
        }
        (None, PluginTarget::Several(_), _) => {
            let message = "only rules, and the limits of all plugins, are about several plugins";
            let failure = CommandFailure::new(ExitStatus::Usage, message);
            return Err(failure.with_hint("name one plugin, or pass --rule TOOL or --limit KEY"));
        }
    }
    Ok(ExitStatus::Done)
}

/// Names the rules about a plugin whose grants are revoked: they count again with its next grant.
fn print_remaining_rules(
    settings: &HostSettings,
    plugin: &PluginName,
    out: &CliOutput,
) -> Result<(), CommandFailure> {
    let text = user_policy::read_policy(settings.policy.user_file())?;
    let policy = policy_store::parse_proposed_policy(&settings.policy, &text)?;
    let rules: Vec<String> = policy.rules_naming(plugin).collect();
    if rules.is_empty() {
        return Ok(());
    }
    out.print_note(&format!("These rules stay:\n  {}", rules.join("\n  ")));
    let (without, commands) = remove_call_rules(text, policy.call_rule_tools(plugin));
    for command in &commands {
        out.print_hint(&format!("to remove one of your own: {command}"));
    }
    let others = policy_store::parse_proposed_policy(&settings.policy, &without)?;
    if others.rules_naming(plugin).next().is_some() {
        let which = if commands.is_empty() { "them" } else { "the others" };
        out.print_hint(&format!("to remove {which}, edit the files at the lines that are named"));
    }
    Ok(())
}

/// Removes the rules about calls of some tools from the user's policy. Returns the rest, and the
/// commands that do the same.
fn remove_call_rules(mut text: String, tools: BTreeSet<String>) -> (String, Vec<String>) {
    let mut commands = Vec::new();
    for tool in tools {
        let command = removal_command(&tool);
        let target = RuleRemovalTarget { tool, net: None, page: None, decision: None };
        // A rule of another file is not in the text.
        let (Some(command), Ok(without)) = (command, edit::remove_rule(&text, &target)) else {
            continue;
        };
        commands.push(command);
        text = without;
    }
    (text, commands)
}

/// The command that removes the rules about calls of these tools, for a shell.
fn removal_command(tools: &str) -> Option<String> {
    // Plugin names contain no dot; tool names may.
    let (plugin, tool) = tools.split_once('.')?;
    let [plugin, tool] = [plugin, tool].map(|word| match word.contains(WILDCARD) {
        true => format!("\"{word}\""),
        false => word.to_owned(),
    });
    Some(format!("sallyport policy revoke {plugin} --rule {tool}"))
}

fn rule_target(plugin_target: &PluginTarget, args: &RevokeArgs) -> Option<RuleRemovalTarget> {
    Some(RuleRemovalTarget {
        tool: plugin_target.tool_pattern(args.rule.as_ref()?),
        net: args.rule_net.clone(),
        page: args.rule_page.clone(),
        decision: args.decision.map(Into::into),
    })
}

/// Returns the entry to remove.
fn grant_target(args: &RevokeArgs) -> RemovalTarget {
    if let Some(addition) = &args.grant {
        return RemovalTarget::of_addition(addition);
    }
    if let Some(capability) = args.capability {
        return RemovalTarget::Capability(capability);
    }
    if let Some((capability, item)) = args.capability_item() {
        return RemovalTarget::CapabilityItem(capability, item.to_owned());
    }
    let named = [
        (&args.net, RemovalTarget::Net as fn(String) -> RemovalTarget),
        (&args.deny, RemovalTarget::Deny),
        (&args.path, RemovalTarget::Fs),
        (&args.env, RemovalTarget::Env),
        (&args.secret, RemovalTarget::Secret),
        (&args.limit, RemovalTarget::Limit),
    ];
    let found = named.into_iter().find_map(|(name, target)| Some(target(name.clone()?)));
    found.unwrap_or(RemovalTarget::Plugin)
}
