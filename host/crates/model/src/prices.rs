//! Token prices of well-known models.
//!
//! Prices change without notice, so a price that the user sets takes precedence over this table. An
//! unlisted model has no price, because a budget must not rest on a guess.

use std::net::IpAddr;

use reqwest::Url;

use crate::{chat::TokenPrice, endpoint::ModelEndpoint, protocol::ProviderProtocol};

/// Local models and the offline matcher cost nothing per token.
pub(crate) const FREE: TokenPrice =
    TokenPrice { input: 0.0, output: 0.0, cached_input: 0.0, cache_write: 0.0 };

/// US dollars per million tokens: read, read from the cache, written to the cache, written. Then the
/// models, as globs with spaces between them.
///
/// The prices are as of October 2026, for plain requests. If a price varies with the hour or ends
/// with the year, the higher one is listed. Long prompts and audio cost more with some models.
#[rustfmt::skip]
const TABLE: &[(f64, f64, f64, f64, &str)] = &[
    // OpenAI. Only its newest models charge for writing to the cache.
    (10.00, 1.00, 12.50, 50.00, "gpt-6-astra*"),
    (2.00, 0.10, 2.50, 10.00, "gpt-6.1-sol*"),
    (2.00, 0.20, 2.50, 10.00, "gpt-6-sol*"),
    (0.10, 0.01, 0.125, 0.50, "gpt-6-luna*"),
    (4.00, 0.40, 5.00, 20.00, "gpt-5.6-sol*"),
    (2.00, 0.20, 2.50, 12.00, "gpt-5.6-terra*"),
    (0.20, 0.02, 0.25, 1.20, "gpt-5.6-luna*"),
    (5.00, 0.50, 5.00, 30.00, "gpt-5.5 gpt-5.5-2*"),
    (30.00, 30.00, 30.00, 180.00, "gpt-5.5-pro*"),
    (2.50, 0.25, 2.50, 15.00, "gpt-5.4 gpt-5.4-2*"),
    (0.75, 0.075, 0.75, 4.50, "gpt-5.4-mini*"),
    (0.20, 0.02, 0.20, 1.25, "gpt-5.4-nano*"),
    (30.00, 30.00, 30.00, 180.00, "gpt-5.4-pro*"),
    (1.75, 0.175, 1.75, 14.00, "gpt-5.3-codex* gpt-5.2 gpt-5.2-2* gpt-5.2-codex*"),
    (21.00, 21.00, 21.00, 168.00, "gpt-5.2-pro*"),
    (1.25, 0.125, 1.25, 10.00, "gpt-5.1 gpt-5.1-2* gpt-5.1-codex*"),
    (0.25, 0.025, 0.25, 2.00, "gpt-5.1-codex-mini*"),
    (1.25, 0.125, 1.25, 10.00, "gpt-5 gpt-5-2* gpt-5-chat* gpt-5-codex*"),
    (0.25, 0.025, 0.25, 2.00, "gpt-5-mini*"),
    (0.05, 0.005, 0.05, 0.40, "gpt-5-nano*"),
    (15.00, 15.00, 15.00, 120.00, "gpt-5-pro*"),
    (2.00, 0.50, 2.00, 8.00, "gpt-4.1 gpt-4.1-2*"),
    (0.40, 0.10, 0.40, 1.60, "gpt-4.1-mini*"),
    (0.10, 0.025, 0.10, 0.40, "gpt-4.1-nano*"),
    (2.50, 1.25, 2.50, 10.00, "gpt-4o gpt-4o-2024-08-06 gpt-4o-2024-11-20"),
    (0.15, 0.075, 0.15, 0.60, "gpt-4o-mini gpt-4o-mini-2*"),
    (15.00, 7.50, 15.00, 60.00, "o1 o1-2*"),
    (150.00, 150.00, 150.00, 600.00, "o1-pro*"),
    (2.00, 0.50, 2.00, 8.00, "o3 o3-2*"),
    (1.10, 0.55, 1.10, 4.40, "o3-mini*"),
    (20.00, 20.00, 20.00, 80.00, "o3-pro*"),
    (1.10, 0.275, 1.10, 4.40, "o4-mini o4-mini-2*"),
    // Anthropic, with the cache that lasts five minutes.
    (10.00, 0.25, 12.50, 50.00, "claude-fable-5-1*"),
    (10.00, 1.00, 12.50, 50.00, "claude-fable-5"),
    (10.00, 0.25, 12.50, 50.00, "claude-mythos-5-1*"),
    (10.00, 1.00, 12.50, 50.00, "claude-mythos-5"),
    (4.00, 0.20, 5.00, 20.00, "claude-opus-5-5*"),
    (5.00, 0.50, 6.25, 25.00, "claude-opus-5 claude-opus-4-8* claude-opus-4-7* claude-opus-4-6*"),
    (5.00, 0.50, 6.25, 25.00, "claude-opus-4-5*"),
    (15.00, 1.50, 18.75, 75.00, "claude-opus-4-1* claude-opus-4-0 claude-opus-4-2*"),
    (2.00, 0.20, 2.50, 10.00, "claude-sonnet-5-5* claude-sonnet-5"),
    (3.00, 0.30, 3.75, 15.00, "claude-sonnet-4-* claude-3-7-sonnet*"),
    (1.00, 0.10, 1.25, 5.00, "claude-haiku-4-5*"),
    (0.80, 0.08, 1.00, 4.00, "claude-3-5-haiku*"),
    // Gemini.
    (1.50, 0.15, 1.50, 7.50, "gemini-3.8-flash* gemini-3.7-flash* gemini-3.6-flash*"),
    (1.50, 0.15, 1.50, 9.00, "gemini-3.5-flash"),
    (0.30, 0.30, 0.30, 2.50, "gemini-3.5-flash-lite*"),
    (2.00, 0.20, 2.00, 12.00, "gemini-3.1-pro*"),
    (0.25, 0.025, 0.25, 1.50, "gemini-3.1-flash-lite*"),
    (2.00, 0.20, 2.00, 12.00, "gemini-3-pro-preview"),
    (0.50, 0.05, 0.50, 3.00, "gemini-3-flash-preview"),
    (1.25, 0.125, 1.25, 10.00, "gemini-2.5-pro"),
    (0.30, 0.03, 0.30, 2.50, "gemini-2.5-flash"),
    (0.10, 0.01, 0.10, 0.40, "gemini-2.5-flash-lite*"),
    // DeepSeek, at its peak-hour prices.
    (0.30, 0.006, 0.30, 1.20, "deepseek-flash deepseek-v4-flash deepseek-chat deepseek-reasoner"),
    (1.32, 0.044, 1.32, 3.96, "deepseek-v4-pro"),
    // Mistral.
    (0.50, 0.05, 0.50, 1.50, "mistral-large-latest mistral-large-3*"),
    (1.50, 0.15, 1.50, 7.50, "mistral-medium-latest mistral-medium-3.5*"),
    (0.15, 0.015, 0.15, 0.60, "mistral-small-latest mistral-small-4*"),
    (0.30, 0.30, 0.30, 0.90, "codestral-latest"),
    (0.10, 0.10, 0.10, 0.10, "ministral-3b-latest"),
    (0.15, 0.15, 0.15, 0.15, "ministral-8b-latest"),
    (0.20, 0.20, 0.20, 0.20, "ministral-14b-latest"),
];

