//! Progress of a call, for clients that ask for it.

use std::{future::Future, pin::pin, time::Duration};

use rmcp::{
    RoleServer,
    model::{ProgressNotificationParam, ProgressToken},
    service::{Peer, RequestContext},
};
use sallyport_contract::{services::CallProgress, text};
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

/// How often a call without news reports that it runs. Clients give up after a minute at the
/// earliest, and many start to count anew with each report.
const REPORT_EVERY: Duration = Duration::from_secs(5);

/// The value of a call that is done, if the plugin reports how far it has come.
const PERCENT: f64 = 100.0;

/// The least difference between two values.
const STEP_MIN: f64 = 0.001;

/// Reports the progress of one call. Without a token it reports nothing.
pub(crate) struct ProgressReporter {
    to: Option<(Peer<RoleServer>, ProgressToken)>,
    /// The last value that was sent. Each one has to be greater than that before it.
    value: f64,
    begin: Instant,
    ticks: Interval,
}

impl ProgressReporter {
    /// Starts to report on a request.
    pub(crate) fn new(context: &RequestContext<RoleServer>) -> Self {
        let token = context.meta.get_progress_token();
        let begin = Instant::now();
        let mut ticks = interval_at(begin + REPORT_EVERY, REPORT_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self { to: token.map(|token| (context.peer.clone(), token)), value: 0.0, begin, ticks }
    }

    /// Reports a step. How many there will be is not known, so only their number grows.
    pub(crate) async fn report(&mut self, message: String) {
        self.value = self.value.floor() + 1.0;
        self.send(None, Some(message)).await;
    }

    /// Reports how far the plugin has come, by its own account.
    pub(crate) async fn report_plugin(&mut self, progress: CallProgress) {
        let percent = progress.fraction.map(|fraction| fraction * PERCENT);
        self.value = percent.unwrap_or(0.0).max(self.value + STEP_MIN);
        self.send(percent.map(|_| PERCENT), progress.message).await;
    }

    async fn send(&self, total: Option<f64>, message: Option<String>) {
        let Some((peer, token)) = &self.to else { return };
        let mut progress = ProgressNotificationParam::new(token.clone(), self.value);
        progress.total = total.filter(|total| self.value <= *total);
        progress.message = message.map(|message| text::escape_line(&message));
        // Whoever does not read the report does not read the result either.
        let _ = peer.notify_progress(progress).await;
    }

    /// Waits for a part of the call, and reports now and then what state the call is in.
    pub(crate) async fn report_during<T>(
        &mut self,
        state: &str,
        part: impl Future<Output = T>,
    ) -> T {
        let mut part = pin!(part);
        loop {
            tokio::select! {
                done = &mut part => return done,
                _ = self.ticks.tick() => {}
            }
            self.report(format!("{state} for {} s", self.begin.elapsed().as_secs())).await;
        }
    }
}
