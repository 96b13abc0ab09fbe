//! One session of a client.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use sallyport_contract::{ApprovalRequest, ApprovalSubject, ToolId, TraceParent};
use sallyport_model::{ChatModel, UserInputMessage};
use sallyport_runtime::HostSession;
use sallyport_session::{FrontEndCommand, SessionHandle};
use serde_json::Value;
use tokio::sync::{mpsc, watch};

use crate::{
    prompt::{self, ContentBlock},
    rpc::{RequestId, RpcError},
    session_config::{QuestionMode, mode_state},
};

/// Most commands that wait for a session whose client does not read its updates.
const ORDERS_WAITING_MAX: usize = 64;

/// Something that a session does, in the order of the client's messages.
pub(crate) enum SessionOrder {
    Command(FrontEndCommand),
    /// An input, with the client's place in a trace.
    Prompt(UserInputMessage, Option<TraceParent>),
    UseModel(Arc<dyn ChatModel>),
}

/// A session of a client. An [`EventFeed`](crate::event_feed::EventFeed) sends its events.
pub(crate) struct AcpSession {
    id: String,
    folder: String,
    orders: mpsc::Sender<SessionOrder>,
    state: Mutex<AcpSessionState>,
    /// Becomes true when the session has ended.
    has_ended: watch::Receiver<bool>,
}

struct AcpSessionState {
    /// The request whose turn runs, or waits to run.
    prompt: Option<RequestId>,
    /// The client's place in a trace, from the same request.
    caller: Option<TraceParent>,
    mode: QuestionMode,
    model_name: String,
    context_tokens: Option<u64>,
    /// What the user has refused for the rest of the session.
    refused: HashSet<RefusedSubject>,
    /// Sentences for the user, which wait for the next turn.
    notes: Vec<String>,
}

/// Something that the user refused: the same subject of the same tool, whatever its arguments.
type RefusedSubject = (ToolId, ApprovalSubject);

impl AcpSession {
    /// A session of the host, which has ended when `has_ended` says so.
    pub(crate) fn new(
        host_session: &HostSession,
        folder: String,
        model_name: String,
        context_tokens: Option<u64>,
        has_ended: watch::Receiver<bool>,
    ) -> Self {
        let (orders, waiting_orders) = mpsc::channel(ORDERS_WAITING_MAX);
        tokio::spawn(forward_orders(host_session.handle.clone(), waiting_orders));
        Self {
            id: host_session.session_id.clone(),
            folder,
            orders,
            state: Mutex::new(AcpSessionState {
                prompt: None,
                caller: None,
                mode: QuestionMode::Ask,
                model_name,
                context_tokens,
                refused: HashSet::new(),
                notes: Vec::new(),
            }),
            has_ended,
        }
    }

    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// The folder that the client works in.
    pub(crate) fn folder(&self) -> &str {
        &self.folder
    }

    /// Begins a turn. The feed answers the request when the turn ends.
    pub(crate) fn begin_prompt(
        &self,
        id: RequestId,
        blocks: Vec<ContentBlock>,
        caller: Option<TraceParent>,
    ) -> Result<(), RpcError> {
        let input = prompt::input_from_blocks(blocks)?;
        let mut state = self.state();
        if state.prompt.is_some() {
            let text = "a prompt is running in this session; cancel it or wait for its end";
            return Err(RpcError::invalid_request(text));
        }
        self.try_order(SessionOrder::Prompt(input, caller))?;
        (state.prompt, state.caller) = (Some(id), caller);
        Ok(())
    }

    /// Cancels the turn, if one runs. The request that began it is answered with that.
    pub(crate) fn cancel_prompt(&self) {
        if self.state().prompt.is_some() {
            // If there is no room, enough cancels wait.
            let _ = self.try_order(SessionOrder::Command(FrontEndCommand::Cancel));
        }
    }

    /// Whether the turn of this request runs.
    pub(crate) fn runs_prompt(&self, id: &RequestId) -> bool {
        self.state().prompt.as_ref() == Some(id)
    }

