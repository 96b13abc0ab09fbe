//! Memories are recalled by what they mean, or by their words, and forgotten without a trace.

use super::*;
use crate::{
    EmbeddingVector, MemoryCriterion, MemoryQuery, MemoryQueryResult, MemorySelection, NewMemory,
    StoreError, StoredMemoryKind, VisibleTurns,
};

fn vector(embedder: &str, values: &[f32]) -> EmbeddingVector {
    EmbeddingVector { embedder: embedder.to_owned(), values: values.to_vec() }
}

fn memory(text: &str, values: Option<&[f32]>) -> NewMemory {
    NewMemory {
        user: "me".to_owned(),
        text: text.to_owned(),
        vector: values.map(|values| vector("small", values)),
        session_id: "s-1".to_owned(),
        turn: 1,
        kind: StoredMemoryKind::Turn,
        at_ms: 1000,
    }
}

fn by(by: MemoryCriterion) -> MemoryQuery {
    MemoryQuery { user: "me".to_owned(), criterion: by, limit: 9, visible_turns: None }
}

fn near(values: &[f32]) -> MemoryQuery {
    by(MemoryCriterion::Vector(vector("small", values)))
}

impl Fixture {
    fn remember(&self, memory: &NewMemory) -> u64 {
        self.store.memories.store_memory(memory.clone()).wait().unwrap()
    }

    fn recall(&self, wanted: &MemoryQuery) -> MemoryQueryResult {
        self.store.memories.recall(wanted.clone()).wait().unwrap()
    }

    /// The texts that are recalled by words.
    fn by_words(&self, words: &str) -> Vec<String> {
        texts(&self.recall(&by(MemoryCriterion::Words(words.to_owned()))))
    }

    fn listed(&self) -> Vec<String> {
        let memories = self.store.memories.list_newest("me", 99).wait().unwrap();
        memories.into_iter().map(|memory| memory.text).collect()
    }
}

fn texts(recalled: &MemoryQueryResult) -> Vec<String> {
    recalled.matches.iter().map(|found| found.memory.text.clone()).collect()
}

#[test]
fn the_closest_are_recalled_first() {
    let fixture = Fixture::new();
    for (text, values) in [("east", [1.0, 0.0]), ("north", [0.0, 3.0]), ("west", [-1e30, 0.0])] {
        fixture.remember(&memory(text, Some(&values)));
    }
    let recalled = fixture.recall(&near(&[2.0, 0.5]));
    assert_eq!(texts(&recalled), ["east", "north", "west"]);
    assert_eq!(recalled.not_compared, 0);
    let similar: Vec<f64> = recalled.matches.iter().map(|found| found.similarity).collect();
    for (similarity, want) in similar.iter().zip([0.970, 0.243, -0.970]) {
        assert!((similarity - want).abs() < 0.001, "{similar:?}");
    }
    let recalled = fixture.recall(&near(&[1e38, 1e38]));
    assert!((recalled.matches[0].similarity - 0.707).abs() < 0.001, "{recalled:?}");
    assert_eq!(fixture.recall(&MemoryQuery { limit: 1, ..near(&[0.0, 1.0]) }).matches.len(), 1);
    let found = &fixture.recall(&near(&[0.0, 1.0])).matches[0].memory;
    assert_eq!((found.text.as_str(), found.session_id.as_str(), found.turn), ("north", "s-1", 1));
    assert_eq!((found.kind, found.at_ms), (StoredMemoryKind::Turn, 1000));
    assert_eq!(found.embedder.as_deref(), Some("small"));
}

#[test]
fn vectors_of_different_models_are_not_compared_and_that_is_told() {
    let fixture = Fixture::new();
    fixture.remember(&memory("here", Some(&[1.0, 0.0])));
    fixture.remember(&memory("longer", Some(&[1.0, 0.0, 0.0])));
    fixture.remember(&memory("none", None));
    let vector = Some(EmbeddingVector { embedder: "other".to_owned(), values: vec![1.0, 0.0] });
    let there = fixture.remember(&NewMemory { vector, ..memory("there", None) });
    fixture.remember(&NewMemory { user: "you".to_owned(), ..memory("yours", Some(&[1.0, 0.0])) });
    let recalled = fixture.recall(&near(&[1.0, 0.0]));
    assert_eq!((texts(&recalled), recalled.not_compared), (vec!["here".to_owned()], 3));
    // Made anew by the present model, they are.
    let memories = &fixture.store.memories;
    for (dimensions, want) in
        [(None, &["none", "there"][..]), (Some(2), &["longer", "none", "there"])]
    {
        let without = memories.list_without_vector("me", ("small", dimensions), 9).wait().unwrap();
        let without: Vec<&str> = without.iter().map(|memory| memory.text.as_str()).collect();
        assert_eq!(without, want);
    }
    let vector = EmbeddingVector { embedder: "small".to_owned(), values: vec![0.0, 1.0] };
    assert!(memories.store_vector("me", there, vector.clone()).wait().unwrap());
    assert!(!memories.store_vector("you", there, vector.clone()).wait().unwrap());
    assert!(!memories.store_vector("me", 99, vector).wait().unwrap());
    let recalled = fixture.recall(&near(&[1.0, 0.0]));
    assert_eq!((recalled.matches.len(), recalled.not_compared), (2, 2));
}

