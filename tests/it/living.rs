//! Plugins that live on beside a conversation: timers that fire, messages that reach it, pages that
//! open, and what the person can see and undo of it, all through the whole program.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    thread,
    time::{Duration, Instant},
};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{
    Home, OpenAi, Person, Ran, Reply, Running,
    events::{events, of_kind},
    living::REQUESTS,
};

const END: &str = "\u{4}";
const PROMPT: &str = "openai/m>";

/// Longest wait for something that happens unless a test has failed.
const PATIENCE: Duration = Duration::from_secs(30);

/// The timer plugin may do what it is for.
const TIMER: &str = "[plugin.timer]\nschedule = true\nnotify = true\nstate = true\n\
                     [[rule]]\ntool = \"timer.*\"\ndecision = \"allow\"\n";

/// The guest may do what it asks for, up to low limits.
const LIVING: &str = r#"
[plugin.living]
state = { quota = "2KiB", value = "1KiB" }
schedule = { timers = 2 }
notify = { per-minute = 3 }
progress = true
open-url = { allow = ["https://ok.example/**"], decision = "allow" }
packages = ["*"]
[[rule]]
tool = "living.acts"
decision = "allow"
"#;

/// A home with the timer plugin and a model that follows a script.
fn timer_home(model: &OpenAi) -> Home {
    Home::new()
        .plugins(&["timer"])
        .policy(TIMER)
        .env("OPENAI_BASE_URL", model.base_url())
        .env("OPENAI_API_KEY", "k")
}

/// A home with the guest that asks for everything.
fn living_home(policy: &str) -> Home {
    Home::new().guest("living", REQUESTS).policy(policy)
}

#[track_caller]
fn chat(home: &Home, flags: &[&str]) -> Person {
    let person = Person::start(home, &[&["chat", "--model", "m"], flags].concat());
    person.sees_last(PROMPT);
    person
}

/// A script in which a tool is called once.
fn calling(tool: &'static str, arguments: &Value) -> Vec<Reply> {
    vec![Reply::call("a", tool, arguments), Reply::Text("It is set.")]
}

fn pasta(seconds: u64) -> Vec<Reply> {
    calling("timer__set_timer", &json!({ "duration_seconds": seconds, "label": "pasta" }))
}

/// Follows steps of the guest in one call.
#[track_caller]
fn acts(home: &Home, steps: &[&str]) -> Ran {
    home.run(&["call", "living.acts", &json!({ "steps": steps }).to_string()])
}

/// The timers that are set.
#[track_caller]
fn timers(home: &Home) -> Vec<Value> {
    let listed = home.run(&["timer", "list", "--all", "--output", "json"]).ended(0).json();
    listed.as_array().unwrap().clone()
}

#[track_caller]
fn waits_until(what: &str, is_so: impl Fn() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < PATIENCE, "not yet: {what}");
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_timer_speaks_while_a_line_is_half_typed() {
    let model = OpenAi::start([pasta(2), vec![Reply::Text("Enjoy.")]].concat());
    let home = timer_home(&model);
    let mut person = chat(&home, &[]);
    person.types("two seconds for the pasta\r");
    person.sees("It is set.");
    person.sees_last(PROMPT);
    person.types("is it al d");
    person.sees("timer says aloud: Your pasta timer is done.");
    person.sees_last("openai/m> is it al d");
    person.types("ente?\r");
    person.sees("Enjoy.");
    let last = model.bodies().last().unwrap()["messages"].to_string();
    assert!(last.contains("is it al dente?"), "{last}");
    assert!(last.contains("Your pasta timer is done."), "the model is told as well: {last}");
    person.types(END);
    assert_eq!(person.ends(), 0);
}

#[test]
fn a_timer_that_was_set_before_a_kill_fires_late() {
    let model = OpenAi::start(pasta(2));
    let home = timer_home(&model);
    let mut person = chat(&home, &[]);
    person.types("two seconds for the pasta\r");
    person.sees("It is set.");
    person.sees_last(PROMPT);
    person.sends(Signal::KILL);
    person.ends();
    // Late is what comes more than two seconds after its time.
    thread::sleep(Duration::from_millis(4500));
    let person = chat(&home, &["--continue"]);
    person.sees("Your pasta timer is done, ");
    person.sees(" late.");
    waits_until("it is settled", || timers(&home).is_empty());
}

