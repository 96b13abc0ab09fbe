//! The protocols of the providers.

/// The supported wire formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProviderProtocol {
    /// `chat/completions` of OpenAI and the many servers that implement it.
    OpenAiChat,
    /// `responses` of OpenAI.
    OpenAiResponses,
    /// `messages` of Anthropic.
    Anthropic,
    /// `generateContent` of Gemini.
    Gemini,
    /// `/api/chat` of Ollama.
    Ollama,
}

impl ProviderProtocol {
    /// Returns the name in the configuration and in transcripts.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::OpenAiChat => "openai",
            Self::OpenAiResponses => "openai-responses",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
            Self::Ollama => "ollama",
        }
    }
}
