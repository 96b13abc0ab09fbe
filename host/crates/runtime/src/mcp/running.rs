//! A server that runs: its process behind the walls, and the connection to it.

use std::{sync::Arc, time::Duration};

use sallyport_mcp_client::{ConnectionLimits, OfferedTool, ServerConnection, ServerError};
use sallyport_policy::{FsAccess, Grant, ProcessGrant};
use sallyport_process::{
    ProcessLimits, ProcessSpec, RunError, ScriptProgram, ServiceExit, ServiceProcess,
    StageExecutable, start_service,
};
use tokio::sync::Mutex;

use super::{settings::McpServerSettings, tools::TOOLS_MAX};
use crate::script::spec::{granted_network, granted_paths, missing_wall_policy};

/// How long a server may run, and how long it may use a processor. A call has limits of its own.
const SERVICE_TIME: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// How long a server that is no longer needed may take to end.
const STOP_TIME: Duration = Duration::from_secs(2);

/// The end of a server's standard error that is shown, in characters.
const STDERR_CHARS_MAX: usize = 2000;

/// Why a server does not run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum McpStartError {
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
    pub(super) spec: ProcessSpec,
    pub(super) connection: ServerConnection,
    /// The tools that it offered when it was started.
    pub(super) tools: Vec<OfferedTool>,
    process: Mutex<Option<ServiceProcess>>,
}

impl RunningServer {
    /// Starts a server, and asks for its tools.
    pub(super) async fn start(
        stage: &StageExecutable,
        spec: ProcessSpec,
        start_time: Duration,
    ) -> Result<Self, McpStartError> {
        let (process, pipes) = start_service(stage, &spec).await?;
        let limits = ConnectionLimits { start: start_time, tools: TOOLS_MAX };
        let opened = async {
            let connection = ServerConnection::open(pipes.output, pipes.input, limits).await?;
            let tools = connection.list_tools().await?;
            Ok((connection, tools))
        };
        match opened.await {
            Ok((connection, tools)) => {
                let process = Mutex::new(Some(process));
                Ok(Self { spec, connection, tools, process })
            }
            Err(error) => {
                Err(McpStartError::Server(error, describe_end(process.close(Duration::ZERO).await)))
            }
        }
    }

    /// Ends a server that failed, and returns how it ended, with what it printed last.
    pub(super) async fn end_report(&self) -> String {
        match self.process.lock().await.take() {
            Some(process) => describe_end(process.close(Duration::ZERO).await),
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

/// How a server ended, to follow a sentence about it.
fn describe_end(ended: Result<ServiceExit, RunError>) -> String {
    match ended {
        Ok(ServiceExit { exit, stderr }) => {
            let skipped = stderr.trim().chars().count().saturating_sub(STDERR_CHARS_MAX);
            let end: String = stderr.trim().chars().skip(skipped).collect();
            match end.is_empty() {
                true => format!("; {exit}"),
                false => format!("; {exit}. It printed: {end}"),
            }
        }
        Err(error) => format!("; {error}"),
    }
}

/// Returns the specification of a server's process under a grant.
pub(super) fn build_spec(
    settings: &McpServerSettings,
    program: &ScriptProgram,
    grant: &Grant,
    process: &ProcessGrant,
) -> Result<ProcessSpec, McpStartError> {
    if let Some(folder) = &settings.folder
        && !grant.fs().iter().any(|mount| folder.starts_with(&mount.host))
    {
        return Err(McpStartError::Folder(folder.display().to_string()));
    }
    let limits = grant.limits();
    Ok(ProcessSpec {
        program: program.path.clone(),
        digest: program.digest.clone(),
        arguments: settings.command[1..].to_vec(),
        folder: settings.folder.clone(),
        reads: granted_paths(grant, FsAccess::Read),
        writes: granted_paths(grant, FsAccess::ReadWrite),
        network: granted_network(process),
        walls: missing_wall_policy(process),
        limits: ProcessLimits {
            time: SERVICE_TIME,
            cpu_time: SERVICE_TIME,
            memory_bytes: limits.memory_bytes,
            open_files: limits.handles,
            errors_bytes: limits.log_bytes,
            ..ProcessLimits::STANDARD
        },
        env: settings.env.clone().into_iter().collect(),
    })
}
