//! A plugin as a guide: it describes the assistant, within limits.

use std::time::Duration;

use sallyport_contract::Redactor;

use crate::{Plugin, plugin::PluginUnavailable, role_data::GuidePersona, run_context::RunContext};

/// Longest wait for a persona. The persona is mostly fixed text, but an interpreter needs a moment
/// to start.
const GUIDE_TIME_MAX: Duration = Duration::from_secs(5);

/// Longest system prompt in bytes: a book chapter. It is sent with every request to the model.
const PROMPT_BYTES_MAX: usize = 64 * 1024;

/// Most initial memories. A longer list is a document and belongs in a tool that can search it.
const MEMORIES_MAX: usize = 256;

/// Longest single memory in bytes: a paragraph or two. Memories are found one at a time.
const MEMORY_BYTES_MAX: usize = 8 * 1024;

/// Longest name of a memory policy in bytes. The known ones are much shorter.
const POLICY_BYTES_MAX: usize = 64;

impl Plugin {
    /// Asks the plugin to describe the assistant, in a fresh instance with the plugin's settings
    /// and without any grant.
    ///
    /// # Errors
    ///
    /// The plugin is not a guide, fails or takes too long, or its description is invalid or too
    /// long.
    pub async fn describe_assistant(&self) -> Result<GuidePersona, PluginUnavailable> {
        let run_context = RunContext::without_call(self.authorizer(), Some(GUIDE_TIME_MAX));
        let persona = self.run_without_call(&run_context, self.abi().describe_assistant()).await;
        let failed = |reason| PluginUnavailable(format!("it did not describe a persona: {reason}"));
        Ok(persona.map_err(failed)?.validate()?.redact(&run_context.authorizer().redactor()))
    }
}

impl GuidePersona {
    /// Removes secrets.
    fn redact(self, redactor: &Redactor) -> Self {
        let clean = |text: String| redactor.redact_text(&text).into_owned();
        Self {
            system_prompt: clean(self.system_prompt),
            temperature: self.temperature,
            memory_policy: self.memory_policy.map(clean),
            initial_memories: self.initial_memories.into_iter().map(clean).collect(),
        }
    }

    /// Returns the persona if it is valid.
    ///
    /// # Errors
    ///
    /// A number is invalid, or a text or the list of memories is too long.
    fn validate(self) -> Result<Self, PluginUnavailable> {
        let Self { system_prompt, temperature, memory_policy, initial_memories } = &self;
        let policy = memory_policy.as_deref().unwrap_or_default();
        check_length("system prompt", system_prompt.len(), PROMPT_BYTES_MAX)?;
        check_length("memory policy", policy.len(), POLICY_BYTES_MAX)?;
        let longest = initial_memories.iter().map(String::len).max().unwrap_or_default();
        check_length("longest initial memory", longest, MEMORY_BYTES_MAX)?;
        if initial_memories.len() > MEMORIES_MAX {
            let count = initial_memories.len();
            let text = format!("it has {count} initial memories, at most {MEMORIES_MAX} are taken");
            return Err(PluginUnavailable(text));
        }
        match temperature {
            Some(number) if !number.is_finite() || *number < 0.0 => {
                Err(PluginUnavailable(format!("its temperature is {number}, not a number from 0")))
            }
            _ => Ok(self),
        }
    }
}

fn check_length(what: &str, bytes: usize, bytes_max: usize) -> Result<(), PluginUnavailable> {
    if bytes <= bytes_max {
        return Ok(());
    }
    Err(PluginUnavailable(format!("its {what} has {bytes} bytes, at most {bytes_max} are taken")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn persona() -> GuidePersona {
        GuidePersona {
            system_prompt: "You are a butler.".to_owned(),
            temperature: Some(0.5),
            memory_policy: Some("summary".to_owned()),
            initial_memories: vec!["The silver is in the pantry.".to_owned()],
        }
    }

    #[test]
    fn what_is_possible_is_taken() {
        let long = |bytes| "x".repeat(bytes);
        for persona in [
            persona(),
            GuidePersona { temperature: Some(0.0), ..persona() },
            GuidePersona { temperature: None, memory_policy: None, ..persona() },
            GuidePersona { system_prompt: long(PROMPT_BYTES_MAX), ..persona() },
            GuidePersona {
                initial_memories: vec![long(MEMORY_BYTES_MAX); MEMORIES_MAX],
                ..persona()
            },
        ] {
            assert_eq!(persona.clone().validate(), Ok(persona));
        }
    }

    #[test]
    fn what_is_impossible_or_too_long_is_named() {
        let long = |bytes| "x".repeat(bytes + 1);
        let hot = |number| GuidePersona { temperature: Some(number), ..persona() };
        let knowing = |memories| GuidePersona { initial_memories: memories, ..persona() };
        for (persona, words) in [
            (hot(f64::NAN), "temperature is NaN"),
            (hot(f64::INFINITY), "temperature is inf"),
            (hot(-0.5), "temperature is -0.5"),
            (
                GuidePersona { system_prompt: long(PROMPT_BYTES_MAX), ..persona() },
                "system prompt has",
            ),
            (GuidePersona { memory_policy: Some(long(64)), ..persona() }, "memory policy has"),
            (knowing(vec![long(MEMORY_BYTES_MAX)]), "longest initial memory has"),
            (knowing(vec![String::new(); MEMORIES_MAX + 1]), "257 initial memories"),
        ] {
            let error = persona.validate().unwrap_err();
            assert!(error.0.contains(words), "{error}");
        }
    }
}