#[test]
fn a_model_is_asked_once_for_what_it_makes_nothing_of() {
    let fixture = Fixture::new();
    let (some, none) =
        (fixture.remember(&memory("some", None)), fixture.remember(&memory("none", None)));
    let memories = &fixture.store.memories;
    memories
        .store_vector(
            "me",
            some,
            EmbeddingVector { embedder: "small".to_owned(), values: vec![1.0, 0.0] },
        )
        .wait()
        .unwrap();
    assert!(memories.mark_unembeddable("me", none, "small").wait().unwrap());
    assert!(!memories.mark_unembeddable("you", none, "small").wait().unwrap());
    for (embedder, want) in [("small", 0), ("other", 2)] {
        let without = memories.list_without_vector("me", (embedder, Some(2)), 9).wait().unwrap();
        assert_eq!(without.len(), want, "{embedder}");
    }
    let recalled = fixture.recall(&near(&[1.0, 0.0]));
    assert_eq!((texts(&recalled), recalled.not_compared), (vec!["some".to_owned()], 1));
    assert_eq!(recalled.matches[0].memory.dimensions, Some(2));
    assert_eq!(fixture.by_words("none"), ["none"]);
}

#[test]
fn what_is_no_vector_is_refused() {
    let fixture = Fixture::new();
    let long = [1.0; 8193];
    let rows: [&[f32]; 6] = [&[], &[0.0, 0.0], &[f32::NAN, 1.0], &[f32::INFINITY], &[-0.0], &long];
    for values in rows {
        for error in [
            fixture
                .store
                .memories
                .store_memory(memory("a", Some(values)).clone())
                .wait()
                .unwrap_err(),
            fixture.store.memories.recall(near(values).clone()).wait().unwrap_err(),
        ] {
            assert!(matches!(error, StoreError::InvalidVector { .. }), "{error}");
        }
    }
    assert_eq!(fixture.listed(), [""; 0]);
    fixture.remember(&memory("longest", Some(&long[..8192])));
    fixture.remember(&memory("tiny", Some(&[f32::MIN_POSITIVE])));
}

#[test]
fn the_same_text_is_kept_once_with_all_its_places() {
    let fixture = Fixture::new();
    let first = fixture.remember(&memory("same", Some(&[1.0, 0.0])));
    let later =
        NewMemory { session_id: "s-2".to_owned(), turn: 7, at_ms: 2000, ..memory(" same\n", None) };
    assert_eq!(fixture.remember(&later), first);
    let initial = NewMemory { kind: StoredMemoryKind::Initial, at_ms: 500, ..memory("same", None) };
    assert_eq!(fixture.remember(&initial), first);
    let recalled = fixture.recall(&near(&[1.0, 0.0]));
    let [found] = &recalled.matches[..] else { panic!("{recalled:?}") };
    assert_eq!((found.memory.session_id.as_str(), found.memory.turn), ("s-2", 7));
    assert_eq!(found.memory.text, "same");
    assert_eq!(fixture.by_words("same"), ["same"]);
    assert_eq!(fixture.listed(), ["same"]);
    assert_eq!(fixture.store.memories.search("me", "sam", 9).wait().unwrap().len(), 1);
    // It goes with the last place that it comes from.
    let memories = &fixture.store.memories;
    assert_eq!(
        memories.forget("me", MemorySelection::Session("s-2".to_owned())).wait().unwrap(),
        0
    );
    assert_eq!(fixture.recall(&near(&[1.0, 0.0])).matches[0].memory.session_id, "s-1");
    assert_eq!(
        memories.forget("me", MemorySelection::Session("s-1".to_owned())).wait().unwrap(),
        1
    );
    assert_eq!(fixture.listed(), [""; 0]);
}

