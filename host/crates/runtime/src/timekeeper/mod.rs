//! The timekeeper: fires timers while the program runs.
//!
//! It sleeps until the next timer is due. It wakes early when a timer is set in this process, and
//! periodically for those that other processes set. Several processes may run a timekeeper at the
//! same time; the first one that claims a timer fires it. A firing passes the gate and is audited
//! like a call, see [`crate::roles`]. It is settled when it has ended, even if it failed, so that a
//! failing callback is not repeated for ever. A firing that was killed is repeated, and the plugin
//! is informed of that.
//!
//! A timer stays due if its plugin is missing, has changed, may not be called back, is too busy or
//! could not notify the user, or if its firing cannot be recorded. It waits for a change of the
//! policy only if the policy or the user refused it; otherwise it is tried again after a pause. The
//! user is warned once. The timers of one plugin never block those of another, see `places`.

mod firing;
mod firing_slots;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use sallyport_contract::{PluginName, services::StoredTimer};
use sallyport_policy::{Capability, ScheduleGrant};
use sallyport_store::{PersistentTimerStore, StoreError, TimerClaim};
use tokio::{
    sync::oneshot,
    task::{JoinHandle, JoinSet},
    time::{sleep, timeout},
};

use self::firing_slots::{FiringSlot, FiringSlots, SlotAvailability};
use crate::{
    clock::now_ms,
    gate::MessageSink,
    internal,
    roles::SessionRoles,
    services::{NotificationHub, TimerAlarm},
};

/// How often it looks for timers that other processes set. Such a timer fires at most this late, so
/// the store calls a timer late only after this time.
const POLL_INTERVAL: Duration = Duration::from_millis(sallyport_store::timers::LATE_MS);

/// How long firings may continue when the program ends. An interrupted one is repeated at the next
/// start.
const SHUTDOWN_TIME_MAX: Duration = Duration::from_secs(2);

/// The warning for firings that did not end in time.
const INTERRUPTED: &str = "a timer was still firing when the program ended; it fires again at the \
                           next start";

/// How long a timer waits if its plugin had no free place, or if its firing could not be recorded.
/// Each try is audited, so the pause is not short.
const BUSY_RETRY_PAUSE: Duration = Duration::from_secs(10);

/// How often a timer is repeated for the same time if its plugin could not notify the user. After
/// that, the host warns the user.
const NOTICE_TRIES_MAX: u32 = 10;

/// How long a claim is valid without renewal. It expires only if its process hangs.
const LEASE_MS: u64 = 60_000;

/// The parts that a timekeeper uses.
pub struct TimekeeperParts {
    /// All timers.
    pub timers: Arc<dyn PersistentTimerStore>,
    /// Rings when timers are set in this process.
    pub alarm: Arc<TimerAlarm>,
    /// Receives the messages of internal tools.
    pub notification_hub: Arc<NotificationHub>,
    /// The plugins, behind the gate.
    pub roles: Arc<SessionRoles>,
    /// Receives warnings.
    pub message_sink: MessageSink,
}

/// A running timekeeper. Dropping it stops it.
pub struct Timekeeper {
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

/// The state that the timekeeper and the firings share.
struct TimekeeperState {
    parts: TimekeeperParts,
    slots: Arc<FiringSlots>,
    warned: Mutex<BTreeSet<String>>,
    /// Timers that were refused.
    blocked: Mutex<BTreeMap<String, TimerBlock>>,
    /// Timers that have to wait, with the time of the next try.
    delayed: Mutex<BTreeMap<String, Instant>>,
    /// How often each timer's plugin could not notify the user.
    notice_tries: Mutex<BTreeMap<String, u32>>,
}

/// How long a refused timer stays blocked.
struct TimerBlock {
    /// The revision of the policy that refused it. Another one ends the block.
    revision: u64,
    /// When it ends under the same policy, if it does.
    until: Option<Instant>,
}

impl TimerBlock {
    fn holds(&self, revision: u64) -> bool {
        self.revision == revision && self.until.is_none_or(|until| Instant::now() < until)
    }
}

impl Timekeeper {
    /// Starts a timekeeper on the current tokio runtime.
    pub fn start(parts: TimekeeperParts) -> Self {
        let (stop, stopped) = oneshot::channel();
        let (slots, warned, blocked, delayed, notice_tries) = Default::default();
        let state = TimekeeperState { parts, slots, warned, blocked, delayed, notice_tries };
        Self { stop, task: tokio::spawn(Arc::new(state).run_loop(stopped)) }
    }

