//! Plays every role beside tools. What it does is told to it where the role allows: the last
//! message of a conversation, a signal, a line, a path, a timer's payload; a guide looks at its
//! settings.
#![expect(unsafe_code, reason = "the generated exports are functions with raw pointers")]

mod contract {
    wit_bindgen::generate!({
        path: "../../../wit",
        inline: "
            package tests:player;
            world player {
                include sallyport:plugin/timed-plugin@0.1.0;
                include sallyport:plugin/provider-plugin@0.1.0;
                include sallyport:plugin/listener-plugin@0.1.0;
                include sallyport:plugin/guide-plugin@0.1.0;
                include sallyport:plugin/ui-plugin@0.1.0;
            }
        ",
        world: "tests:player/player",
        generate_all,
    });
}
mod guide;
mod listener;
mod page;
mod provider;
mod timers;
mod ui;

struct Player;

contract::export!(Player with_types_in contract);
wasip2::http::proxy::export!(Player with_types_in wasip2);

/// Never comes to an end.
fn spin() -> ! {
    loop {
        std::hint::black_box(0);
    }
}
