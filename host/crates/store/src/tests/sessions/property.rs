//! Whatever is done in whatever order: exactly the bodies that are used are kept and found.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;

/// Texts that records are made of. The words of each are its own.
const TEXTS: [&str; 6] = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta"];

/// One thing that is done. Numbers pick a session, texts and a place.
#[derive(Debug, Clone)]
enum Step {
    Create(usize),
    Append(usize, Vec<usize>),
    AppendTooLate(usize),
    Fork(usize, usize, usize),
    Remove(usize),
    Prune(usize),
    CutShort(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let session = || 0..5usize;
    let texts = proptest::collection::vec(0..TEXTS.len(), 0..5);
    prop_oneof![
        2 => session().prop_map(Step::Create),
        5 => (session(), texts).prop_map(|(session, texts)| Step::Append(session, texts)),
        1 => session().prop_map(Step::AppendTooLate),
        3 => (session(), session(), 0..8usize).prop_map(|(a, b, n)| Step::Fork(a, b, n)),
        2 => session().prop_map(Step::Remove),
        1 => (0..4usize).prop_map(Step::Prune),
        1 => session().prop_map(Step::CutShort),
    ]
}

/// What there should be: the texts of each session, in the order in which sessions were made.
#[derive(Debug, Default)]
struct Model {
    sessions: BTreeMap<String, Vec<&'static str>>,
    order: Vec<String>,
}

impl Model {
    fn add(&mut self, id: &str, texts: Vec<&'static str>) {
        self.sessions.insert(id.to_owned(), texts);
        self.order.push(id.to_owned());
    }

    fn remove(&mut self, id: &str) -> bool {
        self.order.retain(|other| other != id);
        self.sessions.remove(id).is_some()
    }

    fn apply(&mut self, fixture: &Fixture, step: &Step) {
        let sessions = fixture.sessions();
        match step {
            Step::Create(number) => {
                let id = format!("s-{number}");
                let made = sessions.create(new_session(&id)).wait().is_ok();
                assert_eq!(made, !self.sessions.contains_key(&id));
                if made {
                    self.add(&id, Vec::new());
                }
            }
            Step::Append(number, texts) => self.append(fixture, &format!("s-{number}"), texts),
            Step::AppendTooLate(number) => {
                let id = format!("s-{number}");
                let known = self.sessions.get(&id).map_or(0, Vec::len) as u64;
                assert!(
                    sessions
                        .append_records(USER, &id, known + 1, vec![new_record("never")])
                        .wait()
                        .is_err()
                );
            }
            Step::Fork(from, to, records) => {
                let (from, to) = (format!("s-{from}"), format!("s-{to}"));
                let had = self.sessions.get(&from).and_then(|texts| texts.get(..*records));
                let had = had.map(<[_]>::to_vec).filter(|_| !self.sessions.contains_key(&to));
                let made = sessions.fork(USER, &from, *records as u64, &to, 2000).wait().is_ok();
                assert_eq!(made, had.is_some());
                if let Some(texts) = had {
                    self.add(&to, texts);
                }
            }
            Step::Remove(number) => {
                let id = format!("s-{number}");
                assert_eq!(sessions.remove(USER, &id).wait().is_ok(), self.remove(&id));
            }
            Step::Prune(keep_max) => self.prune(fixture, *keep_max),
            Step::CutShort(number) => {
                let id = format!("s-{number}");
                fixture.sql(&format!(
                    "INSERT INTO leftover SELECT key FROM session WHERE id = '{id}';
                     DELETE FROM session WHERE id = '{id}'"
                ));
                self.remove(&id);
            }
        }
    }

    fn append(&mut self, fixture: &Fixture, id: &str, texts: &[usize]) {
        let Some(known) = self.sessions.get_mut(id) else { return };
        let texts: Vec<&str> = texts.iter().map(|number| TEXTS[*number]).collect();
        fixture.go_on(id, &texts);
        known.extend(texts);
    }

    /// Sessions with records are as old as each other, and those without are older.
    fn prune(&mut self, fixture: &Fixture, keep_max: usize) {
        let listed = fixture.ids(&SessionFilter::of_user(USER));
        let gone = &listed[keep_max.min(listed.len())..];
        assert_eq!(fixture.sessions().prune(0, keep_max).wait().unwrap(), gone.len());
        gone.iter().for_each(|id| assert!(self.remove(id)));
    }

    /// Compares everything that can be seen.
    fn check(&self, fixture: &Fixture) {
        let mut listed = fixture.ids(&SessionFilter::of_user(USER));
        listed.sort();
        assert_eq!(listed, self.sessions.keys().cloned().collect::<Vec<_>>());
        for (id, texts) in &self.sessions {
            assert_eq!(fixture.bodies(id), *texts, "{id}");
        }
        let used: BTreeSet<&str> = self.sessions.values().flatten().copied().collect();
        for text in TEXTS {
            let hits = fixture.sessions().search_records(USER, text, 99).wait().unwrap();
            assert_eq!(!hits.is_empty(), used.contains(text), "{text}");
            for hit in hits {
                assert_eq!(self.sessions[&hit.session_id][hit.seq as usize], text);
            }
        }
    }

    /// Compares what is kept once nothing waits to be removed.
    fn check_kept(&self, fixture: &Fixture) {
        fixture.sessions().prune(0, usize::MAX).wait().unwrap();
        let used: BTreeSet<&str> = self.sessions.values().flatten().copied().collect();
        assert_eq!(fixture.kept(), [used.len() as u64, used.len() as u64, 0]);
        let records: usize = self.sessions.values().map(Vec::len).sum();
        assert_eq!(fixture.count("SELECT count(*) FROM record"), records as u64);
        if fixture.is_sqlite() {
            fixture.sql("INSERT INTO words (words, rank) VALUES ('integrity-check', 1)");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..Default::default() })]

    #[test]
    fn exactly_what_is_used_is_kept(steps in proptest::collection::vec(step(), 1..25)) {
        let fixture = Fixture::new();
        fixture.sessions().prune(0, 0).wait().unwrap();
        let mut model = Model::default();
        for step in &steps {
            model.apply(&fixture, step);
        }
        model.check(&fixture);
        model.check_kept(&fixture);
        model.check(&fixture);
    }

    #[test]
    fn every_text_is_a_query(query in any::<String>()) {
        let fixture = Fixture::new();
        fixture.begin("s-1", &["a text"]);
        fixture.sessions().search_records(USER, &query, 9).wait().unwrap();
    }

    #[test]
    fn every_text_can_be_kept_and_found_by_its_own_words(text in any::<String>(), word in "[a-zé北ก]{1,6}") {
        let fixture = Fixture::new();
        let text = format!("{text} {word}");
        fixture.begin("s-1", &[&text]);
        prop_assert_eq!(fixture.bodies("s-1"), [text]);
        prop_assert_eq!(fixture.sessions().search_records(USER, &word, 9).wait().unwrap().len(), 1);
    }
}
