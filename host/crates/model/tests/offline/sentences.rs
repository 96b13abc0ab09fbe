//! Sentences of users, each with the call that they expect.

use sallyport_model::{AssistantMessage, Finish, Message};
use serde_json::{Value, json};

use crate::everyday::tools;
use crate::{generate, say};

/// Writes an answer as text: calls as `tool {arguments}`, a question as `? tool: what`, else
/// `help`.
fn told(message: &AssistantMessage) -> String {
    if message.text.starts_with("I am not a language model") {
        return "help".to_owned();
    }
    if let Some(question) = message.text.strip_prefix("To use ") {
        let (tool, wanted) = question.split_once(" I need: ").unwrap();
        let wanted = wanted.split([' ', ',', '.']).next().unwrap();
        return format!("? {tool}: {wanted}");
    }
    assert_eq!(message.text, "");
    let call = |call: &sallyport_model::CallRequest| {
        let arguments: Value = serde_json::from_str(&call.arguments).unwrap();
        format!("{} {arguments}", call.name)
    };
    message.calls.iter().map(call).collect::<Vec<_>>().join(" + ")
}

fn time(arguments: Value) -> String {
    format!("clock__get_time {arguments}")
}

fn weather(arguments: Value) -> String {
    format!("weather__get_weather {arguments}")
}

fn timer(arguments: Value) -> String {
    format!("timer__set_timer {arguments}")
}

fn file(tool: &str, path: &str) -> String {
    format!("files__{tool} {}", json!({ "path": path }))
}

fn write(path: &str, content: &str) -> String {
    format!("files__write {}", json!({ "path": path, "content": content }))
}

fn open(url: &str) -> String {
    format!("open-website__open {}", json!({ "url": url }))
}

fn play(query: &str, kind: &str) -> String {
    format!("spotify__spotify_play {}", json!({ "query": query, "type": kind }))
}

fn system() -> String {
    "system-info__get_system_info {}".to_owned()
}

fn cancel(arguments: Value) -> String {
    format!("timer__cancel_timer {arguments}")
}

#[track_caller]
fn check(rows: &[(&str, String)]) {
    let tools = tools();
    let wrong: Vec<String> = rows
        .iter()
        .map(|(sentence, want)| (sentence, want, told(&say(sentence, &tools))))
        .filter(|(_, want, got)| *want != got)
        .map(|(sentence, want, got)| format!("{sentence:?}\n   want {want}\n    got {got}"))
        .collect();
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), rows.len(), wrong.join("\n"));
}

#[test]
fn time_is_told_here_and_elsewhere() {
    check(&[
        ("what time is it", time(json!({}))),
        ("What time is it?", time(json!({}))),
        ("what's the time", time(json!({}))),
        ("What's the time right now?", time(json!({}))),
        ("tell me the time please", time(json!({}))),
        ("Check the clock", time(json!({}))),
        ("what's the time in new york", time(json!({ "timezone": "new york" }))),
        ("What time is it in Tokyo?", time(json!({ "timezone": "Tokyo" }))),
        ("what time is it in São Paulo right now?", time(json!({ "timezone": "São Paulo" }))),
        ("Tokyo time?", time(json!({ "timezone": "Tokyo" }))),
        ("current time for London, please", time(json!({ "timezone": "London" }))),
        ("WHAT TIME IS IT", time(json!({}))),
    ]);
}

#[test]
fn the_system_is_described() {
    check(&[
        ("what's the system information", system()),
        ("show me the system info", system()),
        ("which OS is this?", system()),
        ("how much memory does this computer have", system()),
        ("what cpu do I have?", system()),
    ]);
}

#[test]
fn websites_are_opened() {
    check(&[
        ("open https://example.com", open("https://example.com")),
        ("open example.com", open("https://example.com")),
        ("Please open https://example.com/a?b=c#d.", open("https://example.com/a?b=c#d")),
        ("go to the website news.ycombinator.com", open("https://news.ycombinator.com")),
        ("visit wikipedia.org", open("https://wikipedia.org")),
        ("open a website", "? open-website.open: url".to_owned()),
    ]);
}

