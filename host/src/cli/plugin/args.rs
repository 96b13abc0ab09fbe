//! The arguments of `sallyport plugin`.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand, ValueEnum, builder::PossibleValue};
use sallyport_contract::PluginName;
use sallyport_plugin_build::SourceLanguage;

use crate::cli::{args::OutputArgs, name_kind::NameKind};

// A command about plugins.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(in crate::cli) enum PluginCommand {
    #[command(flatten)]
    Loaded(LoadedPluginCommand),
    /// Create a plugin project from a template
    New {
        /// The plugin
        #[arg(value_name = "NAME")]
        name: String,
        /// The language
        #[arg(long, value_name = "LANGUAGE")]
        lang: LanguageArg,
        /// Folder in which to create the project's folder
        #[arg(long, value_name = "DIR", default_value = ".")]
        path: PathBuf,
    },
    /// Build a plugin project into a component
    Build(BuildArgs),
    /// Run the test cases of a plugin in the sandbox
    Test(TestArgs),
    /// Install a plugin, or another version of it, after showing it
    #[command(visible_alias = "install")]
    Add(AddArgs),
    /// Install the newer version of a plugin from where it came from, after showing the difference
    Update {
        /// The plugin
        #[arg(value_name = "NAME", add = NameKind::Plugin)]
        name: PluginName,
        #[command(flatten)]
        from: UpdateArgs,
    },
    /// Compare installed plugins with what you accepted
    Verify {
        /// The plugins; all when absent
        #[arg(value_name = "NAME", add = NameKind::Plugin)]
        names: Vec<String>,
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Show how one version of a plugin differs from another
    Diff {
        /// The old one: an installed plugin, a component or a folder
        #[arg(value_name = "OLD")]
        old: String,
        /// The new one
        #[arg(value_name = "NEW")]
        new: String,
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Build a plugin project whenever it changes, and put each build into use
    Dev(DevArgs),
    /// Remove an installed plugin
    #[command(visible_alias = "rm")]
    Remove {
        /// The plugin
        #[arg(value_name = "NAME", add = NameKind::Plugin)]
        name: PluginName,
        /// Do not ask for confirmation
        #[arg(long)]
        yes: bool,
    },
}

// A command that loads plugins without changing any of them.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(in crate::cli) enum LoadedPluginCommand {
    /// List all plugins, with the reason if one cannot be used
    #[command(visible_alias = "ls")]
    List(OutputArgs),
    /// Show one plugin: its tools, what it requests, what it is granted
    Show {
        /// The plugin, or the path of a component or of a plugin's folder
        #[arg(value_name = "NAME|FILE", add = NameKind::Plugin)]
        name: String,
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Accept plugins that have changed, after showing the difference
    Accept {
        /// The plugins
        #[arg(required = true, value_name = "NAME", add = NameKind::Plugin)]
        names: Vec<String>,
        /// Do not ask for confirmation
        #[arg(long)]
        yes: bool,
    },
}

// What to build, and how.
#[derive(Debug, ClapArgs)]
pub(in crate::cli) struct BuildArgs {
    /// The project's folder
    #[arg(value_name = "DIR", default_value = ".")]
    pub(super) folder: PathBuf,
    /// Install missing compilers into the program's cache folder
    #[arg(long)]
    pub(super) get_tools: bool,
    /// The component's file, instead of NAME.wasm in the project's folder
    #[arg(long, value_name = "FILE")]
    pub(super) out: Option<PathBuf>,
    /// JavaScript engine of the component: quickjs (small) or spidermonkey (fast)
    #[arg(long, value_name = "ENGINE", value_parser = ["quickjs", "spidermonkey"])]
    pub(super) engine: Option<String>,
}

impl BuildArgs {
    /// Builds a folder as `plugin build` without flags does.
    pub(super) fn for_folder(folder: &std::path::Path) -> Self {
        Self { folder: folder.to_owned(), get_tools: false, out: None, engine: None }
    }
}

// What to install.
#[derive(Debug, ClapArgs)]
pub(in crate::cli) struct AddArgs {
    /// A component, the folder of a plugin, or the https:// address of a component
    #[arg(value_name = "PATH|URL")]
    pub(super) source: String,
    #[command(flatten)]
    pub(super) check: SourceCheck,
    /// Do not ask for confirmation
    #[arg(long)]
    pub(super) yes: bool,
}

// Where to get the newer version of a plugin.
#[derive(Debug, ClapArgs)]
pub(in crate::cli) struct UpdateArgs {
    /// Get it from here instead of where it came from
    #[arg(long = "from", value_name = "PATH|URL")]
    pub(super) source: Option<String>,
    #[command(flatten)]
    pub(super) check: SourceCheck,
    /// Do not ask for confirmation
    #[arg(long)]
    pub(super) yes: bool,
}

// What a source has to fulfil.
#[derive(Debug, ClapArgs)]
pub(in crate::cli) struct SourceCheck {
    /// The digest that the component must have, as its author publishes it: sha256:HEX or BLAKE3
    #[arg(long, value_name = "DIGEST")]
    pub(super) digest: Option<String>,
    /// Allow an address of the private network, and http:// on this machine
    #[arg(long)]
    pub(super) allow_private: bool,
}

// What to develop.
#[derive(Debug, ClapArgs)]
pub(in crate::cli) struct DevArgs {
    /// The project's folder
    #[arg(value_name = "DIR", default_value = ".")]
    pub(super) folder: PathBuf,
    /// Do not ask before an installed plugin of the same name is replaced
    #[arg(long)]
    pub(super) yes: bool,
}

// What to test.
#[derive(Debug, ClapArgs)]
pub(in crate::cli) struct TestArgs {
    /// The plugin's folder, or its component
    #[arg(value_name = "DIR|COMPONENT", default_value = ".")]
    pub(super) path: PathBuf,
    /// The test cases, instead of cases.json next to the component
    #[arg(long, value_name = "FILE")]
    pub(super) cases: Option<PathBuf>,
    /// Write the actual results into the file as the expected ones
    #[arg(long)]
    pub(super) update: bool,
    #[command(flatten)]
    pub(super) output: OutputArgs,
}

/// A language on the command line.
#[derive(Debug, Clone, Copy)]
pub(in crate::cli) struct LanguageArg(pub(super) SourceLanguage);

impl ValueEnum for LanguageArg {
    fn value_variants<'a>() -> &'a [Self] {
        const ALL: [LanguageArg; 7] = [
            LanguageArg(SourceLanguage::Rust),
            LanguageArg(SourceLanguage::Python),
            LanguageArg(SourceLanguage::JavaScript),
            LanguageArg(SourceLanguage::TypeScript),
            LanguageArg(SourceLanguage::C),
            LanguageArg(SourceLanguage::Cpp),
            LanguageArg(SourceLanguage::Go),
        ];
        &ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let other_names: &[&str] = match self.0 {
            SourceLanguage::Rust => &["rs"],
            SourceLanguage::Python => &["py"],
            SourceLanguage::JavaScript => &["javascript"],
            SourceLanguage::TypeScript => &["typescript"],
            SourceLanguage::C => &[],
            SourceLanguage::Cpp => &["c++", "cxx"],
            SourceLanguage::Go => &["golang"],
        };
        Some(PossibleValue::new(self.0.word()).aliases(other_names.iter().copied()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_language_can_be_named() {
        let named: Vec<_> = LanguageArg::value_variants().iter().map(|arg| arg.0).collect();
        assert_eq!(named, SourceLanguage::ALL);
        for (word, language) in
            [("TypeScript", SourceLanguage::TypeScript), ("c++", SourceLanguage::Cpp)]
        {
            assert_eq!(LanguageArg::from_str(word, true).unwrap().0, language);
        }
    }
}
