//! One timer that fires: from its claim to its end.

use std::{panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures::FutureExt;
use sallyport_contract::{
    CallContext, Outcome,
    services::{Delivery, Firing, Notice, Timer},
    text,
};
use sallyport_sandbox::roles::Fired;
use sallyport_store::Claim;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::{BUSY_PAUSE, Desk, LEASE_MS, LOOK_EVERY, places::Place};
use crate::{
    gate::now_ms,
    internal,
    roles::{Run, reason},
    services::apart,
};

/// How often a claim is renewed while its firing goes on.
const RENEW_EVERY: Duration = Duration::from_millis(LEASE_MS / 3);

/// Most characters of a label that are shown.
const LABEL_CHARS_MAX: usize = 60;

/// How long a firing waits that could not tell the person: by then the next minute has begun.
const UNSAID_PAUSE: Duration = Duration::from_secs(61);

/// Why a firing is not over though its plugin has run.
const NOT_TAKEN: &str = "a message of its plugin was not accepted";

/// How a firing came to its end.
enum Ended {
    /// As it should.
    Done,
    /// It began, and did not go well.
    Failed(String),
    /// It was not allowed to begin.
    Refused(String),
    /// It began, and the policy kept from it what it asked for.
    Lacking(String),
    /// It could not begin: the plugin has too much to do.
    Busy(String),
    /// It began, and what it had to tell the person was not taken.
    Unsaid(String),
}

impl Desk {
    /// Lets a timer fire and settles it. Until then it has its place.
    pub(super) async fn fire(self: Arc<Self>, claim: Claim, _place: Option<Place>) {
        let firing = claim.firing.clone();
        let shown = shown(&firing.timer);
        let run = AssertUnwindSafe(self.run(firing)).catch_unwind();
        let ended = tokio::select! {
            ended = run => ended.unwrap_or_else(|_| Ended::Failed("the host broke".to_owned())),
            never = self.renew(&claim) => match never {},
        };
        match ended {
            Ended::Done => self.settle(claim).await,
            Ended::Failed(why) => {
                self.settle(claim).await;
                (self.parts.tell)(&format!("{shown} has fired and failed: {why}"));
            }
            Ended::Refused(why) => {
                self.refuse(&claim.firing.timer);
                self.release(claim).await;
                self.warn_once(&format!("{shown} is due and waits: {why}"));
            }
            Ended::Lacking(why) => {
                self.refuse(&claim.firing.timer);
                self.release_begun(claim).await;
                self.warn_once(&format!("{shown} is due and waits: {why}"));
            }
            Ended::Busy(why) => {
                self.put_off(&claim.firing.timer, BUSY_PAUSE);
                self.release(claim).await;
                self.warn_once(&format!("{shown} is due and waits: {why}"));
            }
            Ended::Unsaid(why) => {
                self.put_off(&claim.firing.timer, UNSAID_PAUSE);
                self.release_begun(claim).await;
                self.warn_once(&format!("{shown} is due and waits: {why}"));
            }
        }
    }

    async fn run(&self, firing: Firing) -> Ended {
        match internal::fired(&firing) {
            Some(notice) => self.post(notice).await,
            None => self.call(firing).await,
        }
    }

    /// Passes on what a tool of the host itself has to say. Nothing runs for it, so there is nothing
    /// to decide: the person was asked when it was set.
    async fn post(&self, notice: Notice) -> Ended {
        let conversations = Arc::clone(&self.parts.conversations);
        match apart(move || conversations.post(&notice, Delivery::AtOnce)).await {
            Some(Ok(())) => Ended::Done,
            Some(Err(error)) => {
                // Nobody has heard it, so it comes again, though not at once.
                sleep(LOOK_EVERY).await;
                Ended::Refused(error.to_string())
            }
            None => Ended::Failed("the host broke".to_owned()),
        }
    }

    /// Calls the plugin, behind the gate and on the record.
    async fn call(&self, firing: Firing) -> Ended {
        let (roles, timer) = (&self.parts.roles, &firing.timer);
        let player = match roles.plugin(timer.owner.plugin.as_str()) {
            Ok(player) => player,
            // It may be there again at the next start, so its timer is not lost.
            Err(error) => return Ended::Refused(error.to_string()),
        };
        let user_id = Some(timer.owner.user.clone());
        let context = CallContext { user_id, ..roles.context(&timer.session_id) };
        let admitted = match player.admit(Run::Timer, context, &about(&firing)).await {
            Ok(admitted) => admitted,
            Err(report) => return Ended::Refused(reason(&report)),
        };
        let playing = player.begin(&admitted);
        let timer_id = firing.timer.id.clone();
        let Fired { report, is_told, is_unsaid } = player.plugin().fire(admitted, firing).await;
        playing.finish(&report);
        // Also where the plugin passes over it: nobody has been told of the timer yet.
        if is_unsaid && self.may_say_later(&timer_id) {
            return Ended::Unsaid(format!("{NOT_TAKEN}; retrying every minute"));
        }
        match report.outcome {
            Outcome::Completed(_) if is_unsaid => Ended::Failed(NOT_TAKEN.to_owned()),
            Outcome::Completed(_) => Ended::Done,
            _ if !is_told => Ended::Busy(reason(&report)),
            // What the policy comes to allow must not be lost until then.
            Outcome::Denied(denial) if denial.fix.is_some() => Ended::Lacking(denial.why),
            _ => Ended::Failed(reason(&report)),
        }
    }

    /// Holds a claim for as long as its firing goes on. One that was taken over or cancelled is
    /// noticed when it is settled.
    async fn renew(&self, claim: &Claim) -> std::convert::Infallible {
        loop {
            sleep(RENEW_EVERY).await;
            let (timers, claim) = (self.parts.timers.clone(), claim.clone());
            self.store(move || timers.renew(&claim, now_ms(), LEASE_MS)).await;
        }
    }

    async fn settle(&self, claim: Claim) {
        self.forget(&claim.firing.timer);
        let timers = self.parts.timers.clone();
        self.store(move || timers.settle(&claim)).await;
    }

    async fn release(&self, claim: Claim) {
        let timers = self.parts.timers.clone();
        self.store(move || timers.release(&claim)).await;
    }

    async fn release_begun(&self, claim: Claim) {
        let timers = self.parts.timers.clone();
        self.store(move || timers.release_begun(&claim)).await;
    }
}

/// What rules look at, and what a person is shown who is asked.
fn about(firing: &Firing) -> Value {
    let timer = &firing.timer;
    let payload: Result<Value, _> = serde_json::from_str(&timer.payload);
    json!({
        "timer": timer.id,
        "label": timer.label,
        "payload": payload.unwrap_or_else(|_| json!(timer.payload)),
        "due_ms": firing.due_ms,
        "late": firing.late,
        "missed": firing.missed,
        "again": firing.again,
    })
}

/// A timer as a person knows it.
fn shown(timer: &Timer) -> String {
    let label = timer.label.as_deref().map(|label| text::excerpt(label, LABEL_CHARS_MAX));
    let label = label.map(|label| format!(" \"{label}\"")).unwrap_or_default();
    format!("the timer{label} of {}", timer.owner.plugin)
}
