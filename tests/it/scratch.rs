//! Scratches: temporary folders of a session, shared by the plugins that are granted them.

use std::sync::Arc;

use crate::support::living::{self, Living, refused, told, warden};

/// A grant of the one scratch that the guest requests.
const DESK: &str = "scratch = [{ name = \"desk\", mount = \"/desk\", quota = \"64KiB\" }]";

#[track_caller]
fn in_session(living: &Living, session: &str, steps: &[&str]) -> Vec<String> {
    told(&living.wait(living.begin(session, steps)))
}

/// A guest with a fresh instance for each call and one with a warm one, in one sandbox.
fn two() -> (Living, Living) {
    let sandbox = living::sandbox();
    let fresh = Living::by(warden("", DESK), &sandbox);
    (fresh, Living::by(warden("instance = \"session\"\n", DESK), &sandbox))
}

#[test]
fn plugins_of_one_session_share_a_scratch_until_it_ends() {
    let (fresh, warm) = two();
    assert_eq!(in_session(&fresh, "s", &["put /desk/a one"]), ["ok"]);
    assert_eq!(in_session(&fresh, "s", &["cat /desk/a"]), ["one"]);
    assert_eq!(in_session(&warm, "s", &["cat /desk/a", "put /desk/b two"]), ["one", "ok"]);
    assert_eq!(in_session(&fresh, "s", &["cat /desk/b"]), ["two"]);
    assert!(in_session(&fresh, "t", &["cat /desk/a"])[0].starts_with("! "), "another session");
    assert!(Arc::ptr_eq(&fresh.sandbox, &warm.sandbox));
    fresh.wait(fresh.sandbox.end_session("s"));
    for living in [&fresh, &warm] {
        assert!(in_session(living, "s", &["cat /desk/a"])[0].starts_with("! "));
    }
}

#[test]
fn h33_a_scratch_has_a_quota_that_nobody_gets_around() {
    let (fresh, warm) = two();
    let report = warm.call(&["fill /desk/a 40000", "fill /desk/b 40000"]);
    assert_eq!(told(&report)[0], "ok");
    assert!(told(&report)[1].starts_with("! "), "{report:?}");
    assert!(fresh.step("fill /desk/c 30000").starts_with("! "), "the room is shared");
    assert_eq!(warm.steps(&["rm /desk/a", "fill /desk/c 40000"]), ["ok", "ok"]);

    // A file without a name that is held from call to call still takes its room.
    warm.steps(&["rm /desk/c", "rm /desk/b", "hold /desk/d", "write-bytes 40000", "rm /desk/d"]);
    assert!(warm.step("fill /desk/e 40000").starts_with("! "));
    assert!(fresh.step("fill /desk/e 40000").starts_with("! "));
}

#[test]
fn h67_a_scratch_that_is_not_granted_is_not_there() {
    let (fresh, warm) = two();
    assert_eq!(warm.steps(&["put /desk/a one", "hold /desk/a", "count"]), ["ok", "ok", "1"]);
    fresh.grant("");
    warm.grant("");
    assert!(fresh.step("cat /desk/a").starts_with("! "));
    assert!(warm.step("cat /desk/a").starts_with("! "));
    assert_eq!(warm.step("count"), "1", "it was opened with another one");
}

#[test]
fn h67_a_scratch_that_is_taken_back_during_a_call_is_refused_from_then_on() {
    let table = format!("{DESK}\nopen-url = {{ decision = \"allow\" }}");
    let changing = warden("", &table).agreeing(|warden, _| {
        warden.change("[plugin.living]\n");
        Box::pin(async { Ok(None) })
    });
    let living = Living::by(changing, &living::sandbox());
    let report = living.call(&["put /desk/a one", "open https://example.com/", "cat /desk/a"]);
    assert_eq!(told(&report)[0], "ok");
    assert!(told(&report)[2].starts_with("! "), "{report:?}");
    let denials = refused(&report);
    let fix = denials.last().unwrap().fix_toml().unwrap_or_default();
    assert!(fix.contains("desk"), "{report:?}");
}
