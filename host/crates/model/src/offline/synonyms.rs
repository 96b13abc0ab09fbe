//! Everyday words that mean the same to a tool.
//!
//! A person says "rain", an author wrote "weather". The groups are few and small on purpose: every
//! further word is one more way to take a sentence for something that it is not.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::stem::stem;

/// Words of one meaning. A word may stand in several groups.
const GROUPS: &[&[&str]] = &[
    &["time", "clock", "hour", "timezone", "o'clock"],
    &["date", "today", "calendar", "day", "weekday"],
    &[
        "weather",
        "forecast",
        "temperature",
        "rain",
        "rainy",
        "snow",
        "sunny",
        "wind",
        "windy",
        "umbrella",
        "degrees",
        "cold",
        "warm",
        "hot",
        "climate",
    ],
    &["forecast", "tomorrow", "later", "week", "weekend", "tonight", "next", "outlook"],
    &["list", "show", "browse", "ls", "enumerate", "inside"],
    &["read", "show", "view", "display", "print", "cat", "open", "contents"],
    &["write", "create", "make", "save", "put", "store", "append", "note", "jot"],
    &["remove", "delete", "erase", "rm", "trash"],
    &["cancel", "stop", "abort", "end"],
    &["create", "make", "add"],
    &["folder", "directory", "mkdir"],
    &["file", "document"],
    &["stat", "size", "big", "large", "modified", "metadata"],
    &[
        "system",
        "computer",
        "machine",
        "cpu",
        "memory",
        "ram",
        "os",
        "hardware",
        "processor",
        "kernel",
        "device",
    ],
    &["info", "information", "details"],
    &["open", "visit", "browse", "launch", "navigate"],
    &["website", "url", "site", "webpage", "page", "web", "link", "browser"],
    &["timer", "alarm", "remind", "reminder", "countdown", "wake"],
    &["set", "start", "begin"],
    &["play", "listen", "hear"],
    &["music", "song", "track", "tune"],
    &["artist", "band", "singer", "musician"],
    &["search", "find", "look", "lookup", "query"],
    &["mail", "email", "e-mail"],
    &["send", "mail", "email"],
    &["picture", "image", "photo"],
    &["movie", "film"],
    &["cost", "price"],
    &["city", "town"],
    &["car", "vehicle"],
    &["shop", "store"],
    &["translate", "translation"],
    &["calculate", "compute"],
];

/// Groups of each stem.
static GROUPS_OF: LazyLock<HashMap<String, Vec<usize>>> = LazyLock::new(|| {
    let mut groups_of: HashMap<String, Vec<usize>> = HashMap::new();
    for (number, group) in GROUPS.iter().enumerate() {
        for word in *group {
            groups_of.entry(stem(word)).or_default().push(number);
        }
    }
    groups_of
});

/// Returns the numbers of the groups that a stem belongs to.
pub(super) fn groups(stem: &str) -> &'static [usize] {
    GROUPS_OF.get(stem).map_or(&[], Vec::as_slice)
}

/// True when two stems are one word or mean the same.
pub(super) fn alike(one: &str, other: &str) -> bool {
    one == other || groups(one).iter().any(|group| groups(other).contains(group))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everyday_words_are_alike() {
        let alike_words = |a: &str, b: &str| alike(&stem(a), &stem(b));
        for (a, b) in [("clock", "time"), ("raining", "weather"), ("folders", "directory")] {
            assert!(alike_words(a, b), "{a} {b}");
        }
        for (a, b) in [("time", "timer"), ("weather", "time"), ("asdf", "qwer"), ("clock", "date")]
        {
            assert!(!alike_words(a, b), "{a} {b}");
        }
    }
}
