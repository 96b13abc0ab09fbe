//! Slash commands of other programs, with what to do here instead.

/// Words of other programs that mean the same.
#[derive(Debug, Clone, Copy)]
pub struct ForeignWord {
    /// The words, without the slash.
    pub words: &'static [&'static str],
    /// What to do here, in one line. It names slash commands, or commands of the program in
    /// backticks.
    pub hint: &'static str,
}

const fn foreign(words: &'static [&'static str], hint: &'static str) -> ForeignWord {
    ForeignWord { words, hint }
}

/// All words of other programs.
#[rustfmt::skip]
pub const FOREIGN_WORDS: &[ForeignWord] = &[
    foreign(&["permissions", "allowed-tools"], "/grants shows what each plugin may do"),
    foreign(&["allow", "grant", "add-dir"], "/grants shows what is allowed; `sallyport policy grant PLUGIN --allow TOOL` in a shell allows more"),
    foreign(&["deny", "revoke"], "`sallyport policy revoke PLUGIN --all` in a shell takes away what a plugin has"),
    foreign(&["config", "settings"], "`sallyport config show` in a shell shows all values"),
    foreign(&["login", "logout", "init", "setup"], "`sallyport setup` in a shell chooses a model and stores its key"),
    foreign(&["sessions", "history"], "`sallyport session list` in a shell lists the sessions; /session shows this one"),
    foreign(&["resume", "continue"], "`sallyport chat --continue` in a shell resumes the last session"),
    foreign(&["copy"], "/save FILE writes the session to a file"),
    foreign(&["doctor"], "`sallyport doctor` in a shell checks the installation"),
    foreign(&["context"], "/memory shows which part of the session the model receives"),
    foreign(&["mcp"], "/plugins lists the plugins and their state"),
    foreign(&["diff"], "`sallyport audit show` in a shell shows what the tools did"),
    foreign(&["status", "info"], "/session shows this session, /cost what it costs"),
    foreign(&["provider"], "/model lists the models, or switches to another one"),
    foreign(&["update", "upgrade"], "`sallyport --version` in a shell shows the version"),
];

/// Returns what to do instead of a command of another program.
pub fn foreign_word_command(word: &str) -> Option<&'static str> {
    let is_meant = |row: &&ForeignWord| row.words.iter().any(|one| one.eq_ignore_ascii_case(word));
    FOREIGN_WORDS.iter().find(is_meant).map(|row| row.hint)
}
