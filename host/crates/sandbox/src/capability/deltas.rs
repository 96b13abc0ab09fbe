//! `deltas`: pieces of an answer while a provider generates it, limited like the answer itself.
//! Calls outside a generation do nothing.

use std::sync::Arc;

use sallyport_contract::Redactor;
use sallyport_policy::ByteSize;

use crate::{
    bindings::v0_1::sallyport::plugin::deltas::Host, guest::Guest, roles::DeltaStream,
    run_context::RunContext,
};

impl Host for Guest {
    fn text(&mut self, text: String) -> wasmtime::Result<()> {
        push_delta(&self.run_context, |speech, redactor| speech.push_text(&text, redactor));
        Ok(())
    }

    fn reasoning(&mut self, text: String) -> wasmtime::Result<()> {
        push_delta(&self.run_context, |speech, redactor| speech.push_reasoning(&text, redactor));
        Ok(())
    }
}

/// Pushes a piece. Outside a generation no client receives it, so it is dropped.
fn push_delta(case: &RunContext, passes: impl FnOnce(&DeltaStream, &Arc<Redactor>) -> bool) {
    let Some(speech) = &case.role_links.delta_stream else { return };
    if !passes(speech, &case.authorizer().redactor()) {
        let size = ByteSize(case.initial_grant().limits().output_bytes);
        case.effect_log.record_limit(format!("{size} of an answer (limits.output)"));
    }
}
