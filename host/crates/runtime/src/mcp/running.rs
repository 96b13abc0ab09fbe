//! A server that runs: the connection to it, and its process behind the walls if it is one.

use std::{net::IpAddr, sync::Arc, time::Duration};

use sallyport_contract::Denial;
use sallyport_http_client::{AddressCheck, client_builder};
use sallyport_mcp_client::{
    ConnectionLimits, OfferedTool, RedactServerText, ServerAddress, ServerConnection, ServerError,
};
use sallyport_process::{RunError, ServiceExit, ServiceProcess, StageExecutable, start_service};
use tokio::sync::Mutex;

use super::{
    connection_spec::{AddressSpec, ConnectionSpec},
    tools::{TOOLS_MAX, ToolFile},
};

/// How long a server may run, and how long it may use a processor. A call has limits of its own.
pub(super) const SERVICE_TIME: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// How long a server that is no longer needed may take to end.
const STOP_TIME: Duration = Duration::from_secs(2);

/// The end of a server's standard error that is shown, in characters.
const STDERR_CHARS_MAX: usize = 2000;

/// Why a server does not run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum McpStartError {
    /// The policy does not allow it.
    #[error("{0}")]
    Denied(Box<Denial>),
    /// An entry of the policy asks before each request.
    #[error("{0} asks before each request, which a connection for many calls cannot; let it allow")]
    Asks(String),
    /// The policy sends the requests through a proxy.
    #[error("the policy sends it through a proxy, which is not possible for an MCP server")]
    Proxy,
    /// No client can be made.
    #[error("{0}")]
    Client(String),
    /// The folder that it starts in is not granted.
    #[error("its folder {0} is not granted")]
    Folder(String),
    /// The process does not run.
    #[error("{0}")]
    Process(#[from] RunError),
    /// It is not ready. The second is how it ended, with what it printed.
    #[error("{0}{1}")]
    Server(ServerError, String),
}

/// A server that runs. When it is dropped, all its processes are killed.
pub(super) struct RunningServer {
    /// How it was started. With another grant, it has to be started anew.
    pub(super) spec: ConnectionSpec,
    pub(super) connection: ServerConnection,
    /// Locked while it lists its tools anew, so that all calls wait for the list.
    listed: Mutex<ListedTools>,
    process: Mutex<Option<ServiceProcess>>,
    redact: RedactServerText,
}

/// The tools of a server as it listed them last.
struct ListedTools {
    tools: Arc<Vec<OfferedTool>>,
    /// How often it had reported other tools when it was asked for these.
    changes: u64,
}

impl RunningServer {
    /// Starts or reaches a server, and asks for its tools, which `tool_file` keeps.
    pub(super) async fn start(
        stage: &StageExecutable,
        spec: ConnectionSpec,
        start_time: Duration,
        tool_file: &ToolFile,
        redact: RedactServerText,
    ) -> Result<Self, McpStartError> {
        let limits = ConnectionLimits { start: start_time, tools: TOOLS_MAX };
        let (opened, process) = match &spec {
            ConnectionSpec::Process(process) => {
                let (process, pipes) = start_service(stage, process).await?;
                let redact = Arc::clone(&redact);
                let opening = ServerConnection::open(pipes.output, pipes.input, limits, redact);
                (list_tools(opening).await, Some(process))
            }
            ConnectionSpec::Address(address) => {
                let (is_https, allowed) = (address.url.scheme() == "https", address.clone());
                let may_reach = move |_: &str, to| allowed.allows_address(to);
                let address = server_address(address, is_https, may_reach);
                let address = address.map_err(McpStartError::Client)?;
                let opening = ServerConnection::open_address(address, limits, Arc::clone(&redact));
                (list_tools(opening).await, None)
            }
        };
        match opened {
            Ok((connection, listed)) => {
                tool_file.keep(&listed.tools);
                let (listed, process) = (Mutex::new(listed), Mutex::new(process));
                Ok(Self { spec, connection, listed, process, redact })
            }
            Err(error) => {
                let end = match process {
                    Some(process) => {
                        let ended = process.close(Duration::ZERO).await;
                        describe_end(ended, stderr_bytes_max(&spec), &redact)
                    }
                    None => String::new(),
                };
                Err(McpStartError::Server(error, end))
            }
        }
    }

    /// Returns the tools that it offers now: those that it listed last, or those that it lists anew
    /// because it has reported others since. `tool_file` keeps new ones, so that the user can compare
    /// and accept them.
    ///
    /// # Errors
    ///
    /// It does not list them. Until it does, no call knows its tools.
    pub(super) async fn current_tools(
        &self,
        tool_file: &ToolFile,
    ) -> Result<Arc<Vec<OfferedTool>>, ServerError> {
        let mut listed = self.listed.lock().await;
        if listed.changes != self.connection.tool_changes() {
            *listed = ListedTools::ask(&self.connection).await?;
            tool_file.keep(&listed.tools);
        }
        Ok(Arc::clone(&listed.tools))
    }

