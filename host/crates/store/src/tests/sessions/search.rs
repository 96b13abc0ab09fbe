//! Finding words, whatever is written and whatever is asked.

use super::*;

/// The texts that are searched, each in a session of its own.
const TEXTS: [&str; 14] = [
    "Deploy the cat picture service",
    "the category list was deployed",
    "call std::env::var(\"HOME\") in foo_bar.rs",
    "un café près de l'Élysée",
    "cafe\u{301} in two characters",
    "我在北京大学学习中文",
    "東京タワーへ行きました",
    "ร้านกาแฟอยู่ที่ไหน",
    "हिन्दी में एक वाक्य",
    "Привет, как дела? Ёлка",
    "서울에서 만나요",
    "مرحبا بالعالم",
    "naïve AND NOT (fools OR NEAR) text:words ^start*",
    "在Python中使用列表",
];

/// The numbers of the texts that a query finds.
fn found(fixture: &Fixture, query: &str) -> Vec<usize> {
    let hits = fixture.sessions().search_records(USER, query, 20).wait().unwrap();
    let numbers = hits.into_iter().map(|hit| hit.session_id.parse().unwrap());
    numbers.collect::<std::collections::BTreeSet<_>>().into_iter().collect()
}

fn with_texts() -> Fixture {
    let fixture = Fixture::new();
    for (number, text) in TEXTS.iter().enumerate() {
        fixture.begin(&number.to_string(), &[text]);
    }
    fixture
}

#[test]
fn words_are_found_in_every_script() {
    let fixture = with_texts();
    let rows: [(&str, &[usize]); 34] = [
        ("cat", &[0, 1]),
        ("CATEGORY", &[1]),
        ("deploy cat", &[0, 1]),
        ("deploy list", &[1]),
        ("deploy nothing", &[]),
        ("egory", &[]),
        ("\"cat\"", &[0]),
        ("\"cat picture\"", &[0]),
        ("\"picture cat\"", &[]),
        ("service \"cat picture", &[0]),
        ("std::env", &[2]),
        ("foo_bar", &[2]),
        ("foo_b", &[2]),
        ("(\"HOME\")", &[2]),
        ("cafe", &[3, 4]),
        ("CAFÉ", &[3, 4]),
        ("elysee", &[3]),
        ("北京", &[5]),
        ("北", &[5]),
        ("大学", &[5]),
        ("京北", &[]),
        ("京大学学", &[5]),
        ("京", &[5, 6]),
        ("タワー", &[6]),
        ("กาแฟ", &[7]),
        ("ไหน", &[7]),
        ("हिन्दी", &[8]),
        ("हि", &[8]),
        ("ПРИВЕТ", &[9]),
        ("ёлка", &[9]),
        ("서울", &[10]),
        ("مرحبا", &[11]),
        ("python", &[13]),
        ("Python中", &[13]),
    ];
    for (query, want) in rows {
        assert_eq!(found(&fixture, query), want, "{query:?}");
    }
}

#[test]
fn no_sign_of_a_query_means_anything() {
    let fixture = with_texts();
    let rows: [(&str, &[usize]); 22] = [
        ("AND", &[12]),
        ("NOT fools", &[12]),
        ("OR", &[12]),
        ("NEAR", &[12]),
        ("NEAR(cat picture, 2)", &[]),
        ("cat OR nothing", &[]),
        ("text:words", &[12]),
        ("text : cat", &[]),
        ("^start", &[12]),
        ("^deploy", &[0, 1]),
        ("cat*", &[0, 1]),
        ("-cat", &[0, 1]),
        ("cat -> picture", &[0]),
        ("{text} cat", &[]),
        ("(((cat", &[0, 1]),
        ("cat\0picture", &[0]),
        ("cat\u{1f}\u{1d}picture\u{1e}", &[0]),
        ("cat'; DROP TABLE session; --", &[]),
        ("\"", &[]),
        ("\"\"\"\"", &[]),
        ("cat \"\" \" \" \"->\" picture", &[0]),
        ("Ⓐ cat 🎉", &[]),
    ];
    for (query, want) in rows {
        assert_eq!(found(&fixture, query), want, "{query:?}");
    }
    for query in ["", " ", "\n", "->", "()", "*", "\\", "🎉", "\u{301}", "\u{200b}", "%", "?1"] {
        assert_eq!(found(&fixture, query), [0; 0], "{query:?}");
    }
    for sign in ["a ", "\"", "\"a\" ", "(", "北", "北 ", "* ", "- ", "AND ", "^", ":", "NEAR("] {
        let long = sign.repeat(1024 / sign.len());
        fixture.sessions().search_records(USER, &long, 20).wait().unwrap();
    }
}

#[test]
fn a_hit_says_where_it_is() {
    let fixture = Fixture::new();
    fixture.begin("s-1", &["first", "before \u{1d}\u{1e}\u{1f}\0 Needle after", "last"]);
    let hits = fixture.sessions().search_records(USER, "needle", 9).wait().unwrap();
    let [SessionSearchMatch { session_id, title, seq, kind, at_ms, .. }] = &hits[..] else {
        panic!("{hits:?}")
    };
    let place = (session_id.as_str(), title.as_str(), *seq, kind.as_str(), *at_ms);
    assert_eq!(place, ("s-1", "A title", 1, "input", 2000));
    assert_eq!(shown(&hits[0]), "before      [Needle] after");
}

