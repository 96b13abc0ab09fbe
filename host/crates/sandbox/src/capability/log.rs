//! `log`: lines for the operator. Always granted; the ledger limits the bytes.

use sallyport_contract::LogLevel;

use crate::{
    bindings::v0_1::sallyport::plugin::log::{Host, Level},
    guest::Guest,
};

impl Host for Guest {
    fn log(&mut self, level: Level, message: String) -> wasmtime::Result<()> {
        // Redacted before the ledger cuts it, so that no part of a secret is left.
        let redactor = self.run_context.authorizer().redactor();
        self.run_context
            .effect_log
            .log_line(level_from_guest(level), &redactor.redact_text(&message));
        Ok(())
    }
}

fn level_from_guest(level: Level) -> LogLevel {
    match level {
        Level::Trace => LogLevel::Trace,
        Level::Debug => LogLevel::Debug,
        Level::Info => LogLevel::Info,
        Level::Warn => LogLevel::Warn,
        Level::Error => LogLevel::Error,
    }
}
