//! Cards about a grant that a running call lacks: what they show, and what each answer gives.

use std::fs;

use serde_json::{Value, json};

use super::{INTERRUPT, PROMPT, chat, told};
use crate::support::{
    Home, OpenAi, Reply, living::REQUESTS, person::CARD_KEYS, transcript, warden::requests,
};

/// What a card about a grant says, and no other.
const CARD: &str = "narrowest first";

fn steps(step: &str) -> Value {
    json!({ "steps": [step] })
}

/// A model that has the guest keep something, look for it, and then says that all is done.
fn keeping() -> Vec<Reply> {
    vec![
        Reply::call("a", "living__acts", &steps("set a 1")),
        Reply::call("b", "living__acts", &steps("get a")),
        Reply::Text("All done."),
    ]
}

/// A home with the guest that uses every capability, under this policy.
fn home(model: &OpenAi, policy: &str) -> Home {
    Home::new()
        .guest("living", REQUESTS)
        .env("OPENAI_BASE_URL", model.base_url())
        .env("OPENAI_API_KEY", "k")
        .policy(policy)
}

/// The results of both calls, as the model reads them.
fn results(model: &OpenAi) -> [String; 2] {
    ["a", "b"].map(|id| transcript::result(&model.bodies(), id).to_string())
}

fn policy(home: &Home) -> String {
    fs::read_to_string(home.path("policy.toml")).unwrap()
}

#[test]
fn a_call_that_lacks_a_grant_waits_for_it_on_a_card() {
    let model = OpenAi::start(keeping());
    let home = home(&model, "# mine\n[plugin.living]\nenv = [\"LIVING\"] # why\n");
    let mut person = chat(&home).asked();
    let card = told(&person);
    for line in [
        "missing grant: living may not keep something",
        "  tool      living.acts",
        "  why       tests",
        "  grants    state = true",
        "            grant 1 of 2, the narrowest first",
        "  with      steps: [\"set a 1\"]",
        "  because   its policy does not grant \"state\"",
        "  always    writes into your policy:",
        "      [plugin.living]",
        "      env = [\"LIVING\"] # why",
        "    + state = true",
    ] {
        assert!(card.lines().any(|shown| shown == line), "{line}: {card}");
    }
    person.types("y");
    person.sees_count(CARD_KEYS, 2);
    person.types("n");
    person.sees("All done.");
    person.sees_last(PROMPT);
    let [kept, found] = results(&model);
    assert!(kept.contains("[\"1\"]"), "{kept}");
    assert!(found.contains("Error::NotGranted"), "{found}");
    assert_eq!(policy(&home), "# mine\n[plugin.living]\nenv = [\"LIVING\"] # why\n");
}

#[test]
fn each_answer_grants_for_as_long_as_it_says() {
    let rows = [
        ("s", "[s] granted for this session: living.acts", "session", false),
        ("a", "[a] granted always: living.acts", "always", true),
    ];
    for (key, words, answer, is_written) in rows {
        let model = OpenAi::start(keeping());
        let home = home(&model, "# mine\n");
        let mut person = chat(&home).asked();
        person.types(key);
        person.sees("All done.");
        person.sees_last(PROMPT);
        let screen = person.screen();
        assert!(screen.contains(words) && screen.matches(CARD).count() == 1, "{key}: {screen}");
        let [kept, found] = results(&model);
        assert!(kept.contains("[\"1\"]") && found.contains("1 v1"), "{key}: {kept} {found}");
        let text = policy(&home);
        assert!(text.starts_with("# mine\n"), "{text}");
        assert_eq!(text.contains("[plugin.living]\nstate = true"), is_written, "{key}: {text}");
        let audit = home.run(&["audit", "show", "--output", "json"]).ended(0).stdout;
        let data = format!(
            "{{\"answer\":\"{answer}\",\"did\":\"grant-answered\",\"grants\":[{{\"entry\":\"true\",\"key\":\"state\"}}]"
        );
        assert!(audit.contains(&data), "{key}: {audit}");
        assert_eq!(audit.contains("grants state = true"), is_written, "{key}: {audit}");
    }
}

#[test]
fn a_no_refuses_the_call_and_may_have_a_reason() {
    for (keys, reason) in [("n", "the user said no"), ("r", "the user said no: not on a sunday")] {
        let model = OpenAi::start(vec![
            Reply::call("a", "living__acts", &json!({ "steps": ["set a 1", "set a 2"] })),
            Reply::Text("All done."),
        ]);
        let home = home(&model, "");
        let mut person = chat(&home).asked();
        person.types(keys);
        if keys == "r" {
            person.sees_last("why not>");
            person.types("not on a sunday\r");
        }
        person.sees("All done.");
        person.sees_last(PROMPT);
        // The second attempt of the same call is not asked about again.
        assert_eq!(person.screen().matches(CARD).count(), 1, "{}", person.screen());
        let audit = home.run(&["audit", "show", "--output", "json"]).ended(0).stdout;
        assert!(audit.contains(reason) && audit.contains("refused"), "{audit}");
        assert!(!policy(&home).contains("state"));
    }
}