#[test]
fn timers_are_set_and_cancelled() {
    check(&[
        ("set a pasta timer for 8 minutes", timer(json!({ "duration": 480, "label": "pasta" }))),
        ("set a timer for 10 minutes", timer(json!({ "duration": 600 }))),
        ("timer 90s", timer(json!({ "duration": 90 }))),
        ("Start a timer for an hour and a half", timer(json!({ "duration": 5400 }))),
        ("set a timer for 1 hour 30 minutes", timer(json!({ "duration": 5400 }))),
        (
            "set a timer for five minutes called eggs",
            timer(json!({ "duration": 300, "label": "eggs" })),
        ),
        (
            "remind me in twenty minutes to call mum",
            timer(json!({ "duration": 1200, "label": "call mum" })),
        ),
        ("wake me in half an hour", timer(json!({ "duration": 1800 }))),
        ("20 minute egg timer please", timer(json!({ "duration": 1200, "label": "egg" }))),
        (
            "remind me to take out the trash in 15 minutes",
            timer(json!({ "duration": 900, "label": "take out the trash" })),
        ),
        ("set a timer for 0 seconds", "? timer.set_timer: duration".to_owned()),
        ("set a timer", "? timer.set_timer: duration".to_owned()),
        ("cancel the timer", cancel(json!({}))),
        ("cancel the pasta timer", cancel(json!({ "label": "pasta" }))),
        ("stop my timer", cancel(json!({}))),
    ]);
}

#[test]
fn weather_is_told_for_places_and_days() {
    check(&[
        ("weather in Paris", weather(json!({ "location": "Paris" }))),
        ("What's the weather in New York?", weather(json!({ "location": "New York" }))),
        (
            "weather in New York tomorrow?",
            weather(json!({ "location": "New York", "forecast": true })),
        ),
        (
            "will it rain in São Paulo tomorrow?",
            weather(json!({ "location": "São Paulo", "forecast": true })),
        ),
        ("forecast for Berlin", weather(json!({ "location": "Berlin", "forecast": true }))),
        (
            "what's the forecast this week in Paris, France?",
            weather(json!({ "location": "Paris, France", "forecast": true })),
        ),
        ("how cold is it in Oslo right now", weather(json!({ "location": "Oslo" }))),
        ("paris weather", weather(json!({ "location": "paris" }))),
        ("Do I need an umbrella in Bergen?", weather(json!({ "location": "Bergen" }))),
        ("temperature in Rio de Janeiro please", weather(json!({ "location": "Rio de Janeiro" }))),
        ("what's the weather like?", "? weather.get_weather: location".to_owned()),
        ("weather tomorrow", "? weather.get_weather: location".to_owned()),
    ]);
}

#[test]
fn files_are_handled() {
    check(&[
        ("list the files in /notes", file("list", "/notes")),
        ("show me what's in /notes", file("list", "/notes")),
        ("what is inside the folder /notes/old?", file("list", "/notes/old")),
        ("read /notes/todo.txt", file("read", "/notes/todo.txt")),
        ("show me the contents of /notes/todo.txt", file("read", "/notes/todo.txt")),
        ("open /notes/todo.txt", file("read", "/notes/todo.txt")),
        ("delete /notes/old.txt", file("remove", "/notes/old.txt")),
        ("create a folder /notes/ideas", file("mkdir", "/notes/ideas")),
        ("make a new directory /notes/2027", file("mkdir", "/notes/2027")),
        (
            "create a file /notes/a.txt with the content hello world",
            write("/notes/a.txt", "hello world"),
        ),
        ("make a note in /notes/a.txt saying call Bob", write("/notes/a.txt", "call Bob")),
        ("append milk to /notes/todo.txt", write("/notes/todo.txt", "milk")),
        ("how big is /notes/todo.txt?", file("stat", "/notes/todo.txt")),
        ("write \"buy milk\" to /notes/todo.txt", write("/notes/todo.txt", "buy milk")),
        ("write buy milk to /notes/todo.txt", write("/notes/todo.txt", "buy milk")),
        ("write I love you 🎉 to /notes/a.txt", write("/notes/a.txt", "I love you 🎉")),
        ("save 'hello world' in /notes/hi.txt", write("/notes/hi.txt", "hello world")),
        (
            "put this in /notes/a.txt: bread, butter and jam",
            write("/notes/a.txt", "bread, butter and jam"),
        ),
        ("Write a file /notes/a.txt that says hello there", write("/notes/a.txt", "hello there")),
        ("read a file", "? files.read: path".to_owned()),
        ("write to /notes/todo.txt", "? files.write: content".to_owned()),
    ]);
}

