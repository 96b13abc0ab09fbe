//! What is allowed, at a glance: the table of permissions and the lists, at a terminal and in a
//! pipe.

use serde_json::json;

use crate::support::{Home, person::Person};

const POLICY: &str = r#"
[plugin.clock]
env = ["TZ"]

[plugin.weather]
net = ["GET https://api.open-meteo.com/v1/forecast"]

[[rule]]
tool = "files.remove"
decision = "deny"
"#;

/// The sizes of terminals, as rows and columns.
const SIZES: [(u16, u16); 3] = [(15, 40), (24, 80), (40, 120)];

fn home() -> Home {
    let home = Home::new().plugins(&["clock", "files", "weather"]).policy(POLICY);
    // Plugins that are being compiled look different.
    home.run(&["policy"]).ended(0);
    home
}

/// What a command shows at terminals of each size.
fn screens(home: &Home, args: &[&str]) -> String {
    let screen = |(rows, columns): (u16, u16)| {
        let mut person = Person::start_sized(home, args, rows, columns);
        assert_eq!(person.ends(), 0);
        let screen = person.screen();
        assert!(screen.lines().all(|line| line.chars().count() <= columns.into()), "{screen}");
        format!("{columns} × {rows}\n{screen}\n")
    };
    SIZES.map(screen).join("\n")
}

#[test]
fn permissions_fit_each_terminal() {
    insta::assert_snapshot!(screens(&home(), &["policy"]));
}

#[test]
fn plugins_fit_each_terminal() {
    insta::assert_snapshot!(screens(&home(), &["plugin", "list"]));
}

#[test]
fn permissions_are_one_line_each_in_a_pipe_and_data_for_programs() {
    let home = home();
    let shown = home.run(&["policy"]).ended(0).stdout;
    let names: Vec<&str> = shown.lines().filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(names, ["plugin", "clock", "files", "reminder", "weather"], "{shown}");
    let lacks = "GET https://geocoding-api.open-meteo.com/v1/search";
    assert!(shown.lines().last().unwrap().ends_with(lacks), "{shown}");

    let told = home.run(&["policy", "--output", "json"]).ended(0).json();
    let weather = &told["plugins"][3];
    assert_eq!(weather["plugin"], "weather", "{told:#}");
    assert_eq!(weather["works"], json!({ "status": "limited" }));
    assert_eq!(weather["net"], json!(["GET https://api.open-meteo.com/v1/forecast"]));
    assert_eq!(weather["tools"]["ask"], json!(["get_weather"]));
    assert_eq!(weather["missing"][0]["request"], lacks);
    assert_eq!(told["plugins"][0]["variables"], json!(["TZ"]));
    assert_eq!(told["plugins"][1]["tools"]["deny"], json!(["remove"]));
}

#[test]
fn plugins_that_cannot_work_say_why() {
    let deny = "[[rule]]\ntool = \"clock.*\"\ndecision = \"deny\"\n";
    let home = Home::new().plugins(&["clock"]).policy(deny);
    home.run(&["policy"]).ended(0).answers(&["no, all tools are denied"]);
    let told = home.run(&["policy", "--output", "json"]).ended(0).json();
    let works = json!({ "status": "unusable", "reason": "all tools are denied" });
    assert_eq!(told["plugins"][0]["works"], works);
    let bare = Home::new().config("[internal]\nreminder = false\n");
    bare.run(&["policy"]).ended(0).remarks(&["No plugins found"]);
    assert_eq!(bare.run(&["policy", "--output", "json"]).json(), json!({ "plugins": [] }));
    for args in [&["policy", "nonsense"][..], &["policy", "--output", "json", "check"]] {
        bare.run(args).ended(2);
    }
}
