//! The ranking of search results.

use super::*;

fn house() -> Toolset {
    searched(&[
        tool("mail.send_email", "Sends an email to some people."),
        tool("mail.list_inbox", "Lists the newest messages of a mailbox."),
        tool("calendar.createEvent", "Creates an event; others can be invited by mail."),
        tool("files.read_file", "Reads a file."),
        tool("files.search", "Finds files by their contents."),
        tool("weather.forecast", "Tells the weather of the next days at a place."),
        with_parameters(
            "lights.set",
            "Switches on or off.",
            json!({ "room": { "description": "Kitchen, bedroom and so on." },
                    "colour": { "type": "object", "properties": { "hue": { "type": "number" } } } }),
        ),
        tool("jp.tenki", "東京の天気を調べる"),
    ])
}

#[track_caller]
fn check(query: &str, first: &str) {
    let found = found(&house(), query);
    assert_eq!(found.first().map(String::as_str), Some(first), "{query}: {found:?}");
}

#[test]
fn the_best_match_comes_first() {
    check("send email", "mail__send_email");
    check("I want to write an e-mail to Bob", "mail__send_email");
    check("new messages", "mail__list_inbox");
    check("create events", "calendar__createEvent");
    check("CREATE_EVENT", "calendar__createEvent");
    check("what will the weather be", "weather__forecast");
    check("kitchen", "lights__set");
    check("hue", "lights__set");
    check("天気", "jp__tenki");
    check("find file by content", "files__search");
}

#[test]
fn the_name_of_a_tool_finds_it() {
    for query in ["files__read_file", "files.read_file", " files.read_file\n"] {
        check(query, "files__read_file");
    }
}

#[test]
fn what_is_found_can_be_called() {
    let found = house().search_tools("forecast", 1);
    let expected = json!({
        "tools": [{
            "name": "weather__forecast",
            "description": "Tells the weather of the next days at a place.",
            "parameters": { "type": "object", "properties": { "text": { "type": "string" } } },
        }],
        "matches": 1,
        "hint": "call one of them with use_tool",
    });
    assert_eq!(found, expected);
}

#[test]
fn nothing_found_is_said() {
    for query in ["zymurgy", "", "?!", &"\u{0}".repeat(99)] {
        let found = house().search_tools(query, 5);
        assert_eq!(found["tools"], json!([]));
        let hint = "no tool has these words, try others; \
                    plugins: calendar, files, jp, lights, mail, weather";
        assert_eq!(found["hint"], hint);
    }
}

#[test]
fn of_equals_the_first_of_the_list_comes_first() {
    let tools: Vec<ToolDescriptor> =
        (10..30).rev().map(|n| tool(&format!("p.n{n}"), "Same.")).collect();
    let toolset = searched(&tools);
    assert_eq!(found(&toolset, "same"), ["p__n29", "p__n28", "p__n27", "p__n26", "p__n25"]);
    assert_eq!(toolset.search_tools("same", 20), toolset.search_tools("same", 20));
    assert_eq!(toolset.search_tools("same", 0)["tools"].as_array().unwrap().len(), 1);
    assert_eq!(toolset.search_tools("same", usize::MAX)["tools"].as_array().unwrap().len(), 20);
}

#[test]
fn a_long_description_does_not_capture_every_search() {
    let honest = [
        ("mail.send", "Sends a mail."),
        ("weather.now", "Tells the weather at a place."),
        ("music.play", "Plays a song or an album."),
        ("files.read", "Reads a file of the notes folder."),
    ];
    let words = "mail weather song file play read send place album note tell ";
    for times in [1, 3, 100, 10_000] {
        let stuffed = format!("Does all. {}", words.repeat(times));
        let greedy =
            with_parameters("a.greedy", &stuffed, json!({ "mail": { "description": stuffed } }));
        let mut tools: Vec<ToolDescriptor> = vec![greedy];
        tools.extend(honest.iter().map(|(id, description)| tool(id, description)));
        let toolset = searched(&tools);
        for (query, first) in [
            ("send a mail", "mail__send"),
            ("weather", "weather__now"),
            ("play song", "music__play"),
            ("read file", "files__read"),
        ] {
            assert_eq!(found(&toolset, query)[0], first, "{query} {times}");
        }
    }
}

#[test]
fn what_a_search_gives_is_bounded() {
    let wide = |bytes: usize| json!({ "text": { "enum": ["x".repeat(bytes)] } });
    let tools: Vec<ToolDescriptor> = (0..40)
        .map(|n| with_parameters(&format!("p.n{n}"), &"long ".repeat(9_999), wide(4_000)))
        .chain([with_parameters("p.huge", "Huge.", wide(1_000_000))])
        .collect();
    let toolset = searched(&tools);
    let found = toolset.search_tools("long", 20);
    assert_eq!(found["tools"].as_array().unwrap().len(), 2);
    assert_eq!(found["matches"], 40);
    assert!(found.to_string().len() < 17 * 1024);
    let huge = &toolset.search_tools("huge", 1)["tools"][0];
    assert_eq!(huge["parameters"], json!({ "type": "object" }));
    assert_eq!(huge["cut"], "the parameters are too long to be shown");
}

#[test]
fn a_schema_without_end_is_not_followed() {
    let mut schema = json!({ "description": "deepest" });
    for level in (0..100).rev() {
        schema = json!({ "properties": { format!("level_{level}"): schema } });
    }
    let many: serde_json::Map<String, Value> =
        (0..5_000).map(|n| (format!("p{n:04}"), json!({ "description": "many" }))).collect();
    let toolset = searched(&[
        with_parameters("a.deep", "", schema["properties"].clone()),
        with_parameters("a.many", "", Value::Object(many)),
    ]);
    assert!(found(&toolset, "deepest").is_empty());
    assert_eq!(found(&toolset, "many level")[..], ["a__many", "a__deep"]);
}

#[test]
fn ten_thousand_tools_are_searched_like_ten() {
    let mut tools: Vec<ToolDescriptor> = (0..10_000)
        .map(|n| {
            let description = format!("Handles things of kind k{n} for people and places.");
            tool(&format!("plugin{}.tool_{n}", n / 100), &description)
        })
        .collect();
    tools.push(tool("weather.forecast", "Tells the weather."));
    let toolset = searched(&tools);
    assert_eq!(found(&toolset, "weather for people in many places")[0], "weather__forecast");
    assert_eq!(found(&toolset, "tool 7777")[0], "plugin77__tool_7777");
    let described = &toolset.definitions()[0].description;
    assert!(described.contains("10001 tools") && described.ends_with("and others."), "{described}");
}
