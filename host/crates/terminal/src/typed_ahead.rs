//! What the user types while the program is busy.

/// Inputs that wait for the program, and the line that is being typed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TypedAhead {
    /// Complete inputs, the first one first.
    pub queued: Vec<String>,
    /// The text of the line.
    pub line: String,
    /// The cursor's place in the line, in bytes, at a character's boundary.
    pub cursor: usize,
}

impl TypedAhead {
    /// Whether nothing was typed.
    pub fn is_empty(&self) -> bool {
        self.queued.is_empty() && self.line.is_empty()
    }

    /// Removes the first queued input.
    pub fn take_first(&mut self) -> Option<String> {
        (!self.queued.is_empty()).then(|| self.queued.remove(0))
    }

    /// Removes the last queued input and puts it in front of the line, so that it can be changed.
    /// Returns `false` if there is none.
    pub fn take_back_last(&mut self) -> bool {
        let Some(last) = self.queued.pop() else { return false };
        let line = self.take_line();
        self.set_line(join_lines(&[last, line]));
        true
    }

    /// Puts all queued inputs into the line, so that none is sent without another Enter.
    pub fn take_back_all(&mut self) {
        while self.take_back_last() {}
    }

    /// Removes the text of the line.
    pub fn take_line(&mut self) -> String {
        self.cursor = 0;
        std::mem::take(&mut self.line)
    }

    /// Replaces the line. The cursor is at its end.
    pub fn set_line(&mut self, line: String) {
        self.cursor = line.len();
        self.line = line;
    }
}

fn join_lines(lines: &[String]) -> String {
    let lines: Vec<_> = lines.iter().filter(|line| !line.is_empty()).map(String::as_str).collect();
    lines.join("\n")
}
