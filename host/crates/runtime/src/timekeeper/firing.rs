//! The firing of one timer, from its claim to its end.

use std::{panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures::FutureExt;
use sallyport_contract::{
    CallReport, DenialReason, Outcome,
    services::{DeliveryTime, PluginNotice, StoredTimer, TimerFiring},
    text,
};
use sallyport_sandbox::roles::TimerRunResult;
use sallyport_store::TimerClaim;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::{BUSY_RETRY_PAUSE, LEASE_MS, POLL_INTERVAL, TimekeeperState, firing_slots::FiringSlot};
use crate::{
    clock::now_ms,
    internal,
    registry::RoleRunKind,
    roles::{RoleError, unfinished_reason},
};

/// How often a claim is renewed during its firing.
const RENEWAL_INTERVAL: Duration = Duration::from_millis(LEASE_MS / 3);

/// Maximum length of a label in messages, in characters.
const LABEL_CHARS_MAX: usize = 60;

/// How long a timer waits after its message was not accepted. By then the next minute has begun.
const NOTICE_RETRY_PAUSE: Duration = Duration::from_secs(61);

/// Longest pause of a timer whose user has no calls left. A change of the policy may give some before
/// the budget begins anew.
const BUDGET_PAUSE_MAX: Duration = Duration::from_secs(60);

/// How long a timer waits whose plugin cannot be made ready. Each try may compile it, and a mended
/// plugin need not change the policy.
const BROKEN_PLUGIN_PAUSE: Duration = Duration::from_secs(60);

/// How long a timer waits whose approval was not given, unless the policy changes before. A user may
/// be connected by then. It is not short, because each try may be one more question on a phone.
const UNANSWERED_PAUSE: Duration = Duration::from_secs(15 * 60);

/// The error for a plugin that ran but whose message was not accepted.
const NOTICE_REJECTED: &str = "a message of its plugin was not accepted";

/// The result of a firing.
enum FiringResult {
    /// It succeeded.
    Done,
    /// It began and failed.
    Failed(String),
    /// It was not allowed to begin. Unless the policy changes, it is tried again after the pause, if
    /// there is one.
    Refused(String, Option<Duration>),
    /// It could not begin, and may after a pause regardless of the policy.
    Delayed(String, Duration),
    /// It began, and the policy denied it something.
    MissingGrant(String),
    /// It began, and its message to the user was not accepted.
    NoticeRejected(String),
}

impl TimekeeperState {
    /// Fires a timer and settles its claim. The place is taken until then.
    pub(super) async fn fire_timer(self: Arc<Self>, claim: TimerClaim, _slot: Option<FiringSlot>) {
        let firing = claim.firing.clone();
        let description = timer_description(&firing.timer);
        let revision = self.policy_revision();
        let run = AssertUnwindSafe(self.run_firing(firing)).catch_unwind();
        let ended = tokio::select! {
            ended = run => ended.unwrap_or_else(|_| FiringResult::Failed("the host broke".to_owned())),
            never = self.renew_claim(&claim) => match never {},
        };
        match ended {
            FiringResult::Done => self.settle_claim(&claim).await,
            FiringResult::Failed(why) => {
                self.settle_claim(&claim).await;
                (self.parts.message_sink)(&format!("{description} has fired and failed: {why}"));
            }
            FiringResult::Refused(why, pause) => {
                self.block_timer(&claim.firing.timer, revision, pause);
                self.release_claim(&claim).await;
                self.warn_once(&format!("{description} is due and waits: {why}"));
            }
            FiringResult::Delayed(why, pause) => {
                self.delay_timer(&claim.firing.timer, pause);
                self.release_claim(&claim).await;
                self.warn_once(&format!("{description} is due and waits: {why}"));
            }
            FiringResult::MissingGrant(why) => {
                self.block_timer(&claim.firing.timer, revision, None);
                self.release_begun_claim(&claim).await;
                self.warn_once(&format!("{description} is due and waits: {why}"));
            }
            FiringResult::NoticeRejected(why) => {
                self.delay_timer(&claim.firing.timer, NOTICE_RETRY_PAUSE);
                self.release_begun_claim(&claim).await;
                self.warn_once(&format!("{description} is due and waits: {why}"));
            }
        }
    }

    async fn run_firing(&self, firing: TimerFiring) -> FiringResult {
        match internal::firing_notice(&firing) {
            Some(notice) => self.post_notice(&firing.timer.owner.user, notice).await,
            None => self.call_plugin(firing).await,
        }
    }

    /// Posts the message of an internal tool. Nothing runs, so the gate is not asked; the user
    /// approved the call that set the timer.
    async fn post_notice(&self, user: &str, notice: PluginNotice) -> FiringResult {
        match self.parts.notification_hub.post_notice(user, &notice, DeliveryTime::Immediate).await
        {
            Ok(()) => FiringResult::Done,
            // The user has not seen the message, so it is repeated after a pause.
            Err(error) => FiringResult::Delayed(error.to_string(), POLL_INTERVAL),
        }
    }

    /// Calls the plugin through the gate and the audit.
    async fn call_plugin(&self, firing: TimerFiring) -> FiringResult {
        let (roles, timer) = (&self.parts.roles, &firing.timer);
        let role_plugin = match roles.load_plugin(timer.owner.plugin.as_str()) {
            Ok(role_plugin) => role_plugin,
            // The plugin may be loaded again soon, so keep its timer.
            Err(error) => {
                let pause = match &error {
                    RoleError::Broken(_) => BROKEN_PLUGIN_PAUSE,
                    RoleError::PluginLookup(_) | RoleError::OtherRole { .. } => BUSY_RETRY_PAUSE,
                };
                return FiringResult::Delayed(error.to_string(), pause);
            }
        };
        let context = roles.new_call_context(&timer.owner.user, &timer.session_id);
        let admitted = match role_plugin
            .admit_run(RoleRunKind::Timer, context, &firing_arguments(&firing))
            .await
        {
            Ok(admitted) => admitted,
            Err(report) => return refused_firing(&report),
        };
        let role_run = role_plugin.start_run(&admitted);
        let timer_id = firing.timer.id.clone();
        let TimerRunResult { report, has_begun: is_told, has_undelivered_notice: is_unsaid } =
            role_plugin.plugin().fire_timer(admitted, firing).await;
        role_run.finish(&report);
        // This also applies if the plugin ignored the error: the user has not heard of the timer
        // yet.
        if is_unsaid && self.can_retry_notice(&timer_id) {
            return FiringResult::NoticeRejected(format!(
                "{NOTICE_REJECTED}; retrying every minute"
            ));
        }
        match report.outcome {
            Outcome::Completed(_) if is_unsaid => FiringResult::Failed(NOTICE_REJECTED.to_owned()),
            Outcome::Completed(_) => FiringResult::Done,
            _ if !is_told => FiringResult::Delayed(unfinished_reason(&report), BUSY_RETRY_PAUSE),
            // A change of the policy can allow it, so keep the timer until then.
            Outcome::Denied(denial) if denial.fix.is_some() => {
                FiringResult::MissingGrant(denial.reason.to_string())
            }
            _ => FiringResult::Failed(unfinished_reason(&report)),
        }
    }

    /// Renews a claim until its firing ends. A claim that was taken over or cancelled is detected
    /// when it is settled.
    async fn renew_claim(&self, claim: &TimerClaim) -> std::convert::Infallible {
        loop {
            sleep(RENEWAL_INTERVAL).await;
            self.note_error(self.parts.timers.renew_claim(claim, now_ms(), LEASE_MS).await);
        }
    }

    async fn settle_claim(&self, claim: &TimerClaim) {
        self.forget_retries(&claim.firing.timer);
        self.note_error(self.parts.timers.complete_claim(claim).await);
    }

    async fn release_claim(&self, claim: &TimerClaim) {
        self.note_error(self.parts.timers.release_claim(claim).await);
    }

    async fn release_begun_claim(&self, claim: &TimerClaim) {
        self.note_error(self.parts.timers.release_started_claim(claim).await);
    }
}

/// What a firing waits for that was not admitted: a change of the policy only if it was refused.
/// Everything else passes without one, such as an audit that cannot be written.
fn refused_firing(report: &CallReport) -> FiringResult {
    let why = unfinished_reason(report);
    let Outcome::Denied(denial) = &report.outcome else {
        return FiringResult::Delayed(why, BUSY_RETRY_PAUSE);
    };
    match &denial.reason {
        DenialReason::BudgetSpent(spent) => {
            let left_ms = spent.renews_ms.saturating_sub(now_ms());
            FiringResult::Delayed(why, Duration::from_millis(left_ms).min(BUDGET_PAUSE_MAX))
        }
        DenialReason::BudgetUnreadable => FiringResult::Delayed(why, BUSY_RETRY_PAUSE),
        DenialReason::NotApproved { .. } => FiringResult::Refused(why, Some(UNANSWERED_PAUSE)),
        _ => FiringResult::Refused(why, None),
    }
}

/// Returns the arguments that rules match and approval prompts show.
fn firing_arguments(firing: &TimerFiring) -> Value {
    let timer = &firing.timer;
    let payload: Result<Value, _> = serde_json::from_str(&timer.payload);
    json!({
        "timer": timer.id,
        "label": timer.label,
        "payload": payload.unwrap_or_else(|_| json!(timer.payload)),
        "due_ms": firing.due_ms,
        "late": firing.late,
        "missed": firing.missed,
        "again": firing.will_repeat,
    })
}

/// Describes a timer for the user.
fn timer_description(timer: &StoredTimer) -> String {
    let label = timer.label.as_deref().map(|label| text::escape_excerpt(label, LABEL_CHARS_MAX));
    let label = label.map(|label| format!(" \"{label}\"")).unwrap_or_default();
    format!("the timer{label} of {}", timer.owner.plugin)
}
