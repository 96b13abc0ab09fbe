//! The guide role: a plugin that describes the assistant.
//!
//! The host calls a guide once, when a session begins. The guide can read its settings, and has no
//! grants.
//!
//! ```
//! use sallyport_sdk::guide::{MemoryPolicy, Persona};
//!
//! fn describe() -> Persona {
//!     Persona::new("You are a patient teacher. Explain one thing at a time.")
//!         .temperature(0.3)
//!         .memory_policy(MemoryPolicy::Summary)
//!         .remembers("The pupil is nine years old.")
//! }
//!
//! sallyport_sdk::export_plugin!(guide = describe);
//!
//! # fn main() {
//! assert_eq!(describe().initial_memories, ["The pupil is nine years old."]);
//! # }
//! ```

/// Which part of a long conversation the model sees.
///
/// ```
/// use sallyport_sdk::guide::MemoryPolicy;
///
/// assert_eq!(MemoryPolicy::VectorDb.word(), "vector-db");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemoryPolicy {
    /// The whole conversation.
    None,
    /// The newest turns.
    SlidingWindow,
    /// The newest turns, and a summary of the earlier ones.
    Summary,
    /// The newest turns, and the earlier texts that are closest in meaning to the last input.
    VectorDb,
}

impl MemoryPolicy {
    /// Returns the policy as the contract spells it.
    pub fn word(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::SlidingWindow => "sliding-window",
            Self::Summary => "summary",
            Self::VectorDb => "vector-db",
        }
    }
}

/// A description of the assistant.
///
/// ```
/// use sallyport_sdk::guide::Persona;
///
/// let persona = Persona::new("You answer in one sentence.");
/// assert_eq!((persona.temperature, persona.memory_policy), (None, None));
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Persona {
    /// The instructions for the model.
    pub system_prompt: String,
    /// How much the answers may vary, from 0 up.
    pub temperature: Option<f64>,
    /// Which part of a long conversation the model sees; `None` for the host's choice.
    pub memory_policy: Option<MemoryPolicy>,
    /// Facts that the assistant knows from the start.
    pub initial_memories: Vec<String>,
}

impl Persona {
    /// Makes a persona from the instructions for the model.
    pub fn new(system_prompt: impl Into<String>) -> Self {
        Self {
            system_prompt: system_prompt.into(),
            temperature: None,
            memory_policy: None,
            initial_memories: Vec::new(),
        }
    }

    /// Sets how much the answers may vary.
    pub fn temperature(self, temperature: f64) -> Self {
        Self { temperature: Some(temperature), ..self }
    }

    /// Sets which part of a long conversation the model sees.
    pub fn memory_policy(self, policy: MemoryPolicy) -> Self {
        Self { memory_policy: Some(policy), ..self }
    }

    /// Adds a fact that the assistant knows from the start.
    pub fn remembers(mut self, memory: impl Into<String>) -> Self {
        self.initial_memories.push(memory.into());
        self
    }
}
