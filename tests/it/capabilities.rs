//! What a plugin keeps, plans, tells, shows, opens and fetches: each only as granted, within
//! limits, and on record.

use std::{sync::Arc, time::Duration};

use sallyport_contract::{
    Denial, ToolCallContext,
    services::{CallProgress, DeliveryTime, NoticeAudience},
};
use sallyport_policy::Manifest;
use sallyport_sandbox::{ComponentFile, LoadError, PluginParts};
use serde_json::Map;

use crate::support::{
    home::{guest, manifest},
    living::{self, Living, REQUESTS, refused, told, used, warden},
    registry,
};

/// A grant of everything, small where a limit shall be reached.
const ALL: &str = r#"
state = { quota = "4KiB", value = "2KiB" }
schedule = { timers = 2, interval = "1m" }
notify = { per-minute = 3 }
progress = true
open-url = { allow = ["https://example.com/**"], decision = "allow" }
packages = ["tabulate==0.9.0", "nothing"]
"#;

/// Does steps one after the other, each with what has to come of it.
#[track_caller]
fn check(living: &Living, rows: &[(&str, &str)]) {
    for (step, words) in rows {
        let came = living.step(step);
        assert!(came.contains(words), "{step}: {came}");
    }
}

#[test]
fn keys_and_values_are_kept() {
    let living = Living::fresh(ALL);
    check(
        &living,
        &[
            ("get a", "nothing"),
            ("set a 1", "1"),
            ("set a 2", "2"),
            ("get a", "2 v2"),
            ("cas a nothing 3", "! Error::Conflict(Some(2))"),
            ("cas b 7 3", "! Error::Conflict(None)"),
            ("cas a 2 3", "3"),
            ("cas a other 3", "! Error::Invalid"),
            ("cas b nothing 4", "1"),
            ("set c 5 60000", "1"),
            ("set c 5 18446744073709551615", "2"),
            ("set c 5 0", "! Error::Invalid(\"it would expire at once\")"),
            ("list  - 2", "a b next Some(\"b\")"),
            ("list  b 2", "c next None"),
            ("list b - 4294967295", "b next None"),
            ("list  - 0", "! Error::Invalid"),
            ("del a", "true"),
            ("del a", "false"),
        ],
    );
}

#[test]
fn what_is_kept_belongs_to_a_user() {
    let living = Living::fresh(ALL);
    living.step("set mine 1");
    let context = ToolCallContext { user_id: Some("ann".to_owned()), ..ToolCallContext::default() };
    let of_ann = |steps: &[&str]| told(&living.wait(living.begin_in(context.clone(), steps)));
    assert_eq!(of_ann(&["get mine", "set hers 2"]), ["nothing", "1"]);
    assert_eq!(living.offers.keys(), ["ann hers", "tester mine"]);
}

#[test]
fn the_versions_that_can_be_had_are_those_of_the_index_that_are_granted() {
    let living = Living::fresh(&ALL.replace("\"nothing\"", "\"nothing\", \"six\""));
    check(
        &living,
        &[
            ("releases tabulate", "0.9.0"),
            ("releases six", "2.0 0.9.0 0.8"),
            ("releases nothing", "there is no nothing"),
            ("releases pandas", "no grant covers it; granted: tabulate==0.9.0, nothing, six"),
            ("fetch tabulate 2.0", "no grant covers it; granted: tabulate==0.9.0, nothing, six"),
            ("releases ../six", "it is not the name and version of a package"),
        ],
    );
    assert_eq!(living.step("releases tabulate"), "0.9.0", "and no other");
}

#[test]
fn an_audience_that_is_not_known_is_refused() {
    let living = Living::fresh(ALL);
    check(&living, &[("tell-other hello everybody", "! Error::Invalid")]);
}

#[test]
fn h12_keys_and_values_have_an_end() {
    let living = Living::fresh(&format!("{ALL}limits = {{ memory = \"512MiB\" }}\n"));
    check(
        &living,
        &[
            ("set-key-of 512", "1"),
            ("set-key-of 513", "a key of 513 bytes, 512 are allowed"),
            ("set-key-of 1048576", "a key of 1048576 bytes"),
            ("set  x", "the key is empty"),
            ("get ", "the key is empty"),
            ("set-bytes k 2048", "1"),
            ("set-bytes k 2049", "a value of 2049 bytes, 2048 are allowed"),
            ("set-bytes l 1600", "! Error::QuotaReached"),
            ("set-bytes l 1000", "1"),
        ],
    );
    for step in ["set-bytes k", "set-key-of", "cron-of", "label-of", "cancel-of", "tell-bytes"] {
        let report = living.call(&[&format!("{step} 134217728")]);
        assert_eq!(report.outcome.as_str(), "failed", "{step}");
        assert!(registry::told(&report).contains("limits.host-call"), "{step}: {report:?}");
    }
    assert_eq!(living.step("get l").len(), "v1 ".len() + 1000, "nothing has changed");
}

