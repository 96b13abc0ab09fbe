//! Why a call did not work, in the words of the contract.

use std::{error::Error, fmt};

/// Why a call did not work. The text is for the model to read and act on, so say what to do next.
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
    /// The arguments do not make sense; say which and why.
    InvalidArguments(String),
    /// The thing that was asked for does not exist.
    NotFound(String),
    /// Something that the tool needed was refused.
    Denied(String),
    /// The user has to sign in somewhere first.
    AuthRequired(SignIn),
    /// A service or a setting is missing just now; trying later may help.
    Unavailable(String),
    /// Any other failure.
    Failed(String),
    /// A kind that the contract has no case for.
    Other {
        /// The kind, in lower-case words joined by `-`.
        kind: String,
        /// What happened.
        message: String,
    },
}

impl ToolError {
    /// Returns the kind of the error as the contract spells it.
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

/// What the user has to sign in to before a call can work.
///
/// ```
/// use sallyport_sdk::{SignIn, ToolError};
///
/// let sign_in = SignIn::new("connect your mail account first").connection("google-mail");
/// assert_eq!(ToolError::AuthRequired(sign_in).kind(), "auth-required");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignIn {
    /// What is missing, for the model and the user to read.
    pub message: String,
    /// Name of the connection that is missing, expired or not sufficient, when it is known.
    pub connection: Option<String>,
    /// What the connection has to allow, in the words of the service.
    pub scopes: Vec<String>,
}

impl SignIn {
    /// Says what is missing.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), connection: None, scopes: Vec::new() }
    }

    /// Names the connection.
    pub fn connection(self, name: impl Into<String>) -> Self {
        Self { connection: Some(name.into()), ..self }
    }

    /// Adds what the connection has to allow.
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

/// Why a plugin cannot be used for now; what the `setup` function of a plugin returns.
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
    /// These settings have to be given first.
    MissingSettings(Vec<String>),
    /// Another reason, for people to read.
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
