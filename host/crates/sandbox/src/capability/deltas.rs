//! `deltas`: pieces of an answer while a provider generates it, limited like the answer itself.
//! Outside a generation no client receives them, so such a call is refused.

use std::sync::Arc;

use sallyport_contract::Redactor;
use sallyport_policy::ByteSize;

use super::HostCall;
use crate::{bindings::v0_1::sallyport::plugin::deltas::Host, role_links::DeltaStream};

impl Host for HostCall<'_> {
    fn text(&mut self, text: String) -> wasmtime::Result<()> {
        self.push_delta(|delta_stream, redactor| delta_stream.push_text(&text, redactor));
        Ok(())
    }

    fn reasoning(&mut self, text: String) -> wasmtime::Result<()> {
        self.push_delta(|delta_stream, redactor| delta_stream.push_reasoning(&text, redactor));
        Ok(())
    }
}

impl HostCall<'_> {
    fn push_delta(&self, push: impl FnOnce(&DeltaStream, &Arc<Redactor>) -> bool) {
        let (run_context, what) = (self.run_context, "stream an answer");
        let delta_stream = self.check_role(what, &run_context.role_links.delta_stream);
        let Some(delta_stream) = self.allow_or_record(delta_stream) else { return };
        if !push(&delta_stream, &run_context.authorizer().redactor()) {
            let size = ByteSize(run_context.initial_grant().limits().output_bytes);
            run_context.effect_log.record_limit(format!("{size} of an answer (limits.output)"));
        }
    }
}
