//! The watcher of a service. It is no part of the way between host and program: it passes the
//! program's pipes to the host, counts resources, and kills everything when the host is gone.

use std::{
    io::{self, IoSlice, Write},
    mem::MaybeUninit,
    os::{
        fd::{AsFd, BorrowedFd},
        unix::net::UnixStream,
    },
};

use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};

use super::{
    private_folder::PrivateFolder,
    watcher::{self, RunningProgram},
};
use crate::{
    error::RunError,
    spec::ProcessSpec,
    wire::{self, ServiceResponse, WatcherRequest},
};

/// Runs as the watcher of a service.
pub(super) fn run_service_watcher() -> io::Result<()> {
    watcher::leave_host()?;
    let host = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let request: WatcherRequest = wire::read_frame(&host)?;
    let response = match PrivateFolder::create_in(&request.temporary) {
        Ok(scratch) => {
            let ended = watch_service(&request.spec, &scratch, &host);
            // If this fails, the folder remains among the temporary files.
            let _ = scratch.remove();
            ended
        }
        Err(error) => Err(error),
    };
    let response = response.unwrap_or_else(|error| {
        ServiceResponse::Failed(RunError::Stage { message: error.to_string() })
    });
    (&host).write_all(&[wire::SERVICE_ENDED])?;
    (&host).write_all(&wire::encode_frame(&response)?)
}

fn watch_service(
    spec: &ProcessSpec,
    scratch: &PrivateFolder,
    host: &UnixStream,
) -> io::Result<ServiceResponse> {
    let mut program = RunningProgram::start(spec, scratch, &[])?;
    let resources = wire::encode_frame(&program.resources())?;
    let handed_over = program.hand_over_pipes(|pipes| {
        send_pipes(host, pipes)?;
        { host }.write_all(&resources)
    });
    program.finish_service(handed_over)
}

/// Sends the program's pipes to the host.
fn send_pipes(host: &UnixStream, pipes: [BorrowedFd<'_>; 2]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    control.push(SendAncillaryMessage::ScmRights(&pipes));
    let byte = [wire::SERVICE_STARTED];
    sendmsg(host, &[IoSlice::new(&byte)], &mut control, SendFlags::empty())?;
    Ok(())
}