#[test]
fn what_the_model_sees_anyway_is_not_recalled() {
    let fixture = Fixture::new();
    for (session_id, turn, text) in [("s-1", 1, "old"), ("s-1", 2, "new"), ("s-2", 9, "other")] {
        let values = Some(&[1.0, 0.0][..]);
        fixture.remember(&NewMemory {
            session_id: session_id.to_owned(),
            turn,
            ..memory(text, values)
        });
    }
    for by in [near(&[1.0, 0.0]), by(MemoryCriterion::Words("old new other".to_owned()))] {
        let shown = Some(VisibleTurns { session_id: "s-1".to_owned(), from_turn: 2 });
        let mut recalled = texts(&fixture.recall(&MemoryQuery { visible_turns: shown, ..by }));
        recalled.sort();
        assert_eq!(recalled, ["old", "other"]);
    }
    // A text that was said elsewhere too comes from there.
    fixture.remember(&NewMemory { session_id: "s-2".to_owned(), turn: 3, ..memory("new", None) });
    let shown = Some(VisibleTurns { session_id: "s-1".to_owned(), from_turn: 0 });
    let recalled = fixture.recall(&MemoryQuery {
        visible_turns: shown,
        ..by(MemoryCriterion::Words("new".to_owned()))
    });
    assert_eq!((texts(&recalled), recalled.matches[0].memory.turn), (vec!["new".to_owned()], 3));
}

#[test]
fn any_of_the_words_will_do_and_rare_ones_count_more() {
    let fixture = Fixture::new();
    let said = [
        "the cat sat on the mat",
        "the dog sat on the log",
        "the sum of the parts",
        "café près de l'Élysée",
        "我在北京大学学习中文",
        "हिन्दी में एक वाक्य",
    ];
    for text in said {
        fixture.remember(&memory(text, None));
    }
    let rows: [(&str, &[usize]); 7] = [
        ("where is the cat?", &[0, 2, 1]),
        ("sat dog", &[1, 0]),
        ("a CAFE", &[3]),
        ("北京", &[4]),
        ("हिन्दी", &[5]),
        ("nothing of it", &[2]),
        ("unknown", &[]),
    ];
    for (query, want) in rows {
        let want: Vec<&str> = want.iter().map(|n| said[*n]).collect();
        assert_eq!(fixture.by_words(query), want, "{query}");
    }
    let recalled = fixture.recall(&by(MemoryCriterion::Words("sat dog".to_owned())));
    assert_eq!(recalled.matches[0].similarity, 1.0);
    assert!(recalled.matches[1].similarity < 1.0 && recalled.matches[1].similarity > 0.0);
    let others =
        MemoryQuery { user: "you".to_owned(), ..by(MemoryCriterion::Words("cat".to_owned())) };
    assert_eq!(fixture.recall(&others).matches, []);
}

#[test]
fn no_text_is_a_command_to_the_index() {
    let fixture = Fixture::new();
    fixture.remember(&memory("AND text near fools", None));
    let texts = [
        "",
        " ",
        "\"",
        "\"\"",
        "AND",
        "NOT",
        "text:fools",
        "^fools",
        "fools*",
        "NEAR(fools, 2)",
        "-fools",
        "{text} : fools",
        "(((",
        "fools\0text",
        "\u{1d}\u{1f}fools",
        "'; DROP TABLE memory; --",
        "🎉",
        "\u{301}",
        "a OR",
        "OR b",
        "\\",
        "?1",
        ":user",
    ];
    for text in texts {
        fixture.by_words(text);
        fixture.store.memories.search("me", text, 9).wait().unwrap();
        fixture.remember(&memory(text, None));
    }
    for sign in ["a ", "\"", "北", "* ", "NEAR(", "fools "] {
        fixture.by_words(&sign.repeat(100_000 / sign.len()));
    }
    assert!(fixture.by_words("fools\" xyz \"near").contains(&"AND text near fools".to_owned()));
}

#[test]
fn the_list_and_the_search_show_what_there_is() {
    let fixture = Fixture::new();
    for n in 0..5 {
        let text = format!("needle {n}");
        fixture.remember(&NewMemory { at_ms: n, ..memory(&text, None) });
    }
    fixture.remember(&NewMemory { user: "you".to_owned(), ..memory("needle", None) });
    assert_eq!(fixture.listed()[0], "needle 4");
    let memories = &fixture.store.memories;
    assert_eq!(memories.list_newest("me", 2).wait().unwrap().len(), 2);
    assert_eq!(memories.search("me", "needl 3", 9).wait().unwrap()[0].text, "needle 3");
    assert_eq!(memories.search("me", "needle", 3).wait().unwrap().len(), 3);
    assert_eq!(memories.search("me", "needle nothing", 3).wait().unwrap(), []);
    let error = memories.search("me", &"a".repeat(1025), 3).wait().unwrap_err();
    assert!(matches!(error, StoreError::TooLong { what: "a query", .. }));
    let error =
        memories.store_memory(memory(&"a".repeat(65_537), None).clone()).wait().unwrap_err();
    assert!(matches!(error, StoreError::TooLong { what: "a memory", .. }));
}