#[test]
fn a_reminder_comes_back_to_its_own_conversation_alone() {
    let reminder =
        calling("reminder__create", &json!({ "text": "call mum", "when": "in 1 second" }));
    let model = OpenAi::start(reminder);
    let home = timer_home(&model);
    let mut person = chat(&home, &[]);
    person.types("remind me\r");
    person.sees("It is set.");
    person.sees_last(PROMPT);
    person.types(END);
    assert_eq!(person.ends(), 0);
    let sessions = home.run(&["session", "list", "--output", "json"]).ended(0).json();
    let session = sessions[0]["id"].as_str().unwrap();
    let mut other = chat(&home, &[]);
    waits_until("the reminder fires", || timers(&home).is_empty());
    // A courier that looked for it would have found it by then.
    thread::sleep(Duration::from_millis(2500));
    other.types("hello\r");
    other.sees_last(PROMPT);
    assert!(!other.screen().contains("call mum"), "{}", other.screen());
    let own = chat(&home, &["--session", session]);
    own.sees("reminder says aloud, late: Reminder: call mum");
    assert!(!other.screen().contains("call mum"), "{}", other.screen());
    other.types(END);
    assert_eq!(other.ends(), 0);
}

#[test]
fn limits_and_refusals_are_told_to_the_plugin() {
    let home = living_home(LIVING);
    let rows: [(&[&str], &[&str]); 10] = [
        (&["set-bytes a 1000", "set-bytes b 1000", "set-bytes c 1000"], &["QuotaReached"]),
        (&["set-bytes a 1025"], &["Invalid"]),
        (&["set-key-of 1000000"], &["Invalid"]),
        (&["at 1000 {}"], &["Invalid", "past"]),
        (&["cron 0_0_30_2_* UTC"], &["Invalid"]),
        (&["every 1"], &["Invalid"]),
        (&["in 900000 a", "in 900000 b", "in 900000 c"], &["t-1", "t-2", "QuotaReached"]),
        (&["tell a", "tell b", "tell c", "tell d"], &["ok\",\n  \"ok\",\n  \"ok\",\n  \"ok"]),
        (&["tell-bytes 4096"; 40], &["TooMany", "per-minute"]),
        (&["fetch six 1.0"], &["Unavailable", "[packages] index"]),
    ];
    for (steps, texts) in rows {
        acts(&home, steps).ended(0).answers(texts);
    }
}

#[test]
fn pages_open_only_as_the_policy_says() {
    let shown = "open this page: https://ok.example/a";
    let home = living_home(LIVING);
    acts(&home, &["open https://ok.example/a"]).ended(0).answers(&["Shown"]).remarks(&[shown]);
    let refused = [
        ("open javascript:alert(1)", "Invalid"),
        ("open file:///etc/passwd", "Invalid"),
        ("open https://me:pw@ok.example/a", "Invalid"),
        ("open https://no.example/", "Denied"),
    ];
    for (step, why) in refused {
        acts(&home, &[step]).ended(0).answers(&[why]).hides(&["open this page"]);
    }
    let asks = LIVING.replace(", decision = \"allow\" }", " }");
    let nobody = living_home(&asks);
    let ran = acts(&nobody, &["open https://ok.example/a"]);
    ran.ended(0).answers(&["Denied", "no user is connected"]).hides(&["open this page"]);
}

#[test]
fn a_person_decides_about_a_page_while_the_plugin_waits() {
    let url = json!({ "url": "https://example.com/" });
    let model = OpenAi::start(calling("open-website__open_website", &url));
    let home = Home::new()
        .plugins(&["open-website"])
        .policy("[plugin.open-website]\nopen-url = { allow = [\"https://example.com/**\"] }\n")
        .env("OPENAI_BASE_URL", model.base_url())
        .env("OPENAI_API_KEY", "k");
    let mut person = chat(&home, &[]);
    person.types("open it\r");
    person.sees("open https://example.com/");
    assert!(!person.screen().contains("open this page"), "{}", person.screen());
    person.sees_last_with("[?] more");
    person.types("y");
    person.sees("open this page: https://example.com/");
    person.sees("It is set.");
    person.sees_last(PROMPT);
    person.types(END);
    assert_eq!(person.ends(), 0);
}

