//! What the documents show is what the program does: the policy chapter of the README is run.

use std::fs;

use crate::support::{Home, home::repository};

/// A block of a document between fences, with the language that its first fence names.
struct Block {
    language: String,
    text: String,
}

fn blocks(text: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if let Some(language) = line.strip_prefix("```") {
            let inside: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
            blocks.push(Block { language: language.to_owned(), text: inside.join("\n") });
        }
    }
    blocks
}

/// The blocks of a chapter, which ends where the next of its level begins.
fn chapter(file: &str, title: &str) -> Vec<Block> {
    let text = fs::read_to_string(repository().join(file)).unwrap();
    let heading = format!("\n## {title}\n");
    let (_, chapter) = text.split_once(&heading).unwrap_or_else(|| panic!("no chapter {title}"));
    blocks(chapter.split("\n## ").next().unwrap())
}

/// The commands of a console block, each with the output that is shown below it.
fn commands(block: &str) -> Vec<(String, String)> {
    let shown = format!("\n{block}");
    let commands = shown.split("\n$ ").skip(1);
    let pair = |part: &str| {
        let (command, output) = part.split_once('\n').unwrap_or((part, ""));
        (command.to_owned(), output.to_owned())
    };
    commands.map(pair).collect()
}

/// The words of a command line, with both kinds of quotes.
fn words(command: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quote = None;
    for letter in command.chars() {
        match (letter, quote) {
            ('\'' | '"', None) => quote = Some(letter),
            (_, Some(open)) if letter == open => quote = None,
            (' ', None) => words.push(String::new()),
            (_, _) => words.last_mut().unwrap().push(letter),
        }
    }
    words
}

#[test]
fn the_readmes_policy_chapter_runs() {
    let chapter = chapter("README.md", "The policy on one page");
    let policy = chapter.iter().find(|block| block.language == "toml").expect("a policy");
    let home = Home::new()
        .plugins(&["clock", "files", "system-info", "weather"])
        .user_file("notes/todo.txt", "milk")
        .user_file("books/one.txt", "x")
        .policy(&policy.text);
    home.run(&["policy", "check"]).answers(&["is sound"]);
    let shown = chapter.iter().filter(|block| block.language == "console");
    let shown: Vec<_> = shown.flat_map(|block| commands(&block.text)).collect();
    assert!(shown.len() >= 5, "the chapter shows {} commands", shown.len());
    for (command, output) in shown {
        let words = words(&command);
        assert_eq!(words[0], "sallyport", "{command}");
        let args: Vec<&str> = words[1..].iter().map(String::as_str).collect();
        let ran = home.run(&args);
        assert_eq!(ran.stdout.trim_end(), output.trim_end(), "{command}");
    }
}
