//! Removes secrets from the lines of a tape.
//!
//! A text that is one piece on the tape is cleaned as one piece, so a request built from cleaned
//! parts equals the cleaned request.

use std::{borrow::Cow, mem};

use sallyport_contract::{
    Redactor, ToolSpec,
    services::{Notice, Origin},
};
use sallyport_model::{
    AssistantMessage, Attachment, CallRequest, Delta, Finish, LeftOut, Message, ModelError, Opaque,
    Reply, ToolDefinition, ToolResult, UserMessage,
};

use super::line::Recollected;
use crate::{Options, Recalled};

pub(super) fn text(redactor: &Redactor, text: &mut String) {
    if let Cow::Owned(clean) = redactor.text(text) {
        *text = clean;
    }
}

pub(super) fn options(redactor: &Redactor, options: &mut Options) {
    text(redactor, &mut options.session_id);
    options.system_prompt.iter_mut().for_each(|prompt| text(redactor, prompt));
    options.memories.iter_mut().for_each(|memory| text(redactor, memory));
}

pub(super) fn message(redactor: &Redactor, message: &mut Message) {
    match message {
        Message::System { text: system } => text(redactor, system),
        Message::User(said) => input(redactor, said),
        Message::Assistant(answer) => self::answer(redactor, answer),
        Message::Tool(ToolResult { call_id, name, content, failed: _ }) => {
            [call_id, name, content].into_iter().for_each(|part| text(redactor, part));
        }
    }
}

pub(super) fn notice(redactor: &Redactor, notice: &mut Notice) {
    text(redactor, &mut notice.session_id);
    text(redactor, &mut notice.text);
    notice.speech.iter_mut().for_each(|speech| text(redactor, speech));
}

pub(super) fn recollected(redactor: &Redactor, end: &mut Recollected) {
    match end {
        Recollected::Found(memories) => {
            for Recalled { id, text: words, similarity, turn: _ } in memories {
                [id, words].into_iter().for_each(|part| text(redactor, part));
                // JSON supports finite numbers only.
                *similarity = if similarity.is_finite() { *similarity } else { 0.0 };
            }
        }
        Recollected::Failed(message) => text(redactor, message),
        Recollected::Dropped => {}
    }
}

pub(super) fn input(redactor: &Redactor, message: &mut UserMessage) {
    text(redactor, &mut message.text);
    message.aside.iter_mut().for_each(|aside| text(redactor, aside));
    if let Some(Origin { plugin: _, label, connection }) = &mut message.origin {
        [label, connection].into_iter().flatten().for_each(|part| text(redactor, part));
    }
    for Attachment { name, media_type, data } in &mut message.attachments {
        text(redactor, name);
        text(redactor, media_type);
        if let Cow::Owned(clean) = redactor.bytes(data) {
            *data = clean.into();
        }
    }
}

fn answer(redactor: &Redactor, message: &mut AssistantMessage) {
    text(redactor, &mut message.text);
    for CallRequest { id, name, arguments } in &mut message.calls {
        [id, name, arguments].into_iter().for_each(|part| text(redactor, part));
    }
    if let Some(Opaque { origin, body }) = &mut message.opaque {
        text(redactor, origin);
        redactor.value(body);
    }
}

pub(super) fn reply(redactor: &Redactor, reply: &mut Reply) {
    answer(redactor, &mut reply.message);
    if let Finish::Other(word) = &mut reply.finish {
        text(redactor, word);
    }
}

pub(super) fn definition(redactor: &Redactor, tool: &mut ToolDefinition) {
    text(redactor, &mut tool.name);
    text(redactor, &mut tool.description);
    redactor.value(&mut tool.parameters);
}

pub(super) fn tool(redactor: &Redactor, tool: &mut ToolSpec) {
    tool.title.iter_mut().for_each(|title| text(redactor, title));
    text(redactor, &mut tool.description);
    redactor.value(&mut tool.parameters);
    tool.output.iter_mut().for_each(|schema| redactor.value(schema));
}

pub(super) fn error(redactor: &Redactor, error: &mut ModelError) {
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
            text(redactor, provider);
            text(redactor, message);
        }
        ModelError::TimedOut { provider, .. } => text(redactor, provider),
        ModelError::Denied { provider, message, fix, .. } => {
            text(redactor, provider);
            text(redactor, message);
            fix.iter_mut().for_each(|fix| text(redactor, fix));
        }
    }
}

/// Cleans the pieces of an answer. A secret may be spread over several: then all text of that kind
/// becomes one piece, at the position of the first.
pub(super) fn deltas(redactor: &Redactor, deltas: &mut Vec<Delta>) {
    for delta in deltas.iter_mut() {
        match delta {
            Delta::Text(_) | Delta::Reasoning(_) => {}
            Delta::CallBegun { name: word } | Delta::Retry { reason: word, .. } => {
                text(redactor, word);
            }
            Delta::LeftOut(LeftOut::Tool { name, why: words }) => {
                [name, words].into_iter().for_each(|word| text(redactor, word));
            }
            Delta::LeftOut(LeftOut::File { name, media_type, .. }) => {
                [name, media_type].into_iter().for_each(|word| text(redactor, word));
            }
        }
    }
    pieces(redactor, deltas, |delta| match delta {
        Delta::Text(text) => Some(text),
        _ => None,
    });
    pieces(redactor, deltas, |delta| match delta {
        Delta::Reasoning(text) => Some(text),
        _ => None,
    });
}

fn pieces(
    redactor: &Redactor,
    deltas: &mut Vec<Delta>,
    piece: fn(&mut Delta) -> Option<&mut String>,
) {
    let whole: String = deltas.iter_mut().filter_map(piece).map(|text| text.as_str()).collect();
    if let Cow::Owned(mut clean) = redactor.text(&whole) {
        deltas.iter_mut().filter_map(piece).for_each(|text| *text = mem::take(&mut clean));
        deltas.retain_mut(|delta| piece(delta).is_none_or(|text| !text.is_empty()));
    }
}
