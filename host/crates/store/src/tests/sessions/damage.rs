//! A database that is no longer whole is told as that, whatever is done with it.

use std::sync::LazyLock;

use proptest::prelude::*;

use super::*;

/// Records of the session that is damaged.
const RECORDS: usize = 40;

static WHOLE: LazyLock<Fixture> = LazyLock::new(|| {
    let fixture = Fixture::sqlite();
    let texts: Vec<String> =
        (0..RECORDS).map(|number| format!("text {number} ").repeat(30)).collect();
    let refs: Vec<&str> = texts.iter().map(String::as_str).collect();
    fixture.begin("s-1", &refs);
    fixture.begin("s-2", &["text"]);
    fixture.sessions().fork(USER, "s-1", 9, "s-3", 0).wait().unwrap();
    // Through a connection of default settings, which moves the log of writes on closing.
    fixture.sql("SELECT count(*) FROM session");
    fixture
});

#[test]
fn what_is_not_as_it_was_written_is_not_read() {
    let rows = [
        ("UPDATE body SET text = text || ' ' WHERE key = 3", 2),
        ("UPDATE body SET hash = zeroblob(32) WHERE key = 1", 0),
        ("UPDATE body SET hash = x'00' WHERE key = 3", 0),
        ("DELETE FROM record WHERE session = 1 AND seq = 5", 5),
        ("DELETE FROM record WHERE session = 1 AND seq > 30", 31),
        ("DELETE FROM record WHERE session = 1", 0),
        ("UPDATE session SET records = 41 WHERE id = 's-1'", 40),
        ("PRAGMA foreign_keys = OFF; DELETE FROM body WHERE key = 20", 19),
    ];
    for (sql, readable) in rows {
        let copy = WHOLE.copy();
        copy.sql(sql);
        let (records, error) = copy.read_all("s-1");
        assert_eq!(records.len(), readable, "{sql}");
        assert!(matches!(error, Some(StoreError::Damaged { .. })), "{error:?} {sql}");
        assert_eq!(copy.read("s-2").len(), 1);
    }
}

#[test]
fn a_missing_table_is_an_error() {
    for table in ["session", "record", "body", "leftover", "words"] {
        let copy = WHOLE.copy();
        copy.sql(&format!("PRAGMA foreign_keys = OFF; DROP TABLE {table}"));
        use_all(&copy);
        assert!(copy.sessions().remove(USER, "s-1").wait().is_err(), "{table}");
    }
}

#[test]
fn what_somebody_put_into_the_schema_does_nothing() {
    let copy = WHOLE.copy();
    copy.sql(
        "CREATE TRIGGER hides AFTER INSERT ON record BEGIN DELETE FROM record; END;
         CREATE TRIGGER keeps BEFORE DELETE ON record BEGIN SELECT raise(IGNORE); END;",
    );
    copy.go_on("s-2", &["more"]);
    assert_eq!(copy.bodies("s-2"), ["text", "more"]);
    copy.sessions().remove(USER, "s-1").wait().unwrap();
    assert_eq!(copy.count("SELECT count(*) FROM record"), 2 + 9);
}

/// Calls everything. What comes back does not matter; that it does is what is tested.
fn use_all(fixture: &Fixture) {
    let sessions = fixture.sessions();
    let _ = sessions.list(SessionFilter::of_user(USER)).wait();
    let _ = sessions.find_by_prefix(USER, "s-").wait();
    let _ = sessions.latest_session(USER, Some("/work")).wait();
    if let Ok(session) = sessions.get(USER, "s-1").wait() {
        let _ = (0..2 * RECORDS)
            .try_for_each(|from| sessions.read_page(&session, from as u64).wait().map(drop));
    }
    let _ = sessions.search_records(USER, "text 7", 20).wait();
    let more = vec![new_record("more text")];
    let _ = sessions.append_records(USER, "s-1", RECORDS as u64, more).wait();
    let _ = sessions.fork(USER, "s-1", 3, "s-4", 0).wait();
    let _ = sessions.rename(USER, "s-2", "Another").wait();
    let _ = sessions.prune(0, 2).wait();
    let _ = sessions.remove(USER, "s-1").wait();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..Default::default() })]

    #[test]
    fn a_damaged_file_costs_no_more_than_an_error(
        places in proptest::collection::vec((any::<usize>(), any::<u8>()), 1..20),
        cut in proptest::option::weighted(0.2, any::<usize>()),
    ) {
        let copy = WHOLE.copy();
        let path = copy.path().join(FILE);
        let mut bytes = fs::read(&path).unwrap();
        for (place, byte) in places {
            // The header says that the file is a database at all.
            let place = 100 + place % (bytes.len() - 100);
            bytes[place] = byte;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut % bytes.len());
        }
        fs::write(&path, bytes).unwrap();
        use_all(&copy);
    }
}
