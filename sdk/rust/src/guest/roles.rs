//! The exports of the small roles: timers, listeners, guides and UIs.

use super::{
    bindings::{
        guide::exports::sallyport::plugin::guide as wit_guide,
        listener::exports::sallyport::plugin::listener as wit_listener,
        timers::exports::sallyport::plugin::timers as wit_timers,
        tools::sallyport::plugin::types::{CallContext, ToolError},
        ui::exports::sallyport::plugin::ui as wit_ui,
    },
    value,
};
use crate::{
    guide::Persona,
    listener::{Listener, Reply, Signal},
    plugin::{Guide, Listens, Shows, Timed},
    session,
    ui::{Activity, Author, CallRequest, CallResult, Event, Format, Message, Ui},
};

impl<P: Timed> wit_timers::Guest for P {
    fn on_timer(context: CallContext, firing: wit_timers::Firing) -> Result<(), ToolError> {
        Ok(P::on_timer(firing.into(), &context.into())?)
    }
}

impl<P: Listens> wit_listener::Guest for P {
    fn start() -> Result<(), ToolError> {
        Ok(session::with(P::Listener::start)?)
    }

    fn stop() {
        session::with(P::Listener::stop);
    }

    fn handle(
        connection: String,
        signal: wit_listener::Signal,
    ) -> Result<Vec<wit_listener::Reply>, ToolError> {
        let handle = |listener: &mut P::Listener| listener.handle(&connection, signal.into());
        Ok(session::with(handle)?.into_iter().map(Into::into).collect())
    }
}

impl<P: Guide> wit_guide::Guest for P {
    fn describe() -> wit_guide::Persona {
        P::describe().into()
    }
}

impl<P: Shows> wit_ui::Guest for P {
    fn on_event(event: wit_ui::Event) {
        session::with(|ui: &mut P::Ui| ui.on_event(event.into()));
    }
}

impl From<wit_listener::Signal> for Signal {
    fn from(signal: wit_listener::Signal) -> Self {
        match signal {
            wit_listener::Signal::Opened(opening) => Self::Opened(opening.peer),
            wit_listener::Signal::Text(text) => Self::Text(text),
            wit_listener::Signal::Binary(bytes) => Self::Binary(bytes),
            wit_listener::Signal::Answered(answer) => Self::Answered(answer.text),
            wit_listener::Signal::Closed => Self::Closed,
            wit_listener::Signal::Other(other) => Self::Other(value(other)),
        }
    }
}

impl From<Reply> for wit_listener::Reply {
    fn from(reply: Reply) -> Self {
        match reply {
            Reply::Text(text) => Self::Text(text),
            Reply::Binary(bytes) => Self::Binary(bytes),
            Reply::Close => Self::Close,
            Reply::Other(other) => Self::Other(other.to_string()),
        }
    }
}

impl From<Persona> for wit_guide::Persona {
    fn from(persona: Persona) -> Self {
        Self {
            system_prompt: persona.system_prompt,
            temperature: persona.temperature,
            memory_policy: persona.memory_policy.map(|policy| policy.word().to_owned()),
            initial_memories: persona.initial_memories,
            extra: None,
        }
    }
}

impl From<wit_ui::Event> for Event {
    fn from(event: wit_ui::Event) -> Self {
        match event {
            wit_ui::Event::NewMessage(message) => Self::NewMessage(message.into()),
            wit_ui::Event::Delta(text) => Self::Delta(text),
            wit_ui::Event::ToolCallRequested(request) => Self::ToolCallRequested(request.into()),
            wit_ui::Event::ConfirmationClosed(id) => Self::ConfirmationClosed(id),
            wit_ui::Event::ToolCallFinished(result) => Self::ToolCallFinished(result.into()),
            wit_ui::Event::ReadyForInput => Self::ReadyForInput,
            wit_ui::Event::StateChanged(activity) => Self::StateChanged(activity.into()),
            wit_ui::Event::Line(line) => Self::Line(line),
            wit_ui::Event::Other(other) => Self::Other(value(other)),
        }
    }
}

impl From<wit_ui::Message> for Message {
    fn from(message: wit_ui::Message) -> Self {
        let author = match message.author {
            wit_ui::Author::User => Author::User,
            wit_ui::Author::Assistant => Author::Assistant,
            // An unknown author is not a participant in the conversation.
            wit_ui::Author::Notice | wit_ui::Author::Other(_) => Author::Notice,
        };
        let format = match message.format {
            // An unknown format is shown as plain text.
            wit_ui::Format::Text | wit_ui::Format::Other(_) => Format::Text,
            wit_ui::Format::Markdown => Format::Markdown,
        };
        Self { author, content: message.content, format, origin: message.origin }
    }
}

impl From<wit_ui::ToolCallRequest> for CallRequest {
    fn from(request: wit_ui::ToolCallRequest) -> Self {
        Self {
            confirmation_id: request.confirmation_id,
            call_id: request.call_id,
            tool: request.tool,
            arguments: value(request.arguments),
            security_warning: request.security_warning,
            extra: request.extra.map(value),
        }
    }
}

impl From<wit_ui::ToolCallResult> for CallResult {
    fn from(result: wit_ui::ToolCallResult) -> Self {
        let wit_ui::ToolCallResult { call_id, tool, outcome, data, extra: _ } = result;
        Self { call_id, tool, outcome, data: value(data) }
    }
}

impl From<wit_ui::Activity> for Activity {
    fn from(activity: wit_ui::Activity) -> Self {
        match activity {
            wit_ui::Activity::Ready => Self::Ready,
            wit_ui::Activity::Thinking => Self::Thinking,
            // An unknown activity does not accept input either.
            wit_ui::Activity::Executing | wit_ui::Activity::Other(_) => Self::Executing,
            wit_ui::Activity::WaitingForApproval => Self::WaitingForApproval,
        }
    }
}