/// Returns the price of a model's tokens; `None` if it is unknown.
///
/// The price is the one that the user sets (`own`, by globs), else zero for Ollama, else the
/// model's known price, else zero for a local server. Of several matching globs, the longest
/// applies.
///
/// A glob's `*` matches any text. Globs are compared with the whole name, and with the name without
/// the vendor that some services put before it, as in `openai/gpt-5`. Case is ignored.
pub fn of(endpoint: &ModelEndpoint, configured: &[(String, TokenPrice)]) -> Option<TokenPrice> {
    let model = endpoint.model.trim().to_lowercase();
    configured_price(&model, configured).or_else(|| match endpoint.protocol {
        ProviderProtocol::Ollama => Some(FREE),
        _ => longest_match(&model, TABLE.iter().flat_map(table_prices))
            .or(is_local_server(endpoint).then_some(FREE)),
    })
}

/// Returns the price that the user sets for a model's tokens, if any.
pub fn configured_price(model: &str, configured: &[(String, TokenPrice)]) -> Option<TokenPrice> {
    let model = model.trim().to_lowercase();
    longest_match(&model, configured.iter().map(|(glob, price)| (glob.as_str(), *price)))
}

fn table_prices(
    row: &'static (f64, f64, f64, f64, &str),
) -> impl Iterator<Item = (&'static str, TokenPrice)> {
    let (input, cached_input, cache_write, output, globs) = *row;
    let price = TokenPrice { input, output, cached_input, cache_write };
    globs.split(' ').map(move |glob| (glob, price))
}

