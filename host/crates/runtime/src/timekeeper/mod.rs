//! The timekeeper: lets timers fire while the program lives.
//!
//! It sleeps until the next timer is due, and looks again when one is set here, and now and then for
//! those that other processes set. Several processes may do so at once: whoever claims a timer first
//! lets it fire. A firing passes the gate and is written down like a call, see [`crate::roles`]; it
//! is settled when it has ended, well or not, so that a callback that fails is not repeated for ever.
//! What was killed in between fires again, and is told so.
//!
//! A timer whose plugin is missing, has changed, may not be called back, has too much to do or could
//! not tell the person of it stays due. The person is told once. No plugin's timers keep those of others from firing, see `places`.

mod firing;
mod places;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use sallyport_contract::{PluginName, services::Timer};
use sallyport_policy::{Capability, ScheduleGrant};
use sallyport_store::{Claim, KeptTimers, StoreError};
use tokio::{
    sync::oneshot,
    task::{JoinHandle, JoinSet},
    time::{sleep, timeout},
};

use self::places::{Place, Places, Room};
use crate::{
    gate::{Tell, now_ms},
    internal,
    roles::Roles,
    services::{Alarm, Conversations, USER, apart},
};

/// How often it looks for timers that other processes have set; no timer is later than this for
/// such a reason, which is what the store calls late.
const LOOK_EVERY: Duration = Duration::from_millis(sallyport_store::timers::LATE_MS);

/// How long firings may go on when the program ends. What is cut off fires again at the next start.
const END_TIME_MAX: Duration = Duration::from_secs(2);

/// How long a firing waits that its plugin had no place for, after it has waited for one: each try is on
/// record.
const BUSY_PAUSE: Duration = Duration::from_secs(10);

/// How often a timer fires for the same time whose plugin could not tell the person of it. Then they are
/// told by the host.
const UNSAID_TRIES_MAX: u32 = 10;

/// How long a claim holds without being renewed. Only for a process that stands still does it end.
const LEASE_MS: u64 = 60_000;

/// What a timekeeper works with.
pub struct TimekeeperParts {
    /// All timers.
    pub timers: KeptTimers,
    /// Rings when timers are set in this process.
    pub alarm: Arc<Alarm>,
    /// Where what the host's own tools say goes.
    pub conversations: Arc<Conversations>,
    /// The plugins, behind the gate.
    pub roles: Arc<Roles>,
    /// Who is told what does not go as it should.
    pub tell: Tell,
}

/// A timekeeper at work. Dropped, it is no longer.
pub struct Timekeeper {
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

/// What the timekeeper's task and the firings share.
struct Desk {
    parts: TimekeeperParts,
    places: Arc<Places>,
    warned: Mutex<BTreeSet<String>>,
    /// Timers that were not allowed to fire, with the edition of the policy that said so.
    refused: Mutex<BTreeMap<String, u64>>,
    /// Timers that have to wait, with the time from which they are tried again.
    put_off: Mutex<BTreeMap<String, Instant>>,
    /// How often a timer's plugin could not tell the person of it.
    unsaid: Mutex<BTreeMap<String, u32>>,
}

impl Timekeeper {
    /// Starts on the current tokio runtime.
    pub fn start(parts: TimekeeperParts) -> Self {
        let (stop, stopped) = oneshot::channel();
        let (places, warned, refused, put_off, unsaid) = Default::default();
        let desk = Desk { parts, places, warned, refused, put_off, unsaid };
        Self { stop, task: tokio::spawn(Arc::new(desk).keep(stopped)) }
    }

