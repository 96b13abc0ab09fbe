//! `${VAR}` in a definition: values of the environment.
//!
//! A variable may be in the sign-in and at the start of a request's address. It is refused
//! elsewhere, because a text that the model reads or that leaves with a request must not contain
//! whatever the environment has.

use std::collections::BTreeSet;

use sallyport_policy::SourceError;

use super::place::DefinitionSource;

/// Replaces variables, and notes which there are and which are missing.
pub(super) struct VariableReader<'a> {
    source: &'a DefinitionSource<'a>,
    variable: &'a dyn Fn(&str) -> Option<String>,
    names: Vec<String>,
    missing: BTreeSet<String>,
}

impl<'a> VariableReader<'a> {
    pub(super) fn new(
        source: &'a DefinitionSource<'a>,
        variable: &'a dyn Fn(&str) -> Option<String>,
    ) -> Self {
        Self { source, variable, names: Vec::new(), missing: BTreeSet::new() }
    }

    /// Returns the text with the values of its variables. A missing one stays as it is written.
    pub(super) fn replace(&mut self, keys: &[&str], text: &str) -> Result<String, SourceError> {
        let mut replaced = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("${") {
            let (name, after) = after.split_once('}').unwrap_or(("", after));
            if !is_variable_name(name) {
                let error = self.source.error(keys, "this is not the name of a variable");
                return Err(error.with_hint("write it like ${NAME}, in capital letters"));
            }
            replaced.push_str(before);
            replaced.push_str(&self.look_up(name));
            rest = after;
        }
        replaced.push_str(rest);
        Ok(replaced)
    }

    fn look_up(&mut self, name: &str) -> String {
        if !self.names.iter().any(|known| known == name) {
            self.names.push(name.to_owned());
        }
        (self.variable)(name).filter(|value| !value.is_empty()).unwrap_or_else(|| {
            self.missing.insert(name.to_owned());
            format!("${{{name}}}")
        })
    }

    /// Refuses a variable where none may be.
    pub(super) fn refuse(&self, keys: &[&str], text: &str) -> Result<(), SourceError> {
        match text.contains("${") {
            false => Ok(()),
            true => {
                let error = self.source.error(keys, "a variable may not be here");
                let hint = "${VAR} is for \"auth_config\" and for the start of a request's \"url\"";
                Err(error.with_hint(hint))
            }
        }
    }

    /// Whether a variable is missing so far.
    pub(super) fn has_missing(&self) -> bool {
        !self.missing.is_empty()
    }

    /// All variables, and the missing ones.
    pub(super) fn finish(self) -> (Vec<String>, Vec<String>) {
        (self.names, self.missing.into_iter().collect())
    }
}

fn is_variable_name(name: &str) -> bool {
    let is_head = |byte: u8| byte.is_ascii_alphabetic() || byte == b'_';
    name.bytes().next().is_some_and(is_head)
        && name.bytes().all(|byte| is_head(byte) || byte.is_ascii_digit())
}
