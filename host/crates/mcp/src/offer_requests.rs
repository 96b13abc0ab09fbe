//! The requests of a client that read a resource or fill in a prompt, which may ask the user.

use rmcp::{
    ErrorData, RoleServer,
    model::{
        GetPromptRequestParams, GetPromptResponse, GetPromptResult, InputResponses, PromptMessage,
        ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult, Role,
    },
    service::RequestContext,
};
use sallyport_contract::{
    ContentPart, FailureKind, FilledPrompt, Outcome, PluginName, PromptQuery, PromptRole,
    PromptSpec, ResourceQuery, ToolId, ToolOutput, text,
};
use sallyport_runtime::roles::offers::OfferQuery;
use serde_json::{Map, Value, json};

use crate::{
    apps, call_result,
    handler::{CallTurn, McpConnection},
    offers,
};

/// Reads a resource.
pub(crate) async fn read_resource(
    connection: &McpConnection,
    request: ReadResourceRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<ReadResourceResponse, ErrorData> {
    let uri = request.uri;
    let plugin = offers::plugin_of_uri(connection.session(), &uri)
        .await
        .ok_or_else(|| offers::unknown_resource(&uri))?;
    let query = OfferQuery::Resources(ResourceQuery::Read { uri: uri.clone() });
    let id = offers::role_id(&plugin, query.role());
    let answers = (request.request_state, request.input_responses);
    match drive_query(connection, &plugin, query, answers, context).await? {
        CallTurn::NeedsInput(result) => Ok(result.into()),
        CallTurn::Finished(report) => match report.outcome {
            Outcome::Completed(output) if output.content.is_empty() => {
                Err(offers::unknown_resource(&uri))
            }
            Outcome::Completed(output) => {
                let contents = output.content.iter().filter_map(|part| match part {
                    ContentPart::Embedded(one) => Some(call_result::resource_contents(one)),
                    _ => None,
                });
                let mut contents: Vec<_> = contents.collect();
                match contents.iter_mut().all(|one| apps::restrict_page(&plugin, &uri, one)) {
                    true => Ok(ReadResourceResult::new(contents).into()),
                    false => Err(offers::unknown_resource(&uri)),
                }
            }
            Outcome::Failed(failure) if failure.kind == FailureKind::NotFound => {
                Err(offers::unknown_resource(&uri))
            }
            outcome => Err(failed_query(&outcome, &id)),
        },
    }
}

/// Fills in a prompt.
pub(crate) async fn get_prompt(
    connection: &McpConnection,
    request: GetPromptRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<GetPromptResponse, ErrorData> {
    let (plugin, spec) = find_prompt(connection, &request.name).await?;
    let arguments = prompt_arguments(&spec, request.arguments)?;
    let query = OfferQuery::Prompts(PromptQuery::Get { name: spec.name, arguments });
    let id = offers::role_id(&plugin, query.role());
    let answers = (request.request_state, request.input_responses);
    match drive_query(connection, &plugin, query, answers, context).await? {
        CallTurn::NeedsInput(result) => Ok(result.into()),
        CallTurn::Finished(report) => match report.outcome {
            Outcome::Completed(output) => Ok(filled_prompt(output)?.into()),
            outcome => Err(failed_query(&outcome, &id)),
        },
    }
}

/// What a client returns with after it was asked.
type ReturnedAnswers = (Option<String>, Option<InputResponses>);

/// Asks a plugin, and the user if that needs an approval.
async fn drive_query(
    connection: &McpConnection,
    plugin: &PluginName,
    query: OfferQuery,
    (state, answers): ReturnedAnswers,
    context: &RequestContext<RoleServer>,
) -> Result<CallTurn, ErrorData> {
    let requested = offers::requested_query(connection.session(), plugin, &query);
    let running = match state {
        Some(state) => {
            connection.resume_call(&state, &requested.tool, &requested.arguments, &answers)?
        }
        None => {
            let run = offers::ask_plugin(connection.session(), requested.clone(), query);
            let busy = || ErrorData::internal_error("too many calls run already; try again", None);
            connection.server().start_run(requested, run).ok_or_else(busy)?
        }
    };
    Ok(connection.drive_call(running, context).await)
}

async fn find_prompt(
    connection: &McpConnection,
    name: &str,
) -> Result<(PluginName, PromptSpec), ErrorData> {
    for (plugin, specs) in offers::prompts_by_plugin(connection.session()).await {
        for spec in specs {
            if offers::prompt_name(connection.session(), &plugin, &spec).as_deref() == Some(name) {
                return Ok((plugin, spec));
            }
        }
    }
    let name = text::escape_excerpt(name, offers::NAME_CHARS_MAX);
    Err(ErrorData::invalid_params(format!("Unknown prompt: {name}"), None))
}

/// The arguments of a prompt, if they are texts and none is missing.
fn prompt_arguments(
    spec: &PromptSpec,
    arguments: Option<Map<String, Value>>,
) -> Result<Map<String, Value>, ErrorData> {
    let arguments = arguments.unwrap_or_default();
    let mut required = spec.arguments.iter().filter(|argument| argument.required);
    if let Some(missing) = required.find(|one| !arguments.contains_key(&one.name)) {
        let name = text::escape_excerpt(&missing.name, offers::NAME_CHARS_MAX);
        return Err(ErrorData::invalid_params(format!("the argument {name} is missing"), None));
    }
    match arguments.values().all(Value::is_string) {
        true => Ok(arguments),
        false => Err(ErrorData::invalid_params("the arguments of a prompt are texts", None)),
    }
}

fn filled_prompt(output: ToolOutput) -> Result<GetPromptResult, ErrorData> {
    let filled: FilledPrompt = serde_json::from_value(output.data)
        .map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
    let messages = filled.roles.into_iter().zip(&output.content).map(|(role, part)| {
        let role = match role {
            PromptRole::User => Role::User,
            PromptRole::Assistant => Role::Assistant,
        };
        PromptMessage::new(role, call_result::content_block(part))
    });
    let mut result = GetPromptResult::new(messages.collect());
    result.description = filled.description;
    Ok(result)
}

/// The error of a question that was not answered, with its reason as data.
fn failed_query(outcome: &Outcome, id: &ToolId) -> ErrorData {
    let message = call_result::failure_text(outcome, id);
    let data = Some(json!({ call_result::REASON_KEY: call_result::reason(outcome, id) }));
    match outcome {
        Outcome::InvalidArguments(_) => ErrorData::invalid_params(message, data),
        _ => ErrorData::internal_error(message, data),
    }
}
