//! Warm instances: what a plugin keeps for a session, what ends it, and that no call sees another.

use std::{sync::Arc, time::Duration};

use sallyport_contract::{CallReport, Effect};

use crate::support::{
    Response, Server,
    living::{self, Living, refused, told, used, warden},
    registry::{self, log},
};

/// The mark of a call whose instance is not that of the call before.
const ANEW: &str = "instance: begun anew: the last one was stopped";

/// Calls the guest of a session.
#[track_caller]
fn in_session(living: &Living, session: &str, step: &str) -> String {
    told(&living.wait(living.begin(session, &[step]))).remove(0)
}

fn requested(report: &CallReport) -> Vec<&Effect> {
    report.effects.iter().filter(|effect| matches!(effect, Effect::Requested { .. })).collect()
}

#[test]
fn an_instance_lives_through_its_session_and_in_no_other() {
    let living = Living::resident("");
    assert_eq!(["1", "2", "3"], [(); 3].map(|()| in_session(&living, "one", "count")));
    assert_eq!("1", in_session(&living, "other", "count"));
    assert_eq!("4", in_session(&living, "one", "count"));
    let fresh = Living::fresh("");
    assert_eq!(["1", "1"], [(); 2].map(|()| fresh.step("count")));
    assert_eq!(fresh.plugin.instances(), []);
}

#[test]
fn h19_what_breaks_an_instance_ends_it_and_the_next_call_says_so() {
    let limits = "limits = { time = \"300ms\", memory = \"32MiB\", host-call = \"1MiB\" }";
    let living = Living::resident(&format!("{limits}\nstate = true"));
    for (step, word, message) in [
        ("trap", "failed", "the plugin trapped"),
        ("exit", "failed", "the plugin ended itself"),
        ("spin", "timed-out", "stopped after 300ms"),
        ("grow 64", "failed", "limits.memory"),
        ("set-bytes k 4000000", "failed", "limits.host-call"),
        ("no such step", "failed", "the plugin panicked"),
    ] {
        in_session(&living, "s", "count");
        let report = living.call(&["count", step]);
        assert_eq!(report.outcome.as_str(), word, "{step}: {report:?}");
        assert!(registry::told(&report).contains(message), "{step}: {report:?}");
        assert_eq!(living.plugin.instances(), [], "{step}");
        let next = living.call(&["count"]);
        assert_eq!((told(&next), used(&next)), (vec!["1".to_owned()], vec![ANEW.to_owned()]));
        let after = living.call(&["count"]);
        assert_eq!((told(&after), used(&after)), (vec!["2".to_owned()], vec![]), "told once");
    }
}

#[test]
fn h20_a_cancelled_call_takes_its_instance_along() {
    let living = Living::resident("limits = { time = \"60s\", concurrent-calls = 1 }");
    for _ in 0..20 {
        living.step("count");
        let call = living.begin("s", &["spin"]);
        let cut = async { tokio::time::timeout(Duration::from_millis(15), call).await };
        assert!(living.wait(cut).is_err(), "it came to an end");
        let report = living.call(&["count"]);
        assert_eq!((told(&report), used(&report)), (vec!["1".to_owned()], vec![ANEW.to_owned()]));
    }
}

#[test]
fn h20_ten_thousand_calls_that_are_cancelled_leave_no_instance_behind() {
    let living = Living::resident("limits = { time = \"60s\" }");
    for n in 0..10_000_u32 {
        let call = living.begin("s", &["count", "set k v", "spin"]);
        let pause = Duration::from_micros(u64::from(n % 500));
        let cut = async { tokio::time::timeout(pause, call).await };
        assert!(living.wait(cut).is_err(), "it came to an end");
    }
    living.wait(async {
        let tasks = tokio::runtime::Handle::current().metrics();
        // What ran when its call was cancelled still has to notice.
        while tasks.num_alive_tasks() > 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    });
    assert_eq!(living.plugin.instances(), []);
    assert_eq!("1", living.step("count"));
}

#[test]
fn h22_a_panic_of_the_host_costs_the_instance_and_nothing_else() {
    let table = "open-url = { decision = \"allow\" }";
    let falling = warden("instance = \"session\"\n", table)
        .agreeing(|_, _| Box::pin(async { panic!("the warden falls") }));
    let living = Living::by(falling, &living::sandbox());
    living.step("count");
    let report = living.call(&["open https://example.com/"]);
    assert!(registry::told(&report).contains("the call was lost inside the host"), "{report:?}");
    let next = living.call(&["count"]);
    assert_eq!((told(&next), used(&next)), (vec!["1".to_owned()], vec![ANEW.to_owned()]));
}

