//! `deltas`: pieces of an answer while a provider generates it, limited like the answer itself.
//! Calls outside a generation do nothing.

use std::sync::Arc;

use sallyport_contract::Redactor;
use sallyport_policy::ByteSize;

use crate::{
    bindings::v0_1::sallyport::plugin::deltas::Host, case::Case, guest::Guest, roles::Speech,
};

impl Host for Guest {
    fn text(&mut self, text: String) -> wasmtime::Result<()> {
        say(&self.case, |speech, redactor| speech.text(&text, redactor));
        Ok(())
    }

    fn reasoning(&mut self, text: String) -> wasmtime::Result<()> {
        say(&self.case, |speech, redactor| speech.reasoning(&text, redactor));
        Ok(())
    }
}

/// Pushes a piece. Outside a generation no client receives it, so it is dropped.
fn say(case: &Case, passes: impl FnOnce(&Speech, &Arc<Redactor>) -> bool) {
    let Some(speech) = &case.role.speech else { return };
    if !passes(speech, &case.warden().redactor()) {
        let size = ByteSize(case.granted().limits().output_bytes);
        case.ledger.limit_reached(format!("{size} of an answer (limits.output)"));
    }
}
