//! The memory pool: guests use the same memory one after another, and none sees what another left.

use std::{
    future::{self, Future},
    pin::pin,
    time::Duration,
};

use sallyport_sandbox::collect_leftovers;

use crate::support::{
    living::{Living, told},
    registry,
};

/// A guest whose calls run in the pool from now on.
fn pooled(table: &str) -> Living {
    let living = Living::fresh(table);
    living.step("count");
    assert!(!living.plugin.is_in_memory_pool(), "one call does not pay for the pool");
    living.step("count");
    living.wait(async {
        while !living.plugin.is_in_memory_pool() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    living
}

#[test]
fn what_a_guest_leaves_in_memory_is_gone_for_the_next_one() {
    let living = pooled("limits = { time = \"2s\", memory = \"64MiB\" }");
    let clean = ["1", "0"].map(str::to_owned);
    for (steps, outcome) in [
        (&["dirty 1"][..], "completed"),
        (&["dirty 40"], "completed"),
        (&["grow 8", "dirty 1"], "completed"),
        (&["dirty 4", "trap"], "failed"),
        (&["dirty 4", "exit"], "failed"),
        (&["dirty 4", "grow 100"], "failed"),
        (&["dirty 4", "spin"], "timed-out"),
    ] {
        // Places are reused, the last one first; a few rounds meet them all.
        for _ in 0..3 {
            let report = living.call(steps);
            assert_eq!(report.outcome.as_str(), outcome, "{steps:?}: {report:?}");
            assert_eq!(living.steps(&["count", "find-dirt 48"]), clean, "after {steps:?}");
            if outcome == "timed-out" {
                break;
            }
        }
    }
    let cut = async {
        let call = living.begin("s", &["dirty 4", "spin"]);
        tokio::time::timeout(Duration::from_millis(300), call).await
    };
    assert!(living.wait(cut).is_err(), "it came to an end");
    assert_eq!(living.steps(&["count", "find-dirt 48"]), clean, "after a cancelled call");
}

#[test]
fn what_is_left_of_a_call_goes_to_the_one_who_collects_it() {
    let living = pooled("");
    for _ in 0..3 {
        let mut call = pin!(living.begin("s", &["dirty 1", "count"]));
        let (report, left) = living.wait(future::poll_fn(|context| {
            let (polled, left) = collect_leftovers(|| call.as_mut().poll(context));
            polled.map(|report| (report, left))
        }));
        assert_eq!(report.outcome.as_str(), "completed", "{report:?}");
        assert_eq!(format!("{left:?}"), "RunLeftovers { instances: 1 }");
        // It is not used again, whether or not it is given back already.
        assert_eq!(living.steps(&["count", "find-dirt 48"]), ["1", "0"].map(str::to_owned));
    }
}

#[test]
fn calls_beyond_the_places_of_the_pool_have_memory_of_their_own() {
    let limits = "limits = { time = \"60s\", concurrent-calls = 200, queue-time = \"60s\" }";
    let living = pooled(limits);
    let steps = ["dirty 1", "timer 1000", "ring", "find-dirt 1", "count"];
    let calls: Vec<_> = (0..160).map(|_| living.spawn(living.begin("s", &steps))).collect();
    for call in calls {
        let report = living.wait(call).unwrap();
        assert_eq!(told(&report), ["ok", "ok", "ok", "0", "1"], "{}", registry::told(&report));
    }
    assert_eq!(living.step("find-dirt 4"), "0");
}

#[test]
fn an_instance_of_a_session_stays_out_of_the_pool() {
    let living = Living::resident("");
    assert_eq!([(); 4].map(|()| living.step("count")), ["1", "2", "3", "4"]);
    assert!(!living.plugin.is_in_memory_pool());
}
