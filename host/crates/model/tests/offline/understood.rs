//! Sentences that ask for a tool, each with the resulting call.

use sallyport_model::{
    AssistantMessage, ChatMessage, ChatModel, FinishReason, OfflineMatcher, TokenCost, TokenUsage,
};

use crate::{check, everyday::tools, generate, say, told};

#[test]
fn questions_are_looked_up() {
    check(&[
        ("what time is it", "clock.get_time"),
        ("What's the time right now?", "clock.get_time"),
        ("tell me the time please", "clock.get_time"),
        ("Check the clock", "clock.get_time"),
        ("WHAT TIME IS IT", "clock.get_time"),
        ("could you tell me what time it is in Rome?", "clock.get_time timezone=Rome"),
        ("do you know the time in Lima?", "clock.get_time timezone=Lima"),
        ("what's the time in new york", "clock.get_time timezone=new york"),
        ("what time is it in São Paulo right now?", "clock.get_time timezone=São Paulo"),
        ("current time for London, please", "clock.get_time timezone=London"),
        ("how late is it in Moscow", "clock.get_time timezone=Moscow"),
        ("what is the date today?", "clock.get_time"),
        ("what's the system information", "system-info.get_system_info"),
        ("show me the system info", "system-info.get_system_info"),
        ("which OS is this?", "system-info.get_system_info"),
        ("how much memory does this computer have", "system-info.get_system_info"),
        ("weather in Paris", "weather.get_weather location=Paris"),
        ("What's the weather in New York?", "weather.get_weather location=New York"),
        ("will it rain tomorrow in Hamburg?", "weather.get_weather forecast=true location=Hamburg"),
        (
            "what's the forecast this week in Paris, France?",
            "weather.get_weather forecast=true location=Paris, France",
        ),
        ("Do I need an umbrella in Bergen?", "weather.get_weather location=Bergen"),
        ("temperature in Rio de Janeiro please", "weather.get_weather location=Rio de Janeiro"),
        ("what's the weather like?", "? weather.get_weather: location"),
        ("which timers are running?", "timer.list_timers"),
        ("list my timers", "timer.list_timers"),
        ("do I have any reminders?", "reminder.list"),
        ("list my reminders", "reminder.list"),
        ("list running processes", "ps.ps"),
        ("show the top 5 processes", "ps.ps limit=5"),
        ("show my todo list", "task.task action=list"),
        ("how warm is it in Rome today", "weather.get_weather location=Rome"),
        ("forecast for Rome this weekend", "weather.get_weather forecast=true location=Rome"),
    ]);
}

#[test]
fn requests_are_done_with_all_their_words() {
    check(&[
        ("set a pasta timer for 8 minutes", "timer.set_timer duration_seconds=480 label=pasta"),
        ("set a timer for 10 minutes", "timer.set_timer duration_seconds=600"),
        ("please set a new timer for 10 minutes", "timer.set_timer duration_seconds=600"),
        ("can you set a timer for 10 minutes?", "timer.set_timer duration_seconds=600"),
        ("timer 90s", "timer.set_timer duration_seconds=90"),
        ("Start a timer for an hour and a half", "timer.set_timer duration_seconds=5400"),
        ("set a timer for 1 hour 30 minutes", "timer.set_timer duration_seconds=5400"),
        ("wake me in half an hour", "timer.set_timer duration_seconds=1800"),
        ("20 minute egg timer please", "timer.set_timer duration_seconds=1200 label=egg"),
        (
            "set a timer for five minutes called eggs",
            "timer.set_timer duration_seconds=300 label=eggs",
        ),
        ("settimer for 2 mintues", "timer.set_timer duration_seconds=120"),
        ("set a timer for 0 seconds", "? timer.set_timer: duration"),
        ("set a timer", "? timer.set_timer: duration"),
        ("cancel the timer", "timer.cancel_timer"),
        ("cancel the pasta timer", "timer.cancel_timer label=pasta"),
        ("stop my timer", "timer.cancel_timer"),
        ("delete the reminder about bread", "reminder.cancel reminder=bread"),
        ("remind me tomorrow at 9 to call mum", "reminder.create text=call mum when=tomorrow at 9"),
        ("remind me to call mum tomorrow at 9", "reminder.create text=call mum when=tomorrow at 9"),
        (
            "remind me in 20 minutes to drink some water",
            "reminder.create text=drink some water when=in 20 minutes",
        ),
        (
            "please remind me about the bins every Monday at 7",
            "reminder.create text=the bins when=every monday at 7",
        ),
        (
            "set a reminder for tomorrow at 8:30: buy milk",
            "reminder.create text=buy milk when=tomorrow at 8:30",
        ),
        (
            "remind me tomorrow to buy bread at 6pm",
            "reminder.create text=buy bread when=tomorrow at 6pm",
        ),
        ("remind me to call mum", "? reminder.create: when"),
        (
            "remind me to delete the reminder tomorrow",
            "reminder.create text=delete the reminder when=tomorrow",
        ),
        ("cancel the reminder to call mum", "reminder.cancel reminder=call mum"),
        ("open https://example.com", "open-website.open_website url=https://example.com"),
        ("Please open example.com", "open-website.open_website url=https://example.com"),
        ("visit wikipedia.org", "open-website.open_website url=https://wikipedia.org"),
        ("open a website", "? open-website.open_website: url"),
        ("run the python code \"6 * 7\"", "python.execute code=6 * 7"),
        ("run python: print(sum(range(10)))", "python.execute code=print(sum(range(10)))"),
        ("what is 2+2", "python.execute code=2+2"),
        ("what is 7 times 8?", "python.execute code=7 * 8"),
        ("add a task: write the report", "task.task action=add description=write the report"),
    ]);
}