#[test]
fn what_is_forgotten_leaves_no_byte() {
    let fixture = Fixture::new();
    let secret = "xylophone-of-glass";
    let id = fixture.remember(&memory(secret, Some(&[1.0, 0.0])));
    let kept = fixture.remember(&memory("kept", None));
    fixture.remember(&NewMemory { user: "you".to_owned(), ..memory("yours", None) });
    let memories = &fixture.store.memories;
    assert_eq!(memories.forget("you", MemorySelection::Ids(vec![id])).wait().unwrap(), 0);
    assert_eq!(memories.forget("me", MemorySelection::Ids(vec![id, id, 99])).wait().unwrap(), 1);
    assert_eq!(
        (fixture.listed(), fixture.by_words("xylophone")),
        (vec!["kept".to_owned()], vec![])
    );
    for entry in fs::read_dir(fixture.path()).unwrap() {
        let bytes = fs::read(entry.unwrap().path()).unwrap();
        for part in ["xylophone", "glass"] {
            assert!(!bytes.windows(part.len()).any(|window| window == part.as_bytes()), "{part}");
        }
    }
    assert_eq!(
        memories.forget("me", MemorySelection::Session("s-9".to_owned())).wait().unwrap(),
        0
    );
    assert_eq!(memories.forget("me", MemorySelection::All).wait().unwrap(), 1);
    assert_eq!(memories.forget("me", MemorySelection::Ids(vec![kept])).wait().unwrap(), 0);
    assert_eq!(memories.list_newest("you", 9).wait().unwrap().len(), 1);
    assert_eq!(fixture.count("SELECT count(*) FROM memory_source"), 1);
    let words = if fixture.is_sqlite() { "memory_words" } else { "memory WHERE words IS NOT NULL" };
    assert_eq!(fixture.count(&format!("SELECT count(*) FROM {words}")), 1);
}

#[test]
fn a_turn_is_forgotten_where_it_stands_and_nowhere_else() {
    let fixture = Fixture::new();
    let at = |session_id: &str, turn, kind, text| {
        let session_id = session_id.to_owned();
        fixture.remember(&NewMemory { session_id, turn, kind, ..memory(text, None) });
    };
    at("s-1", 1, StoredMemoryKind::Turn, "one");
    at("s-1", 2, StoredMemoryKind::Turn, "two");
    at("s-2", 2, StoredMemoryKind::Turn, "two");
    at("s-1", 1, StoredMemoryKind::Initial, "known");
    let turn = |turn| MemorySelection::Turn { session_id: "s-1".to_owned(), turn };
    let memories = &fixture.store.memories;
    for (which, count) in [(turn(2), 0), (turn(9), 0), (turn(1), 1), (turn(1), 0)] {
        assert_eq!(memories.forget("me", which.clone()).wait().unwrap(), count, "{which:?}");
    }
    assert_eq!(
        memories
            .forget("you", MemorySelection::Turn { session_id: "s-2".to_owned(), turn: 2 })
            .wait()
            .unwrap(),
        0
    );
    let mut left = fixture.listed();
    left.sort();
    assert_eq!(left, ["known", "two"]);
    let two = memories.search("me", "two", 9).wait().unwrap();
    assert_eq!(two[0].session_id, "s-2");
}

#[test]
fn removing_a_session_leaves_its_memories() {
    let fixture = Fixture::new();
    let new = crate::NewSession {
        user: USER.to_owned(),
        id: "s-1".to_owned(),
        title: "".to_owned(),
        model: "".to_owned(),
        folder: None,
        created_ms: 0,
    };
    fixture.store.sessions.create(new).wait().unwrap();
    fixture.remember(&memory("kept", None));
    fixture.store.sessions.remove(USER, "s-1").wait().unwrap();
    assert_eq!(fixture.listed(), ["kept"]);
    assert_eq!(
        fixture
            .store
            .memories
            .forget("me", MemorySelection::Session("s-1".to_owned()))
            .wait()
            .unwrap(),
        1
    );
}

/// A full memory lets go of what was said longest ago.
#[test]
fn there_are_only_so_many() {
    let fixture = Fixture::new();
    fixture.remember(&memory("first", None));
    let (user, hash) = match fixture.is_sqlite() {
        true => ("user", "CAST(n AS BLOB)"),
        false => ("user_id", "CAST(CAST(n AS TEXT) AS BYTEA)"),
    };
    fixture.sql(&format!(
        "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 19999)
             INSERT INTO memory ({user}, hash, text) SELECT 'me', {hash}, 'text ' || n FROM n;
         INSERT INTO memory_source SELECT key, 's', 1, 'turn', key FROM memory WHERE key > 1;"
    ));
    let count = || fixture.count("SELECT count(*) FROM memory");
    assert_eq!(count(), 20_000);
    fixture.remember(&NewMemory { at_ms: 5000, ..memory("last", None) });
    assert_eq!(count(), 20_000);
    assert_eq!(fixture.by_words("first last"), ["last", "first"]);
    assert_eq!(fixture.count("SELECT count(*) FROM memory WHERE text = 'text 1'"), 0);
}
