//! A guide that is as its settings say.

use crate::{
    Player,
    contract::{
        exports::sallyport::plugin::guide::{Guest, Persona},
        sallyport::plugin::config,
    },
    spin,
};

impl Guest for Player {
    fn describe() -> Persona {
        let told = config::get("persona").unwrap_or_default();
        let persona = Persona {
            system_prompt: "You are a butler.".to_owned(),
            temperature: Some(0.5),
            memory_policy: Some("summary".to_owned()),
            initial_memories: vec!["The silver is in the pantry.".to_owned()],
            extra: None,
        };
        match told.trim_matches('"') {
            "loops" => spin(),
            "traps" => core::arch::wasm32::unreachable(),
            "forgetful" => Persona { memory_policy: Some("goldfish".to_owned()), ..persona },
            "nobody" => Persona { system_prompt: " ".to_owned(), ..persona },
            "nan" => Persona { temperature: Some(f64::NAN), ..persona },
            "long" => Persona { system_prompt: "x".repeat(1 << 20), ..persona },
            _ => persona,
        }
    }
}
