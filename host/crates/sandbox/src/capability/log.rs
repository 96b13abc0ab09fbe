//! `log`: lines for the operator. Always granted; the effect log limits the bytes.

use sallyport_contract::LogLevel;

use super::HostCall;
use crate::bindings::v0_1::sallyport::plugin::log::{Host, Level};

impl Host for HostCall<'_> {
    fn log(&mut self, level: Level, message: String) -> wasmtime::Result<()> {
        // Redacted before the effect log cuts it, so that no part of a secret is left.
        let redactor = self.run_context.authorizer().redactor();
        let level = match level {
            Level::Trace => LogLevel::Trace,
            Level::Debug => LogLevel::Debug,
            Level::Info => LogLevel::Info,
            Level::Warn => LogLevel::Warn,
            Level::Error => LogLevel::Error,
        };
        self.run_context.effect_log.log_line(level, &redactor.redact_text(&message));
        Ok(())
    }
}
