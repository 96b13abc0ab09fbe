//! The first start as a film and as a transcript: an empty home, the guided setup, and the first
//! answer of a model with a granted tool.

use std::{fs, os::unix::fs::symlink, path::Path, time::Duration};

use anyhow::{Context, Result};

use super::{
    DemoServices, DemoTerminal, TALL_WINDOW, WindowSize, command_in_home, film::Film, write_to_page,
};
use crate::{build::plugin_output_folder, process::repository_root};

/// The film, and the page with the transcript.
const FILM: &str = "docs/images/first-start.svg";
const PAGE: &str = "docs/getting-started.md";

/// The window of the film.
const FILM_WINDOW: WindowSize = (28, 84);

/// Plugins that the setup offers.
const PLUGINS: [&str; 3] = ["clock", "files", "weather"];

/// The key that is typed. The services accept any.
const KEY: &str = "sk-demo";

/// How long the film shows a question, and the end.
const QUESTION_SHOWN: Duration = Duration::from_millis(1_500);
const END_SHOWN: Duration = Duration::from_secs(5);

/// What is typed: after which text of the screen, and how often it is there by then.
const SCRIPT: [(&str, usize, &str); 10] = [
    ("Enter for yes", 1, "\r"),
    ("Enter to skip", 1, "openai\r"),
    ("Key of openai", 1, "\r"),
    ("(k)?", 1, "\r"),
    ("Enter for demo", 1, "\r"),
    ("Write this?", 1, "y\r"),
    ("Enter for none", 1, "weather\r"),
    ("Write this?", 2, "y\r"),
    ("openai> ", 1, "weather in Paris?\r"),
    ("[y] once", 1, "y"),
];

/// A first start that was played.
pub(super) struct FirstStart {
    film: Film,
    pub(super) transcript: String,
}

/// Plays the first start twice: in a high window for the transcript, in a common one for the film.
pub(super) fn play_first_start(program: &Path) -> Result<FirstStart> {
    let (_, transcript) = play_in_window(program, TALL_WINDOW)?;
    let (film, _) = play_in_window(program, FILM_WINDOW)?;
    Ok(FirstStart { film, transcript })
}

impl FirstStart {
    /// Writes the film and the transcript into the documents.
    pub(super) fn write(&self) -> Result<()> {
        let (rows, columns) = FILM_WINDOW;
        let size = (usize::from(columns), usize::from(rows));
        let svg = self.film.to_svg("The first start of Sallyport, in a terminal", size);
        fs::write(repository_root().join(FILM), svg).context("cannot write the film")?;
        write_to_page(PAGE, &self.transcript)
    }
}

/// Plays it in a window. Returns the film, and the screen at the end with the number of keys.
fn play_in_window(program: &Path, window: WindowSize) -> Result<(Film, String)> {
    let services = DemoServices::start()?;
    let folder = tempfile::Builder::new().prefix("home").rand_bytes(2).tempdir()?;
    let home = folder.path();
    prepare_home(home, &services)?;
    let mut command = command_in_home(program, home, &home.join("plugins"));
    command.env("OPENAI_BASE_URL", services.base_url());
    let mut terminal = DemoTerminal::start(&mut command, window)?;
    for (text, times, keys) in SCRIPT {
        terminal.wait_for(text, times)?;
        terminal.show_for(QUESTION_SHOWN)?;
        if text.starts_with("Key") {
            terminal.press_keys(KEY)?;
        }
        terminal.type_visibly(keys)?;
    }
    terminal.wait_for("umbrella", 1)?;
    terminal.wait_for("openai> ", 2)?;
    terminal.show_for(END_SHOWN)?;
    let (mut film, keys) = terminal.take_film();
    terminal.type_line("/quit")?;
    let shown_home = home.display().to_string();
    film.replace_text(&shown_home, "~");
    let screen = terminal.wait_for_exit()?.replace(&shown_home, "~");
    let typed = keys - KEY.len() + "sallyport\n".len();
    let screen = format!("$ sallyport\n{screen}\n\n({typed} keys, besides the provider's)");
    Ok((film, screen))
}

/// Writes the plugins and their settings into a home. The weather comes from this machine.
fn prepare_home(home: &Path, services: &DemoServices) -> Result<()> {
    for folder in ["plugins", "sallyport"] {
        fs::create_dir_all(home.join(folder))?;
    }
    for plugin in PLUGINS {
        symlink(plugin_output_folder(plugin), home.join("plugins").join(plugin))?;
    }
    let origin = services.origin();
    let settings =
        format!("[settings.weather]\ngeocoding_url = \"{origin}\"\nforecast_url = \"{origin}\"\n");
    Ok(fs::write(home.join("sallyport/sallyport.toml"), settings)?)
}
