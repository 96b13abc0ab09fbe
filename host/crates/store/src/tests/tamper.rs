//! Whatever is done to a finished log is noticed, and said where it was done.

use super::*;

/// Tampers with a log of ten records and compares what a check says.
fn check(what: &str, tamper: impl FnOnce(&Fixture), want: &[&str]) {
    let fixture = Fixture::sqlite_with_records(10);
    tamper(&fixture);
    assert_eq!(fixture.problems(), want, "{what}");
}

const UNFIT: &str = "changed or out of place";

#[test]
fn h50_every_kind_of_change_is_named_with_its_place() {
    let unfit = |seq: u64| format!("record {seq}: {UNFIT}");
    let rows: [(&str, &str, &[&str]); 9] = [
        ("nothing", "SELECT 1", &[]),
        (
            "an edited text",
            "UPDATE audit SET text = replace(text, 'message 4', 'massage 4') WHERE seq = 4",
            &[&unfit(4)],
        ),
        (
            "an edited hash",
            "UPDATE audit SET hash = zeroblob(32) WHERE seq = 4",
            &["record 4: changed or out of place, up to record 5"],
        ),
        (
            "a hash that is none",
            "UPDATE audit SET hash = x'00' WHERE seq = 10",
            &[&unfit(10), "record 10: not the one that was written last"],
        ),
        (
            "a record removed in the middle",
            "DELETE FROM audit WHERE seq = 4",
            &["record 4: missing", &unfit(5)],
        ),
        (
            "the first ones removed",
            "DELETE FROM audit WHERE seq < 4",
            &["record 1: missing, up to record 3", &unfit(4)],
        ),
        (
            "the last ones removed",
            "DELETE FROM audit WHERE seq > 7",
            &["record 8: cut off, up to record 10"],
        ),
        ("all removed", "DELETE FROM audit", &["record 1: cut off, up to record 10"]),
        (
            "two in each other's place",
            "UPDATE audit SET seq = 99 WHERE seq = 4; UPDATE audit SET seq = 4 WHERE seq = 5;
             UPDATE audit SET seq = 5 WHERE seq = 99",
            &["record 4: changed or out of place, up to record 6"],
        ),
    ];
    for (what, sql, want) in rows {
        check(what, |fixture| fixture.sql(sql), want);
    }
}

#[test]
fn h50_added_records_are_named() {
    let copy =
        |seq: i64| format!("INSERT INTO audit SELECT {seq}, text, hash FROM audit WHERE seq = 10");
    check(
        "the last one once more",
        |fixture| fixture.sql(&copy(11)),
        &["record 11: changed or out of place"],
    );
    check(
        "one far away",
        |fixture| fixture.sql(&copy(i64::MAX)),
        &[
            "record 11: missing, up to record 9223372036854775806",
            "record 9223372036854775807: changed or out of place",
        ],
    );
    check(
        "one before the first",
        |fixture| fixture.sql(&copy(-3)),
        &[
            "record 0: its number is not above the one before",
            "record 0: changed, or written with another key, up to record 1",
        ],
    );
}

#[test]
fn h50_a_missing_changed_or_old_head_is_named() {
    check(
        "no head",
        |fixture| fs::remove_file(fixture.path().join("audit.head")).unwrap(),
        &["record 10: the last one, but audit.head, which would confirm it, is missing"],
    );
    let rewrite = |change: fn(String) -> String| {
        move |fixture: &Fixture| {
            let path = fixture.path().join("audit.head");
            fs::write(&path, change(fs::read_to_string(&path).unwrap())).unwrap();
        }
    };
    let foreign = ["record 10: the last one, but audit.head was changed, or made with another key"];
    check("another number", rewrite(|head| head.replace("10:", "09:")), &foreign);
    check("one byte more", rewrite(|head| head + "\n"), &foreign);
    check("much more", rewrite(|head| head + &"x".repeat(1 << 20)), &foreign);
    let missing = "record 10: the last one, but audit.head, which would confirm it, is missing";
    check("nothing in it", rewrite(|_| String::new()), &[missing]);
    check(
        "no text",
        |fixture| fs::write(fixture.path().join("audit.head"), b"\xff\0").unwrap(),
        &foreign,
    );
}

