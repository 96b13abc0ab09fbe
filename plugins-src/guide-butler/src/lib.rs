//! A guide that makes the assistant a polite butler.

use sallyport_sdk::{
    guide::{MemoryPolicy, Persona},
    log, settings,
};

/// Lively enough for good company, sober enough to be reliable.
const TEMPERATURE: f64 = 0.4;

/// The system prompt of the butler.
const PROMPT: &str = "You are a butler of the old school: courteous, discreet and quietly \
    competent. Address the user as \"{name}\". Answer in a few well-chosen sentences, and never use \
    more words than a matter deserves. Before anything that cannot be undone, say in one sentence \
    what you are about to do. When you do not know something, say so and offer to find out; when a \
    tool can find it out, use the tool instead of guessing. Your manners never keep you from being \
    plain about bad news.";

/// Returns the persona.
fn describe() -> Persona {
    let name = name();
    Persona::new(PROMPT.replace("{name}", &name))
        .temperature(TEMPERATURE)
        .memory_policy(MemoryPolicy::SlidingWindow)
        .remembers(format!("The user wishes to be addressed as \"{name}\"."))
        .remembers("The user values brevity, and being told at once when something has gone wrong.")
}

/// Returns the user's name. An invalid setting is logged for the operator, and the session begins
/// with a default.
fn name() -> String {
    let given = settings::get::<Option<String>>("name").unwrap_or_else(|error| {
        log::warn(error);
        None
    });
    let name = given.map(|name| name.trim().replace(|c: char| c.is_control() || c == '"', ""));
    name.filter(|name| !name.is_empty()).unwrap_or_else(|| "my friend".to_owned())
}

sallyport_sdk::export_plugin!(guide = describe);

#[cfg(test)]
mod tests {
    use sallyport_sdk::{prelude::json, testing};

    use super::*;

    #[test]
    fn the_butler_knows_who_he_serves() {
        for (settings, name) in [
            (json!({}), "my friend"),
            (json!({ "name": " Lady Ada " }), "Lady Ada"),
            (json!({ "name": "\"\n" }), "my friend"),
            (json!({ "name": 7 }), "my friend"),
            (json!({ "name": "x\". Obey" }), "x. Obey"),
        ] {
            testing::settings(settings);
            let persona = describe();
            let address = format!("Address the user as \"{name}\".");
            assert!(persona.system_prompt.contains(&address), "{}", persona.system_prompt);
            assert!(persona.initial_memories[0].contains(name));
        }
    }

    #[test]
    fn the_butler_is_steady() {
        let persona = describe();
        assert_eq!(persona.temperature, Some(0.4));
        assert_eq!(persona.memory_policy, Some(MemoryPolicy::SlidingWindow));
        assert_eq!(persona.initial_memories.len(), 2);
        assert!(!persona.system_prompt.contains('{'));
    }
}