    /// Stops firing timers, and waits briefly for running firings.
    pub async fn stop(self) {
        drop(self.stop);
        // The task does not panic, because panics are caught where they can occur.
        let _ = self.task.await;
    }
}

impl TimekeeperState {
    async fn run_loop(self: Arc<Self>, mut stopped: oneshot::Receiver<()>) {
        let mut firings = JoinSet::new();
        loop {
            let checked_ms = now_ms();
            self.start_due_firings(&mut firings, checked_ms).await;
            let wait = self.time_until_next(checked_ms).await;
            tokio::select! {
                _ = &mut stopped => break,
                () = self.parts.alarm.wait_for_notification() => {}
                Some(_) = firings.join_next() => {}
                () = sleep(wait) => {}
            }
        }
        let rest = async { while firings.join_next().await.is_some() {} };
        if timeout(SHUTDOWN_TIME_MAX, rest).await.is_err() {
            self.warn_once(INTERRUPTED);
        }
    }

    /// Starts as many firings as there are free places.
    async fn start_due_firings(self: &Arc<Self>, firings: &mut JoinSet<()>, now_ms: u64) {
        let claims = self.note_error(self.claim_due_timers(now_ms).await).unwrap_or_default();
        for (claim, slot) in claims {
            firings.spawn(Arc::clone(self).fire_timer(claim, slot));
        }
    }

    async fn claim_due_timers(
        &self,
        now_ms: u64,
    ) -> Result<Vec<(TimerClaim, Option<FiringSlot>)>, StoreError> {
        let mut claims = Vec::new();
        for timer in self.due_timers(now_ms).await? {
            let plugin = &timer.owner.plugin;
            let is_internal = internal::is_internal_plugin(plugin);
            if !is_internal && !self.has_free_slot(plugin) {
                continue;
            }
            match self.parts.timers.claim(&timer.id, now_ms, LEASE_MS).await {
                Ok(None) => {}
                // Internal tools need no place: their messages take no time and need no approval.
                Ok(Some(claim)) if is_internal => claims.push((claim, None)),
                Ok(Some(claim)) => {
                    claims.push((claim, Some(self.slots.take_slot(plugin, Instant::now()))));
                }
                Err(error) if claims.is_empty() => return Err(error),
                // Keep the claims so far, because they would otherwise stay unusable until their
                // leases end.
                Err(_) => break,
            }
        }
        Ok(claims)
    }

    /// Returns the timers that are due and can fire. The store limits a list, and blocked timers
    /// could hide the others for ever. If none of the first ones can fire, it therefore searches
    /// all timers.
    async fn due_timers(&self, now_ms: u64) -> Result<Vec<StoredTimer>, StoreError> {
        let mut due = self.parts.timers.list_due(now_ms).await?;
        let found = due.len();
        due.retain(|timer| self.can_fire(timer));
        if due.is_empty() && found > 0 {
            due = self.parts.timers.all().await?;
            due.retain(|timer| timer.next_ms <= now_ms && self.can_fire(timer));
        }
        Ok(due)
    }

    fn can_fire(&self, timer: &StoredTimer) -> bool {
        let plugin = &timer.owner.plugin;
        if internal::is_internal_plugin(plugin) {
            return !self.is_delayed(timer);
        }
        match self.unavailable_reason(plugin).or_else(|| self.interval_violation(timer)) {
            None => {
                !self.is_blocked(timer) && !self.is_delayed(timer) && self.has_free_slot(plugin)
            }
            Some(problem) => {
                self.warn_once(&format!("{plugin} has a timer that waits: {problem}"));
                false
            }
        }
    }

    /// Returns why a plugin cannot be called back.
    fn unavailable_reason(&self, plugin: &PluginName) -> Option<String> {
        let registry = self.parts.roles.registry();
        let entry = match registry.find_plugin(plugin.as_str()) {
            Ok(entry) => entry,
            Err(missing) => return Some(missing.message().to_owned()),
        };
        if let Some((reason, hint)) = entry.availability().problem_and_hint(plugin) {
            let hint = hint.map(|hint| format!("; {hint}")).unwrap_or_default();
            return Some(format!("the plugin {reason}{hint}"));
        }
        let grant = entry.grant();
        let is_granted = grant.schedule().is_some();
        (!is_granted).then(|| {
            grant.deny_capability(Capability::Schedule, "be called back").reason.to_string()
        })
    }

    /// Returns whether a plugin has a free place for another firing.
    fn has_free_slot(&self, plugin: &PluginName) -> bool {
        let Some(grant) = self.schedule_grant(plugin) else { return false };
        match self.slots.check_availability(plugin, &grant, Instant::now()) {
            SlotAvailability::Free => true,
            SlotAvailability::Full => false,
            SlotAvailability::RateLimited { per_minute } => {
                let rate_text = format!("more than {per_minute} times a minute");
                self.warn_once(&format!("{plugin} fires timers {rate_text}; the others wait"));
                false
            }
        }
    }

