//! Reading a file: types of values, places, unknown and missing keys.

use std::time::Duration;

use serde_json::json;

use super::check_error;
use crate::document::{DOCUMENT_BYTES_MAX, TomlDocument, TomlItem, TomlSection};
use crate::source::SourceError;

fn read<T>(
    text: &str,
    read: impl FnOnce(&mut TomlSection<'_>) -> Result<T, SourceError>,
) -> Result<T, SourceError> {
    TomlDocument::read_with("a.toml", text, read)
}

fn read_all(root: &mut TomlSection<'_>) -> Result<String, SourceError> {
    let name = root.read_required("name", TomlItem::read_string)?;
    root.read_optional("count", |item| item.read_count(1..=9))?;
    root.read_optional("on", TomlItem::read_bool)?;
    root.read_optional("time", TomlItem::read_time_span)?;
    root.read_optional("size", TomlItem::read_byte_size)?;
    root.read_optional("any", TomlItem::read_json)?;
    root.read_optional("word", |item| item.read_choice(&[("left", 1), ("right", 2)]))?;
    root.read_list("list", |item| {
        item.read_section(|entry| entry.read_required("x", TomlItem::read_nonblank_string))
    })?;
    root.read_named_items("table", |name, value| Ok((name.read_string()?, value.read_integer()?)))?;
    Ok(name)
}

#[test]
fn every_kind_of_value_can_be_read() {
    let text = "name = 'n'\ncount = 9\non = true\ntime = '10s'\nsize = 7\nany = [1]\n\
                word = 'left'\n[[list]]\nx = 'y'\n[table]\nb = 1\na = 2";
    assert_eq!(read(text, read_all).unwrap(), "n");
    let time =
        read("time = '2m'", |root| root.read_required("time", TomlItem::read_time_span)).unwrap();
    assert_eq!(time.0, Duration::from_secs(120));
    for (size, bytes) in [("'64KiB'", 65_536), ("12", 12), ("0x10", 16), ("1_000", 1000)] {
        let text = format!("size = {size}");
        let read =
            read(&text, |root| root.read_required("size", TomlItem::read_byte_size)).unwrap();
        assert_eq!(read.0, bytes);
    }
}

#[test]
fn names_come_in_the_order_of_the_file() {
    let text = "[table.zeta]\n[table.alpha]\n[other]\n[table.mid]";
    let names = read(text, |root| {
        root.read_optional("other", |item| item.read_section(|_| Ok(())))?;
        root.read_named_items("table", |name, value| {
            value.read_section(|_| Ok(()))?;
            Ok((name.place().line, name.read_string()?))
        })
    });
    let want = [(1, "zeta".to_owned()), (2, "alpha".to_owned()), (4, "mid".to_owned())];
    assert_eq!(names.unwrap(), want);
}

#[test]
fn any_value_becomes_json() {
    let text = "v = { a = [1, -2.5, true, 'é'], d = 2026-01-02, n = { x = 0 } }";
    let value = read(text, |root| root.read_required("v", TomlItem::read_json)).unwrap();
    assert_eq!(value, json!({"a": [1, -2.5, true, "é"], "d": "2026-01-02", "n": {"x": 0}}));
}

#[test]
fn mistakes_are_told_with_their_place() {
    let known = "the keys known here are name, count, on, time, size, any, word, list, table";
    let rows = [
        ("name = 'n'\n  nmae = 1", "2:3: unknown key \"nmae\"", "did you mean \"name\"?"),
        ("name = 'n'\n[process]", "2:2: unknown key \"process\"", known),
        ("name = 'n'\n[[list]]\nx = 'y'\nz = 1", "4:1: unknown key \"z\"", "did you mean \"x\"?"),
        ("nmae = 'n'", "1:1: unknown key \"nmae\"", "did you mean \"name\"?"),
        ("", "1:1: key \"name\" is missing", ""),
        ("name = 1", "1:8: \"name\" must be a string, not an integer", ""),
        ("name = ['x']", "1:8: \"name\" must be a string, not an array", ""),
        ("name = 'n'\ncount = 10", "2:9: \"count\" must be from 1 to 9", ""),
        ("name = 'n'\ncount = -1", "2:9: \"count\" must be from 1 to 9", ""),
        ("name = 'n'\ncount = 99999999999999999999", "2:9: \"count\" is too large a number", ""),
        ("name = 'n'\non = 'yes'", "2:6: \"on\" must be true or false, not a string", ""),
        ("name = 'n'\nsize = -5", "2:8: \"size\" must not be negative", ""),
        ("name = 'n'\nsize = 1.5", "2:8: \"size\" must be a string, not a float", ""),
        ("name = 'n'\nany = nan", "2:7: \"any\" must be a finite number, not a float", ""),
        ("name = 'n'\nword = 'lefd'", "2:8: \"word\" cannot be \"lefd\"", "did you mean \"left\"?"),
        ("name = 'n'\nword = 'up'", "2:8: \"word\" cannot be \"up\"", "write one of left, right"),
        ("name = 'n'\nlist = 'x'", "2:8: \"list\" must be a list, not a string", ""),
        ("name = 'n'\nlist = ['x']", "2:9: an entry of \"list\" must be a table, not a string", ""),
        ("name = 'n'\n[[list]]\nx = ' '", "3:5: \"x\" is empty", ""),
        ("name = 'n'\n[[list]]", "2:1: key \"x\" is missing", ""),
        ("name = 'n'\ntable = 1", "2:9: \"table\" must be a table, not an integer", ""),
        ("name = 'n'\n\nname = 'm'", "3:1: duplicate key", ""),
        ("name = 'n'\n[table]\n[table]", "3:2: duplicate key", ""),
        ("'é' = x", "1:7: string values must be quoted, expected literal string", ""),
        ("name = ", "1:8: string values must be quoted, expected literal string", ""),
    ];
    for (text, want, hint) in rows {
        check_error(read(text, read_all), &format!("a.toml:{want}"), hint);
    }
    let time = "2:8: \"10\" is not a length of time";
    let hint = "write a whole number and a unit: 1500ms, 10s, 2m, 1h";
    check_error(read("name = 'n'\ntime = '10'", read_all), &format!("a.toml:{time}"), hint);
}

#[test]
fn hostile_text_is_escaped_and_bounded() {
    let error = read("name = 'n'\n\"a\\u001b[2J\" = 1", read_all).unwrap_err();
    assert_eq!(error.message, "unknown key \"a\\u{1b}[2J\"");
    let long = format!("name = 'n'\n{} = 1", "k".repeat(100_000));
    let error = read(&long, read_all).unwrap_err();
    assert!(error.message.len() < 200 && error.message.ends_with("…\""), "{}", error.message);
    let huge = format!("name = 'n' #{}", " ".repeat(DOCUMENT_BYTES_MAX));
    check_error(read(&huge, read_all), "a.toml:1:1: the file is longer than 1MiB", "");
}

/// Deep nesting must be an error and not an overflow, even on the small stack of a worker thread.
#[test]
fn deep_nesting_is_an_error() {
    let dots = vec!["a"; 79].join(".");
    let inline = format!("{}1{}", format!("{{{dots} = ").repeat(70), "}".repeat(70));
    let rows = [
        format!("x = {}", "[".repeat(100_000)),
        format!("x = {}", "{a=".repeat(100_000)),
        format!("x{} = 1", ".a".repeat(100_000)),
        format!("[x{}]", ".a".repeat(100_000)),
        format!("x = {inline}"),
        format!("[{dots}]\n{dots} = {inline}"),
    ];
    for text in rows {
        let read =
            move || read(&text, |root| root.read_required("x", TomlItem::read_json)).unwrap_err();
        let worker = std::thread::Builder::new().stack_size(1 << 20).spawn(read).unwrap();
        assert_eq!(worker.join().unwrap().message, "the file nests too deeply");
    }
}
