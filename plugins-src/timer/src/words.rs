//! Formats timers as text.

use sallyport_sdk::schedule::{self, Firing};

use crate::store::{Note, Running};

/// The units of a duration, in seconds.
const UNITS: [(u64, &str); 4] = [(86_400, "day"), (3_600, "hour"), (60, "minute"), (1, "second")];

/// Returns a duration such as "1 minute 30 seconds".
pub(crate) fn duration(seconds: u64) -> String {
    let mut rest = seconds;
    let mut parts = Vec::new();
    for (unit_seconds, unit) in UNITS {
        match rest / unit_seconds {
            0 => {}
            1 => parts.push(format!("1 {unit}")),
            many => parts.push(format!("{many} {unit}s")),
        }
        rest %= unit_seconds;
    }
    if parts.is_empty() { "0 seconds".to_owned() } else { parts.join(" ") }
}

/// Returns "pasta timer", or "timer for 8 minutes".
pub(crate) fn name(running: &Running) -> String {
    named(running.label(), Some(running.note.seconds))
}

/// Returns the message for a timer that has ended.
pub(crate) fn rings(firing: &Firing) -> String {
    let seconds = firing.timer.payload_as::<Note>().ok().map(|note| note.seconds);
    let name = named(firing.timer.label.as_deref(), seconds);
    let late_seconds = schedule::now_ms().saturating_sub(firing.due_ms) / 1_000;
    let mut text = format!("Your {name} is done");
    if firing.late && late_seconds > 0 {
        text.push_str(&format!(", {} late", duration(late_seconds)));
    }
    text.push('.');
    if firing.again {
        text.push_str(" You may have heard this before.");
    }
    text
}

/// Returns a sentence about the running timers.
pub(crate) fn summary(running: &[Running]) -> String {
    let parts: Vec<String> = running.iter().map(with_rest).collect();
    match parts.as_slice() {
        [] => "There are no timers.".to_owned(),
        [only] => format!("The {only}."),
        [all @ .., last] => {
            format!("There are {} timers: the {}, and the {last}.", parts.len(), all.join(", the "))
        }
    }
}

fn with_rest(running: &Running) -> String {
    format!("{} has {} left", name(running), duration(running.remaining_seconds()))
}

fn named(label: Option<&str>, seconds: Option<u64>) -> String {
    match (label, seconds) {
        (Some(label), _) => format!("{label} timer"),
        (None, Some(seconds)) => format!("timer for {}", duration(seconds)),
        (None, None) => "timer".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_singular_and_plural_as_they_should() {
        for (seconds, want) in [
            (0, "0 seconds"),
            (1, "1 second"),
            (59, "59 seconds"),
            (60, "1 minute"),
            (90, "1 minute 30 seconds"),
            (480, "8 minutes"),
            (3_601, "1 hour 1 second"),
            (7_200, "2 hours"),
            (90_061, "1 day 1 hour 1 minute 1 second"),
            (172_800, "2 days"),
        ] {
            assert_eq!(duration(seconds), want);
        }
    }
}
