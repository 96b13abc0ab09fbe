//! A database that can only be read, is full or is a version ahead: the program says so, and loses
//! nothing that it has acknowledged.

use crate::support::{
    Home, OpenAi, Reply,
    database::{Database, PASSWORD},
};

/// Lets the server refuse each new row of a table as one whose disk is full does.
const FILL_UP: &str = "
    CREATE FUNCTION no_room() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        RAISE EXCEPTION 'no space left on device' USING ERRCODE = '53100'; END $$;
    CREATE TRIGGER no_room BEFORE INSERT ON sallyport.record EXECUTE FUNCTION no_room();
    CREATE TRIGGER no_room BEFORE INSERT ON sallyport.session EXECUTE FUNCTION no_room();
    CREATE TRIGGER no_room BEFORE INSERT ON sallyport.audit EXECUTE FUNCTION no_room()";

const MAKE_ROOM: &str = "DROP FUNCTION no_room CASCADE";

fn home_of(model: &OpenAi) -> Home {
    Home::new().plugins(&["clock"]).env("OPENAI_BASE_URL", model.base_url())
}

fn run(home: &Home, text: &str) -> crate::support::Ran {
    home.run(&["run", "-m", "scripted", "--continue", text]).hides(&[PASSWORD])
}

/// How many turns the only session has.
#[track_caller]
fn turns(home: &Home) -> u64 {
    let list = home.run(&["session", "list", "--output", "json"]).ended(0).json();
    let [session] = list.as_array().unwrap().as_slice() else { panic!("not one session: {list}") };
    session["turns"].as_u64().unwrap()
}

#[test]
#[ignore = "needs PostgreSQL: cargo xtask postgres"]
fn a_database_that_takes_no_changes_is_told_and_loses_nothing() {
    let read_only =
        |is_on: &str| format!("ALTER DATABASE {{}} SET default_transaction_read_only = {is_on}");
    let version = |number: u64| format!("UPDATE sallyport.store SET version = {number}");
    let rows = [
        (
            FILL_UP.to_owned(),
            MAKE_ROOM.to_owned(),
            "no room left to write",
            "free some space",
            true,
        ),
        (read_only("on"), read_only("off"), "can only be read", "name the primary server", true),
        (version(99), version(2), "has the form 99", "use the newer program", false),
    ];
    let database = Database::new();
    let model = OpenAi::start(vec![Reply::Text("Good day.")]);
    let home = home_of(&model).config(database.config());
    home.run(&["run", "-m", "scripted", "begin"]).ended(0);
    let apply = |sql: &str| match sql.contains("{}") {
        true => database.administer(sql),
        false => drop(database.sql(sql)),
    };
    for (at, (spoil, mend, message, hint, can_be_read)) in (1..).zip(&rows) {
        apply(spoil);
        let more = run(&home, "more").remarks(&[message, hint]);
        let call = home.run(&["call", "clock.get_time", "{}"]).hides(&[PASSWORD]);
        assert_ne!(call.code, 0, "what cannot be recorded is not done: {call:#?}");
        if *can_be_read {
            // As with SQLite: an answer without a call is one, with a warning.
            assert_eq!((more.code, call.code), (0, 10), "{more:#?} {call:#?}");
            assert_eq!(turns(&home), at, "{message}");
        }
        apply(mend);
        assert_eq!(turns(&home), at, "{message}");
        run(&home, "more").ended(0);
        home.run(&["audit", "verify"]).ended(0);
    }
}
