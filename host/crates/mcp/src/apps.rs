//! Pages of tools: the extension for MCP Apps.
//!
//! A plugin that offers the resource `ui://PLUGIN/TOOL` has a page for that tool. A client that shows
//! pages gets its address with the tool. The page is the whole of what it may load: the server says
//! that it reaches no network, no other origin, no frame, and nothing of the device. What the page
//! wants done are calls of tools by its client, which pass the gate like any others.

use rmcp::{
    RoleServer,
    model::{JsonObject, MetaObject, Resource, ResourceContents as WireContents, Tool},
    service::RequestContext,
};
use sallyport_contract::{PluginName, ToolId};
use serde_json::{Value, json};

use crate::tools::OfferedTools;

/// The name of the extension.
const EXTENSION: &str = "io.modelcontextprotocol/ui";

/// The media type of a page.
const PAGE_TYPE: &str = "text/html;profile=mcp-app";

/// How the address of a page begins.
const SCHEME: &str = "ui://";

/// The key of the extension's data, in `_meta`.
const META_KEY: &str = "ui";

/// Whether a client shows pages.
pub(crate) fn shows_pages(context: &RequestContext<RoleServer>) -> bool {
    let extensions = context.client_capabilities().and_then(|client| client.extensions);
    extensions.is_some_and(|extensions| extensions.get(EXTENSION).is_some_and(takes_html))
}

fn takes_html(settings: &JsonObject) -> bool {
    let types = settings.get("mimeTypes").and_then(Value::as_array);
    types.is_some_and(|types| types.iter().any(|one| one == PAGE_TYPE))
}

/// Whether a resource of a plugin may be offered: it is no page, or a page of the plugin's own.
pub(crate) fn is_offered(plugin: &PluginName, uri: &str, media_type: Option<&str>) -> bool {
    !uri.starts_with(SCHEME)
        || (media_type == Some(PAGE_TYPE)
            && page_of(uri).is_some_and(|tool| tool.plugin == *plugin))
}

/// The tool whose page has this address.
fn page_of(uri: &str) -> Option<ToolId> {
    let (plugin, tool) = uri.strip_prefix(SCHEME)?.split_once('/')?;
    Some(ToolId::new(plugin.parse().ok()?, tool.parse().ok()?))
}

/// Adds to each tool the address of its page, if one of the resources is it.
pub(crate) fn with_pages(resources: &[Resource], offered: &OfferedTools) -> Vec<Tool> {
    let pages: Vec<(ToolId, &Resource)> =
        resources.iter().filter_map(|one| Some((page_of(&one.uri)?, one))).collect();
    let mut tools = offered.listed().to_vec();
    for tool in &mut tools {
        let id = offered.find_tool(&tool.name).map(|tool| &tool.id);
        let page = pages.iter().find(|(of, _)| Some(of) == id);
        if let Some((_, page)) = page {
            let meta = tool.meta.get_or_insert_with(MetaObject::new);
            meta.0.insert(META_KEY.to_owned(), json!({ "resourceUri": page.uri }));
        }
    }
    tools
}

/// What a page may load and use, for the one that shows it. A resource that is no page stays as it
/// is; a page with anything else than its own text is none. Returns whether it is served.
pub(crate) fn restrict_page(plugin: &PluginName, uri: &str, contents: &mut WireContents) -> bool {
    if !uri.starts_with(SCHEME) {
        return true;
    }
    let WireContents::TextResourceContents { uri: own, mime_type, meta, .. } = contents else {
        return false;
    };
    if own != uri || !is_offered(plugin, own, mime_type.as_deref()) {
        return false;
    }
    let mut strict = MetaObject::new();
    strict.0.insert(META_KEY.to_owned(), restrictions());
    *meta = Some(strict);
    true
}

/// Nothing of the network, no frame, and nothing of the device.
fn restrictions() -> Value {
    json!({
        "csp": {
            "connectDomains": [],
            "resourceDomains": [],
            "frameDomains": [],
            "baseUriDomains": [],
        },
        "permissions": {},
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(uri: &str, media_type: Option<&str>) -> WireContents {
        WireContents::TextResourceContents {
            uri: uri.to_owned(),
            mime_type: media_type.map(str::to_owned),
            text: "<!doctype html>".to_owned(),
            meta: None,
        }
    }

    #[test]
    fn a_page_is_its_plugins_own_text_and_may_load_nothing() {
        let plugin: PluginName = "clock".parse().unwrap();
        let page = "ui://clock/get_time";
        let binary = WireContents::BlobResourceContents {
            uri: page.to_owned(),
            mime_type: Some(PAGE_TYPE.to_owned()),
            blob: String::new(),
            meta: None,
        };
        let rows = [
            (page, text(page, Some(PAGE_TYPE)), true),
            (page, text(page, Some("text/html")), false),
            (page, text(page, None), false),
            (page, text("ui://clock/other", Some(PAGE_TYPE)), false),
            ("ui://mail/send", text("ui://mail/send", Some(PAGE_TYPE)), false),
            ("ui://clock", text("ui://clock", Some(PAGE_TYPE)), false),
            ("ui://clock/a/b", text("ui://clock/a/b", Some(PAGE_TYPE)), false),
            (page, binary, false),
        ];
        for (uri, mut contents, is_served) in rows {
            assert_eq!(restrict_page(&plugin, uri, &mut contents), is_served, "{contents:?}");
            let json = serde_json::to_value(&contents).unwrap();
            let csp = &json["_meta"]["ui"]["csp"];
            assert_eq!(csp["connectDomains"] == json!([]), is_served, "{json}");
        }
        let mut other = text("notes://today", None);
        assert!(restrict_page(&plugin, "notes://today", &mut other));
        assert_eq!(other, text("notes://today", None), "what is no page stays as it is");
    }

    #[test]
    fn a_client_shows_pages_if_it_takes_their_type() {
        let rows = [
            (json!({ "mimeTypes": [PAGE_TYPE] }), true),
            (json!({ "mimeTypes": ["text/html", PAGE_TYPE] }), true),
            (json!({ "mimeTypes": ["text/html"] }), false),
            (json!({ "mimeTypes": PAGE_TYPE }), false),
            (json!({}), false),
        ];
        for (settings, takes) in rows {
            assert_eq!(takes_html(settings.as_object().unwrap()), takes, "{settings}");
        }
    }
}
