//! The prompts role: conversations that a plugin begins for the user.
//!
//! The manifest names the role, `roles = ["tools", "prompts"]`. Each question is decided and
//! recorded like a call of a tool, and runs with the plugin's grant.
//!
//! ```
//! use sallyport_sdk::{
//!     CallContext, ToolError,
//!     prompts::{Arguments, Filled, Prompt, Prompts},
//! };
//!
//! /// Begins a review.
//! enum Reviews {}
//!
//! impl Prompts for Reviews {
//!     fn list(_context: &CallContext) -> Result<Vec<Prompt>, ToolError> {
//!         Ok(vec![Prompt::new("review").description("Reviews a text.").needs("text", "The text.")])
//!     }
//!
//!     fn get(name: &str, arguments: &Arguments, _: &CallContext) -> Result<Filled, ToolError> {
//!         match name {
//!             "review" => Ok(Filled::new().user(format!("Review this: {}", arguments["text"]))),
//!             _ => Err(ToolError::NotFound(format!("there is no prompt {name}"))),
//!         }
//!     }
//! }
//!
//! sallyport_sdk::export_plugin!(prompts = Reviews);
//!
//! # fn main() {
//! let arguments = Arguments::from([("text".to_owned(), "Hi".to_owned())]);
//! let filled = Reviews::get("review", &arguments, &CallContext::default()).unwrap();
//! assert_eq!(filled, Filled::new().user("Review this: Hi"));
//! # }
//! ```

use std::collections::BTreeMap;

use crate::{CallContext, Content, ToolError};

/// The texts that the user filled in, by name. A required one is always there.
pub type Arguments = BTreeMap<String, String>;

/// A plugin that offers prompts.
pub trait Prompts {
    /// Lists the prompts.
    ///
    /// # Errors
    ///
    /// They cannot be listed; the error states why.
    fn list(context: &CallContext) -> Result<Vec<Prompt>, ToolError>;

    /// Fills in a prompt.
    ///
    /// # Errors
    ///
    /// [`ToolError::NotFound`] if there is no such prompt, or another reason.
    fn get(name: &str, arguments: &Arguments, context: &CallContext) -> Result<Filled, ToolError>;
}

/// Something that the user fills in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Argument {
    /// Its name, unique in the prompt.
    pub name: String,
    /// What to fill in.
    pub description: Option<String>,
    /// Whether the prompt cannot do without it.
    pub required: bool,
}

/// A prompt that the user can choose.
///
/// ```
/// use sallyport_sdk::prompts::Prompt;
///
/// let prompt = Prompt::new("greet").needs("name", "Whom.").takes("mood", "How.");
/// assert_eq!((prompt.arguments[0].required, prompt.arguments[1].required), (true, false));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompt {
    /// Its name, unique in the plugin; the same letters as in the name of a tool.
    pub name: String,
    /// A name for people.
    pub title: Option<String>,
    /// What the prompt is for.
    pub description: Option<String>,
    /// What the user fills in.
    pub arguments: Vec<Argument>,
}

impl Prompt {
    /// Makes a prompt from its name.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), title: None, description: None, arguments: Vec::new() }
    }

    /// Sets the name for people.
    pub fn title(self, title: impl Into<String>) -> Self {
        Self { title: Some(title.into()), ..self }
    }

    /// Sets what the prompt is for.
    pub fn description(self, description: impl Into<String>) -> Self {
        Self { description: Some(description.into()), ..self }
    }

    /// Adds an argument that the prompt cannot do without.
    pub fn needs(self, name: impl Into<String>, description: impl Into<String>) -> Self {
        self.argument(name.into(), description.into(), true)
    }

    /// Adds an argument that may be left out.
    pub fn takes(self, name: impl Into<String>, description: impl Into<String>) -> Self {
        self.argument(name.into(), description.into(), false)
    }

    fn argument(mut self, name: String, description: String, required: bool) -> Self {
        self.arguments.push(Argument { name, description: Some(description), required });
        self
    }
}

/// Whose words a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The user's.
    User,
    /// The model's.
    Assistant,
}

/// One message of a prompt.
#[derive(Debug, Clone, PartialEq)]
pub struct PromptMessage {
    /// Whose words.
    pub role: Role,
    /// What it says.
    pub content: Content,
}

/// A prompt that is filled in.
///
/// ```
/// use sallyport_sdk::prompts::{Filled, Role};
///
/// let filled = Filled::new().user("Hello.").assistant("Hello, who are you?");
/// assert_eq!(filled.messages[1].role, Role::Assistant);
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Filled {
    /// What it is for, if there is more to say than in the list.
    pub description: Option<String>,
    /// The conversation that it begins.
    pub messages: Vec<PromptMessage>,
}

impl Filled {
    /// Makes a prompt without messages.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds words of the user.
    pub fn user(self, text: impl Into<String>) -> Self {
        self.message(Role::User, Content::Text(text.into()))
    }

    /// Adds words of the model.
    pub fn assistant(self, text: impl Into<String>) -> Self {
        self.message(Role::Assistant, Content::Text(text.into()))
    }

    /// Adds a message of any kind.
    pub fn message(mut self, role: Role, content: Content) -> Self {
        self.messages.push(PromptMessage { role, content });
        self
    }
}