#[test]
fn the_browser_is_the_one_that_the_configuration_names() {
    let home = living_home(LIVING).user_file(
        "browse",
        "#!/bin/sh\nprintf '%s' \"$1\" > \"$0.seen.part\"\nmv \"$0.seen.part\" \"$0.seen\"\n",
    );
    let browser = home.user_path("browse");
    fs::set_permissions(&browser, fs::Permissions::from_mode(0o700)).unwrap();
    let home = home.config(format!("[browser]\ncommand = {browser:?}\n"));
    acts(&home, &["open https://ok.example/a?b=c&d"]).ended(0).answers(&["Browser"]);
    let seen = home.user_path("browse.seen");
    waits_until("the browser starts", || seen.exists());
    assert_eq!(fs::read_to_string(seen).unwrap(), "https://ok.example/a?b=c&d");
    let home = home.env("SALLYPORT_BROWSER", "none");
    acts(&home, &["open https://ok.example/a"]).ended(0).answers(&["Shown"]);
    let from = "browser.command = \"none\"  # the variable SALLYPORT_BROWSER";
    home.run(&["config", "show", "--origin"]).ended(0).answers(&[from]);
}

#[test]
fn what_was_said_to_nobody_comes_with_the_next_session() {
    let model = OpenAi::start(vec![Reply::Text("Hello.")]);
    let home =
        living_home(LIVING).env("OPENAI_BASE_URL", model.base_url()).env("OPENAI_API_KEY", "k");
    acts(&home, &["tell-user look\u{1b}[2J aloud", "tell plain"]).ended(0);
    let ran = home.run(&["run", "-m", "m", "--output", "jsonl", "hi"]).ended(0);
    let told = events(&ran);
    let told: Vec<_> = of_kind(&told, "notified").into_iter().map(|n| &n["text"]).collect();
    assert_eq!(told, ["look\u{1b}[2J", "plain"]);
    let ran = ran.remarks(&["living says aloud, late: look\\u{1b}[2J", "living says, late: plain"]);
    ran.hides(&["\u{1b}[2J"]);
    let again = home.run(&["run", "-m", "m", "hi"]).ended(0);
    again.hides(&["look", "plain"]);
}

#[test]
fn a_rule_can_have_a_firing_asked_about() {
    let model = OpenAi::start(pasta(1));
    let asks = "[[rule]]\ntool = \"timer.role:timer\"\ndecision = \"ask\"\n";
    let home = timer_home(&model).policy(format!("{TIMER}{asks}"));
    let mut person = chat(&home, &[]);
    person.types("one second for the pasta\r");
    person.sees("It is set.");
    person.sees_last(PROMPT);
    person.types("half a li");
    person.sees("timer.role:timer");
    person.sees_last_with("[?] more");
    person.types("y");
    person.sees("timer says aloud: Your pasta timer is done.");
    person.sees_last("openai/m> half a li");
    person.types("\u{3}");
    person.sees_last(PROMPT);
    person.types(END);
    assert_eq!(person.ends(), 0);
}

#[test]
fn progress_of_a_call_is_told_while_it_runs() {
    let steps = json!({ "steps": ["part 0.5 half", "timer 500", "ring"] });
    let turn = calling("living__acts", &steps);
    let model = OpenAi::start([turn.clone(), turn].concat());
    let home =
        living_home(LIVING).env("OPENAI_BASE_URL", model.base_url()).env("OPENAI_API_KEY", "k");
    let told = events(&home.run(&["run", "-m", "m", "--output", "jsonl", "go"]).ended(0));
    let told = of_kind(&told, "progress");
    assert_eq!((&told[0]["fraction"], &told[0]["message"]), (&json!(0.5), &json!("half")));
    let mut person = chat(&home, &[]);
    person.types("go\r");
    person.sees(" · half, 50 % · ");
    person.types(END);
    assert_eq!(person.ends(), 0);
}

#[test]
fn what_a_lone_call_plans_comes_to_whoever_is_there() {
    let model = OpenAi::start(vec![Reply::Text("Hello.")]);
    let home = timer_home(&model);
    let reminder = json!({ "text": "call mum", "when": "in 1 second" });
    assert_eq!(home.call("reminder.create", &reminder).1, 0);
    let person = chat(&home, &[]);
    // A busy machine may bring it late, and it says so.
    person.sees("reminder says aloud");
    person.sees("Reminder: call mum");
}