    /// Ends a server that failed, and returns how it ended, with what it printed last.
    pub(super) async fn end_report(&self) -> String {
        match self.process.lock().await.take() {
            Some(process) => {
                let ended = process.close(Duration::ZERO).await;
                describe_end(ended, stderr_bytes_max(&self.spec), &self.redact)
            }
            None => String::new(),
        }
    }

    /// Ends a server that is no longer needed.
    pub(super) async fn stop(self: Arc<Self>) {
        let process = self.process.lock().await.take();
        let grace = match Arc::into_inner(self) {
            Some(Self { connection, .. }) => {
                connection.close().await;
                STOP_TIME
            }
            // A call still uses it.
            None => Duration::ZERO,
        };
        if let Some(process) = process {
            // How it ends no longer matters.
            let _ = process.close(grace).await;
        }
    }
}

impl ListedTools {
    async fn ask(connection: &ServerConnection) -> Result<Self, ServerError> {
        // Counted before, because a change that is reported meanwhile may be missing in the list.
        let changes = connection.tool_changes();
        Ok(Self { tools: Arc::new(connection.list_tools().await?), changes })
    }
}

async fn list_tools(
    opening: impl Future<Output = Result<ServerConnection, ServerError>>,
) -> Result<(ServerConnection, ListedTools), ServerError> {
    let connection = opening.await?;
    let listed = ListedTools::ask(&connection).await?;
    Ok((connection, listed))
}

/// A server at an address, with a client that connects a name only to the addresses that `may_reach`
/// allows for it.
pub(super) fn server_address(
    spec: &AddressSpec,
    is_https: bool,
    may_reach: impl Fn(&str, IpAddr) -> bool + Send + Sync + 'static,
) -> Result<ServerAddress, String> {
    let builder = client_builder(is_https).map_err(|e| e.to_string())?;
    let check = AddressCheck::new(may_reach);
    let client = builder.dns_resolver(Arc::new(check)).build().map_err(|e| e.to_string())?;
    Ok(ServerAddress { client, url: spec.url.clone(), headers: spec.headers.clone() })
}

/// How many bytes of a server's standard error its process keeps.
fn stderr_bytes_max(spec: &ConnectionSpec) -> u64 {
    match spec {
        ConnectionSpec::Process(process) => process.limits.errors_bytes,
        ConnectionSpec::Address(_) => 0,
    }
}

/// How a server ended, to follow a sentence about it.
fn describe_end(
    ended: Result<ServiceExit, RunError>,
    stderr_bytes_max: u64,
    redact: &RedactServerText,
) -> String {
    match ended {
        Ok(ServiceExit { exit, stderr }) => {
            let end = safe_stderr_end(&stderr, stderr_bytes_max, redact);
            match end.is_empty() {
                true => format!("; {exit}"),
                false => format!("; {exit}. It printed: {end}"),
            }
        }
        Err(error) => format!("; {error}"),
    }
}

/// The end of a standard error of which at most `bytes_max` bytes were kept, without secrets. The
/// first line of a longer one is left out, because it may begin inside a secret.
fn safe_stderr_end(stderr: &str, bytes_max: u64, redact: &RedactServerText) -> String {
    let lines = match stderr.len() as u64 >= bytes_max {
        true => stderr.split_once('\n').map_or("", |(_, rest)| rest),
        false => stderr,
    };
    let redacted = redact(lines);
    let shown = redacted.trim();
    let skipped = shown.chars().count().saturating_sub(STDERR_CHARS_MAX);
    shown.chars().skip(skipped).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The end began within the secret, so nothing recognised the rest.
    #[test]
    fn a_secret_across_the_beginning_of_the_shown_end_leaves_no_part() {
        let redact: RedactServerText = Arc::new(|text: &str| text.replace("s3cret-77", "[gone]"));
        let long = "x".repeat(STDERR_CHARS_MAX - 3);
        let rows = [
            ("no module\n".to_owned(), 100, "no module".to_owned()),
            (format!("key s3cret-77{long}"), 1 << 16, format!("ne]{long}")),
            // The process kept no more than this, so a secret may be cut already.
            ("ret-77 is wrong\nbye\n".to_owned(), 20, "bye".to_owned()),
            ("ret-77 is wrong".to_owned(), 15, String::new()),
        ];
        for (stderr, bytes_max, want) in rows {
            assert_eq!(safe_stderr_end(&stderr, bytes_max, &redact), want);
        }
    }
}
