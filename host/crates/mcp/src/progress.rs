//! Progress of a call, for clients that ask for it.

use std::{future::Future, pin::pin, time::Duration};

use rmcp::{
    RoleServer,
    model::{ProgressNotificationParam, ProgressToken},
    service::{Peer, RequestContext},
};
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

/// How often a call without news reports that it runs. Clients give up after a minute at the
/// earliest, and many start to count anew with each report.
const REPORT_EVERY: Duration = Duration::from_secs(5);

/// Reports the progress of one call. Without a token it reports nothing.
pub(crate) struct ProgressReporter {
    to: Option<(Peer<RoleServer>, ProgressToken)>,
    steps: u32,
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
        Self { to: token.map(|token| (context.peer.clone(), token)), steps: 0, begin, ticks }
    }

    /// Reports a step. The total is never known, so only the number of steps grows.
    pub(crate) async fn report(&mut self, message: String) {
        self.steps += 1;
        if let Some((peer, token)) = &self.to {
            let progress = ProgressNotificationParam::new(token.clone(), self.steps.into());
            // Whoever does not read the report does not read the result either.
            let _ = peer.notify_progress(progress.with_message(message)).await;
        }
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
