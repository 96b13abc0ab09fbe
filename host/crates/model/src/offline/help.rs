//! The texts in which the matcher describes itself.

use sallyport_schedule::TimeExpressionError;

use super::{
    language,
    matching::{MatchDecision, ToolCallPlan, ToolCatalog},
    params::{ParameterKind, ToolParameter},
    tool::{self, CatalogTool},
};

/// The number of examples in a help text.
const EXAMPLES: usize = 3;

/// Most tools that are tried for examples.
const TRIED_MAX: usize = 8;

/// Longest excerpt of an author's description, in characters.
const ABOUT_CHARS_MAX: usize = 100;

/// Most values of a choice that are listed.
const CHOICES_MAX: usize = 12;

/// The introduction of the matcher.
const INTRODUCTION: &str = "I am not a language model. I match simple requests in English with the \
    installed tools, and I call a tool only when I understand every word.";

/// Instructions for connecting a language model.
const HOW_TO_GET_A_MODEL: &str = "For conversation, connect a language model: name it with --model, \
    and set OPENAI_API_KEY, or OPENAI_BASE_URL for a server other than OpenAI's. A [model.NAME] \
    table of the configuration file does the same for good.";

/// Returns the help text: an introduction, examples close to the user's text, and how to connect a
/// model.
pub(super) fn help_text(catalogue: &ToolCatalog<'_>, input: &str) -> String {
    let mut text = String::new();
    if is_foreign_language(input) {
        text.push_str("I only understand English, and this looks like another language.\n\n");
    }
    text.push_str(INTRODUCTION);
    text.push('\n');
    let nearest = catalogue.tools_by_relevance(input).into_iter().take(TRIED_MAX);
    let examples: Vec<String> =
        nearest.filter_map(|tool| example_sentence(catalogue, tool)).take(EXAMPLES).collect();
    match (catalogue.tools.len(), examples.is_empty()) {
        (0, _) => text.push_str("No tools are installed yet.\n"),
        (_, true) => {}
        (all, false) => {
            text.push_str("You could say, for example:\n");
            examples.iter().for_each(|example| text.push_str(&format!("- {example}\n")));
            text.push_str(&format!("\n{all} tools are installed; /tools lists them in a chat.\n"));
        }
    }
    // Without the empty line, the text would belong to the last list entry.
    text.push('\n');
    text.push_str(HOW_TO_GET_A_MODEL);
    text
}

/// Returns the message for a sentence that is too long.
pub(super) fn too_long_message(bytes_max: usize) -> String {
    format!(
        "I am not a language model, and I read at most {bytes_max} bytes at once. \
         {HOW_TO_GET_A_MODEL}"
    )
}

/// Returns the message for a time with a day that does not exist.
pub(super) fn impossible_moment_message(
    plan: &ToolCallPlan<'_>,
    error: &TimeExpressionError,
) -> String {
    let hint = error.hint().map(|hint| format!("; {hint}")).unwrap_or_default();
    format!("{} cannot do that: {error}{hint}.", display_tool_name(&plan.tool.name))
}

/// Returns a question for the missing arguments.
pub(super) fn missing_arguments_question(plan: &ToolCallPlan<'_>) -> String {
    let parameter_texts: Vec<String> = plan.missing.iter().map(describe_parameter).collect();
    format!("To use {} I need: {}.", display_tool_name(&plan.tool.name), parameter_texts.join("; "))
}

fn describe_parameter(param: &ToolParameter<'_>) -> String {
    let about = first_sentence(param.description);
    let name = param.words.join(" ");
    let mut text = if about.is_empty() { name } else { format!("{name} ({about})") };
    if let ParameterKind::Choice(values) = &param.kind {
        let choices = values.iter().take(CHOICES_MAX).map(|value| match value.as_str() {
            Some(text) => text.to_owned(),
            None => value.to_string(),
        });
        text.push_str(&format!(", one of {}", choices.collect::<Vec<_>>().join(", ")));
    }
    text
}

/// Returns a sentence that calls a tool; `None` if the matcher would not understand it.
fn example_sentence(catalogue: &ToolCatalog<'_>, tool: &CatalogTool<'_>) -> Option<String> {
    let name = sallyport_lexical::split_into_words(tool::own_tool_name(&tool.definition.name));
    let name = name.collect::<Vec<_>>().join(" ");
    let plugin = tool.definition.name.split_once("__").map_or("", |(plugin, _)| plugin);
    let values: Option<Vec<&str>> =
        tool.params.iter().filter(|param| param.is_required).map(sample_value).collect();
    let values = values?.concat();
    let named = [name.clone(), format!("{name} {}", plugin.replace('-', " "))];
    let sentences = named.map(|name| format!("{name}{values}"));
    sentences.into_iter().find(|sentence| match catalogue.match_text(sentence) {
        MatchDecision::Call(plans) => {
            plans.len() == 1 && plans[0].tool.name == tool.definition.name
        }
        _ => false,
    })
}

fn sample_value<'p>(param: &ToolParameter<'p>) -> Option<&'p str> {
    Some(match &param.kind {
        ParameterKind::Url => " https://example.com",
        ParameterKind::Path => " /notes/todo.txt",
        ParameterKind::Choice(values) => values.first()?.as_str().map(|_| "")?,
        ParameterKind::Duration(_) => " for 5 minutes",
        ParameterKind::Moment => " tomorrow at 9",
        ParameterKind::Number => " 5",
        ParameterKind::Place => " in Paris",
        ParameterKind::Code => " \"6 * 7\"",
        ParameterKind::Content | ParameterKind::Label | ParameterKind::Text => " \"call mum\"",
        ParameterKind::Fixed(_) => "",
        ParameterKind::Boolean | ParameterKind::Other => return None,
    })
}

/// Returns a tool's name in the form that users know.
pub(super) fn display_tool_name(name: &str) -> String {
    name.replacen("__", ".", 1)
}

/// Returns true if a text is probably not English: most of its letters are not ASCII, or it has
/// three words or more and at most a quarter of them is known.
fn is_foreign_language(input: &str) -> bool {
    let words: Vec<String> = input
        .split(|c: char| !c.is_alphanumeric() && c != '\'')
        .filter(|word| word.contains(char::is_alphabetic))
        .map(str::to_lowercase)
        .collect();
    let letters = input.chars().filter(|c| c.is_alphabetic());
    let (ascii, other): (Vec<char>, Vec<char>) = letters.partition(char::is_ascii);
    let known = words.iter().filter(|word| language::is_known_word(word)).count();
    other.len() > ascii.len() || (words.len() >= 3 && known * 4 <= words.len())
}

/// Returns the first sentence of a description, shortened and without its full stop.
fn first_sentence(text: &str) -> String {
    let line = text.trim().lines().next().unwrap_or("");
    let sentence = line.split_once(". ").map_or(line, |(first, _)| first);
    let mut short: String = sentence.chars().take(ABOUT_CHARS_MAX).collect();
    if short.len() < sentence.len() {
        short.push('…');
    }
    short.trim_end_matches('.').to_owned()
}
