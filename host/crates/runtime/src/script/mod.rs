//! Scripts as tools: programs of this machine that read JSON and print JSON.
//!
//! What a folder with a `definition.json` says becomes the description of one tool (`Described`),
//! what the policy grants its plugin becomes the walls of a run, and what came of the run becomes an
//! outcome that a model can read. The walls themselves are the work of the crate `process`.

mod described;
mod outcome;
mod spec;

use std::{path::Path, time::Instant};

use sallyport_contract::{Admitted, CallReport, Denial, Effect, Failure, FailureKind, Outcome};
use sallyport_policy::{Capability, Grant};
use sallyport_process::{Finished, RunError, Script, Stage};
use sallyport_sandbox::{Places, Warden};

pub(crate) use described::{DEFINITION_FILE, Described};
use outcome::Ended;

/// What a script does, in the words of a refusal.
const RUN: &str = "run as a program of this machine";

/// A script that the system runs.
pub(crate) struct Native {
    script: Script,
    stage: Stage,
    places: Places,
}

impl Native {
    /// Takes a script whose program is a native one. This very program stands between it and the
    /// host.
    pub(crate) fn new(script: Script) -> Self {
        Self { script, stage: Stage::this_program(), places: Places::new() }
    }

    /// Runs a call that has passed the gate. Dropping the future ends the program.
    pub(crate) async fn run(&self, warden: &dyn Warden, call: &Admitted) -> CallReport {
        let started = Instant::now();
        let grant = warden.grant();
        let mut report = match self.places.take(grant.limits()).await {
            Ok(_place) => self.run_in_place(warden, call).await,
            Err(none) => {
                let message = format!("{} {none}", grant.plugin());
                Outcome::Failed(Failure::new(FailureKind::LimitReached, message)).into()
            }
        };
        warden.redactor().report(&mut report);
        CallReport { elapsed: started.elapsed(), ..report }
    }

    async fn run_in_place(&self, warden: &dyn Warden, call: &Admitted) -> CallReport {
        // The place may have been waited for, and what was granted then is taken back now.
        let grant = warden.grant();
        let Some(process) = grant.process() else {
            return denied(barred(&grant));
        };
        let spec = spec::of(&self.script, &grant, process, warden);
        let mut work = Work { program: &spec.program, call, is_over: false };
        let ended = sallyport_process::run(&self.stage, &spec, call.text().as_bytes()).await;
        work.is_over = true;
        match ended {
            Ok(finished) => {
                // What is cut first could end in the middle of a secret, which nobody would recognise.
                let stderr = warden.redactor().text(&finished.stderr).into_owned();
                let finished = Finished { stderr, ..finished };
                Ended { script: &self.script, spec: &spec, finished, grant: &grant }.report()
            }
            Err(RunError::NoWall { .. }) => denied(grant.deny_unwalled(RUN)),
            Err(error) => outcome::not_run(grant.plugin(), &error).into(),
        }
    }
}

/// A program at work. One that is ended because nobody waits for it any more has run all the same.
struct Work<'a> {
    program: &'a Path,
    call: &'a Admitted,
    is_over: bool,
}

impl Drop for Work<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            let what = format!("{}: ended, since the call was", self.program.display());
            let capability = Capability::Process.word().to_owned();
            self.call.trail().leave(vec![Effect::Used { capability, what }]);
        }
    }
}

/// The refusal of a script that may not be a program of this machine.
pub(crate) fn barred(grant: &Grant) -> Denial {
    grant.deny(Capability::Process, RUN)
}

fn denied(denial: Denial) -> CallReport {
    let effects = vec![Effect::Refused(denial.clone())];
    CallReport { effects, ..CallReport::from(Outcome::Denied(denial)) }
}
