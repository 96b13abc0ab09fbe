//! `sallyport policy revoke`: removes one grant of a plugin, or all of them.

use sallyport_policy::edit::{self, RuleTarget, Target};
use sallyport_runtime::config::Settings;

use super::{
    Whose,
    args::RevokeArgs,
    change::{Wish, change},
};
use crate::cli::{
    exit::{Exit, Failure},
    output::Output,
};

pub(super) fn revoke(
    settings: &Settings,
    args: &RevokeArgs,
    out: &Output,
) -> Result<Exit, Failure> {
    let whose = Whose::parse(&args.plugin)?;
    let wish = |what: String| Wish {
        plugin: whose.as_str(),
        what: format!("revokes {what}"),
        yes: args.yes,
    };
    match (rule(&whose, args), &whose, &args.limit) {
        (Some(rule), _, _) => {
            let wish = wish(format!("the rules for {}", rule.tool));
            change(settings, &wish, |text| edit::remove_rule(text, &rule), out)?;
        }
        (None, Whose::One(plugin), _) => {
            let (target, what) = target(args);
            change(settings, &wish(what), |text| edit::revoke(text, plugin, &target), out)?;
        }
        (None, Whose::Several(_), Some(key)) if whose.is_everybody() => {
            let wish = wish(format!("the limit {key} of all plugins"));
            change(settings, &wish, |text| edit::revoke_shared_limit(text, key), out)?;
        }
        (None, Whose::Several(_), _) => {
            let message = "only rules, and the limits of all plugins, are about several plugins";
            let failure = Failure::new(Exit::Usage, message);
            return Err(failure.with_hint("name one plugin, or pass --rule TOOL or --limit KEY"));
        }
    }
    Ok(Exit::Done)
}

fn rule(whose: &Whose, args: &RevokeArgs) -> Option<RuleTarget> {
    Some(RuleTarget {
        tool: whose.tools(args.rule.as_ref()?),
        net: args.rule_net.clone(),
        open_url: args.rule_page.clone(),
        decision: args.decision.map(Into::into),
    })
}

/// Returns the entry to remove, and its description for the record.
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
    found.unwrap_or((Target::Plugin, "everything that it had".to_owned()))
}