fn longest_match<'a>(
    model: &str,
    prices: impl Iterator<Item = (&'a str, TokenPrice)>,
) -> Option<TokenPrice> {
    let name = model.rsplit('/').next().unwrap_or(model);
    let is_match = |glob: &str| {
        let glob = glob.to_lowercase();
        is_glob_match(&glob, model) || is_glob_match(&glob, name)
    };
    // The first of equally long globs applies, and `max_by_key` takes the last.
    let matching: Vec<_> = prices.filter(|(glob, _)| is_match(glob)).collect();
    matching.into_iter().rev().max_by_key(|(glob, _)| glob.len()).map(|(_, price)| price)
}

/// Returns true if a glob matches a whole text. It backtracks to the last `*` only, so that the
/// work is bounded by the product of the lengths.
fn is_glob_match(glob: &str, text: &str) -> bool {
    let (glob, text) = (glob.as_bytes(), text.as_bytes());
    let (mut at_glob, mut at_text) = (0, 0);
    let mut star = None;
    while at_text < text.len() {
        if glob.get(at_glob) == Some(&b'*') {
            star = Some((at_glob, at_text));
            at_glob += 1;
        } else if glob.get(at_glob) == Some(&text[at_text]) {
            (at_glob, at_text) = (at_glob + 1, at_text + 1);
        } else if let Some((at_star, taken)) = star {
            star = Some((at_star, taken + 1));
            (at_glob, at_text) = (at_star + 1, taken + 1);
        } else {
            return false;
        }
    }
    glob[at_glob..].iter().all(|&rest| rest == b'*')
}

