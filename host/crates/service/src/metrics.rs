//! Counters, in the text format of Prometheus.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    sync::{Mutex, MutexGuard, PoisonError},
};

use http::StatusCode;

/// The media type of the text.
pub(crate) const METRICS_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// What has happened since the service started. The labels come from lists of our own, so their
/// number does not grow with what clients send.
#[derive(Debug, Default)]
pub(crate) struct ServiceMetrics {
    requests: Mutex<BTreeMap<(String, u16), u64>>,
    calls: Mutex<BTreeMap<&'static str, u64>>,
}

/// What is the case at this moment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ServiceGauges {
    pub(crate) sessions: usize,
    pub(crate) streams: usize,
    pub(crate) calls: usize,
    pub(crate) requests: usize,
    pub(crate) sockets: usize,
    /// Connections that were closed at once since the start, because too many were open.
    pub(crate) sockets_refused: u64,
    pub(crate) plugins: usize,
    pub(crate) tools: usize,
}

impl ServiceMetrics {
    /// Counts an answered request. `route` is the pattern of the path, not the path.
    pub(crate) fn count_request(&self, route: &str, status: StatusCode) {
        let mut requests = lock(&self.requests);
        match requests.get_mut(&(route.to_owned(), status.as_u16())) {
            Some(count) => *count += 1,
            None => drop(requests.insert((route.to_owned(), status.as_u16()), 1)),
        }
    }

    /// Counts a call that has ended, with the word for how.
    pub(crate) fn count_call(&self, outcome: &'static str) {
        *lock(&self.calls).entry(outcome).or_default() += 1;
    }

    /// All counters as text.
    pub(crate) fn to_text(&self, gauges: ServiceGauges) -> String {
        let mut text = String::new();
        head(&mut text, "requests_total", "counter", "Answered requests by route and status.");
        for ((route, status), count) in &*lock(&self.requests) {
            let labels = format!("{{route=\"{route}\",status=\"{status}\"}}");
            let _ = writeln!(text, "sallyport_requests_total{labels} {count}");
        }
        head(&mut text, "calls_total", "counter", "Ended calls by outcome.");
        for (outcome, count) in &*lock(&self.calls) {
            let _ = writeln!(text, "sallyport_calls_total{{outcome=\"{outcome}\"}} {count}");
        }
        let refused = gauges.sockets_refused;
        head(&mut text, "sockets_refused_total", "counter", "Connections closed at the limit.");
        let _ = writeln!(text, "sallyport_sockets_refused_total {refused}");
        if let Some(lost) = sallyport_telemetry::lost_spans() {
            head(&mut text, "lost_spans_total", "counter", "Spans that the collector did not get.");
            let _ = writeln!(text, "sallyport_lost_spans_total {lost}");
        }
        if let Some(lost) = sallyport_telemetry::lost_logs() {
            let help = "Log records that the collector did not get.";
            head(&mut text, "lost_logs_total", "counter", help);
            let _ = writeln!(text, "sallyport_lost_logs_total {lost}");
        }
        for (name, help, value) in gauges.rows() {
            head(&mut text, name, "gauge", help);
            let _ = writeln!(text, "sallyport_{name} {value}");
        }
        text
    }
}

impl ServiceGauges {
    fn rows(self) -> [(&'static str, &'static str, usize); 7] {
        [
            ("open_sessions", "Open sessions.", self.sessions),
            ("event_streams", "Streams of events.", self.streams),
            ("running_calls", "Calls that run or wait for an approval.", self.calls),
            ("running_requests", "Requests that are being answered.", self.requests),
            ("sockets", "Open connections.", self.sockets),
            ("plugins", "Loaded plugins.", self.plugins),
            ("tools", "Tools that can be called.", self.tools),
        ]
    }
}

fn head(text: &mut String, name: &str, kind: &str, help: &str) {
    let _ = writeln!(text, "# HELP sallyport_{name} {help}\n# TYPE sallyport_{name} {kind}");
}

fn lock<T>(counts: &Mutex<T>) -> MutexGuard<'_, T> {
    counts.lock().unwrap_or_else(PoisonError::into_inner)
}
