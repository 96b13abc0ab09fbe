//! Removes secrets from the lines of a tape.
//!
//! A text that is one piece on the tape is cleaned as one piece, so a request built from cleaned
//! parts equals the cleaned request.

use std::{borrow::Cow, mem};

use sallyport_contract::{
    Redactor, ToolDescriptor,
    services::{InputOrigin, PluginNotice},
};
use sallyport_model::{
    AssistantMessage, ChatMessage, FileAttachment, FinishReason, ModelCallRequest, ModelError,
    ModelReply, ModelToolDefinition, OmittedContent, OpaqueMessage, ReplyDelta, ToolResultMessage,
    UserInputMessage,
};

use super::line::RecallOutcome;
use crate::{RecalledMemory, SessionOptions};

pub(super) fn clean_text(redactor: &Redactor, text: &mut String) {
    if let Cow::Owned(clean) = redactor.redact_text(text) {
        *text = clean;
    }
}

pub(super) fn clean_options(redactor: &Redactor, options: &mut SessionOptions) {
    clean_text(redactor, &mut options.session_id);
    options.system_prompt.iter_mut().for_each(|prompt| clean_text(redactor, prompt));
    options.memories.iter_mut().for_each(|memory| clean_text(redactor, memory));
}

pub(super) fn clean_message(redactor: &Redactor, message: &mut ChatMessage) {
    match message {
        ChatMessage::System { text: system } => clean_text(redactor, system),
        ChatMessage::User(input) => clean_input(redactor, input),
        ChatMessage::Assistant(answer) => self::clean_answer(redactor, answer),
        ChatMessage::Tool(ToolResultMessage { call_id, name, content, failed: _ }) => {
            [call_id, name, content].into_iter().for_each(|part| clean_text(redactor, part));
        }
    }
}

pub(super) fn clean_notice(redactor: &Redactor, notice: &mut PluginNotice) {
    clean_text(redactor, &mut notice.session_id);
    clean_text(redactor, &mut notice.text);
    notice.speech.iter_mut().for_each(|speech| clean_text(redactor, speech));
}

pub(super) fn clean_recall(redactor: &Redactor, end: &mut RecallOutcome) {
    match end {
        RecallOutcome::Found(memories) => {
            for RecalledMemory { id, text: memory_text, similarity, turn: _ } in memories {
                [id, memory_text].into_iter().for_each(|part| clean_text(redactor, part));
                // JSON supports finite numbers only.
                *similarity = if similarity.is_finite() { *similarity } else { 0.0 };
            }
        }
        RecallOutcome::Failed(message) => clean_text(redactor, message),
        RecallOutcome::Dropped => {}
    }
}

pub(super) fn clean_input(redactor: &Redactor, message: &mut UserInputMessage) {
    clean_text(redactor, &mut message.text);
    message.aside.iter_mut().for_each(|aside| clean_text(redactor, aside));
    if let Some(InputOrigin { plugin: _, label, connection }) = &mut message.origin {
        [label, connection].into_iter().flatten().for_each(|part| clean_text(redactor, part));
    }
    for FileAttachment { name, media_type, data } in &mut message.attachments {
        clean_text(redactor, name);
        clean_text(redactor, media_type);
        if let Cow::Owned(clean) = redactor.redact_bytes(data) {
            *data = clean.into();
        }
    }
}

fn clean_answer(redactor: &Redactor, message: &mut AssistantMessage) {
    clean_text(redactor, &mut message.text);
    for ModelCallRequest { id, name, arguments } in &mut message.calls {
        [id, name, arguments].into_iter().for_each(|part| clean_text(redactor, part));
    }
    if let Some(OpaqueMessage { origin, body }) = &mut message.opaque {
        clean_text(redactor, origin);
        redactor.redact_value(body);
    }
}

pub(super) fn clean_reply(redactor: &Redactor, reply: &mut ModelReply) {
    clean_answer(redactor, &mut reply.message);
    if let FinishReason::Other(word) = &mut reply.finish {
        clean_text(redactor, word);
    }
}

pub(super) fn clean_definition(redactor: &Redactor, tool: &mut ModelToolDefinition) {
    clean_text(redactor, &mut tool.name);
    clean_text(redactor, &mut tool.description);
    redactor.redact_value(&mut tool.parameters);
}

pub(super) fn clean_tool(redactor: &Redactor, tool: &mut ToolDescriptor) {
    tool.title.iter_mut().for_each(|title| clean_text(redactor, title));
    clean_text(redactor, &mut tool.description);
    redactor.redact_value(&mut tool.parameters);
    tool.output.iter_mut().for_each(|schema| redactor.redact_value(schema));
}

pub(super) fn clean_error(redactor: &Redactor, error: &mut ModelError) {
    match error {
        ModelError::Credentials { provider, message }
        | ModelError::Unreachable { provider, message }
        | ModelError::TooLong { provider, message }
        | ModelError::Spent { provider, message }
        | ModelError::RateLimited { provider, message, .. }
        | ModelError::Refused { provider, message, .. }
        | ModelError::Broken { provider, message }
        | ModelError::Declined { provider, message }
        | ModelError::Stopped { provider, message } => {
            clean_text(redactor, provider);
            clean_text(redactor, message);
        }
        ModelError::TimedOut { provider, .. } => clean_text(redactor, provider),
        ModelError::Denied { provider, message, fix, .. } => {
            clean_text(redactor, provider);
            clean_text(redactor, message);
            let texts = fix.iter_mut().flat_map(|fix| fix.texts_mut());
            texts.for_each(|text| clean_text(redactor, text));
        }
    }
}

/// Cleans the pieces of an answer. A secret may be spread over several: then all text of that kind
/// becomes one piece, at the position of the first.
pub(super) fn clean_deltas(redactor: &Redactor, deltas: &mut Vec<ReplyDelta>) {
    for delta in deltas.iter_mut() {
        match delta {
            ReplyDelta::Text { .. } | ReplyDelta::Reasoning { .. } => {}
            ReplyDelta::CallBegun { name: word } | ReplyDelta::Retry { reason: word, .. } => {
                clean_text(redactor, word);
            }
            ReplyDelta::LeftOut(OmittedContent::Tool { name, why: memory_text }) => {
                [name, memory_text].into_iter().for_each(|word| clean_text(redactor, word));
            }
            ReplyDelta::LeftOut(OmittedContent::File { name, media_type, .. }) => {
                [name, media_type].into_iter().for_each(|word| clean_text(redactor, word));
            }
        }
    }
    clean_pieces(redactor, deltas, |delta| match delta {
        ReplyDelta::Text { text } => Some(text),
        _ => None,
    });
    clean_pieces(redactor, deltas, |delta| match delta {
        ReplyDelta::Reasoning { text } => Some(text),
        _ => None,
    });
}

fn clean_pieces(
    redactor: &Redactor,
    deltas: &mut Vec<ReplyDelta>,
    piece: fn(&mut ReplyDelta) -> Option<&mut String>,
) {
    let whole: String = deltas.iter_mut().filter_map(piece).map(|text| text.as_str()).collect();
    if let Cow::Owned(mut clean) = redactor.redact_text(&whole) {
        deltas.iter_mut().filter_map(piece).for_each(|text| *text = mem::take(&mut clean));
        deltas.retain_mut(|delta| piece(delta).is_none_or(|text| !text.is_empty()));
    }
}