#[test]
fn an_idle_instance_goes_and_the_next_call_says_so() {
    let living = Living::resident("limits = { idle = \"50ms\" }");
    living.step("count");
    let gone = async {
        while !living.plugin.instances().is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    living.wait(async { tokio::time::timeout(Duration::from_secs(20), gone).await.unwrap() });
    let report = living.call(&["count"]);
    assert_eq!(told(&report), ["1"]);
    assert_eq!(used(&report), ["instance: begun anew: the last one was idle for too long"]);
}

#[test]
fn h67_what_an_instance_was_opened_with_is_closed_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    let fs = |access| {
        format!("fs = [{{ path = \"{path}\", mount = \"/data\", access = \"{access}\" }}]")
    };
    let living = Living::resident(&format!("{}\nenv = [\"LIVING\"]", fs("read-write")));
    let said = living.steps(&["count", "hold /data/x", "write one", "env LIVING"]);
    assert_eq!(said, ["1", "ok", "ok", "the value of LIVING"]);
    let report = living.call(&["write two", "read", "count"]);
    assert_eq!(told(&report), ["ok", "onetwo", "2"], "an open file is open in the next call");
    assert!(format!("{:?}", report.effects).contains("/data/x"), "and on its record: {report:?}");

    living.grant(&format!("{}\nenv = [\"LIVING\"]", fs("read")));
    let report = living.call(&["write three", "count"]);
    assert!(told(&report)[0].starts_with("! "), "{report:?}");
    assert_eq!((told(&report)[1].as_str(), refused(&report).len()), ("3", 1), "{report:?}");

    for table in [fs("read"), String::new()] {
        living.grant(&table);
        let report = living.call(&["env LIVING", "count"]);
        assert_eq!(told(&report), ["nothing", "1"], "{table}");
        assert!(used(&report)[0].contains("other things are granted to it"), "{report:?}");
    }
    assert!(living.step("cat /data/x").starts_with("! "));
}

#[test]
fn what_one_call_prints_is_not_in_the_log_of_another() {
    let living = Living::resident("");
    for text in ["one", "two"] {
        let report = living.call(&[&format!("print {text}")]);
        assert_eq!(log(&report), [text], "a line that has no end yet belongs to its call");
    }
}

#[test]
fn a_request_ends_with_its_call() {
    let server = Server::start(|request| {
        if request.target.contains("slow") {
            std::thread::sleep(Duration::from_millis(300));
        }
        Response::ok("0123456789")
    });
    let table = format!(
        "net = [{{ allow = \"GET {}/**\", to-private = true }}]\nlimits = {{ http-requests = 1 }}",
        server.url()
    );
    let living = Living::resident(&table);
    let request = |path: &str| format!("request {} {path}", server.authority());
    living.call(&[&request("/slow")]);
    let report = living.call(&["wait", "count"]);
    assert!(told(&report)[0].starts_with("! "), "{report:?}");
    assert_eq!(requested(&report).len(), 0, "it is on no other record: {report:?}");

    let report = living.call(&[&request("/quick"), "wait", "pull 3"]);
    assert_eq!(told(&report), ["ok", "200", "012"], "each call has its own count of requests");
    assert_eq!(requested(&report).len(), 1);
    let report = living.call(&["pull 100", "pull 100"]);
    assert!(told(&report)[1].starts_with("! "), "{report:?}");
    assert_eq!(requested(&report).len(), 0);

    living.grant("");
    let report = living.call(&[&request("/quick"), "wait", "count"]);
    assert!(told(&report)[1].contains("Denied"), "{report:?}");
    assert_eq!((told(&report)[2].as_str(), refused(&report).len()), ("2", 1));
}

