//! A question has one answer: the first one that is about it and in time.

use std::sync::Barrier;

use super::*;
use crate::{AnswerResult, StoreError, StoredAnswer, StoredQuestion, questions};

const NOW_MS: u64 = 1_000_000_000_000;

fn question(id: &str) -> StoredQuestion {
    let [id, user] = [id, USER].map(str::to_owned);
    let (text, hash) = ("{}".to_owned(), format!("hash of {id}"));
    StoredQuestion { id, user, text, hash, asked_ms: NOW_MS, expires_ms: NOW_MS + 600_000 }
}

fn answer(carrier: &str, at_ms: u64) -> StoredAnswer {
    let [answer, carrier] = ["once", carrier].map(str::to_owned);
    StoredAnswer { answer, carrier, at_ms }
}

#[test]
fn only_the_first_fitting_answer_counts() {
    let fixture = Fixture::new();
    let store = &fixture.store.questions;
    store.publish_question(question("q")).wait().unwrap();
    let give = |user: &str, id: &str, hash: &str, at_ms: u64| {
        store.answer_question(user, id, hash, answer("me", at_ms)).wait().unwrap()
    };
    let late = NOW_MS + 600_000;
    let rows = [
        (USER, "other", "hash of q", NOW_MS, AnswerResult::NotAsked),
        ("eve", "q", "hash of q", NOW_MS, AnswerResult::NotAsked),
        (USER, "q", "hash of r", NOW_MS, AnswerResult::OtherHash),
        (USER, "q", "", NOW_MS, AnswerResult::OtherHash),
        (USER, "q", "hash of q", late, AnswerResult::Expired),
        (USER, "q", "hash of q", late - 1, AnswerResult::Accepted),
        (USER, "q", "hash of q", NOW_MS, AnswerResult::AnsweredBefore(answer("me", late - 1))),
        (USER, "q", "hash of r", NOW_MS, AnswerResult::OtherHash),
    ];
    for (user, id, hash, at_ms, want) in rows {
        assert_eq!(give(user, id, hash, at_ms), want, "{user} {id} {hash} {at_ms}");
    }
    assert_eq!(store.find_answer("q").wait().unwrap(), Some(answer("me", late - 1)));
    assert!(!store.is_received("q").wait().unwrap());
    store.withdraw_question("q").wait().unwrap();
    store.close_question("q", None).wait().unwrap();
    assert!(store.is_received("q").wait().unwrap(), "an answer is not withdrawn");
    assert!(store.open_questions(USER, NOW_MS).wait().unwrap().is_empty());
}

#[test]
fn of_many_answers_at_once_one_counts() {
    let fixture = Fixture::new();
    let store = &fixture.store.questions;
    store.publish_question(question("q")).wait().unwrap();
    let barrier = Barrier::new(3);
    let results: Vec<AnswerResult> = std::thread::scope(|scope| {
        let give = |carrier: &'static str| {
            let barrier = &barrier;
            scope.spawn(move || {
                barrier.wait();
                let given = answer(carrier, NOW_MS);
                store.answer_question(USER, "q", "hash of q", given).wait().unwrap()
            })
        };
        ["a", "b", "c"].map(give).into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let accepted = results.iter().filter(|result| **result == AnswerResult::Accepted).count();
    assert_eq!(accepted, 1, "{results:?}");
    let first = store.find_answer("q").wait().unwrap().unwrap();
    let told = results.iter().filter(|one| **one == AnswerResult::AnsweredBefore(first.clone()));
    assert_eq!(told.count(), 2, "{results:?}");
}

#[test]
fn open_questions_are_bounded_and_old_ones_go() {
    let fixture = Fixture::new();
    let store = &fixture.store.questions;
    for number in 0..questions::QUESTIONS_OPEN_MAX {
        store.publish_question(question(&format!("q{number:02}"))).wait().unwrap();
    }
    let refused = store.publish_question(question("more")).wait().unwrap_err();
    assert!(matches!(refused, StoreError::TooManyQuestions { .. }), "{refused}");
    let open = store.open_questions(USER, NOW_MS).wait().unwrap();
    assert_eq!(open.len(), questions::QUESTIONS_OPEN_MAX);
    assert_eq!(open[0], question("q00"));
    let of_another = StoredQuestion { user: "eve".to_owned(), ..question("eve's") };
    store.publish_question(of_another).wait().unwrap();
    store.withdraw_question("q00").wait().unwrap();
    store.publish_question(question("more")).wait().unwrap();
    assert!(store.open_questions(USER, NOW_MS + 600_000).wait().unwrap().is_empty());
    let later = NOW_MS + 600_000 + questions::CLOSED_AGE_MS_MAX + 1;
    let next = StoredQuestion { asked_ms: later, expires_ms: later + 1, ..question("next") };
    store.publish_question(next).wait().unwrap();
    let gone = store.answer_question(USER, "q01", "hash of q01", answer("me", NOW_MS));
    assert_eq!(gone.wait().unwrap(), AnswerResult::NotAsked);
    let long = "x".repeat(questions::QUESTION_TEXT_BYTES_MAX + 1);
    let refused = store.publish_question(StoredQuestion { text: long, ..question("long") });
    assert!(refused.wait().is_err());
}