/// Returns true for a server on this machine or in the local network.
fn is_local_server(endpoint: &ModelEndpoint) -> bool {
    let url = Url::parse(endpoint.base_url.trim()).ok();
    let host = url.as_ref().and_then(Url::host_str).unwrap_or("");
    match host.trim_matches(['[', ']']).parse() {
        Ok(IpAddr::V4(ip)) => ip.is_loopback() || ip.is_private() || ip.is_link_local(),
        Ok(IpAddr::V6(ip)) => ip.is_loopback() || ip.is_unique_local(),
        Err(_) => host == "localhost" || host.ends_with(".localhost") || host.ends_with(".local"),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    const OPENAI: &str = "https://api.openai.com/v1";

    fn input(protocol: ProviderProtocol, base_url: &str, model: &str) -> Option<f64> {
        of(&ModelEndpoint::new(protocol, base_url, model), &[]).map(|price| price.input)
    }

    #[test]
    fn the_longest_glob_wins_and_unknown_models_have_no_price() {
        let rows = [
            ("gpt-5", Some(1.25)),
            ("gpt-5-2025-08-07", Some(1.25)),
            ("GPT-5-Mini", Some(0.25)),
            ("openai/gpt-5-nano", Some(0.05)),
            ("gpt-5.1-codex", Some(1.25)),
            ("gpt-5.1-codex-mini", Some(0.25)),
            ("claude-sonnet-4-5-20250929", Some(3.0)),
            ("claude-opus-4-20250514", Some(15.0)),
            ("claude-opus-4-5", Some(5.0)),
            ("models/gemini-2.5-flash", Some(0.30)),
            ("gpt-5.9-unheard-of", None),
            ("gpt-4o-audio-preview", None),
            ("mistral-small:24b", None),
            ("", None),
        ];
        for (model, want) in rows {
            assert_eq!(input(ProviderProtocol::OpenAiChat, OPENAI, model), want, "{model}");
        }
    }

    #[test]
    fn what_runs_at_home_is_free() {
        let rows = [
            (ProviderProtocol::Ollama, "https://ollama.example", "gpt-5", Some(0.0)),
            (ProviderProtocol::OpenAiChat, "http://localhost:8080/v1", "qwen", Some(0.0)),
            (ProviderProtocol::OpenAiChat, "http://[::1]:8080/v1", "qwen", Some(0.0)),
            (ProviderProtocol::OpenAiChat, "http://192.168.1.7/v1", "qwen", Some(0.0)),
            (ProviderProtocol::OpenAiResponses, "http://box.local/v1", "qwen", Some(0.0)),
            (ProviderProtocol::OpenAiChat, "https://openrouter.ai/api/v1", "qwen/qwen3", None),
            (ProviderProtocol::OpenAiChat, "https://notlocalhost/v1", "qwen", None),
            // A relay on this machine passes the bill on.
            (ProviderProtocol::OpenAiChat, "http://localhost:4000", "gpt-5", Some(1.25)),
        ];
        for (protocol, base_url, model, want) in rows {
            assert_eq!(input(protocol, base_url, model), want, "{base_url} {model}");
        }
    }

    #[test]
    fn what_the_person_says_comes_first() {
        let price = |input| TokenPrice { input, ..FREE };
        let configured = [
            ("*".to_owned(), price(1.0)),
            ("Acme/*".to_owned(), price(2.0)),
            ("acme/*".to_owned(), price(3.0)),
            ("gpt-*".to_owned(), price(4.0)),
        ];
        let rows = [("x", 1.0), ("acme/y", 2.0), ("gpt-5", 4.0)];
        for (model, want) in rows {
            for protocol in [ProviderProtocol::OpenAiChat, ProviderProtocol::Ollama] {
                let endpoint = ModelEndpoint::new(protocol, OPENAI, model);
                assert_eq!(
                    of(&endpoint, &configured).map(|price| price.input),
                    Some(want),
                    "{model}"
                );
            }
        }
    }

    #[test]
    fn globs_match_whole_texts() {
        let rows = [
            ("a", "a", true),
            ("a", "ab", false),
            ("*", "", true),
            ("a*", "a", true),
            ("*a", "ba", true),
            ("a*c", "abbc", true),
            ("a*b*c", "axbxc", true),
            ("a*b*c", "axc", false),
            ("**", "x", true),
            ("", "x", false),
        ];
        for (glob, text, want) in rows {
            assert_eq!(is_glob_match(glob, text), want, "{glob} {text}");
        }
        let (glob, text) = ("*a".repeat(2_000) + "b", "a".repeat(20_000));
        assert!(!is_glob_match(&glob, &text));
    }

    #[test]
    fn every_row_is_sensible_and_stands_once() {
        let mut seen = HashSet::new();
        for (glob, price) in TABLE.iter().flat_map(table_prices) {
            let TokenPrice { input, output, cached_input, cache_write } = price;
            assert!(seen.insert(glob), "{glob} stands twice");
            assert!(glob == glob.to_lowercase() && !glob.is_empty());
            assert!(0.0 < cached_input && cached_input <= input && input <= cache_write, "{glob}");
            assert!(input <= output, "{glob}");
        }
    }
}
