//! A server that runs beside a task, and is stopped with it.

use std::{
    io::{BufRead, BufReader, Read},
    process::{Child, Command, Stdio},
    thread,
};

use anyhow::{Context, Result, bail};

use crate::process::resident_bytes;

/// A server, which is stopped when this is dropped.
pub(crate) struct ServingProgram {
    child: Child,
    pub(crate) url: String,
}

impl ServingProgram {
    /// Starts a server whose log, on standard error, has its address after a text.
    pub(crate) fn start(command: &mut Command, before_url: &str) -> Result<Self> {
        command.stdin(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().with_context(|| format!("cannot start {command:?}"))?;
        let log = child.stderr.take().context("the log is not piped")?;
        Self::once_ready(child, log, before_url)
    }

    /// Starts a server that prints its address.
    pub(crate) fn start_printing(command: &mut Command) -> Result<Self> {
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn().with_context(|| format!("cannot start {command:?}"))?;
        let output = child.stdout.take().context("the output is not piped")?;
        Self::once_ready(child, output, "")
    }

    fn once_ready(
        mut child: Child,
        from: impl Read + Send + 'static,
        before_url: &str,
    ) -> Result<Self> {
        let mut lines = BufReader::new(from).lines();
        for line in lines.by_ref() {
            let line = line?;
            if let Some((_, url)) = line.split_once(before_url) {
                let url = url.trim_end_matches('.').to_owned();
                // Whoever does not read the log stops the server.
                thread::spawn(move || lines.for_each(drop));
                return Ok(Self { child, url });
            }
            eprintln!("{line}");
        }
        let status = child.wait()?;
        bail!("the server ended with {status}")
    }

    /// Its resident memory in bytes.
    pub(crate) fn resident_bytes(&self) -> Result<u64> {
        resident_bytes(&self.child)
    }
}

impl Drop for ServingProgram {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
