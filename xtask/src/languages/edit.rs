//! The time from saving a source file to the new answer in a chat that runs, with `plugin dev`.

use std::{
    fs,
    io::{Read, Write},
    path::Path,
    process::{Child, ChildStdin, Command, Stdio},
    sync::{Arc, Mutex, PoisonError},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};

use super::{
    PluginLanguage,
    program::{Attempt, LanguageProgram},
};

/// The question. The offline model understands it by the tool's name.
const QUESTION: &str = "tell colour\n";

/// The answers before and after the change.
const COLOURS: [&str; 2] = ["turquoise", "vermilion"];

/// How often the question is asked. The figure is too large by as much at most.
const ASK_EVERY: Duration = Duration::from_millis(200);

/// Longest wait for an answer. The first build compiles dependencies.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(15 * 60);

/// The languages that are measured: a compiled one and the slowest to build. Each with the file of
/// the project and its source, in which `COLOUR` is the answer.
const SOURCES: [(&str, &str, &str); 2] = [
    (
        "rust",
        "src/lib.rs",
        "use sallyport_sdk::prelude::*;\n\n/// Tells the colour.\n#[tool(read_only)]\nfn \
         tell_colour() -> String {\n    \"COLOUR\".to_owned()\n}\n\nsallyport_sdk::export_plugin!(tools \
         = [tell_colour]);\n",
    ),
    (
        "python",
        "src/edit_python.py",
        "from sallyport import tool\n\n\n@tool(read_only=True)\ndef tell_colour() -> str:\n    \
         \"\"\"Tells the colour.\"\"\"\n    return \"COLOUR\"\n",
    ),
];

/// Measures the time. `None` if the language is not measured.
pub(super) fn time_edit(
    language: PluginLanguage,
    program: &LanguageProgram,
) -> Option<Attempt<Duration>> {
    let (_, file, source) = SOURCES.into_iter().find(|(word, ..)| *word == language.word)?;
    Some(measure(language, program, file, source))
}

fn measure(
    language: PluginLanguage,
    program: &LanguageProgram,
    file: &str,
    source: &str,
) -> Attempt<Duration> {
    let name = format!("edit-{}", language.word);
    program.expect(
        language,
        program.folder(),
        &["plugin", "new", &name, "--lang", language.word],
    )?;
    let project = program.folder().join(&name);
    let (file, [before, after]) =
        (project.join(file), COLOURS.map(|colour| source.replace("COLOUR", colour)));
    fs::remove_file(project.join("cases.json"))?;
    fs::write(&file, before)?;
    program.expect(language, &project, &["plugin", "build", "--get-tools"])?;
    eprintln!("{}: sallyport plugin dev, and a chat beside it …", language.name);
    // A home of its own, because the tool has the same name in every language.
    let home = &program.own_home(&name)?;
    let start =
        |folder: &Path, args: &[&str]| EditedProgram::start(program.command(folder, args), home);
    let mut dev = start(&project, &["plugin", "dev", "--yes"])?;
    dev.wait_for("Built ", None)?;
    let mut chat = start(program.folder(), &["chat"])?;
    chat.wait_for(COLOURS[0], Some(QUESTION))?;
    let saved = Instant::now();
    fs::write(&file, after)?;
    chat.wait_for(COLOURS[1], Some(QUESTION))?;
    Ok(saved.elapsed())
}

/// A program that runs beside this one. It ends when this is dropped.
struct EditedProgram {
    child: Child,
    input: ChildStdin,
    output: Arc<Mutex<String>>,
}

impl EditedProgram {
    fn start(mut command: Command, home: &Path) -> Result<Self> {
        command.env("SALLYPORT_HOME", home);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().with_context(|| format!("cannot start {command:?}"))?;
        let input = child.stdin.take().context("the program has no input")?;
        let output = Arc::new(Mutex::new(String::new()));
        collect(child.stdout.take(), &output);
        collect(child.stderr.take(), &output);
        Ok(Self { child, input, output })
    }

    /// Waits until the program has printed a text. Types a line again and again meanwhile.
    fn wait_for(&mut self, text: &str, line: Option<&str>) -> Result<()> {
        let began = Instant::now();
        while began.elapsed() < ANSWER_TIME_MAX {
            if self.printed().contains(text) {
                return Ok(());
            }
            if let Some(status) = self.child.try_wait()? {
                bail!("a program ended with {status}:\n{}", self.printed());
            }
            if let Some(line) = line {
                self.input.write_all(line.as_bytes())?;
            }
            thread::sleep(ASK_EVERY);
        }
        bail!("{text:?} was not printed in {ANSWER_TIME_MAX:?}, but:\n{}", self.printed())
    }

    fn printed(&self) -> String {
        self.output.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for EditedProgram {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Collects what a program prints, until it ends.
fn collect(stream: Option<impl Read + Send + 'static>, output: &Arc<Mutex<String>>) {
    let (Some(mut stream), output) = (stream, Arc::clone(output)) else { return };
    thread::spawn(move || {
        let mut piece = [0; 4096];
        while let Ok(length @ 1..) = stream.read(&mut piece) {
            let text = String::from_utf8_lossy(&piece[..length]);
            output.lock().unwrap_or_else(PoisonError::into_inner).push_str(&text);
        }
    });
}
