//! `sallyport:plugin@0.1.0`.

use std::time::Duration;

use sallyport_contract::{
    Admitted, BoxFuture, Content, Failure, FailureKind, Hints, ToolOutput, json,
};
use wasmtime::{
    Store,
    component::{Instance, InstancePre},
};

use super::{Mismatch, PluginAbi, RawTool, ToolReturn};
use crate::{
    bindings::v0_1::{
        exports::sallyport::plugin::{lifecycle, tools},
        sallyport::plugin::types as wit,
    },
    guest::Guest,
};

pub(super) const TOOLS: &str = "sallyport:plugin/tools@0.1.0";
const LIFECYCLE: &str = "sallyport:plugin/lifecycle@0.1.0";

/// The exports of a component of this version, looked up once.
pub(super) struct V0_1 {
    tools: tools::GuestIndices,
    lifecycle: Option<lifecycle::GuestIndices>,
}

impl V0_1 {
    pub(super) fn new(pre: &InstancePre<Guest>, exports: &[String]) -> wasmtime::Result<Self> {
        let managed = exports.iter().any(|name| name == LIFECYCLE);
        let lifecycle = managed.then(|| lifecycle::GuestIndices::new(pre)).transpose()?;
        Ok(Self { tools: tools::GuestIndices::new(pre)?, lifecycle })
    }
}

impl PluginAbi for V0_1 {
    fn list_tools<'a>(
        &'a self,
        store: &'a mut Store<Guest>,
        instance: Instance,
    ) -> BoxFuture<'a, wasmtime::Result<Vec<RawTool>>> {
        Box::pin(async move {
            let guest = self.tools.load(&mut *store, &instance).map_err(Mismatch::wrap)?;
            let specs = guest.call_list_tools(store).await?;
            Ok(specs.into_iter().map(raw_tool).collect())
        })
    }

    fn call_tool<'a>(
        &'a self,
        store: &'a mut Store<Guest>,
        instance: Instance,
        call: &'a Admitted,
    ) -> BoxFuture<'a, wasmtime::Result<ToolReturn>> {
        Box::pin(async move {
            let guest = self.tools.load(&mut *store, &instance).map_err(Mismatch::wrap)?;
            let context = call_context(call, store.data().case.clock.left());
            let output_bytes_max = store.data().output_bytes_max();
            let name = call.tool().tool.as_str();
            let arguments = call.text().to_owned();
            let result = guest.call_call_tool(store, &context, name, &arguments).await?;
            Ok(match result {
                Ok(output) => tool_output(output, output_bytes_max),
                Err(error) => tool_error(error, output_bytes_max),
            })
        })
    }

    fn is_managed(&self) -> bool {
        self.lifecycle.is_some()
    }

    fn setup<'a>(
        &'a self,
        store: &'a mut Store<Guest>,
        instance: Instance,
    ) -> BoxFuture<'a, wasmtime::Result<Result<(), String>>> {
        Box::pin(async move {
            let Some(lifecycle) = &self.lifecycle else { return Ok(Ok(())) };
            let guest = lifecycle.load(&mut *store, &instance).map_err(Mismatch::wrap)?;
            Ok(guest.call_setup(store).await?.map_err(setup_error))
        })
    }

    fn teardown<'a>(
        &'a self,
        store: &'a mut Store<Guest>,
        instance: Instance,
    ) -> BoxFuture<'a, wasmtime::Result<()>> {
        Box::pin(async move {
            let Some(lifecycle) = &self.lifecycle else { return Ok(()) };
            let guest = lifecycle.load(&mut *store, &instance).map_err(Mismatch::wrap)?;
            guest.call_teardown(store).await
        })
    }
}

fn raw_tool(spec: wit::ToolSpec) -> RawTool {
    RawTool {
        name: spec.name,
        description: spec.description,
        parameters: spec.parameters,
        output: spec.output,
        hints: Hints {
            read_only: spec.hints.read_only,
            destructive: spec.hints.destructive,
            idempotent: spec.hints.idempotent,
            open_world: spec.hints.open_world,
        },
    }
}

fn call_context(call: &Admitted, time_left: Duration) -> wit::CallContext {
    let context = call.context();
    wit::CallContext {
        call_id: context.call_id.clone(),
        session_id: context.session_id.clone(),
        user_id: context.user_id.clone(),
        conversation_id: context.conversation_id.clone(),
        deadline_ms: Some(u64::try_from(time_left.as_millis()).unwrap_or(u64::MAX)),
        extra: None,
    }
}