#[test]
fn wider_grants_are_shown_one_at_a_time() {
    let model = OpenAi::start(keeping());
    let home = home(&model, "");
    let mut person = chat(&home).asked();
    person.sees("grant 1 of 2");
    person.types("w");
    person.sees("grant 2 of 2");
    person.sees_last_with(CARD_KEYS);
    person.types("a");
    // The plugin can do more now, so its next call is asked about.
    person.sees("asks to run");
    person.sees_last_with(CARD_KEYS);
    person.types("n");
    person.sees("All done.");
    person.sees_last(PROMPT);
    assert!(!policy(&home).contains("127.0.0.1"), "no private address: {}", policy(&home));
    for key in ["state = true", "schedule = true", "notify = true", "env = [\"LIVING\"]"] {
        assert!(policy(&home).contains(key), "{key}: {}", policy(&home));
    }
}

#[test]
fn a_card_about_a_grant_can_be_cancelled() {
    let model = OpenAi::start(keeping());
    let home = home(&model, "");
    let mut person = chat(&home).asked();
    person.types(INTERRUPT);
    person.sees("cancelled");
    person.sees_last(PROMPT);
    assert_eq!(model.bodies().len(), 1);
    assert_eq!(policy(&home), "");
}

#[test]
fn two_calls_that_miss_the_same_grant_ask_once() {
    let act = |id: &'static str| (id, "living__acts", steps("set a 1").to_string());
    for (key, result) in [("s", "[\""), ("n", "Error::NotGranted")] {
        let script = vec![Reply::Calls(vec![act("a"), act("b")]), Reply::Text("All done.")];
        let model = OpenAi::start(script);
        let home = home(&model, "");
        let mut person = chat(&home).asked();
        person.types(key);
        person.sees("All done.");
        person.sees_last(PROMPT);
        assert_eq!(person.screen().matches(CARD).count(), 1, "{}", person.screen());
        for told in results(&model) {
            assert!(told.contains(result), "{key}: {told}");
        }
    }
}

#[test]
fn a_grant_of_a_session_is_not_seen_by_the_next() {
    let model = OpenAi::start([keeping(), keeping()].into_iter().flatten().collect());
    let home = home(&model, "");
    let mut person = chat(&home).asked();
    person.types("s");
    person.sees("All done.");
    person.sees_last(PROMPT);
    person.types("/quit\r");
    person.ends();
    let mut person = chat(&home).asked();
    person.sees(CARD);
    person.types("n");
    person.sees_count(CARD_KEYS, 2);
    person.types("n");
    person.sees("All done.");
}

/// Runs a turn that asks nothing. Returns what the model read of the first call.
#[track_caller]
fn refused_unasked(model: &OpenAi, home: &Home) -> String {
    let mut person = chat(home);
    person.types("go\r");
    person.sees("All done.");
    person.sees_last(PROMPT);
    assert!(!person.screen().contains(CARD), "{}", person.screen());
    transcript::result(&model.bodies(), "a").to_string()
}

#[test]
fn what_a_grant_cannot_lift_is_refused_as_before() {
    let takes = "[plugin.living]\nstate = false\n";
    for (policy, project) in [(takes, ""), ("", takes)] {
        let model = OpenAi::start(keeping());
        let home = home(&model, policy).user_file(".sallyport/policy.toml", project);
        let told = refused_unasked(&model, &home);
        assert!(told.contains("Error::NotGranted"), "{policy} {project}: {told}");
    }
    for (pattern, policy, reason) in [
        ("GET http://other.example/**", "", "its manifest does not request it"),
        (
            "GET http://hostile.example/**",
            "[plugin.hostile]\nnet = [{ deny = \"GET http://hostile.example/**\" }]\n",
            "denied by policy.toml:2",
        ),
        (
            "GET http://hostile.example/**",
            "[[rule]]\ntool = \"hostile.*\"\nnet = \"GET http://hostile.example/**\"\n\
             decision = \"deny\"\n",
            "its policy grants no network access",
        ),
    ] {
        let model = OpenAi::start(fetching());
        let home = fetching_home(&model, pattern).policy(policy);
        let told = refused_unasked(&model, &home);
        assert!(told.contains(reason), "{policy}: {told}");
    }
}

#[test]
fn a_policy_that_cannot_be_written_refuses_the_call_and_loses_nothing() {
    let model = OpenAi::start(keeping());
    let home = home(&model, "# mine\n");
    let mut person = chat(&home).asked();
    // A folder in the place of the new file makes it impossible to write, also for root.
    let folder = home.path("policy.toml");
    let kept = fs::read_to_string(&folder).unwrap();
    fs::remove_file(&folder).unwrap();
    fs::create_dir(&folder).unwrap();
    person.types("a");
    person.sees_count(CARD_KEYS, 2);
    person.types("n");
    person.sees("All done.");
    person.sees_last(PROMPT);
    fs::remove_dir(&folder).unwrap();
    fs::write(&folder, kept).unwrap();
    let audit = home.run(&["audit", "show"]).ended(0).stdout;
    assert!(audit.contains("your policy was not changed"), "{audit}");
}

