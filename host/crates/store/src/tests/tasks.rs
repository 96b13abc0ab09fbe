//! A task has one end, which belongs to one user and is known for a limited time.

use super::*;
use crate::{
    NewTask, StoreError, TaskEnd, TaskState,
    tasks::{TASK_RESULT_BYTES_MAX, TASKS_MAX},
};

const NOW_MS: u64 = 1_800_000_000_000;

fn task(id: &str, user: &str) -> NewTask {
    NewTask {
        id: id.to_owned(),
        user: user.to_owned(),
        name: "mail.send".to_owned(),
        created_ms: NOW_MS,
        expires_ms: NOW_MS + 1000,
    }
}

fn end(kind: &str) -> TaskEnd {
    TaskEnd { kind: kind.to_owned(), body: "{}".to_owned() }
}

#[test]
fn the_first_end_counts_and_is_its_users_alone() {
    let fixture = Fixture::new();
    let tasks = &fixture.store.tasks;
    tasks.add_task(task("t", "ann")).wait().unwrap();
    let found = |user, id, now_ms| tasks.find_task(user, id, now_ms).wait().unwrap();
    assert_eq!(found("ann", "t", NOW_MS).unwrap().state, TaskState::Running);
    assert!(tasks.end_task("t", end("completed"), NOW_MS + 5).wait().unwrap());
    assert!(!tasks.end_task("t", end("cancelled"), NOW_MS + 6).wait().unwrap());
    let kept = found("ann", "t", NOW_MS + 999).unwrap();
    assert_eq!((kept.state, kept.updated_ms), (TaskState::Ended(end("completed")), NOW_MS + 5));
    assert_eq!(kept.task, task("t", "ann"));
    for (user, id, now_ms) in [
        ("ben", "t", NOW_MS),
        ("ann", "u", NOW_MS),
        ("ann", "", NOW_MS),
        ("ann", "t", NOW_MS + 1000),
    ] {
        assert_eq!(found(user, id, now_ms), None, "{user} {id} {now_ms}");
    }
    assert!(
        !tasks.end_task("u", end("completed"), NOW_MS).wait().unwrap(),
        "there is no such task"
    );
}

#[test]
fn a_task_of_a_process_that_is_gone_is_cut_off_for_good() {
    let rows = [
        (Other::Ended, TaskState::CutOff),
        (Other::Replaced, TaskState::CutOff),
        (Other::BeforeTheStart, TaskState::CutOff),
        (Other::Elsewhere, TaskState::Running),
    ];
    for (other, want) in rows {
        let fixture = Fixture::new();
        let tasks = &fixture.store.tasks;
        tasks.add_task(task("t", "ann")).wait().unwrap();
        fixture.hand_over("task", other);
        let found = tasks.find_task("ann", "t", NOW_MS).wait().unwrap().unwrap();
        assert_eq!(found.state, want);
        assert!(tasks.end_task("t", end("completed"), NOW_MS).wait().unwrap());
        let found = tasks.find_task("ann", "t", NOW_MS).wait().unwrap().unwrap();
        assert_eq!(found.state, TaskState::Ended(end("completed")), "an end outlives its process");
    }
}

#[test]
fn tasks_are_bounded_in_number_and_size() {
    let fixture = Fixture::new();
    let tasks = &fixture.store.tasks;
    for number in 0..TASKS_MAX {
        tasks.add_task(task(&format!("t{number}"), "ann")).wait().unwrap();
    }
    let refused = tasks.add_task(task("one more", "ann")).wait();
    assert!(matches!(refused, Err(StoreError::TooManyTasks { .. })), "{refused:?}");
    tasks.add_task(task("another's", "ben")).wait().unwrap();
    let body = "x".repeat(TASK_RESULT_BYTES_MAX + 1);
    let long = TaskEnd { kind: "completed".to_owned(), body };
    assert!(tasks.end_task("t0", long, NOW_MS).wait().is_err());
    // Those that have expired make room.
    let later =
        NewTask { created_ms: NOW_MS + 1000, expires_ms: NOW_MS + 2000, ..task("l", "ann") };
    tasks.add_task(later).wait().unwrap();
    assert_eq!(fixture.count("SELECT count(*) FROM task"), 1);
}
