//! A tool call: first as a model wrote it, then as the gate admitted it.

use std::{
    fmt, mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    boxed_future::BoxFuture,
    name::ToolId,
    outcome::{CallReport, Effect},
    principal::ToolCallContext,
    user_answer::UserAnswer,
};

/// A call as requested. Nothing about it has been checked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RequestedCall {
    /// Origin of the call.
    #[serde(flatten)]
    pub context: ToolCallContext,
    /// The requested tool; it may not exist.
    pub tool: ToolId,
    /// The arguments as text, exactly as the model wrote them; they may not be valid JSON.
    pub arguments: String,
}

/// A call that has passed the gate: the tool exists, the arguments fit its schema, and policy and
/// the user have accepted *these* arguments.
///
/// It cannot change afterwards, so the call that runs is the call that was approved.
#[derive(Debug, Clone)]
pub struct AdmittedCall {
    context: ToolCallContext,
    tool: ToolId,
    arguments_text: String,
    arguments: Value,
    authorization_reason: String,
    user_answer: Option<UserAnswer>,
    grant_answer: Option<Effect>,
    abandoned_effects: AbandonedEffects,
}

/// The effects of a run that was abandoned before it could report. The runner leaves them here and
/// the record keeper takes them. Clones share one trail.
#[derive(Debug, Clone, Default)]
pub struct AbandonedEffects(Arc<Mutex<Vec<Effect>>>);

impl AbandonedEffects {
    /// Adds the effects of a run.
    pub fn add_effects(&self, effects: Vec<Effect>) {
        self.lock_effects().extend(effects);
    }

    /// Takes all effects that were left.
    pub fn take_effects(&self) -> Vec<Effect> {
        mem::take(&mut self.lock_effects())
    }

    /// Ignores poisoning because each change is complete in itself, so a panic elsewhere leaves the
    /// list consistent.
    fn lock_effects(&self) -> MutexGuard<'_, Vec<Effect>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AdmittedCall {
    /// Marks a call as admitted. Only a toolbox's own `admit` may call this (a lint enforces it).
    pub fn new(call: RequestedCall, arguments: Value) -> Self {
        let RequestedCall { context, tool, arguments: arguments_text } = call;
        Self {
            context,
            tool,
            arguments_text,
            arguments,
            authorization_reason: String::new(),
            user_answer: None,
            grant_answer: None,
            abandoned_effects: AbandonedEffects::default(),
        }
    }

    /// Returns the same call for another run, with a trail of its own.
    pub fn clone_for_rerun(&self) -> Self {
        let abandoned_effects = AbandonedEffects::default();
        Self { grant_answer: None, abandoned_effects, ..self.clone() }
    }

    /// Adds the reason for the admission, for the record.
    pub fn with_authorization_reason(self, reason: String) -> Self {
        Self { authorization_reason: reason, ..self }
    }

    /// Adds the user's answer, if the user was asked just now.
    pub fn with_user_answer(self, answer: Option<UserAnswer>) -> Self {
        Self { user_answer: answer, ..self }
    }

    /// Adds the grant that the user gave so that the call can run at all, as an effect.
    pub fn with_grant_answer(self, effect: Option<Effect>) -> Self {
        Self { grant_answer: effect, ..self }
    }

    /// The grant that the user gave so that the call can run at all.
    pub fn grant_answer(&self) -> Option<&Effect> {
        self.grant_answer.as_ref()
    }

    /// The user's answer, if the user was asked about the call.
    pub fn user_answer(&self) -> Option<UserAnswer> {
        self.user_answer
    }

    /// Why the call was admitted: the decision and the rule or the answer behind it.
    pub fn authorization_reason(&self) -> &str {
        &self.authorization_reason
    }

    /// The effects of a run that was abandoned.
    pub fn abandoned_effects(&self) -> &AbandonedEffects {
        &self.abandoned_effects
    }

    /// Origin of the call.
    pub fn context(&self) -> &ToolCallContext {
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
    pub fn arguments_text(&self) -> &str {
        &self.arguments_text
    }
}

/// An admitted call, and the run that it was admitted for. Nothing is looked up between the two, so
/// what runs is what was approved.
pub struct Admission {
    call: Arc<AdmittedCall>,
    run: BoxFuture<'static, CallReport>,
}

impl Admission {
    /// Binds an admitted call to its run, which starts when it is first polled.
    pub fn new<F>(call: AdmittedCall, run: impl FnOnce(Arc<AdmittedCall>) -> F) -> Self
    where
        F: Future<Output = CallReport> + Send + 'static,
    {
        let call = Arc::new(call);
        Self { run: Box::pin(run(Arc::clone(&call))), call }
    }

    /// The call.
    pub fn call(&self) -> &AdmittedCall {
        &self.call
    }

    /// Does something around the run, such as recording it.
    #[must_use]
    pub fn wrap_run<F>(
        self,
        wrap: impl FnOnce(Arc<AdmittedCall>, BoxFuture<'static, CallReport>) -> F,
    ) -> Self
    where
        F: Future<Output = CallReport> + Send + 'static,
    {
        let Self { call, run } = self;
        Self { run: Box::pin(wrap(Arc::clone(&call), run)), call }
    }

    /// Runs the call. Dropping the future cancels the call.
    pub fn run_call(self) -> BoxFuture<'static, CallReport> {
        self.run
    }
}

impl fmt::Debug for Admission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Admission").field("call", &self.call).finish_non_exhaustive()
    }
}
