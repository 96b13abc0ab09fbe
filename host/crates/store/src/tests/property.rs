//! Whatever single thing is changed: it is noticed, or it changes nothing that anybody reads.

use std::sync::LazyLock;

use proptest::prelude::*;

use super::*;

/// Records in the log that is changed.
const RECORDS: u64 = 6;

/// Changed again and again, in copies.
static WHOLE: LazyLock<Fixture> = LazyLock::new(|| {
    let fixture = Fixture::sqlite_with_records(RECORDS);
    // Through a connection of default settings, which moves the log of writes on closing.
    fixture.sql("SELECT count(*) FROM audit");
    fixture
});

/// The same before the log of writes was moved into the database.
static WITH_LOG_OF_WRITES: LazyLock<Fixture> =
    LazyLock::new(|| Fixture::sqlite_with_records(RECORDS));

/// One change of one row. Numbers pick a row and a byte.
#[derive(Debug, Clone)]
enum Change {
    Text { seq: u64, byte: usize, xor: u8 },
    CutText { seq: u64, byte: usize },
    GrowText { seq: u64, byte: usize, with: u8 },
    Hash { seq: u64, byte: usize, xor: u8 },
    Number { seq: u64, to: i64 },
    Remove { seq: u64 },
    Cut { seq: u64 },
    Duplicate { seq: u64, to: i64 },
    Swap { seq: u64, other: u64 },
    Exchange { seq: u64, other: u64 },
}

fn change() -> impl Strategy<Value = Change> {
    let seq = || 1..=RECORDS;
    let number = || prop_oneof![Just(-1), Just(0), 7i64..20, Just(i64::MAX)];
    prop_oneof![
        (seq(), any::<usize>(), 1u8..).prop_map(|(seq, byte, xor)| Change::Text { seq, byte, xor }),
        (seq(), any::<usize>()).prop_map(|(seq, byte)| Change::CutText { seq, byte }),
        (seq(), any::<usize>(), any::<u8>()).prop_map(|(seq, byte, with)| Change::GrowText {
            seq,
            byte,
            with
        }),
        (seq(), any::<usize>(), 1u8..).prop_map(|(seq, byte, xor)| Change::Hash { seq, byte, xor }),
        (seq(), number()).prop_map(|(seq, to)| Change::Number { seq, to }),
        seq().prop_map(|seq| Change::Remove { seq }),
        seq().prop_map(|seq| Change::Cut { seq }),
        (seq(), number()).prop_map(|(seq, to)| Change::Duplicate { seq, to }),
        (seq(), 1..RECORDS).prop_map(|(seq, by)| Change::Swap { seq, other: turn(seq, by) }),
        (seq(), 1..RECORDS).prop_map(|(seq, by)| Change::Exchange { seq, other: turn(seq, by) }),
    ]
}

/// Another record's number.
fn turn(seq: u64, by: u64) -> u64 {
    (seq - 1 + by) % RECORDS + 1
}

impl Change {
    fn apply(&self, fixture: &Fixture) {
        let cell = |column: &str, seq: u64, edit: &dyn Fn(&mut Vec<u8>)| {
            let connection = Connection::open(fixture.path().join(FILE)).unwrap();
            let sql = format!("SELECT CAST({column} AS BLOB) FROM audit WHERE seq = {seq}");
            let mut bytes: Vec<u8> = connection.query_row(&sql, (), |row| row.get(0)).unwrap();
            edit(&mut bytes);
            let kind = if column == "text" { "TEXT" } else { "BLOB" };
            let sql = format!("UPDATE audit SET {column} = CAST(?1 AS {kind}) WHERE seq = {seq}");
            connection.execute(&sql, [bytes]).unwrap();
        };
        let sql = |text: String| fixture.sql(&text);
        match *self {
            Self::Text { seq, byte, xor } => {
                cell("text", seq, &|text| {
                    let place = byte % text.len();
                    text[place] ^= xor;
                });
            }
            Self::CutText { seq, byte } => {
                cell("text", seq, &|text| text.truncate(byte % text.len()));
            }
            Self::GrowText { seq, byte, with } => {
                cell("text", seq, &|text| text.insert(byte % (text.len() + 1), with));
            }
            Self::Hash { seq, byte, xor } => {
                cell("hash", seq, &|hash| {
                    let place = byte % hash.len();
                    hash[place] ^= xor;
                });
            }
            Self::Number { seq, to } => {
                sql(format!("UPDATE audit SET seq = {to} WHERE seq = {seq}"));
            }
            Self::Remove { seq } => sql(format!("DELETE FROM audit WHERE seq = {seq}")),
            Self::Cut { seq } => sql(format!("DELETE FROM audit WHERE seq >= {seq}")),
            Self::Duplicate { seq, to } => {
                sql(format!(
                    "INSERT INTO audit SELECT {to}, text, hash FROM audit WHERE seq = {seq}"
                ));
            }
            Self::Swap { seq, other } => sql(format!(
                "UPDATE audit SET seq = 99 WHERE seq = {seq};
                 UPDATE audit SET seq = {seq} WHERE seq = {other};
                 UPDATE audit SET seq = {other} WHERE seq = 99"
            )),
            Self::Exchange { seq, other } => sql(format!(
                "UPDATE audit SET text = (SELECT text FROM audit WHERE seq = {other})
                 WHERE seq = {seq}"
            )),
        }
    }
}

/// What readers see: the records, or that there is something wrong.
fn seen(fixture: &Fixture) -> Option<Vec<AuditEntry>> {
    let audit = &fixture.store.audit;
    if !audit.verify(None).wait().ok()?.is_intact() {
        return None;
    }
    audit.read_records(AuditFilter::default()).wait().ok()
}

/// Changes one byte of a file.
fn flip(fixture: &Fixture, name: &str, byte: usize, xor: u8) {
    let path = fixture.path().join(name);
    let mut bytes = fs::read(&path).unwrap();
    let place = byte % bytes.len();
    bytes[place] ^= xor;
    fs::write(&path, bytes).unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..Default::default() })]

    #[test]
    fn h50_a_change_of_a_row_is_noticed(change in change()) {
        let copy = WHOLE.copy();
        prop_assert!(seen(&copy).is_some());
        change.apply(&copy);
        prop_assert_eq!(seen(&copy), None);
    }

    #[test]
    fn h50_a_change_of_head_or_key_is_noticed(
        name in prop_oneof![Just("audit.head"), Just("audit.key")],
        byte in any::<usize>(),
        xor in 1u8..,
    ) {
        let copy = WHOLE.copy();
        flip(&copy, name, byte, xor);
        prop_assert_eq!(seen(&copy), None);
    }

    #[test]
    fn h50_no_change_of_the_file_changes_what_is_read_unnoticed(
        (moved, name) in prop_oneof![
            Just((true, FILE)),
            Just((false, FILE)),
            Just((false, "store.sqlite3-wal")),
        ],
        byte in any::<usize>(),
        xor in 1u8..,
    ) {
        let whole = if moved { &WHOLE } else { &WITH_LOG_OF_WRITES };
        let want = whole.entries(AuditFilter::default());
        let copy = whole.copy();
        flip(&copy, name, byte, xor);
        if let Some(entries) = seen(&copy) {
            prop_assert_eq!(entries, want);
        }
    }
}