/// A snippet, with what was found between brackets.
fn shown(hit: &SessionSearchMatch) -> String {
    let piece = |piece: &crate::SnippetPiece| match piece.found {
        true => format!("[{}]", piece.text),
        false => piece.text.clone(),
    };
    hit.snippet.iter().map(piece).collect()
}

#[test]
fn a_snippet_shows_what_was_written_around_it() {
    let around = "word ".repeat(200);
    let rows = [
        ("北京", "我在北京大学", "我在[北京]大学"),
        ("cafe noir", "Un Café très Noir", "Un [Café] très [Noir]"),
        ("กาแฟ", "ร้านกาแฟอยู่", "ร้าน[กาแฟ]อยู่"),
        ("\"b c\"", "a b\nc d", "a [b\nc] d"),
        ("needle", &format!("{around}needle {around}"), ""),
    ];
    for (query, text, want) in rows {
        let fixture = Fixture::new();
        fixture.begin("s-1", &[text]);
        let shown = shown(&fixture.sessions().search_records(USER, query, 1).wait().unwrap()[0]);
        match want {
            "" => assert!(shown.len() < 200 && shown.contains(" [needle] "), "{shown}"),
            _ => assert_eq!(shown, want),
        }
    }
}

#[test]
fn the_best_and_then_the_newest_come_first() {
    let fixture = Fixture::new();
    for (id, text) in [("a", "needle a"), ("b", "needle needle b"), ("c", "needle c"), ("d", "no")]
    {
        fixture.begin(id, &[text]);
    }
    let ids = |hits_max| {
        let hits = fixture.sessions().search_records(USER, "needle", hits_max).wait().unwrap();
        hits.into_iter().map(|hit| hit.session_id).collect::<Vec<_>>()
    };
    assert_eq!(ids(9), ["b", "c", "a"]);
    assert_eq!(ids(2), ["b", "c"]);
    assert_eq!(ids(0), [""; 0]);
    assert_eq!(ids(usize::MAX), ["b", "c", "a"]);
    for (id, text) in [("e", "cat e f"), ("f", "category f"), ("g", "category f")] {
        fixture.begin(id, &[text]);
    }
    let hits = fixture.sessions().search_records(USER, "cat", 9).wait().unwrap();
    assert_eq!(hits[0].session_id, "e", "a whole word before the start of one");
}

#[test]
fn the_same_words_are_found_in_each_session_that_has_them() {
    let fixture = Fixture::new();
    fixture.begin("a", &["go on", "go on"]);
    fixture.begin("b", &["go on"]);
    let places = |hits_max| {
        let hits = fixture.sessions().search_records(USER, "go", hits_max).wait().unwrap();
        hits.into_iter().map(|hit| (hit.session_id, hit.seq)).collect::<Vec<_>>()
    };
    let want = [("b", 0), ("a", 1), ("a", 0)].map(|(id, seq)| (id.to_owned(), seq));
    assert_eq!(places(9), want);
    assert_eq!(places(2), want[..2]);
}

#[test]
fn a_fork_is_found_by_what_is_its_own() {
    let fixture = Fixture::new();
    fixture.begin("a", &["needle one", "needle two"]);
    fixture.sessions().fork(USER, "a", 2, "b", 0).wait().unwrap();
    fixture.sessions().fork(USER, "b", 1, "c", 0).wait().unwrap();
    fixture.go_on("c", &["needle three"]);
    let places = || {
        let hits = fixture.sessions().search_records(USER, "needle", 9).wait().unwrap();
        let mut places: Vec<_> = hits.into_iter().map(|hit| (hit.session_id, hit.seq)).collect();
        places.sort();
        places
    };
    let owned = |rows: &[(&str, u64)]| -> Vec<(String, u64)> {
        rows.iter().map(|(id, seq)| ((*id).to_owned(), *seq)).collect()
    };
    assert_eq!(places(), owned(&[("a", 0), ("a", 1), ("c", 1)]));
    fixture.sessions().remove(USER, "a").wait().unwrap();
    assert_eq!(places(), owned(&[("b", 0), ("b", 1), ("c", 1)]));
    fixture.sessions().remove(USER, "b").wait().unwrap();
    assert_eq!(places(), owned(&[("c", 0), ("c", 1)]));
}

#[test]
fn of_a_long_text_the_start_is_searched() {
    let fixture = Fixture::new();
    let long = format!("early {} late", "é".repeat(40_000));
    fixture.begin("a", &[&long]);
    assert_eq!(fixture.sessions().search_records(USER, "early", 9).wait().unwrap().len(), 1);
    assert_eq!(fixture.sessions().search_records(USER, "late", 9).wait().unwrap(), []);
    assert_eq!(fixture.bodies("a"), [long]);
}