    /// Lets no timer fire any more, and waits for what is firing, for a moment.
    pub async fn stop(self) {
        drop(self.stop);
        // It does not panic: what could is caught where it runs.
        let _ = self.task.await;
    }
}

impl Desk {
    async fn keep(self: Arc<Self>, mut stopped: oneshot::Receiver<()>) {
        let mut firings = JoinSet::new();
        loop {
            let looked_ms = now_ms();
            self.begin_due(&mut firings, looked_ms).await;
            let wait = self.wait(looked_ms).await;
            tokio::select! {
                _ = &mut stopped => break,
                () = self.parts.alarm.rings() => {}
                Some(_) = firings.join_next() => {}
                () = sleep(wait) => {}
            }
        }
        let rest = async { while firings.join_next().await.is_some() {} };
        let _ = timeout(END_TIME_MAX, rest).await;
    }

    /// Begins as many firings as there are places for.
    async fn begin_due(self: &Arc<Self>, firings: &mut JoinSet<()>, now_ms: u64) {
        let desk = Arc::clone(self);
        let claims = self.store(move || desk.claim_due(now_ms)).await.unwrap_or_default();
        for (claim, place) in claims {
            firings.spawn(Arc::clone(self).fire(claim, place));
        }
    }

    fn claim_due(&self, now_ms: u64) -> Result<Vec<(Claim, Option<Place>)>, StoreError> {
        let mut claims = Vec::new();
        for timer in self.due(now_ms)? {
            let plugin = &timer.owner.plugin;
            let is_own = internal::owns(plugin);
            if !is_own && !self.has_place(plugin) {
                continue;
            }
            match self.parts.timers.claim(&timer.id, now_ms, LEASE_MS) {
                Ok(None) => {}
                // What the host's own tools say takes no time, and nobody is asked about it.
                Ok(Some(claim)) if is_own => claims.push((claim, None)),
                Ok(Some(claim)) => {
                    claims.push((claim, Some(self.places.take(plugin, Instant::now()))));
                }
                Err(error) if claims.is_empty() => return Err(error),
                // What is claimed already would wait for the end of its lease.
                Err(_) => break,
            }
        }
        Ok(claims)
    }

    /// The timers that are due and can fire. The store lists so many at a time, and those that
    /// cannot fire could hide the others for ever.
    fn due(&self, now_ms: u64) -> Result<Vec<Timer>, StoreError> {
        let mut due = self.parts.timers.due(now_ms)?;
        let found = due.len();
        due.retain(|timer| self.can_fire(timer));
        if due.is_empty() && found > 0 {
            due = self.parts.timers.all()?;
            due.retain(|timer| timer.next_ms <= now_ms && self.can_fire(timer));
        }
        Ok(due)
    }

    fn can_fire(&self, timer: &Timer) -> bool {
        let plugin = &timer.owner.plugin;
        if timer.owner.user != USER {
            return false;
        }
        if internal::owns(plugin) {
            return true;
        }
        match self.trouble(plugin).or_else(|| self.haste(timer)) {
            None => !self.is_refused(timer) && !self.is_put_off(timer) && self.has_place(plugin),
            Some(trouble) => {
                self.warn_once(&format!("{plugin} has a timer that waits: {trouble}"));
                false
            }
        }
    }

    /// Why a plugin cannot be called back.
    fn trouble(&self, plugin: &PluginName) -> Option<String> {
        let entry = match self.parts.roles.registry().plugin(plugin.as_str()) {
            Ok(entry) => entry,
            Err(missing) => return Some(missing.message().to_owned()),
        };
        if let Some((reason, hint)) = entry.state().trouble(plugin) {
            let hint = hint.map(|hint| format!("; {hint}")).unwrap_or_default();
            return Some(format!("the plugin {reason}{hint}"));
        }
        let grant = entry.grant();
        let is_granted = grant.schedule().is_some();
        (!is_granted).then(|| grant.deny(Capability::Schedule, "be called back").why)
    }

    /// Whether there is a place for another firing of a plugin.
    fn has_place(&self, plugin: &PluginName) -> bool {
        let Some(grant) = self.schedule(plugin) else { return false };
        match self.places.room(plugin, &grant, Instant::now()) {
            Room::Free => true,
            Room::Full => false,
            Room::Spent { per_minute } => {
                let most = format!("more than {per_minute} times a minute");
                self.warn_once(&format!("{plugin} fires timers {most}; the others wait"));
                false
            }
        }
    }

