//! A plugin as the user's side of a session.

use std::sync::Arc;

use sallyport_contract::{AdmittedCall, CallReport, Outcome, ToolOutput, services::UiSession};

use crate::{Plugin, role_data::UiEvent, role_links::RoleLinks};

/// A plugin with a seat at a session.
pub struct PluginUi {
    plugin: Arc<Plugin>,
    call: Arc<AdmittedCall>,
    ui_session: Arc<dyn UiSession>,
}

impl Plugin {
    /// Gives the plugin a seat at a session. `call` has passed the gate.
    pub fn create_ui(
        self: &Arc<Self>,
        call: AdmittedCall,
        ui_session: Arc<dyn UiSession>,
    ) -> PluginUi {
        PluginUi { plugin: Arc::clone(self), call: Arc::new(call), ui_session }
    }
}

impl PluginUi {
    /// Passes an event to the plugin. Dropping the future stops the instance.
    pub async fn handle_event(&self, event: UiEvent) -> CallReport {
        let links =
            RoleLinks { ui_session: Some(Arc::clone(&self.ui_session)), ..RoleLinks::default() };
        let completed = self
            .plugin
            .run_call(Arc::clone(&self.call), links, self.plugin.abi().handle_ui_event(event))
            .await;
        self.plugin.build_report(completed, |(), _| Outcome::Completed(ToolOutput::default()))
    }
}
