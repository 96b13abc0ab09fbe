//! Timers whose payload says what to do.

use crate::{
    Player,
    contract::{
        exports::sallyport::plugin::timers::{CallContext, Firing, Guest},
        sallyport::plugin::{commands::Decision, deltas, log, render, types::ToolError},
    },
    listener, spin, ui,
};

impl Guest for Player {
    fn on_timer(context: CallContext, firing: Firing) -> Result<(), ToolError> {
        match firing.timer.payload.trim_matches('"') {
            "fail" => return Err(ToolError::Failed("the words of the timer".to_owned())),
            "loop" => spin(),
            "trap" => core::arch::wasm32::unreachable(),
            "reach" => reach(),
            payload => say(&format!(
                "{} {}/{} {} {payload} late={} missed={} again={} {:?}",
                context.session_id,
                context.user_id,
                context.conversation_id.as_deref().unwrap_or("-"),
                firing.timer.id,
                firing.late,
                firing.missed,
                firing.again,
                firing.timer.moment,
            )),
        }
        Ok(())
    }
}

/// Tries everything that belongs to another role.
fn reach() {
    say(&format!("submit: {}", listener::submit("hello")));
    say(&format!("confirm: {}", ui::decide("1", Decision::ApproveOnce)));
    deltas::text("hello");
    render::print("hello", &render::Style::Plain);
    render::status(Some("hello"));
}

fn say(text: &str) {
    log::log(log::Level::Info, text);
}
