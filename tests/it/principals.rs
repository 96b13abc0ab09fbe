//! What one user keeps, another never sees.

use std::{thread, time::Duration};

use sallyport_contract::Principal;
use serde_json::{Value, json};

use crate::support::{
    Home, Tools,
    living::REQUESTS,
    patience::{until_so, wait},
    registry::data,
};

const POLICY: &str = "[plugin.living]\nstate = true\nschedule = true\nnotify = true\n\
                      [[rule]]\ntool = \"living.*\"\ndecision = \"allow\"";

fn users() -> [Principal; 2] {
    ["ann", "ben"].map(|user| Principal { user: user.to_owned(), conversation: None })
}

/// Does something on behalf of a user, and returns what came of each step.
fn steps(tools: &Tools, user: &Principal, steps: &[&str]) -> Value {
    let arguments = json!({ "steps": steps }).to_string();
    let call = tools.host.call(user, "living.acts".parse().unwrap(), arguments);
    data(&tools.wait(call)).clone()
}

#[test]
fn what_one_user_keeps_and_plans_no_other_user_sees() {
    let home = Home::new().guest("living", REQUESTS).policy(POLICY);
    let tools = Tools::of(&home);
    let [ann, ben] = users();
    steps(&tools, &ann, &["set color green", "in 3600000 tea"]);
    steps(&tools, &ben, &["set color blue"]);
    let color = |user: &Principal| steps(&tools, user, &["get color"])[0].to_string();
    assert!(color(&ann).contains("green") && !color(&ann).contains("blue"), "{}", color(&ann));
    assert!(color(&ben).contains("blue") && !color(&ben).contains("green"), "{}", color(&ben));
    let timers = |user: &Principal| steps(&tools, user, &["timers"])[0].to_string();
    assert_ne!(timers(&ann), "\"\"");
    assert_eq!(timers(&ben), "\"\"");
    // What ben removes is his.
    steps(&tools, &ben, &["del color"]);
    assert!(color(&ann).contains("green"), "{}", color(&ann));
    assert!(!color(&ben).contains("green"), "{}", color(&ben));
}

#[test]
fn a_timer_of_any_user_fires_and_its_message_goes_to_that_user() {
    let home = Home::new().guest("living", REQUESTS).policy(POLICY);
    let tools = Tools::of(&home);
    let [ann, ben] = users();
    steps(&tools, &ann, &["doing 1 tell-user_tea_tea"]);
    let timekeeper = tools.wait(async { tools.host.start_timekeeper() });
    let take = |user: &Principal| {
        let batch = wait(tools.host.store().notices.take_batch(&user.user, "s", u64::MAX / 2));
        batch.unwrap().notices.len()
    };
    let timers = || wait(tools.host.store().timers.all()).unwrap().len();
    until_so("the timer fires", || {
        thread::sleep(Duration::from_millis(20));
        timers() == 0
    });
    assert_eq!(take(&ben), 0, "ben gets nothing of ann's");
    assert_eq!(take(&ann), 1);
    tools.wait(timekeeper.stop());
}
