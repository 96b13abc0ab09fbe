//! `sallyport policy grant`: adds one thing to what a plugin may do.

use sallyport_contract::{Decision, PluginName, text};
use sallyport_policy::{
    Access, RuleText,
    edit::{
        self, Addition, CapabilityAddition, FsAddition, ListenAddition, NetAddition, ReachText,
        ScratchAddition, SecretAddition, SecretWayText,
    },
};

use super::{
    args::{GrantArgs, OWN_RANGE},
    change::{Wish, change},
};
use crate::{
    cli::{
        compose,
        exit::{Exit, Failure},
        output::Output,
    },
    config::Settings,
    registry::{Missing, Selection},
};

pub(super) async fn grant(
    settings: &Settings,
    args: &GrantArgs,
    out: &Output,
) -> Result<Exit, Failure> {
    let plugin = &super::plugin_name(&args.plugin)?;
    let wish = |what: String| Wish { plugin, what: format!("grants {what}"), yes: args.yes };
    match &args.allow {
        Some(tool) => {
            let rule = rule(settings, plugin, tool, args.digest, out).await?;
            let wish = wish(format!("calls of {}", rule.tool));
            change(settings, &wish, |text| edit::add_rule(text, &rule), out)?;
        }
        None => {
            let addition = addition(args)?;
            let wish = wish(in_words(&addition));
            change(settings, &wish, |text| edit::grant(text, plugin, &addition), out)?;
        }
    }
    Ok(Exit::Done)
}

async fn rule(
    settings: &Settings,
    plugin: &PluginName,
    tool: &str,
    is_bound: bool,
    out: &Output,
) -> Result<RuleText, Failure> {
    let digest = if is_bound { Some(digest(settings, plugin, out).await?) } else { None };
    Ok(RuleText { digest, ..RuleText::allowing(super::tools_of(plugin, tool)) })
}

/// Digest of the component that is installed now.
async fn digest(settings: &Settings, plugin: &PluginName, out: &Output) -> Result<String, Failure> {
    let registry = compose::registry_of(settings, Selection::Only(plugin.clone()), out).await?;
    let entry = registry.plugin(plugin.as_str()).map_err(Missing::into_failure)?;
    let digest = entry.digest().to_owned();
    registry.shutdown().await;
    Ok(digest)
}

fn addition(args: &GrantArgs) -> Result<Addition, Failure> {
    let found = net(args)
        .or_else(|| folder(args))
        .or_else(|| args.env.clone().map(Addition::Env))
        .or_else(|| secret(args))
        .or_else(|| args.page.clone().map(Addition::Page))
        .or_else(|| args.package.clone().map(Addition::Package))
        .or_else(|| scratch(args))
        .or_else(|| listen(args));
    match (found, args.capability, &args.limit) {
        (Some(addition), _, _) => Ok(addition),
        (None, Some(capability), _) => {
            let setting = args.set.as_deref().map(|set| pair(set, "setting")).transpose()?;
            Ok(Addition::Capability(CapabilityAddition { capability, setting }))
        }
        (None, None, Some(limit)) => {
            let (key, value) = pair(limit, "limit")?;
            Ok(Addition::Limit { key, value })
        }
        (None, None, None) => {
            Err(Failure::new(Exit::Usage, "nothing was named that could be granted"))
        }
    }
}

fn net(args: &GrantArgs) -> Option<Addition> {
    let named = args.to_private.iter().filter(|range| *range != OWN_RANGE);
    let ranges: Vec<String> = named.cloned().collect();
    let reach = match (args.to_private.is_empty(), ranges.is_empty()) {
        (true, _) => ReachText::Public,
        (false, true) => ReachText::Own,
        (false, false) => ReachText::Ranges(ranges),
    };
    let decision = args.ask.then_some(Decision::Ask);
    Some(Addition::Net(NetAddition { pattern: args.net.clone()?, decision, reach }))
}

fn folder(args: &GrantArgs) -> Option<Addition> {
    let (path, access) = match (&args.read, &args.write) {
        (Some(path), _) => (path, Access::Read),
        (None, path) => (path.as_ref()?, Access::ReadWrite),
    };
    Some(Addition::Fs(FsAddition {
        path: path.clone(),
        mount: args.mount.clone(),
        access,
        deny: args.deny.clone(),
        quota: args.quota.clone(),
        sensitive: args.sensitive,
    }))
}

fn secret(args: &GrantArgs) -> Option<Addition> {
    let name = args.secret.clone()?;
    let way = match (&args.to, &args.header) {
        (Some(to), Some(header)) => SecretWayText::Inject {
            to: to.clone(),
            header: header.clone(),
            format: args.format.clone(),
        },
        // The flags are read so that it is one of the two ways.
        _ => SecretWayText::Reveal,
    };
    Some(Addition::Secret(SecretAddition { name, way }))
}

fn scratch(args: &GrantArgs) -> Option<Addition> {
    let (mount, quota) = (args.mount.clone(), args.quota.clone());
    Some(Addition::Scratch(ScratchAddition { name: args.scratch.clone()?, mount, quota }))
}

fn listen(args: &GrantArgs) -> Option<Addition> {
    Some(Addition::Listen(ListenAddition { at: args.listen.clone()?, public: args.public }))
}

fn pair(text: &str, what: &str) -> Result<(String, String), Failure> {
    let parts = text.split_once('=').filter(|(key, value)| !key.is_empty() && !value.is_empty());
    let (key, value) = parts.ok_or_else(|| {
        let message = format!("{:?} is no {what}", text::excerpt(text, 80));
        Failure::new(Exit::Usage, message).with_hint("write KEY=VALUE, such as time=10s")
    })?;
    Ok((key.trim().to_owned(), value.trim().to_owned()))
}

/// An addition, for the record.
fn in_words(addition: &Addition) -> String {
    match addition {
        Addition::Net(net) => net.pattern.clone(),
        Addition::Fs(fs) => format!("{} {}", fs.access.word(), fs.path),
        Addition::Env(name) => format!("the variable {name}"),
        Addition::Secret(secret) => format!("the secret {}", secret.name),
        Addition::Capability(one) => match &one.setting {
            Some((key, value)) => format!("{} with {key} = {value}", one.capability),
            None => one.capability.to_string(),
        },
        Addition::Page(pattern) => format!("the opening of {pattern}"),
        Addition::Package(package) => format!("the package {package}"),
        Addition::Scratch(scratch) => format!("the scratch {}", scratch.name),
        Addition::Listen(listen) => format!("listening to {}", listen.at),
        Addition::Limit { key, value } => format!("the limit {key} = {value}"),
    }
}