#[test]
fn h12_a_loop_of_questions_is_told_that_it_is_enough() {
    let living = Living::fresh(ALL);
    let report = living.call(&["set-times 12000 10 2000", "get k", "timers"]);
    let said = told(&report);
    assert_eq!(said[0], "2000 refused");
    assert!(said[1].contains("10000 questions to the store"), "{said:?}");
    assert!(said[2].contains("10000 questions to the store"), "{said:?}");
    assert!(report.effects.len() < 10, "the same thing is written down once: {report:?}");
    assert_eq!(living.step("set-times 3 10 10"), "0 refused", "each call has its own count");
}

#[test]
fn what_a_store_cannot_do_is_told_without_its_secrets() {
    let living = Living::fresh(ALL);
    *living.offers.broken.lock().unwrap() = true;
    let report = living.call(&["get k", "tell x"]);
    let said = told(&report);
    assert!(said[0].contains("the store cannot be reached just now"), "{said:?}");
    assert!(said[1].contains("the conversation cannot be reached just now"), "{said:?}");
    assert_eq!(used(&report)[0], "state: get \"k\": the disk is at /secret/place");
    let nothing = Living::lonely(ALL);
    check(
        &nothing,
        &[
            ("get k", "nothing can be kept here"),
            ("in 5 x", "no timers can be set here"),
            ("tell x", "there is nobody to tell"),
            ("part 1 x", "ok"),
            ("open https://example.com/", "pages cannot be opened here"),
            ("fetch tabulate 0.9.0", "no packages can be fetched here"),
        ],
    );
}

#[test]
fn timers_are_set_and_cancelled() {
    let living = Living::fresh(ALL);
    check(
        &living,
        &[
            ("in 5 tea", "t0 Some(\"tea\") at 7"),
            ("cron 0_9_*_*_1-5 Europe/Berlin", "t1"),
            ("every 60000", "! Error::QuotaReached(\"there are 2 timers already"),
            ("timers", "t0 t1"),
            ("cancel t0", "true"),
            ("cancel t0", "false"),
            ("cancel-of 100000", "false"),
            ("at-other", "! Error::Invalid"),
            ("at 5 {", "the payload is not JSON"),
            ("label-of 257", "the label has 257 bytes, 256 are allowed"),
            ("payload-of 20000", "the payload has 20002 bytes, 16384 are allowed"),
            ("cron-of 257", "the cron expression has 257 bytes"),
        ],
    );
}

#[test]
fn what_the_host_is_still_at_when_the_time_is_over_is_on_record() {
    let living = Living::fresh("notify = true\nlimits = { time = \"200ms\" }");
    let busy = living.offers.notices.lock().unwrap();
    let report = living.call(&["tell hello"]);
    assert_eq!(report.outcome.as_str(), "timed-out", "{report:?}");
    assert_eq!(used(&report), ["notify: a message to the conversation (5 bytes)"]);
    drop(busy);
}

#[test]
fn messages_are_passed_on_and_counted_over_all_calls() {
    let living =
        Living::by(warden("", ALL).secret("token", Ok("hunter2hunter2")), &living::sandbox());
    check(
        &living,
        &[
            ("tell ", "the text is empty"),
            ("tell-bytes 4097", "the text has 4097 bytes"),
            ("tell-user hello ", "the speech is empty"),
            ("tell hunter2hunter2!", "ok"),
            ("tell-user hello hi", "ok"),
            ("tell-bytes 4096", "ok"),
            ("tell x", "ok"),
            ("tell y", "ok"),
        ],
    );
    let notices = living.offers.notices.lock().unwrap();
    assert_eq!(notices.len(), 5);
    let shown = living.offers.deliveries.lock().unwrap();
    assert_eq!(shown[..2], [DeliveryTime::Immediate; 2]);
    // What is beyond three a minute is gathered in the third.
    assert!(shown[2..].iter().all(|one| matches!(one, DeliveryTime::Batched(_))), "{shown:?}");
    assert!(!notices[0].text.contains("hunter2"), "{notices:?}");
    let second = &notices[1];
    assert_eq!((second.session_id.as_str(), second.plugin.as_str()), ("s", "living"));
    assert_eq!((second.speech.as_deref(), second.audience), (Some("hi"), NoticeAudience::User));
}

