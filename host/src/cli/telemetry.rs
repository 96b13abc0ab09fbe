//! Telemetry of a command: it begins with the host that the command opens, and ends with the program.

use std::sync::Arc;

use sallyport_runtime::{
    Host, HostNotice,
    config::{HostSettings, TelemetrySettings},
};
use sallyport_telemetry::{
    Collector, NoticeLog, RedactFunction, TelemetryParts, names::LogSeverity,
};

use super::output::CliOutput;

/// Begins to send spans, metrics and logs if the configuration names a collector. A mistake there is a warning,
/// because calls do not depend on it.
pub(super) fn start(settings: &HostSettings, host: &Host, out: &CliOutput) {
    let Some(telemetry) = &settings.telemetry else { return };
    if let Err(why) = start_export(telemetry, host) {
        let file = settings.config_file.display();
        out.print_warning(&format!(
            "no telemetry is sent: {why}. To fix: correct [telemetry] in {file}"
        ));
    }
}

fn start_export(telemetry: &TelemetrySettings, host: &Host) -> Result<(), String> {
    let collector = Collector::new(&telemetry.endpoint, telemetry.headers())
        .map_err(|error| error.to_string())?;
    let notices = Arc::clone(host.notices());
    let parts = TelemetryParts {
        collector,
        service_name: telemetry.service_name().to_owned(),
        sends_notice_texts: telemetry.notice_texts,
        redact: redact_function(host),
        warn: Box::new(move |warning| notices(HostNotice::Warning(warning))),
    };
    sallyport_telemetry::start(parts).map_err(|error| error.to_string())
}

/// Removes secrets as long as the host is open. It must not keep the host open itself.
fn redact_function(host: &Host) -> RedactFunction {
    let gate = Arc::downgrade(host.registry().gate());
    Arc::new(move |text| Some(gate.upgrade()?.redactor().redact_text(text).into_owned()))
}

/// Sends a notice of the host as a log record, if telemetry has begun.
pub(super) fn log_notice(notice: &HostNotice) {
    let (kind, severity, text) = match notice {
        // They come many times in a second.
        HostNotice::Compiling { .. } | HostNotice::CompilingEnded => return,
        HostNotice::ForeignFile(_) => ("foreign-file", LogSeverity::Warn, None),
        HostNotice::Sandbox(text) => ("sandbox", LogSeverity::Warn, Some(text.as_str())),
        HostNotice::LockLost { .. } => ("lock-lost", LogSeverity::Warn, None),
        HostNotice::UnusedSettings { .. } => ("unused-settings", LogSeverity::Warn, None),
        HostNotice::StillCompiling(_) => ("still-compiling", LogSeverity::Info, None),
        HostNotice::EmbeddingUnavailable { why, .. } => {
            ("embedding-unavailable", LogSeverity::Warn, Some(why.as_str()))
        }
        HostNotice::Warning(text) => ("warning", LogSeverity::Warn, Some(text.as_str())),
        HostNotice::Info(text) => ("info", LogSeverity::Info, Some(text.as_str())),
    };
    sallyport_telemetry::log_notice(NoticeLog { kind, severity, text });
}

/// Sends what is left, and warns of lost spans if nobody has been warned yet.
pub(super) fn finish(out: &CliOutput) {
    if let Some(warning) = sallyport_telemetry::finish() {
        out.print_warning(&warning);
    }
}
