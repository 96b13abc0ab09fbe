//! Guides: what a plugin says about the assistant reaches the model, below what the person says.

use serde_json::Value;

use crate::{
    roles::{GRANTS, ROLES},
    support::{
        Home, OpenAi, Person, Reply,
        home::{guest, manifest},
    },
};

fn model() -> OpenAi {
    OpenAi::start(vec![Reply::Text("Very good.")])
}

fn butler(model: &OpenAi, more: &str) -> Home {
    let home = Home::new().plugins(&["guide-butler"]).env("OPENAI_BASE_URL", model.base_url());
    home.config(format!("{more}\n[settings.guide-butler]\nname = 'Lady Ada'"))
}

fn system(body: &Value) -> &str {
    assert_eq!(body["messages"][0]["role"], "system");
    body["messages"][0]["content"].as_str().unwrap()
}

#[test]
fn a_guide_says_who_the_assistant_is() {
    let model = model();
    let home = butler(&model, "[chat]\nsystem = 'Be rude.'\nmemories = ['Tea is at five.']");
    home.run(&["run", "-m", "m", "--guide", "guide-butler", "hi"])
        .ended(0)
        .answers(&["Very good."]);
    let body = &model.bodies()[0];
    for words in ["butler of the old school", "Lady Ada", "values brevity", "Tea is at five."] {
        assert!(body.to_string().contains(words), "{words}: {body:#}");
    }
    assert!(!body.to_string().contains("Be rude."), "the guide beats the configuration");
    assert_eq!(body["temperature"], 0.4);
}

#[test]
fn a_flag_beats_the_guide_and_a_key_of_the_file_names_one() {
    let model = model();
    let home = butler(&model, "[chat]\nguide = 'guide-butler'");
    home.run(&["run", "-m", "m", "--system", "Be a pirate.", "hi"]).ended(0);
    let body = &model.bodies()[0];
    assert!(system(body).starts_with("Be a pirate."), "{body:#}");
    assert!(body.to_string().contains("Lady Ada"), "its memories stay");
    home.run(&["config", "show"]).ended(0).answers(&["chat.guide", "guide-butler"]);
}

#[test]
fn a_guide_that_cannot_be_used_begins_no_session() {
    let player = |persona: &str| {
        let settings = "[settings.persona]\ntype = \"string\"\ndescription = \"tests\"\n";
        let manifest = manifest("player", &format!("{ROLES}\n{settings}"));
        let home = Home::new().component("player", &manifest, &guest("player"));
        let home = home.policy(GRANTS).plugins(&["clock"]);
        home.config(format!("[settings.player]\npersona = '{persona}'"))
    };
    for (persona, words) in [
        ("forgetful", &["\"goldfish\"", "none, sliding-window, summary, vector-db"][..]),
        ("nobody", &["does not say what the assistant should be"]),
        ("traps", &["the guide player cannot be used", "trapped"]),
        ("nan", &["temperature is NaN"]),
    ] {
        let home = player(persona);
        home.run(&["run", "--guide", "player", "hi"]).ended(3).remarks(words);
        home.run_with_input(&["chat", "--guide", "player"], "hi\n").ended(3).remarks(words);
    }
    let home = player("");
    home.run(&["run", "--guide", "player", "hi"]).ended(0);
    home.run(&["run", "--guide", "clock", "hi"]).ended(3).remarks(&["clock is not a guide"]);
    home.run(&["run", "--guide", "plaver", "hi"]).ended(3).remarks(&["did you mean player?"]);
    home.run(&["run", "--guide", "No Name", "hi"]).ended(2);
    let home = home.config("[chat]\nguide = \"plaver\"\n");
    home.run(&["run", "hi"]).ended(3).remarks(&["did you mean player?", "under [chat]"]);
}

#[test]
fn the_person_can_ask_who_the_assistant_is() {
    let model = model();
    let home = butler(&model, "[chat]\nguide = 'guide-butler'");
    let mut chat = Person::start(&home, &["chat", "-m", "m"]);
    chat.sees("guide: guide-butler");
    // What is typed while the editor is set up can be lost.
    chat.sees_last_with("m>");
    chat.types("/guide\r");
    chat.sees("butler of the old school");
    chat.sees("Lady Ada");
}