/// As after a crash. What follows the old head has to fit all the same, and what it names to be
/// there.
#[test]
fn a_log_that_goes_further_than_its_head_is_whole_as_far_as_it_fits() {
    let with_older_head = |tamper: &str| {
        let fixture = Fixture::sqlite_with_records(10);
        let head = fs::read(fixture.path().join("audit.head")).unwrap();
        fixture.append(11..=13);
        fs::write(fixture.path().join("audit.head"), head).unwrap();
        fixture.sql(tamper);
        fixture
    };
    let rows: [(&str, &[&str]); 5] = [
        ("SELECT 1", &[]),
        ("DELETE FROM audit WHERE seq > 11", &[]),
        ("DELETE FROM audit WHERE seq > 9", &["record 10: cut off"]),
        (
            "DELETE FROM audit WHERE seq = 11",
            &["record 11: missing", "record 12: changed or out of place"],
        ),
        ("UPDATE audit SET text = '{}' WHERE seq = 12", &["record 12: changed or out of place"]),
    ];
    for (tamper, want) in rows {
        let fixture = with_older_head(tamper);
        assert_eq!(fixture.problems(), want, "{tamper}");
    }
    let fixture = with_older_head("SELECT 1");
    assert_eq!(fixture.log().warnings(), []);
    fixture.sql("DELETE FROM audit WHERE seq > 12");
    assert_eq!(fixture.problems(), ["record 13: cut off"], "the head was brought up to date");
}

/// Whoever cuts the log and makes the head fit has to seal it.
#[test]
fn h50_a_head_cannot_be_made_to_fit_a_log_that_was_cut() {
    let fixture = Fixture::sqlite_with_records(10);
    let seventh = &fixture.entries(AuditFilter::default())[6];
    let link = format!("{:020}:{}", seventh.seq, seventh.hash);
    fixture.sql("DELETE FROM audit WHERE seq > 7");
    let path = fixture.path().join("audit.head");
    let head = fs::read_to_string(&path).unwrap();
    let forged: Vec<String> = head
        .lines()
        .map(|line| match line.split_once(' ') {
            Some((name @ "last", _)) => format!("{name} {link}\n"),
            _ => format!("{line}\n"),
        })
        .collect();
    fs::write(&path, forged.concat()).unwrap();
    assert_eq!(
        fixture.problems(),
        ["record 7: the last one, but audit.head was changed, or made with another key"]
    );
}

#[test]
fn h50_another_key_or_none_is_named() {
    let all = "record 1: changed, or written with another key, up to record 10";
    let foreign = "record 10: the last one, but audit.head was changed, or made with another key";
    check(
        "another key",
        |fixture| fs::write(fixture.path().join("audit.key"), [7; 32]).unwrap(),
        &[all, foreign],
    );
    check(
        "no key",
        |fixture| fs::remove_file(fixture.path().join("audit.key")).unwrap(),
        &["record 10: cannot be checked, nor any before it: audit.key is missing", foreign],
    );
    for bytes in [vec![], vec![7; 31], vec![7; 33], vec![7; 1 << 20]] {
        let fixture = Fixture::sqlite_with_records(1);
        fs::write(fixture.path().join("audit.key"), bytes).unwrap();
        let error = fixture.store.audit.verify(None).wait().unwrap_err();
        assert!(error.to_string().ends_with("audit.key is damaged: it is not a key"), "{error}");
    }
}