#[test]
fn a_question_about_a_request_ends_with_the_call() {
    let server = Server::saying("hello");
    let table = format!("net = [{{ allow = \"GET {}/**\", to-private = true }}]", server.url());
    let open = Arc::new(());
    let questions = Arc::downgrade(&open);
    let never = warden("instance = \"session\"\n", &table).agreeing(move |_, _| {
        let held = Arc::clone(&open);
        Box::pin(async move {
            std::future::pending::<()>().await;
            drop(held);
            Ok(None)
        })
    });
    let living = Living::by(never, &living::sandbox());
    let request = format!("request {} /", server.authority());
    for _ in 0..20 {
        // Somebody is asked beside the guest, which may have returned by then; if not, it waits
        // with its clock, and the call is given up.
        let call = living.begin("s", &[&request]);
        let _ = living.wait(async { tokio::time::timeout(Duration::from_millis(100), call).await });
    }
    let answered = async {
        while questions.strong_count() > 1 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    living.wait(async { tokio::time::timeout(Duration::from_secs(20), answered).await.unwrap() });
}

#[test]
fn the_time_of_an_instance_never_goes_back() {
    let living = Living::resident("limits = { time = \"2s\" }");
    assert_eq!(["true"; 3].map(str::to_owned), [(); 3].map(|()| living.step("later")));
    living.step("timer 100");
    assert_eq!(living.steps(&["ring", "later"]), ["ok", "true"]);
}

#[test]
fn calls_of_one_session_take_turns() {
    let living = Living::resident("limits = { concurrent-calls = 64 }");
    let calls: Vec<_> =
        (0..30).map(|_| living.spawn(living.begin("s", &["count", "count"]))).collect();
    let mut counts: Vec<u32> = Vec::new();
    for call in calls {
        let said = told(&living.wait(call).unwrap());
        counts.extend(said.iter().map(|count| count.parse::<u32>().unwrap()));
        let [.., first, second] = counts.as_slice() else { panic!("{counts:?}") };
        assert_eq!(first + 1, *second, "no call comes between");
    }
    counts.sort_unstable();
    assert_eq!(counts, (1..=60).collect::<Vec<_>>());
}

#[test]
fn h21_who_waits_too_long_for_a_turn_is_told() {
    let limits = "limits = { time = \"30s\", queue-time = \"50ms\", concurrent-calls = 2 }";
    let living = Living::resident(limits);
    living.step("count");
    let spinning = living.spawn(living.begin("s", &["spin"]));
    let busy = living.wait(async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        living.begin("s", &["count"]).await
    });
    assert!(registry::told(&busy).contains("within 50ms (limits.queue-time)"), "{busy:?}");
    assert_eq!("1", in_session(&living, "other", "count"), "another session has its own");
    spinning.abort();
}

/// Who waits for a turn in one session takes no place from another.
#[test]
fn h21_a_session_that_is_busy_keeps_no_other_waiting() {
    let living = Living::resident("limits = { time = \"60s\", concurrent-calls = 2 }");
    let calls: Vec<_> = ["spin", "count", "count"]
        .map(|step| {
            let call = living.spawn(living.begin("s", &[step]));
            living.wait(async { tokio::time::sleep(Duration::from_millis(50)).await });
            call
        })
        .into();
    let other = async {
        tokio::time::timeout(Duration::from_secs(20), living.begin("t", &["count"])).await
    };
    assert_eq!(told(&living.wait(other).expect("it is kept waiting")), ["1"]);
    calls.iter().for_each(tokio::task::JoinHandle::abort);
}

#[test]
fn the_end_of_a_session_ends_its_instances() {
    let living = Living::resident("limits = { time = \"60s\" }");
    in_session(&living, "s", "count");
    in_session(&living, "t", "count");
    let running = living.spawn(living.begin("s", &["spin"]));
    living.wait(async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        living.sandbox.end_session("s").await;
        living.sandbox.end_session("nobody").await;
    });
    let report = living.wait(running).unwrap();
    assert_eq!(registry::told(&report), "failed: the session has ended");
    let infos = living.plugin.instances();
    assert_eq!(infos.iter().map(|info| info.session_id.as_str()).collect::<Vec<_>>(), ["t"]);
    let report = living.wait(living.begin("s", &["count"]));
    assert_eq!((told(&report), used(&report)), (vec!["1".to_owned()], vec![]));
    living.wait(living.sandbox.end_session("t"));
    assert_eq!(living.plugin.instances().len(), 1);
}

#[test]
fn h08_memory_counts_over_the_life_of_an_instance() {
    let living = Living::resident("limits = { memory = \"64MiB\" }");
    let first = living.call(&["grow 20"]);
    let held = living.plugin.instances()[0].memory_bytes;
    assert!((20 << 20..32 << 20).contains(&held), "{held}");
    assert_eq!(held, first.memory_bytes_peak);
    let second = living.call(&["grow 20"]);
    assert!(second.memory_bytes_peak > 40 << 20);
    let third = living.call(&["grow 40"]);
    assert!(registry::told(&third).contains("64MiB of memory"), "{third:?}");
    assert_eq!(living.call(&["try-grow 100"]).outcome.as_str(), "completed");
    let trapped = living.call(&["trap"]);
    assert!(registry::told(&trapped).contains("the plugin trapped"), "its own fault: {trapped:?}");
}
