//! Steps that ask the host for something.

use std::fmt::Debug;

use crate::contract::{
    exports::sallyport::plugin::timers::Firing,
    sallyport::plugin::{
        notify::{self, Audience, Message},
        open_url, packages, progress,
        schedule::{self, Calendar, Moment, NewTimer},
        state::{self, Expected},
    },
};

/// Does a step that asks the host for something.
pub(crate) fn step(words: &[&str]) -> Option<String> {
    on_state(words).or_else(|| on_schedule(words)).or_else(|| on_others(words))
}

fn on_state(words: &[&str]) -> Option<String> {
    Some(match *words {
        ["get", key] => told(state::get(key), |kept| {
            kept.map_or("nothing".to_owned(), |kept| {
                format!("{} v{}", String::from_utf8_lossy(&kept.value), kept.version)
            })
        }),
        ["set", key, value] => told(state::set(key, value.as_bytes(), None), shown),
        ["set", key, value, ms] => told(state::set(key, value.as_bytes(), Some(number(ms))), shown),
        ["set-bytes", key, n] => told(state::set(key, &many(n), None), shown),
        ["set-key-of", n] => told(state::set(&text(n), b"", None), shown),
        ["set-times", n, key_bytes, value_bytes] => {
            let (key, value) = (text(key_bytes), many(value_bytes));
            let mut refused = 0;
            for _ in 0..number(n) {
                refused += u64::from(state::set(&key, &value, None).is_err());
            }
            format!("{refused} refused")
        }
        ["cas", key, expected, value] => {
            let expected = match expected {
                "nothing" => Expected::Nothing,
                "other" => Expected::Other("{}".to_owned()),
                version => Expected::Version(number(version)),
            };
            told(state::compare_and_set(key, &expected, value.as_bytes(), None), shown)
        }
        ["bump", key] => changed(key, |count| (number(count.unwrap_or("0")) + 1).to_string()),
        ["del", key] => told(state::remove(key), shown),
        ["list", prefix, after, limit] => {
            let after = (after != "-").then_some(after);
            let page = state::list_keys(prefix, after, u32::try_from(number(limit)).unwrap());
            told(page, |page| format!("{} next {:?}", page.keys.join(" "), page.next))
        }
        _ => return None,
    })
}

fn on_schedule(words: &[&str]) -> Option<String> {
    let add = |moment, label: Option<&str>, payload: &str| {
        let (label, payload) = (label.map(str::to_owned), payload.to_owned());
        told(schedule::add(&NewTimer { moment, label, payload, extra: None }), |timer| {
            format!("{} {:?} at {}", timer.id, timer.label, timer.next_ms)
        })
    };
    Some(match *words {
        ["in", ms, label] => add(Moment::InMs(number(ms)), Some(label), "1"),
        ["doing", ms, step] => add(Moment::InMs(number(ms)), None, &format!("{step:?}")),
        ["every", ms] => add(Moment::EveryMs(number(ms)), None, "{}"),
        ["at", ms, payload] => add(Moment::AtMs(number(ms)), None, payload),
        ["cron", cron, zone] => add(calendar(cron.replace('_', " "), Some(zone)), None, "{}"),
        ["cron-of", n] => add(calendar(text(n), None), None, "{}"),
        ["at-other"] => add(Moment::Other("{}".to_owned()), None, "{}"),
        ["label-of", n] => add(Moment::InMs(1000), Some(&text(n)), "{}"),
        ["payload-of", n] => add(Moment::InMs(1000), None, &format!("{:?}", text(n))),
        ["cancel", id] => told(schedule::cancel(id), shown),
        ["cancel-of", n] => told(schedule::cancel(&text(n)), shown),
        ["timers"] => told(schedule::list_timers(), |timers| {
            let ids: Vec<String> = timers.into_iter().map(|timer| timer.id).collect();
            ids.join(" ")
        }),
        _ => return None,
    })
}

fn calendar(cron: String, time_zone: Option<&str>) -> Moment {
    let time_zone = time_zone.map(str::to_owned);
    Moment::Calendar(Calendar { cron, time_zone, extra: None })
}

fn on_others(words: &[&str]) -> Option<String> {
    let tell = |text: &str, speech: Option<&str>, audience| {
        let (text, speech) = (text.to_owned(), speech.map(str::to_owned));
        told(notify::send(&Message { text, speech, audience, extra: None }), |()| "ok".to_owned())
    };
    Some(match *words {
        ["tell", text] => tell(text, None, Audience::Conversation),
        ["tell-user", text, speech] => tell(text, Some(speech), Audience::User),
        ["tell-other", text, word] => tell(text, None, Audience::Other(word.to_owned())),
        ["tell-bytes", n] => tell(&text(n), None, Audience::Conversation),
        ["part", part, message] => {
            progress::report(part.parse().ok(), Some(message));
            "ok".to_owned()
        }
        ["parts", n] => {
            (0..number(n)).for_each(|_| progress::report(None, Some(&text("1000"))));
            "ok".to_owned()
        }
        ["open", url] => told(open_url::open(url), shown),
        ["open-of", n] => told(open_url::open(&format!("https://e.org/{}", text(n))), shown),
        ["releases", name] => told(packages::releases(name), |releases| {
            let versions: Vec<_> = releases.into_iter().map(|release| release.version).collect();
            versions.join(" ")
        }),
        ["fetch", name, version] => told(packages::fetch(name, version), |files| {
            let files = files.iter().map(|file| format!("{}={}", file.path, file.data.len()));
            files.collect::<Vec<_>>().join(" ")
        }),
        _ => return None,
    })
}

/// Writes a key anew from what it was, however many others do the same.
fn changed(key: &str, change: impl Fn(Option<&str>) -> String) -> String {
    loop {
        let kept = state::get(key).unwrap();
        let before = kept.as_ref().map(|kept| str::from_utf8(&kept.value).unwrap());
        let expected = kept.as_ref().map_or(Expected::Nothing, |k| Expected::Version(k.version));
        let value = change(before);
        match state::compare_and_set(key, &expected, value.as_bytes(), None) {
            Ok(_) => return value,
            Err(state::Error::Conflict(_)) => {}
            Err(error) => return format!("! {error:?}"),
        }
    }
}

/// Counts a firing under the timer's own key, and a mark for what is told of it: `f` fired, `a`
/// again, `l` late.
pub(crate) fn tally(firing: &Firing) {
    let marks = [("f", true), ("a", firing.again), ("l", firing.late)];
    let marks: String = marks.iter().filter(|(_, is)| *is).map(|(mark, _)| *mark).collect();
    let told = changed(&format!("fired-{}", firing.timer.id), |before| {
        format!("{}{marks} ", before.unwrap_or_default())
    });
    assert!(!told.starts_with('!'), "{told}");
}

fn told<T, E: Debug>(result: Result<T, E>, show: impl FnOnce(T) -> String) -> String {
    match result {
        Ok(value) => show(value),
        Err(error) => format!("! {error:?}"),
    }
}

fn shown<T: Debug>(value: T) -> String {
    format!("{value:?}")
}

fn number(word: &str) -> u64 {
    word.parse().unwrap()
}

fn many(n: &str) -> Vec<u8> {
    vec![b'x'; usize::try_from(number(n)).unwrap()]
}

fn text(n: &str) -> String {
    String::from_utf8(many(n)).unwrap()
}
