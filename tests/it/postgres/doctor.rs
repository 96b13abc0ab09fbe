//! `sallyport doctor` reports the database: whether it can be used, its version, and what to do.

use crate::support::{
    Home,
    database::{Database, PASSWORD},
};

#[test]
fn an_address_that_leads_nowhere_is_reported_with_what_to_do() {
    // Nothing listens on port 1.
    let nowhere = format!("postgres://ann:{PASSWORD}@127.0.0.1:1/sp");
    let rows = [
        (format!("url = \"{nowhere}\""), "postgres://ann@127.0.0.1:1/sp cannot be reached"),
        (format!("url = \"mysql://ann:{PASSWORD}@h/sp\""), "not the address of a PostgreSQL"),
        ("url_file = \"~/missing\"".to_owned(), "cannot be used"),
    ];
    for (keys, finding) in rows {
        let home = Home::new().config(format!("[store]\n{keys}\n"));
        for args in [&["doctor"][..], &["doctor", "-v"], &["doctor", "--output", "json"]] {
            let ran = home.run(args).ended(1).hides(&[PASSWORD]);
            ran.answers(&["store", "failed", finding, "[store]"]);
        }
        assert!(!home.path("state/postgres").exists(), "the check creates nothing");
    }
}

#[test]
#[ignore = "needs PostgreSQL: cargo xtask postgres"]
fn a_database_is_reported_with_its_version_and_its_tables() {
    let database = Database::new();
    let home = Home::new().config(database.config());
    let schemas = "SELECT count(*) FROM pg_namespace WHERE nspname = 'sallyport'";
    let shown = format!("{}: PostgreSQL ", database.shown());
    let fresh = home.run(&["doctor"]).ended(0).hides(&[PASSWORD]);
    fresh.answers(&["store", &shown, "no tables yet; the first use creates them"]);
    assert_eq!(database.sql(schemas), "0", "the check creates nothing");
    home.run(&["session", "list"]).ended(0);
    assert_eq!(database.sql(schemas), "1");
    for args in [&["doctor"][..], &["doctor", "-v"], &["doctor", "--output", "json"]] {
        let ran = home.run(args).ended(0).hides(&[PASSWORD]);
        ran.answers(&["store", &shown, "tables of version 2, 0 sessions"]);
    }
    let rows = [
        ("UPDATE sallyport.store SET version = 1", "ok", "the next use migrates them to version 2"),
        (
            "UPDATE sallyport.store SET version = 99",
            "failed",
            "has the form 99, this program knows forms up to 2",
        ),
        ("ALTER DATABASE {} SET default_transaction_read_only = on", "failed", "can only be read"),
        ("ALTER DATABASE {} ALLOW_CONNECTIONS false", "failed", "refused"),
    ];
    for (sql, status, finding) in rows {
        match sql.contains("{}") {
            true => database.administer(sql),
            false => drop(database.sql(sql)),
        }
        let ran = home.run(&["doctor"]).hides(&[PASSWORD]);
        assert_eq!(ran.code, i32::from(status == "failed"), "{ran:#?}");
        let line = ran.stdout.lines().find(|line| line.starts_with("store")).unwrap();
        assert!(line.contains(status) && line.contains(finding), "{sql}: {line}");
    }
}
