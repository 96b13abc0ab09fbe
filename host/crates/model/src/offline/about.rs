//! What the stand-in says about itself.

use super::fill::Missing;
use super::fill::params;
use super::profile::split_name;
use crate::chat::ToolDefinition;

/// How many tools are named as examples: a list that is read, not scrolled.
const TOOLS_MAX: usize = 8;

/// Longest piece of an author's description that is repeated.
const ABOUT_CHARS_MAX: usize = 100;

/// How many values of a choice are offered.
const CHOICES_MAX: usize = 12;

/// How to get a real model.
const HOW_TO_GET_A_MODEL: &str = "For conversation, connect a language model: name it with --model, \
    and set OPENAI_API_KEY, or OPENAI_BASE_URL for a server other than OpenAI's. A [model.NAME] \
    table of the configuration file does the same for good.";

/// Says what this is, what it can do and how to have more.
pub(super) fn help(tools: &[ToolDefinition]) -> String {
    let mut text = String::from(
        "I am not a language model. I compare your words with the tools at hand and call the one \
         that fits.\n",
    );
    if tools.is_empty() {
        text.push_str("There are no tools at hand yet.\n");
    } else {
        text.push_str("You could say:\n");
        for tool in tools.iter().take(TOOLS_MAX) {
            text.push_str(&format!("- {}\n", example(tool)));
        }
        if tools.len() > TOOLS_MAX {
            text.push_str(&format!("- and so on, for {} tools in all\n", tools.len()));
        }
    }
    // Without the empty line it would belong to the last entry of the list.
    text.push('\n');
    text.push_str(HOW_TO_GET_A_MODEL);
    text
}

/// Says that a sentence is longer than what is read.
pub(super) fn too_long(bytes_max: usize) -> String {
    format!(
        "I am not a language model, and I read at most {bytes_max} bytes at once. \
         {HOW_TO_GET_A_MODEL}"
    )
}

/// Asks for what is missing.
pub(super) fn question(tool: &ToolDefinition, missing: &[Missing]) -> String {
    let wanted: Vec<String> = missing.iter().map(wanted).collect();
    format!("To use {} I need: {}.", shown(&tool.name), wanted.join("; "))
}

fn wanted(missing: &Missing) -> String {
    let name = split_name(&missing.name).to_lowercase();
    let about = first_sentence(&missing.about);
    let mut text = if about.is_empty() { name } else { format!("{name} ({about})") };
    if !missing.choices.is_empty() {
        let choices: Vec<&str> =
            missing.choices.iter().take(CHOICES_MAX).map(String::as_str).collect();
        text.push_str(&format!(", one of {}", choices.join(", ")));
    }
    text
}

/// Returns words that would call a tool, with what it is for.
fn example(tool: &ToolDefinition) -> String {
    let name = tool.name.split_once("__").map_or(tool.name.as_str(), |(_, name)| name);
    let mut words = split_name(name).to_lowercase();
    for param in params::of(&tool.parameters, &tool.parameters) {
        if param.required {
            words.push_str(&format!(" <{}>", param.shown_name()));
        }
    }
    match first_sentence(&tool.description).as_str() {
        "" => format!("\"{words}\""),
        about => format!("\"{words}\": {about}"),
    }
}

/// Returns a tool's name as people know it.
pub(super) fn shown(name: &str) -> String {
    name.replacen("__", ".", 1)
}

/// Returns the first sentence of a description, without its full stop and cut where it is long.
fn first_sentence(text: &str) -> String {
    let line = text.trim().lines().next().unwrap_or("");
    let sentence = line.split_once(". ").map_or(line, |(first, _)| first);
    let mut short: String = sentence.chars().take(ABOUT_CHARS_MAX).collect();
    if short.len() < sentence.len() {
        short.push('…');
    }
    short.trim_end_matches('.').to_owned()
}