#[test]
fn a_date_that_does_not_exist_is_not_read_without_its_year() {
    let tools = tools();
    for (sentence, day) in [
        ("remind me on 29 February 2027 to leap", "on 29 february 2027"),
        ("remind me to leap on 29 February 2027", "on 29 february 2027"),
        ("remind me on February 29th, 2027 at 9 to leap", "on february 29th 2027 at 9"),
        ("remind me on 31 April 2027 to leap", "on 31 april 2027"),
        ("remind me on 31 April at 9 to leap", "on 31 april at 9"),
        ("remind me on 2027-02-29 to leap", "on 2027-02-29"),
        ("remind me on 24 December 20266 to leap", "on 24 december 20266"),
        ("remind me tomorrow to leap on 29 February 2027", "on 29 february 2027"),
    ] {
        let message = say(sentence, &tools);
        let want = format!("there is no day like \"{day}\"; name a day that the calendar has.");
        assert!(
            message.calls.is_empty() && message.text.contains(&want),
            "{sentence}: {message:?}"
        );
    }
    let write = "files.write mode=append path=/notes/todo.txt text=31 April 2027";
    check(&[
        ("remind me on 24 December 1926 to leap", "? reminder.create: when"),
        ("remind me tomorrow at 9 30 to leap", "? reminder.create: when"),
        (
            "remind me on 29 February 2028 to leap",
            "reminder.create text=leap when=on 29 february 2028",
        ),
        ("append 31 April 2027 to /notes/todo.txt", write),
    ]);
}

#[test]
fn files_are_handled() {
    check(&[
        ("list the files in /notes", "files.list path=/notes"),
        ("show me the files in /notes", "files.list path=/notes"),
        ("get the size of /notes/todo.txt", "files.stat path=/notes/todo.txt"),
        ("read /notes/todo.txt", "files.read path=/notes/todo.txt"),
        ("show me the contents of /notes/todo.txt", "files.read path=/notes/todo.txt"),
        ("open /notes/todo.txt", "files.read path=/notes/todo.txt"),
        ("open /notes/todo.txt and show it", "files.read path=/notes/todo.txt"),
        ("how big is /notes/todo.txt?", "files.stat path=/notes/todo.txt"),
        ("delete /notes/old.txt", "files.remove path=/notes/old.txt"),
        ("delete the folder /notes/pics", "files.remove path=/notes/pics"),
        ("create a folder /notes/ideas", "files.mkdir path=/notes/ideas"),
        ("make a new directory /notes/2027", "files.mkdir path=/notes/2027"),
        (
            "create a file /notes/a.txt with the content hello world",
            "files.write mode=create path=/notes/a.txt text=hello world",
        ),
        (
            "append milk to /notes/todo.txt",
            "files.write mode=append path=/notes/todo.txt text=milk",
        ),
        ("write \"buy milk\" to /notes/todo.txt", "files.write path=/notes/todo.txt text=buy milk"),
        ("write buy milk to /notes/todo.txt", "files.write path=/notes/todo.txt text=buy milk"),
        ("write I love you 🎉 to /notes/a.txt", "files.write path=/notes/a.txt text=I love you 🎉"),
        (
            "put this in /notes/a.txt: bread, butter and jam",
            "files.write path=/notes/a.txt text=bread, butter and jam",
        ),
        ("write to /notes/todo.txt", "? files.write: text"),
        ("make a file /notes/a.txt", "? files.write: text"),
        (
            "append rice to /sandbox/list.csv",
            "sandbox-fs.write append=true content=rice path=/sandbox/list.csv",
        ),
    ]);
}

