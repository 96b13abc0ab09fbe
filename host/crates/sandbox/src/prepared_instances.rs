//! Instances that are made ahead of the calls that will use them.
//!
//! A policy can ask for them (`limits.prepared-instances`). Each serves one call, so a call still
//! gets an instance that no other call has used. It only does not wait until the instance is made, nor
//! until its memory is given back.
//!
//! What a component does while it starts, it does before any call has passed the gate: without
//! grants, and in no session. So a component that then asks the host for something, or logs, gets
//! its instances when they are called, and so does one with folders, which are opened for each
//! call. An instance whose environment or memory limit is no longer that of the call is not used.

use std::{
    mem,
    sync::{Arc, Mutex, Weak},
    time::{Duration, Instant},
};

use sallyport_policy::{Grant, PluginLimits};
use tokio::{sync::Notify, time::timeout};

use crate::{
    authorizer::HostCallAuthorizer, capability::SharedPluginState, grant::FixedGrantParts,
    leftovers, linked_plugin::LinkedPlugin, mutex::lock_mutex, pooled_plugin::PooledPlugin,
    run::GuestInstance, run_context::RunContext,
};

/// How long no instance is made after one could not be.
const RETRY_AFTER: Duration = Duration::from_secs(60);

/// The instances of one plugin that wait for a call.
pub(crate) struct PreparedInstances {
    pooled: Arc<PooledPlugin>,
    authorizer: Arc<dyn HostCallAuthorizer>,
    shared_state: Arc<SharedPluginState>,
    state: Mutex<PreparedState>,
    /// A call has used an instance, or the plugin is gone.
    used: Arc<Notify>,
}

#[derive(Default)]
struct PreparedState {
    waiting: Vec<WaitingInstance>,
    /// Instances whose call has ended.
    spent: Vec<GuestInstance>,
    /// Whether a task makes instances.
    is_served: bool,
    /// No instance is made before.
    retry_at: Option<Instant>,
}

/// An instance that has started and that no call has used.
struct WaitingInstance {
    guest_instance: GuestInstance,
    fixed_grant: FixedGrantParts,
}

impl PreparedInstances {
    pub(crate) fn new(
        pooled: &Arc<PooledPlugin>,
        authorizer: &Arc<dyn HostCallAuthorizer>,
        shared_state: &Arc<SharedPluginState>,
    ) -> Arc<Self> {
        Arc::new(Self {
            pooled: Arc::clone(pooled),
            authorizer: Arc::clone(authorizer),
            shared_state: Arc::clone(shared_state),
            state: Mutex::default(),
            used: Arc::default(),
        })
    }

    /// The number of instances that wait for a call.
    pub(crate) fn waiting(&self) -> usize {
        lock_mutex(&self.state).waiting.len()
    }

    /// Takes an instance for a call, with the exports of its engine. `None` if there is none that
    /// fits the grant of the call.
    pub(crate) fn take_instance(
        &self,
        run_context: &Arc<RunContext>,
    ) -> Option<(&LinkedPlugin, GuestInstance)> {
        if self.waiting() == 0 {
            return None;
        }
        let linked = self.pooled.linked()?;
        let fixed_grant = FixedGrantParts::from_run_context(run_context);
        let (fitting, unfit) = lock_mutex(&self.state).take_fitting(&fixed_grant);
        drop(unfit);
        let mut guest_instance = fitting?;
        guest_instance.guest_mut().begin_run(run_context);
        Some((linked, guest_instance))
    }

    /// Ends the use of an instance, which a panic of the host may have lost, and has others made.
    /// What is left of it is given back by the task that makes them, because the answer of the call
    /// need not wait for that.
    pub(crate) fn end_use(self: &Arc<Self>, limits: &PluginLimits, used: Option<GuestInstance>) {
        let wanted = limits.prepared_instances as usize;
        let mut state = lock_mutex(&self.state);
        let may_begin = self.pooled.linked().is_some() && state.may_begin();
        if wanted == 0 || !state.is_served && !may_begin {
            let unwanted = mem::take(&mut state.waiting);
            drop(state);
            drop(unwanted);
            leftovers::drop_or_collect(used);
            return;
        }
        let surplus = state.keep_spent(used, wanted);
        let begins = !mem::replace(&mut state.is_served, true);
        drop(state);
        drop(surplus);
        if begins {
            tokio::spawn(serve(Arc::downgrade(self), Arc::clone(&self.used)));
        } else {
            self.used.notify_one();
        }
    }

