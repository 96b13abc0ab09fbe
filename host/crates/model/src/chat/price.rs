//! The cost of an exchange.

use std::iter::Sum;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::TokenUsage;

/// The price of tokens, in US dollars per million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TokenPrice {
    /// Tokens read.
    pub input: f64,
    /// Tokens written.
    pub output: f64,
    /// Tokens read from the provider's cache.
    pub cached_input: f64,
    /// Tokens written to the provider's cache.
    pub cache_write: f64,
}

/// An amount of money, in millionths of a US dollar.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct TokenCost {
    /// Millionths of a US dollar.
    pub micro_usd: u64,
}

impl TokenPrice {
    /// Returns the cost of an exchange, rounded up so that rounding never exceeds a budget.
    pub fn of(&self, usage: &TokenUsage) -> TokenCost {
        let TokenUsage {
            input_tokens, output_tokens, cached_input_tokens, cache_write_tokens, ..
        } = *usage;
        let plain =
            input_tokens.saturating_sub(cached_input_tokens.saturating_add(cache_write_tokens));
        let parts = [
            (plain, self.input),
            (cached_input_tokens, self.cached_input),
            (cache_write_tokens, self.cache_write),
            (output_tokens, self.output),
        ];
        // Dollars per million tokens are millionths of a dollar per token.
        let micro_usd: f64 = parts.iter().map(|(tokens, price)| *tokens as f64 * price).sum();
        TokenCost { micro_usd: micro_usd.ceil().max(0.0) as u64 }
    }
}

impl Sum for TokenCost {
    fn sum<I: Iterator<Item = Self>>(costs: I) -> Self {
        let micro_usd = costs.fold(0, |sum: u64, cost| sum.saturating_add(cost.micro_usd));
        Self { micro_usd }
    }
}
