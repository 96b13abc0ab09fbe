//! The warm instances of a plugin, one per session, kept from one call to the next.
//!
//! Each session has a slot. Calls use it one after another and wait for their turn as long as for
//! a place; the first one creates the instance. An instance that trapped, reached a limit or was
//! abandoned in the middle of a call is in an unknown state, so it is removed, and so is one that
//! was idle for too long. The next call starts a new instance and notes that in its report.

mod warm_instance;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use sallyport_contract::{CallFailure, Effect, FailureKind};
use tokio::{sync::OwnedMutexGuard, time::timeout};
use tokio_util::sync::CancellationToken;

use self::warm_instance::{InstanceStatus, WarmInstance};
use crate::{
    grant::{FixedGrantParts, GrantOpenError},
    mutex::lock_mutex,
    run::{GuestInstance, RunResult, RunStopReason},
    run_body::RunBody,
    run_context::RunContext,
};

/// The state of a warm instance as seen from outside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstanceInfo {
    /// The session that it belongs to.
    pub session_id: String,
    /// Its memory at the end of its last call, in bytes.
    pub memory_bytes: u64,
    /// How long it has been idle. Zero while a call runs.
    pub idle: Duration,
}

/// The warm instances of one plugin.
#[derive(Default)]
pub(crate) struct InstancePool(Mutex<HashMap<String, Arc<SessionSlot>>>);

/// The slot of one session.
#[derive(Default)]
pub(crate) struct SessionSlot {
    state: Arc<tokio::sync::Mutex<SlotState>>,
    /// The status of the instance, readable without a turn.
    status: Mutex<Option<Arc<InstanceStatus>>>,
    /// Cancelled when the session ends.
    ended: CancellationToken,
}

/// The occupancy of a slot.
#[derive(Default)]
enum SlotState {
    /// No instance has been created yet.
    #[default]
    New,
    /// A live instance.
    Occupied(WarmInstance),
    /// The last instance is gone.
    Ended(InstanceEndReason),
}

/// The reason why an instance is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum InstanceEndReason {
    /// It failed, reached a limit, or its call was cancelled.
    Stopped,
    /// It was idle for too long.
    Idle,
    /// It was opened with a different grant than the current one.
    GrantChanged,
}

/// One call's turn in a slot.
pub(crate) struct InstanceLease {
    slot: Arc<SessionSlot>,
    state: OwnedMutexGuard<SlotState>,
}

impl InstancePool {
    /// The slot of a session.
    pub(crate) fn session_slot(&self, session_id: &str) -> Arc<SessionSlot> {
        let mut slots = lock_mutex(&self.0);
        if let Some(slot) = slots.get(session_id) {
            return Arc::clone(slot);
        }
        Arc::clone(slots.entry(session_id.to_owned()).or_default())
    }

    /// Ends a session: stops its instance, even in the middle of a call.
    pub(crate) fn end_session(&self, session_id: &str) {
        let slot = lock_mutex(&self.0).remove(session_id);
        if let Some(slot) = slot {
            slot.ended.cancel();
        }
    }

    /// The live instances, sorted by session ID.
    pub(crate) fn list_instances(&self) -> Vec<InstanceInfo> {
        let slots = lock_mutex(&self.0);
        let infos = slots.iter().filter_map(|(session_id, slot)| {
            let (memory_bytes, idle) = lock_mutex(&slot.status).as_ref()?.memory_and_idle_time()?;
            Some(InstanceInfo { session_id: session_id.clone(), memory_bytes, idle })
        });
        let mut infos: Vec<InstanceInfo> = infos.collect();
        infos.sort_by(|one, other| one.session_id.cmp(&other.session_id));
        infos
    }
}

impl SessionSlot {
    /// Waits for a turn.
    ///
    /// # Errors
    ///
    /// The turn did not come in time, or the session has ended.
    pub(crate) async fn acquire_lease(
        self: Arc<Self>,
        time_max: Duration,
    ) -> Result<InstanceLease, RunStopReason> {
        let turn = timeout(time_max, Arc::clone(&self.state).lock_owned());
        tokio::select! {
            biased;
            () = self.ended.cancelled() => Err(session_ended()),
            turn = turn => match turn {
                Ok(state) => Ok(InstanceLease { slot: Arc::clone(&self), state }),
                Err(_) => Err(slot_busy(time_max)),
            },
        }
    }
}

