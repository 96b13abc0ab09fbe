//! The role of a guide: a plugin that says who the assistant is.
//!
//! It is asked once, when a session begins, with its settings and without any grant.
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

/// What a model is shown of a long conversation.
///
/// ```
/// use sallyport_sdk::guide::MemoryPolicy;
///
/// assert_eq!(MemoryPolicy::VectorDb.word(), "vector-db");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemoryPolicy {
    /// Everything.
    None,
    /// What was said last.
    SlidingWindow,
    /// A summary of what came before.
    Summary,
    /// What is closest in meaning.
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

/// Who the assistant is.
///
/// ```
/// use sallyport_sdk::guide::Persona;
///
/// let persona = Persona::new("You answer in one sentence.");
/// assert_eq!((persona.temperature, persona.memory_policy), (None, None));
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Persona {
    /// What the model should be and do.
    pub system_prompt: String,
    /// How much its answers may vary, from 0.
    pub temperature: Option<f64>,
    /// What it is shown of a long conversation; the host's own choice without one.
    pub memory_policy: Option<MemoryPolicy>,
    /// What it knows from the start.
    pub initial_memories: Vec<String>,
}

impl Persona {
    /// Makes a persona from what the model should be and do.
    pub fn new(system_prompt: impl Into<String>) -> Self {
        Self {
            system_prompt: system_prompt.into(),
            temperature: None,
            memory_policy: None,
            initial_memories: Vec::new(),
        }
    }

    /// Says how much the answers may vary.
    pub fn temperature(self, temperature: f64) -> Self {
        Self { temperature: Some(temperature), ..self }
    }

    /// Says what the model is shown of a long conversation.
    pub fn memory_policy(self, policy: MemoryPolicy) -> Self {
        Self { memory_policy: Some(policy), ..self }
    }

    /// Adds something that it knows from the start.
    pub fn remembers(mut self, memory: impl Into<String>) -> Self {
        self.initial_memories.push(memory.into());
        self
    }
}
