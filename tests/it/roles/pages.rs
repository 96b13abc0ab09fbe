//! The plugins that the pages of `docs/roles` show whole, each in its role, under the policy that
//! its page shows.

use std::{fs, sync::Arc};

use sallyport_contract::services::{TimerFiring, TimerStore};
use serde_json::json;

use super::admitted;
use crate::support::{
    Guarded, Home, OpenAi, Reply, Running, Scripted, client,
    home::{page_component, page_file, repository},
    offers::Offers,
    patience::wait,
    registry::data,
};

/// What a page says.
fn page(name: &str) -> String {
    fs::read_to_string(repository().join("docs/roles").join(name)).unwrap()
}

/// A file of a plugin that a page shows.
#[track_caller]
fn file(page_name: &str, plugin: &str, file: &str) -> String {
    let text = page_file(plugin, file);
    assert!(page(page_name).contains(&text), "{page_name} has changed: run `cargo xtask guests`");
    text
}

/// The policy for a plugin, as its page shows it; empty where it needs none.
fn policy(page_name: &str, plugin: &str) -> String {
    let page = page(page_name);
    let begin = format!("```toml\n[plugin.{plugin}]");
    let shown = page.split_once(&begin).map(|(_, rest)| rest.split("```").next().unwrap());
    shown.map_or_else(String::new, |rest| format!("[plugin.{plugin}]{rest}"))
}

/// A home with a plugin of a page beside the clock.
#[track_caller]
fn home(page: &str, plugin: &str) -> Home {
    file(page, plugin, "src/lib.rs");
    let manifest = file(page, plugin, "plugin.toml");
    let home = Home::new().plugins(&["clock"]).policy(policy(page, plugin));
    home.component(plugin, &manifest, &page_component(plugin))
}

#[test]
fn water_is_counted_and_its_timer_stands() {
    let home = home("living.md", "water");
    for glass in 1..=2 {
        let (told, code) = home.call("water.drink", &json!({}));
        assert_eq!((&told["result"], code), (&json!(glass), 0), "{told}");
    }
    let listed = home.run(&["timer", "list", "--output", "json"]).ended(0).json();
    assert_eq!(listed.as_array().unwrap().len(), 1, "the first is cancelled: {listed:#}");
    assert_eq!(listed[0]["label"], "water");
}

#[test]
fn water_speaks_up_unless_it_is_late() {
    let manifest = file("living.md", "water", "plugin.toml");
    let offers = Arc::new(Offers::default());
    let warden = Scripted::of_manifest(&manifest, &policy("living.md", "water"));
    let water = Guarded::of(warden.offering(offers.services()), page_component("water")).unwrap();
    let report = water.call("drink", &json!({}));
    assert_eq!(*data(&report), 1, "{report:?}");
    let owner = sallyport_contract::DataOwner {
        plugin: water.warden.manifest().name.clone(),
        user: "tester".to_owned(),
    };
    let timer = wait(TimerStore::list_timers(&*offers, &owner)).unwrap().remove(0);
    for (late, said) in [(true, 0), (false, 1)] {
        let firing =
            TimerFiring { timer: timer.clone(), due_ms: 7, late, missed: 0, will_repeat: false };
        let report = water.wait(water.plugin.fire_timer(admitted(&water, "timer"), firing)).report;
        assert_eq!(report.outcome.as_str(), "completed", "{report:?}");
        assert_eq!(offers.notices.lock().unwrap().len(), said);
    }
    assert!(offers.notices.lock().unwrap()[0].text.contains("glass number 1"));
}

#[test]
fn the_parrot_answers_like_a_model() {
    let home = home("provider.md", "parrot");
    let ask = |words: &str| home.run(&["run", "--provider", "plugin:parrot", words]).ended(0);
    assert_eq!(ask("Good morning").stdout, "Good morning\n");
    ask("What time is it?").answers(&["weekday"]);
    let table = "default_model = 'bird'\n[model.bird]\nprovider = 'plugin:parrot'\n";
    let ran = home.config(table).run(&["run", "Good evening"]).ended(0);
    assert_eq!(ran.stdout, "Good evening\n");
}

#[test]
fn the_teacher_describes_a_persona() {
    let model = OpenAi::start(vec![Reply::Text("What is two and two?")]);
    let home = home("guide.md", "teacher")
        .env("OPENAI_BASE_URL", model.base_url())
        .env("OPENAI_API_KEY", "k")
        .config("[settings.teacher]\nsubject = 'Latin'\n");
    home.run(&["run", "--model", "m", "--guide", "teacher", "hello"]).ended(0);
    let asked = model.bodies()[0].to_string();
    for words in ["You teach Latin.", "The pupil learns best from examples.", "\"temperature\":0.3"]
    {
        assert!(asked.contains(words), "no {words:?} in {asked}");
    }
}

#[test]
fn the_doorbell_rings() {
    let home = home("listener.md", "doorbell");
    // The port of the page may be taken on this machine.
    let home = home.policy(policy("listener.md", "doorbell").replace(":8090/", ":0/"));
    let listen = ["listen", "--model", "offline", "--listener", "doorbell"];
    let program = Running::start(&home, &listen);
    let at = program.behind("doorbell listens at ");
    let bearer = format!("Bearer {}", program.behind("Bearer "));
    let authority = at.split_once("://").unwrap().1.split('/').next().unwrap().to_owned();
    for (path, body, status) in [("/bell/ring", "Kim", 202), ("/bell/knock", "", 404)] {
        let headers = [("Authorization", bearer.as_str()), ("Content-Type", "text/plain")];
        let answer = client::ask(&authority, "POST", path, &headers, body);
        assert_eq!(answer.status, status, "{answer:?}");
    }
    program.remarks("> door bell, by doorbell: Kim is at the door.");
    assert_eq!(program.interrupted().0, 0);
}

#[test]
fn the_bell_shows_a_session() {
    let home = home("ui.md", "bell");
    let chat = ["chat", "--model", "offline", "--ui", "bell"];
    let ran = home.run_with_input(&chat, "what time is it in Tokyo?\n").ended(0);
    ran.answers(&["in Tokyo"]);
}

#[test]
fn the_dice_are_rolled_behind_their_walls() {
    let mut home = Home::new().policy(policy("script.md", "dice"));
    for name in ["definition.json", "run.py"] {
        let text = file("script.md", "dice", name);
        home = home.file(&format!("plugins/dice/{name}"), text);
    }
    let built = repository().join("target/pages/dice/run.py");
    let permissions = fs::metadata(built).unwrap().permissions();
    fs::set_permissions(home.path("plugins/dice/run.py"), permissions).unwrap();
    let (told, code) = home.call("dice.dice", &json!({ "count": 2 }));
    assert_eq!(code, 0, "{told}");
    assert_eq!(told["result"]["rolls"].as_array().unwrap().len(), 2, "{told}");
    let (told, _) = home.call("dice.dice", &json!({ "count": 0 }));
    assert_eq!(told["outcome"], "invalid-arguments", "{told}");
}