/// A script in which the model has the guest send a request.
fn fetching() -> Vec<Reply> {
    let request = json!({ "authority": "hostile.example", "path": "/a?b=c" });
    vec![Reply::call("a", "hostile__fetches", &request), Reply::Text("All done.")]
}

/// A home with the guest that wants to send requests.
fn fetching_home(model: &OpenAi, pattern: &str) -> Home {
    Home::new()
        .guest("hostile", &requests(&[pattern]))
        .env("OPENAI_BASE_URL", model.base_url())
        .env("OPENAI_API_KEY", "k")
}

#[test]
fn a_request_is_offered_alone_first_and_sent_after_a_yes() {
    let model = OpenAi::start(fetching());
    let home = fetching_home(&model, "GET http://hostile.example/**");
    let mut person = chat(&home).asked();
    person.sees("hostile may not GET http://hostile.example/a");
    person.sees("net = \"GET http://hostile.example/a\"");
    person.sees("grant 1 of 2");
    person.types("y");
    person.sees("All done.");
    person.sees_last(PROMPT);
    // The name has no address, so the request that was allowed ends there.
    let audit = home.run(&["audit", "show"]).ended(0).stdout;
    assert!(audit.contains("GET http://hostile.example/a → no answer"), "{audit}");
    assert!(audit.contains("yes, once, net = \"GET http://hostile.example/a\""), "{audit}");
}

#[test]
fn where_nobody_can_answer_the_refusal_names_the_command() {
    let model = OpenAi::start(fetching());
    let home = fetching_home(&model, "GET http://hostile.example/**");
    let ran = home.run(&["run", "--model", "m", "go"]);
    assert!(ran.stderr.contains("sallyport policy grant hostile --requested"), "{}", ran.stderr);
    let told = transcript::result(&model.bodies(), "a").to_string();
    assert!(told.contains("its policy grants no network access"), "{told}");
}

#[test]
fn a_plugin_without_a_folder_waits_until_the_user_names_one() {
    let write = json!({ "path": "/notes/a.txt", "text": "hi" });
    let script = vec![Reply::call("a", "files__write", &write), Reply::Text("All done.")];
    let model = OpenAi::start(script);
    let home = Home::new()
        .plugins(&["files"])
        .env("OPENAI_BASE_URL", model.base_url())
        .env("OPENAI_API_KEY", "k");
    let folder = home.user_path("my notes");
    fs::create_dir_all(&folder).unwrap();
    let mut person = chat(&home).asked();
    person.sees("FOLDER is the folder that you name");
    assert!(!person.screen().contains("[y] once"), "{}", person.screen());
    person.types("w");
    person.sees("read-write");
    person.sees_last_with(CARD_KEYS);
    person.types("f");
    person.sees_last("folder>");
    person.types(&format!("{}\r", folder.display()));
    person.sees("[y] once");
    person.sees("my notes");
    person.types("a");
    person.sees("All done.");
    person.sees_last(PROMPT);
    assert_eq!(fs::read_to_string(folder.join("a.txt")).unwrap(), "hi");
    assert!(policy(&home).contains("my notes\", mount = \"/notes\", access = \"read-write\""));
}

#[test]
fn a_folder_that_holds_the_policy_is_not_granted_by_a_card() {
    let read = json!({ "path": "/notes/policy.toml" });
    let script = vec![Reply::call("a", "files__read", &read), Reply::Text("All done.")];
    let model = OpenAi::start(script);
    let home = Home::new()
        .plugins(&["files"])
        .env("OPENAI_BASE_URL", model.base_url())
        .env("OPENAI_API_KEY", "k")
        .policy("# mine\n");
    let mut person = chat(&home).asked();
    person.types("f");
    person.sees_last("folder>");
    let folder = home.path("policy.toml").parent().unwrap().to_owned();
    person.types(&format!("{}\r", folder.display()));
    person.sees("[y] once");
    person.types("y");
    person.sees("All done.");
    let told = transcript::result(&model.bodies(), "a").to_string();
    assert!(told.contains("what you chose cannot be granted"), "{told}");
}

#[test]
fn a_plugin_that_asks_without_end_is_not_asked_about_after_three_times_no() {
    let request = |path: &str| json!({ "authority": "hostile.example", "path": path });
    let requests = ["/a", "/b", "/c", "/d", "/e"].map(request);
    let script = vec![
        Reply::call("a", "hostile__fetches_in_turn", &json!({ "requests": requests })),
        Reply::Text("All done."),
    ];
    let model = OpenAi::start(script);
    let home = fetching_home(&model, "GET http://hostile.example/**");
    let mut person = chat(&home).asked();
    for path in ["/b", "/c"] {
        person.types("n");
        person.sees(&format!("may not GET http://hostile.example{path}"));
        person.sees_last_with(CARD_KEYS);
    }
    person.types("n");
    person.sees("All done.");
    person.sees_last(PROMPT);
    assert!(
        !person.screen().contains("missing grant: hostile may not GET http://hostile.example/d")
    );
}
