//! Grants for the plugins that request something.

use std::sync::Arc;

use sallyport_contract::{PluginName, text};
use sallyport_policy::{
    UngrantedRequest,
    edit::{self, RequestedGrants},
};
use sallyport_runtime::{
    config::HostSettings,
    registry::{PluginAvailability, RegisteredPlugin, Registry},
};
use sallyport_terminal::listing::ListRow;

use super::{SetupContext, is_interactive, prompts};
use crate::cli::{
    exit::{CommandFailure, ExitStatus},
    policy::change::{PolicyChangeRequest, propose_change, save_change, warn_of_missing_paths},
    setup,
};

/// A plugin with what it requests and lacks.
struct LackingPlugin {
    name: PluginName,
    description: String,
    requests: Vec<UngrantedRequest>,
    grants: RequestedGrants,
}

impl From<&RegisteredPlugin> for LackingPlugin {
    fn from(entry: &RegisteredPlugin) -> Self {
        Self {
            name: entry.name().clone(),
            description: entry.manifest().description.clone(),
            requests: entry.grant().ungranted_requests(),
            grants: entry.grant().requested_grants(),
        }
    }
}

/// Grants the plugins that the flags name what they request.
pub(super) async fn grant_named_plugins(context: &SetupContext<'_>) -> Result<(), CommandFailure> {
    let settings = context.read_settings()?;
    let registry = setup::load_registry(&settings, context.out).await?;
    let names = context.args.grant_requested.iter();
    let plugins =
        names.map(|name| Ok(LackingPlugin::from(&**registry.find_plugin(name.as_str())?)));
    let plugins = plugins.collect::<Result<Vec<LackingPlugin>, CommandFailure>>()?;
    grant_all(context, &settings, registry, plugins.iter()).await
}

/// Lists the plugins that lack something, and grants those that the user chooses.
pub(super) async fn offer_plugins(context: &SetupContext<'_>) -> Result<(), CommandFailure> {
    let settings = context.read_settings()?;
    let registry = setup::load_registry(&settings, context.out).await?;
    let lacking = registry.entries().filter(|entry| lacks_request(entry));
    let lacking: Vec<LackingPlugin> = lacking.map(LackingPlugin::from).collect();
    let chosen = match lacking.is_empty() {
        true => Vec::new(),
        false => {
            print_lacking_plugins(&lacking, context);
            ask_plugins(context, &lacking).await?
        }
    };
    grant_all(context, &settings, registry, chosen.into_iter()).await
}

/// Grants several plugins what they request. The registry ends first, because it would report each
/// change of the policy.
async fn grant_all<'p>(
    context: &SetupContext<'_>,
    settings: &HostSettings,
    registry: Arc<Registry>,
    plugins: impl Iterator<Item = &'p LackingPlugin>,
) -> Result<(), CommandFailure> {
    registry.shutdown().await;
    drop(registry);
    for plugin in plugins {
        grant_requests(context, settings, plugin).await?;
    }
    Ok(())
}

/// Whether a usable plugin lacks something. The manifest is enough to know it, so a plugin that is
/// still being compiled is not waited for.
fn lacks_request(entry: &RegisteredPlugin) -> bool {
    let is_usable =
        matches!(entry.availability(), PluginAvailability::Ready | PluginAvailability::Compiling);
    is_usable && entry.grant().lacks_needed_request()
}

fn print_lacking_plugins(lacking: &[LackingPlugin], context: &SetupContext<'_>) {
    context.out.print_heading("These plugins request something that nothing grants yet:");
    let rows = lacking.iter().enumerate().map(|(index, plugin)| {
        let number = (index + 1).to_string();
        let needed = plugin.requests.iter().filter(|request| request.is_needed());
        let requests = needed.map(describe_request).collect::<Vec<_>>();
        ListRow::new([number.as_str(), plugin.name.as_str(), &plugin.description])
            .with_below([format!("wants to {}", requests.join("; "))])
    });
    context.out.print_list(&rows.collect::<Vec<_>>());
}

/// The request as the end of a sentence: "wants to …".
fn describe_request(request: &UngrantedRequest) -> String {
    use sallyport_policy::{FsAccess, UngrantedRequestKind as Kind};
    match &request.kind {
        Kind::Net(pattern) => format!("send {pattern}"),
        Kind::Fs { path, access } => {
            let verb = if *access == FsAccess::Read { "read" } else { "read and write" };
            let path = path.as_ref().map(|path| path.display().to_string());
            format!("{verb} {}", path.unwrap_or_else(|| "a folder of your choice".to_owned()))
        }
        Kind::Env(name) => format!("read the variable {name}"),
        Kind::Secret { name, reveal: true } => format!("read the secret {name}"),
        Kind::Secret { name, reveal: false } => format!("use the secret {name}"),
        Kind::Capability(requested) => requested.to_string(),
    }
}

