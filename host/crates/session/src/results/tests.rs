//! Queries about kept results, and the bounds of what is kept in memory.

use sallyport_contract::json::parse_json;

use super::*;

/// A result of a tool that listed some cities.
const CITIES: &str =
    r#"{"cities":[{"name":"Oslo","size":7},{"name":"Bergen","size":3}],"note":"a\nb\nc"}"#;

const LINES: &str = "one\ntwo\nthree\ntwo again\n";

fn query(arguments: &str) -> Result<ResultQuery, String> {
    let Value::Object(given) = parse_json(arguments, 4096).unwrap() else { panic!("{arguments}") };
    ResultQuery::from_arguments(given).map_err(|failure| failure.message)
}

fn answer(text: &str, arguments: &str) -> Result<Value, String> {
    query(arguments)?.answer(text, 4096, &|| true).map_err(|failure| failure.message)
}

/// Compares the text of an answer, or the texts of the places that it found.
fn check(text: &str, rows: &[(&str, &str)]) {
    for (arguments, wanted) in rows {
        let arguments = format!(r#"{{"result":1{arguments}}}"#);
        let answer =
            answer(text, &arguments).unwrap_or_else(|error| panic!("{arguments}: {error}"));
        let places = answer["matches"].as_array().map(|places| {
            let place =
                |place: &Value| format!("{} {}", place["line"], place["text"].as_str().unwrap());
            places.iter().map(place).collect::<Vec<_>>().join("|")
        });
        let shown = places.unwrap_or_else(|| answer["text"].as_str().unwrap().to_owned());
        let more = answer.get("next_byte").map(|next| format!(" ->{next}")).unwrap_or_default();
        assert_eq!(shown + &more, *wanted, "{arguments}");
    }
}

/// Compares why a query is refused.
fn check_refused(text: &str, rows: &[(&str, &str)]) {
    for (arguments, wanted) in rows {
        let error = answer(text, arguments).expect_err(arguments);
        assert!(error.contains(wanted), "{arguments}: {error}");
    }
}

#[test]
fn lines_and_bytes_are_read_from_both_ends() {
    check(
        LINES,
        &[
            ("", LINES),
            (r#","line":2,"lines":1"#, "two\n ->8"),
            (r#","line":-1"#, "two again\n"),
            (r#","line":-2,"lines":1"#, "three\n ->14"),
            (r#","line":99"#, ""),
            (r#","line":-99,"lines":1"#, "one\n ->4"),
            (r#","line":0,"lines":2"#, "one\ntwo\n ->8"),
            (r#","byte":4,"bytes":3"#, "two ->7"),
            (r#","byte":-6"#, "again\n"),
            (r#","byte":-999,"bytes":2"#, "on ->2"),
            (r#","byte":999"#, ""),
            (r#","byte":-9223372036854775808,"bytes":18446744073709551615"#, LINES),
            (r#","line":-9223372036854775808,"lines":18446744073709551615"#, LINES),
            (r#","line":null,"path":"","search":null"#, LINES),
        ],
    );
    check("ééé", &[(r#","byte":1,"bytes":3"#, "éé ->4"), (r#","byte":-1"#, "é")]);
    check("", &[("", ""), (r#","line":-1"#, ""), (r#","search":"x""#, "")]);
}

#[test]
fn texts_and_expressions_are_found() {
    check(
        LINES,
        &[
            (r#","search":"two""#, "2 two|4 two again"),
            (r#","search":"two","lines":1"#, "2 two ->14"),
            (r#","search":"two","byte":14"#, "4 two again"),
            (r#","search":"two","line":3"#, "4 two again"),
            (r#","search":".""#, ""),
            (r#","regex":"^t.+e$""#, "3 three"),
            (r#","regex":"(?i)ONE|AGAIN""#, "1 one|4 two again"),
            (r#","regex":"^$""#, ""),
            (r#","regex":"x*","lines":2"#, "1 one|2 two ->8"),
        ],
    );
    let line = format!("{}needle{}needle", "x".repeat(1000), "y".repeat(1000));
    let found = answer(&line, r#"{"result":1,"search":"needle"}"#).unwrap();
    assert_eq!(found["matches"].as_array().unwrap().len(), 2, "{found}");
    assert_eq!(
        (&found["matches"][0]["byte"], &found["matches"][1]["byte"]),
        (&1000.into(), &2006.into())
    );
    assert!(found["matches"][0]["text"].as_str().unwrap().len() < 500, "{found}");
}

#[test]
fn a_path_selects_what_the_rest_is_about() {
    check(
        CITIES,
        &[
            (r#","path":"$.cities[1].name""#, "Bergen"),
            (r#","path":"$.cities[-1].size""#, "3"),
            (r#","path":"$.note","line":2,"lines":1"#, "b\n ->4"),
            (r#","path":"$..name","search":"Oslo""#, "2  \"Oslo\","),
            (r#","path":"$.cities[?@.size > 5].name""#, "Oslo"),
            (r#","path":"$.cities[?length(@.name) > 4].name""#, "Bergen"),
        ],
    );
    check_refused(
        CITIES,
        &[
            (r#"{"result":1,"path":"$.nothing"}"#, "nothing is at this path"),
            (r#"{"result":1,"path":"cities"}"#, "`path` is not valid"),
            (r#"{"result":1,"path":"$[?search(@.a, 'b')]"}"#, "neither `,` nor a second `$`"),
            (r#"{"result":1,"path":"$..*..*"}"#, "may contain `..` once"),
            (r#"{"result":1,"path":"$[*,*][*,*]"}"#, "neither `,` nor a second `$`"),
            (r#"{"result":1,"path":"$[?$..a]"}"#, "neither `,` nor a second `$`"),
            (r#"{"result":1,"path":"$[?(((((@.a)))))]"}"#, "nests more than 4"),
            (r#"{"result":1,"path":"$[?@!=@||@!=@||@!=@||@!=@||@!=@]"}"#, "contain `@` 8 times"),
            (r#"{"result":1,"path":"$['a,b$']['c..d..e']"}"#, "nothing is at this path"),
        ],
    );
    let long = format!(r#"{{"result":1,"path":"$.{}"}}"#, "a".repeat(600));
    check_refused(CITIES, &[(&long, "longer than 512 bytes")]);
    check_refused(LINES, &[(r#"{"result":1,"path":"$.a"}"#, "needs a JSON result")]);
}

/// `$..*` selects each of the brackets, and each contains all that are within it.
#[test]
fn a_path_never_returns_more_than_a_kept_result() {
    let text = format!("{}\"{}\"{}", "[".repeat(100), "x".repeat(1 << 20), "]".repeat(100));
    check_refused(&text, &[(r#"{"result":1,"path":"$..*"}"#, "too much is at this path")]);
    let whole = answer(&text, r#"{"result":1,"path":"$"}"#).unwrap();
    assert!(whole["bytes"].as_u64().unwrap() < 2 << 20, "{}", whole["bytes"]);
    // An indented text of this would have a hundred spaces for each number.
    let numbers = format!("{}0{}{}", "[".repeat(100), ",0".repeat(1 << 18), "]".repeat(100));
    let whole = answer(&numbers, r#"{"result":1,"path":"$"}"#).unwrap();
    assert_eq!((&whole["bytes"], &whole["lines"]), (&numbers.len().into(), &1.into()));
    let kept = ResultText::from_value(parse_json(&numbers, KEPT_BYTES_MAX).unwrap());
    assert_eq!(kept.kept_text(), numbers);
}

#[test]
fn a_query_that_makes_no_sense_is_refused_with_a_reason() {
    let long = format!(r#"{{"result":1,"search":"{}"}}"#, "a".repeat(1025));
    check_refused(
        LINES,
        &[
            ("{}", "`result` has to be there"),
            (r#"{"result":0}"#, "`result` has to be a number from 1"),
            (r#"{"result":-1}"#, "`result` has to be a number from 1"),
            (r#"{"result":"1"}"#, "`result` has to be a number from 1"),
            (r#"{"result":1,"lines":0}"#, "`lines` has to be a number from 1"),
            (r#"{"result":1,"line":1.5}"#, "`line` has to be a whole number"),
            (r#"{"result":1,"search":1}"#, "`search` has to be a text"),
            (r#"{"result":1,"search":"a","regex":"b"}"#, "not both"),
            (r#"{"result":1,"line":1,"byte":1}"#, "not both"),
            (r#"{"result":1,"lines":1,"bytes":1}"#, "not both"),
            (r#"{"result":1,"search":"a","bytes":1}"#, "not `bytes`"),
            (r#"{"result":1,"regex":"("}"#, "`regex` is not valid"),
            (r#"{"result":1,"regex":"(\\w{99}){99}"}"#, "`regex` is not valid"),
            (r#"{"result":1,"session":"other"}"#, "there is no argument `session`"),
            (&long, "at most 1024 bytes"),
        ],
    );
}

#[test]
fn an_answer_is_never_longer_than_a_result_may_be() {
    for text in ["\"\\".repeat(9000), "\u{1}".repeat(9000), "é\n".repeat(9000), "x".repeat(9000)] {
        for arguments in
            [r#"{"result":1}"#, r#"{"result":1,"byte":-9000}"#, r#"{"result":1,"regex":"(?s)."}"#]
        {
            let answer = answer(&text, arguments).unwrap();
            let bytes = answer.to_string().len();
            assert!(bytes <= 4096, "{bytes}");
            assert!(answer["next_byte"].is_u64(), "{arguments}");
        }
        let long = ResultText::from_value(text.into());
        let kept = long.to_kept_result(1);
        assert!(long.to_excerpt(Some(&kept), 4096).to_string().len() < 4096);
    }
}

/// The model is told to continue at `next_byte`, so that has to be behind what it has read.
#[test]
fn a_search_always_gets_on_however_long_its_places_are_as_json() {
    let text = "\u{1}".repeat(9000);
    let (mut byte, mut rounds) = (300, 0);
    loop {
        let arguments = format!(r#"{{"result":1,"regex":"\\x01{{300}}","byte":{byte}}}"#);
        let answer = answer(&text, &arguments).unwrap();
        assert!(answer.to_string().len() <= 4096, "{byte}");
        let Some(next_byte) = answer["next_byte"].as_u64() else { break };
        assert!(!answer["matches"].as_array().unwrap().is_empty(), "{byte}");
        assert!(next_byte > byte, "{byte}");
        (byte, rounds) = (next_byte, rounds + 1);
    }
    assert!(rounds > 5, "{rounds}");
}

#[test]
fn a_search_that_nobody_waits_for_ends_after_its_place() {
    let answered = |may_continue| {
        let asked = query(r#"{"result":1,"search":"t"}"#).unwrap();
        let answer = asked.answer(LINES, 4096, &|| may_continue).unwrap();
        (answer["matches"].as_array().unwrap().len(), answer["next_byte"].as_u64())
    };
    assert_eq!(answered(true), (3, None));
    assert_eq!(answered(false), (1, Some(8)));
}

#[test]
fn memory_keeps_the_newest_results_and_says_which_are_gone() {
    let mut results = MemoryResults::default();
    let text = |letter: &str| letter.repeat(12 << 20);
    let numbers = ["a", "b", "c"].map(|letter| results.keep_text(text(letter)));
    assert_eq!(numbers, [1, 2, 3]);
    assert_eq!(results.find_text(1), ResultLookup::Displaced);
    assert_eq!(results.find_text(3), ResultLookup::Found(text("c")));
    for number in [0, 4, u64::MAX] {
        assert_eq!(results.find_text(number), ResultLookup::Unknown, "{number}");
    }
    assert_eq!(results.keep_text("d".repeat(40 << 20)), 4);
    assert_eq!(results.find_text(3), ResultLookup::Displaced);
    assert_eq!(results.keep_text("e".to_owned()), 5);
}

#[test]
fn only_the_beginning_of_a_huge_result_is_kept() {
    let long = ResultText::from_value("é".repeat(KEPT_BYTES_MAX).into());
    let kept = long.to_kept_result(7);
    assert_eq!((kept.bytes, kept.kept_bytes), (2 * KEPT_BYTES_MAX as u64, KEPT_BYTES_MAX as u64));
    let excerpt = long.to_excerpt(Some(&kept), 4096);
    let note = excerpt["cut"].as_str().unwrap();
    assert!(note.contains("its first 16777216 bytes are kept as result 7"), "{note}");
}
