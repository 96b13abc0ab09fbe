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
        push_delta(&self.run_context, |delta_stream, redactor| {
            delta_stream.push_text(&text, redactor)
        });
        Ok(())
    }

    fn reasoning(&mut self, text: String) -> wasmtime::Result<()> {
        push_delta(&self.run_context, |delta_stream, redactor| {
            delta_stream.push_reasoning(&text, redactor)
        });
        Ok(())
    }
}

/// Pushes a piece. Outside a generation no client receives it, so it is dropped.
fn push_delta(run_context: &RunContext, push: impl FnOnce(&DeltaStream, &Arc<Redactor>) -> bool) {
    let Some(delta_stream) = &run_context.role_links.delta_stream else { return };
    if !push(delta_stream, &run_context.authorizer().redactor()) {
        let size = ByteSize(run_context.initial_grant().limits().output_bytes);
        run_context.effect_log.record_limit(format!("{size} of an answer (limits.output)"));
    }
}