async fn ask_plugins<'e>(
    context: &SetupContext<'_>,
    lacking: &'e [LackingPlugin],
) -> Result<Vec<&'e LackingPlugin>, CommandFailure> {
    let names: Vec<&str> = lacking.iter().map(|plugin| plugin.name.as_str()).collect();
    loop {
        let prompt = "Which may have it? Numbers or names, all, Enter for none: ";
        let Some(answer) = prompts::ask_line(prompt, context.out).await?.words() else {
            return Ok(Vec::new());
        };
        match parse_choice(&answer, &names) {
            Ok(chosen) => {
                let is_chosen = |plugin: &&LackingPlugin| chosen.contains(&plugin.name.as_str());
                return Ok(lacking.iter().filter(is_chosen).collect());
            }
            Err(word) => {
                context.out.print_note(&format!("There is no {} in the list.", quoted(word)));
            }
        }
    }
}

fn quoted(word: &str) -> String {
    format!("{:?}", text::escape_excerpt(word, 40))
}

/// Returns the chosen names, or the first word that names nothing.
fn parse_choice<'a, 'n>(answer: &'a str, names: &[&'n str]) -> Result<Vec<&'n str>, &'a str> {
    if answer.eq_ignore_ascii_case("all") {
        return Ok(names.to_vec());
    }
    let words = answer.split([' ', ',']).filter(|word| !word.is_empty());
    words.map(|word| prompts::find_named(word, names).ok_or(word)).collect()
}

/// Grants a plugin what it requests, after showing the change. Prints what only the user can grant.
async fn grant_requests(
    context: &SetupContext<'_>,
    settings: &HostSettings,
    plugin: &LackingPlugin,
) -> Result<(), CommandFailure> {
    let (LackingPlugin { name, requests, grants, .. }, out) = (plugin, context.out);
    if requests.is_empty() {
        if context.args.folder.is_some() {
            let message = format!("{name} lacks no folder, so that --folder grants nothing");
            let failure = CommandFailure::new(ExitStatus::Usage, message);
            let hint = format!("to grant one more: sallyport policy grant {name} --read FOLDER");
            return Err(failure.with_hint(hint));
        }
        out.print_line(&format!("{name} has everything that it requests."));
        return Ok(());
    }
    let mut additions = grants.additions.clone();
    let mut open: Vec<&UngrantedRequest> = Vec::new();
    for request in &grants.left_open {
        let folder = match request.needs_path() {
            true => choose_folder(context, name, request).await?,
            false => None,
        };
        match folder.and_then(|folder| request.addition_for_path(&folder)) {
            Some(addition) => additions.push(addition),
            None => open.push(request),
        }
    }
    if !additions.is_empty() {
        warn_of_missing_paths(settings, &additions, out);
        let edit = |text: &str| edit::add_grants(text, name, &additions);
        if let Some(change) = propose_change(settings, edit, out)?
            && context.confirm_change(&[]).await?
        {
            let request = PolicyChangeRequest {
                plugin: name.as_str(),
                description: "grants what it requests".to_owned(),
                is_confirmed: true,
            };
            save_change(settings, &request, &change, out)?;
        }
    }
    for request in open {
        print_open_request(context, name, request);
    }
    Ok(())
}

async fn choose_folder(
    context: &SetupContext<'_>,
    name: &PluginName,
    request: &UngrantedRequest,
) -> Result<Option<String>, CommandFailure> {
    match &context.args.folder {
        Some(folder) => Ok(Some(folder.display().to_string())),
        None if !is_interactive(context.out) => Ok(None),
        None => {
            let wish = describe_request(request);
            let prompt = format!("{name} wants to {wish}. Folder, Enter to skip: ");
            Ok(prompts::ask_line(&prompt, context.out).await?.words())
        }
    }
}

fn print_open_request(context: &SetupContext<'_>, name: &PluginName, request: &UngrantedRequest) {
    let missing = text::escape_line(&describe_request(request));
    context.out.print_line(&format!("Not granted: {name} wants to {missing}."));
    if let Some(flags) = request.grant_flags() {
        context.out.print_hint(&format!("sallyport policy grant {name} {flags}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_plugins_are_chosen_by_numbers_and_names() {
        let names = ["files", "weather", "python"];
        for (answer, want) in [
            ("2", Ok(vec!["weather"])),
            ("1, python", Ok(vec!["files", "python"])),
            ("ALL", Ok(names.to_vec())),
            (",", Ok(vec![])),
            ("weather 9", Err("9")),
            ("wether", Err("wether")),
        ] {
            assert_eq!(parse_choice(answer, &names), want, "{answer}");
        }
    }
}