    /// What a plugin may schedule at this moment.
    fn schedule(&self, plugin: &PluginName) -> Option<ScheduleGrant> {
        let entry = self.parts.roles.registry().plugin(plugin.as_str()).ok()?;
        entry.grant().schedule().copied()
    }

    /// Why a repeated timer that was set before is not what the policy allows any more.
    fn haste(&self, timer: &Timer) -> Option<String> {
        if !sallyport_schedule::repeats(&timer.moment) {
            return None;
        }
        let least = self.schedule(&timer.owner.plugin)?.interval_min.as_millis();
        let least = u64::try_from(least).unwrap_or(u64::MAX);
        let found = sallyport_schedule::first(&timer.moment, now_ms(), least);
        found.err().map(|error| format!("{error} (schedule.interval)"))
    }

    fn is_refused(&self, timer: &Timer) -> bool {
        let refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        refused.get(&timer.id) == Some(&self.edition())
    }

    /// Asks for no firing of a timer again before the policy is another one. Its plugin may have others,
    /// of which a rule says something else.
    fn refuse(&self, timer: &Timer) {
        let edition = self.edition();
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        refused.retain(|_, of| *of == edition);
        refused.insert(timer.id.clone(), edition);
    }

    fn is_put_off(&self, timer: &Timer) -> bool {
        let put_off = self.put_off.lock().unwrap_or_else(PoisonError::into_inner);
        put_off.get(&timer.id).is_some_and(|until| Instant::now() < *until)
    }

    /// Lets a timer wait for a while, because its plugin has too much to do or to say.
    fn put_off(&self, timer: &Timer, pause: Duration) {
        let now = Instant::now();
        let mut put_off = self.put_off.lock().unwrap_or_else(PoisonError::into_inner);
        put_off.retain(|_, until| now < *until);
        put_off.insert(timer.id.clone(), now + pause);
    }

    /// Whether a timer whose plugin could not tell the person of it is to fire again for the same time.
    /// One that says more in a single firing than can be taken would do so for ever.
    fn may_say_later(&self, timer_id: &str) -> bool {
        let mut unsaid = self.unsaid.lock().unwrap_or_else(PoisonError::into_inner);
        let tries = unsaid.entry(timer_id.to_owned()).or_default();
        *tries += 1;
        let may = *tries < UNSAID_TRIES_MAX;
        if !may {
            unsaid.remove(timer_id);
        }
        may
    }

    /// A timer was settled: how it came to that is of no use any more.
    fn forget(&self, timer: &Timer) {
        self.unsaid.lock().unwrap_or_else(PoisonError::into_inner).remove(&timer.id);
    }

    fn edition(&self) -> u64 {
        self.parts.roles.registry().gate().standing.present().number
    }

    fn warn_once(&self, message: &str) {
        let mut warned = self.warned.lock().unwrap_or_else(PoisonError::into_inner);
        if warned.insert(message.to_owned()) {
            (self.parts.tell)(message);
        }
    }

    /// How long nothing becomes due that is known of here. What was due when it looked waits for a
    /// place, or for something that can be long in coming.
    async fn wait(&self, looked_ms: u64) -> Duration {
        let timers = self.parts.timers.clone();
        let next_ms = self.store(move || timers.next_due(looked_ms)).await.flatten();
        let until = next_ms.map(|at_ms| Duration::from_millis(at_ms.saturating_sub(now_ms())));
        until.map_or(LOOK_EVERY, |until| until.min(LOOK_EVERY))
    }

    /// Does something with the store. What goes wrong is told once, and tried again in time.
    async fn store<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
    ) -> Option<T> {
        let done = apart(work).await?;
        done.map_err(|error| self.warn_once(&format!("timers cannot be read: {error}"))).ok()
    }
}
