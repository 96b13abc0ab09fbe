//! The errors of tools and of setup.

use std::{error::Error, fmt};

/// Why a call failed. The model reads the text and acts on it, so state what to do next.
///
/// ```
/// use sallyport_sdk::ToolError;
///
/// let error = ToolError::NotFound("no city is called Atlantis".to_owned());
/// assert_eq!(error.kind(), "not-found");
/// assert_eq!(error.to_string(), "no city is called Atlantis");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolError {
    /// The arguments are invalid; state which ones and why.
    InvalidArguments(String),
    /// The requested thing does not exist.
    NotFound(String),
    /// Something that the tool needs was denied.
    Denied(String),
    /// The user has to sign in somewhere first.
    AuthRequired(SignIn),
    /// A service or a setting is unavailable at the moment; a later call may succeed.
    Unavailable(String),
    /// Any other failure.
    Failed(String),
    /// A kind of error that the contract does not define.
    Other {
        /// The kind, in lower-case words joined by `-`.
        kind: String,
        /// The message for the model.
        message: String,
    },
}

impl ToolError {
    /// Returns the kind of the error, as the contract spells it.
    pub fn kind(&self) -> &str {
        match self {
            Self::InvalidArguments(_) => "invalid-arguments",
            Self::NotFound(_) => "not-found",
            Self::Denied(_) => "denied",
            Self::AuthRequired(_) => "auth-required",
            Self::Unavailable(_) => "unavailable",
            Self::Failed(_) => "failed",
            Self::Other { kind, .. } => kind,
        }
    }

    /// Returns the text that the model reads.
    pub fn message(&self) -> &str {
        match self {
            Self::InvalidArguments(message)
            | Self::NotFound(message)
            | Self::Denied(message)
            | Self::AuthRequired(SignIn { message, .. })
            | Self::Unavailable(message)
            | Self::Failed(message)
            | Self::Other { message, .. } => message,
        }
    }
}

/// The sign-in that the user has to complete before a call can succeed.
///
/// ```
/// use sallyport_sdk::{SignIn, ToolError};
///
/// let sign_in = SignIn::new("connect your mail account first").connection("google-mail");
/// assert_eq!(ToolError::AuthRequired(sign_in).kind(), "auth-required");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignIn {
    /// The message for the model and the user.
    pub message: String,
    /// Name of the connection that is missing, expired or insufficient, if it is known.
    pub connection: Option<String>,
    /// The scopes that the connection needs, as the service names them.
    pub scopes: Vec<String>,
}

impl SignIn {
    /// Creates a sign-in error with a message.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), connection: None, scopes: Vec::new() }
    }

    /// Sets the name of the connection.
    pub fn connection(self, name: impl Into<String>) -> Self {
        Self { connection: Some(name.into()), ..self }
    }

    /// Adds a scope that the connection needs.
    pub fn scope(mut self, scope: impl Into<String>) -> Self {
        self.scopes.push(scope.into());
        self
    }
}

impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.message())
    }
}

impl Error for ToolError {}

/// Why a plugin cannot be used at the moment. The plugin's `setup` function returns it.
///
/// ```
/// use sallyport_sdk::{SetupError, settings};
///
/// fn setup() -> Result<(), SetupError> {
///     settings::get::<String>("account")?;
///     Ok(())
/// }
///
/// assert_eq!(setup(), Err(SetupError::MissingSettings(vec!["account".to_owned()])));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SetupError {
    /// These settings must be set first.
    MissingSettings(Vec<String>),
    /// Another reason, for the user to read.
    Unavailable(String),
}

impl fmt::Display for SetupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MissingSettings(names) => write!(f, "settings are missing: {}", names.join(", ")),
            Self::Unavailable(reason) => f.write_str(reason),
        }
    }
}

impl Error for SetupError {}
