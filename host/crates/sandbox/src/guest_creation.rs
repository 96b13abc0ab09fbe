//! Creates guests: the state of a store, with what the grant of a run opens.

use std::sync::Arc;

use sallyport_contract::LogLevel;

use crate::{
    Sandbox,
    capability::{HostCallCounters, SharedPluginState, stdio::GuestOutput},
    current_run::CurrentRun,
    effect_log::STDERR_LEVEL,
    grant,
    guest::{Guest, bounded_http, bounded_table},
    limits::MemoryAccount,
    net::{HttpGate, HttpUsage},
    run_context::RunContext,
};

impl Sandbox {
    /// Opens a sandbox for one run.
    #[tracing::instrument(name = "open_grants", skip_all)]
    pub(crate) fn create_guest(
        &self,
        run_context: &Arc<RunContext>,
        shared_state: &Arc<SharedPluginState>,
    ) -> Result<Guest, grant::GrantOpenError> {
        let environment = run_context.environment_variables(run_context.initial_grant());
        self.create_guest_with_environment(run_context, shared_state, &environment)
    }

    /// The same, with an environment that may be that of later runs.
    pub(crate) fn create_guest_with_environment(
        &self,
        run_context: &Arc<RunContext>,
        shared_state: &Arc<SharedPluginState>,
        environment: &[(String, String)],
    ) -> Result<Guest, grant::GrantOpenError> {
        let current_run = CurrentRun::new(run_context);
        let output =
            [LogLevel::Info, STDERR_LEVEL].map(|level| GuestOutput::new(&current_run, level));
        let opened = grant::open_guest_resources(
            &current_run,
            &output,
            environment,
            &self.disk,
            self.simulation.now,
        )?;
        let limits = run_context.initial_grant().limits().clone();
        Ok(Guest {
            wasi: opened.wasi,
            files: opened.files,
            table: bounded_table(limits.handles),
            http: bounded_http(),
            http_gate: HttpGate {
                run_context: Arc::clone(run_context),
                resolver: Arc::clone(&self.resolver),
                tls: Arc::clone(&self.tls),
                usage: Arc::new(HttpUsage::default()),
                simulated_network: self.simulation.network.clone(),
            },
            memory: MemoryAccount::new(limits.memory_bytes),
            run_context: Arc::clone(run_context),
            current_run,
            output,
            counters: HostCallCounters::default(),
            shared_state: Arc::clone(shared_state),
            limits,
            file_copies: opened.file_copies,
            disk: Arc::clone(&self.disk),
        })
    }
}
