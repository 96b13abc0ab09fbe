//! Uses every capability of the host, and keeps what it can from one call to the next. A test says
//! what it does, step by step, and reads what came of each step.
#![expect(unsafe_code, reason = "the generated exports are functions with raw pointers")]

mod contract {
    wit_bindgen::generate!({
        path: "../../../wit",
        inline: "
            package test:living;

            world living {
                import sallyport:plugin/log@0.1.0;
                import sallyport:plugin/notify@0.1.0;
                import sallyport:plugin/open-url@0.1.0;
                import sallyport:plugin/packages@0.1.0;
                import sallyport:plugin/progress@0.1.0;
                import sallyport:plugin/schedule@0.1.0;
                import sallyport:plugin/state@0.1.0;
                export sallyport:plugin/timers@0.1.0;
            }
        ",
        world: "test:living/living",
        generate_all,
    });
}
mod asks;
mod keeps;

use contract::{
    exports::sallyport::plugin::timers::{self, CallContext, Firing},
    sallyport::plugin::{log, types},
};
use sallyport_sdk::prelude::*;

/// What to do.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Script {
    /// Steps, each a word and what belongs to it, with spaces between.
    steps: Vec<String>,
}

/// Does one thing after the other and tells what came of each.
#[tool]
fn acts(args: Script) -> Vec<String> {
    args.steps.iter().map(|step| act(step)).collect()
}

fn act(step: &str) -> String {
    let words: Vec<&str> = step.split(' ').collect();
    let told = asks::step(&words).or_else(|| keeps::step(&words));
    told.unwrap_or_else(|| panic!("no such step: {step}"))
}

sallyport_sdk::export_plugin!(tools = [acts]);

struct Living;

contract::export!(Living with_types_in contract);

impl timers::Guest for Living {
    fn on_timer(_: CallContext, firing: Firing) -> Result<(), types::ToolError> {
        let payload = &firing.timer.payload;
        match payload.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
            Some("tally") => asks::tally(&firing),
            Some(step) => drop(act(&step.replace('_', " "))),
            None => log::log(log::Level::Info, &format!("fired with {payload}")),
        }
        Ok(())
    }
}
