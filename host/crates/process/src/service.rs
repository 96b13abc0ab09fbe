//! A program that runs until its host lets go of it, such as a server that is spoken to through its
//! standard input and output.
//!
//! The host and the watcher share a socket. Through it the watcher passes the program's two pipes,
//! so that no byte is copied on the way, and at the end the report. It is also the *lifeline*: when
//! it closes, because the host let go or was killed, the watcher kills everything.

use std::{
    io::{self, IoSliceMut, Read, Write},
    mem::MaybeUninit,
    net::Shutdown,
    os::{fd::OwnedFd, unix::net::UnixStream},
    process::Stdio,
    time::Duration,
};

use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use tokio::{
    net::unix::pipe,
    process::{Child, Command},
    task::spawn_blocking,
};

use crate::{
    error::RunError,
    run::{
        encode_request, kill_group, remove_private_folder, require_walls, stage_error,
        stage_io_error,
    },
    spec::{ProcessSpec, ServiceExit, StageExecutable},
    stage::stage_command,
    wire::{self, ProgramResources, ServiceResponse},
};

/// How long a watcher may take to start a program, or to end one, on a busy machine.
const WATCHER_TIME_MAX: Duration = Duration::from_secs(20);

/// The shortest time that a socket can wait.
const WAIT_TIME_MIN: Duration = Duration::from_millis(1);

/// A running program. When it is dropped, all processes of the program are killed.
#[derive(Debug)]
pub struct ServiceProcess {
    watcher: Child,
    lifeline: UnixStream,
    resources: ProgramResources,
}

/// The host's ends of a program's pipes.
#[derive(Debug)]
pub struct ServicePipes {
    /// Its standard input. It sees the end of it when this is dropped.
    pub input: pipe::Sender,
    /// Its standard output.
    pub output: pipe::Receiver,
}

/// Starts a program that runs until it ends by itself, reaches a limit, or is closed. Its standard
/// error is part of the report at its end; the limits on time, input and output do not apply.
///
/// # Errors
///
/// The program was not started. That it could not be executed is reported at its end.
pub async fn start_service(
    stage: &StageExecutable,
    spec: &ProcessSpec,
) -> Result<(ServiceProcess, ServicePipes), RunError> {
    require_walls(spec)?;
    let (lifeline, remote) = UnixStream::pair().map_err(stage_io_error)?;
    let mut command = stage_command(&stage.0, wire::SERVICE_WATCHER);
    command.stdin(OwnedFd::from(remote)).stdout(Stdio::null()).stderr(Stdio::null());
    let watcher = Command::from(command).kill_on_drop(false).spawn().map_err(stage_io_error)?;
    let request = encode_request(spec, 0).map_err(stage_io_error)?;
    let connected = spawn_blocking(move || connect_watcher(lifeline, &request)).await;
    let connected = connected.map_err(|error| stage_error(&error.to_string()))?;
    let (lifeline, [input, output], resources) = connected?;
    let pipes = ServicePipes {
        input: pipe::Sender::from_owned_fd(input).map_err(stage_io_error)?,
        output: pipe::Receiver::from_owned_fd(output).map_err(stage_io_error)?,
    };
    Ok((ServiceProcess { watcher, lifeline, resources }, pipes))
}

impl ServiceProcess {
    /// Waits until the program ends, at most for `grace`, and kills it then. Drop its pipes first,
    /// because a program that sees the end of its input usually ends by itself. When this returns,
    /// no process of the program is alive.
    ///
    /// # Errors
    ///
    /// The program could not be executed, or its report is missing.
    pub async fn close(self, grace: Duration) -> Result<ServiceExit, RunError> {
        let Self { mut watcher, lifeline, resources } = self;
        let ended = spawn_blocking(move || wait_for_end(&lifeline, grace)).await;
        if !matches!(ended, Ok(Ok(_))) {
            kill_group(&resources);
            let _ = watcher.start_kill();
            remove_private_folder(Some(resources)).await;
        }
        let _ = watcher.wait().await;
        match ended {
            Ok(Ok(ServiceResponse::Ended(exit))) => Ok(exit),
            Ok(Ok(ServiceResponse::Failed(error))) => Err(error),
            Ok(Err(error)) => Err(stage_io_error(error)),
            Err(error) => Err(stage_error(&error.to_string())),
        }
    }
}

/// Sends the request, and receives the program's pipes.
fn connect_watcher(
    lifeline: UnixStream,
    request: &[u8],
) -> Result<(UnixStream, [OwnedFd; 2], ProgramResources), RunError> {
    let pipes = exchange_request(&lifeline, request).map_err(stage_io_error)?;
    match pipes {
        Some(pipes) => {
            let resources = wire::read_frame(&lifeline).map_err(stage_io_error)?;
            Ok((lifeline, pipes, resources))
        }
        None => Err(match wire::read_frame(&lifeline).map_err(stage_io_error)? {
            ServiceResponse::Failed(error) => error,
            ServiceResponse::Ended(exit) => stage_error(&exit.exit.to_string()),
        }),
    }
}

fn exchange_request(mut lifeline: &UnixStream, request: &[u8]) -> io::Result<Option<[OwnedFd; 2]>> {
    lifeline.set_read_timeout(Some(WATCHER_TIME_MAX))?;
    lifeline.write_all(request)?;
    receive_pipes(lifeline)
}

/// Receives the pipes; `None` if a response follows instead.
fn receive_pipes(lifeline: &UnixStream) -> io::Result<Option<[OwnedFd; 2]>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let mut slices = [IoSliceMut::new(&mut byte)];
    let received = recvmsg(lifeline, &mut slices, &mut control, RecvFlags::CMSG_CLOEXEC)?;
    let mut descriptors = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            descriptors.extend(rights);
        }
    }
    match (received.bytes, byte) {
        (0, _) => Err(io::Error::other("the watcher ended before the program began")),
        (_, [wire::SERVICE_STARTED]) => {
            descriptors.try_into().map(Some).map_err(|_| io::ErrorKind::InvalidData.into())
        }
        _ => Ok(None),
    }
}

/// Waits for the report, and orders the end when the time is over.
fn wait_for_end(lifeline: &UnixStream, grace: Duration) -> io::Result<ServiceResponse> {
    lifeline.set_read_timeout(Some(grace.max(WAIT_TIME_MIN)))?;
    let mut byte = [0];
    let mut socket = lifeline;
    match socket.read_exact(&mut byte) {
        Err(error) if is_timeout(&error) => {
            lifeline.shutdown(Shutdown::Write)?;
            lifeline.set_read_timeout(Some(WATCHER_TIME_MAX))?;
            socket.read_exact(&mut byte)?;
        }
        read => read?,
    }
    lifeline.set_read_timeout(Some(WATCHER_TIME_MAX))?;
    wire::read_frame(lifeline)
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}