    /// The client's place in the trace of the turn that runs, for requests to the client.
    pub(crate) fn caller(&self) -> Option<TraceParent> {
        self.state().caller
    }

    /// Takes the request whose turn has ended.
    pub(crate) fn take_prompt(&self) -> Option<RequestId> {
        let mut state = self.state();
        state.caller = None;
        state.prompt.take()
    }

    /// Gives an order, and waits for room.
    pub(crate) async fn order(&self, command: FrontEndCommand) {
        // A session that has ended needs no order.
        let _ = self.orders.send(SessionOrder::Command(command)).await;
    }

    fn try_order(&self, order: SessionOrder) -> Result<(), RpcError> {
        self.orders.try_send(order).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => {
                RpcError::invalid_request("the session has too much to do; read its updates first")
            }
            mpsc::error::TrySendError::Closed(_) => RpcError::not_found("the session has ended"),
        })
    }

    /// Has another model answer from the next turn on.
    pub(crate) fn use_model(
        &self,
        model: Arc<dyn ChatModel>,
        name: String,
        context_tokens: Option<u64>,
    ) -> Result<(), RpcError> {
        let mut state = self.state();
        self.try_order(SessionOrder::UseModel(model))?;
        (state.model_name, state.context_tokens) = (name, context_tokens);
        Ok(())
    }

    pub(crate) fn model_name(&self) -> String {
        self.state().model_name.clone()
    }

    pub(crate) fn context_tokens(&self) -> Option<u64> {
        self.state().context_tokens
    }

    pub(crate) fn set_mode(&self, mode: QuestionMode) {
        self.state().mode = mode;
    }

    pub(crate) fn mode(&self) -> QuestionMode {
        self.state().mode
    }

    pub(crate) fn mode_state(&self) -> Value {
        mode_state(self.mode())
    }

    /// Adds a sentence for the user, which is shown with the next turn.
    pub(crate) fn add_note(&self, note: String) {
        self.state().notes.push(note);
    }

    pub(crate) fn take_notes(&self) -> Vec<String> {
        std::mem::take(&mut self.state().notes)
    }

    /// Remembers that the user refuses the subject of a question for the rest of the session.
    pub(crate) fn refuse_from_now_on(&self, request: &ApprovalRequest) {
        self.state().refused.insert(refused_subject(request));
    }

    /// Whether the user has refused the subject of a question for the rest of the session.
    pub(crate) fn is_refused(&self, request: &ApprovalRequest) -> bool {
        self.state().refused.contains(&refused_subject(request))
    }

    /// Ends the session, without waiting for it.
    pub(crate) fn begin_close(&self) {
        let order = SessionOrder::Command(FrontEndCommand::Close);
        if self.try_order(order).is_err() {
            let orders = self.orders.clone();
            tokio::spawn(async move {
                let _ = orders.send(SessionOrder::Command(FrontEndCommand::Close)).await;
            });
        }
    }

    pub(crate) fn has_ended(&self) -> bool {
        *self.has_ended.borrow()
    }

    /// Waits until nothing of the session runs.
    pub(crate) async fn wait_for_end(&self) {
        let mut has_ended = self.has_ended.clone();
        let _ = has_ended.wait_for(|has_ended| *has_ended).await;
    }

    fn state(&self) -> MutexGuard<'_, AcpSessionState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn refused_subject(request: &ApprovalRequest) -> RefusedSubject {
    (request.call.tool.clone(), request.subject.clone())
}

/// Passes orders on, one after another. A session that is busy makes them wait, not the client's
/// other messages.
async fn forward_orders(handle: SessionHandle, mut orders: mpsc::Receiver<SessionOrder>) {
    while let Some(order) = orders.recv().await {
        let is_close = matches!(order, SessionOrder::Command(FrontEndCommand::Close));
        let sent = match order {
            SessionOrder::Command(command) => handle.send(command).await,
            SessionOrder::Prompt(input, caller) => {
                handle.send_traced(FrontEndCommand::SubmitInput { input }, caller).await
            }
            SessionOrder::UseModel(model) => handle.use_model(model).await,
        };
        if is_close || sent.is_err() {
            return;
        }
    }
}
