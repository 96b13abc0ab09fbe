//! Instances that are made ahead of their calls: each serves one call, with the grant of that call.

use std::time::Duration;

use serde_json::json;

use crate::support::{
    living::{Living, told},
    patience, registry,
    warden::{Guarded, Scripted},
    wat::{Module, Spec},
};

const TWO: &str = "limits = { prepared-instances = 2, idle = \"1h\" }";

/// Waits until a number of instances of the guest wait for a call.
#[track_caller]
fn until_waiting(living: &Living, wanted: usize) {
    patience::until_so("the instances wait", || living.plugin.waiting_instances() == wanted);
}

/// A guest whose next call uses an instance that waits.
fn prepared(table: &str) -> Living {
    let living = Living::fresh(table);
    patience::until_so("the first instance waits", || {
        living.step("count");
        living.plugin.waiting_instances() > 0
    });
    living
}

#[test]
fn each_serves_one_call_and_shows_nothing_of_another() {
    let living = prepared(TWO);
    for (steps, outcome) in [
        (&["dirty 40"][..], "completed"),
        (&["grow 8", "dirty 1", "later"], "completed"),
        (&["dirty 4", "trap"], "failed"),
        (&["dirty 4", "exit"], "failed"),
    ] {
        for _ in 0..3 {
            until_waiting(&living, 2);
            let report = living.call(steps);
            assert_eq!(report.outcome.as_str(), outcome, "{steps:?}: {report:?}");
            until_waiting(&living, 2);
            assert_eq!(living.steps(&["count", "find-dirt 48"]), ["1", "0"], "after {steps:?}");
        }
    }
}

#[test]
fn a_call_has_the_grants_and_limits_of_its_own_time() {
    let living = prepared(TWO);
    until_waiting(&living, 2);
    assert_eq!(living.step("env LIVING"), "nothing");
    living.grant(&format!("{TWO}\nenv = [\"LIVING\"]\nstate = true"));
    assert_eq!(living.steps(&["env LIVING", "set k v"])[0], "the value of LIVING");
    until_waiting(&living, 2);
    assert_eq!(living.step("env LIVING"), "the value of LIVING", "also in one made since");
    living.grant(TWO);
    let said = living.steps(&["env LIVING", "get k"]);
    assert!(said[0] == "nothing" && said[1].starts_with("! "), "{said:?}");

    living.grant("limits = { prepared-instances = 2, idle = \"1h\", memory = \"2MiB\" }");
    let report = living.call(&["grow 100"]);
    assert!(registry::told(&report).contains("2MiB of memory"), "{report:?}");
    living.grant("limits = { prepared-instances = 2, idle = \"1h\", time = \"300ms\" }");
    let report = living.call(&["spin"]);
    assert_eq!(report.outcome.as_str(), "timed-out", "{report:?}");
}

#[test]
fn the_time_that_one_waits_is_not_that_of_its_call() {
    let living = prepared("limits = { prepared-instances = 2, idle = \"1h\", time = \"400ms\" }");
    until_waiting(&living, 2);
    std::thread::sleep(Duration::from_millis(600));
    assert_eq!(living.step("count"), "1");
}

#[test]
fn none_waits_where_none_should() {
    let living = prepared("limits = { prepared-instances = 2, idle = \"50ms\" }");
    until_waiting(&living, 0);
    living.step("count");
    until_waiting(&living, 2);
    living.grant("limits = { idle = \"1h\" }");
    living.step("count");
    until_waiting(&living, 0);

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    let living = prepared(TWO);
    living.grant(&format!(
        "{TWO}\nfs = [{{ path = \"{path}\", mount = \"/data\", access = \"read\" }}]"
    ));
    for _ in 0..5 {
        std::fs::write(folder.path().join("x"), "hello").unwrap();
        assert_eq!(living.step("cat /data/x"), "hello");
    }
    assert_eq!(living.plugin.waiting_instances(), 0);
}

#[test]
fn many_calls_at_once_get_one_each() {
    let limits = "limits = { prepared-instances = 16, concurrent-calls = 40, idle = \"1h\" }";
    let living = prepared(limits);
    for _ in 0..5 {
        let calls: Vec<_> =
            (0..40).map(|_| living.spawn(living.begin("s", &["count", "find-dirt 8"]))).collect();
        for call in calls {
            assert_eq!(told(&living.wait(call).unwrap()), ["1", "0"]);
        }
    }
    until_waiting(&living, 16);
}

/// A component of which `start` runs when an instance is made.
fn starting_with(start: &str) -> Guarded {
    let module = Module {
        imports: "(import \"sallyport:plugin/log@0.1.0\" \"log\" (func $log (param i32 i32 i32)))"
            .to_owned(),
        call: "i32.const 512".to_owned(),
        fields: format!("(func (export \"_initialize\") {start})"),
        ..Module::listing(&[Spec::GOOD])
    };
    let policy = format!("[plugin.starter]\n{TWO}");
    Guarded::of(Scripted::new("starter", "", &policy), module.component()).unwrap()
}

#[test]
fn what_a_component_says_while_it_starts_is_on_the_record_of_a_call() {
    let quiet = starting_with("");
    patience::until_so("an instance waits", || {
        quiet.call("act", &json!({}));
        quiet.plugin.waiting_instances() > 0
    });
    let loud = starting_with("(call $log (i32.const 2) (i32.const 512) (i32.const 0))");
    patience::until_so("calls are in the pool", || {
        loud.call("act", &json!({}));
        loud.plugin.is_in_memory_pool()
    });
    for _ in 0..5 {
        let report = loud.call("act", &json!({}));
        assert_eq!(report.effects.len(), 1, "{report:?}");
        assert_eq!(loud.plugin.waiting_instances(), 0);
    }
}
