//! Resources and prompts of the plugins, for the session of one connection.
//!
//! Lists are gathered from all plugins that offer something. A plugin that is denied or fails is
//! left out with a warning, so that it does not take away those of the others. A list never asks the
//! user.

use rmcp::{
    ErrorData,
    model::{Prompt, PromptArgument, Resource, ResourceTemplate},
};
use sallyport_contract::{
    CallReport, FailureKind, OfferPage, Outcome, PluginName, PromptQuery, PromptSpec,
    RequestedCall, ResourceQuery, ResourceSpec, ResourceTemplate as TemplateSpec, ToolId,
    ToolOutput, text,
};
use sallyport_policy::{PluginRole, question::ROLE_PREFIX};
use sallyport_runtime::{
    HostNotice,
    roles::{failure_reason, offers::OfferQuery},
};
use serde::de::DeserializeOwned;
use serde_json::json;

use crate::{apps, connection_session::ConnectionSession, server::McpServer};

/// Most entries of one plugin in a list.
const ITEMS_MAX: usize = 1000;

/// Most pages of one plugin, because a page may be empty.
const PAGES_MAX: usize = 100;

/// The longest part of an unknown name or address in a message, in characters.
pub(crate) const NAME_CHARS_MAX: usize = 200;

/// Whether a plugin that clients may see offers resources.
pub(crate) fn has_resources(server: &McpServer) -> bool {
    !offering_plugins(server, PluginRole::Resources).is_empty()
}

/// Whether a plugin that clients may see offers prompts.
pub(crate) fn has_prompts(server: &McpServer) -> bool {
    !offering_plugins(server, PluginRole::Prompts).is_empty()
}

/// The resources of all plugins. The first plugin in order of name has an address that several list.
pub(crate) async fn resources_of(session: &ConnectionSession) -> Vec<Resource> {
    let mut listed: Vec<Resource> = Vec::new();
    for (plugin, specs) in resources_by_plugin(session).await {
        for spec in specs {
            let is_offered = apps::is_offered(&plugin, &spec.uri, spec.media_type.as_deref());
            if is_offered && !listed.iter().any(|other| other.uri == spec.uri) {
                listed.push(wire_resource(spec));
            }
        }
    }
    listed
}

/// The templates of all plugins.
pub(crate) async fn list_templates(session: &ConnectionSession) -> Vec<ResourceTemplate> {
    let of_plugins = templates_by_plugin(session).await;
    of_plugins.into_iter().flat_map(|(_, specs)| specs).map(wire_template).collect()
}

/// The prompts of all plugins.
pub(crate) async fn list_prompts(session: &ConnectionSession) -> Vec<Prompt> {
    let of_plugins = prompts_by_plugin(session).await;
    let named = of_plugins.into_iter().flat_map(|(plugin, specs)| {
        specs.into_iter().map(move |spec| (prompt_name(session, &plugin, &spec), spec))
    });
    named.filter_map(|(name, spec)| Some(wire_prompt(name?, spec))).collect()
}

/// Whether a plugin answers for an address.
///
/// # Errors
///
/// None does.
pub(crate) async fn check_address(session: &ConnectionSession, uri: &str) -> Result<(), ErrorData> {
    let plugin = plugin_of_uri(session, uri).await;
    plugin.map(drop).ok_or_else(|| unknown_resource(uri))
}

/// The call that a question to a plugin is for the gate.
pub(crate) fn requested_query(
    session: &ConnectionSession,
    plugin: &PluginName,
    query: &OfferQuery,
) -> RequestedCall {
    RequestedCall {
        context: session.new_context(),
        tool: role_id(plugin, query.role()),
        arguments: serde_json::to_string(query).unwrap_or_default(),
    }
}

/// The name under which the gate decides.
pub(crate) fn role_id(plugin: &PluginName, role: PluginRole) -> ToolId {
    let tool = format!("{ROLE_PREFIX}{}", role.as_str()).parse();
    ToolId::new(plugin.clone(), tool.expect("a role is named like a tool"))
}

/// Asks a plugin.
pub(crate) fn ask_plugin(
    session: &ConnectionSession,
    requested: RequestedCall,
    query: OfferQuery,
) -> impl Future<Output = CallReport> + Send + 'static {
    let roles = session.server().host().roles().clone();
    async move {
        let RequestedCall { context, tool, .. } = requested;
        let answered = roles.ask_for_offer(&tool.plugin, context, query).await;
        answered.unwrap_or_else(|error| {
            let kind = FailureKind::Unavailable;
            let failure = sallyport_contract::CallFailure::new(kind, "this plugin cannot be used");
            Outcome::Failed(failure.with_detail(error.to_string())).into()
        })
    }
}

/// The plugins that offer something and that clients may see, in order of name.
fn offering_plugins(server: &McpServer, role: PluginRole) -> Vec<PluginName> {
    let plugins = server.host().roles().plugins_with_role(role).into_iter();
    let names = plugins.map(|plugin| plugin.name().clone());
    names.filter(|name| server.selection().includes(&role_id(name, role))).collect()
}

async fn resources_by_plugin(session: &ConnectionSession) -> Vec<(PluginName, Vec<ResourceSpec>)> {
    let query = |after| OfferQuery::Resources(ResourceQuery::List { after });
    list_by_plugin(session, PluginRole::Resources, query).await
}

async fn templates_by_plugin(session: &ConnectionSession) -> Vec<(PluginName, Vec<TemplateSpec>)> {
    let query = |after| OfferQuery::Resources(ResourceQuery::Templates { after });
    list_by_plugin(session, PluginRole::Resources, query).await
}

