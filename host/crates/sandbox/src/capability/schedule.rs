//! `schedule`: timers that outlive the host.

use sallyport_contract::{
    DataOwner, json,
    services::{self, TimerError, TimerRequest, TimerStore},
};
use sallyport_policy::{Capability, ScheduleGrant};

use super::{quote_for_record, run_blocking, unavailable_message};
use crate::{
    bindings::v0_1::sallyport::plugin::schedule::{Calendar, Error, Host, Moment, NewTimer, Timer},
    guest::Guest,
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

impl Host for Guest {
    async fn add(&mut self, timer: NewTimer) -> wasmtime::Result<Result<Timer, Error>> {
        Ok(self.add_timer(timer).await)
    }

    async fn cancel(&mut self, id: String) -> wasmtime::Result<Result<bool, Error>> {
        Ok(self.cancel_timer(id).await)
    }

    async fn list_timers(&mut self) -> wasmtime::Result<Result<Vec<Timer>, Error>> {
        Ok(self.list_own_timers().await)
    }
}

impl Guest {
    async fn add_timer(&mut self, timer: NewTimer) -> Result<Timer, Error> {
        let grant = self.require_schedule_grant("set a timer")?;
        let plan = self.build_timer_plan(&grant, timer)?;
        let name = plan.label.as_deref().unwrap_or_default();
        let what = format!(
            "set a timer {} ({} bytes)",
            quote_for_record(&self.run_context, name),
            plan.payload.len()
        );
        let timer = self
            .with_timer_service(what, move |timers, owner| timers.add_timer(owner, plan))
            .await?;
        Ok(timer_to_guest(timer))
    }

    async fn cancel_timer(&mut self, id: String) -> Result<bool, Error> {
        self.require_schedule_grant("cancel a timer")?;
        if id.len() > ID_BYTES_MAX {
            return Ok(false);
        }
        let what = format!("cancel the timer {}", quote_for_record(&self.run_context, &id));
        self.with_timer_service(what, move |timers, owner| timers.cancel_timer(owner, &id)).await
    }

    async fn list_own_timers(&mut self) -> Result<Vec<Timer>, Error> {
        self.require_schedule_grant("list its timers")?;
        let what = "list its timers".to_owned();
        let timers =
            self.with_timer_service(what, |timers, owner| timers.list_timers(owner)).await?;
        Ok(timers.into_iter().map(timer_to_guest).collect())
    }

    /// Makes sure that the plugin may use timers, and counts the call.
    fn require_schedule_grant(&mut self, what: &str) -> Result<ScheduleGrant, Error> {
        let grant = self.run_context.current_grant();
        let Some(schedule) = grant.schedule() else {
            self.run_context
                .effect_log
                .record_refusal(grant.deny_capability(Capability::Schedule, what));
            return Err(Error::NotGranted);
        };
        if self.counters.store.try_count() {
            return Ok(*schedule);
        }
        let limit = self.counters.store.limit_text("questions to the store");
        self.run_context.effect_log.record_limit(limit.clone());
        Err(Error::Unavailable(format!("the limit of {limit} is reached")))
    }

    fn build_timer_plan(
        &self,
        grant: &ScheduleGrant,
        timer: NewTimer,
    ) -> Result<TimerRequest, Error> {
        let NewTimer { moment, label, payload, extra: _ } = timer;
        if !self.shared_state.has_timers {
            let why = "the plugin does not export `timers`, so nobody could be called back";
            return Err(Error::Invalid(why.to_owned()));
        }
        check_length("the label", label.as_deref(), LABEL_BYTES_MAX)?;
        check_length("the payload", Some(&payload), PAYLOAD_BYTES_MAX)?;
        json::parse_json(&payload, PAYLOAD_BYTES_MAX)
            .map_err(|error| Error::Invalid(format!("the payload is not JSON: {error}")))?;
        let Some(call) = self.run_context.call() else { return Err(Error::NotGranted) };
        Ok(TimerRequest {
            schedule: moment_from_guest(moment)?,
            label,
            payload,
            session_id: call.context().session_id.clone(),
            interval_ms_min: u64::try_from(grant.interval_min.as_millis()).unwrap_or(u64::MAX),
            timers_max: grant.timers_max,
        })
    }

    async fn with_timer_service<R: Send + 'static>(
        &mut self,
        what: String,
        work: impl FnOnce(&dyn TimerStore, &DataOwner) -> Result<R, TimerError> + Send + 'static,
    ) -> Result<R, Error> {
        let Some(timers) = self.run_context.authorizer().services().timers else {
            return Err(Error::Unavailable("no timers can be set here".to_owned()));
        };
        let owner = self.run_context.data_owner();
        let capability_use = self.run_context.effect_log.begin_use(Capability::Schedule, what);
        let done = run_blocking(move || work(&*timers, &owner)).await;
        done.map_err(|error| {
            capability_use.record_outcome(&format!(": {error}"));
            self.convert_timer_error(error)
        })
    }

    fn convert_timer_error(&self, error: TimerError) -> Error {
        match error {
            TimerError::Invalid(text) => Error::Invalid(text),
            TimerError::TooMany { max } => {
                self.run_context.effect_log.record_limit(format!("{max} timers (schedule)"));
                Error::QuotaReached(error.to_string())
            }
            TimerError::Unavailable(_) => Error::Unavailable(unavailable_message("store")),
        }
    }
}

fn check_length(what: &str, text: Option<&str>, bytes_max: usize) -> Result<(), Error> {
    match text.map_or(0, str::len) {
        bytes if bytes <= bytes_max => Ok(()),
        bytes => Err(Error::Invalid(format!("{what} has {bytes} bytes, {bytes_max} are allowed"))),
    }
}

fn moment_from_guest(moment: Moment) -> Result<services::TimerSchedule, Error> {
    Ok(match moment {
        Moment::AtMs(ms) => services::TimerSchedule::AtMs(ms),
        Moment::InMs(ms) => services::TimerSchedule::InMs(ms),
        Moment::EveryMs(ms) => services::TimerSchedule::EveryMs(ms),
        Moment::Calendar(Calendar { cron, time_zone, extra: _ }) => {
            check_length("the cron expression", Some(&cron), CALENDAR_BYTES_MAX)?;
            check_length("the time zone", time_zone.as_deref(), CALENDAR_BYTES_MAX)?;
            services::TimerSchedule::Calendar { cron, time_zone }
        }
        Moment::Other(_) => {
            return Err(Error::Invalid("such a moment is not known here".to_owned()));
        }
    })
}

fn moment_to_guest(moment: services::TimerSchedule) -> Moment {
    match moment {
        services::TimerSchedule::AtMs(ms) => Moment::AtMs(ms),
        services::TimerSchedule::InMs(ms) => Moment::InMs(ms),
        services::TimerSchedule::EveryMs(ms) => Moment::EveryMs(ms),
        services::TimerSchedule::Calendar { cron, time_zone } => {
            Moment::Calendar(Calendar { cron, time_zone, extra: None })
        }
    }
}

/// Converts a timer to the type that its plugin sees.
pub(crate) fn timer_to_guest(timer: services::StoredTimer) -> Timer {
    Timer {
        id: timer.id,
        moment: moment_to_guest(timer.schedule),
        next_ms: timer.next_ms,
        label: timer.label,
        payload: timer.payload,
        extra: None,
    }
}
