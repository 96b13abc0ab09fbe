//! A client of the Agent Client Protocol that writes what it likes, and remembers all it reads.

use std::ops::{Deref, DerefMut};

use serde_json::{Value, json};

use super::{Home, McpClient, patience::until};

/// A running `sallyport acp`, and its client.
pub(crate) struct AcpClient(McpClient);

impl AcpClient {
    /// Starts the program.
    pub(crate) fn start(home: &Home) -> Self {
        Self(McpClient::of_command(home, &["acp"]))
    }

    /// Starts the program, and begins.
    #[track_caller]
    pub(crate) fn greeted(home: &Home) -> Self {
        let mut client = Self::start(home);
        let about = client.greet(&json!({}));
        assert_eq!(about["protocolVersion"], 1, "{about}");
        client
    }

    /// Begins as a client that can do these things, and returns what the agent says about itself.
    #[track_caller]
    pub(crate) fn greet(&mut self, capabilities: &Value) -> Value {
        let about = json!({ "protocolVersion": 1, "clientCapabilities": capabilities });
        self.ask("initialize", &about)["result"].clone()
    }

    /// Begins a session, and returns its id.
    #[track_caller]
    pub(crate) fn new_session(&mut self, folder: &str) -> String {
        let opened = self.ask("session/new", &json!({ "cwd": folder, "mcpServers": [] }));
        opened["result"]["sessionId"].as_str().unwrap_or_else(|| panic!("{opened}")).to_owned()
    }

    /// Begins a turn, and returns the id of the request.
    pub(crate) fn prompt(&mut self, session: &str, text: &str) -> u64 {
        let prompt = [json!({ "type": "text", "text": text })];
        self.request("session/prompt", &json!({ "sessionId": session, "prompt": prompt }))
    }

    /// Begins a turn, and waits for its end. Returns the reason.
    #[track_caller]
    pub(crate) fn turn(&mut self, session: &str, text: &str) -> String {
        let id = self.prompt(session, text);
        self.stop_reason(id)
    }

    /// Waits for the end of a turn. Returns the reason.
    #[track_caller]
    pub(crate) fn stop_reason(&self, id: u64) -> String {
        let answer = self.answer(id);
        let reason = answer["result"]["stopReason"].as_str();
        reason.unwrap_or_else(|| panic!("{answer}")).to_owned()
    }

    /// Cancels the turn of a session.
    pub(crate) fn cancel_turn(&mut self, session: &str) {
        self.notify("session/cancel", &json!({ "sessionId": session }));
    }

    /// The updates of one kind so far, of any session.
    #[track_caller]
    pub(crate) fn updates(&self, kind: &str) -> Vec<Value> {
        let update = |message: &Value| {
            let update = &message["params"]["update"];
            (message["method"] == "session/update" && update["sessionUpdate"] == kind)
                .then(|| update.clone())
        };
        self.messages().iter().filter_map(update).collect()
    }

    /// Everything that the agent has said so far.
    #[track_caller]
    pub(crate) fn said(&self) -> String {
        self.texts("agent_message_chunk")
    }

    /// The texts of the updates of one kind.
    #[track_caller]
    pub(crate) fn texts(&self, kind: &str) -> String {
        let updates = self.updates(kind);
        updates.iter().filter_map(|one| one["content"]["text"].as_str()).collect()
    }

    /// Waits for the end of a call.
    #[track_caller]
    pub(crate) fn finished_call(&self, call: &str) -> Value {
        until("the end of the call", || {
            self.updates("tool_call_update").into_iter().find(|one| {
                one["toolCallId"] == call
                    && (one["status"] == "completed" || one["status"] == "failed")
            })
        })
    }

    /// Waits for the question number `number`, from 0.
    #[track_caller]
    pub(crate) fn question(&self, number: usize) -> Value {
        until("a question", || {
            let messages = self.messages();
            messages
                .into_iter()
                .filter(|one| one["method"] == "session/request_permission")
                .nth(number)
        })
    }

    /// Answers a question with one of its choices.
    pub(crate) fn choose(&mut self, question: &Value, choice: &str) {
        let outcome = json!({ "outcome": { "outcome": "selected", "optionId": choice } });
        self.reply(question, &outcome);
    }

    /// Answers a question with anything.
    pub(crate) fn reply(&mut self, question: &Value, result: &Value) {
        let id = &question["id"];
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "result": result }));
    }
}

impl Deref for AcpClient {
    type Target = McpClient;

    fn deref(&self) -> &McpClient {
        &self.0
    }
}

impl DerefMut for AcpClient {
    fn deref_mut(&mut self) -> &mut McpClient {
        &mut self.0
    }
}

/// The text that a question shows.
#[track_caller]
pub(crate) fn shown(question: &Value) -> String {
    let content = question["params"]["toolCall"]["content"].as_array().unwrap();
    content.iter().filter_map(|one| one["content"]["text"].as_str()).collect()
}

/// The choices that a question offers, by their ids and kinds.
#[track_caller]
pub(crate) fn choices(question: &Value) -> Vec<(String, String)> {
    let text = |option: &Value, key: &str| option[key].as_str().unwrap().to_owned();
    let options = question["params"]["options"].as_array().unwrap();
    options.iter().map(|one| (text(one, "optionId"), text(one, "kind"))).collect()
}
