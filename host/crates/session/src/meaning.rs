//! What a model means by the calls that it wrote.
//!
//! Nothing of a call has been checked. It may name a tool of the session, the session's own search,
//! or nothing that there is; its arguments may be missing, and the answer may have been cut in the
//! middle of them. What cannot be carried out becomes an outcome here, in words that the model can
//! read and act on.

use sallyport_contract::{Failure, FailureKind, Outcome, ToolId, json};
use sallyport_model::{AssistantMessage, CallRequest, Finish, Reply};

use super::{
    naming::{self, ToolRef},
    toolset::{Toolset, Wanted},
};

/// Longest arguments, in bytes, that are read to see whether an answer was cut inside them. Longer
/// ones are taken to be cut: no model writes as much in one answer.
const CUT_BYTES_MAX: usize = 1024 * 1024;

/// A call as it is told of, and what is to come of it.
pub(super) struct Asked {
    pub(super) call_id: String,
    /// The name in the model's message.
    pub(super) name: String,
    pub(super) tool: ToolRef,
    /// The arguments for the tool.
    pub(super) arguments: String,
    pub(super) meaning: Meaning,
}

/// What is to come of a call.
pub(super) enum Meaning {
    /// The gate is asked.
    Call(ToolId),
    /// The session itself looks for tools.
    Search { query: String, limit: usize },
    /// Nothing can be done; the model reads why.
    Nothing(Outcome),
}

/// The tool, the arguments and the meaning of a call.
pub(super) type Meant = (ToolRef, String, Meaning);

/// Makes out what each call of an answer means.
pub(super) fn understand(reply: &Reply, toolset: &Toolset) -> Vec<Meant> {
    let calls = &reply.message.calls;
    let meant = calls.iter().enumerate().map(|(index, call)| {
        // Only the last call can be the one in which an answer was cut.
        let may_be_cut = reply.finish == Finish::Length && index + 1 == calls.len();
        meaning(call, may_be_cut, toolset)
    });
    meant.collect()
}

/// Puts the calls of a message together with what they mean.
pub(super) fn asked(message: &AssistantMessage, meant: Vec<Meant>) -> Vec<Asked> {
    let calls = message.calls.iter().zip(meant);
    calls
        .map(|(call, (tool, arguments, meaning))| Asked {
            call_id: call.id.clone(),
            name: call.name.clone(),
            tool,
            arguments,
            meaning,
        })
        .collect()
}

fn meaning(call: &CallRequest, may_be_cut: bool, toolset: &Toolset) -> Meant {
    let own = || ToolRef::Own(call.name.clone());
    let (tool, arguments, meaning) = match toolset.unwrap(call) {
        Wanted::Tool { name, arguments } => tool(&name, arguments, toolset),
        Wanted::Search { query, limit } => {
            (own(), call.arguments.clone(), Meaning::Search { query, limit })
        }
        Wanted::Broken(failure) => {
            let nothing = Meaning::Nothing(Outcome::InvalidArguments(failure));
            (own(), call.arguments.clone(), nothing)
        }
    };
    if may_be_cut && json::parse(&call.arguments, CUT_BYTES_MAX).is_err() {
        return (tool, call.arguments.clone(), Meaning::Nothing(cut_off()));
    }
    (tool, arguments, meaning)
}

/// A call without arguments is one with none.
fn tool(name: &str, arguments: String, toolset: &Toolset) -> Meant {
    let arguments = if arguments.trim().is_empty() { "{}".to_owned() } else { arguments };
    let tool = ToolRef::resolve(name, toolset.names());
    let meaning = match &tool {
        ToolRef::Known(id) => Meaning::Call(id.clone()),
        ToolRef::Own(_) | ToolRef::Unknown(_) => {
            Meaning::Nothing(Outcome::Failed(naming::no_such_tool(name, toolset.names())))
        }
    };
    (tool, arguments, meaning)
}

fn cut_off() -> Outcome {
    let message = "not called: the answer was cut at the length limit inside these arguments; \
        call again with shorter ones, or do it in several calls";
    Outcome::InvalidArguments(Failure::new(FailureKind::InvalidArguments, message))
}