#[test]
fn progress_is_shown_as_far_as_it_makes_sense() {
    let living = Living::fresh(ALL);
    living.steps(&["part 0.5 half", "part 7 x", "part -1 x", "part NaN x", "parts 1"]);
    let shown = std::mem::take(&mut *living.offers.progress.lock().unwrap());
    let parts: Vec<Option<f64>> = shown.iter().map(|progress| progress.fraction).collect();
    assert_eq!(parts, [Some(0.5), Some(1.0), Some(0.0), None, None]);
    assert_eq!(shown[0], CallProgress { fraction: Some(0.5), message: Some("half".to_owned()) });
    assert_eq!(shown[4].message.as_ref().map(String::len), Some(256));
    let report = living.call(&["parts 100000"]);
    assert_eq!(living.offers.progress.lock().unwrap().len(), 1000);
    assert_eq!(used(&report), ["progress: shown"]);
}

#[test]
fn no_message_ends_in_a_part_of_a_secret() {
    let living =
        Living::by(warden("", ALL).secret("token", Ok("hunter2hunter2")), &living::sandbox());
    living.step(&format!("part 1 {}hunter2hunter2", "x".repeat(250)));
    let shown = living.offers.progress.lock().unwrap();
    assert!(!format!("{shown:?}").contains("hunt"), "{shown:?}");
}

#[test]
fn pages_are_opened_as_far_as_granted() {
    let living =
        Living::by(warden("", ALL).secret("token", Ok("hunter2hunter2")), &living::sandbox());
    check(
        &living,
        &[
            ("open https://example.com/a?b=c", "Opened::Browser"),
            ("open http://example.com/a", "! Error::Denied"),
            ("open https://example.org/", "! Error::Denied"),
            ("open https://example.com.evil.org/", "! Error::Denied"),
            ("open https://example.com@evil.org/", "names a user"),
            ("open file:///etc/passwd", "only http and https"),
            ("open javascript:alert(1)", "only http and https"),
            ("open nonsense", "it is not an address"),
            ("open-of 3000", "the address is too long"),
            ("open https://example.com/?t=hunter2hunter2", "it would carry the secret token"),
        ],
    );
    assert_eq!(*living.offers.pages.lock().unwrap(), ["https://example.com/a?b=c"]);
    let many: Vec<&str> = vec!["open https://example.com/"; 21];
    let report = living.call(&many);
    assert!(told(&report)[20].contains("20 pages in one call"), "{report:?}");
}

#[test]
fn a_person_is_asked_about_a_page_while_the_clock_stands_still() {
    let table = "open-url = true\nlimits = { time = \"300ms\" }";
    let thinking = warden("", table).agreeing(|_, access| {
        let says_yes = access.url().path() != "/no";
        Box::pin(async move {
            tokio::time::sleep(Duration::from_millis(500)).await;
            if says_yes { Ok(Some("allowed once".to_owned())) } else { Err(no()) }
        })
    });
    let living = Living::by(thinking, &living::sandbox());
    let report = living.call(&["open https://example.com/yes?q=1", "open https://example.com/no"]);
    assert_eq!(told(&report), ["Opened::Browser", "! Error::Denied(\"not today\")"]);
    assert_eq!(
        living.warden.asked(),
        ["open https://example.com/yes", "open https://example.com/no"],
        "records do not hold what may be secret"
    );
    assert_eq!(*living.offers.pages.lock().unwrap(), ["https://example.com/yes?q=1"]);
}

#[test]
fn h67_a_page_that_is_not_granted_any_more_is_not_opened_though_somebody_agreed() {
    let changing = warden("", "open-url = true").agreeing(|warden, _| {
        warden.change("[plugin.living]\nopen-url = false\n");
        Box::pin(async { Ok(Some("allowed once".to_owned())) })
    });
    let living = Living::by(changing, &living::sandbox());
    assert!(living.step("open https://example.com/").starts_with("! Error::Denied"));
    assert!(living.offers.pages.lock().unwrap().is_empty());
}

#[test]
fn packages_are_fetched_as_far_as_granted() {
    let living = Living::fresh(ALL);
    check(
        &living,
        &[
            ("fetch tabulate 0.9.0", "a.py=10 b/c.py=10"),
            ("fetch tabulate 0.9.1", "! Error::Denied"),
            ("fetch six 1.0", "! Error::Denied"),
            ("fetch nothing 1.0", "! Error::NotFound(\"there is no nothing\")"),
        ],
    );
    let many: Vec<&str> = vec!["fetch tabulate 0.9.0"; 101];
    assert!(living.steps(&many)[100].contains("100 packages in one call"));
}