#[test]
fn music_is_played() {
    check(&[
        ("play some Miles Davis", play("Miles Davis", "track")),
        ("play the album Kind of Blue", play("Kind of Blue", "album")),
        ("Play my playlist Road Trip please", play("Road Trip", "playlist")),
        ("play \"Bohemian Rhapsody\" on spotify", play("Bohemian Rhapsody", "track")),
        ("I want to listen to Simon and Garfunkel", play("Simon and Garfunkel", "track")),
        ("play", "? spotify.spotify_play: query".to_owned()),
    ]);
}

#[test]
fn two_things_are_two_calls() {
    let both = |first: String, second: String| format!("{first} + {second}");
    check(&[
        (
            "what time is it in Tokyo and what's the weather in Paris?",
            both(time(json!({ "timezone": "Tokyo" })), weather(json!({ "location": "Paris" }))),
        ),
        (
            "write \"a and b\" to /notes/x.txt; then list /notes",
            both(write("/notes/x.txt", "a and b"), file("list", "/notes")),
        ),
        (
            "What's the weather in Paris? And set a timer for 3 minutes.",
            both(weather(json!({ "location": "Paris" })), timer(json!({ "duration": 180 }))),
        ),
        (
            "open example.com and then set a timer for 5 minutes",
            both(open("https://example.com"), timer(json!({ "duration": 300 }))),
        ),
    ]);
}

#[test]
fn what_no_tool_is_for_is_not_called() {
    let rows: Vec<(&str, String)> = [
        "hello",
        "Hi there!",
        "",
        "   ",
        "asdf",
        "👍",
        "🎉🎉🎉",
        "?!?!",
        "tell me a joke",
        "who was the first president of France",
        "¿Qué hora es?",
        "Wie geht es dir?",
        "東京の天気はどうですか",
        "сколько сейчас стоит билет",
        "thank you",
        "what can you do?",
        "and then",
    ]
    .map(|sentence| (sentence, "help".to_owned()))
    .to_vec();
    check(&rows);
}

#[test]
fn a_question_can_be_answered() {
    let user = |text: &str| Message::user(text);
    let rows = [
        ("what's the weather like?", "Paris", weather(json!({ "location": "Paris" }))),
        ("set a timer", "8 minutes", timer(json!({ "duration": 480 }))),
        ("read a file", "/notes/a.txt", file("read", "/notes/a.txt")),
        ("what's the weather like?", "what time is it?", time(json!({}))),
    ];
    for (sentence, answer, want) in rows {
        let question = say(sentence, &tools());
        let messages = [user(sentence), Message::Assistant(question), user(answer)];
        assert_eq!(told(&generate(&messages, &tools()).message), want);
    }
    let other = AssistantMessage { text: "Something else.".to_owned(), ..Default::default() };
    let messages = [user("set a timer"), Message::Assistant(other), user("8 minutes")];
    assert_eq!(told(&generate(&messages, &tools()).message), "help");
}

#[test]
fn ids_go_on_and_finish_says_what_to_do() {
    let user = Message::user("what time is it");
    let first = generate(std::slice::from_ref(&user), &tools());
    assert_eq!(
        (first.message.calls[0].id.as_str(), &first.finish),
        ("offline_1", &Finish::ToolCalls)
    );
    let second = generate(&[user.clone(), Message::Assistant(first.message), user], &tools());
    assert_eq!(second.message.calls[0].id, "offline_2");
    assert_eq!(generate(&[], &tools()).finish, Finish::Stop);
}

#[test]
fn help_names_some_tools_and_the_way_to_a_model() {
    let help = say("hello", &tools()).text;
    assert!(help.contains("\"get time\": Tells the current time"), "{help}");
    assert!(help.contains("for 13 tools") && help.contains("OPENAI_API_KEY"), "{help}");
    assert!(say("hello", &[]).text.contains("no tools"));
}