/// Takes an output apart. What is not JSON, or too large, is the plugin's failure.
fn tool_output(output: wit::ToolOutput, bytes_max: u64) -> ToolReturn {
    let bytes = output_bytes(&output);
    if bytes > bytes_max {
        let message =
            format!("the tool returned {bytes} bytes, its limit is {bytes_max} (limits.output)");
        return ToolReturn::Error(Failure::new(FailureKind::LimitReached, message));
    }
    match parse_output(output) {
        Ok(output) => ToolReturn::Output(output),
        Err(error) => {
            let message = format!("the tool returned a broken result: {error}");
            ToolReturn::Error(Failure::new(FailureKind::BadOutput, message))
        }
    }
}

fn parse_output(output: wit::ToolOutput) -> Result<ToolOutput, json::JsonError> {
    let content = output.content.into_iter().map(content).collect::<Result<_, _>>()?;
    Ok(ToolOutput { data: json::parse(&output.data, usize::MAX)?, content, speech: output.speech })
}

fn output_bytes(output: &wit::ToolOutput) -> u64 {
    let content: usize = output.content.iter().map(content_bytes).sum();
    let speech = output.speech.as_ref().map_or(0, String::len);
    (output.data.len() + speech + content) as u64
}

/// Every part counts at least as much as its own record, so that empty ones are not free.
fn content_bytes(content: &wit::Content) -> usize {
    let optional = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    let text = match content {
        wit::Content::Text(text) | wit::Content::Other(text) => text.len(),
        wit::Content::Image(blob) | wit::Content::Audio(blob) => {
            blob.data.len() + blob.media_type.len()
        }
        wit::Content::Link(link) => {
            link.uri.len() + optional(&link.media_type) + optional(&link.title)
        }
    };
    text + size_of::<wit::Content>()
}

fn content(content: wit::Content) -> Result<Content, json::JsonError> {
    Ok(match content {
        wit::Content::Text(text) => Content::Text { text },
        wit::Content::Image(blob) => {
            Content::Image { media_type: blob.media_type, data: blob.data }
        }
        wit::Content::Audio(blob) => {
            Content::Audio { media_type: blob.media_type, data: blob.data }
        }
        wit::Content::Link(link) => {
            Content::Resource { uri: link.uri, media_type: link.media_type, title: link.title }
        }
        // A part that this version does not know is still data that the model can read.
        wit::Content::Other(text) => {
            Content::Text { text: json::parse(&text, usize::MAX)?.to_string() }
        }
    })
}

fn tool_error(error: wit::ToolError, bytes_max: u64) -> ToolReturn {
    let (kind, text) = match error {
        wit::ToolError::InvalidArguments(text) => (FailureKind::InvalidArguments, text),
        wit::ToolError::NotFound(text) => (FailureKind::NotFound, text),
        wit::ToolError::AuthRequired(text) => (FailureKind::AuthRequired, text),
        wit::ToolError::Unavailable(text) => (FailureKind::Unavailable, text),
        wit::ToolError::Failed(text) => (FailureKind::Failed, text),
        wit::ToolError::Other(text) => (FailureKind::Failed, message_in(text)),
        wit::ToolError::Denied(text) => return ToolReturn::Denied(shorten(text, bytes_max)),
    };
    ToolReturn::Error(Failure::new(kind, shorten(text, bytes_max)))
}

/// The `message` of an `other` case; the whole text when it keeps to no form.
fn message_in(text: String) -> String {
    let value = json::parse(&text, usize::MAX).ok();
    let message = value.and_then(|value| Some(value.get("message")?.as_str()?.to_owned()));
    message.unwrap_or(text)
}

/// An error's text obeys the output limit too; what is too long is cut, not refused.
fn shorten(mut text: String, bytes_max: u64) -> String {
    let bytes_max = usize::try_from(bytes_max).unwrap_or(usize::MAX);
    text.truncate(text.floor_char_boundary(bytes_max));
    text
}

fn setup_error(error: lifecycle::SetupError) -> String {
    match error {
        lifecycle::SetupError::MissingSettings(names) => {
            format!("these settings are missing: {}", names.join(", "))
        }
        lifecycle::SetupError::Unavailable(text) => text,
        lifecycle::SetupError::Other(text) => message_in(text),
    }
}