impl SessionSlot {
    /// Removes the instance with this status, unless a caller has replaced it already.
    async fn remove_stopped(&self, status: &Arc<InstanceStatus>) {
        let mut state = self.state.lock().await;
        if matches!(&*state, SlotState::Occupied(instance) if Arc::ptr_eq(instance.status(), status))
        {
            *state = SlotState::Ended(InstanceEndReason::Idle);
        }
    }
}

impl InstanceLease {
    /// Runs something in the session's instance. `begin` creates the instance if there is none.
    ///
    /// # Errors
    ///
    /// A granted folder or file cannot be opened.
    pub(crate) async fn run_in_instance<R: Send + 'static>(
        mut self,
        run_context: &Arc<RunContext>,
        body: RunBody<R>,
        create: impl FnOnce() -> Result<GuestInstance, GrantOpenError>,
    ) -> Result<RunResult<R>, GrantOpenError> {
        if self.slot.ended.is_cancelled() {
            return Ok(RunResult::from_failure(session_ended()));
        }
        let fixed_grant = FixedGrantParts::from_run_context(run_context);
        let mut instance = match self.checkout_instance(&fixed_grant) {
            Some(instance) => instance,
            None => self.spawn_instance(run_context, fixed_grant, create)?,
        };
        // Unless the call returns, the next caller must find no instance, even if this future is
        // dropped.
        *self.state = SlotState::Ended(InstanceEndReason::Stopped);
        let run = tokio::select! {
            biased;
            () = self.slot.ended.cancelled() => RunResult::from_failure(session_ended()),
            run = instance.run(run_context, body) => run,
        };
        if run.result.is_ok() {
            *self.state = SlotState::Occupied(instance);
        }
        Ok(run)
    }

    /// Takes the instance out of the slot, if there is one that can be called.
    fn checkout_instance(&mut self, fixed_grant: &FixedGrantParts) -> Option<WarmInstance> {
        let end_reason = match std::mem::take(&mut *self.state) {
            SlotState::New => return None,
            SlotState::Occupied(instance) if !instance.try_claim() => InstanceEndReason::Idle,
            SlotState::Occupied(instance) if instance.has_same_grant(fixed_grant) => {
                return Some(instance);
            }
            SlotState::Occupied(_) => InstanceEndReason::GrantChanged,
            SlotState::Ended(end_reason) => end_reason,
        };
        *self.state = SlotState::Ended(end_reason);
        None
    }

    fn spawn_instance(
        &mut self,
        run_context: &RunContext,
        fixed_grant: FixedGrantParts,
        create: impl FnOnce() -> Result<GuestInstance, GrantOpenError>,
    ) -> Result<WarmInstance, GrantOpenError> {
        let slot = Arc::downgrade(&self.slot);
        let instance = WarmInstance::start(create()?, fixed_grant, slot);
        if let SlotState::Ended(end_reason) = &*self.state {
            run_context.effect_log.record_effect(end_reason.restart_effect());
        }
        *lock_mutex(&self.slot.status) = Some(Arc::clone(instance.status()));
        Ok(instance)
    }
}

impl InstanceEndReason {
    /// The note in the report of the next call, because a caller that relies on stored state has to
    /// know.
    fn restart_effect(self) -> Effect {
        let why = match self {
            Self::Stopped => "the last one was stopped",
            Self::Idle => "the last one was idle for too long",
            Self::GrantChanged => "other things are granted to it than to the last one",
        };
        Effect::Used { capability: "instance".to_owned(), what: format!("begun anew: {why}") }
    }
}

fn session_ended() -> RunStopReason {
    RunStopReason::Failed(CallFailure::new(FailureKind::Unavailable, "the session has ended"))
}

fn slot_busy(waited: Duration) -> RunStopReason {
    let message = format!(
        "the plugin is busy: another call runs in its instance of this session, and it did not end \
         within {waited:?} (limits.queue-time)"
    );
    RunStopReason::Failed(CallFailure::new(FailureKind::LimitReached, message))
}