pub(crate) async fn prompts_by_plugin(
    session: &ConnectionSession,
) -> Vec<(PluginName, Vec<PromptSpec>)> {
    let query = |after| OfferQuery::Prompts(PromptQuery::List { after });
    list_by_plugin(session, PluginRole::Prompts, query).await
}

async fn list_by_plugin<T: DeserializeOwned>(
    session: &ConnectionSession,
    role: PluginRole,
    query: impl Fn(Option<String>) -> OfferQuery,
) -> Vec<(PluginName, Vec<T>)> {
    let mut lists = Vec::new();
    for plugin in offering_plugins(session.server(), role) {
        match list_of_plugin(session, &plugin, &query).await {
            Ok(list) => lists.push((plugin, list)),
            Err(why) => {
                let text = format!("the {} of {plugin} are left out: {why}", role.as_str());
                session.server().host().notices()(HostNotice::Warning(text));
            }
        }
    }
    lists
}

/// All pages of a plugin.
async fn list_of_plugin<T: DeserializeOwned>(
    session: &ConnectionSession,
    plugin: &PluginName,
    query: &impl Fn(Option<String>) -> OfferQuery,
) -> Result<Vec<T>, String> {
    let (mut items, mut after) = (Vec::new(), None);
    for _ in 0..PAGES_MAX {
        let query = query(after.take());
        let requested = requested_query(session, plugin, &query);
        let report = ask_plugin(session, requested, query).await;
        let Outcome::Completed(ToolOutput { data, .. }) = report.outcome else {
            return Err(failure_reason(&report).unwrap_or_else(|| "it was cancelled".to_owned()));
        };
        let page: OfferPage<T> = serde_json::from_value(data).map_err(|error| error.to_string())?;
        items.extend(page.items);
        if items.len() > ITEMS_MAX {
            return Err(format!("it lists more than {ITEMS_MAX}"));
        }
        after = page.next;
        if after.is_none() {
            return Ok(items);
        }
    }
    Err(format!("its list has more than {PAGES_MAX} pages"))
}

/// The plugin that answers for an address. A single one is asked in any case, because not every
/// resource has to be listed.
pub(crate) async fn plugin_of_uri(session: &ConnectionSession, uri: &str) -> Option<PluginName> {
    let plugins = offering_plugins(session.server(), PluginRole::Resources);
    if plugins.len() < 2 {
        return plugins.into_iter().next();
    }
    let lists = resources_by_plugin(session).await;
    let lists = lists.into_iter().find(|(_, specs)| specs.iter().any(|spec| spec.uri == uri));
    if let Some((plugin, _)) = lists {
        return Some(plugin);
    }
    let fits = |spec: &TemplateSpec| fits_template(&spec.uri_template, uri);
    let templates = templates_by_plugin(session).await;
    let found = templates.into_iter().find(|(_, specs)| specs.iter().any(fits));
    found.map(|(plugin, _)| plugin)
}

/// Whether an address may be made from a template: its fixed texts occur in their order. The plugin
/// itself decides what the address means.
fn fits_template(template: &str, uri: &str) -> bool {
    let mut fixed = template.split('{');
    let Some(mut rest) = uri.strip_prefix(fixed.next().unwrap_or_default()) else { return false };
    let mut is_open = false;
    for part in fixed {
        let after = part.split_once('}').map_or("", |(_, after)| after);
        match rest.find(after) {
            Some(at) => rest = &rest[at + after.len()..],
            None => return false,
        }
        is_open = after.is_empty();
    }
    is_open || rest.is_empty()
}

/// The name of a prompt towards clients. `None` if it is not a name.
pub(crate) fn prompt_name(
    session: &ConnectionSession,
    plugin: &PluginName,
    spec: &PromptSpec,
) -> Option<String> {
    let id = ToolId::new(plugin.clone(), spec.name.parse().ok()?);
    Some(session.server().selection().names.name_of(&id))
}

pub(crate) fn unknown_resource(uri: &str) -> ErrorData {
    let message = format!("Unknown resource: {}", text::escape_excerpt(uri, NAME_CHARS_MAX));
    ErrorData::resource_not_found(message, Some(json!({ "uri": uri })))
}

fn wire_resource(spec: ResourceSpec) -> Resource {
    let mut resource = Resource::new(spec.uri, spec.name);
    resource.title = spec.title;
    resource.description = spec.description;
    resource.mime_type = spec.media_type;
    resource.size = spec.size_bytes;
    resource
}

fn wire_template(spec: TemplateSpec) -> ResourceTemplate {
    let mut template = ResourceTemplate::new(spec.uri_template, spec.name);
    template.title = spec.title;
    template.description = spec.description;
    template.mime_type = spec.media_type;
    template
}

fn wire_prompt(name: String, spec: PromptSpec) -> Prompt {
    let arguments = spec.arguments.into_iter().map(|argument| {
        let mut wire = PromptArgument::new(argument.name).with_required(argument.required);
        wire.title = argument.title;
        wire.description = argument.description;
        wire
    });
    let mut prompt = Prompt::new(name, spec.description, Some(arguments.collect()));
    prompt.title = spec.title;
    prompt
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_finds_the_template_that_may_have_made_it() {
        let rows = [
            ("notes://{day}", "notes://today", true),
            ("notes://{day}", "other://today", false),
            ("test://template/{id}/data", "test://template/123/data", true),
            ("test://template/{id}/data", "test://template/123/date", false),
            ("test://template/{id}/data", "test://template/123/data/more", false),
            ("a://{x}/b/{+y}", "a://1/b/2/3", true),
            ("a://fixed", "a://fixed", true),
            ("a://fixed", "a://fixed/more", false),
            ("", "", true),
        ];
        for (template, uri, want) in rows {
            assert_eq!(fits_template(template, uri), want, "{template} {uri}");
        }
    }
}
