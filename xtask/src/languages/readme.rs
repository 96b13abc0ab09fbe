//! Five minutes: the commands of each SDK's README, typed as they stand, end with a working tool.

use std::{fs, path::PathBuf, process::Command};

use anyhow::{Context, Result, ensure};

use super::{
    PluginLanguage,
    program::{Attempt, LanguageProgram, setback_of},
};
use crate::process::repository_root;

/// Most commands that an author types before a tool of their own answers.
const COMMANDS_MAX: usize = 5;

/// Types the commands of the README. Returns how many there are.
pub(super) fn type_readme(language: PluginLanguage, program: &LanguageProgram) -> Attempt<usize> {
    let text = fs::read_to_string(readme(language))?;
    let commands = first_commands(&text, language.word)?;
    let folder = program.folder().join(format!("readme-{}", language.word));
    fs::create_dir(&folder)?;
    eprintln!("{}: the {} commands of its README …", language.name, commands.len());
    let mut shell = Command::new("sh");
    shell.args(["-e", "-c", &commands.join("\n")]).current_dir(&folder);
    // A home of its own, because the projects of all READMEs have the same name.
    let home = program.own_home(&format!("readme-{}", language.word))?;
    let output = program.with_path(&mut shell, &home)?.output()?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match output.status.success() {
        true => Ok(commands.len()),
        false => Err(setback_of(&text(&output.stderr), &text(&output.stdout))),
    }
}

/// The README of a language's SDK.
fn readme(language: PluginLanguage) -> PathBuf {
    let folder = match language.word {
        "ts" => "js",
        "cpp" => "c",
        word => word,
    };
    repository_root().join("sdk").join(folder).join("README.md")
}

/// The commands of the first block, in the language: a comment such as `# or --lang cpp` tells that
/// the block is for another language too.
fn first_commands(readme: &str, word: &str) -> Result<Vec<String>> {
    let block = readme.split_once("```sh\n").and_then(|(_, rest)| rest.split_once("```"));
    let (block, _) = block.context("the README has no block of commands")?;
    let mut commands = Vec::new();
    for line in block.lines().filter(|line| !line.trim().is_empty()) {
        let (command, comment) = line.split_once(" # ").unwrap_or((line, ""));
        let is_chosen = comment.contains(&format!("--lang {word}"));
        let command = match (is_chosen, command.split_once("--lang ")) {
            (true, Some((before, after))) => {
                let rest = after.trim_start_matches(|c: char| !c.is_whitespace());
                format!("{before}--lang {word}{rest}")
            }
            _ => command.to_owned(),
        };
        commands.push(command.trim_end().to_owned());
    }
    ensure!(commands.len() <= COMMANDS_MAX, "the README has more than {COMMANDS_MAX} commands");
    Ok(commands)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::languages::LANGUAGES;

    #[test]
    fn every_readme_begins_with_few_commands_that_make_and_call_a_tool() {
        for language in LANGUAGES {
            let text = fs::read_to_string(readme(language)).unwrap();
            let commands = first_commands(&text, language.word).unwrap().join("\n");
            for part in ["sallyport plugin new", "plugin build", "plugin test", " call "] {
                assert!(commands.contains(part), "{}: {part}: {commands}", language.name);
            }
            assert!(commands.contains(&format!("--lang {}", language.word)), "{commands}");
        }
    }

    #[test]
    fn a_comment_chooses_the_language() {
        let readme = "x\n```sh\nsallyport plugin new a --lang c   # or --lang cpp\ncd a\n```\n";
        let first = |word| first_commands(readme, word).unwrap().remove(0);
        assert_eq!(first("c"), "sallyport plugin new a --lang c");
        assert_eq!(first("cpp"), "sallyport plugin new a --lang cpp");
        assert!(first_commands("no block", "c").is_err());
    }
}