#[test]
fn a_head_that_was_kept_elsewhere_is_found_again_or_missed() {
    let fixture = Fixture::sqlite_with_records(5);
    let head = fixture.verify().head;
    fixture.append(6..=9);
    let problems = |head: &str| {
        let seen = fixture.store.audit.verify(Some(head)).wait().unwrap();
        seen.problems.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(problems(&head), [""; 0]);
    assert_eq!(problems(&format!(" {head}\n")), [""; 0]);
    assert_eq!(problems(&fixture.verify().head), [""; 0]);
    assert_eq!(
        problems(&Fixture::sqlite().verify().head),
        [""; 0],
        "nothing is a start of anything"
    );
    let other = Fixture::sqlite_with_records(5).verify().head;
    assert_eq!(problems(&other), ["record 5: not the one that was expected"]);
    let later = head.replacen('5', "50", 1);
    assert_eq!(problems(&later), ["record 50: expected, but the log ends before it"]);
    for text in ["", "5", "5:", "five:00", "\x1b[31m", &"x".repeat(1 << 20)] {
        let error = fixture.store.audit.verify(Some(text)).wait().unwrap_err();
        assert!(error.to_string().ends_with("is not the head of an audit"), "{error}");
        assert!(error.to_string().len() < 200);
    }
}

#[test]
fn an_emptied_folder_does_not_pass_for_the_log_that_was_expected() {
    let head = Fixture::sqlite_with_records(5).verify().head;
    let seen = Fixture::sqlite().store.audit.verify(Some(&head)).wait().unwrap();
    let problems: Vec<_> = seen.problems.iter().map(ToString::to_string).collect();
    assert_eq!(problems, ["record 5: expected, but the log ends before it"]);
    let fixture = Fixture::sqlite_with_records(5);
    fs::remove_file(fixture.path().join("audit.key")).unwrap();
    let seen = fixture.store.audit.verify(Some(&head)).wait().unwrap();
    assert_eq!(seen.problems[1].what, "expected, but cannot be compared", "{seen:?}");
}

/// The whole folder put back to an earlier state is the one thing that only a head from elsewhere
/// can show.
#[test]
fn a_folder_that_was_put_back_is_missed_by_its_head_alone() {
    let fixture = Fixture::sqlite_with_records(3);
    let earlier = fixture.copy();
    fixture.append([4]);
    let head = fixture.verify().head;
    assert_eq!(earlier.problems(), [""; 0]);
    assert!(!earlier.store.audit.verify(Some(&head)).wait().unwrap().is_intact());
}

/// A trigger could swallow records, a view could stand in for the table.
#[test]
fn h50_nothing_in_the_database_swallows_records() {
    let fixture = Fixture::sqlite_with_records(1);
    fixture.sql(
        "CREATE TRIGGER swallow BEFORE INSERT ON audit BEGIN SELECT RAISE(IGNORE); END;
         CREATE TRIGGER change AFTER INSERT ON audit BEGIN UPDATE audit SET text = ''; END;",
    );
    fixture.append([2]);
    assert_eq!(fixture.verify().records, 2);
    assert_eq!(fixture.problems(), [""; 0]);

    let fixture = Fixture::sqlite_with_records(1);
    fixture.sql("ALTER TABLE audit RENAME TO other; CREATE VIEW audit AS SELECT * FROM other;");
    assert!(fixture.store.audit_log().flush(PATIENCE).is_err());
}

/// Bytes that are no text any more would be shown as nothing, or make a reader fail.
#[test]
fn h50_the_type_of_a_text_is_part_of_it() {
    let fixture = Fixture::sqlite_with_records(10);
    fixture.sql(
        "PRAGMA writable_schema = ON;
         UPDATE sqlite_schema SET sql = replace(sql, ') STRICT', ')')",
    );
    fixture.sql("UPDATE audit SET text = CAST(text AS BLOB) WHERE seq = 4");
    assert_eq!(fixture.problems(), ["record 4: changed or out of place"]);
}

/// A list of problems does not take its length from whoever broke the log.
#[test]
fn the_list_of_problems_is_bounded() {
    let fixture = Fixture::sqlite_with_records(3);
    fixture.sql(
        "WITH RECURSIVE number(n) AS (SELECT 10 UNION ALL SELECT n + 2 FROM number WHERE n < 6000)
         INSERT INTO audit SELECT n, '', zeroblob(32) FROM number",
    );
    let problems = fixture.problems();
    assert_eq!(problems.len(), 1001);
    assert!(problems[1000].ends_with("further problems"), "{}", problems[1000]);
}