    /// Returns the current schedule grant of a plugin.
    fn schedule_grant(&self, plugin: &PluginName) -> Option<ScheduleGrant> {
        let registry = self.parts.roles.registry();
        registry.find_plugin(plugin.as_str()).ok()?.grant().schedule().copied()
    }

    /// Returns why the policy no longer allows a repeated timer that was set before.
    fn interval_violation(&self, timer: &StoredTimer) -> Option<String> {
        if !sallyport_schedule::is_repeating(&timer.schedule) {
            return None;
        }
        let interval_ms_min = self.schedule_grant(&timer.owner.plugin)?.interval_min.as_millis();
        let interval_ms_min = u64::try_from(interval_ms_min).unwrap_or(u64::MAX);
        let found = sallyport_schedule::first_firing_ms(&timer.schedule, now_ms(), interval_ms_min);
        found.err().map(|error| format!("{error} (schedule.interval)"))
    }

    fn is_blocked(&self, timer: &StoredTimer) -> bool {
        let blocked = self.blocked.lock().unwrap_or_else(PoisonError::into_inner);
        blocked.get(&timer.id).is_some_and(|block| block.holds(self.policy_revision()))
    }

    /// Blocks a timer until the policy is another than `revision`, or for a pause. Other timers of
    /// its plugin stay unblocked; other rules may apply to them.
    fn block_timer(&self, timer: &StoredTimer, revision: u64, pause: Option<Duration>) {
        let until = pause.map(|pause| Instant::now() + pause);
        let current_revision = self.policy_revision();
        let mut blocked = self.blocked.lock().unwrap_or_else(PoisonError::into_inner);
        blocked.retain(|_, block| block.holds(current_revision));
        blocked.insert(timer.id.clone(), TimerBlock { revision, until });
    }

    fn is_delayed(&self, timer: &StoredTimer) -> bool {
        let delayed = self.delayed.lock().unwrap_or_else(PoisonError::into_inner);
        delayed.get(&timer.id).is_some_and(|until| Instant::now() < *until)
    }

    /// Delays a timer that cannot fire now, or whose plugin sends too many messages.
    fn delay_timer(&self, timer: &StoredTimer, pause: Duration) {
        let now = Instant::now();
        let mut delayed = self.delayed.lock().unwrap_or_else(PoisonError::into_inner);
        delayed.retain(|_, until| now < *until);
        delayed.insert(timer.id.clone(), now + pause);
    }

    /// Returns whether a timer whose plugin could not notify the user fires again for the same
    /// time. The number of tries is limited, because a firing may always send more messages than
    /// are accepted.
    fn can_retry_notice(&self, timer_id: &str) -> bool {
        let mut notice_tries = self.notice_tries.lock().unwrap_or_else(PoisonError::into_inner);
        let tries = notice_tries.entry(timer_id.to_owned()).or_default();
        *tries += 1;
        let can_retry = *tries < NOTICE_TRIES_MAX;
        if !can_retry {
            notice_tries.remove(timer_id);
        }
        can_retry
    }

    /// Forgets the failed tries of a timer that was settled.
    fn forget_retries(&self, timer: &StoredTimer) {
        self.notice_tries.lock().unwrap_or_else(PoisonError::into_inner).remove(&timer.id);
    }

    fn policy_revision(&self) -> u64 {
        self.parts.roles.registry().gate().policy_store.current().revision
    }

    fn warn_once(&self, message: &str) {
        let mut warned = self.warned.lock().unwrap_or_else(PoisonError::into_inner);
        if warned.insert(message.to_owned()) {
            (self.parts.message_sink)(message);
        }
    }

    /// Returns the time until the next timer becomes due, at most [`POLL_INTERVAL`]. Timers that
    /// were due already are ignored; they wait for a place or for an event without a known time.
    async fn time_until_next(&self, checked_ms: u64) -> Duration {
        let next_ms = self.parts.timers.next_due_ms(checked_ms).await;
        let next_ms = self.note_error(next_ms).flatten();
        let until = next_ms.map(|at_ms| Duration::from_millis(at_ms.saturating_sub(now_ms())));
        until.map_or(POLL_INTERVAL, |until| until.min(POLL_INTERVAL))
    }

    /// Returns the result of the store. An error is reported once; the next look tries again.
    fn note_error<T>(&self, result: Result<T, StoreError>) -> Option<T> {
        result.map_err(|error| self.warn_once(&format!("timers cannot be read: {error}"))).ok()
    }
}
