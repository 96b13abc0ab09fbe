//! What a guide says about the assistant.

/// The description of the assistant by a plugin. Every text in it is untrusted.
#[derive(Debug, Clone, PartialEq)]
pub struct GuidePersona {
    /// The instructions for the model.
    pub system_prompt: String,
    /// How much its answers may vary; a finite number from 0.
    pub temperature: Option<f64>,
    /// The memory policy, which selects what the model sees of a long conversation. The name has
    /// not been checked.
    pub memory_policy: Option<String>,
    /// Facts that the assistant knows from the start.
    pub initial_memories: Vec<String>,
}