    /// Removes what is left of ended calls, and makes instances until as many wait as the policy asks
    /// for. Returns how long they wait for a call, or `None` if no more can be made for now.
    async fn replenish(&self) -> Option<Duration> {
        loop {
            let spent = mem::take(&mut lock_mutex(&self.state).spent);
            drop(spent);
            let grant = self.authorizer.current_grant();
            let limits = grant.limits();
            if self.waiting() >= limits.prepared_instances as usize {
                return Some(limits.idle);
            }
            let instance = self.make_instance(&grant).await;
            let mut state = lock_mutex(&self.state);
            match instance {
                Some(instance) => state.waiting.push(instance),
                None => {
                    state.retry_at = Some(Instant::now() + RETRY_AFTER);
                    return None;
                }
            }
        }
    }

    /// Makes an instance for the calls that `grant` allows. `None` if it has to be made for its
    /// call, or if there is no place for it.
    async fn make_instance(&self, grant: &Grant) -> Option<WaitingInstance> {
        let run_context = RunContext::without_call(Arc::clone(&self.authorizer), None);
        let environment = run_context.environment_variables(grant);
        let fixed_grant = FixedGrantParts::new(grant, environment);
        if fixed_grant.has_folders() {
            return None;
        }
        let (linked, place) = self.pooled.take_free_place()?;
        let environment = fixed_grant.environment();
        let guest = self
            .pooled
            .sandbox()
            .create_guest_with_environment(&run_context, &self.shared_state, environment)
            .ok()?;
        let mut guest_instance = GuestInstance::new(linked, guest, Some(place));
        guest_instance.start().await.result.ok()?;
        let has_asked_nothing = run_context.effect_log.close().is_empty();
        has_asked_nothing.then_some(WaitingInstance { guest_instance, fixed_grant })
    }

    /// Removes all instances, and notes that no task makes others.
    fn end_service(&self) {
        let mut state = lock_mutex(&self.state);
        state.is_served = false;
        let left = (mem::take(&mut state.waiting), mem::take(&mut state.spent));
        drop(state);
        drop(left);
    }
}

impl Drop for PreparedInstances {
    fn drop(&mut self) {
        self.used.notify_one();
    }
}

impl PreparedState {
    fn may_begin(&self) -> bool {
        self.retry_at.is_none_or(|time| Instant::now() >= time)
    }

    /// Keeps what is left of an ended call, or returns it if there is too much of that.
    fn keep_spent(&mut self, used: Option<GuestInstance>, most: usize) -> Option<GuestInstance> {
        if self.spent.len() >= most {
            return used;
        }
        self.spent.extend(used);
        None
    }

    /// Takes an instance that fits, and all that do not.
    fn take_fitting(
        &mut self,
        fixed_grant: &FixedGrantParts,
    ) -> (Option<GuestInstance>, Vec<WaitingInstance>) {
        let unfit = |one: &mut WaitingInstance| one.fixed_grant != *fixed_grant;
        let unfit = self.waiting.extract_if(.., unfit).collect();
        (self.waiting.pop().map(|one| one.guest_instance), unfit)
    }
}

/// Makes instances until none was used for as long as one may be idle, or the plugin is gone.
async fn serve(plugin: Weak<PreparedInstances>, used: Arc<Notify>) {
    let _end = EndOfService(plugin.clone());
    while let Some(prepared) = plugin.upgrade() {
        let Some(idle_max) = prepared.replenish().await else { return };
        drop(prepared);
        if timeout(idle_max, used.notified()).await.is_err() {
            return;
        }
    }
}

/// Ends the service of a plugin when its task ends, also by a panic.
struct EndOfService(Weak<PreparedInstances>);

impl Drop for EndOfService {
    fn drop(&mut self) {
        if let Some(prepared) = self.0.upgrade() {
            prepared.end_service();
        }
    }
}