#[test]
fn timers_fire_where_a_listener_feeds_a_session() {
    let model = OpenAi::start(vec![Reply::Text("Hello.")]);
    let home = timer_home(&model)
        .plugins(&["stdin-lines"])
        .policy(format!("{TIMER}[plugin.stdin-lines]\nlisten = [\"stdin\"]\n"));
    let mut listening = Running::start(&home, &["listen", "--listener", "stdin-lines", "-m", "m"]);
    listening.says("hello\n");
    let short = json!({ "duration_seconds": 1, "label": "tea" });
    assert_eq!(home.call("timer.set_timer", &short).1, 0);
    // A busy machine may bring it late, and it says so.
    listening.remarks("timer says aloud");
    listening.remarks("Your tea timer is done");
    assert_eq!(listening.ends().0, 0);
    assert_eq!(timers(&home), Vec::<Value>::new());
}

#[test]
fn a_timer_whose_plugin_may_not_be_called_waits() {
    let model = OpenAi::start(vec![Reply::Text("Hello.")]);
    let home = timer_home(&model);
    let short = json!({ "duration_seconds": 1 });
    assert_eq!(home.call("timer.set_timer", &short).1, 0);
    thread::sleep(Duration::from_millis(1100));
    let denied = format!("{TIMER}[[rule]]\ntool = \"timer.role:timer\"\ndecision = \"deny\"\n");
    let rows = [
        (TIMER.replace("schedule = true\n", ""), "timer has a timer that waits: "),
        (denied, "the timer of timer is due and waits: "),
        // It may fire, and has no way to tell anybody.
        (
            TIMER.replace("notify = true\n", ""),
            "the timer of timer is due and waits: its policy does not grant \"notify\"",
        ),
    ];
    for (policy, warning) in rows {
        let home = &home;
        fs::write(home.path("policy.toml"), policy).unwrap();
        let mut chat = Running::start(home, &["chat", "-m", "m"]);
        chat.remarks(warning);
        chat.says("hi\n");
        chat.answers("Hello.");
        let (code, stdout, stderr) = chat.ends();
        assert_eq!((code, stdout.as_str()), (0, "Hello.\n"), "{stderr}");
        assert_eq!(stderr.matches(warning).count(), 1, "{stderr}");
        assert_eq!(timers(home).len(), 1);
    }
    fs::write(home.path("policy.toml"), TIMER).unwrap();
    let mut chat = Running::start(&home, &["chat", "-m", "m"]);
    waits_until("it fires", || timers(&home).is_empty());
    assert_eq!(chat.ends().0, 0);
}

#[test]
fn a_firing_that_there_is_no_place_for_is_not_lost() {
    let rare = LIVING.replace("progress = true", "limits = { calls-per-minute = 1 }");
    let home = living_home(&rare);
    acts(&home, &["in 1 one", "in 1 two"]).ended(0);
    let mut person = Person::start(&home, &["chat", "--model", "offline"]);
    person.sees("is due and waits: living may be called 1 times a minute");
    waits_until("the first one fires", || timers(&home).len() == 1);
    person.types(END);
    assert_eq!(person.ends(), 0);
    assert_eq!(timers(&home).len(), 1);
}

#[test]
fn h67_a_timer_that_repeats_more_often_than_is_still_allowed_waits() {
    let quick = LIVING.replace("schedule = { timers = 2 }", "schedule = { interval = \"1s\" }");
    let home = living_home(&quick);
    acts(&home, &["every 1000"]).ended(0);
    let home = home.policy(LIVING);
    let mut person = Person::start(&home, &["chat", "--model", "offline"]);
    person.sees("living has a timer that waits: ");
    person.sees("(schedule.interval)");
    person.types(END);
    assert_eq!(person.ends(), 0);
    assert_eq!(timers(&home).len(), 1);
    home.run(&["audit", "show"]).ended(0).hides(&["role:timer"]);
}