#[test]
fn what_was_done_is_on_record_without_values() {
    let living = Living::fresh(ALL);
    let report = living.call(&[
        "set a\u{1b}[31m 12345",
        "get a",
        "list  - 1",
        "in 5 tea",
        "cancel t9",
        "tell hello",
        "part 0.5 x",
        "open https://example.com/a?b=c",
        "fetch tabulate 0.9.0",
    ]);
    let want = [
        r#"state: set "a\u{1b}[31m" (5 bytes)"#,
        r#"state: get "a""#,
        r#"state: list """#,
        r#"schedule: set a timer "tea" (1 bytes)"#,
        r#"schedule: cancel the timer "t9""#,
        "notify: a message to the conversation (5 bytes)",
        "progress: shown",
        "open-url: open https://example.com/a (in the browser)",
        r#"packages: fetch "tabulate" "0.9.0" (2 files, 20 bytes)"#,
    ];
    assert_eq!(used(&report), want);
}

/// A step that needs each capability, and what the guest is told without it. A function that
/// returns nothing tells nothing.
const NEEDS: [(&str, &str, &str); 13] = [
    ("state", "get k", "! Error::NotGranted"),
    ("state", "set k v", "! Error::NotGranted"),
    ("state", "cas k nothing v", "! Error::NotGranted"),
    ("state", "del k", "! Error::NotGranted"),
    ("state", "list  - 1", "! Error::NotGranted"),
    ("schedule", "in 5 x", "! Error::NotGranted"),
    ("schedule", "cancel t0", "! Error::NotGranted"),
    ("schedule", "timers", "! Error::NotGranted"),
    ("notify", "tell x", "! Error::NotGranted"),
    ("progress", "part 0.5 x", "ok"),
    ("open-url", "open https://example.com/", "! Error::Denied"),
    ("packages", "fetch tabulate 0.9.0", "! Error::Denied"),
    ("packages", "releases tabulate", "! Error::Denied"),
];

#[test]
fn nothing_is_done_that_is_not_granted() {
    let living = Living::fresh("");
    for (word, step, answer) in NEEDS {
        let report = living.call(&[step]);
        let said = told(&report);
        assert!(said[0].contains(answer), "{step}: {said:?}");
        assert_eq!(refused(&report).len(), 1, "{step}: {report:?}");
        let denial = &refused(&report)[0];
        assert!(denial.to_string().starts_with("living may not"), "{denial:?}");
        assert!(denial.fix_toml().is_some_and(|fix| fix.contains(word)), "{step}: {denial:?}");
        assert_eq!(used(&report), [""; 0], "{step}");
    }
    assert!(living.offers.progress.lock().unwrap().is_empty());
    assert!(living.warden.asked().is_empty());
}

#[test]
fn h67_what_is_taken_back_is_gone_at_the_next_call() {
    let living = Living::resident(ALL);
    living.steps(&["set k v", "count"]);
    living.grant("");
    let report = living.call(&["get k", "tell x", "count"]);
    assert_eq!(told(&report), ["! Error::NotGranted", "! Error::NotGranted", "2"]);
    assert_eq!(refused(&report).len(), 2);
}

#[test]
fn h23_a_capability_that_is_not_requested_keeps_a_component_from_being_loaded() {
    let sandbox = living::sandbox();
    for word in ["state", "schedule", "notify", "progress", "open-url", "packages", "net"] {
        let entry = REQUESTS.split("[[").find(|e| e.starts_with(&format!("request.{word}]]")));
        let rest = REQUESTS.replace(&format!("[[{}", entry.unwrap()), "");
        let manifest = Manifest::parse("plugin.toml", &manifest("living", &rest)).unwrap();
        let file = ComponentFile::new("living".as_ref(), guest("living")).unwrap();
        let warden = Arc::new(warden("", ""));
        let parts = PluginParts {
            manifest: &manifest,
            file: &file,
            authorizer: warden,
            settings: Map::new(),
        };
        let error = sandbox.load_plugin(parts).err();
        let Some(LoadError::UnrequestedCapability { capability, .. }) = error else {
            panic!("{word}: {error:?}")
        };
        assert_eq!(capability, word);
    }
}

fn no() -> Denial {
    Denial::new("living may not open it", "not today")
}
