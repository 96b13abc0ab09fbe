//! `schedule`: timers that outlive the host.

use std::sync::Arc;

use sallyport_contract::{
    DataOwner, json,
    services::{StoredTimer, TimerError, TimerRequest, TimerSchedule, TimerStore},
};
use sallyport_policy::{Capability, Grant, ScheduleGrant};

use super::{HostCall, HostCallError, STORE_CALLS, STORE_UNREACHABLE, error_outcome};
use crate::bindings::v0_1::sallyport::plugin::schedule::{
    Calendar, Error, Host, Moment, NewTimer, Timer,
};

/// Longest label in bytes. It is a few words for the user.
const LABEL_BYTES_MAX: usize = 256;

/// Longest payload in bytes. It reminds a plugin of a task; it is not a store.
const PAYLOAD_BYTES_MAX: usize = 16 * 1024;

/// Longest cron expression and longest time zone name, in bytes. Real ones have a few dozen
/// letters.
const CALENDAR_BYTES_MAX: usize = 256;

/// Longest timer ID in bytes. The host chooses the IDs and makes them shorter than this.
const ID_BYTES_MAX: usize = 128;

/// What the guest attempts, for the refusal.
const ADD: &str = "set a timer";

impl Host for HostCall<'_> {
    async fn add(&mut self, timer: NewTimer) -> Result<Timer, Error> {
        let grant = self.require_schedule(ADD).await?;
        let request = self.build_timer_request(&grant, timer)?;
        let name = request.label.as_deref().unwrap_or_default();
        let bytes = request.payload.len();
        let what = format!("set a timer {} ({bytes} bytes)", self.quote_for_record(name));
        let add = |timers: Arc<dyn TimerStore>, owner| async move {
            timers.add_timer(&owner, request).await
        };
        self.with_timer_store(what, add).await.map(timer_to_guest)
    }

    async fn cancel(&mut self, id: String) -> Result<bool, Error> {
        self.require_schedule("cancel a timer").await?;
        if id.len() > ID_BYTES_MAX {
            return Ok(false);
        }
        let what = format!("cancel the timer {}", self.quote_for_record(&id));
        let cancel = |timers: Arc<dyn TimerStore>, owner| async move {
            timers.cancel_timer(&owner, &id).await
        };
        self.with_timer_store(what, cancel).await
    }

    async fn list_timers(&mut self) -> Result<Vec<Timer>, Error> {
        let what = "list its timers";
        self.require_schedule(what).await?;
        let list =
            |timers: Arc<dyn TimerStore>, owner| async move { timers.list_timers(&owner).await };
        let timers = self.with_timer_store(what.to_owned(), list).await?;
        Ok(timers.into_iter().map(timer_to_guest).collect())
    }
}

impl HostCall<'_> {
    /// Makes sure that the plugin may use timers, and counts the call.
    async fn require_schedule(&mut self, what: &str) -> Result<ScheduleGrant, HostCallError> {
        let granted = |grant: &Grant| grant.schedule().copied();
        let schedule = self.require_grant(Capability::Schedule, what, granted).await?;
        self.count_call(&STORE_CALLS)?;
        Ok(schedule)
    }

    fn build_timer_request(
        &self,
        grant: &ScheduleGrant,
        timer: NewTimer,
    ) -> Result<TimerRequest, Error> {
        let NewTimer { moment, label, payload, extra: _ } = timer;
        if !self.shared_state.has_timers {
            let why = "the plugin does not export `timers`, so the host could not call it back";
            return Err(Error::Invalid(why.to_owned()));
        }
        check_length("the label", label.as_deref(), LABEL_BYTES_MAX)?;
        check_length("the payload", Some(&payload), PAYLOAD_BYTES_MAX)?;
        json::parse_json(&payload, PAYLOAD_BYTES_MAX)
            .map_err(|error| Error::Invalid(format!("the payload is not JSON: {error}")))?;
        let call = self.run_context.require_call(ADD).map_err(HostCallError::Refused)?;
        Ok(TimerRequest {
            schedule: moment_from_guest(moment)?,
            label,
            payload,
            session_id: call.context().session_id.clone(),
            interval_ms_min: u64::try_from(grant.interval_min.as_millis()).unwrap_or(u64::MAX),
            timers_max: grant.timers_max,
        })
    }

    async fn with_timer_store<R, F: Future<Output = Result<R, TimerError>>>(
        &self,
        what: String,
        work: impl FnOnce(Arc<dyn TimerStore>, DataOwner) -> F,
    ) -> Result<R, Error> {
        let timers =
            self.require_service(|services| services.timers, "no timers can be set here")?;
        let owner = self.run_context.data_owner();
        let work = work(timers, owner);
        let done = self.record_use(Capability::Schedule, what, work, error_outcome).await;
        done.map_err(|error| match error {
            TimerError::Invalid(text) => Error::Invalid(text),
            TimerError::TooMany { max } => {
                self.reach_limit(format!("{max} timers (schedule)"));
                Error::QuotaReached(error.to_string())
            }
            TimerError::Unavailable(_) => HostCallError::Unavailable(STORE_UNREACHABLE).into(),
        })
    }
}

fn check_length(what: &str, text: Option<&str>, bytes_max: usize) -> Result<(), Error> {
    match text.map_or(0, str::len) {
        bytes if bytes <= bytes_max => Ok(()),
        bytes => Err(Error::Invalid(format!("{what} has {bytes} bytes, {bytes_max} are allowed"))),
    }
}

fn moment_from_guest(moment: Moment) -> Result<TimerSchedule, Error> {
    Ok(match moment {
        Moment::AtMs(ms) => TimerSchedule::AtMs(ms),
        Moment::InMs(ms) => TimerSchedule::InMs(ms),
        Moment::EveryMs(ms) => TimerSchedule::EveryMs(ms),
        Moment::Calendar(Calendar { cron, time_zone, extra: _ }) => {
            check_length("the cron expression", Some(&cron), CALENDAR_BYTES_MAX)?;
            check_length("the time zone", time_zone.as_deref(), CALENDAR_BYTES_MAX)?;
            TimerSchedule::Calendar { cron, time_zone }
        }
        Moment::Other(_) => {
            return Err(Error::Invalid("such a moment is not known here".to_owned()));
        }
    })
}

fn moment_to_guest(moment: TimerSchedule) -> Moment {
    match moment {
        TimerSchedule::AtMs(ms) => Moment::AtMs(ms),
        TimerSchedule::InMs(ms) => Moment::InMs(ms),
        TimerSchedule::EveryMs(ms) => Moment::EveryMs(ms),
        TimerSchedule::Calendar { cron, time_zone } => {
            Moment::Calendar(Calendar { cron, time_zone, extra: None })
        }
    }
}

/// Converts a timer to the type that its plugin sees.
pub(crate) fn timer_to_guest(timer: StoredTimer) -> Timer {
    Timer {
        id: timer.id,
        moment: moment_to_guest(timer.schedule),
        next_ms: timer.next_ms,
        label: timer.label,
        payload: timer.payload,
        extra: None,
    }
}

super::impl_not_granted_error!(Error, limit: Unavailable, unavailable: Unavailable);
