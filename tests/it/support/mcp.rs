//! A client of the Model Context Protocol that writes what it likes, and remembers all it reads.

use std::{
    io::Write,
    process::{Child, ChildStdin},
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::{
    Home,
    patience::{Heard, end_of, until},
};

/// The newest version of the protocol that begins with a handshake.
pub(crate) const WITH_HANDSHAKE: &str = "2025-11-25";

/// The newest version without one.
pub(crate) const STATELESS: &str = "2026-07-28";

/// A running `sallyport mcp`, and its client.
pub(crate) struct McpClient {
    child: Child,
    input: Option<ChildStdin>,
    stdout: Heard,
    stderr: Heard,
    requests: u64,
}

impl McpClient {
    /// Starts the program.
    pub(crate) fn start(home: &Home, args: &[&str]) -> Self {
        Self::of_command(home, &[&["mcp"], args].concat())
    }

    /// Starts another command that speaks JSON-RPC in lines.
    pub(crate) fn of_command(home: &Home, command: &[&str]) -> Self {
        let mut child = home.start(command);
        let stdout = Heard::of(child.stdout.take().unwrap());
        let stderr = Heard::of(child.stderr.take().unwrap());
        Self { input: child.stdin.take(), child, stdout, stderr, requests: 0 }
    }

    /// Starts the program and shakes hands as a client that can do these things.
    #[track_caller]
    pub(crate) fn greeted(home: &Home, args: &[&str], capabilities: &Value) -> Self {
        let mut client = Self::start(home, args);
        client.greet(WITH_HANDSHAKE, capabilities);
        client
    }

    /// Shakes hands, and returns what the server says about itself.
    #[track_caller]
    pub(crate) fn greet(&mut self, version: &str, capabilities: &Value) -> Value {
        let about = json!({
            "protocolVersion": version,
            "capabilities": capabilities,
            "clientInfo": { "name": "test", "version": "1" },
        });
        let answer = self.ask("initialize", &about);
        self.notify("notifications/initialized", &json!({}));
        answer["result"].clone()
    }

    /// Writes bytes.
    pub(crate) fn write(&mut self, bytes: &[u8]) {
        let input = self.input.as_mut().unwrap();
        // Whoever has ended reads nothing; the test sees that from what is missing.
        let _ = input.write_all(bytes).and_then(|()| input.flush());
    }

    /// Writes a message.
    pub(crate) fn send(&mut self, message: &Value) {
        self.write(format!("{message}\n").as_bytes());
    }

    /// Sends a request, and returns its id.
    pub(crate) fn request(&mut self, method: &str, params: &Value) -> u64 {
        self.requests += 1;
        let id = self.requests;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        id
    }

    /// Sends a request, and waits for the answer.
    #[track_caller]
    pub(crate) fn ask(&mut self, method: &str, params: &Value) -> Value {
        let id = self.request(method, params);
        self.answer(id)
    }

    /// Calls a tool, and waits for the result.
    #[track_caller]
    pub(crate) fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        let answer = self.ask("tools/call", &json!({ "name": tool, "arguments": arguments }));
        assert!(answer.get("error").is_none(), "{answer}");
        answer["result"].clone()
    }

    /// Sends a notification.
    pub(crate) fn notify(&mut self, method: &str, params: &Value) {
        self.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
    }

    /// Cancels a request.
    pub(crate) fn cancel(&mut self, id: u64) {
        self.notify("notifications/cancelled", &json!({ "requestId": id, "reason": "enough" }));
    }

    /// Waits for the answer to a request of this client.
    #[track_caller]
    pub(crate) fn answer(&self, id: u64) -> Value {
        self.message(|one| one["id"] == id && one.get("method").is_none())
    }

    /// Waits for a message of the server.
    #[track_caller]
    pub(crate) fn message(&self, is_it: impl Fn(&Value) -> bool) -> Value {
        until("a message of the server", || self.messages().into_iter().find(&is_it))
    }

    /// Waits for a request or a notification of the server.
    #[track_caller]
    pub(crate) fn of_method(&self, method: &str) -> Value {
        self.message(|one| one["method"] == method)
    }

    /// All messages so far. Whatever is no message fails the test: it does not belong there.
    #[track_caller]
    pub(crate) fn messages(&self) -> Vec<Value> {
        let text = self.stdout.so_far();
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        let parse = |line: &str| {
            let message: Value = serde_json::from_str(line).unwrap_or_else(|error| {
                panic!("{error}: {line:?} is on standard output");
            });
            assert_eq!(message["jsonrpc"], "2.0", "{line}");
            message
        };
        whole.lines().map(parse).collect()
    }

    /// What is on standard error so far.
    pub(crate) fn log(&self) -> String {
        self.stderr.so_far()
    }

    /// The process.
    pub(crate) fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Sends a signal to the process.
    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).unwrap();
    }

    /// Closes the input, and waits for the end. Returns the exit code.
    #[track_caller]
    pub(crate) fn close(&mut self) -> i32 {
        drop(self.input.take());
        self.ends()
    }

    /// Waits for the end. Returns the exit code.
    #[track_caller]
    pub(crate) fn ends(&mut self) -> i32 {
        let said = || format!("{}\n{}", self.stdout.so_far(), self.stderr.so_far());
        let status = end_of(&mut self.child, said);
        self.stdout.whole();
        self.messages();
        status.code().unwrap_or(-1)
    }
}

impl Drop for McpClient {
    fn drop(&mut self) {
        // Of a test that failed; one that passed has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
