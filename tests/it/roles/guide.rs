//! Guides: who the assistant is, without any grant and not for ever.

use sallyport_sandbox::PluginUnavailable;

use super::warden;
use crate::support::Guarded;

#[test]
fn a_persona_is_described() {
    let player = Guarded::by(warden(""));
    let persona = player.wait(player.plugin.describe_assistant()).unwrap();
    assert_eq!(persona.system_prompt, "You are a butler.");
    assert_eq!(persona.temperature, Some(0.5));
    assert_eq!(persona.memory_policy.as_deref(), Some("summary"));
    assert_eq!(persona.initial_memories, ["The silver is in the pantry."]);
}

#[test]
fn a_persona_that_cannot_be_is_told_with_its_reason() {
    for (told, words) in [
        ("nan", "temperature is NaN"),
        ("long", "system prompt has 1048576 bytes"),
        ("traps", "trapped"),
        ("loops", "it took longer than 5s"),
    ] {
        let player = Guarded::by(warden("").setting("persona", told));
        let Err(PluginUnavailable(reason)) = player.wait(player.plugin.describe_assistant()) else {
            panic!("{told} was taken")
        };
        assert!(reason.contains(words), "{told}: {reason}");
    }
}
