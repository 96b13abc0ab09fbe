//! Resources: converts questions to the types of the contract, and answers to ours.

use std::sync::Arc;

use sallyport_contract::{
    AdmittedCall, ContentPart, OfferPage, ResourceQuery, ResourceSpec, ResourceTemplate, ToolOutput,
};
use serde::Serialize;
use wasmtime::Store;

use super::tools::{
    call_context, contents_bytes, contents_from_wit, convert_tool_error, parsed_output,
    too_long_output,
};
use crate::{
    abi::ToolReturnValue,
    bindings::v0_1::{
        exports::sallyport::plugin::resources as wit, sallyport::plugin::types::ResourceContents,
    },
    guest::Guest,
};

/// Asks the component. The store is used up by it.
pub(super) async fn answer_query(
    store: &mut Store<Guest>,
    functions: wit::Guest,
    call: Arc<AdmittedCall>,
    query: ResourceQuery,
) -> wasmtime::Result<ToolReturnValue> {
    let context = call_context(&call, &store.data().run_context);
    let bytes_max = store.data().output_bytes_max();
    let answer = match query {
        ResourceQuery::List { after } => functions
            .call_list_resources(store, &context, after.as_deref())
            .await?
            .map(|page| page_value(page.resources, spec_from_wit, page.next, bytes_max)),
        ResourceQuery::Templates { after } => functions
            .call_list_templates(store, &context, after.as_deref())
            .await?
            .map(|page| page_value(page.templates, template_from_wit, page.next, bytes_max)),
        ResourceQuery::Read { uri } => functions
            .call_read_resource(store, &context, &uri)
            .await?
            .map(|contents| contents_value(contents, bytes_max)),
    };
    Ok(answer.unwrap_or_else(|error| convert_tool_error(error, bytes_max)))
}

/// A page as the data of an output.
pub(super) fn page_value<W, T: Serialize>(
    items: Vec<W>,
    convert: impl Fn(W) -> T,
    next: Option<String>,
    bytes_max: u64,
) -> ToolReturnValue {
    let page = OfferPage { items: items.into_iter().map(convert).collect::<Vec<_>>(), next };
    let data = serde_json::to_value(page).unwrap_or_default();
    let bytes = data.to_string().len() as u64;
    match bytes > bytes_max {
        true => too_long_output(bytes, bytes_max),
        false => ToolReturnValue::Output(ToolOutput { data, ..ToolOutput::default() }),
    }
}

fn contents_value(contents: Vec<ResourceContents>, bytes_max: u64) -> ToolReturnValue {
    let each = contents.iter().map(|one| contents_bytes(one) + size_of::<ResourceContents>());
    let bytes = each.sum::<usize>() as u64;
    if bytes > bytes_max {
        return too_long_output(bytes, bytes_max);
    }
    let parts = contents.into_iter().map(|one| contents_from_wit(one).map(ContentPart::Embedded));
    let content = parts.collect::<Result<_, _>>();
    parsed_output(content.map(|content| ToolOutput { content, ..ToolOutput::default() }))
}

fn spec_from_wit(spec: wit::ResourceSpec) -> ResourceSpec {
    let wit::ResourceSpec { uri, name, title, description, media_type, size_bytes, extra: _ } =
        spec;
    ResourceSpec { uri, name, title, description, media_type, size_bytes }
}

fn template_from_wit(template: wit::ResourceTemplate) -> ResourceTemplate {
    let wit::ResourceTemplate { uri_template, name, title, description, media_type, extra: _ } =
        template;
    ResourceTemplate { uri_template, name, title, description, media_type }
}
