//! The meaning of the calls that a model wrote.
//!
//! Nothing about a call has been checked. It may name a tool of the session, the session's own
//! search, or nothing that exists; its arguments may be missing, and the answer may have been cut
//! in the middle of them. A call that cannot be carried out becomes an outcome here, with an error
//! that the model can read and act on.

use sallyport_contract::{CallFailure, FailureKind, Outcome, ToolId, json};
use sallyport_model::{AssistantMessage, FinishReason, ModelCallRequest, ModelReply};

use super::{
    results::ResultQuery,
    tool_names::{self, ToolRef},
    toolset::{Toolset, UnwrappedCall},
};

/// Longest arguments, in bytes, that are parsed to detect whether an answer was cut inside them.
/// Longer ones count as cut: no model writes as much in one answer.
const CUT_BYTES_MAX: usize = 1024 * 1024;

/// A call as it is announced, and its meaning.
pub(super) struct InterpretedCall {
    pub(super) call_id: String,
    /// The name in the model's message.
    pub(super) name: String,
    pub(super) tool: ToolRef,
    /// The arguments for the tool.
    pub(super) arguments: String,
    pub(super) meaning: CallMeaning,
}

/// The next step for a call.
pub(super) enum CallMeaning {
    /// The call goes to the gate.
    Call(ToolId),
    /// The session itself searches for tools.
    Search { query: String, limit: usize },
    /// The session itself reads a kept result.
    ReadResult(ResultQuery),
    /// The call cannot be made; the outcome states the reason for the model.
    Rejected(Outcome),
}

/// The tool, the arguments and the meaning of a call.
pub(super) type CallInterpretation = (ToolRef, String, CallMeaning);

/// Determines the meaning of each call of an answer.
pub(super) fn interpret_calls(reply: &ModelReply, toolset: &Toolset) -> Vec<CallInterpretation> {
    let calls = &reply.message.calls;
    let interpretations = calls.iter().enumerate().map(|(index, call)| {
        // Only the last call can be the one that was cut.
        let may_be_cut = reply.finish == FinishReason::Length && index + 1 == calls.len();
        interpret_call(call, may_be_cut, toolset)
    });
    interpretations.collect()
}

/// Combines the calls of a message with their meanings.
pub(super) fn combine_calls(
    message: &AssistantMessage,
    interpretations: Vec<CallInterpretation>,
) -> Vec<InterpretedCall> {
    let calls = message.calls.iter().zip(interpretations);
    calls
        .map(|(call, (tool, arguments, meaning))| InterpretedCall {
            call_id: call.id.clone(),
            name: call.name.clone(),
            tool,
            arguments,
            meaning,
        })
        .collect()
}

fn interpret_call(
    call: &ModelCallRequest,
    may_be_cut: bool,
    toolset: &Toolset,
) -> CallInterpretation {
    let own_tool = || ToolRef::Own(call.name.clone());
    let (tool, arguments, meaning) = match toolset.parse_call(call) {
        UnwrappedCall::Tool { name, arguments } => resolve_tool(&name, arguments, toolset),
        UnwrappedCall::Search { query, limit } => {
            (own_tool(), call.arguments.clone(), CallMeaning::Search { query, limit })
        }
        UnwrappedCall::ReadResult(query) => {
            (own_tool(), call.arguments.clone(), CallMeaning::ReadResult(query))
        }
        UnwrappedCall::Broken(failure) => {
            let rejected = CallMeaning::Rejected(Outcome::InvalidArguments(failure));
            (own_tool(), call.arguments.clone(), rejected)
        }
    };
    if may_be_cut && json::parse_json(&call.arguments, CUT_BYTES_MAX).is_err() {
        return (tool, call.arguments.clone(), CallMeaning::Rejected(cut_off_outcome()));
    }
    (tool, arguments, meaning)
}

/// Missing arguments count as an empty object.
fn resolve_tool(name: &str, arguments: String, toolset: &Toolset) -> CallInterpretation {
    let arguments = if arguments.trim().is_empty() { "{}".to_owned() } else { arguments };
    let tool = ToolRef::resolve(name, toolset.name_table());
    let meaning = match &tool {
        ToolRef::Known(id) => CallMeaning::Call(id.clone()),
        ToolRef::Own(_) | ToolRef::Unknown(_) => CallMeaning::Rejected(Outcome::Failed(
            tool_names::unknown_tool_failure(name, toolset.name_table()),
        )),
    };
    (tool, arguments, meaning)
}

fn cut_off_outcome() -> Outcome {
    let message = "not called: the answer was cut at the length limit inside these arguments; \
        call again with shorter ones, or do it in several calls";
    Outcome::InvalidArguments(CallFailure::new(FailureKind::InvalidArguments, message))
}
