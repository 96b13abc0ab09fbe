//! A call on its way to a tool: first as a model wrote it, then as the gate let it through.

use std::{
    mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use serde_json::Value;

use crate::{name::ToolId, outcome::Effect};

/// Where a call comes from and how long it may take.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallContext {
    /// Unique within the session; ties the result to the model's request.
    pub call_id: String,
    /// The session that the call belongs to.
    pub session_id: String,
    /// The user on whose behalf the call is made; `None` only where nobody is asked about, as for the
    /// examples of a rule.
    pub user_id: Option<String>,
    /// The conversation that the call belongs to; `None` for a single call without one.
    pub conversation_id: Option<String>,
}

/// A call as it was asked for. Nothing about it has been checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolCall {
    /// Origin of the call.
    pub context: CallContext,
    /// The tool that is wanted; it may not exist.
    pub tool: ToolId,
    /// The arguments as text, exactly as the model wrote them; they may not even be JSON.
    pub arguments: String,
}

/// A call that has passed the gate: the tool exists, the arguments fit its schema, and policy and
/// person have agreed to *these* arguments.
///
/// It cannot be changed afterwards, so what runs is what was approved.
#[derive(Debug, Clone)]
pub struct Admitted {
    context: CallContext,
    tool: ToolId,
    text: String,
    arguments: Value,
    grounds: String,
    trail: Trail,
}

/// What the run of a call did that was given up before it could report: whoever runs it leaves that
/// here, and whoever keeps the records finds it. Clones are the same trail.
#[derive(Debug, Clone, Default)]
pub struct Trail(Arc<Mutex<Vec<Effect>>>);

impl Trail {
    /// Leaves what a run did.
    pub fn leave(&self, effects: Vec<Effect>) {
        self.effects().extend(effects);
    }

    /// Takes all that was left.
    pub fn take(&self) -> Vec<Effect> {
        mem::take(&mut self.effects())
    }

    /// Each change is whole by itself, so a panic elsewhere leaves the list sound.
    fn effects(&self) -> MutexGuard<'_, Vec<Effect>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Admitted {
    /// Marks a call as admitted. Only a toolbox's own `admit` may call this (a lint keeps it so).
    pub fn new(call: ToolCall, arguments: Value) -> Self {
        let ToolCall { context, tool, arguments: text } = call;
        let (grounds, trail) = (String::new(), Trail::default());
        Self { context, tool, text, arguments, grounds, trail }
    }

    /// The same call for another run, with a trail of its own.
    pub fn again(&self) -> Self {
        Self { trail: Trail::default(), ..self.clone() }
    }

    /// Adds the words of the decision that let the call through, for the record.
    pub fn on_grounds(self, grounds: String) -> Self {
        Self { grounds, ..self }
    }

    /// Why the call was let through: the decision and the rule or the answer behind it.
    pub fn grounds(&self) -> &str {
        &self.grounds
    }

    /// What a run of it did that was given up.
    pub fn trail(&self) -> &Trail {
        &self.trail
    }

    /// Origin of the call.
    pub fn context(&self) -> &CallContext {
        &self.context
    }

    /// The tool to run.
    pub fn tool(&self) -> &ToolId {
        &self.tool
    }

    /// The arguments, parsed and checked.
    pub fn arguments(&self) -> &Value {
        &self.arguments
    }

    /// The same arguments as the JSON text that was checked.
    pub fn text(&self) -> &str {
        &self.text
    }
}