#[test]
fn two_things_are_two_calls() {
    check(&[
        (
            "what time is it in Tokyo and what's the weather in Paris?",
            "clock.get_time timezone=Tokyo + weather.get_weather location=Paris",
        ),
        (
            "write \"a and b\" to /notes/x.txt; then list /notes",
            "files.write path=/notes/x.txt text=a and b + files.list path=/notes",
        ),
        (
            "open example.com and then set a timer for 5 minutes",
            "open-website.open_website url=https://example.com + timer.set_timer duration_seconds=300",
        ),
    ]);
}

#[test]
fn a_question_can_be_answered() {
    let user = |text: &str| ChatMessage::user(text);
    let rows = [
        ("what's the weather like?", "Paris", "weather.get_weather location=Paris"),
        ("set a timer", "8 minutes", "timer.set_timer duration_seconds=480"),
        ("set a timer", "8 minutos", ""),
        ("set a timer", "cancel", ""),
        ("set a timer", "no, 8 minutes is too long", ""),
        ("what's the weather like?", "what time is it?", "clock.get_time"),
    ];
    for (sentence, answer, want) in rows {
        let question = say(sentence, &tools());
        let messages = [user(sentence), ChatMessage::Assistant(question), user(answer)];
        assert_eq!(told(&generate(&messages, &tools()).message), want, "{sentence} {answer}");
    }
    let other = AssistantMessage { text: "Something else.".to_owned(), ..Default::default() };
    let messages = [user("set a timer"), ChatMessage::Assistant(other), user("8 minutes")];
    assert_eq!(told(&generate(&messages, &tools()).message), "");
}

#[test]
fn ids_go_on_and_finish_says_what_to_do() {
    let user = ChatMessage::user("what time is it");
    let first = generate(std::slice::from_ref(&user), &tools());
    assert_eq!(
        (first.message.calls[0].id.as_str(), &first.finish),
        ("offline_1", &FinishReason::ToolCalls)
    );
    let second = generate(&[user.clone(), ChatMessage::Assistant(first.message), user], &tools());
    assert_eq!(second.message.calls[0].id, "offline_2");
    assert_eq!(generate(&[], &tools()).finish, FinishReason::Stop);
}

/// Every example must work, because a broken one is worse than none.
#[test]
fn help_gives_three_examples_that_work_and_the_way_to_a_model() {
    for said in
        ["hello", "timer reminder something", "files please sing", "stelle den Timer bitte ab"]
    {
        let help = say(said, &tools()).text;
        assert!(help.contains("English") && help.contains("OPENAI_API_KEY"), "{help}");
        let examples: Vec<&str> = help.lines().filter_map(|line| line.strip_prefix("- ")).collect();
        assert_eq!(examples.len(), 3, "{help}");
        for example in examples {
            assert_eq!(say(example, &tools()).calls.len(), 1, "{example}");
        }
    }
    let near = say("timer reminder something", &tools()).text;
    assert!(near.contains("- list reminder"), "{near}");
    assert!(say("hello", &[]).text.contains("No tools"));
    for said in ["stelle den Timer bitte ab", "東京の天気はどうですか", "сколько сейчас времени"]
    {
        let help = say(said, &tools()).text;
        assert!(help.starts_with("I only understand English"), "{help}");
    }
    assert!(!say("please do something about the weather", &tools()).text.starts_with("I only"));
}

/// A limit of cost refuses a model whose price is not known.
#[test]
fn the_matcher_is_not_refused_by_a_limit_of_cost() {
    let usage = TokenUsage { input_tokens: 1_000, output_tokens: 1_000, ..TokenUsage::default() };
    let cost = OfflineMatcher::default().price().map(|price| price.of(&usage));
    assert_eq!(cost, Some(TokenCost::default()));
}
