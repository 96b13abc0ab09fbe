//! What the documents show is what the program does: the example of the policy on one page is run,
//! and so are the commands of the policy's page that change one. The lists of commands and of keys
//! are complete.

use std::{collections::BTreeSet, fs};

use serde_json::Value;

use crate::support::{Home, home::repository};

/// The policy by example.
const ONE_PAGE: &str = "docs/policy-on-one-page.md";

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

fn page(file: &str) -> String {
    fs::read_to_string(repository().join(file)).unwrap()
}

/// The text of a chapter, which ends where the next of its level begins.
fn chapter_text(file: &str, title: &str) -> String {
    let text = page(file);
    let heading = format!("\n## {title}\n");
    let (_, chapter) = text.split_once(&heading).unwrap_or_else(|| panic!("no chapter {title}"));
    chapter.split("\n## ").next().unwrap().to_owned()
}

fn chapter(file: &str, title: &str) -> Vec<Block> {
    blocks(&chapter_text(file, title))
}

/// What stands in code at the beginning of each row of a chapter's tables.
fn rows(file: &str, title: &str) -> BTreeSet<String> {
    let text = chapter_text(file, title);
    let rows = text.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    rows.map(str::to_owned).collect()
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
fn the_policy_on_one_page_runs() {
    let chapter = chapter(ONE_PAGE, "An example");
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

#[test]
fn the_commands_that_change_a_policy_are_as_its_page_shows_them() {
    let title = "`policy grant`, `policy revoke`, `policy learn`";
    let shown = chapter("docs/policy.md", title);
    let shown = shown.iter().filter(|block| block.language == "console");
    let shown: Vec<_> = shown.flat_map(|block| commands(&block.text)).collect();
    let home = Home::new().plugins(&["clock", "files", "weather"]).policy("# mine\n");
    let (mut grants, mut revokes) = (0, 0);
    for (command, _) in shown {
        let words = words(&command);
        let args: Vec<&str> = words[1..].iter().map(String::as_str).collect();
        match args[1] {
            "grant" => grants += 1,
            "revoke" => revokes += 1,
            // It would call a service outside; what it does is shown by tests with one of their
            // own.
            other => {
                assert_eq!(other, "learn", "{command}");
                continue;
            }
        }
        home.run(&args).ended(0).answers(&["Saved"]);
    }
    assert!(grants >= 5 && revokes >= 5, "{grants} {revokes}");
    let left = fs::read_to_string(home.path("policy.toml")).unwrap();
    let grant = "net = [\"GET https://geocoding-api.open-meteo.com/v1/search\"]";
    let rule = "[[rule]]\ntool = \"weather.*\"\ndecision = \"allow\"";
    let want =
        format!("# mine\n\n[plugin.weather]\n{grant}\nlimits = {{ time = \"10s\" }}\n\n{rule}");
    assert_eq!(left.trim(), want, "{left}");
}

#[test]
fn the_limits_for_all_plugins_are_as_the_policys_page_shows_them() {
    let shown = chapter("docs/policy.md", "`limits`");
    let limits = shown.iter().find(|block| block.text.starts_with("[limits]")).expect("limits");
    let home = Home::new().plugins(&["clock"]).policy(&limits.text);
    let told = ["may be called 30 times a minute", "may run 4 calls at a time"];
    home.run(&["policy", "check"]).ended(0).answers(&told);
}

#[test]
fn the_policy_of_plugins_that_do_more_is_sound() {
    let chapter = chapter(ONE_PAGE, "Plugins that do more");
    let policy = chapter.iter().find(|block| block.language == "toml").expect("a policy");
    let home = Home::new().policy(&policy.text);
    home.run(&["policy", "check"]).ended(0).answers(&["is sound"]);
}

/// The keys that a JSON Schema of a file knows: `chat.system`. A `*` is any name.
fn add_keys(schema: &Value, path: &str, keys: &mut BTreeSet<String>) {
    if schema["type"] != "object" {
        keys.insert(path.trim_start_matches('.').to_owned());
        return;
    }
    for (name, inner) in schema["properties"].as_object().into_iter().flatten() {
        add_keys(inner, &format!("{path}.{name}"), keys);
    }
    let any = &schema["additionalProperties"];
    if any.is_object() {
        add_keys(any, &format!("{path}.*"), keys);
    }
}

#[test]
fn every_key_of_the_configuration_is_on_its_page() {
    let schema = Home::new().run(&["schema", "config"]).ended(0).json();
    let mut keys = BTreeSet::new();
    add_keys(&schema, "", &mut keys);
    // On the page a name of your choice is in capitals: `model.NAME.key`.
    let is_any = |part: &str| part.chars().all(|letter| letter.is_ascii_uppercase());
    let with_star = |key: &String| {
        let parts: Vec<&str> =
            key.split('.').map(|part| if is_any(part) { "*" } else { part }).collect();
        parts.join(".")
    };
    let rows = rows("docs/configuration.md", "Every key");
    assert_eq!(rows.iter().map(with_star).collect::<BTreeSet<String>>(), keys);
}

#[test]
fn every_command_is_on_its_page() {
    let home = Home::new();
    home.run(&["man", "pages"]).ended(0);
    let files = fs::read_dir(home.user_path("pages")).unwrap();
    let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    let commands = names.map(|name| name.trim_end_matches(".1").replace('-', " "));
    let commands: Vec<String> = commands.collect();
    let page = page("docs/commands.md");
    let shown: Vec<&str> = page.lines().filter_map(|line| line.strip_prefix("| `")).collect();
    for command in &commands {
        let is_group = commands.iter().any(|other| other.starts_with(&format!("{command} ")));
        let is_shown = shown
            .iter()
            .filter_map(|row| row.strip_prefix(command.as_str()))
            .any(|rest| rest.starts_with([' ', '`']));
        assert!(is_group || is_shown, "docs/commands.md lacks {command}");
    }
    assert!(commands.len() > 40, "{commands:?}");
}
