//! Cards: what is in view when the question is asked, and after a slip.

use std::rc::Rc;

use serde_json::json;

use super::{
    PROMPT, Scenario, Stage,
    Step::{Sees, SeesLast, Types},
    check,
};
use crate::support::{Home, Reply, warden::requests};

const CHAT: &[&str] = &["chat", "--model", "m"];
const FILES: &str =
    "[plugin.files]\nfs = [{ path = \"~/notes\", mount = \"/notes\", access = \"read-write\" }]\n";

/// A model that overwrites a list of the user, and then says so.
fn overwriting() -> Rc<Stage> {
    let list =
        "# To do\n- milk\n- call the plumber about the dripping tap in the kitchen\n- eggs\n";
    let arguments = json!({ "path": "/notes/todo.md", "text": list, "mode": "overwrite" });
    let script = vec![
        Reply::call("a", "files__write", &arguments),
        Reply::Text("Done: your list is **shorter** now."),
    ];
    let home = Home::new()
        .plugins(&["files"])
        .policy(FILES)
        .user_file("notes/todo.md", "# To do\n- milk\n- bread\n- eggs\n");
    Stage::with_model(home, script)
}

#[test]
fn a_change_to_a_file_scrolled_its_question_away() {
    for scenario in [
        Scenario {
            name: "a_card_with_a_change",
            before: "the head had scrolled away, and the new text was shown without the old one",
            args: CHAT,
            steps: &[SeesLast(PROMPT), Types("shorten my list\r"), Sees("[?] more")],
            code: None,
        },
        Scenario {
            name: "a_slip_in_edited_arguments",
            before: "a slip cost the call",
            args: CHAT,
            steps: &[
                SeesLast(PROMPT),
                Types("shorten my list\r"),
                Sees("[?] more"),
                Types("e"),
                Sees("arguments>"),
                Types("x\r"),
                Sees("Enter on an empty line"),
                SeesLast("  }x"),
            ],
            code: None,
        },
        Scenario {
            name: "a_call_line_says_on_what",
            before: "files.write completed",
            args: CHAT,
            steps: &[
                SeesLast(PROMPT),
                Types("shorten my list\r"),
                Sees("[?] more"),
                Types("y"),
                Sees("shorter now."),
                SeesLast(PROMPT),
            ],
            code: None,
        },
    ] {
        check(&scenario, overwriting);
    }
}

/// A home in which requests of the guest to a name without an address are asked about.
fn asking(request: &serde_json::Value) -> Rc<Stage> {
    let pattern = "GET,POST http://hostile.example/**";
    let policy = format!(
        "[plugin.hostile]\nnet = [{{ allow = \"{pattern}\", decision = \"ask\" }}]\n\
         [[rule]]\ntool = \"hostile.*\"\ndecision = \"allow\"\n"
    );
    let script = vec![Reply::call("a", "hostile__fetches", request), Reply::Text("All done.")];
    let home = Home::new().guest("hostile", &requests(&[pattern])).policy(policy);
    Stage::with_model(home, script)
}

const ASKED: &[super::Step] = &[SeesLast(PROMPT), Types("go\r"), Sees("[?] more")];

#[test]
fn a_long_query_pushed_the_method_and_the_address_out_of_sight() {
    let scenario = Scenario {
        name: "a_request_with_a_long_query",
        before: "8,192 characters of the query, and neither method nor address in view",
        args: CHAT,
        steps: ASKED,
        code: None,
    };
    let path = format!("/x?q={}", "x".repeat(9_000));
    check(&scenario, || asking(&json!({ "authority": "hostile.example", "path": path })));
}

#[test]
fn a_question_about_a_post_showed_neither_headers_nor_body() {
    let scenario = Scenario {
        name: "a_post",
        before: "neither its headers nor its body were shown",
        args: CHAT,
        steps: ASKED,
        code: None,
    };
    let headers = json!([["x-own", "of the plugin"], ["content-type", "text/plain"]]);
    let request = json!({ "authority": "hostile.example", "method": "POST", "headers": headers, "body": "the body" });
    check(&scenario, || asking(&request));
}

#[test]
fn joiners_are_spelt_out_where_something_is_decided() {
    let scenario = Scenario {
        name: "joiners_in_a_card",
        before: "the same, and it must stay so",
        args: CHAT,
        steps: ASKED,
        code: None,
    };
    let script = || {
        vec![Reply::call("a", "files__write", &json!({ "path": "/notes/a\u{200d}b", "text": "" }))]
    };
    check(&scenario, || Stage::with_model(Home::new().plugins(&["files"]).policy(FILES), script()));
}

#[test]
fn a_missing_grant_ended_in_homework() {
    let scenario = Scenario {
        name: "a_missing_grant",
        before: "a refusal, and TOML to paste",
        args: CHAT,
        steps: ASKED,
        code: None,
    };
    let call = Reply::call("a", "weather__get_weather", &json!({ "location": "Paris" }));
    check(&scenario, || Stage::with_model(Home::new().plugins(&["weather"]), vec![call.clone()]));
}
