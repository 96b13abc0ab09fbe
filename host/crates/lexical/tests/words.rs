//! Tests of splitting names and descriptions into words.

use sallyport_lexical::split_into_words;

#[test]
fn words_end_where_style_and_script_say_so() {
    let long = "x".repeat(41);
    let rows = [
        ("get_time", "get time"),
        ("getTime", "get time"),
        ("HTTPServer", "http server"),
        ("parseJSON5File", "parse json 5 file"),
        ("base64", "base 64"),
        ("Files, boxes and cities!", "file box and city"),
        ("status class this analysis gas", "status class this analysis gas"),
        ("dishes branches sizes kisses", "dish branch siz kiss"),
        ("Größe ÄRA naïve", "größe ära naïve"),
        ("東京 weather", "東 京 weather"),
        ("a\u{0}b\u{202e}c", "a b c"),
        (&long, ""),
        ("", ""),
        ("-- __ !", ""),
    ];
    for (text, expected) in rows {
        assert_eq!(split_into_words(text).collect::<Vec<_>>().join(" "), expected, "{text}");
    }
}
