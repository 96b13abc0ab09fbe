//! Prompts: converts questions to the types of the contract, and answers to ours.

use std::sync::Arc;

use sallyport_contract::{
    AdmittedCall, FilledPrompt, PromptArgument, PromptQuery, PromptRole, PromptSpec, ToolOutput,
    json::JsonError,
};
use serde_json::Value;
use wasmtime::Store;

use super::{
    resources::page_value,
    tools::{
        call_context, content_bytes, content_from_wit, convert_tool_error, parsed_output,
        too_long_output,
    },
};
use crate::{
    abi::ToolReturnValue, bindings::v0_1::exports::sallyport::plugin::prompts as wit, guest::Guest,
};

/// Asks the component. The store is used up by it.
pub(super) async fn answer_query(
    store: &mut Store<Guest>,
    functions: wit::Guest,
    call: Arc<AdmittedCall>,
    query: PromptQuery,
) -> wasmtime::Result<ToolReturnValue> {
    let context = call_context(&call, &store.data().run_context);
    let bytes_max = store.data().output_bytes_max();
    let answer = match query {
        PromptQuery::List { after } => functions
            .call_list_prompts(store, &context, after.as_deref())
            .await?
            .map(|page| page_value(page.prompts, spec_from_wit, page.next, bytes_max)),
        PromptQuery::Get { name, arguments } => functions
            .call_get_prompt(store, &context, &name, &Value::Object(arguments).to_string())
            .await?
            .map(|prompt| prompt_value(prompt, bytes_max)),
    };
    Ok(answer.unwrap_or_else(|error| convert_tool_error(error, bytes_max)))
}

fn prompt_value(prompt: wit::Prompt, bytes_max: u64) -> ToolReturnValue {
    let messages = prompt.messages.iter().map(|message| content_bytes(&message.content));
    let words = prompt.description.as_ref().map_or(0, String::len);
    let bytes = (messages.sum::<usize>() + words) as u64;
    if bytes > bytes_max {
        return too_long_output(bytes, bytes_max);
    }
    parsed_output(prompt_output(prompt))
}

fn prompt_output(prompt: wit::Prompt) -> Result<ToolOutput, JsonError> {
    let (roles, contents): (Vec<_>, Vec<_>) = prompt
        .messages
        .into_iter()
        .map(|message| (role_from_wit(&message.role), message.content))
        .unzip();
    let filled = FilledPrompt { description: prompt.description, roles };
    let content = contents.into_iter().map(content_from_wit).collect::<Result<_, _>>()?;
    let data = serde_json::to_value(filled).unwrap_or_default();
    Ok(ToolOutput { data, content, speech: None })
}

/// Words of somebody unknown are the user's, because a model trusts its own ones more.
fn role_from_wit(role: &wit::PromptRole) -> PromptRole {
    match role {
        wit::PromptRole::Assistant => PromptRole::Assistant,
        wit::PromptRole::User | wit::PromptRole::Other(_) => PromptRole::User,
    }
}

fn spec_from_wit(spec: wit::PromptSpec) -> PromptSpec {
    let wit::PromptSpec { name, title, description, arguments, extra: _ } = spec;
    let arguments = arguments.into_iter().map(argument_from_wit).collect();
    PromptSpec { name, title, description, arguments }
}

fn argument_from_wit(argument: wit::PromptArgument) -> PromptArgument {
    let wit::PromptArgument { name, title, description, required, extra: _ } = argument;
    PromptArgument { name, title, description, required }
}