#[test]
fn a_timer_that_a_rule_holds_back_holds_back_no_other() {
    let rule = "[[rule]]\ntool = \"living.role:timer\"\ndecision = \"deny\"\n\
                when = \"args.label == 'held'\"\n";
    let home = living_home(&format!("{LIVING}{rule}"));
    acts(&home, &["in 1 held", "in 3000 free"]).ended(0);
    let mut person = Person::start(&home, &["chat", "--model", "offline"]);
    person.sees("the timer \"held\" of living is due and waits");
    waits_until("the other one fires", || timers(&home).len() == 1);
    assert_eq!(timers(&home)[0]["label"], "held");
    person.types(END);
    assert_eq!(person.ends(), 0);
}

#[test]
fn a_callback_that_fails_is_told_and_not_repeated() {
    let home = living_home(LIVING);
    acts(&home, &["doing 1 no_such_step"]).ended(0);
    let mut chat = Running::start(&home, &["chat", "-m", "offline"]);
    chat.remarks("the timer of living has fired and failed: ");
    chat.says("hi\n");
    let (code, _, stderr) = chat.ends();
    assert_eq!((code, stderr.matches("has fired and failed").count()), (0, 1), "{stderr}");
    assert_eq!(timers(&home), Vec::<Value>::new());
    let audit = home.run(&["audit", "show", "--tool", "role:timer"]).ended(0);
    audit.answers(&["living.role:timer  allow", "living.role:timer  failed"]);
}

#[test]
fn a_plugin_whose_timers_never_end_keeps_no_reminder_waiting() {
    let home = living_home(&LIVING.replace("timers = 2", "timers = 64"));
    acts(&home, &["doing 1 spin"; 9]).ended(0);
    let reminder = json!({ "text": "call mum", "when": "in 1 second" });
    assert_eq!(home.call("reminder.create", &reminder).1, 0);
    let mut person = Person::start(&home, &["chat", "--model", "offline"]);
    // A busy machine may bring it late, and it says so.
    person.sees("reminder says aloud");
    person.sees("Reminder: call mum");
    person.sends(Signal::KILL);
    person.ends();
}

#[test]
fn a_plugin_that_lets_timers_fire_without_end_waits_for_the_next_minute() {
    let home = living_home(&LIVING.replace("timers = 2", "timers = 61"));
    acts(&home, &["doing 1 tally"; 61]).ended(0);
    let mut person = Person::start(&home, &["chat", "--model", "offline"]);
    waits_until("they have fired", || timers(&home).is_empty());
    acts(&home, &["doing 1 tally"]).ended(0);
    person.sees("living fires timers more than 61 times a minute; the others wait");
    assert_eq!(timers(&home).len(), 1);
    person.types(END);
    assert_eq!(person.ends(), 0);
}

#[test]
fn a_person_sees_and_undoes_what_plugins_keep_and_plan() {
    let home = living_home(LIVING);
    acts(&home, &["set greeting hello", "set-bytes pad 10", "in 900000 tea"]).ended(0);
    home.run(&["state", "list"]).ended(0).answers(&["living  2 keys, 26 bytes"]);
    home.run(&["state", "list", "living"]).ended(0).answers(&["greeting\npad"]);
    home.run(&["state", "get", "living", "greeting"]).ended(0).answers(&["hello"]);
    home.run(&["state", "get", "living", "nothing"]).ended(1).remarks(&["has no key"]);
    home.run(&["state", "clear", "living", "pad"]).ended(6).remarks(&["--yes"]);
    home.run(&["state", "clear", "living", "pad", "--yes"]).ended(0).answers(&["Deleted 1 key"]);
    home.run(&["state", "clear", "living", "--yes"]).ended(0).answers(&["Deleted 1 key"]);
    home.run(&["state", "list"]).ended(0).remarks(&["No plugin has state."]);
    home.run(&["state", "list", "living"]).ended(0).remarks(&["living has no state."]);
    home.run(&["timer", "list"]).ended(0).answers(&["t-1  in 15 minutes  living  \"tea\""]);
    home.run(&["timer", "cancel", "t-1"]).ended(0).answers(&["Cancelled: t-1"]);
    home.run(&["timer", "cancel", "t-1"]).ended(1).remarks(&["there is no timer t-1"]);
    home.run(&["timer", "list"]).ended(0).remarks(&["No timer is set."]);
}
