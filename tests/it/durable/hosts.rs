//! Several hosts at one home at once: one chain of records, no lost count, every timer fired.

use std::thread;

use super::stage::Stage;
use crate::support::patience::until_so;

/// How many hosts live at once.
const HOSTS: usize = 10;

/// How often each does everything.
const ROUNDS: usize = 2;

#[test]
fn ten_hosts_at_once_make_one_audit_and_lose_nothing() {
    let stage = &Stage::new();
    let listeners: Vec<_> = (0..HOSTS).map(|_| stage.listener()).collect();
    thread::scope(|scope| {
        for host in 0..HOSTS {
            scope.spawn(move || {
                for round in 0..ROUNDS {
                    let soon = format!("doing {} tally", (host * 37 + round * 101) % 400);
                    let acts = [
                        stage.fetch(),
                        stage.write(),
                        stage.steps(&["bump count".to_owned(), soon]),
                    ];
                    for act in acts {
                        stage.call(&act).ended(0);
                    }
                }
            });
        }
    });
    until_so("the last firing", || stage.timers_left() == 0);
    drop(listeners);
    stage.check();
    let (records, kept) = (stage.records(), stage.kept());
    let all = HOSTS * ROUNDS;
    for tool in ["fetches", "write", "acts"] {
        assert_eq!(records.count(tool), all, "{tool}");
    }
    assert!(kept.contains(&("count".to_owned(), all.to_string())), "{kept:?}");
    let fired = kept.iter().filter(|(key, _)| key.starts_with("fired-")).count();
    assert_eq!(fired, all, "{kept:?}");
    assert!(records.count("role:timer") >= all);
}
