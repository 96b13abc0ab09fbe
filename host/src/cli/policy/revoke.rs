//! `sallyport policy revoke`: takes one thing, or all, away from what a plugin may do.

use sallyport_contract::PluginName;
use sallyport_policy::edit::{self, RuleTarget, Target};

use super::{
    args::RevokeArgs,
    change::{Wish, change},
};
use crate::{
    cli::{
        exit::{Exit, Failure},
        output::Output,
    },
    config::Settings,
};

pub(super) fn revoke(
    settings: &Settings,
    args: &RevokeArgs,
    out: &Output,
) -> Result<Exit, Failure> {
    let plugin = &super::plugin_name(&args.plugin)?;
    let wish = |what: String| Wish { plugin, what: format!("revokes {what}"), yes: args.yes };
    match rule(plugin, args) {
        Some(rule) => {
            let wish = wish(format!("the rules for {}", rule.tool));
            change(settings, &wish, |text| edit::remove_rule(text, &rule), out)?;
        }
        None => {
            let (target, what) = target(args);
            change(settings, &wish(what), |text| edit::revoke(text, plugin, &target), out)?;
        }
    }
    Ok(Exit::Done)
}

fn rule(plugin: &PluginName, args: &RevokeArgs) -> Option<RuleTarget> {
    Some(RuleTarget {
        tool: super::tools_of(plugin, args.rule.as_ref()?),
        net: args.rule_net.clone(),
        open_url: args.rule_page.clone(),
        decision: args.decision.map(Into::into),
    })
}

/// What is to go, also in words for the record.
fn target(args: &RevokeArgs) -> (Target, String) {
    let named = [
        (&args.net, Target::Net as fn(String) -> Target, ""),
        (&args.deny, Target::Deny, "the refusal of "),
        (&args.path, Target::Fs, ""),
        (&args.env, Target::Env, "the variable "),
        (&args.secret, Target::Secret, "the secret "),
        (&args.page, Target::Page, "the opening of "),
        (&args.package, Target::Package, "the package "),
        (&args.scratch, Target::Scratch, "the scratch "),
        (&args.listen, Target::Listen, "listening to "),
        (&args.limit, Target::Limit, "the limit "),
    ];
    if let Some(capability) = args.capability {
        return (Target::Capability(capability), capability.to_string());
    }
    let found = named.into_iter().find_map(|(name, target, kind)| {
        let name = name.clone()?;
        Some((target(name.clone()), format!("{kind}{name}")))
    });
    found.unwrap_or((Target::Plugin, "all that it held".to_owned()))
}
